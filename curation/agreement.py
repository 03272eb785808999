"""Agreement of a question, from the database: votes counted by pattern in one pass, then pure statistics."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Sum
from django.utils import timezone

from annotation import sql
from annotation.imported import IS_NAMELESS
from annotation.models import Choice, Question, Tag, TagUse, TaskState
from curation.ballots import SETTLED
from curation.keeping import KEEP, About, Wanted, kept
from curation.stats.agreement import Agreement, agreement, shares
from curation.stats.intervals import Estimate

# A vote that settled a task may be changed for a minute, which no stamp shows: what is that young is kept only briefly.
_KEEP_YOUNG, _YOUNG = 10, 120
SLICES = 30
_SLICE_DRAWS = 1000

# Votes of the current round of tasks that have all of theirs, counted per task; then how many tasks voted alike.
# A handful of rows comes back, however many tasks there are.
_PATTERNS = """
SELECT part, votes, count(*) AS tasks
FROM (
    SELECT {part} AS part, array[{columns}] AS votes
    FROM annotation_task AS task
    JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
    {joins}
    WHERE task.question_id = %(question)s AND task.state = ANY(%(settled)s) AND task.vote_count = task.votes_required
    GROUP BY task.id, part
) AS per_task
GROUP BY part, votes
"""
_JOIN_ITEM = "JOIN annotation_item AS item ON item.id = task.item_id"
_JOIN_MEMBER = "JOIN annotation_membership AS member ON member.id = vote.member_id"
# Tasks that two groups or more voted on: where majorities of two name different choices, and where a group has no majority.
_SPLIT = """
SELECT count(*) AS both, count(*) FILTER (WHERE differ) AS differ, count(*) FILTER (WHERE NOT differ AND lacking) AS lacking
FROM (
    SELECT task, coalesce(min(choice) FILTER (WHERE most) <> max(choice) FILTER (WHERE most), false) AS differ,
           count(*) FILTER (WHERE most) < count(DISTINCT part) AS lacking
    FROM (
        SELECT task.id AS task, member.attributes ->> %(key)s AS part, vote.choice_id AS choice,
               2 * count(*) > sum(count(*)) OVER (PARTITION BY task.id, member.attributes ->> %(key)s) AS most
        FROM annotation_task AS task
        JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
        JOIN annotation_membership AS member ON member.id = vote.member_id AND member.attributes ->> %(key)s IS NOT NULL
        WHERE task.question_id = %(question)s AND task.state = ANY(%(settled)s) AND task.vote_count = task.votes_required
        GROUP BY task.id, part, vote.choice_id
    ) AS counted
    GROUP BY task HAVING count(DISTINCT part) > 1
) AS compared
"""
_RATERS = f"""
SELECT member.attributes ->> %(key)s AS part, count(DISTINCT member.id) FILTER (WHERE NOT {IS_NAMELESS.format("member")}) AS raters
FROM annotation_membership AS member
WHERE member.project_id = %(project)s
  AND EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.member_id = member.id AND vote.question_id = %(question)s)
