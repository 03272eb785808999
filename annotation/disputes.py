"""Disputes: an adjudicator holds one, rules blind, sees the votes, rules. Every function here is one transaction.

The locks, the gate and the tokens are the queue's. Now and then one of an adjudicator's own rulings comes back to them as if
it were new (a Repeat): it goes the same way, and changes nothing but what is known of their consistency.
"""

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db import transaction
from psycopg.rows import DictRow

from annotation import sql
from annotation.errors import Conflict, Forbidden, Invalid, Missing
from annotation.gate import RULING, Gate, pass_gate
from annotation.models import Adjudication, Membership, Question, Role, RulingReason, Source, TaskState
from annotation.queue import LOCK_HELD, WORK, WORK_JOINS, check_answer, lock_progress, set_truth
from annotation.tasks import ASKED_UNDER

# The last rulings of an adjudicator are too fresh in mind to be asked again.
FRESH_IN_MIND = 10
COUNTS_KEPT = 300  # seconds


# ---------------------------------------------------------------- what callers get
@dataclass(frozen=True)
class AnonymousVote:
    """A vote as an adjudicator sees it: A, B, C in an order drawn for the dispute."""

    letter: str
    choice: str
    label: str
    tags: list[str]
    comment: str


@dataclass(frozen=True)
class Dispute:
    """A disputed task that the adjudicator holds. `votes`, and why people abstained, are None until they have ruled blind."""

    task_id: int
    token: uuid.UUID
    item_id: int
    kind: str
    text: str | None
    origin_text: str | None
    expires_at: datetime
    guideline_version: int
    vote_count: int
    abstention_count: int
    blind_choice: str | None
    blind_tags: list[str]
    blind_at: datetime | None
    votes: list[AnonymousVote] | None
    abstentions: dict[str, int] | None
    covered: bool
    width: int | None
    height: int | None


# ---------------------------------------------------------------- the adjudicator
@transaction.atomic
def next_dispute(member: Membership, question: Question) -> Dispute | None:
    """The dispute that the member holds, else the oldest one that they may rule on, now held by them.

    None: none waits, or `gate.stop_of` says why. Nobody rules on a task they voted on. Raises Forbidden for annotators.
    """
    _require_adjudicator(member)
    # Serialises one person's tabs; disputes of different people meet only in SKIP LOCKED.
    lock_progress(member.pk, question.pk)
    gate = pass_gate(member.pk, question.pk, ruling=True)
    if gate.stop is not None:
        return None
    sql.rows(_LAPSE_RULINGS, question=question.pk)
    held = sql.one(_HELD_DISPUTE, member=member.pk, question=question.pk) or _lease_dispute(member, question, gate)
    if held is None:
        return None
    sql.rows(_SEEN_VOTES, member=member.pk, token=held["token"], blind=member.role != Role.RESEARCHER)
    return _dispute(member, held["token"])


@transaction.atomic
def rule_blind(member: Membership, token: uuid.UUID, *, choice: str, tags: Sequence[str] = ()) -> Dispute:
    """Record the ruling made before the votes were seen, and open them. A second blind ruling changes nothing: the first stays.

    Raises Missing (no_lease), Conflict (settled, lease_expired), Invalid.
    """
    repeat = _lock_repeat(member, token, choice)
    if repeat is not None:
        _check_still_shown(repeat)
        check_answer(repeat, choice, tags)
        sql.rows(_REPEAT_BLIND, repeat=repeat["id"], choice=repeat["choice_id"], tags=sorted(set(tags)))
        return _dispute(member, token)
    held = _hold_dispute(member, token, choice)
    check_answer(held, choice, tags)
    sql.rows(
        """
        INSERT INTO annotation_adjudication
            (task_id, question_id, member_id, round, guideline_id, token, blind_choice_id, blind_tags, blind_at, tags, reason, note, blind)
        VALUES (%(task)s, %(question)s, %(member)s, %(round)s, %(guideline)s, %(token)s,
                %(choice)s, %(tags)s, clock_timestamp(), '{}', '', '', %(blind)s)
        ON CONFLICT (task_id, round, member_id) DO NOTHING RETURNING id
        """,
        task=held["task_id"], question=held["question_id"], member=member.pk, round=held["round"], guideline=held["guideline_id"],
        token=token, choice=held["choice_id"], tags=sorted(set(tags)), blind=member.role != Role.RESEARCHER,
    )  # fmt: skip
    return _dispute(member, token)


