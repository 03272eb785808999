"""The queue: lease, cast, settle, adjudicate. Every function here is one transaction.

Ten invariants (SPEC section 2) hold under any concurrency, crash or retry. How:

* A slot. `task.vote_count + task.lease_count <= votes_required` is a CHECK of the database; both counts change only here,
  in the statement that adds or removes the vote or lease, under the task's row lock.
* Order of locks: the member's Progress row, then the task. Whoever looks for work takes tasks with SKIP LOCKED and never
  waits. So two tabs of one person wait for each other, two people hardly ever do, and no cycle can form.
* A token. Each lease has one, and the vote keeps it (unique): the same token again finds the vote it made.
* Settling. The vote that completes a task settles it before it commits. Nothing sweeps afterwards.
* Expiry. A lease that ran out is found by the next person who asks for work; its slot is free from then on.

The next task in constant time, however much there is and however much someone has done: open tasks with a free slot form
two ends. *Started* ones (someone voted or abstained) come first, in the order in which they last came up (`queued_at`);
*fresh* ones follow by seeded `rank`. Fresh tasks are handed out in seeded order, so started ones come up in it too.
A member's `seen_until` says that every started task that came up before it is dealt with by them, or will be stamped anew:
whatever gives a started task a free slot (a vote that leaves it open, an abstention, a lease returned or run out, a re-opening)
sets `queued_at` to the clock. So a search begins there, and what the member did before is never read again.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from django.core.cache import cache
from django.db import connection, transaction
from psycopg.rows import DictRow, dict_row

from annotation.errors import Conflict, Forbidden, Invalid, Missing
from annotation.models import (
    AbstainReason,
    Adjudication,
    FlagReason,
    Guideline,
    Membership,
    Policy,
    Question,
    Role,
    RulingReason,
    Source,
    TagUse,
    TaskState,
)
from annotation.resolution import Agreed, Ballot, resolve

ABSTENTIONS_TO_DISPUTE = 3
REVISABLE_AFTER_SETTLING = timedelta(seconds=60)
AHEAD = 2  # the task on screen and the one after it
# Transactions here last milliseconds. A stamp younger than this may belong to one that is not visible yet.
SETTLING_IN = timedelta(seconds=2)
RESCAN_EVERY = timedelta(seconds=30)


# ---------------------------------------------------------------- what callers get
@dataclass(frozen=True)
class Work:
    """A task that the member holds, with what they may see of it. `origin_text` only where the question shows it."""

    task_id: int
    token: uuid.UUID
    item_id: int
    kind: str
    text: str | None
    origin_text: str | None
    expires_at: datetime
    guideline_version: int


@dataclass(frozen=True)
class Receipt:
    """An acknowledged vote, and what the member holds now: the task to show and the one after it."""

    vote_id: int
    choice: str
    work: list[Work]


@dataclass(frozen=True)
class Answer:
    """One of a member's own last answers; `label` is the choice's or the abstention reason's."""

    kind: str  # "vote" or "abstention"
    id: int
    task_id: int
    item_id: int
    project_slug: str
    question_slug: str
    question_title: str
    choice: str
    label: str
    tags: list[str]
    comment: str
    at: datetime
    changeable: bool


@dataclass(frozen=True)
class OwnVote:
    """A vote of one's own with its item, to open it again."""

    vote_id: int
    task_id: int
    item_id: int
    kind: str
    text: str | None
    origin_text: str | None
    choice: str
    tags: list[str]
    comment: str


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
    """A disputed task that the adjudicator holds. `votes` is None until they have ruled blind."""

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


# ---------------------------------------------------------------- the annotator
@transaction.atomic
def next_work(member: Membership, question: Question) -> list[Work]:
    """What the member holds of this question, topped up to two tasks: the current one and the next. Empty: nothing waits.

    Raises Forbidden for a role that does not vote.
    """
    _require_voter(member)
    if not question.active:
        return []
    progress = _lock_progress(member.pk, question.pk)
    return _top_up(member.pk, question.pk, progress)


@transaction.atomic
def under_guideline(member: Membership, guideline: Guideline) -> None:
    """What the member holds of its question is from now on answered under this version: for a page that shows it to them."""
    _lock_progress(member.pk, guideline.question_id)
    _rows(_UNDER_GUIDELINE, member=member.pk, question=guideline.question_id, guideline=guideline.pk)


@transaction.atomic
def cast_vote(
    member: Membership, token: uuid.UUID, *, choice: str, tags: Sequence[str] = (), comment: str = "", elapsed_ms: int | None = None
) -> Receipt:
    """Take the member's answer for the task that this token holds, settle the task if that completes it, and lease the next.

    The same token again returns the same vote and changes nothing. A vote after its lease ran out is taken while the
    slot is free. Raises Conflict (lease_expired, settled), Missing (no_lease), Invalid (choice, tags, comment).
    """
    _require_voter(member)
    if len(comment) > 2000:
        raise Invalid("A comment has at most 2,000 characters.", fields={"comment": f"{len(comment):,} characters."})
    progress = _one(_LOCK_HELD, token=token, member=member.pk, kind="vote")
    held = _one(_READ_HELD, token=token, member=member.pk, choice=choice) if progress else None
    if progress is None or held is None:
        return _receipt_of_earlier(member, token)
    _check_answer(held, choice, tags)
    _check_still_votable(held)
    complete = held["vote_count"] + 1 == held["votes_required"]
    vote = _the(
        _CAST, task=held["task_id"], question=held["question_id"], member=member.pk, round=held["round"],
        choice=held["choice_id"], tags=sorted(set(tags)), comment=comment, guideline=held["guideline_id"], token=token,
        elapsed=None if elapsed_ms is None else max(0, min(elapsed_ms, 2**31 - 1)), complete=complete,
    )  # fmt: skip
    if complete:
        _settle(held["task_id"])
    work = _top_up(member.pk, held["question_id"], progress, voted=1)
    return Receipt(vote["id"], choice, work)


