"""What the shapes of the human side's API share."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from annotation import access
from annotation.models import Membership, Question

LARGEST_ID = 2**63 - 1


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


def question_or_none(member: Membership, slug: str) -> Question | None:
    """The named question, or none for an empty name."""
    return access.question(member, slug) if slug else None


class View(APIView):
    """Base of the views here: what they show is of this moment and for this person."""

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers.setdefault("Cache-Control", "no-store")
        return answer