@transaction.atomic
def rule(member: Membership, token: uuid.UUID, *, choice: str, tags: Sequence[str] = (), reason: str, note: str = "") -> None:
    """The ruling: it becomes the ground truth. The same token again changes nothing.

    Raises Invalid (choice, tags, reason, note), Conflict (blind_first, settled, lease_expired), Missing (no_lease).
    """
    if reason not in RulingReason.values:
        raise Invalid("Say why the votes differed.", fields={"reason": f"One of: {', '.join(RulingReason.values)}."})
    if reason == RulingReason.GUIDELINE_GAP and not note.strip():
        raise Invalid("Say what the guideline leaves open: its next version is written from these notes.", fields={"note": "A few words."})
    if len(note) > 2000:
        raise Invalid("A note has at most 2,000 characters.", fields={"note": f"{len(note):,} characters."})
    repeat = _lock_repeat(member, token, choice)
    if repeat is not None:
        _rule_again(repeat, choice, tags, reason, note)
        return
    sql.rows(LOCK_HELD, token=token, member=member.pk, kind="ruling")  # a double click waits here for what came first
    if Adjudication.objects.filter(token=token, member=member, choice__isnull=False).exists():
        return
    held = _hold_dispute(member, token, choice)
    check_answer(held, choice, tags)
    if held["blind_ruling"] and held["adjudication_id"] is None:
        raise Conflict("Rule blind first; then the votes open.", code="blind_first")
    sql.rows(
        _RULE, task=held["task_id"], question=held["question_id"], member=member.pk, round=held["round"], guideline=held["guideline_id"],
        token=token, choice=held["choice_id"], tags=sorted(set(tags)), reason=reason, note=note, blind=member.role != Role.RESEARCHER,
        lease=held["lease_id"],
    )  # fmt: skip
    set_truth(
        held["task_id"], choice=held["choice_id"], tags=sorted(set(tags)), unsettled=False, source=Source.ADJUDICATED,
        member=member.pk, guideline=held["guideline_id"],
    )  # fmt: skip


@transaction.atomic
def give_back(member: Membership, token: uuid.UUID) -> None:
    """Return a dispute to the queue; for this member it comes behind the others. A blind ruling already made stays on record.

    Unknown or used tokens change nothing.
    """
    if _lock_repeat(member, token, "") is not None:
        sql.rows(_GIVE_BACK_REPEAT, token=token, member=member.pk)
    sql.rows(LOCK_HELD, token=token, member=member.pk, kind="ruling")
    sql.rows(
        "UPDATE annotation_lease SET lapsed = true WHERE token = %(token)s AND member_id = %(member)s AND kind = 'ruling' RETURNING id",
        token=token, member=member.pk,
    )  # fmt: skip


def dispute_counts(question: Question) -> tuple[int, int]:
    """(disputes waiting, disputes ruled on) of a question.

    Where rulings come back, the numbers are some minutes old on purpose: a count that stays after a ruling tells that it was one.
    """
    if not question.repeat_share:
        return _counts(question)
    key = f"disputes:{question.pk}"
    kept: tuple[int, int] | None = cache.get(key)
    if kept is None or not kept[0]:  # that one waits at last is told at once
        kept = _counts(question)
        cache.set(key, kept, COUNTS_KEPT)
    return kept


