"""Every address. Pages live with their app; so does their part of /api/v1/."""

from allauth.account import views as account
from django.urls import URLPattern, URLResolver, include, path
from django.views.decorators.http import require_http_methods

from config.views import healthz

# The package's views also take PUT and PATCH, as if they were POST.
_page = require_http_methods(["GET", "HEAD", "POST"])

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", _page(account.login), name="account_login"),
    path("sign-out/", _page(account.logout), name="account_logout"),
    path("", include("annotation.urls")),
    path("", include("scoring.urls")),
    path("", include("curation.urls")),
    path("api/v1/", include("config.api_urls")),
    path("healthz", healthz, name="healthz"),
]
handler500 = "config.views.server_error"
