"""What people disagree on: shares of disputed tasks and how far votes differ, by metadata, by harm, by pair of choices.

Counted over the tasks that have all their votes, as on the page of agreement. The database counts how often each pattern of
votes came up in each group, in one pass; the rest is arithmetic on a few rows, however many tasks there are.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
from django.db import connection, transaction
from psycopg.errors import QueryCanceled

from annotation import sql
from annotation.errors import Invalid
from annotation.models import Choice, Policy, Question, Tag, TaskState
from curation.agreement import about
from curation.keeping import Wanted, kept
from curation.stats.intervals import Estimate, resamples, wilson, with_interval

FIRST_FIELD = "recipe"
FIELDS_FROM = 2000  # items whose metadata is looked at for names of fields
LONGEST_FIELD = 200
SHOWN = 40
PAGE = 50
PATIENCE_S = 10
DRAWS = 1000
_SETTLED = [TaskState.AGREED, TaskState.DISPUTED, TaskState.ADJUDICATED]

Pattern = tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Tasks that have something in common. `value` is None for those without the field.

    `disputed`: the share that the votes did not settle, Wilson's interval. `pairwise`: the mean share of a task's pairs of votes
    that differ, bootstrap over tasks. `differing`: tasks on which not all votes name the same choice.
    """

    value: str | None
    tasks: int
    differing: int
    disputed: Estimate
    pairwise: Estimate


@dataclass(frozen=True)
class Confused:
    """Two choices, and the share of tasks on which both got votes."""

    first: str
    second: str
    labels: tuple[str, str]
    tasks: int
    share: Estimate


@dataclass(frozen=True)
class Disagreement:
    """Of one question. `groups` are of the field `by`, most tasks first, `left_out` the values that are not shown."""

    by: str
    fields: tuple[str, ...]
    all: Group
    groups: tuple[Group, ...]
    left_out: int
    tags: tuple[Group, ...]
    tag_labels: dict[str, str]
    confused: tuple[Confused, ...]

    @property
    def by_quoted(self) -> str:
        """The field as part of an address."""
        return quote(self.by, safe="")


@dataclass(frozen=True)
class Split:
    """A task on which votes differ, with how many named each choice."""

    task_id: int
    item_id: int
    external_id: str
    state: str
    votes: list[tuple[str, int]]
    text: str | None


def of_question(question: Question, by: str = "") -> Disagreement:
    """All of it; `by` names a field of metadata, by default the recipe or the first there is. Raises Invalid for no such field."""
    fields = _fields(question)
    by = by or (FIRST_FIELD if FIRST_FIELD in fields else next(iter(fields), ""))
    if by and by not in fields:
        raise Invalid("No item of this question has that field.", fields={"by": f"One of: {', '.join(fields) or 'none'}."})
    choices = list(question.choices.all())
    asked = Wanted("disagreement", question.pk, by)
    return kept(asked, lambda: about(question, choices), lambda: _read(question, by, fields, choices)).result


def tasks(
    question: Question,
    *,
    by: str = "",
    value: str | None = None,
    tag: str = "",
    pair: Sequence[str] = (),
    after: int = 0,
    contents: bool = False,
) -> list[Split]:
    """The tasks behind a number on which votes differ, by id, a page of them: of a value of a field (None: without the field), of a
    tag that someone gave, of a pair of choices. Raises Invalid for a choice that is not there, or a search that takes too long.
    """
    known = dict(question.choices.values_list("value", "pk"))
    if wrong := [choice for choice in pair if choice not in known]:
        raise Invalid("There is no such choice.", fields={"pair": f"{wrong[0][:40]}: none of {', '.join(known)}."})
    states = [state for state in _SETTLED if state != TaskState.AGREED or question.policy != Policy.UNANIMOUS]
    try:
        with transaction.atomic():
            sql.rows("SELECT set_config('statement_timeout', %(most)s, true)", most=f"{PATIENCE_S}s")
            found = sql.rows(
                _TASKS, question=question.pk, states=states, after=after, limit=PAGE + 1, by=by, value=value, tag=tag,
                pair=[known[choice] for choice in pair], contents=contents,
            )  # fmt: skip
    except QueryCanceled as error:
        raise Invalid("This search takes too long.", code="too_slow") from error
    return [Split(**{**row, "votes": [(label, votes) for label, votes in row["votes"]]}) for row in found]


