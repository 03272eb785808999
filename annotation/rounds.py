"""What a researcher does to tasks and votes afterwards: retire, re-open in a new round, void, lift a quarantine.

Each verb is one transaction over any number of tasks, in plain SQL like `queue.py`, whose order of locks it keeps: Progress
rows, then tasks by id, then leases by id; what it decides on is read in a statement after the locks. A task that is open
again gets a stamp (`queued_at`) a little ahead of the clock, in seeded order: a member's mark never passes the clock, so
even a re-opening that takes long to commit is found by everybody.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from django.db import connection, transaction

from annotation import media, sql
from annotation.errors import Conflict, Invalid, Missing
from annotation.models import Guideline, Item, Membership, Question
from annotation.queue import ABSTENTIONS_TO_DISPUTE, LOCK_ALL_PROGRESS

LONGEST_WHY = 500
# How far ahead of the clock a re-opened task is stamped: longer than any transaction here lasts.
AHEAD_OF_CLOCK = timedelta(minutes=10)
Group = Literal["gaps", "disputed", "settled"]
_ASK_VOID = "Say why these votes are struck out. It is kept with them."
GROUPS: tuple[Group, ...] = ("gaps", "disputed", "settled")


@dataclass(frozen=True)
class Voided:
    """What became of voided votes. `reopened` tasks were settled or disputed and wait for a vote again; the others stay as ruled."""

    votes: int
    reopened: int
    kept_by_ruling: int


@dataclass(frozen=True)
class Affected:
    """How many tasks a new guideline version may concern: settled or disputed under an earlier one. `gaps` are among `settled`."""

    version: int
    gaps: int
    disputed: int
    settled: int

    def count(self, group: Group) -> int:
        return {"gaps": self.gaps, "disputed": self.disputed, "settled": self.settled}[group]


# ---------------------------------------------------------------- tasks
@transaction.atomic
def retire(question: Question, task_ids: Iterable[int]) -> int:
    """Take these tasks out of the study: nobody is asked any more, leases lapse, ground truth is superseded, votes stay on record.

    Returns how many were not retired before. Raises Missing for a task that is not this question's.
    """
    tasks = _lock(question, task_ids)
    retired: int = sql.the(_RETIRE, tasks=tasks)["tasks"]
    return retired


@transaction.atomic
def reopen(question: Question, task_ids: Iterable[int]) -> int:
    """Ask anew about these tasks, in a new round with as many votes as the question wants now; returns how many were re-opened.

    Earlier votes stay on record and count no more, ground truth is superseded, disputes held are let go. Whoever ruled on a
    task or saw its votes stays barred. Open tasks stay as they are, so sending it twice changes nothing. Raises Missing for a
    task that is not this question's, Conflict (quarantined, known_answer) for one that nobody may be asked about.
    """
    tasks = _lock(question, task_ids)
    _check_may_open(tasks)
    return _reopen(question, tasks)


def affected_by_guideline(question: Question) -> Affected:
    """What the latest guideline version may concern, among tasks that may be re-opened. All zero while there is one version."""
    latest = question.guidelines.first()
    if latest is None or latest.version == 1:
        return Affected(latest.version if latest else 0, 0, 0, 0)
    return Affected(latest.version, **sql.the(_AFFECTED_COUNTS, **_latest(question, latest)))


@transaction.atomic
def reopen_affected(question: Question, group: str, *, version: int) -> int:
    """Re-open a group of `affected_by_guideline`; returns how many tasks.

    Raises Invalid for an unknown group, Conflict (new_version) when `version` is not the latest: the group is another then.
    """
    if group not in GROUPS:
        raise Invalid("Say which tasks to re-open.", fields={"group": f"One of: {', '.join(GROUPS)}."})
    latest = question.guidelines.first()
    if latest is None or latest.version != version:
        raise Conflict("There is a newer version of the guideline. Look at the numbers again.", code="new_version")
    if latest.version == 1:
        return 0
    _check_at_once()
    found = sql.the(_AFFECTED_IDS[group], **_latest(question, latest))["tasks"] or []
    # Read again under the locks: what was ruled on or settled meanwhile is no longer of the group.
    sql.the(_LOCK_TASKS, question=question.pk, tasks=found)
    still = sql.the(f"{_AFFECTED_IDS[group]} AND task.id = ANY(%(tasks)s)", tasks=found, **_latest(question, latest))["tasks"] or []
    return _reopen(question, still)


def _reopen(question: Question, tasks: list[int]) -> int:
    reopened: int = sql.the(_REOPEN, tasks=tasks, question=question.pk, ahead=AHEAD_OF_CLOCK)["tasks"]
    return reopened


def _latest(question: Question, latest: Guideline) -> dict[str, Any]:
    return {"question": question.pk, "guideline": latest.pk, "since": latest.created_at}


# ---------------------------------------------------------------- votes
@transaction.atomic
def void_votes(member: Membership, question: Question | None, *, by: Membership, why: str) -> Voided:
    """Strike out all votes of a member (on one question, or on all), and open exactly their slots again.

    A task that they helped to settle, or to dispute, is open again in the same round; one that an adjudicator ruled on keeps
    its ruling. The member does not vote on these tasks again in that round. The votes are kept apart, with who struck them out
    and why. Once more voids nothing. Raises Invalid without a reason, Missing for another project's member.
    """
    why = _checked_why(why, _ASK_VOID)
    if member.project_id != by.project_id:
        raise Missing("There is no such member in this project.")
    return _void(member.pk, None if question is None else question.pk, None, by, why)


@transaction.atomic
def void_vote(vote_id: int, *, by: Membership, why: str) -> Voided:
    """Strike out one vote; else like `void_votes`."""
    why = _checked_why(why, _ASK_VOID)
    found = sql.one(_FIND_VOTE, vote=vote_id, project=by.project_id)
    if found is None:
        raise Missing("There is no such vote in this project.")
    return _void(found["member_id"], found["question_id"], vote_id, by, why)


def _void(member: int, question: int | None, vote: int | None, by: Membership, why: str) -> Voided:
    _check_at_once()
    arguments = {"member": member, "question": question, "vote": vote}
    sql.rows(LOCK_ALL_PROGRESS, member=member, question=question)  # they cast and change nothing meanwhile
    tasks = sql.the(_LOCK_VOTED, **arguments)["tasks"] or []
    done = sql.the(
        _VOID, **arguments, tasks=tasks, by=by.pk, why=why, ahead=AHEAD_OF_CLOCK, to_dispute=ABSTENTIONS_TO_DISPUTE
    )  # fmt: skip
    return Voided(**done)


def _checked_why(why: str, ask: str) -> str:
    if not why.strip():
        raise Invalid(ask, fields={"why": "A few words."})
    if len(why) > LONGEST_WHY:
        raise Invalid("Say it more briefly.", fields={"why": f"At most {LONGEST_WHY} characters."})
    return why.strip()


# ---------------------------------------------------------------- quarantine
@transaction.atomic
def lift_quarantine(item: Item, *, by: Membership, why: str) -> bool:
    """Show an item again, and with it all that were quarantined for the same picture; their tasks stay retired.

    Returns whether it can be shown: a picture that was flagged in another project too stays sealed, and its items there in
    quarantine, until it is lifted there. The reason is kept on the flags, which are handled with it. Raises Invalid without a
    reason, Conflict (not_quarantined), Missing for another project's item.
    """
    why = _checked_why(why, "Say why it may be shown again. It is kept with the flag.")
    if item.project_id != by.project_id:
        raise Missing("There is no such item in this project.")
    sql.rows(_LOCK_SAME_PICTURE, item=item.pk)
    if not sql.one("SELECT id FROM annotation_item WHERE id = %(item)s AND quarantined", item=item.pk):
        raise Conflict("This item is not quarantined.", code="not_quarantined")
    lifted = [row["id"] for row in sql.rows(_LIFT, item=item.pk, project=by.project_id)]
    sql.rows(_HANDLE_ILLEGAL, items=lifted, project=by.project_id, by=by.pk, why=why)
    return item.media_id is None or media.unseal(item.media_id)


# ---------------------------------------------------------------- locks and checks
def _check_at_once() -> None:
    """Foreign keys are checked with each statement of this transaction.

    Where nobody asks (a command), each of pghistory's triggers fails inside once, and PostgreSQL then goes through all that
    wait to be checked: so none wait.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _lock(question: Question, task_ids: Iterable[int]) -> list[int]:
    """These tasks of the question, locked in the order of their ids. Raises Missing naming the first that are not there."""
    _check_at_once()
    tasks = sorted(set(task_ids))
    locked = sql.the(_LOCK_TASKS, question=question.pk, tasks=tasks)["tasks"] or []
    if len(locked) < len(tasks):
        strange = sorted(set(tasks) - set(locked))
        more = f" and {len(strange) - 3:,} more" if len(strange) > 3 else ""
        raise Missing(f"{question.title} has no task {', '.join(map(str, strange[:3]))}{more}. Nothing was changed.", code="missing")
    return tasks


