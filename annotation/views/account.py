"""One's own account: password, keys, theme, projects."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from annotation import access
from annotation.models import Membership


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """The page; a POST changes the password."""
    user = access.person(request.user)
    form = PasswordChangeForm(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        messages.success(request, "Your password is changed. Other places where you were signed in are signed out.")
        return redirect("account")
    members = (
        Membership.objects.select_related("project").filter(user=user, active=True, project__archived_at=None).order_by("project__name")
    )
    return render(
        request, "annotation/account.html", {"form": form, "members": members.order_by("project__name")}, status=422 if form.errors else 200
    )


@require_POST
def single_keys(request: HttpRequest) -> HttpResponse:
    """Answer by single keys, or not. Kept with the person, so that it holds on every machine."""
    user = access.person(request.user)
    user.single_keys = request.POST.get("single_keys") == "on"
    user.save(update_fields=["single_keys"])
    if request.headers.get("Accept", "").startswith("application/json"):
        return HttpResponse(status=204)
    messages.success(request, f"Single keys are {'on' if user.single_keys else 'off'}. Esc works either way.")
    return redirect("account")
