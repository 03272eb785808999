"""All votes of a question as arrays, read in one pass: what the figures about single raters are made from."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import psycopg
from django.db import connection

from annotation.models import Question, Source, TaskState
from curation.stats.intervals import Floats, Ints

SETTLED = (TaskState.AGREED, TaskState.DISPUTED, TaskState.ADJUDICATED)

# Votes of the current round. Missing times are -1, so that every row is as long as the next.
_VOTES = """
COPY (
    SELECT vote.task_id::int8, vote.member_id::int8, vote.choice_id::int8, coalesce(vote.elapsed_ms, -1)::int4,
           (task.state = ANY(%(settled)s) AND task.vote_count = task.votes_required)::int::int4
    FROM annotation_vote AS vote JOIN annotation_task AS task ON task.id = vote.task_id AND task.round = vote.round
    WHERE vote.question_id = %(question)s AND task.state <> 'retired'
) TO STDOUT (FORMAT binary)
"""
_TRUTHS = """
COPY (
    SELECT truth.task_id::int8, truth.choice_id::int8, (truth.source = ANY(%(apart)s))::int::int4
    FROM annotation_groundtruth AS truth JOIN annotation_task AS task ON task.id = truth.task_id
    WHERE truth.question_id = %(question)s AND truth.superseded_at IS NULL AND task.state = ANY(%(settled)s)
      AND task.vote_count = task.votes_required
) TO STDOUT (FORMAT binary)
"""
_SPARSE = 20  # places an id, beyond which sorting takes less memory
_HEADER, _TRAILER = 19, 2  # bytes before the first row of a binary COPY and after the last


@dataclass(frozen=True)
class Ballots:
    """The current round's votes. Tasks, members and choices are numbered from 0 in each.

    tasks (t,): ids of the tasks that have all their votes; members (r,): ids of all who voted; task, rater, choice (v,): the
    votes on those tasks; truth (t,): the current ground truth, -1 without; apart (t,): it came by a ruling or in a file, not
    from these votes. Of every vote, those on open tasks too: cast, unsure (r,) how many, median_s (r,) seconds, nan without.
    """

    tasks: Ints
    members: Ints
    task: Ints
    rater: Ints
    choice: Ints
    truth: Ints
    apart: Ints
    all_raters: Ints
    all_choices: Ints
    all_times: Floats


def read(question: Question, choices: list[int]) -> Ballots:
    """The votes as they stand. `choices`: ids, in the order of their numbers."""
    given = {"question": question.pk, "settled": list(SETTLED), "apart": [Source.ADJUDICATED, Source.IMPORTED]}
    votes = _copied(_VOTES, given, [("task", ">i8"), ("member", ">i8"), ("choice", ">i8"), ("elapsed", ">i4"), ("full", ">i4")])
    members, rater = _distinct(votes["member"])
    choice = _numbered(votes["choice"], choices)
    full = votes["full"] == 1
    tasks, task = _distinct(votes["task"][full])
    truths = _copied(_TRUTHS, given, [("task", ">i8"), ("choice", ">i8"), ("apart", ">i4")])
    truth, apart = np.full(tasks.size, -1, dtype=np.int64), np.zeros(tasks.size, dtype=np.int64)
    known = np.isin(truths["task"], tasks)  # a task that came settled in a file has a truth and no vote
    places = np.searchsorted(tasks, truths["task"][known])
    truth[places], apart[places] = _numbered(truths["choice"][known], choices), truths["apart"][known]
    return Ballots(
        tasks, members, task, rater[full], choice[full], truth, apart,
        all_raters=rater, all_choices=choice, all_times=votes["elapsed"].astype(np.float64) / 1000,
    )  # fmt: skip


def of_named(given: Ballots, nameless: "np.ndarray[Any, np.dtype[np.bool_]]") -> Ballots:
    """The same without the tasks on which somebody voted of whom nothing is known; `nameless`: (r,)."""
    kept = np.ones(given.tasks.size, dtype=bool)
    kept[given.task[nameless[given.rater]]] = False
    votes = kept[given.task]
    return replace(
        given, tasks=given.tasks[kept], task=(np.cumsum(kept) - 1)[given.task[votes]], rater=given.rater[votes],
        choice=given.choice[votes], truth=given.truth[kept], apart=given.apart[kept],
    )  # fmt: skip


def _distinct(ids: Ints) -> tuple[Ints, Ints]:
    """The ids, each once and in order, and the place of each given one among them: without sorting, because a table's ids lie close."""
    if not ids.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    first = int(ids.min())
    from_first = ids.astype(np.int64) - first
    if int(from_first.max()) > _SPARSE * ids.size:
        found, places = np.unique(from_first, return_inverse=True)
        return found + first, places
    there = np.zeros(int(from_first.max()) + 1, dtype=bool)
    there[from_first] = True
    return np.flatnonzero(there) + first, (np.cumsum(there) - 1)[from_first]


def _numbered(ids: Ints, order: list[int]) -> Ints:
    """Ids as their places in `order`."""
    ranked = np.argsort(order)
    return np.asarray(ranked[np.searchsorted(np.asarray(order, dtype=np.int64)[ranked], ids)], dtype=np.int64)


def _copied(sql: str, given: dict[str, Any], fields: list[tuple[str, str]]) -> np.ndarray[Any, Any]:
    """The rows of a binary COPY, none of whose columns is null: a count of fields, then each with its length before it."""
    shape = [("fields", ">i2")] + [pair for name, kind in fields for pair in ((f"{name}_length", ">i4"), (name, kind))]
    received = bytearray()
    with connection.cursor() as cursor:
        raw: psycopg.Cursor[Any] = cursor.cursor
        with raw.copy(sql, given) as copy:
            for block in copy:
                received += block
    kind = np.dtype(shape)
    return np.frombuffer(received, dtype=kind, offset=_HEADER, count=(len(received) - _HEADER - _TRAILER) // kind.itemsize)
