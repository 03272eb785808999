"""Votes that came in files: cast by pseudonymous raters, settled by the same rules as those cast here (SPEC section 2)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import psycopg
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from annotation.errors import Invalid
from annotation.models import Question, TagUse, TaskState
from annotation.resolution import Ballot, resolve
from annotation.tasks import RANK, SENSITIVE

LEFT_KEPT = 1000  # votes and contradictions that are told one by one; all are counted


@dataclass(frozen=True)
class RaterVote:
    """One rater's answer about one item. `rater` is the file's name for the person; `at` is None when the file does not say."""

    item_id: int
    rater: str
    choice: str
    tags: Sequence[str] = ()
    comment: str = ""
    at: datetime | None = None
    elapsed_ms: int | None = None


@dataclass(frozen=True)
class Left:
    """A vote that does not count. `row` is where it stands: in the file, else its place among the votes, from 1."""

    why: Literal["repeat", "surplus"]
    row: int
    rater: str
    item: str


@dataclass(frozen=True)
class Contradiction:
    """A rater's attribute that was given in two ways; the first is kept."""

    row: int
    rater: str
    attribute: str
    kept: Any
    given: Any


@dataclass(frozen=True)
class Imported:
    """What became of the votes. `tasks` counts the tasks they went to, `raters` the raters not seen before."""

    votes: int
    tasks: int
    raters: int
    repeats: int = field(metadata={"help": "further votes of one rater on one task; the first counts"})
    surplus: int = field(metadata={"help": "votes beyond votes_required"})
    taken: int = field(metadata={"help": "votes on tasks that had votes or holders already; left as they were"})
    states: dict[str, int]
    unsettled: int = field(default=0, metadata={"help": "agreed tasks whose choice needs a tag, and none had a majority"})
    left: tuple[Left, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()


@transaction.atomic
def import_votes(
    question: Question,
    votes: Iterable[RaterVote],
    *,
    votes_required: int | None = None,
    attributes: Mapping[str, Mapping[str, Any]] | None = None,
) -> Imported:
    """Record these votes, in their order, and settle what they complete, in one transaction.

    A task's `votes_required` is its number of distinct raters unless given; with fewer votes than given it stays open. A
    rater's first vote on a task counts. `attributes` says what is known of a rater; one that came before keeps what was said
    first. Raises Invalid for an item, choice or tag that the question does not have.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STAGE)
        raw: psycopg.Cursor[tuple[Any, ...]] = cursor.cursor
        with raw.copy(f"COPY staged_vote ({VOTE_COLUMNS}) FROM STDIN") as copy:
            for row, vote in enumerate(votes, start=1):
                tags = list(vote.tags)
                copy.write_row((row, vote.item_id, vote.rater, vote.choice, tags, vote.comment, vote.at, vote.elapsed_ms))
        with raw.copy(f"COPY staged_rater ({RATER_COLUMNS}) FROM STDIN") as copy:
            for row, (rater, known) in enumerate((attributes or {}).items(), start=1):
                copy.write_row((row, rater, json.dumps(dict(known))))
        return _record(cursor, question, votes_required)


@transaction.atomic
def import_selected(
    question: Question, votes: str, raters: str, parameters: Mapping[str, Any], *, votes_required: int | None = None
) -> Imported:
    """The same for votes that lie in tables of this connection.

    `votes` and `raters` are SELECTs of VOTE_COLUMNS and RATER_COLUMNS; the order of the first is the order of the votes.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STAGE)
        cursor.execute(f"INSERT INTO staged_vote ({VOTE_COLUMNS}) {votes}", dict(parameters))
        cursor.execute(f"INSERT INTO staged_rater ({RATER_COLUMNS}) {raters}", dict(parameters))
        return _record(cursor, question, votes_required)


