"""One's own API tokens."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from annotation import access, people


@never_cache
@sensitive_variables("text")
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The list; POST makes one and shows it, this once."""
    user = access.person(request.user)
    text = people.new_token(user)[1] if request.method == "POST" else ""
    return render(request, "annotation/people_tokens.html", {"tokens": people.tokens(user), "text": text})


@require_POST
def revoke(request: HttpRequest, key: str) -> HttpResponse:
    """End a token at once."""
    user = access.person(request.user)
    people.revoke_token(user, key)
    messages.success(request, "The token is revoked. Programs that used it are signed out.")
    return redirect("tokens")
