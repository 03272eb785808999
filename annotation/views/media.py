"""A picture, for whoever may see that item now. The address says a project and an item, and nothing else."""

from collections.abc import Callable
from typing import IO

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from annotation import access, media
from annotation.models import Media, Membership

# No page and no other site may use it otherwise than as a picture, and nobody keeps a copy on the way.
HEADERS = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


@require_safe
def picture(request: HttpRequest, project: str, picture: int) -> HttpResponseBase:
    """An item's picture: for its researchers, and for who holds or has answered it."""
    return serve(request.method, access.member(request.user, project), picture, media.open_picture)


@require_safe
def thumbnail(request: HttpRequest, project: str, picture: int) -> HttpResponseBase:
    """A small one, for lists. For researchers."""
    return serve(request.method, access.researcher(request.user, project), picture, media.open_thumbnail)


def serve(method: str | None, member: Membership, item: int, opened: Callable[[Media], IO[bytes]]) -> HttpResponseBase:
    """The file of an item's picture that the member may see now. Raises Missing."""
    found = media.visible(member, item)
    kind = "jpeg" if opened is media.open_thumbnail else found.format
    file = opened(found)
    headers = HEADERS | {"Content-Type": media.CONTENT_TYPES[kind]}
    response = FileResponse(file, filename=f"picture.{kind}", headers=headers)  # the file's own name is its hash
    if method == "HEAD":
        file.close()
        return HttpResponse(headers=dict(response.items()))
    return response