@transaction.atomic
def abstain(member: Membership, token: uuid.UUID, reason: str) -> list[Work]:
    """Give the slot back with a reason; the member does not see this task again in this round. Returns what they hold now.

    The third abstention sends the task to an adjudicator. Raises Invalid (reason), Missing (no_lease), Conflict (voted).
    """
    _require_voter(member)
    if reason not in AbstainReason.values:
        raise Invalid("Say why you abstain.", fields={"reason": f"One of: {', '.join(AbstainReason.values)}."})
    progress = _one(_LOCK_HELD, token=token, member=member.pk, kind="vote")
    held = _one(_READ_HELD, token=token, member=member.pk, choice="") if progress else None
    if progress is None or held is None:
        earlier = _one(
            "SELECT question_id FROM annotation_abstention WHERE token = %(token)s AND member_id = %(member)s",
            token=token, member=member.pk,
        )  # fmt: skip
        if earlier is None:
            raise _no_lease(member, token)
        return _top_up(member.pk, earlier["question_id"], _lock_progress(member.pk, earlier["question_id"]))
    _check_still_votable(held)
    _rows(_ABSTAIN, task=held["task_id"], question=held["question_id"], member=member.pk, round=held["round"], reason=reason, token=token)
    if held["abstention_count"] + 1 >= ABSTENTIONS_TO_DISPUTE:
        _drop_leases(held["task_id"])
        _rows(_DISPUTED, task=held["task_id"])
    return _top_up(member.pk, held["question_id"], progress)


@transaction.atomic
def release(member: Membership, question: Question | None = None) -> int:
    """Give back every task the member holds (of one question, or all); returns how many. Disputes they hold too."""
    arguments = {"member": member.pk, "question": question and question.pk}
    _rows(_LOCK_ALL_PROGRESS, **arguments)
    tasks = _rows(
        """
        SELECT task.id FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id
        WHERE lease.member_id = %(member)s AND NOT lease.lapsed AND (%(question)s::bigint IS NULL OR lease.question_id = %(question)s)
        ORDER BY task.id FOR UPDATE OF task
        """,
        **arguments,
    )
    gone = _rows(_RELEASE, member=member.pk, tasks=[row["id"] for row in tasks])
    return len(gone)


@transaction.atomic
def flag(member: Membership, task_id: int, reason: str, note: str = "") -> None:
    """Mark a task for the researchers. "Possibly illegal" quarantines its item at once: no task of it is shown to anyone.

    The member must hold the task or have answered it. Flagging twice for the same reason changes nothing.
    """
    if reason not in FlagReason.values:
        raise Invalid("Say what is wrong.", fields={"reason": f"One of: {', '.join(FlagReason.values)}."})
    if len(note) > 500:
        raise Invalid("A note has at most 500 characters.", fields={"note": f"{len(note):,} characters."})
    seen = _one(_HAS_SEEN, task=task_id, member=member.pk)
    if seen is None:
        raise Missing("You do not hold this task and have not answered it.")
    _rows(
        """
        INSERT INTO annotation_flag (task_id, member_id, reason, note, created_at)
        VALUES (%(task)s, %(member)s, %(reason)s, %(note)s, now())
        ON CONFLICT (task_id, member_id, reason) DO NOTHING RETURNING id
        """,
        task=task_id, member=member.pk, reason=reason, note=note,
    )  # fmt: skip
    if reason == FlagReason.ILLEGAL:
        _quarantine(seen["item_id"])


@transaction.atomic
def revise_vote(member: Membership, vote_id: int, *, choice: str, tags: Sequence[str] = (), comment: str = "") -> None:
    """Change one's own vote while its task is open, or the vote that settled it within 60 seconds, unless an adjudicator has it.

    The earlier version is kept. Raises Missing, Conflict (closed) and Invalid.
    """
    if len(comment) > 2000:
        raise Invalid("A comment has at most 2,000 characters.", fields={"comment": f"{len(comment):,} characters."})
    found = _one(
        "SELECT task_id, question_id FROM annotation_vote WHERE id = %(vote)s AND member_id = %(member)s", vote=vote_id, member=member.pk
    )
    if found is None:
        raise Missing("You have no such vote.")
    _lock_progress(member.pk, found["question_id"])
    _rows("SELECT id FROM annotation_task WHERE id = %(task)s FOR UPDATE", task=found["task_id"])
    vote = _the(_REVISABLE, vote=vote_id, member=member.pk, choice=choice, window=REVISABLE_AFTER_SETTLING)
    if not vote["changeable"]:
        raise Conflict("This answer is closed: the task is settled, or someone is ruling on it.", code="closed")
    _check_answer(vote, choice, tags)
    _rows(
        """
        UPDATE annotation_vote SET choice_id = %(choice)s, tags = %(tags)s, comment = %(comment)s, revised_at = clock_timestamp()
        WHERE id = %(vote)s AND (choice_id, tags, comment) IS DISTINCT FROM (%(choice)s, %(tags)s::varchar[], %(comment)s) RETURNING id
        """,
        choice=vote["choice_id"], tags=sorted(set(tags)), comment=comment, vote=vote_id,
    )  # fmt: skip
    if vote["state"] != TaskState.OPEN:
        _rows(_SUPERSEDE_TRUTH, task=vote["task_id"])
        _settle(vote["task_id"])


def last_answers(member: Membership, question: Question | None = None, limit: int = 10) -> list[Answer]:
    """The member's own votes and abstentions, newest first."""
    rows = _rows(_LAST_ANSWERS, member=member.pk, question=question and question.pk, limit=limit, window=REVISABLE_AFTER_SETTLING)
    reasons = {reason.value: str(reason.label) for reason in AbstainReason}
    return [Answer(**{**row, "label": row["label"] if row["kind"] == "vote" else reasons[row["label"]]}) for row in rows]


def own_vote(member: Membership, vote_id: int) -> OwnVote:
    """One's own vote with its item. Raises Missing for anyone else's."""
    row = _one(_OWN_VOTE, vote=vote_id, member=member.pk)
    if row is None:
        raise Missing("You have no such vote.")
    return OwnVote(**row)


def progress_of(member: Membership, question: Question) -> tuple[int, int]:
    """(votes on this question in all, votes today); read from one row however many there are."""
    row = _one(
        """
        SELECT votes, CASE WHEN day = current_date THEN votes_on_day ELSE 0 END AS today
        FROM annotation_progress WHERE member_id = %(member)s AND question_id = %(question)s
        """,
        member=member.pk, question=question.pk,
    )  # fmt: skip
    return (row["votes"], row["today"]) if row else (0, 0)


