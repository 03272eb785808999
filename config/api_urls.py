"""Every address under /api/v1/."""

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="api_docs"),
    path("", include("annotation.api_urls")),
    path("", include("scoring.api_urls")),
    path("", include("curation.api_urls")),
]