GROUP BY part
"""  # noqa: S608 - our own words
# Of the first thousand: what a key may be called is seen soon.
_KEYS = """
SELECT DISTINCT jsonb_object_keys(metadata) AS key
FROM (
    SELECT item.metadata FROM annotation_task AS task JOIN annotation_item AS item ON item.id = task.item_id
    WHERE task.question_id = %(question)s LIMIT 1000
) AS first ORDER BY key
"""
_ATTRIBUTES = """
SELECT DISTINCT jsonb_object_keys(attributes) AS key FROM annotation_membership WHERE project_id = %(project)s ORDER BY key
"""


@dataclass(frozen=True)
class Split:
    """How many tasks voted like this: `votes[k]` for the k-th choice."""

    votes: tuple[int, ...]
    tasks: int


@dataclass(frozen=True)
class TagAgreement:
    """One tag, given or not, by those who cast a choice that takes tags. `given`: the share of these votes with the tag."""

    value: str
    label: str
    given: Estimate
    figures: Agreement


@dataclass(frozen=True)
class Part:
    """Agreement among some of the votes. `value`: of the attribute or metadata, None where there is none; shares: by choice."""

    value: str | None
    raters: int | None
    figures: Agreement
    shares: tuple[Estimate, ...]


@dataclass(frozen=True)
class Parts:
    """The votes by raters' attribute or items' metadata, the most votes first; `not_shown` values beyond those are left out.

    both: the items that two groups voted on; differ: of these, where majorities of two groups name different choices; lacking:
    where they do not, but a group has no majority. None for metadata, because an item is in one slice only.
    """

    key: str
    parts: tuple[Part, ...]
    not_shown: int
    both: int | None = None
    differ: int | None = None
    lacking: int | None = None


@dataclass(frozen=True)
class QuestionAgreement:
    """All that is known of the votes of one question. `states` counts tasks by state; `splits` come most frequent first."""

    figures: Agreement
    choices: tuple[str, ...]
    splits: tuple[Split, ...]
    states: dict[str, int]
    tags: tuple[TagAgreement, ...] = ()
    at: datetime | None = None

    @property
    def votes_by_choice(self) -> list[tuple[str, int]]:
        return [(label, sum(split.votes[k] * split.tasks for split in self.splits)) for k, label in enumerate(self.choices)]


def of_question(question: Question) -> QuestionAgreement:
    """Agreement over the current round of every task that has all its votes.

    As fresh as the last settled task; a vote changed after it settled one shows within ten seconds. Where counting takes long,
    it may be a little behind, as `at` says.
    """
    choices = list(question.choices.all())
    found = kept(Wanted("agreement", question.pk), lambda: about(question, choices), lambda: _of_question(question, choices))
    return replace(found.result, at=found.at)


def _states(question: Question) -> dict[str, dict[str, Any]]:
    found = question.tasks.order_by().values("state").annotate(count=Count("id"), cast=Sum("vote_count"), last=Max("settled_at"))
    return {row["state"]: dict(row) for row in found}


def about(question: Question, choices: Sequence[Choice], *, with_open: bool = False) -> About:
    """Its stamp changes whenever a task settles, comes or goes; `with_open` whenever a vote is cast or voided."""
    states = _states(question)
    tags = list(question.tags.values_list("value", "label"))
    settings = [question.pk, question.policy, question.ordered, [(choice.pk, choice.label, choice.is_unsure) for choice in choices], tags]
    counted = sorted(
        (state, row["count"], row["cast"] if with_open or state in SETTLED else 0, str(row["last"])) for state, row in states.items()
    )
    newest = max((row["last"] for row in states.values() if row["last"]), default=None)
    young = newest is not None and (timezone.now() - newest).total_seconds() < _YOUNG
    votes = sum(row["cast"] for row in states.values())
    return About(hashlib.sha256(repr([settings, counted]).encode()).hexdigest(), votes, _KEEP_YOUNG if young else KEEP)


def _of_question(question: Question, choices: Sequence[Choice]) -> QuestionAgreement:
    states = _states(question)
    splits = [Split(tuple(row["votes"]), row["tasks"]) for row in _patterns(question, _by_choice(choices))]
    return QuestionAgreement(
        figures=_figures(question, choices, splits),
        choices=tuple(choice.label for choice in choices),
        splits=tuple(sorted(splits, key=lambda split: (-split.tasks, [-count for count in split.votes]))),
        states={state.value: states[state]["count"] if state in states else 0 for state in TaskState},
        tags=_tags(question, choices),
    )


def _figures(question: Question, choices: Sequence[Choice], splits: Sequence[Split], **options: int) -> Agreement:
    return agreement(
        [split.votes for split in splits] or [[0] * len(choices)],
        [split.tasks for split in splits] or [0],
        policy=question.policy,
        order=[k for k, choice in enumerate(choices) if not choice.is_unsure] if question.ordered else None,
        seed=_seed(question),
        **options,
    )


def _seed(question: Question) -> int:
    return question.project.seed % 2**32


def _by_choice(choices: Sequence[Choice]) -> list[str]:
    return [f"count(*) FILTER (WHERE vote.choice_id = {choice.pk:d})" for choice in choices]


def _patterns(question: Question, columns: Sequence[str], *, part: str = "NULL::text", joins: str = "", **given: Any) -> list[Any]:
    if not columns:
        return []
    statement = _PATTERNS.format(columns=", ".join(columns), part=part, joins=joins)
    with connection.cursor() as cursor:  # not prepared: its text is the question's own
        cursor.execute(statement, {"question": question.pk, "settled": list(SETTLED), **given})
        return [{"part": row[0], "votes": row[1], "tasks": row[2]} for row in cursor.fetchall()]


# ---------------------------------------------------------------- tags
def _tags(question: Question, choices: Sequence[Choice]) -> tuple[TagAgreement, ...]:
    """Each tag as a yes or no of its own. A vote whose choice takes no tags says nothing of any."""
    tags = list(Tag.objects.filter(question=question))
    taking = [choice.pk for choice in choices if choice.tag_use != TagUse.NONE]
    if not tags or not taking:
        return ()
    where = "vote.choice_id = ANY(%(taking)s)"
    columns = [f"count(*) FILTER (WHERE {where})"]
    columns += [f"count(*) FILTER (WHERE {where} AND %(tag{k})s = ANY(vote.tags))" for k in range(len(tags))]
    rows = _patterns(question, columns, taking=taking, **{f"tag{k}": tag.value for k, tag in enumerate(tags)})
    times = [row["tasks"] for row in rows]
    found = []
    for k, tag in enumerate(tags):
        counts = [[row["votes"][k + 1], row["votes"][0] - row["votes"][k + 1]] for row in rows] or [[0, 0]]
        figures = agreement(counts, times or [0], policy=question.policy, seed=_seed(question))
        found.append(TagAgreement(tag.value, tag.label, shares(counts, times or [0], seed=_seed(question))[0], figures))
    return tuple(found)


# ---------------------------------------------------------------- some of the votes
def attributes(question: Question) -> list[str]:
    """The attributes that raters of the project carry."""
    return [row["key"] for row in sql.rows(_ATTRIBUTES, project=question.project_id)]


def metadata_keys(question: Question) -> list[str]:
    """The metadata keys of the question's items, as far as the first thousand show them."""
    return [row["key"] for row in sql.rows(_KEYS, question=question.pk)]