def _record(cursor: CursorWrapper, question: Question, votes_required: int | None) -> Imported:
    """What is staged becomes raters, tasks, votes and labels."""
    parameters = {
        "question": question.pk, "project": question.project_id, "seed": question.project.seed, "required": votes_required,
        "kept": LEFT_KEPT, "sensitive": question.sensitive,
    }  # fmt: skip
    cursor.execute("ANALYZE staged_vote (item_id, rater); ANALYZE staged_rater (rater)")
    _check(cursor.cursor, question, parameters)
    cursor.execute(_LOCK_PROJECT, parameters)
    cursor.execute(_SAID)
    cursor.execute(_MORE_SAID, parameters)
    cursor.execute(_RATERS, parameters)
    raters = cursor.rowcount
    cursor.execute(_TASKS, parameters)
    # All of this is new to the planner, and a plan for empty tables would take hours.
    cursor.execute("ANALYZE annotation_membership; ANALYZE annotation_task")
    cursor.execute(_LOCK_TASKS, parameters)
    cursor.execute(_CHOOSE, parameters)
    cursor.execute("ANALYZE chosen_vote (task_id, item_id, choice, untouched, repeat)")
    cursor.execute(_VOTES, parameters)
    votes = cursor.rowcount
    cursor.execute(_COUNT, parameters)
    tasks = cursor.rowcount
    cursor.execute("ANALYZE annotation_vote (task_id, round, choice_id)")
    unsettled = _settle(cursor.cursor, question)
    cursor.execute(_TALLY)
    repeats, surplus, taken = cursor.fetchone()
    cursor.execute(_STATES)
    states = dict(cursor.fetchall())
    cursor.execute(_LEFT, parameters)
    left = tuple(Left(*row) for row in cursor.fetchall())
    cursor.execute(_CONTRADICTIONS, parameters)
    contradictions = tuple(
        Contradiction(row, rater, attribute, json.loads(kept), json.loads(given))
        for row, rater, attribute, kept, given in cursor.fetchall()
    )
    cursor.execute("DROP TABLE staged_vote, staged_rater, said_of_rater, chosen_vote, settled_task")
    return Imported(votes, tasks, raters, repeats, surplus, taken, states, unsettled, left, contradictions)


def _check(cursor: psycopg.Cursor[tuple[Any, ...]], question: Question, parameters: Mapping[str, object]) -> None:
    """Every item, choice and tag must be one that the question knows."""
    choices = {choice.value: choice.tag_use for choice in question.choices.all()}
    tags = {tag.value for tag in question.tags.all()}
    for number, choice, given in cursor.execute("SELECT min(number), choice, tags FROM staged_vote GROUP BY choice, tags").fetchall():
        if choice not in choices:
            known = ", ".join(choices)
            raise Invalid(
                f"Vote {number}: {choice!r} is not a choice of {question.slug}. Map it to one of: {known}.", code="unknown_choice"
            )
        if unknown := sorted(set(given) - tags):
            named, known = ", ".join(unknown), ", ".join(sorted(tags))
            raise Invalid(f"Vote {number}: unknown tags {named}. Map them to one of: {known}.", code="unknown_tag")
        if given and choices[choice] == TagUse.NONE:
            raise Invalid(f"Vote {number}: the choice {choice!r} takes no tags.", code="unknown_tag")
    stranger = cursor.execute(_STRANGER, parameters).fetchone()
    if stranger:
        raise Invalid(f"Vote {stranger[0]}: item {stranger[1]} is not in this project, or not of the question's kind.", code="unknown_item")


def _settle(cursor: psycopg.Cursor[tuple[Any, ...]], question: Question) -> int:
    """Resolve every task that is complete now; returns how many lack a tag they need. One pass over the votes, memory for one batch."""
    lacking = 0
    choices = {choice.value: choice for choice in question.choices.all()}
    with connection.chunked_cursor() as reader:
        reader.execute(_COMPLETE)
        while batch := reader.fetchmany(5000):
            with cursor.copy("COPY settled_task FROM STDIN") as copy:
                for task_id, packed in batch:
                    agreed = resolve(question.policy, [Ballot(choice, frozenset(tags)) for choice, tags in json.loads(packed)])
                    if agreed is None:
                        copy.write_row((task_id, TaskState.DISPUTED.value, None, [], False, None))
                        continue
                    choice = choices[agreed.choice]
                    unsettled = choice.tag_use == TagUse.REQUIRED and not agreed.tags
                    lacking += unsettled
                    copy.write_row((task_id, TaskState.AGREED.value, choice.pk, list(agreed.tags), unsettled, agreed.source))
    cursor.execute("ANALYZE settled_task")
    cursor.execute(_SET_STATES)
    cursor.execute(_SET_TRUTHS)
    return lacking


