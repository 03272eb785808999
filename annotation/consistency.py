"""How consistent adjudicators are with themselves: their own rulings, put to them once more as if they were new."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation import sql
from annotation.models import Membership, Project

# With fewer, the number would tell which of the last rulings was one that came back.
FEWEST = 5


@dataclass(frozen=True)
class Consistency:
    """Of `repeats` rulings that came back, `same_choice` were ruled the same, `same` with the same tags too."""

    number: int
    pseudonym: str
    repeats: int
    same_choice: int
    same: int


def of_project(project: Project) -> list[Consistency]:
    """Of every adjudicator who had a ruling come back, over all questions, by number."""
    return [_read(row) for row in sql.rows(f"{_REPEATS} AND member.project_id = %(project)s {_BY_MEMBER}", project=project.pk)]


def of_member(member: Membership) -> Consistency | None:
    """One's own, over all questions of the project; None with fewer than FEWEST repeats."""
    row = sql.one(f"{_REPEATS} AND repeat.member_id = %(member)s {_BY_MEMBER}", member=member.pk)
    return _read(row) if row and row["repeats"] >= FEWEST else None


def _read(row: Mapping[str, Any]) -> Consistency:
    return Consistency(row["number"], f"Annotator {row['number']}", row["repeats"], row["same_choice"], row["same"])


_REPEATS = """
    SELECT member.number, count(*) AS repeats, count(*) FILTER (WHERE repeat.choice_id = ruling.choice_id) AS same_choice,
           count(*) FILTER (WHERE repeat.choice_id = ruling.choice_id AND repeat.tags @> ruling.tags AND repeat.tags <@ ruling.tags) AS same
    FROM annotation_repeat AS repeat
    JOIN annotation_adjudication AS ruling ON ruling.id = repeat.adjudication_id
    JOIN annotation_membership AS member ON member.id = repeat.member_id
    WHERE repeat.ruled_at IS NOT NULL
"""
_BY_MEMBER = "GROUP BY member.id, member.number ORDER BY member.number"
