"""Every address under /api/v1/."""

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

from config.api_docs import Docs, Unknown

urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", Docs.as_view(), name="api_docs"),
    path("", include("annotation.api_urls")),
    path("", include("scoring.api_urls")),
    path("", include("curation.api_urls")),
    path("<path:rest>", Unknown.as_view()),
]