def stands(member: Membership, token: uuid.UUID) -> str | None:
    """The choice that the member's ruling by this token came to; None without one."""
    row = sql.one(_STANDS, token=token, member=member.pk)
    return None if row is None else row["value"]


def _counts(question: Question) -> tuple[int, int]:
    row = sql.the(
        """
        SELECT (SELECT count(*) FROM annotation_task WHERE question_id = %(question)s AND state = 'disputed') AS waiting,
               (SELECT count(*) FROM annotation_task WHERE question_id = %(question)s AND state = 'adjudicated') AS ruled
        """,
        question=question.pk,
    )
    return row["waiting"], row["ruled"]


def _require_adjudicator(member: Membership) -> None:
    if not member.active or member.role not in RULING:
        raise Forbidden("Only adjudicators and researchers rule on disputes.")


# ---------------------------------------------------------------- disputes
def _lease_dispute(member: Membership, question: Question, gate: Gate) -> DictRow | None:
    """Lease the oldest dispute that nobody holds, or by the coin one of their own rulings again; no sensitive one without room.

    One that somebody took between the look and the lock comes without a token.
    """
    arguments = {"member": member.pk, "question": question.pk, "sensitive": gate.room is None or gate.room > 0}
    if random.random() < gate.repeat_share:  # noqa: S311 - nobody gains by guessing a coin
        sql.rows(_DROP_SEALED_REPEAT, member=member.pk, question=question.pk)
        again = sql.one(_HOLD_REPEAT, token=uuid.uuid4(), fresh=FRESH_IN_MIND, **arguments)
        if again is not None:
            return again
    for left_before in (False, True):  # what they gave back comes when nothing else waits
        while found := sql.one(_LEASE_DISPUTE, token=uuid.uuid4(), left_before=left_before, **arguments):
            if found["token"] is not None:
                return found
    return None


def _hold_dispute(member: Membership, token: uuid.UUID, choice: str) -> DictRow:
    """The dispute that this token holds, its task locked, with what a ruling of `choice` needs to know."""
    _require_adjudicator(member)
    sql.rows(LOCK_HELD, token=token, member=member.pk, kind="ruling")
    held = sql.one(_READ_DISPUTE, token=token, member=member.pk, choice=choice)
    if held is None:
        raise Missing("You do not hold this dispute any more. It went back to the queue.", code="no_lease")
    if held["state"] != TaskState.DISPUTED or held["round"] != held["task_round"]:
        raise Conflict("This dispute was settled while you held it.", code="settled")
    if held["voted"]:
        raise Forbidden("You voted on this task: someone else rules on it.")
    if held["lapsed"] and not sql.one(_REVIVE_RULING, lease=held["lease_id"], task=held["task_id"]):
        raise Conflict("Your hold on this dispute ran out, and someone else has it now.", code="lease_expired")
    return held


def _lock_repeat(member: Membership, token: uuid.UUID, choice: str) -> DictRow | None:
    """The repeated ruling that this token holds, locked, with what a ruling of `choice` needs to know; None for a dispute's token."""
    _require_adjudicator(member)
    if not sql.rows(_LOCK_REPEAT, token=token, member=member.pk):
        return None
    return sql.the(_READ_REPEAT, token=token, choice=choice)


def _check_still_shown(repeat: Mapping[str, Any]) -> None:
    """Raises what a ruling on a dispute would raise that was taken out of sight meanwhile."""
    if repeat["quarantined"]:
        raise Conflict("This dispute was settled while you held it.", code="settled")


def _rule_again(repeat: Mapping[str, Any], choice: str, tags: Sequence[str], reason: str, note: str) -> None:
    """Record a repeated ruling. The ground truth stays as it is, and so does a first repetition."""
    _check_still_shown(repeat)
    check_answer(repeat, choice, tags)
    if repeat["blind_ruling"] and repeat["blind_at"] is None:
        raise Conflict("Rule blind first; then the votes open.", code="blind_first")
    sql.rows(_REPEAT_RULE, repeat=repeat["id"], choice=repeat["choice_id"], tags=sorted(set(tags)), reason=reason, note=note)


