"""What the shapes of the human side's API share."""

from typing import Any

from rest_framework.request import Request
from rest_framework.views import APIView

from annotation import access
from annotation.models import Membership, Question


def question_or_none(member: Membership, slug: str) -> Question | None:
    """The named question, or none for an empty name."""
    return access.question(member, slug) if slug else None


class View(APIView):
    """Base of the views here: what they show is of this moment and for this person."""

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers.setdefault("Cache-Control", "no-store")
        return answer
