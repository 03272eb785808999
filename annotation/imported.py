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
from annotation.models import Membership, Question, Role, TagUse, TaskState
from annotation.resolution import Ballot, resolve
from annotation.tasks import RANK, SENSITIVE

LEFT_KEPT = 1000  # votes and contradictions that are told one by one; all are counted
# Votes of nobody in particular need voters too. What stands for these begins with a blank, which no name in a file does.
COUNTED = " count "  # followed by "2 of 3"
UNNAMED = " vote "
_NAMELESS = {
    COUNTED: "These votes came as counts: nobody knows who cast which.",
    UNNAMED: "These votes came without names: nobody knows who cast which.",
}
IS_NAMELESS = "left({0}.rater, 1) = ' '"  # SQL over a membership or a vote of a file


def nameless(rater: str) -> str:
    """Why nothing can be said of this rater as a person; empty for a rater that the file names."""
    return next((why for begins, why in _NAMELESS.items() if rater.startswith(begins)), "")


def nameless_members(project_id: int) -> dict[int, str]:
    """The project's memberships that stand for nobody in particular, by id, each with why."""
    found = Membership.objects.filter(project=project_id, role=Role.RATER, rater__startswith=" ")
    return {pk: nameless(rater) for pk, rater in found.values_list("pk", "rater")}


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
    """A vote that does not count. `row` is where it stands: in the file, else its place among the votes, from 1.

    repeat: the rater voted on this task before, in this file or earlier; surplus: no slot is free; taken: the task is not open, `state`
    says what it is; struck: a researcher struck out the rater's vote on it.
    """

    why: Literal["repeat", "surplus", "taken", "struck"]
    row: int
    rater: str
    item: str
    state: str


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
    """What became of the votes. `tasks` counts the tasks they went to, `raters` the raters not seen before that the file names."""

    votes: int
    tasks: int
    raters: int
    repeats: int = field(metadata={"help": "further votes of one rater on one task, also after an earlier file's; the first counts"})
    surplus: int = field(metadata={"help": "votes beyond votes_required, or beyond the slots that people leave free"})
    taken: int = field(metadata={"help": "votes on tasks that are settled, disputed, ruled on or retired; left as they were"})
    states: dict[str, int]
    struck: int = field(default=0, metadata={"help": "votes that a researcher struck out before"})
    nameless: int = field(default=0, metadata={"help": "of the votes, those that came as counts or without names"})
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

    A new task's `votes_required` is its number of distinct raters unless given; with fewer votes than given it stays open. On an open
    task that is there already, votes fill the slots that nobody has or holds. A rater's first vote on a task counts. `attributes`
    says what is known of a rater; one that came before keeps what was said first. Raises Invalid for an item, choice or tag that the
    question does not have.
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
    cursor.execute(_TASKS, parameters)
    # All of this is new to the planner, and a plan for empty tables would take hours.
    cursor.execute("ANALYZE annotation_task")
    cursor.execute(_LOCK_TASKS, parameters)
    cursor.execute(_LAPSE, parameters)
    cursor.execute(_CHOOSE, parameters)
    cursor.execute("ANALYZE chosen_vote (task_id, item_id, rater, choice, why)")
    cursor.execute(_RATERS, parameters)
    (raters,) = cursor.fetchone()
    cursor.execute("ANALYZE annotation_membership")
    cursor.execute(_VOTES, parameters)
    votes = cursor.rowcount
    cursor.execute(_COUNT, parameters)
    tasks = cursor.rowcount
    cursor.execute("ANALYZE annotation_vote (task_id, round, choice_id)")
    unsettled = _settle(cursor.cursor, question)
    cursor.execute(_TALLY)
    repeats, surplus, taken, struck, without_name = cursor.fetchone()
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
    return Imported(votes, tasks, raters, repeats, surplus, taken, states, struck, without_name, unsettled, left, contradictions)


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
# Only who casts a vote becomes a rater.
_RATERS = f"""
    WITH last AS (SELECT coalesce(max(number), 0) AS number FROM annotation_membership WHERE project_id = %(project)s),
    fresh AS (
        SELECT rater, row_number() OVER (ORDER BY min(number)) AS place FROM chosen_vote
        WHERE why = '' AND NOT EXISTS (
            SELECT FROM annotation_membership AS known WHERE known.project_id = %(project)s AND known.rater = chosen_vote.rater
        )
        GROUP BY rater
    ), made AS (
        INSERT INTO annotation_membership (project_id, user_id, role, number, rater, attributes, active, created_at)
        SELECT %(project)s, NULL, 'rater', last.number + fresh.place, fresh.rater, coalesce(said.attributes, '{{}}'), true, now()
        FROM last, fresh LEFT JOIN ({_FIRST_SAID}) AS said ON said.rater = fresh.rater
        RETURNING rater
    )
    SELECT count(*) FILTER (WHERE NOT {IS_NAMELESS.format("made")}) FROM made
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
# Leases that ran out hold nothing.
_LAPSE = """
    WITH gone AS (
        UPDATE annotation_lease AS lease SET lapsed = true FROM annotation_task AS task
        WHERE lease.task_id = task.id AND task.question_id = %(question)s AND task.item_id IN (SELECT item_id FROM staged_vote)
          AND lease.kind = 'vote' AND NOT lease.lapsed AND lease.expires_at <= now()
        RETURNING lease.task_id
    )
    UPDATE annotation_task AS task SET
        lease_count = task.lease_count - freed.slots, queued_at = CASE WHEN task.queued_at IS NOT NULL THEN clock_timestamp() END
    FROM (SELECT task_id, count(*) AS slots FROM gone GROUP BY task_id) AS freed WHERE task.id = freed.task_id