def _check_may_open(tasks: list[int]) -> None:
    shut = sql.the(_SHUT, tasks=tasks)
    if shut["quarantined"]:
        raise Conflict(
            f"{shut['quarantined']:,} of these tasks ask about a quarantined item. Lift the quarantine first. Nothing was changed.",
            code="quarantined",
        )
    if shut["known"]:
        raise Conflict(
            f"{shut['known']:,} of these tasks are known answers, which collect no votes. Take the mark off first. Nothing was changed.",
            code="known_answer",
        )


# ---------------------------------------------------------------- SQL
_LOCK_TASKS = """
    SELECT array_agg(locked.id) AS tasks FROM (
        SELECT task.id FROM annotation_task AS task
        WHERE task.question_id = %(question)s AND task.id = ANY(%(tasks)s::bigint[]) ORDER BY task.id FOR UPDATE
    ) AS locked
"""
# Nobody may be asked about these.
_MAY_OPEN = """
    NOT EXISTS (SELECT FROM annotation_item AS item WHERE item.id = task.item_id AND item.quarantined)
    AND NOT EXISTS (SELECT FROM annotation_knownanswer AS known WHERE known.task_id = task.id AND known.active)
"""
_SHUT = """
    SELECT count(*) FILTER (WHERE item.quarantined) AS quarantined, count(known.id) AS known
    FROM annotation_task AS task JOIN annotation_item AS item ON item.id = task.item_id
    LEFT JOIN annotation_knownanswer AS known ON known.task_id = task.id AND known.active
    WHERE task.id = ANY(%(tasks)s::bigint[]) AND task.state <> 'open'
"""
# What else ends with a task's round: every hold of it, taken in the order of ids, and its ground truth.
_END = """
    late AS MATERIALIZED (
        SELECT lease.id FROM annotation_lease AS lease JOIN chosen ON chosen.id = lease.task_id
        WHERE NOT lease.lapsed ORDER BY lease.id FOR UPDATE OF lease
    ), lapsed AS (
        UPDATE annotation_lease AS lease SET lapsed = true FROM late WHERE lease.id = late.id
    ), ended AS (
        UPDATE annotation_groundtruth AS truth SET superseded_at = clock_timestamp()
        FROM chosen WHERE truth.task_id = chosen.id AND truth.superseded_at IS NULL
    )
"""
_RETIRE = f"""
    WITH chosen AS MATERIALIZED (
        SELECT id FROM annotation_task WHERE id = ANY(%(tasks)s::bigint[]) AND state <> 'retired'
    ), {_END}, retired AS (
        UPDATE annotation_task AS task SET state = 'retired', lease_count = 0 FROM chosen WHERE task.id = chosen.id RETURNING task.id
    )
    SELECT count(*) AS tasks FROM retired
"""  # noqa: S608 - our own words
_REOPEN = f"""
    WITH chosen AS MATERIALIZED (
        SELECT id, row_number() OVER (ORDER BY rank, id) AS place FROM annotation_task
        WHERE id = ANY(%(tasks)s::bigint[]) AND state <> 'open'
    ), {_END}, opened AS (
        UPDATE annotation_task AS task SET
            round = task.round + 1, state = 'open', votes_required = question.votes_required,
            vote_count = 0, lease_count = 0, abstention_count = 0, settled_at = NULL,
            queued_at = statement_timestamp() + %(ahead)s + chosen.place * interval '1 microsecond'
        FROM chosen, annotation_question AS question
        WHERE task.id = chosen.id AND question.id = %(question)s RETURNING task.id
    )
    SELECT count(*) AS tasks FROM opened
"""  # noqa: S608 - our own words