def by_attribute(question: Question, key: str) -> Parts:
    """Agreement within each group of raters, and each group's labels."""

    def make() -> Parts:
        raters = {row["part"]: row["raters"] for row in sql.rows(_RATERS, key=key, project=question.project_id, question=question.pk)}
        found = _parts(question, key, part="member.attributes ->> %(key)s", joins=_JOIN_MEMBER, raters=raters)
        return replace(found, **sql.the(_SPLIT, key=key, question=question.pk, settled=list(SETTLED)))

    return kept(Wanted("groups", question.pk, key), lambda: about(question, list(question.choices.all())), make).result


def by_metadata(question: Question, key: str) -> Parts:
    """Agreement on the items with each value of a metadata key."""

    def make() -> Parts:
        return _parts(question, key, part="item.metadata ->> %(key)s", joins=_JOIN_ITEM)

    return kept(Wanted("slices", question.pk, key), lambda: about(question, list(question.choices.all())), make).result


def _parts(question: Question, key: str, *, part: str, joins: str, raters: dict[str | None, int] | None = None) -> Parts:
    choices = list(question.choices.all())
    by_value: dict[str | None, list[Split]] = {}
    for row in _patterns(question, _by_choice(choices), part=part, joins=joins, key=key):
        by_value.setdefault(row["part"], []).append(Split(tuple(row["votes"]), row["tasks"]))
    votes = {value: sum(sum(split.votes) * split.tasks for split in splits) for value, splits in by_value.items()}
    ranked = sorted(by_value, key=lambda value: (value is None, -votes[value], str(value)))
    found = tuple(_part(question, choices, value, by_value[value], raters) for value in ranked[:SLICES])
    return Parts(key, found, max(0, len(ranked) - SLICES))


def _part(
    question: Question, choices: Sequence[Choice], value: str | None, splits: Sequence[Split], raters: dict[str | None, int] | None
) -> Part:
    figures = _figures(question, choices, splits, draws=_SLICE_DRAWS)
    counts, times = [split.votes for split in splits], [split.tasks for split in splits]
    by_choice = shares(counts, times, draws=_SLICE_DRAWS, seed=_seed(question))
    return Part(value, None if raters is None else raters.get(value, 0), figures, tuple(by_choice))


# ---------------------------------------------------------------- for a program
def as_json(question: Question, found: QuestionAgreement) -> dict[str, Any]:
    """The same for a program: an undefined figure has a null value and its reason."""
    return {
        "question": question.slug,
        "policy": question.policy,
        "tasks": found.states,
        "choices": list(found.choices),
        "splits": [{"votes": list(split.votes), "tasks": split.tasks} for split in found.splits],
        **asdict(found.figures),
        "tags": [{"value": tag.value, "label": tag.label, "given": asdict(tag.given), **asdict(tag.figures)} for tag in found.tags],
    }


def parts_as_json(found: Parts) -> dict[str, Any]:
    """Agreement by group or slice for a program."""
    return {
        "key": found.key,
        "parts": [
            {"value": part.value, "raters": part.raters, "shares": [asdict(one) for one in part.shares], **asdict(part.figures)}
            for part in found.parts
        ],
        "not_shown": found.not_shown,
        "both": found.both,
        "differ": found.differ,
        "lacking": found.lacking,
    }