# ---------------------------------------------------------------- counting
def _counted(statement: str, question: Question, choices: list[Choice], *more: str) -> list[Any]:
    columns = ", ".join(["count(*) FILTER (WHERE vote.choice_id = %s)"] * len(choices)) or "0"
    with connection.cursor() as cursor:
        cursor.execute(statement.format(columns=columns), [*(choice.pk for choice in choices), question.pk, _SETTLED, *more])
        return list(cursor.fetchall())


def _tagged(question: Question, choices: list[Choice]) -> tuple[Group, ...]:
    return tuple(_groups(_counted(_BY_TAG, question, choices), question)) if question.tags.exists() else ()


def _read(question: Question, by: str, fields: tuple[str, ...], choices: list[Choice]) -> Disagreement:
    tagged = kept(Wanted("disagreement_tags", question.pk), lambda: about(question, choices), lambda: _tagged(question, choices)).result
    of_field = _counted(_BY_FIELD, question, choices, by)
    everything = _patterns((votes, disputed, tasks) for _, votes, disputed, tasks in of_field)
    groups = _groups(of_field, question)
    labels = dict(Tag.objects.filter(question=question).values_list("value", "label"))
    return Disagreement(
        by=by, fields=fields, all=_group(None, everything, question), groups=tuple(groups[:SHOWN]), left_out=max(0, len(groups) - SHOWN),
        tags=tagged, tag_labels=labels, confused=tuple(_confused(everything, choices)),
    )  # fmt: skip


def _patterns(rows: Iterable[tuple[Sequence[int], bool, int]]) -> dict[tuple[Pattern, bool], int]:
    found: dict[tuple[Pattern, bool], int] = defaultdict(int)
    for votes, disputed, tasks in rows:
        found[tuple(votes), disputed] += tasks
    return found


def _groups(rows: Sequence[tuple[str | None, Sequence[int], bool, int]], question: Question) -> list[Group]:
    by_value: dict[str | None, list[tuple[Sequence[int], bool, int]]] = defaultdict(list)
    for value, votes, disputed, tasks in rows:
        by_value[value].append((votes, disputed, tasks))
    sizes = {value: sum(tasks for _, _, tasks in some) for value, some in by_value.items()}
    order = sorted(by_value, key=lambda value: (-sizes[value], value is None, value or ""))
    # Those that are not shown need no intervals.
    return [_group(value, _patterns(by_value[value]), question) if place < SHOWN else _bare(value) for place, value in enumerate(order)]


def _bare(value: str | None) -> Group:
    return Group(value, 0, 0, Estimate.undefined("Not shown."), Estimate.undefined("Not shown."))


def _group(value: str | None, patterns: Mapping[tuple[Pattern, bool], int], question: Question) -> Group:
    tasks = sum(patterns.values())
    if not tasks:
        none = Estimate.undefined("No task has all its votes yet.")
        return Group(value, 0, 0, none, none)
    k = sum(count for (_, disputed), count in patterns.items() if disputed)
    low, high = wilson(k, tasks)
    differing = sum(count for (votes, _), count in patterns.items() if sum(map(bool, votes)) > 1)
    return Group(value, tasks, differing, Estimate(k / tasks, low, high, tasks), _pairwise(patterns, question.project.seed % 2**32))


def _pairwise(patterns: Mapping[tuple[Pattern, bool], int], seed: int) -> Estimate:
    """The mean share of differing pairs, over tasks with two votes or more."""
    shares: dict[float, int] = defaultdict(int)
    for (votes, _), count in patterns.items():
        n = sum(votes)
        if n >= 2:
            shares[1 - sum(k * (k - 1) for k in votes) / (n * (n - 1))] += count
    total = sum(shares.values())
    if not total:
        return Estimate.undefined("It takes two votes on a task.")
    values, times = np.array(sorted(shares)), np.array([shares[share] for share in sorted(shares)])
    draws = np.concatenate([block @ values / total for block in resamples(times, DRAWS, seed)])
    return with_interval(float(values @ times / total), draws, total, units=total)


def _confused(patterns: Mapping[tuple[Pattern, bool], int], choices: Sequence[Choice]) -> list[Confused]:
    total = sum(patterns.values())
    found = []
    for (i, first), (j, second) in itertools.combinations(enumerate(choices), 2):
        both = sum(count for (votes, _), count in patterns.items() if votes[i] and votes[j])
        if both:
            share = Estimate(both / total, *wilson(both, total), total)
            found.append(Confused(first.value, second.value, (first.label, second.label), both, share))
    return sorted(found, key=lambda pair: -pair.tasks)