_FIND_VOTE = """
    SELECT vote.member_id, vote.question_id FROM annotation_vote AS vote JOIN annotation_question AS question ON question.id = vote.question_id
    WHERE vote.id = %(vote)s AND question.project_id = %(project)s
    UNION ALL
    SELECT gone.member_id, gone.question_id FROM annotation_voidedvote AS gone JOIN annotation_question AS question ON question.id = gone.question_id
    WHERE gone.vote_number = %(vote)s AND question.project_id = %(project)s
"""  # noqa: E501
_THEIR_VOTES = """
    vote.member_id = %(member)s AND (%(question)s::bigint IS NULL OR vote.question_id = %(question)s)
    AND (%(vote)s::bigint IS NULL OR vote.id = %(vote)s)
"""
_LOCK_VOTED = f"""
    SELECT array_agg(locked.id) AS tasks FROM (
        SELECT task.id FROM annotation_task AS task
        WHERE task.id IN (SELECT vote.task_id FROM annotation_vote AS vote WHERE {_THEIR_VOTES}) ORDER BY task.id FOR UPDATE
    ) AS locked
"""  # noqa: S608 - our own words
# A vote of an earlier round goes too; only those of the current one change their task. What abstentions sent to the
# adjudicator stays there. What nobody may be asked about is retired instead of opened.
_VOID = f"""
    WITH gone AS (
        DELETE FROM annotation_vote AS vote WHERE {_THEIR_VOTES} AND vote.task_id = ANY(%(tasks)s::bigint[]) RETURNING vote.*
    ), kept AS (
        INSERT INTO annotation_voidedvote
            (task_id, question_id, member_id, vote_number, round, choice_id, tags, comment, guideline_id, token, elapsed_ms,
             created_at, revised_at, voided_by_id, why, voided_at)
        SELECT task_id, question_id, member_id, id, round, choice_id, tags, comment, guideline_id, token, elapsed_ms,
               created_at, revised_at, %(by)s, %(why)s, statement_timestamp()
        FROM gone
    ), hit AS MATERIALIZED (
        SELECT task.id, task.state, row_number() OVER (ORDER BY task.rank, task.id) AS place,
               task.state = 'agreed' OR task.state = 'disputed' AND task.abstention_count < %(to_dispute)s AS opens, {_MAY_OPEN} AS offered
        FROM gone JOIN annotation_task AS task ON task.id = gone.task_id AND task.round = gone.round
    ), chosen AS (
        SELECT id FROM hit WHERE opens
    ), {_END}, counted AS (
        UPDATE annotation_task AS task SET
            vote_count = task.vote_count - 1,
            state = CASE WHEN NOT hit.opens THEN task.state WHEN hit.offered THEN 'open' ELSE 'retired' END,
            settled_at = CASE WHEN NOT hit.opens THEN task.settled_at END,
            queued_at = CASE
                WHEN hit.opens AND hit.offered OR hit.state = 'open'
                THEN statement_timestamp() + %(ahead)s + hit.place * interval '1 microsecond'
                ELSE task.queued_at
            END
        FROM hit WHERE task.id = hit.id
    )
    SELECT (SELECT count(*) FROM gone) AS votes, count(*) FILTER (WHERE opens AND offered) AS reopened,
           count(*) FILTER (WHERE state = 'adjudicated') AS kept_by_ruling
    FROM hit
"""  # noqa: S608 - our own words

