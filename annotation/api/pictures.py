"""A picture for a program, under the rules of the page (annotation/views/media.py)."""

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from annotation import access, media
from annotation.api.fields import View
from annotation.views.media import serve


class Picture(View):
    @extend_schema(
        operation_id="picture", tags=["work"], responses={(200, "image/jpeg"): OpenApiTypes.BINARY, (200, "image/png"): OpenApiTypes.BINARY}
    )
    def get(self, request: Request, project: str, picture: int) -> HttpResponseBase:
        """An item's picture: for its researchers, and for who holds or has answered it."""
        return serve(request.method, access.member(request.user, project), picture, media.open_picture)


class Thumbnail(View):
    @extend_schema(operation_id="thumbnail", tags=["items"], responses={(200, "image/jpeg"): OpenApiTypes.BINARY})
    def get(self, request: Request, project: str, picture: int) -> HttpResponseBase:
        """A small JPEG of an item's picture, for lists. For researchers."""
        return serve(request.method, access.researcher(request.user, project), picture, media.open_thumbnail)