"""
# Which votes count: on open tasks, the first of each rater in the task's round, as many as there are free slots. The others say why not.
_CHOOSE = """
    CREATE TEMP TABLE chosen_vote ON COMMIT DROP AS
    SELECT number, row, item_id, rater, choice, tags, comment, cast_at, elapsed_ms, task_id, round, state,
           CASE WHEN why = '' AND row_number() OVER (PARTITION BY task_id, why ORDER BY number) > slots THEN 'surplus' ELSE why END AS why
    FROM (
        SELECT staged.*, task.id AS task_id, task.round, task.state,
               task.votes_required - task.vote_count - task.lease_count AS slots,
               CASE WHEN task.state <> 'open' THEN 'taken'
                    WHEN earlier.id IS NOT NULL OR row_number() OVER (PARTITION BY task.id, staged.rater ORDER BY staged.number) > 1
                    THEN 'repeat'
                    WHEN struck.id IS NOT NULL THEN 'struck' ELSE '' END AS why
        FROM staged_vote AS staged
        JOIN annotation_task AS task ON task.question_id = %(question)s AND task.item_id = staged.item_id
        LEFT JOIN annotation_membership AS member ON member.project_id = %(project)s AND member.rater = staged.rater
        LEFT JOIN annotation_vote AS earlier
          ON earlier.task_id = task.id AND earlier.round = task.round AND earlier.member_id = member.id AND task.vote_count > 0
        LEFT JOIN annotation_voidedvote AS struck
          ON struck.task_id = task.id AND struck.round = task.round AND struck.member_id = member.id
    ) AS numbered
"""
_VOTES = """
    INSERT INTO annotation_vote (task_id, question_id, member_id, round, choice_id, tags, comment, token, elapsed_ms, created_at)
    SELECT chosen.task_id, %(question)s, member.id, chosen.round, choice.id, chosen.tags, left(chosen.comment, 2000), gen_random_uuid(),
           chosen.elapsed_ms, coalesce(chosen.cast_at, now())
    FROM chosen_vote AS chosen
    JOIN annotation_choice AS choice ON choice.question_id = %(question)s AND choice.value = chosen.choice
    JOIN annotation_membership AS member ON member.project_id = %(project)s AND member.rater = chosen.rater
    WHERE chosen.why = ''
    ORDER BY chosen.number
"""
_COUNT = """
    UPDATE annotation_task AS task SET
        vote_count = task.vote_count + counted.votes,
        queued_at = CASE WHEN task.vote_count + counted.votes < task.votes_required THEN clock_timestamp() END
    FROM (SELECT task_id, count(*) AS votes FROM chosen_vote WHERE why = '' GROUP BY task_id) AS counted
    WHERE task.id = counted.task_id
"""
_COMPLETE = """
    SELECT task.id, json_agg(json_build_array(choice.value, vote.tags) ORDER BY vote.id)::text
    FROM (SELECT DISTINCT task_id FROM chosen_vote WHERE why = '') AS touched
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
_TALLY = f"""
    SELECT count(*) FILTER (WHERE why = 'repeat'), count(*) FILTER (WHERE why = 'surplus'), count(*) FILTER (WHERE why = 'taken'),
           count(*) FILTER (WHERE why = 'struck'), count(*) FILTER (WHERE why = '' AND {IS_NAMELESS.format("chosen_vote")})
    FROM chosen_vote
"""  # noqa: S608 - our own words
_STATES = """
    SELECT task.state, count(*) FROM annotation_task AS task
    WHERE task.id IN (SELECT task_id FROM chosen_vote WHERE why = '') GROUP BY task.state
"""
# The items are named as their file names them.
_LEFT = """
    SELECT chosen.why, chosen.row, chosen.rater, item.external_id, chosen.state
    FROM chosen_vote AS chosen JOIN annotation_item AS item ON item.id = chosen.item_id
    WHERE chosen.why <> '' ORDER BY number LIMIT %(kept)s
"""
_CONTRADICTIONS = """
    SELECT said.row, said.rater, said.key, (member.attributes -> said.key)::text, said.value::text
    FROM said_of_rater AS said
    JOIN annotation_membership AS member ON member.project_id = %(project)s AND member.rater = said.rater
    WHERE member.attributes -> said.key <> said.value ORDER BY said.row, said.key LIMIT %(kept)s
"""