def _fields(question: Question) -> tuple[str, ...]:
    return tuple(row["field"] for row in sql.rows(_FIELDS, question=question.pk, few=FIELDS_FROM, longest=LONGEST_FIELD))


# ---------------------------------------------------------------- SQL
_FIELDS = """
    SELECT DISTINCT field FROM (
        SELECT item.metadata FROM annotation_task AS task JOIN annotation_item AS item ON item.id = task.item_id
        WHERE task.question_id = %(question)s AND jsonb_typeof(item.metadata) = 'object' LIMIT %(few)s
    ) AS looked_at, jsonb_object_keys(looked_at.metadata) AS field
    WHERE length(field) <= %(longest)s ORDER BY field
"""
# Votes are counted per task first; the join with the items' metadata is then one row a task.
_PER_TASK = """
    SELECT task.id, task.item_id, task.state <> 'agreed' AS disputed, array[{columns}] AS votes
    FROM annotation_task AS task JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
    WHERE task.question_id = %s AND task.state = ANY(%s) AND task.vote_count = task.votes_required
    GROUP BY task.id
"""
_BY_FIELD = f"""
    WITH per_task AS ({_PER_TASK}), valued AS (
        SELECT left(item.metadata ->> _by.name, 200) AS value, per_task.votes, per_task.disputed
        FROM per_task JOIN annotation_item AS item ON item.id = per_task.item_id, (SELECT %s::text AS name) AS _by
    )
    SELECT value, votes, disputed, count(*) FROM valued GROUP BY value, votes, disputed
"""  # noqa: S608 - our own words
# A task counts for every tag that at least one of its votes gave.
_BY_TAG = f"""
    WITH per_task AS ({_PER_TASK}), given AS (
        SELECT DISTINCT vote.task_id, tag FROM per_task
        JOIN annotation_task AS task ON task.id = per_task.id
        JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round, unnest(vote.tags) AS tag
    )
    SELECT given.tag, per_task.votes, per_task.disputed, count(*)
    FROM given JOIN per_task ON per_task.id = given.task_id GROUP BY given.tag, per_task.votes, per_task.disputed
"""  # noqa: S608 - our own words
# Under the unanimous policy an agreed task has no votes that differ. The ids are put in order before any of them is looked at
# closely, so that a page ends the search.
_TASKS = """
    WITH candidate AS MATERIALIZED (
        SELECT task.id FROM annotation_task AS task
        WHERE task.question_id = %(question)s AND task.id > %(after)s AND task.state = ANY(%(states)s)
          AND task.vote_count = task.votes_required
        ORDER BY task.id
    ), chosen AS MATERIALIZED (
        SELECT candidate.id FROM candidate
        WHERE (
            SELECT count(DISTINCT vote.choice_id) > 1
                   AND cardinality(%(pair)s::bigint[])
                       = count(DISTINCT vote.choice_id) FILTER (WHERE vote.choice_id = ANY(%(pair)s::bigint[]))
                   AND (%(tag)s::text = '' OR bool_or(vote.tags @> ARRAY[%(tag)s::varchar]))
            FROM annotation_task AS task JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
            WHERE task.id = candidate.id
        ) AND (%(by)s::text = '' OR EXISTS (
            SELECT FROM annotation_task AS task JOIN annotation_item AS item ON item.id = task.item_id
            WHERE task.id = candidate.id AND left(item.metadata ->> %(by)s::text, 200) IS NOT DISTINCT FROM %(value)s::text
        ))
        LIMIT %(limit)s
    )
    SELECT task.id AS task_id, task.item_id, item.external_id, task.state,
           CASE WHEN %(contents)s AND NOT item.quarantined THEN item.text END AS text,
           ARRAY(
               SELECT json_build_array(choice.label, count(*))
               FROM annotation_vote AS vote JOIN annotation_choice AS choice ON choice.id = vote.choice_id
               WHERE vote.task_id = task.id AND vote.round = task.round GROUP BY choice.id ORDER BY count(*) DESC, choice.position
           ) AS votes
    FROM chosen JOIN annotation_task AS task ON task.id = chosen.id JOIN annotation_item AS item ON item.id = task.item_id
    ORDER BY task.id
"""