def _dispute(member: Membership, token: uuid.UUID) -> Dispute:
    row = sql.the(_DISPUTE, token=token, member=member.pk)
    open_votes = row.pop("blind_ruling") is False or row["blind_at"] is not None
    voted_round = row.pop("round")
    votes = abstentions = None
    if open_votes:
        cast = sql.rows(_DISPUTE_VOTES, task=row["task_id"], round=voted_round)
        votes = [AnonymousVote(letter=letter(place), **vote) for place, vote in enumerate(cast)]
        given = sql.rows(_DISPUTE_ABSTENTIONS, task=row["task_id"], round=voted_round)
        abstentions = {abstention["reason"]: abstention["count"] for abstention in given}
    return Dispute(**row, votes=votes, abstentions=abstentions)


def letter(place: int) -> str:
    """A to Z, then A2 to Z2 and so on."""
    turn, letter = divmod(place, 26)
    return chr(ord("A") + letter) + (str(turn + 1) if turn else "")


_LAPSE_RULINGS = """
    UPDATE annotation_lease SET lapsed = true
    WHERE question_id = %(question)s AND kind = 'ruling' AND NOT lapsed AND expires_at <= now() RETURNING id
"""
_HELD_DISPUTE = """
    SELECT lease.token, lease.leased_at
    FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id AND task.state = 'disputed'
    WHERE lease.member_id = %(member)s AND lease.question_id = %(question)s AND lease.kind = 'ruling' AND NOT lease.lapsed
    UNION ALL
    SELECT again.token, again.leased_at
    FROM annotation_repeat AS again
    JOIN annotation_adjudication AS ruling ON ruling.id = again.adjudication_id
    JOIN annotation_task AS task ON task.id = ruling.task_id
    JOIN annotation_item AS item ON item.id = task.item_id AND NOT item.quarantined
    WHERE again.member_id = %(member)s AND again.question_id = %(question)s AND again.ruled_at IS NULL AND again.expires_at > now()
    ORDER BY leased_at LIMIT 1
"""
_LEASE_DISPUTE = f"""
    WITH dispute AS MATERIALIZED (
        SELECT task.id, task.question_id, task.round, task.sensitive FROM annotation_task AS task
        WHERE task.question_id = %(question)s AND task.state = 'disputed' AND (%(sensitive)s OR NOT task.sensitive)
          AND EXISTS (SELECT FROM annotation_guideline AS guideline WHERE guideline.question_id = %(question)s)
          AND NOT EXISTS (SELECT FROM annotation_lease AS lease
                          WHERE lease.task_id = task.id AND lease.kind = 'ruling' AND NOT lease.lapsed)
          AND (%(left_before)s OR NOT EXISTS (SELECT FROM annotation_lease AS mine
                                              WHERE mine.task_id = task.id AND mine.member_id = %(member)s AND mine.kind = 'ruling'))
          AND NOT EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = %(member)s)
          AND NOT EXISTS (SELECT FROM annotation_voidedvote AS vote WHERE vote.task_id = task.id AND vote.member_id = %(member)s)
        ORDER BY task.settled_at, task.id LIMIT 1 FOR UPDATE OF task SKIP LOCKED
    ), lease AS (
        INSERT INTO annotation_lease (task_id, question_id, member_id, kind, round, guideline_id, token, leased_at, expires_at, lapsed)
        SELECT dispute.id, dispute.question_id, %(member)s, 'ruling', dispute.round, guideline.id, %(token)s, clock_timestamp(),
               now() + question.lease_minutes * interval '1 minute', false
        FROM dispute
        {ASKED_UNDER.format(of="dispute")}
        ON CONFLICT (task_id) WHERE kind = 'ruling' AND NOT lapsed DO NOTHING
        RETURNING token
    ), exposed AS (
        INSERT INTO annotation_exposure (member_id, task_id, at)
        SELECT %(member)s, dispute.id, clock_timestamp() FROM dispute JOIN lease ON true WHERE dispute.sensitive
    )
    SELECT lease.token FROM dispute LEFT JOIN lease ON true
"""  # noqa: S608 - our own words
_READ_DISPUTE = """
    SELECT lease.id AS lease_id, lease.lapsed, lease.round, lease.guideline_id,
           task.id AS task_id, task.question_id, task.state, task.round AS task_round,
           question.blind_ruling, choice.id AS choice_id, choice.tag_use,
           ARRAY(SELECT value::text FROM annotation_tag WHERE question_id = task.question_id ORDER BY position) AS allowed_tags,
           (SELECT id FROM annotation_adjudication AS own
            WHERE own.task_id = task.id AND own.round = task.round AND own.member_id = lease.member_id) AS adjudication_id,
           EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = lease.member_id)
           OR EXISTS (SELECT FROM annotation_voidedvote AS vote WHERE vote.task_id = task.id AND vote.member_id = lease.member_id) AS voted
    FROM annotation_lease AS lease
    JOIN annotation_task AS task ON task.id = lease.task_id
    JOIN annotation_question AS question ON question.id = task.question_id
    LEFT JOIN annotation_choice AS choice ON choice.question_id = task.question_id AND choice.value = %(choice)s
    WHERE lease.token = %(token)s AND lease.member_id = %(member)s AND lease.kind = 'ruling'
"""
_REVIVE_RULING = """
    UPDATE annotation_lease SET lapsed = false, expires_at = now() + interval '5 minutes'
    WHERE id = %(lease)s
      AND NOT EXISTS (SELECT FROM annotation_lease AS other
                      WHERE other.task_id = %(task)s AND other.kind = 'ruling' AND NOT other.lapsed)
    RETURNING id
"""
# Where the votes open at once: that they were seen is on record, even when the dispute is given back.
_SEEN_VOTES = """
    INSERT INTO annotation_adjudication
        (task_id, question_id, member_id, round, guideline_id, token, blind_tags, tags, reason, note, blind)
    SELECT lease.task_id, lease.question_id, lease.member_id, lease.round, lease.guideline_id, lease.token, '{}', '{}', '', '', %(blind)s
    FROM annotation_lease AS lease
    JOIN annotation_question AS question ON question.id = lease.question_id AND NOT question.blind_ruling
    WHERE lease.token = %(token)s AND lease.member_id = %(member)s
    ON CONFLICT (task_id, round, member_id) DO NOTHING RETURNING id
"""
_RULE = """
    WITH gone AS (DELETE FROM annotation_lease WHERE id = %(lease)s)
    INSERT INTO annotation_adjudication
        (task_id, question_id, member_id, round, guideline_id, token, blind_tags, choice_id, tags, reason, note, ruled_at, blind)
    VALUES (%(task)s, %(question)s, %(member)s, %(round)s, %(guideline)s, %(token)s,
            '{}', %(choice)s, %(tags)s, %(reason)s, %(note)s, clock_timestamp(), %(blind)s)
    ON CONFLICT (task_id, round, member_id) DO UPDATE SET
        guideline_id = excluded.guideline_id, token = excluded.token, choice_id = excluded.choice_id, tags = excluded.tags,
        reason = excluded.reason, note = excluded.note, ruled_at = excluded.ruled_at
    RETURNING id
"""
_DISPUTE_COLUMNS = f"""
    {WORK}, task.abstention_count, question.blind_ruling, choice.value AS blind_choice, coalesce(own.blind_tags, '{{}}') AS blind_tags,
    own.blind_at
"""
_DISPUTE = f"""
    SELECT {_DISPUTE_COLUMNS}, task.vote_count, task.round
    FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id {WORK_JOINS}
    LEFT JOIN annotation_adjudication AS own ON own.task_id = task.id AND own.round = task.round AND own.member_id = lease.member_id
    LEFT JOIN annotation_choice AS choice ON choice.id = own.blind_choice_id
    WHERE lease.token = %(token)s AND lease.member_id = %(member)s
    UNION ALL
    SELECT {_DISPUTE_COLUMNS},
           (SELECT count(*) FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.round = ruling.round), ruling.round
    FROM annotation_repeat AS lease
    JOIN annotation_adjudication AS ruling ON ruling.id = lease.adjudication_id
    JOIN annotation_task AS task ON task.id = ruling.task_id {WORK_JOINS}
    JOIN annotation_repeat AS own ON own.id = lease.id
    LEFT JOIN annotation_choice AS choice ON choice.id = own.blind_choice_id
    WHERE lease.token = %(token)s AND lease.member_id = %(member)s
"""  # noqa: S608 - our own words
# An order that says nothing about who or when, and stays the same for one dispute.
_DISPUTE_VOTES = """
    SELECT choice.value AS choice, choice.label, vote.tags, vote.comment
    FROM annotation_vote AS vote JOIN annotation_choice AS choice ON choice.id = vote.choice_id
    WHERE vote.task_id = %(task)s AND vote.round = %(round)s ORDER BY md5(vote.token::text)
"""
_DISPUTE_ABSTENTIONS = """
    SELECT reason, count(*) AS count FROM annotation_abstention
    WHERE task_id = %(task)s AND round = %(round)s GROUP BY reason ORDER BY reason
"""

