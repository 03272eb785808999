"""What all of /api/v1/ shares: reading what was sent, paging, and the one shape of an error (RFC 9457)."""

from http import HTTPStatus
from typing import Any

from django.core.exceptions import SuspiciousOperation
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotFound, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotation.errors import Refused
from config.refusals import refusal

LARGEST_ID = 2**63 - 1  # what a bigint key holds


class Pages(CursorPagination):
    """Newest last, by id; `?page_size=` up to 1,000."""

    page_size_query_param = "page_size"
    max_page_size = 1000
    ordering = "id"

    def decode_cursor(self, request: Request) -> Any:
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None and not _is_number(str(cursor.position)):
            raise NotFound(self.invalid_cursor_message)
        return cursor


def _is_number(position: str) -> bool:
    """Whether it could be an id: every page here is ordered by a whole number."""
    return position.isascii() and position.isdecimal() and len(position) < 20


class _Refusal(APIException):
    def __init__(self, error: Refused) -> None:
        super().__init__(error.message, error.code)
        self.status_code = error.status


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Any refusal as problem JSON: {type, title, status, detail, code, fields?}; None for what is a fault of ours."""
    if isinstance(error, SuspiciousOperation):
        error = Refused("The request is too large, or is none that a browser would send.", code="bad_request")
    error = refusal(error) or error
    response = exception_handler(_Refusal(error) if isinstance(error, Refused) else error, context)
    if response is None:
        return None
    status = HTTPStatus(response.status_code)
    fields: Any = None
    if isinstance(error, Refused):
        detail, code, fields = error.message, error.code, error.fields
    elif isinstance(error, ValidationError):
        detail, code, fields = "Some fields are wrong.", "invalid", _by_field(response.data)
    else:
        detail = str(getattr(error, "detail", "") or error or status.description)
        code = str(getattr(error, "default_code", status.phrase.lower().replace(" ", "_")))
    response.data = {"type": f"about:blank#{code}", "title": status.phrase, "status": response.status_code, "detail": detail, "code": code}
    if fields:
        response.data["fields"] = fields
    response.content_type = "application/problem+json"
    return response


def _by_field(errors: Any) -> dict[str, Any]:
    """DRF gives a list where the body as a whole is wrong."""
    return dict(errors) if isinstance(errors, dict) else {"body": errors}


def read(shape: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """The request's body in this shape; a ValidationError names the fields that are wrong."""
    given = shape(data=request.data)
    given.is_valid(raise_exception=True)
    return dict(given.validated_data)


def read_query(shape: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """The query string in this shape."""
    given = shape(data=request.query_params)
    given.is_valid(raise_exception=True)
    return dict(given.validated_data)