# Settled under an earlier version: its truth says under which. A file's votes name none; then it is the time that tells.
_EARLIER = """
    FROM annotation_task AS task
    LEFT JOIN annotation_groundtruth AS truth ON truth.task_id = task.id AND truth.superseded_at IS NULL
    WHERE task.question_id = %(question)s AND (
        task.state = 'disputed' AND task.settled_at < %(since)s
        OR task.state IN ('agreed', 'adjudicated') AND truth.guideline_id <> %(guideline)s
        OR task.state IN ('agreed', 'adjudicated') AND truth.guideline_id IS NULL AND truth.created_at < %(since)s
    )
"""
_GAP = """
    EXISTS (SELECT FROM annotation_adjudication AS ruling
            WHERE ruling.task_id = task.id AND ruling.round = task.round AND ruling.reason = 'guideline_gap')
"""
_IN_GROUP = {
    "gaps": f"task.state = 'adjudicated' AND {_GAP}",
    "disputed": "task.state = 'disputed'",
    "settled": "task.state IN ('agreed', 'adjudicated')",
}
_AFFECTED_COUNTS = (
    "SELECT "
    + ", ".join(f"count(*) FILTER (WHERE {within}) AS {group}" for group, within in _IN_GROUP.items())
    + f"{_EARLIER} AND {_MAY_OPEN}"
)
_AFFECTED_IDS = {
    group: f"SELECT array_agg(task.id) AS tasks {_EARLIER} AND {_MAY_OPEN} AND {within}" for group, within in _IN_GROUP.items()
}

