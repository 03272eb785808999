"""Guideline gaps: rulings that say what the guideline does not, for its next version to learn from."""

from dataclasses import dataclass

from annotation.models import Adjudication, Guideline, RulingReason

SHOWN = 500


@dataclass(frozen=True)
class Gaps:
    """Rulings of one choice that name a gap, newest first. `count` counts them all, however many are shown."""

    choice: str
    count: int
    rulings: list[Adjudication]


def under(guideline: Guideline) -> list[Gaps]:
    """The gaps named by rulings under this version, by the choice that was ruled, most first."""
    found = Adjudication.objects.filter(
        question=guideline.question_id, guideline=guideline, reason=RulingReason.GUIDELINE_GAP, ruled_at__isnull=False
    )
    by_choice: dict[str, list[Adjudication]] = {}
    for ruling in found.select_related("choice", "task", "member").order_by("-ruled_at"):
        if ruling.choice is not None:  # as the constraint has it: what was ruled has a choice
            by_choice.setdefault(ruling.choice.label, []).append(ruling)
    groups = [Gaps(choice, len(rulings), rulings[:SHOWN]) for choice, rulings in by_choice.items()]
    return sorted(groups, key=lambda group: (-group.count, group.choice))