# One that they began and left comes first; else one of their own earlier rulings, in an order that tells nothing. Only beside
# disputes that wait: a dispute in an empty queue would be known for what it is.
_HOLD_REPEAT = f"""
    WITH again AS (
        UPDATE annotation_repeat AS left_behind SET
            leased_at = clock_timestamp(), expires_at = now() + question.lease_minutes * interval '1 minute'
        FROM annotation_question AS question, annotation_adjudication AS ruling, annotation_task AS task, annotation_item AS item
        WHERE left_behind.member_id = %(member)s AND left_behind.question_id = %(question)s AND left_behind.ruled_at IS NULL
          AND question.id = left_behind.question_id AND ruling.id = left_behind.adjudication_id AND task.id = ruling.task_id
          AND item.id = task.item_id AND NOT item.quarantined AND (%(sensitive)s OR NOT task.sensitive)
        RETURNING left_behind.token, task.id AS task_id, task.sensitive
    ), chosen AS (
        SELECT ruling.id, ruling.question_id, ruling.task_id, task.sensitive
        FROM annotation_adjudication AS ruling
        JOIN annotation_task AS task ON task.id = ruling.task_id AND task.state = 'adjudicated' AND task.round = ruling.round
        JOIN annotation_item AS item ON item.id = task.item_id AND NOT item.quarantined
        WHERE NOT EXISTS (SELECT FROM annotation_repeat AS begun
                          WHERE begun.member_id = %(member)s AND begun.question_id = %(question)s AND begun.ruled_at IS NULL)
          AND EXISTS (SELECT FROM annotation_task AS waiting WHERE waiting.question_id = %(question)s AND waiting.state = 'disputed')
          AND ruling.question_id = %(question)s AND ruling.member_id = %(member)s AND (%(sensitive)s OR NOT task.sensitive)
          AND ruling.ruled_at < (
              SELECT last.ruled_at FROM annotation_adjudication AS last
              WHERE last.question_id = %(question)s AND last.member_id = %(member)s AND last.ruled_at IS NOT NULL
              ORDER BY last.ruled_at DESC OFFSET %(fresh)s - 1 LIMIT 1
          )
          AND NOT EXISTS (SELECT FROM annotation_repeat AS had WHERE had.adjudication_id = ruling.id)
        ORDER BY md5(ruling.token::text) LIMIT 1
    ), held AS (
        INSERT INTO annotation_repeat
            (adjudication_id, question_id, member_id, guideline_id, token, blind_tags, tags, reason, note, leased_at, expires_at)
        SELECT chosen.id, chosen.question_id, %(member)s, guideline.id, %(token)s, '{{}}', '{{}}', '', '', clock_timestamp(),
               now() + question.lease_minutes * interval '1 minute'
        FROM chosen
        {ASKED_UNDER.format(of="chosen")}
        RETURNING token
    ), given AS (
        SELECT token, task_id, sensitive FROM again UNION ALL SELECT held.token, chosen.task_id, chosen.sensitive FROM held, chosen
    ), exposed AS (
        INSERT INTO annotation_exposure (member_id, task_id, at)
        SELECT %(member)s, given.task_id, clock_timestamp() FROM given WHERE given.sensitive
    )
    SELECT token FROM given
"""  # noqa: S608 - our own words
# One that was begun and whose item was quarantined since can never be ended, and would stand in the way of the next.
_DROP_SEALED_REPEAT = """
    DELETE FROM annotation_repeat AS begun
    USING annotation_adjudication AS ruling, annotation_task AS task, annotation_item AS item
    WHERE begun.member_id = %(member)s AND begun.question_id = %(question)s AND begun.ruled_at IS NULL
      AND ruling.id = begun.adjudication_id AND task.id = ruling.task_id AND item.id = task.item_id AND item.quarantined
    RETURNING begun.id
"""
_LOCK_REPEAT = """
    SELECT again.id FROM annotation_repeat AS again
    JOIN annotation_progress AS progress ON progress.member_id = again.member_id AND progress.question_id = again.question_id
    WHERE again.token = %(token)s AND again.member_id = %(member)s FOR UPDATE OF progress, again
"""
_READ_REPEAT = """
    SELECT again.id, again.blind_at, question.blind_ruling, choice.id AS choice_id, choice.tag_use, item.quarantined,
           ARRAY(SELECT value::text FROM annotation_tag WHERE question_id = again.question_id ORDER BY position) AS allowed_tags
    FROM annotation_repeat AS again
    JOIN annotation_question AS question ON question.id = again.question_id
    JOIN annotation_adjudication AS ruling ON ruling.id = again.adjudication_id
    JOIN annotation_task AS task ON task.id = ruling.task_id
    JOIN annotation_item AS item ON item.id = task.item_id
    LEFT JOIN annotation_choice AS choice ON choice.question_id = again.question_id AND choice.value = %(choice)s
    WHERE again.token = %(token)s
"""
_REPEAT_BLIND = """
    UPDATE annotation_repeat SET blind_choice_id = %(choice)s, blind_tags = %(tags)s, blind_at = clock_timestamp()
    WHERE id = %(repeat)s AND blind_at IS NULL RETURNING id
"""
_REPEAT_RULE = """
    UPDATE annotation_repeat SET choice_id = %(choice)s, tags = %(tags)s, reason = %(reason)s, note = %(note)s, ruled_at = clock_timestamp()
    WHERE id = %(repeat)s AND ruled_at IS NULL RETURNING id
"""
_GIVE_BACK_REPEAT = """
    UPDATE annotation_repeat SET expires_at = now() WHERE token = %(token)s AND member_id = %(member)s AND ruled_at IS NULL RETURNING id
"""
_STANDS = """
    SELECT choice.value FROM (
        SELECT choice_id FROM annotation_adjudication WHERE token = %(token)s AND member_id = %(member)s
        UNION ALL SELECT choice_id FROM annotation_repeat WHERE token = %(token)s AND member_id = %(member)s
    ) AS ruled JOIN annotation_choice AS choice ON choice.id = ruled.choice_id
"""