# The item, or all that show its picture.
_SAME_PICTURE = """
    SELECT other.id FROM annotation_item AS item JOIN annotation_item AS other ON other.id = item.id OR other.media_hash = item.media_hash
    WHERE item.id = %(item)s
"""
_LOCK_SAME_PICTURE = f"SELECT id FROM annotation_task WHERE item_id IN ({_SAME_PICTURE}) ORDER BY id FOR UPDATE"  # noqa: S608 - our own words
# Those of other projects too, unless somebody flagged it there.
_LIFT = f"""
    UPDATE annotation_item AS lifted SET quarantined = false
    WHERE lifted.id IN ({_SAME_PICTURE}) AND lifted.quarantined AND (lifted.project_id = %(project)s OR NOT EXISTS (
        SELECT FROM annotation_flag AS flag JOIN annotation_task AS task ON task.id = flag.task_id
        JOIN annotation_item AS flagged ON flagged.id = task.item_id AND flagged.quarantined AND flagged.project_id <> %(project)s
        WHERE flag.reason = 'illegal' AND flagged.id IN ({_SAME_PICTURE})
    ))
    RETURNING lifted.id
"""  # noqa: S608 - our own words
_HANDLE_ILLEGAL = """
    UPDATE annotation_flag SET
        handled_by_id = coalesce(handled_by_id, %(by)s), handled_at = coalesce(handled_at, clock_timestamp()), handled_note = CASE
            WHEN handled_at IS NULL THEN %(why)s ELSE left(handled_note || ' Quarantine lifted: ' || %(why)s, 500) END
    WHERE reason = 'illegal' AND task_id IN (
        SELECT task.id FROM annotation_task AS task JOIN annotation_item AS item ON item.id = task.item_id
        WHERE item.id = ANY(%(items)s::bigint[]) AND item.project_id = %(project)s
    ) RETURNING id
"""
