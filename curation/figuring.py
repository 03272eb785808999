"""The results that a worker makes when they are too large for a request, each by its name."""

from collections.abc import Callable

from annotation.models import Question
from curation import agreement, disagreement, raters

MAKE: dict[str, Callable[..., object]] = {
    "agreement": agreement.of_question,
    "groups": agreement.by_attribute,
    "slices": agreement.by_metadata,
    "raters": raters.of_question,
    "disagreement": disagreement.of_question,
}


def make(kind: str, question_id: int, by: str = "") -> None:
    """Make what was wanted, unless it is there. It lies where the pages look for it."""
    question = Question.objects.select_related("project").get(pk=question_id)
    MAKE[kind](question, *([by] if by else []))
