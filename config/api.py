"""What all of /api/v1/ shares: paging and the one shape of an error (RFC 9457 problem details)."""

from typing import Any

from rest_framework.exceptions import APIException, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotation.errors import Refused


class Pages(CursorPagination):
    """Newest last, by id; `?page_size=` up to 1,000."""

    page_size_query_param = "page_size"
    max_page_size = 1000
    ordering = "id"


class _Refusal(APIException):
    def __init__(self, error: Refused) -> None:
        super().__init__(error.message, error.code)
        self.status_code = error.status


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Any refusal as problem JSON: {type, title, status, detail, code, fields?}."""
    response = exception_handler(_Refusal(error) if isinstance(error, Refused) else error, context)
    if response is None:
        return None
    fields: Any = None
    if isinstance(error, Refused):
        detail, code, fields = error.message, error.code, error.fields
    elif isinstance(error, ValidationError):
        detail, code, fields = "Some fields are wrong.", "invalid", response.data
    else:
        detail = getattr(error, "detail", "") or str(error)
        code = getattr(error, "default_code", "error")
    response.data = {"type": f"about:blank#{code}", "title": response.status_text, "status": response.status_code, "detail": str(detail), "code": code}
    if fields:
        response.data["fields"] = fields
    response.content_type = "application/problem+json"
    return response