def settled_share(question: Question) -> float | None:
    """The share of the question's tasks that are settled, in [0, 1]; None without tasks.

    A minute old on purpose: read right after a vote it would tell the voter whether others agreed.
    """
    key = f"settled:{question.pk}"
    share: float | None = cache.get(key)
    if share is None:
        row = _the(
            """
            SELECT count(*) AS tasks, count(*) FILTER (WHERE state IN ('agreed', 'disputed', 'adjudicated')) AS settled
            FROM annotation_task WHERE question_id = %(question)s AND state <> 'retired'
            """,
            question=question.pk,
        )
        share = row["settled"] / row["tasks"] if row["tasks"] else -1.0
        cache.set(key, share, 60)
    return None if share < 0 else share


# ---------------------------------------------------------------- the adjudicator
@transaction.atomic
def next_dispute(member: Membership, question: Question) -> Dispute | None:
    """The dispute that the member holds, else the oldest one that they may rule on, now held by them. None: none waits.

    Nobody rules on a task they voted on. Raises Forbidden for annotators.
    """
    _require_adjudicator(member)
    # Serialises one person's tabs; disputes of different people meet only in SKIP LOCKED.
    _lock_progress(member.pk, question.pk)
    _rows(_LAPSE_RULINGS, question=question.pk)
    held = _one(_HELD_DISPUTE, member=member.pk, question=question.pk) or _lease_dispute(member, question)
    if held is None:
        return None
    _rows(_SEEN_VOTES, member=member.pk, token=held["token"], blind=member.role != Role.RESEARCHER)
    return _dispute(member, held["token"])