# ---------------------------------------------------------------- SQL
VOTE_COLUMNS = "row, item_id, rater, choice, tags, comment, cast_at, elapsed_ms"
RATER_COLUMNS = "row, rater, attributes"
_STAGE = """
    CREATE TEMP TABLE staged_vote (
        number bigint GENERATED ALWAYS AS IDENTITY, row bigint, item_id bigint, rater text, choice text, tags text[], comment text,
        cast_at timestamptz, elapsed_ms integer
    ) ON COMMIT DROP;
    CREATE TEMP TABLE staged_rater (row bigint, rater text, attributes jsonb) ON COMMIT DROP;
    CREATE TEMP TABLE settled_task (
        task_id bigint, state text, choice_id bigint, tags text[], tags_unsettled boolean, source text
    ) ON COMMIT DROP
"""
_STRANGER = """
    SELECT staged.number, staged.item_id FROM staged_vote AS staged
    LEFT JOIN annotation_item AS item ON item.id = staged.item_id AND item.project_id = %(project)s
    LEFT JOIN annotation_question AS question ON question.id = %(question)s AND question.kind = item.kind
    WHERE question.id IS NULL ORDER BY staged.number LIMIT 1
"""
# Numbers go on after the project's last. The lock, which people.py takes too, comes in a statement of its own: one that
# waits for it would not see the numbers given meanwhile.
_LOCK_PROJECT = "SELECT FROM annotation_project WHERE id = %(project)s FOR NO KEY UPDATE"
# What the raters' rows say of them, each saying once, at its first row.
_SAID = """
    CREATE TEMP TABLE said_of_rater ON COMMIT DROP AS
    SELECT rater, key, value, min(row) AS row FROM staged_rater, jsonb_each(attributes) GROUP BY rater, key, value
"""
_FIRST_SAID = """
    SELECT rater, jsonb_object_agg(key, value) AS attributes
    FROM (SELECT DISTINCT ON (rater, key) rater, key, value FROM said_of_rater ORDER BY rater, key, row) AS first GROUP BY rater
"""
_MORE_SAID = f"""
    UPDATE annotation_membership AS member SET attributes = said.attributes || member.attributes
    FROM ({_FIRST_SAID}) AS said
    WHERE member.project_id = %(project)s AND member.rater = said.rater AND said.attributes || member.attributes <> member.attributes
"""  # noqa: S608 - our own words
_RATERS = f"""
    WITH last AS (SELECT coalesce(max(number), 0) AS number FROM annotation_membership WHERE project_id = %(project)s),
    fresh AS (
        SELECT rater, row_number() OVER (ORDER BY min(number)) AS place FROM staged_vote
        WHERE NOT EXISTS (
            SELECT FROM annotation_membership AS known WHERE known.project_id = %(project)s AND known.rater = staged_vote.rater
        )
        GROUP BY rater
    )
    INSERT INTO annotation_membership (project_id, user_id, role, number, rater, attributes, active, created_at)
    SELECT %(project)s, NULL, 'rater', last.number + fresh.place, fresh.rater, coalesce(said.attributes, '{{}}'), true, now()
    FROM last, fresh LEFT JOIN ({_FIRST_SAID}) AS said ON said.rater = fresh.rater
"""  # noqa: S608 - our own words
_TASKS = f"""
    INSERT INTO annotation_task
        (question_id, item_id, round, state, votes_required, vote_count, lease_count, abstention_count, sensitive, rank)
    SELECT %(question)s, item.id, 1, 'open', coalesce(%(required)s, count(DISTINCT staged.rater)), 0, 0, 0, {SENSITIVE}, {RANK}
    FROM staged_vote AS staged JOIN annotation_item AS item ON item.id = staged.item_id
    GROUP BY item.id ON CONFLICT (question_id, item_id) DO NOTHING
"""  # noqa: S608 - our own words
# Nobody takes or answers a task between the look at it and the votes that come to it.
_LOCK_TASKS = """
    SELECT FROM annotation_task AS task
    WHERE task.question_id = %(question)s AND task.item_id IN (SELECT item_id FROM staged_vote) ORDER BY task.id FOR UPDATE
"""
# Which votes count: the first of each rater, the first so many of each task, and only on tasks nobody has touched.
_CHOOSE = """
    CREATE TEMP TABLE chosen_vote ON COMMIT DROP AS
    SELECT *, row_number() OVER (PARTITION BY task_id ORDER BY repeat > 1, number) AS place FROM (
        SELECT staged.*, task.id AS task_id, task.votes_required, member.id AS member_id,
               task.state = 'open' AND task.vote_count = 0 AND task.lease_count = 0 AS untouched,
               row_number() OVER (PARTITION BY staged.item_id, staged.rater ORDER BY staged.number) AS repeat
        FROM staged_vote AS staged
        JOIN annotation_task AS task ON task.question_id = %(question)s AND task.item_id = staged.item_id
        JOIN annotation_membership AS member ON member.project_id = %(project)s AND member.rater = staged.rater
    ) AS numbered
"""
_VOTES = """
    INSERT INTO annotation_vote (task_id, question_id, member_id, round, choice_id, tags, comment, token, elapsed_ms, created_at)
    SELECT chosen.task_id, %(question)s, chosen.member_id, 1, choice.id, chosen.tags, left(chosen.comment, 2000), gen_random_uuid(),
           chosen.elapsed_ms, coalesce(chosen.cast_at, now())
    FROM chosen_vote AS chosen JOIN annotation_choice AS choice ON choice.question_id = %(question)s AND choice.value = chosen.choice
    WHERE chosen.untouched AND chosen.repeat = 1 AND chosen.place <= chosen.votes_required
    ORDER BY chosen.number
"""
_COUNT = """
    UPDATE annotation_task AS task SET
        vote_count = counted.votes, queued_at = CASE WHEN counted.votes < task.votes_required THEN clock_timestamp() END
    FROM (
        SELECT task_id, count(*) AS votes FROM chosen_vote
        WHERE untouched AND repeat = 1 AND place <= votes_required GROUP BY task_id
    ) AS counted
    WHERE task.id = counted.task_id
"""
_COMPLETE = """
    SELECT task.id, json_agg(json_build_array(choice.value, vote.tags) ORDER BY vote.id)::text
    FROM (SELECT DISTINCT task_id FROM chosen_vote WHERE untouched) AS touched
    JOIN annotation_task AS task ON task.id = touched.task_id AND task.vote_count = task.votes_required
    JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
    JOIN annotation_choice AS choice ON choice.id = vote.choice_id
    GROUP BY task.id
"""
_SET_STATES = """
    UPDATE annotation_task AS task SET state = settled.state, settled_at = now()
    FROM settled_task AS settled WHERE task.id = settled.task_id
"""
_SET_TRUTHS = """
    INSERT INTO annotation_groundtruth
        (task_id, question_id, item_id, round, choice_id, tags, tags_unsettled, source, created_at)
    SELECT task.id, task.question_id, task.item_id, task.round, settled.choice_id, settled.tags, settled.tags_unsettled,
           settled.source, now()
    FROM settled_task AS settled JOIN annotation_task AS task ON task.id = settled.task_id
    WHERE settled.choice_id IS NOT NULL ORDER BY task.id
"""
_TALLY = """
    SELECT count(*) FILTER (WHERE untouched AND repeat > 1),
           count(*) FILTER (WHERE untouched AND repeat = 1 AND place > votes_required),
           count(*) FILTER (WHERE NOT untouched)
    FROM chosen_vote
"""
_STATES = """
    SELECT task.state, count(*) FROM annotation_task AS task
    WHERE task.id IN (SELECT task_id FROM chosen_vote WHERE untouched) GROUP BY task.state
"""
# The items are named as their file names them.
_LEFT = """
    SELECT CASE WHEN repeat > 1 THEN 'repeat' ELSE 'surplus' END, chosen.row, chosen.rater, item.external_id
    FROM chosen_vote AS chosen JOIN annotation_item AS item ON item.id = chosen.item_id
    WHERE untouched AND (repeat > 1 OR place > votes_required) ORDER BY number LIMIT %(kept)s
"""
_CONTRADICTIONS = """
    SELECT said.row, said.rater, said.key, (member.attributes -> said.key)::text, said.value::text
    FROM said_of_rater AS said
    JOIN annotation_membership AS member ON member.project_id = %(project)s AND member.rater = said.rater
    WHERE member.attributes -> said.key <> said.value ORDER BY said.row, said.key LIMIT %(kept)s
"""