@transaction.atomic
def rule_blind(member: Membership, token: uuid.UUID, *, choice: str, tags: Sequence[str] = ()) -> Dispute:
    """Record the ruling made before the votes were seen, and open them. A second blind ruling changes nothing: the first stays.

    Raises Missing (no_lease), Conflict (settled, lease_expired), Invalid.
    """
    held = _hold_dispute(member, token, choice)
    _check_answer(held, choice, tags)
    _rows(
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
    if len(note) > 2000:
        raise Invalid("A note has at most 2,000 characters.", fields={"note": f"{len(note):,} characters."})
    _rows(_LOCK_HELD, token=token, member=member.pk, kind="ruling")  # a double click waits here for what came first
    if Adjudication.objects.filter(token=token, member=member, choice__isnull=False).exists():
        return
    held = _hold_dispute(member, token, choice)
    _check_answer(held, choice, tags)
    if held["blind_ruling"] and held["adjudication_id"] is None:
        raise Conflict("Rule blind first; then the votes open.", code="blind_first")
    _rows(
        _RULE, task=held["task_id"], question=held["question_id"], member=member.pk, round=held["round"], guideline=held["guideline_id"],
        token=token, choice=held["choice_id"], tags=sorted(set(tags)), reason=reason, note=note, blind=member.role != Role.RESEARCHER,
        lease=held["lease_id"],
    )  # fmt: skip
    _set_truth(
        held["task_id"], choice=held["choice_id"], tags=sorted(set(tags)), unsettled=False, source=Source.ADJUDICATED,
        member=member.pk, guideline=held["guideline_id"],
    )  # fmt: skip


@transaction.atomic
def give_back(member: Membership, token: uuid.UUID) -> None:
    """Return a dispute to the queue. A blind ruling already made stays on record. Unknown or used tokens change nothing."""
    _rows(_LOCK_HELD, token=token, member=member.pk, kind="ruling")
    _rows(
        "DELETE FROM annotation_lease WHERE token = %(token)s AND member_id = %(member)s AND kind = 'ruling' RETURNING id",
        token=token, member=member.pk,
    )  # fmt: skip


def dispute_counts(question: Question) -> tuple[int, int]:
    """(disputes waiting, disputes ruled on) of a question."""
    row = _the(
        """
        SELECT (SELECT count(*) FROM annotation_task WHERE question_id = %(question)s AND state = 'disputed') AS waiting,
               (SELECT count(*) FROM annotation_task WHERE question_id = %(question)s AND state = 'adjudicated') AS ruled
        """,
        question=question.pk,
    )
    return row["waiting"], row["ruled"]


# ---------------------------------------------------------------- holding and leasing
def _top_up(member_id: int, question_id: int, progress: DictRow, *, voted: int = 0) -> list[Work]:
    """Lease until the member holds AHEAD tasks, and note in their progress what that taught us."""
    work = [Work(**row) for row in _rows(_HELD, member=member_id, question=question_id)]
    seen, rescanned = progress["seen_until"], None
    while len(work) < AHEAD:
        found = _lease_one(member_id, question_id, seen)
        if found["token"] is None and seen is not None and rescanned is None and _rescan_due(progress):
            # Nothing from the mark on. Once in a while look from the beginning, in case anything was ever passed over.
            seen, rescanned = None, progress["now"]
            continue
        seen = found.pop("seen_until")
        del found["someone_late"]
        if found["token"] is None:
            break
        work.append(Work(**found))
    if voted or rescanned or seen != progress["seen_until"]:
        _rows(_NOTE_PROGRESS, progress=progress["id"], voted=voted, seen=seen, rescanned=rescanned)
    return work


def _rescan_due(progress: Mapping[str, Any]) -> bool:
    last = progress["rescanned_at"]
    return last is None or progress["now"] - last > RESCAN_EVERY


def _lease_one(member_id: int, question_id: int, seen_until: datetime | None) -> DictRow:
    """Lease the next task for this member. The row's `token` is None when there is none; `seen_until` is their new mark."""
    arguments = {
        "member": member_id, "question": question_id, "seen": seen_until or datetime.min.replace(tzinfo=UTC),
        "token": uuid.uuid4(), "margin": SETTLING_IN,
    }  # fmt: skip
    found = _the(_LEASE_ONE, **arguments)
    if found["someone_late"]:
        _rows(_LAPSE, question=question_id)
        if found["token"] is None:  # what was just freed may be what this member needs
            found = _the(_LEASE_ONE, **arguments)
    return found


def _lock_progress(member_id: int, question_id: int) -> DictRow:
    """The member's Progress row, locked: their requests on one question go one after the other."""
    arguments = {"member": member_id, "question": question_id}
    found = _one(_LOCK_PROGRESS, **arguments)
    if found is None:
        _rows(
            """
            INSERT INTO annotation_progress (question_id, member_id, votes, votes_on_day) VALUES (%(question)s, %(member)s, 0, 0)
            ON CONFLICT (question_id, member_id) DO NOTHING RETURNING id
            """,
            **arguments,
        )
        found = _the(_LOCK_PROGRESS, **arguments)
    return found


# ---------------------------------------------------------------- checks
def _require_voter(member: Membership) -> None:
    if not member.active or member.role not in (Role.ANNOTATOR, Role.ADJUDICATOR):
        raise Forbidden("Only annotators and adjudicators vote: a researcher sees scores and other people's votes.")


def _require_adjudicator(member: Membership) -> None:
    if not member.active or member.role not in (Role.ADJUDICATOR, Role.RESEARCHER):
        raise Forbidden("Only adjudicators and researchers rule on disputes.")


def _check_answer(asked: Mapping[str, Any], choice: str, tags: Sequence[str]) -> None:
    """Whether this choice with these tags is one that the question offers."""
    if asked["choice_id"] is None:
        raise Invalid(f"“{choice[:40]}” is not one of this question's choices.", fields={"choice": "Choose one of the choices shown."})
    unknown = sorted(set(tags) - set(asked["allowed_tags"]))
    if tags and asked["tag_use"] == TagUse.NONE:
        raise Invalid("This choice takes no tags.", fields={"tags": "Leave the tags out."})
    if unknown:
        raise Invalid(f"Unknown tags: {', '.join(unknown)}.", fields={"tags": f"One or more of: {', '.join(asked['allowed_tags'])}."})
    if not tags and asked["tag_use"] == TagUse.REQUIRED:
        raise Invalid("This choice needs at least one tag.", fields={"tags": "Choose at least one."})


def _check_still_votable(held: DictRow) -> None:
    """Whether a vote of this holder fits: the round goes on, they have not answered it, and a slot is theirs or free."""
    if held["voted"] or held["abstained"]:
        raise Conflict("You have already answered this task.", code="answered")
    if held["state"] != TaskState.OPEN or held["round"] != held["task_round"]:
        raise Conflict("This task was settled or withdrawn while you held it. Your answer is not needed any more.", code="settled")
    if held["vote_count"] + held["lease_count"] - held["mine_live"] >= held["votes_required"]:
        freed = _rows(_LAPSE_ON_TASK, task=held["task_id"])
        if not freed:
            raise Conflict("Your hold on this task ran out, and others have answered it since.", code="lease_expired")


def _receipt_of_earlier(member: Membership, token: uuid.UUID) -> Receipt:
    """The answer to a vote that is sent again."""
    vote = _one(
        """
        SELECT vote.id, vote.question_id, choice.value
        FROM annotation_vote AS vote JOIN annotation_choice AS choice ON choice.id = vote.choice_id
        WHERE vote.token = %(token)s AND vote.member_id = %(member)s
        """,
        token=token, member=member.pk,
    )  # fmt: skip
    if vote is None:
        raise _no_lease(member, token)
    progress = _lock_progress(member.pk, vote["question_id"])
    return Receipt(vote["id"], vote["value"], _top_up(member.pk, vote["question_id"], progress))


def _no_lease(member: Membership, token: uuid.UUID) -> Conflict | Missing:
    answered = _one(
        """
        SELECT id FROM annotation_vote WHERE token = %(token)s AND member_id = %(member)s
        UNION ALL SELECT id FROM annotation_abstention WHERE token = %(token)s AND member_id = %(member)s
        """,
        token=token, member=member.pk,
    )  # fmt: skip
    if answered:
        return Conflict("You have already answered this task.", code="answered")
    return Missing("You do not hold this task any more. It went back to the queue.", code="no_lease")


# ---------------------------------------------------------------- settling
def _settle(task_id: int) -> None:
    """Resolve a complete set of votes, under the task's lock and in the transaction of the vote that completed or changed it."""
    votes = _rows(_BALLOTS, task=task_id)
    policy: Policy = votes[0]["policy"]
    agreed = resolve(policy, [Ballot(vote["value"], frozenset(vote["tags"])) for vote in votes])
    if agreed is None:
        _rows(_DISPUTED, task=task_id)
        return
    _set_truth(task_id, member=votes[-1]["member_id"], **_truth_of(agreed, votes))


def _truth_of(agreed: Agreed, votes: Sequence[DictRow]) -> dict[str, Any]:
    winner = next(vote for vote in votes if vote["value"] == agreed.choice)
    return {
        "choice": winner["choice_id"],
        "tags": list(agreed.tags),
        "unsettled": winner["tag_use"] == TagUse.REQUIRED and not agreed.tags,
        "source": Source(agreed.source),
        # The newest version that a vote of this settlement was cast under.
        "guideline": max((vote["guideline_id"] for vote in votes if vote["guideline_id"] is not None), default=None),
    }


def _set_truth(task_id: int, **truth: Any) -> None:
    """Make this the task's ground truth, and the task agreed, or adjudicated where an adjudicator says so."""
    state = TaskState.ADJUDICATED if truth["source"] == Source.ADJUDICATED else TaskState.AGREED
    _rows(_SET_TRUTH, task=task_id, state=state.value, **{**truth, "source": truth["source"].value})


def _quarantine(item_id: int) -> None:
    """Take an item out of everyone's sight: no task of it is open or held any more."""
    tasks = [row["id"] for row in _rows("SELECT id FROM annotation_task WHERE item_id = %(item)s ORDER BY id FOR UPDATE", item=item_id)]
    for task in tasks:
        _drop_leases(task)
    _rows(
        "UPDATE annotation_task SET state = 'retired' WHERE id = ANY(%(tasks)s) AND state IN ('open', 'disputed') RETURNING id", tasks=tasks
    )
    _rows("UPDATE annotation_item SET quarantined = true WHERE id = %(item)s RETURNING id", item=item_id)


def _drop_leases(task_id: int) -> None:
    """Let every lease on a locked task lapse, rulings too."""
    _rows("UPDATE annotation_lease SET lapsed = true WHERE task_id = %(task)s AND NOT lapsed RETURNING id", task=task_id)
    _rows("UPDATE annotation_task SET lease_count = 0 WHERE id = %(task)s RETURNING id", task=task_id)


# ---------------------------------------------------------------- disputes
def _lease_dispute(member: Membership, question: Question) -> DictRow | None:
    """Lease the oldest dispute that nobody holds. One that somebody took between the look and the lock comes without a token."""
    while True:
        found = _one(_LEASE_DISPUTE, member=member.pk, question=question.pk, token=uuid.uuid4())
        if found is None or found["token"] is not None:
            return found


def _hold_dispute(member: Membership, token: uuid.UUID, choice: str) -> DictRow:
    """The dispute that this token holds, its task locked, with what a ruling of `choice` needs to know."""
    _require_adjudicator(member)
    _rows(_LOCK_HELD, token=token, member=member.pk, kind="ruling")
    held = _one(_READ_DISPUTE, token=token, member=member.pk, choice=choice)
    if held is None:
        raise Missing("You do not hold this dispute any more. It went back to the queue.", code="no_lease")
    if held["state"] != TaskState.DISPUTED or held["round"] != held["task_round"]:
        raise Conflict("This dispute was settled while you held it.", code="settled")
    if held["voted"]:
        raise Forbidden("You voted on this task: someone else rules on it.")
    if held["lapsed"] and not _one(_REVIVE_RULING, lease=held["lease_id"], task=held["task_id"]):
        raise Conflict("Your hold on this dispute ran out, and someone else has it now.", code="lease_expired")
    return held


def _dispute(member: Membership, token: uuid.UUID) -> Dispute:
    row = _the(_DISPUTE, token=token, member=member.pk)
    open_votes = row.pop("blind_ruling") is False or row["blind_at"] is not None
    votes = None
    if open_votes:
        cast = _rows(_DISPUTE_VOTES, task=row["task_id"])
        votes = [AnonymousVote(letter=letter(place), **vote) for place, vote in enumerate(cast)]
    return Dispute(**row, votes=votes)


def letter(place: int) -> str:
    """A to Z, then A2 to Z2 and so on."""
    turn, letter = divmod(place, 26)
    return chr(ord("A") + letter) + (str(turn + 1) if turn else "")


# ---------------------------------------------------------------- SQL
def _rows(sql: str, **parameters: Any) -> list[DictRow]:
    """Run one statement on Django's connection, prepared: planning the lease anew each time would cost more than running it."""
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    with psycopg.Cursor(raw, row_factory=dict_row) as cursor:
        return cursor.execute(sql, parameters, prepare=True).fetchall()


def _one(sql: str, **parameters: Any) -> DictRow | None:
    rows = _rows(sql, **parameters)
    return rows[0] if rows else None


def _the(sql: str, **parameters: Any) -> DictRow:
    """The one row of a statement that always has one."""
    (row,) = _rows(sql, **parameters)
    return row


# What a member sees of a task or a dispute they hold.
_WORK = """
    task.id AS task_id, lease.token, item.id AS item_id, item.kind, item.text, lease.expires_at, guideline.version AS guideline_version,
    CASE WHEN question.shows_origin THEN origin.text END AS origin_text
"""
_WORK_JOINS = """
    JOIN annotation_item AS item ON item.id = task.item_id
    JOIN annotation_question AS question ON question.id = task.question_id
    JOIN annotation_guideline AS guideline ON guideline.id = lease.guideline_id
    LEFT JOIN annotation_item AS origin ON origin.id = item.origin_id AND NOT origin.quarantined
"""

_UNDER_GUIDELINE = """
    UPDATE annotation_lease SET guideline_id = %(guideline)s
    WHERE member_id = %(member)s AND question_id = %(question)s AND NOT lapsed AND expires_at > now() AND guideline_id <> %(guideline)s
    RETURNING id
"""

# In the order they were leased: the one on screen, then the one after it.
_HELD = f"""
    SELECT {_WORK} FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id {_WORK_JOINS}
    WHERE lease.member_id = %(member)s AND lease.question_id = %(question)s AND lease.kind = 'vote'
      AND NOT lease.lapsed AND lease.expires_at > now()
    ORDER BY lease.leased_at, lease.id
"""  # noqa: S608 - our own words

# Of a question on offer, with something to show, open, with a free slot, and not yet dealt with by this member. Whoever
# ruled on it or has seen its votes is barred in every round.
_FREE_FOR_MEMBER = """
    task.question_id = %(question)s AND task.state = 'open' AND task.vote_count < task.votes_required - task.lease_count
    AND (SELECT question.active FROM annotation_question AS question WHERE question.id = %(question)s)
    AND EXISTS (SELECT FROM annotation_guideline AS guideline WHERE guideline.question_id = %(question)s)
    AND EXISTS (SELECT FROM annotation_item AS item
                WHERE item.id = task.item_id AND NOT item.quarantined AND (item.kind = 'text' OR item.media_hash IS NOT NULL))
    AND NOT EXISTS (SELECT FROM annotation_vote AS vote
                    WHERE vote.task_id = task.id AND vote.round = task.round AND vote.member_id = %(member)s)
    AND NOT EXISTS (SELECT FROM annotation_lease AS mine
                    WHERE mine.task_id = task.id AND mine.member_id = %(member)s AND NOT mine.lapsed)
    AND NOT EXISTS (SELECT FROM annotation_abstention AS abstention
                    WHERE abstention.task_id = task.id AND abstention.round = task.round AND abstention.member_id = %(member)s)
    AND NOT EXISTS (SELECT FROM annotation_adjudication AS ruling
                    WHERE ruling.task_id = task.id AND ruling.member_id = %(member)s)
"""

# One statement: find, lock, count and lease. `fresh` is only looked at when nothing is started (a one-time filter).
_LEASE_ONE = f"""
    WITH started AS MATERIALIZED (
        SELECT task.id, task.queued_at FROM annotation_task AS task
        WHERE {_FREE_FOR_MEMBER} AND task.queued_at IS NOT NULL AND task.queued_at >= %(seen)s
        ORDER BY task.queued_at, task.id LIMIT 1 FOR UPDATE OF task SKIP LOCKED
    ), fresh AS MATERIALIZED (
        SELECT task.id FROM annotation_task AS task
        WHERE NOT EXISTS (SELECT FROM started) AND {_FREE_FOR_MEMBER} AND task.queued_at IS NULL
        ORDER BY task.rank, task.id LIMIT 1 FOR UPDATE OF task SKIP LOCKED
    ), task AS (
        UPDATE annotation_task AS chosen SET lease_count = chosen.lease_count + 1
        WHERE chosen.id = coalesce((SELECT id FROM started), (SELECT id FROM fresh))
        RETURNING chosen.id, chosen.item_id, chosen.question_id, chosen.round
    ), lease AS (
        INSERT INTO annotation_lease (task_id, question_id, member_id, kind, round, guideline_id, token, leased_at, expires_at, lapsed)
        SELECT task.id, task.question_id, %(member)s, 'vote', task.round, guideline.id, %(token)s, clock_timestamp(),
               now() + question.lease_minutes * interval '1 minute', false
        FROM task
        JOIN annotation_question AS question ON question.id = task.question_id
        JOIN LATERAL (
            SELECT id FROM annotation_guideline WHERE question_id = task.question_id ORDER BY version DESC LIMIT 1
        ) AS guideline ON true
        RETURNING task_id, token, guideline_id, expires_at
    )
    SELECT work.*,
           least(coalesce((SELECT queued_at FROM started), 'infinity'), statement_timestamp() - %(margin)s) AS seen_until,
           EXISTS (
               SELECT FROM annotation_lease AS late
               WHERE late.question_id = %(question)s AND late.kind = 'vote' AND NOT late.lapsed AND late.expires_at <= now()
           ) AS someone_late
    FROM (SELECT) AS always LEFT JOIN (SELECT {_WORK} FROM lease JOIN task ON task.id = lease.task_id {_WORK_JOINS}) AS work ON true
"""  # noqa: S608 - our own words

# Leases that ran out give their slots back. A started task comes up anew; a fresh one never left its place.
_LAPSE = """
    WITH late AS MATERIALIZED (
        SELECT task.id FROM annotation_task AS task
        WHERE task.id IN (
            SELECT lease.task_id FROM annotation_lease AS lease
            WHERE lease.question_id = %(question)s AND lease.kind = 'vote' AND NOT lease.lapsed AND lease.expires_at <= now()
            ORDER BY lease.expires_at LIMIT 100
        )
        ORDER BY task.id FOR UPDATE OF task SKIP LOCKED
    ), gone AS (
        UPDATE annotation_lease AS lease SET lapsed = true FROM late
        WHERE lease.task_id = late.id AND lease.kind = 'vote' AND NOT lease.lapsed AND lease.expires_at <= now() RETURNING lease.task_id
    )
    UPDATE annotation_task AS task SET
        lease_count = task.lease_count - freed.slots, queued_at = CASE WHEN task.queued_at IS NOT NULL THEN clock_timestamp() END
    FROM (SELECT task_id, count(*) AS slots FROM gone GROUP BY task_id) AS freed WHERE task.id = freed.task_id RETURNING task.id
"""
_LAPSE_ON_TASK = """
    WITH gone AS (
        UPDATE annotation_lease SET lapsed = true
        WHERE task_id = %(task)s AND kind = 'vote' AND NOT lapsed AND expires_at <= now() RETURNING task_id
    )
    UPDATE annotation_task AS task SET lease_count = task.lease_count - freed.slots
    FROM (SELECT task_id, count(*) AS slots FROM gone GROUP BY task_id) AS freed WHERE task.id = freed.task_id RETURNING task.id
"""

_LOCK_PROGRESS = """
    SELECT id, seen_until, rescanned_at, now() AS now FROM annotation_progress
    WHERE member_id = %(member)s AND question_id = %(question)s FOR UPDATE
"""
_LOCK_ALL_PROGRESS = """
    SELECT id FROM annotation_progress
    WHERE member_id = %(member)s AND (%(question)s::bigint IS NULL OR question_id = %(question)s) ORDER BY id FOR UPDATE
"""
# Both locks in their order: the inner query is run, and its row locked, before the outer row is.
_LOCK_HELD = """
    WITH progress AS MATERIALIZED (
        SELECT progress.id, progress.seen_until, progress.rescanned_at, now() AS now, lease.task_id
        FROM annotation_lease AS lease
        JOIN annotation_progress AS progress ON progress.member_id = lease.member_id AND progress.question_id = lease.question_id
        WHERE lease.token = %(token)s AND lease.member_id = %(member)s AND lease.kind = %(kind)s FOR UPDATE OF progress
    )
    SELECT progress.* FROM progress JOIN annotation_task AS task ON task.id = progress.task_id FOR UPDATE OF task
"""
# Read after the locks are held, so that nothing here is from before another's commit.
_READ_HELD = """
    SELECT lease.round, lease.guideline_id, task.id AS task_id, task.question_id, task.state, task.round AS task_round,
           task.vote_count, task.lease_count, task.votes_required, task.abstention_count,
           choice.id AS choice_id, choice.tag_use,
           ARRAY(SELECT value::text FROM annotation_tag WHERE question_id = task.question_id ORDER BY position) AS allowed_tags,
           (SELECT count(*) FROM annotation_lease AS mine
            WHERE mine.task_id = task.id AND mine.member_id = lease.member_id AND NOT mine.lapsed) AS mine_live,
           EXISTS (SELECT FROM annotation_vote AS vote
                   WHERE vote.task_id = task.id AND vote.round = lease.round AND vote.member_id = lease.member_id) AS voted,
           EXISTS (SELECT FROM annotation_abstention AS given
                   WHERE given.task_id = task.id AND given.round = lease.round AND given.member_id = lease.member_id) AS abstained
    FROM annotation_lease AS lease
    JOIN annotation_task AS task ON task.id = lease.task_id
    LEFT JOIN annotation_choice AS choice ON choice.question_id = task.question_id AND choice.value = %(choice)s
    WHERE lease.token = %(token)s AND lease.member_id = %(member)s
"""

# Every lease this member has on the task goes, lapsed ones too; the slots that live ones held are counted back.
_CAST = """
    WITH gone AS (
        DELETE FROM annotation_lease WHERE task_id = %(task)s AND member_id = %(member)s RETURNING lapsed
    ), vote AS (
        INSERT INTO annotation_vote
            (task_id, question_id, member_id, round, choice_id, tags, comment, guideline_id, token, elapsed_ms, created_at)
        VALUES (%(task)s, %(question)s, %(member)s, %(round)s, %(choice)s, %(tags)s, %(comment)s, %(guideline)s, %(token)s, %(elapsed)s,
                clock_timestamp())
        RETURNING id
    )
    UPDATE annotation_task AS task SET
        vote_count = task.vote_count + 1,
        lease_count = task.lease_count - (SELECT count(*) FROM gone WHERE NOT lapsed),
        queued_at = CASE WHEN %(complete)s THEN task.queued_at ELSE clock_timestamp() END
    FROM vote WHERE task.id = %(task)s RETURNING vote.id
"""
_ABSTAIN = """
    WITH gone AS (
        DELETE FROM annotation_lease WHERE task_id = %(task)s AND member_id = %(member)s RETURNING lapsed
    ), abstention AS (
        INSERT INTO annotation_abstention (task_id, question_id, member_id, round, reason, token, created_at)
        VALUES (%(task)s, %(question)s, %(member)s, %(round)s, %(reason)s, %(token)s, clock_timestamp()) RETURNING id
    )
    UPDATE annotation_task AS task SET
        abstention_count = task.abstention_count + 1,
        lease_count = task.lease_count - (SELECT count(*) FROM gone WHERE NOT lapsed),
        queued_at = clock_timestamp()
    FROM abstention WHERE task.id = %(task)s RETURNING task.abstention_count
"""
_RELEASE = """
    WITH gone AS (
        DELETE FROM annotation_lease WHERE member_id = %(member)s AND task_id = ANY(%(tasks)s) AND NOT lapsed RETURNING task_id, kind
    )
    UPDATE annotation_task AS task SET
        lease_count = task.lease_count - (gone.kind = 'vote')::int,
        queued_at = CASE WHEN task.queued_at IS NOT NULL THEN clock_timestamp() END
    FROM gone WHERE task.id = gone.task_id RETURNING task.id
"""
_NOTE_PROGRESS = """
    UPDATE annotation_progress SET
        seen_until = %(seen)s, rescanned_at = coalesce(%(rescanned)s::timestamptz, rescanned_at), votes = votes + %(voted)s,
        votes_on_day = CASE WHEN day = current_date THEN votes_on_day ELSE 0 END + %(voted)s, day = current_date
    WHERE id = %(progress)s RETURNING id
"""

_BALLOTS = """
    SELECT choice.value, vote.choice_id, choice.tag_use, vote.tags, vote.member_id, vote.guideline_id, question.policy
    FROM annotation_task AS task
    JOIN annotation_question AS question ON question.id = task.question_id
    JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
    JOIN annotation_choice AS choice ON choice.id = vote.choice_id
    WHERE task.id = %(task)s ORDER BY vote.id
"""
_DISPUTED = """
    UPDATE annotation_task SET state = 'disputed', settled_at = coalesce(settled_at, clock_timestamp()) WHERE id = %(task)s RETURNING id
"""
_SUPERSEDE_TRUTH = """
    UPDATE annotation_groundtruth SET superseded_at = clock_timestamp() WHERE task_id = %(task)s AND superseded_at IS NULL RETURNING id
"""
_SET_TRUTH = """
    WITH task AS (
        UPDATE annotation_task SET state = %(state)s, settled_at = coalesce(settled_at, clock_timestamp())
        WHERE id = %(task)s RETURNING id, question_id, item_id, round
    )
    INSERT INTO annotation_groundtruth
        (task_id, question_id, item_id, round, choice_id, tags, tags_unsettled, source, member_id, guideline_id, created_at)
    SELECT id, question_id, item_id, round, %(choice)s, %(tags)s, %(unsettled)s, %(source)s, %(member)s, %(guideline)s, clock_timestamp()
    FROM task
    RETURNING id
"""

# While the task is open in the same round; or, for the vote that settled it, a short while longer unless somebody rules on it.
_CHANGEABLE = """
    vote.round = task.round AND (
        task.state = 'open'
        OR task.state IN ('agreed', 'disputed') AND task.vote_count = task.votes_required
           AND task.settled_at > clock_timestamp() - %(window)s::interval
           AND vote.id = (SELECT max(last.id) FROM annotation_vote AS last WHERE last.task_id = task.id AND last.round = task.round)
           AND NOT EXISTS (SELECT FROM annotation_lease AS ruling
                           WHERE ruling.task_id = task.id AND ruling.kind = 'ruling' AND NOT ruling.lapsed)
           AND NOT EXISTS (SELECT FROM annotation_adjudication AS ruling WHERE ruling.task_id = task.id AND ruling.round = task.round)
    )
"""
_REVISABLE = f"""
    SELECT {_CHANGEABLE} AS changeable, task.id AS task_id, task.state, choice.id AS choice_id, choice.tag_use,
           ARRAY(SELECT value::text FROM annotation_tag WHERE question_id = task.question_id ORDER BY position) AS allowed_tags
    FROM annotation_vote AS vote
    JOIN annotation_task AS task ON task.id = vote.task_id
    LEFT JOIN annotation_choice AS choice ON choice.question_id = task.question_id AND choice.value = %(choice)s
    WHERE vote.id = %(vote)s AND vote.member_id = %(member)s
"""  # noqa: S608 - our own words
# Question by question, so that each is a few rows from the end of an index, however many answers there are.
_LAST_ANSWERS = f"""
    SELECT answer.kind, answer.id, answer.task_id, answer.choice, answer.label, answer.tags, answer.comment, answer.at, answer.changeable,
           task.item_id, project.slug AS project_slug, question.slug AS question_slug, question.title AS question_title
    FROM annotation_progress AS mine
    JOIN LATERAL (
        (
            SELECT 'vote' AS kind, vote.id, vote.task_id, choice.value AS choice, choice.label, vote.tags, vote.comment,
                   vote.created_at AS at, {_CHANGEABLE} AS changeable
            FROM annotation_vote AS vote
            JOIN annotation_task AS task ON task.id = vote.task_id
            JOIN annotation_choice AS choice ON choice.id = vote.choice_id
            WHERE vote.member_id = mine.member_id AND vote.question_id = mine.question_id
            ORDER BY vote.created_at DESC LIMIT %(limit)s
        ) UNION ALL (
            SELECT 'abstention', id, task_id, '', reason, '{{}}', '', created_at, false
            FROM annotation_abstention
            WHERE member_id = mine.member_id AND question_id = mine.question_id
            ORDER BY created_at DESC LIMIT %(limit)s
        )
    ) AS answer ON true
    JOIN annotation_task AS task ON task.id = answer.task_id
    JOIN annotation_question AS question ON question.id = mine.question_id
    JOIN annotation_project AS project ON project.id = question.project_id
    WHERE mine.member_id = %(member)s AND (%(question)s::bigint IS NULL OR mine.question_id = %(question)s)
    ORDER BY answer.at DESC LIMIT %(limit)s
"""  # noqa: S608 - our own words
_OWN_VOTE = """
    SELECT vote.id AS vote_id, vote.task_id, item.id AS item_id, item.kind, item.text, choice.value AS choice, vote.tags, vote.comment,
           CASE WHEN question.shows_origin THEN origin.text END AS origin_text
    FROM annotation_vote AS vote
    JOIN annotation_task AS task ON task.id = vote.task_id
    JOIN annotation_item AS item ON item.id = task.item_id AND NOT item.quarantined
    JOIN annotation_question AS question ON question.id = task.question_id
    JOIN annotation_choice AS choice ON choice.id = vote.choice_id
    LEFT JOIN annotation_item AS origin ON origin.id = item.origin_id AND NOT origin.quarantined
    WHERE vote.id = %(vote)s AND vote.member_id = %(member)s
"""
_HAS_SEEN = """
    SELECT task.item_id FROM annotation_task AS task
    WHERE task.id = %(task)s AND (
        EXISTS (SELECT FROM annotation_lease AS lease WHERE lease.task_id = task.id AND lease.member_id = %(member)s)
        OR EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = %(member)s)
        OR EXISTS (SELECT FROM annotation_abstention AS given WHERE given.task_id = task.id AND given.member_id = %(member)s)
        OR EXISTS (SELECT FROM annotation_adjudication AS ruling WHERE ruling.task_id = task.id AND ruling.member_id = %(member)s)
    )
"""

_LAPSE_RULINGS = """
    UPDATE annotation_lease SET lapsed = true
    WHERE question_id = %(question)s AND kind = 'ruling' AND NOT lapsed AND expires_at <= now() RETURNING id
"""
_HELD_DISPUTE = """
    SELECT lease.token FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id AND task.state = 'disputed'
    WHERE lease.member_id = %(member)s AND lease.question_id = %(question)s AND lease.kind = 'ruling' AND NOT lease.lapsed
    ORDER BY lease.leased_at LIMIT 1
"""
_LEASE_DISPUTE = """
    WITH dispute AS MATERIALIZED (
        SELECT task.id, task.question_id, task.round FROM annotation_task AS task
        WHERE task.question_id = %(question)s AND task.state = 'disputed'
          AND EXISTS (SELECT FROM annotation_guideline AS guideline WHERE guideline.question_id = %(question)s)
          AND NOT EXISTS (SELECT FROM annotation_lease AS lease
                          WHERE lease.task_id = task.id AND lease.kind = 'ruling' AND NOT lease.lapsed)
          AND NOT EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = %(member)s)
        ORDER BY task.settled_at, task.id LIMIT 1 FOR UPDATE OF task SKIP LOCKED
    ), lease AS (
        INSERT INTO annotation_lease (task_id, question_id, member_id, kind, round, guideline_id, token, leased_at, expires_at, lapsed)
        SELECT dispute.id, dispute.question_id, %(member)s, 'ruling', dispute.round, guideline.id, %(token)s, clock_timestamp(),
               now() + question.lease_minutes * interval '1 minute', false
        FROM dispute
        JOIN annotation_question AS question ON question.id = dispute.question_id
        JOIN LATERAL (
            SELECT id FROM annotation_guideline WHERE question_id = dispute.question_id ORDER BY version DESC LIMIT 1
        ) AS guideline ON true
        ON CONFLICT (task_id) WHERE kind = 'ruling' AND NOT lapsed DO NOTHING
        RETURNING token
    )
    SELECT lease.token FROM dispute LEFT JOIN lease ON true
"""
_READ_DISPUTE = """
    SELECT lease.id AS lease_id, lease.lapsed, lease.round, lease.guideline_id,
           task.id AS task_id, task.question_id, task.state, task.round AS task_round,
           question.blind_ruling, choice.id AS choice_id, choice.tag_use,
           ARRAY(SELECT value::text FROM annotation_tag WHERE question_id = task.question_id ORDER BY position) AS allowed_tags,
           (SELECT id FROM annotation_adjudication AS own
            WHERE own.task_id = task.id AND own.round = task.round AND own.member_id = lease.member_id) AS adjudication_id,
           EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = lease.member_id) AS voted
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
_DISPUTE = f"""
    SELECT {_WORK}, task.vote_count, task.abstention_count, question.blind_ruling,
           choice.value AS blind_choice, coalesce(own.blind_tags, '{{}}') AS blind_tags, own.blind_at
    FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id {_WORK_JOINS}
    LEFT JOIN annotation_adjudication AS own ON own.task_id = task.id AND own.round = task.round AND own.member_id = lease.member_id
    LEFT JOIN annotation_choice AS choice ON choice.id = own.blind_choice_id
    WHERE lease.token = %(token)s AND lease.member_id = %(member)s
"""  # noqa: S608 - our own words
# An order that says nothing about who or when, and stays the same for one dispute.
_DISPUTE_VOTES = """
    SELECT choice.value AS choice, choice.label, vote.tags, vote.comment
    FROM annotation_task AS task
    JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
    JOIN annotation_choice AS choice ON choice.id = vote.choice_id
    WHERE task.id = %(task)s ORDER BY md5(vote.token::text)
"""
