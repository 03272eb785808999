"""The queue: lease, cast, settle. Every function here is one transaction. Disputes go on in disputes.py.

Ten invariants (SPEC section 2) hold under any concurrency, crash or retry. How:

* A slot. `task.vote_count + task.lease_count <= votes_required` is a CHECK of the database; both counts change only here,
  in the statement that adds or removes the vote or lease, under the task's row lock.
* Order of locks: the member's Progress row and their Sitting, then tasks. Whoever looks for work takes tasks with SKIP LOCKED and never
  waits. So two tabs of one person wait for each other, two people hardly ever do, and no cycle can form.
* A token. Each lease has one, and the vote keeps it (unique): the same token again finds the vote it made.
* Settling. The vote that completes a task settles it before it commits. Nothing sweeps afterwards.
* The gate (gate.py) is asked whenever work is handed out, after the Sitting is locked: consent, breaks and limits hold in every tab.
* Expiry. A lease that ran out is found by the next person who asks for work; its slot is free from then on.

The next task in constant time, however much there is and however much someone has done: open tasks with a free slot form
two ends. *Started* ones (someone voted or abstained) come first, in the order in which they last came up (`queued_at`);
*fresh* ones follow by seeded `rank`. Fresh tasks are handed out in seeded order, so started ones come up in it too.
Sensitive and benign tasks form such ends each, so that one kind can be looked for and the other left, by the project's benign
share or because somebody has seen enough; a coin says which kind comes first, and a person's marks are one for each kind.
A member's `seen_until` says that every started task that came up before it is dealt with by them, or will be stamped anew:
whatever gives a started task a free slot (a vote that leaves it open, an abstention, a lease returned or run out, a re-opening)
sets `queued_at` to the clock. So a search begins there, and what the member did before is never read again.
"""

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db import transaction
from psycopg.rows import DictRow

from annotation import checks, sql
from annotation.checks import Feedback
from annotation.errors import Conflict, Forbidden, Invalid, Missing
from annotation.gate import VOTING, Care, Gate, pass_gate, refuse_while
from annotation.models import AbstainReason, FlagReason, Guideline, Membership, Policy, Question, Source, TagUse, TaskState
from annotation.resolution import Agreed, Ballot, resolve
from annotation.tasks import ASKED_UNDER

ABSTENTIONS_TO_DISPUTE = 3
REVISABLE_AFTER_SETTLING = timedelta(seconds=60)
AHEAD = 2  # the task on screen and the one after it
# Transactions here last milliseconds. A stamp younger than this may belong to one that is not visible yet.
SETTLING_IN = timedelta(seconds=2)
# A task that somebody else had locked at the moment is passed over. So now and then the queue is looked through from its
# beginning: soon when nothing else is found, and after a while in any case.
RESCAN_EVERY, RESCAN_ANYWAY = timedelta(seconds=30), timedelta(minutes=10)


# ---------------------------------------------------------------- what callers get
@dataclass(frozen=True)
class Work:
    """A task that the member holds, with what they may see of it. `origin_text` only where the question shows it.

    `practice`: feedback follows the answer. `covered`: a picture that starts covered; `width` and `height` are its pixels.
    """

    task_id: int
    token: uuid.UUID
    item_id: int
    kind: str
    text: str | None
    origin_text: str | None
    expires_at: datetime
    guideline_version: int
    practice: bool
    covered: bool
    width: int | None
    height: int | None


@dataclass(frozen=True)
class Receipt:
    """An acknowledged vote, and what the member holds now: the task to show and the one after it. `feedback` after practice."""

    vote_id: int
    choice: str
    work: list[Work]
    care: Care
    feedback: Feedback | None = None


class Hand(NamedTuple):
    """What a member holds of a question, and how they are cared for."""

    work: list[Work]
    care: Care


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
    covered: bool
    width: int | None
    height: int | None
    choice: str
    tags: list[str]
    comment: str


# ---------------------------------------------------------------- the annotator
@transaction.atomic
def next_work(member: Membership, question: Question) -> list[Work]:
    """What the member holds of this question, topped up to two tasks: the current one and the next.

    Empty: nothing waits, or `gate.stop_of` says why. Raises Forbidden for a role that does not vote.
    """
    _require_voter(member)
    return _top_up(member.pk, question.pk, lock_progress(member.pk, question.pk)).work


@transaction.atomic
def under_guideline(member: Membership, guideline: Guideline) -> None:
    """What the member holds of its question is from now on answered under this version: for a page that shows it to them."""
    lock_progress(member.pk, guideline.question_id)
    sql.rows(_UNDER_GUIDELINE, member=member.pk, question=guideline.question_id, guideline=guideline.pk)


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
    progress = sql.one(LOCK_HELD, token=token, member=member.pk, kind="vote")
    held = sql.one(_READ_HELD, token=token, member=member.pk, choice=choice) if progress else None
    if progress is None or held is None:
        receipt = _answer_check(member, token, choice=choice, tags=tags, comment=comment, elapsed_ms=elapsed_ms)
        return receipt or _receipt_of_earlier(member, token)
    check_answer(held, choice, tags)
    _check_still_votable(held)
    complete = held["vote_count"] + 1 == held["votes_required"]
    vote = sql.the(
        _CAST, task=held["task_id"], question=held["question_id"], member=member.pk, round=held["round"],
        choice=held["choice_id"], tags=sorted(set(tags)), comment=comment, guideline=held["guideline_id"], token=token,
        elapsed=_milliseconds(elapsed_ms), complete=complete,
    )  # fmt: skip
    if complete:
        settle(held["task_id"])
    work, care = _top_up(member.pk, held["question_id"], progress, voted=1)
    return Receipt(vote["id"], choice, work, care)


def _answer_check(
    member: Membership, token: uuid.UUID, *, choice: str, tags: Sequence[str], comment: str, elapsed_ms: int | None
) -> Receipt | None:
    """The same for a token that holds a known answer; None when it does not."""
    check = checks.lock(member.pk, token)
    if check is None:
        return None
    if check["abstained"]:
        raise Conflict("You have already answered this task.", code="answered")
    if check["answered_at"] is None:
        asked = sql.the(_READ_CHOICE, question=check["question_id"], choice=choice)
        check_answer(asked, choice, tags)
        checks.check_still_asked(check)
        number, feedback = checks.answer(
            check, choice_id=asked["choice_id"], choice=choice, tags=tags, comment=comment, elapsed_ms=_milliseconds(elapsed_ms)
        )
    else:
        number, choice, feedback = check["number"], check["said"], checks.feedback_of(check, correct=check["correct"])
    work, care = _top_up(member.pk, check["question_id"], lock_progress(member.pk, check["question_id"]))
    return Receipt(number, choice, work, care, feedback)


def _milliseconds(elapsed: int | None) -> int | None:
    return None if elapsed is None else max(0, min(elapsed, 2**31 - 1))


@transaction.atomic
def abstain(member: Membership, token: uuid.UUID, reason: str) -> list[Work]:
    """Give the slot back with a reason; the member does not see this task again in this round. Returns what they hold now.

    The third abstention sends the task to an adjudicator. Raises Invalid (reason), Missing (no_lease), Conflict (voted).
    """
    _require_voter(member)
    if reason not in AbstainReason.values:
        raise Invalid("Say why you abstain.", fields={"reason": f"One of: {', '.join(AbstainReason.values)}."})
    progress = sql.one(LOCK_HELD, token=token, member=member.pk, kind="vote")
    held = sql.one(_READ_HELD, token=token, member=member.pk, choice="") if progress else None
    if progress is None or held is None:
        question = _abstain_from_check(member, token, reason)
        if question is not None:
            return _top_up(member.pk, question, lock_progress(member.pk, question)).work
        earlier = sql.one(
            "SELECT question_id FROM annotation_abstention WHERE token = %(token)s AND member_id = %(member)s",
            token=token, member=member.pk,
        )  # fmt: skip
        if earlier is None:
            raise _no_lease(member, token)
        question = earlier["question_id"]
        return _top_up(member.pk, question, lock_progress(member.pk, question)).work
    _check_still_votable(held)
    sql.rows(
        _ABSTAIN, task=held["task_id"], question=held["question_id"], member=member.pk, round=held["round"], reason=reason, token=token
    )
    if held["abstention_count"] + 1 >= ABSTENTIONS_TO_DISPUTE:
        lapse_leases([held["task_id"]])
        sql.rows(_DISPUTED, task=held["task_id"])
    return _top_up(member.pk, held["question_id"], progress).work


def _abstain_from_check(member: Membership, token: uuid.UUID, reason: str) -> int | None:
    """The same for a token that holds a known answer: its question, or None when it is none."""
    check = checks.lock(member.pk, token)
    if check is None:
        return None
    if check["answered_at"] is not None and not check["abstained"]:
        raise Conflict("You have already answered this task.", code="answered")
    if check["answered_at"] is None:
        checks.check_still_asked(check)
        checks.abstain(check, reason)
    question: int = check["question_id"]
    return question


def lock_person(member: Membership) -> None:
    """Hold up whatever the member asks of the queue meanwhile: all their Progress rows, and their Sitting, which is made if need be."""
    sql.rows(LOCK_ALL_PROGRESS, member=member.pk, question=None)
    sql.rows(_SIT_DOWN, member=member.pk)
    sql.rows(_LOCK_SITTING, user=member.user_id)


@transaction.atomic
def release(member: Membership, question: Question | None = None) -> int:
    """Give back every task the member holds (of one question, or all); returns how many. Disputes they hold too."""
    arguments = {"member": member.pk, "question": question and question.pk}
    sql.rows(LOCK_ALL_PROGRESS, **arguments)
    tasks = sql.rows(
        """
        SELECT task.id FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id
        WHERE lease.member_id = %(member)s AND NOT lease.lapsed AND (%(question)s::bigint IS NULL OR lease.question_id = %(question)s)
        ORDER BY task.id FOR UPDATE OF task
        """,
        **arguments,
    )
    gone = sql.rows(_RELEASE, member=member.pk, tasks=[row["id"] for row in tasks])
    return len(gone) + len(sql.rows(_RELEASE_CHECKS, **arguments)) + len(sql.rows(_RELEASE_REPEATS, **arguments))


def held_count(member: Membership) -> int:
    """How many tasks wait on the member's screens, of all questions of the project."""
    count: int = sql.the(_HELD_COUNT, member=member.pk)["held"]
    return count


@transaction.atomic
def flag(member: Membership, task_id: int, reason: str, note: str = "") -> None:
    """Mark a task for the researchers. "Possibly illegal" quarantines its item at once: no task of it is shown to anyone.

    The member must hold the task or have answered it. Flagging twice for the same reason changes nothing.
    """
    if reason not in FlagReason.values:
        raise Invalid("Say what is wrong.", fields={"reason": f"One of: {', '.join(FlagReason.values)}."})
    if len(note) > 500:
        raise Invalid("A note has at most 500 characters.", fields={"note": f"{len(note):,} characters."})
    seen = sql.one(_HAS_SEEN, task=task_id, member=member.pk)
    if seen is None:
        raise Missing("You do not hold this task and have not answered it.")
    if reason == FlagReason.ILLEGAL:
        quarantine(seen["item_id"])  # first, because the flag's row holds its task, and tasks are locked in the order of their ids
    sql.rows(
        """
        INSERT INTO annotation_flag (task_id, member_id, reason, note, created_at)
        VALUES (%(task)s, %(member)s, %(reason)s, %(note)s, now())
        ON CONFLICT (task_id, member_id, reason) DO NOTHING RETURNING id
        """,
        task=task_id, member=member.pk, reason=reason, note=note,
    )  # fmt: skip


@transaction.atomic
def revise_vote(member: Membership, vote_id: int, *, choice: str, tags: Sequence[str] = (), comment: str = "") -> None:
    """Change one's own vote while its task is open, or the vote that settled it within 60 seconds, unless an adjudicator has it.

    The earlier version is kept. Raises Missing, Conflict (closed, consent, paused) and Invalid.
    """
    if len(comment) > 2000:
        raise Invalid("A comment has at most 2,000 characters.", fields={"comment": f"{len(comment):,} characters."})
    found = sql.one(
        "SELECT task_id, question_id FROM annotation_vote WHERE id = %(vote)s AND member_id = %(member)s", vote=vote_id, member=member.pk
    )
    if found is None:
        _revise_check(member, vote_id, choice=choice, tags=tags, comment=comment)
        return
    refuse_while(member.pk, found["question_id"], "consent", "paused")
    lock_progress(member.pk, found["question_id"])
    sql.rows("SELECT id FROM annotation_task WHERE id = %(task)s FOR UPDATE", task=found["task_id"])
    vote = sql.one(_REVISABLE, vote=vote_id, member=member.pk, choice=choice, window=REVISABLE_AFTER_SETTLING)
    if vote is None or not vote["changeable"]:  # none: a researcher struck it out meanwhile
        raise Conflict("This answer is closed: the task is settled, or someone is ruling on it.", code="closed")
    check_answer(vote, choice, tags)
    sql.rows(
        """
        UPDATE annotation_vote SET choice_id = %(choice)s, tags = %(tags)s, comment = %(comment)s, revised_at = clock_timestamp()
        WHERE id = %(vote)s AND (choice_id, tags, comment) IS DISTINCT FROM (%(choice)s, %(tags)s::varchar[], %(comment)s) RETURNING id
        """,
        choice=vote["choice_id"], tags=sorted(set(tags)), comment=comment, vote=vote_id,
    )  # fmt: skip
    if vote["state"] != TaskState.OPEN:
        sql.rows(SUPERSEDE_TRUTH, task=vote["task_id"])
        settle(vote["task_id"])


def _revise_check(member: Membership, number: int, *, choice: str, tags: Sequence[str], comment: str) -> None:
    found = sql.one(_OWN_CHECK, number=number, member=member.pk)
    if found is None:
        raise Missing("You have no such vote.")
    refuse_while(member.pk, found["question_id"], "consent", "paused")
    lock_progress(member.pk, found["question_id"])
    check = sql.the(_OWN_CHECK, number=number, member=member.pk)
    if not sql.the(_CHECK_OPEN, check=check["id"], window=REVISABLE_AFTER_SETTLING)["changeable"]:
        raise Conflict("This answer is closed: the task is settled, or someone is ruling on it.", code="closed")
    asked = sql.the(_READ_CHOICE, question=check["question_id"], choice=choice)
    check_answer(asked, choice, tags)
    if (choice, sorted(set(tags)), comment) != (check["said"], check["tags"], check["comment"]):
        checks.change(check, choice_id=asked["choice_id"], choice=choice, tags=tags, comment=comment)


def last_answers(member: Membership, question: Question | None = None, limit: int = 10) -> list[Answer]:
    """The member's own votes and abstentions, newest first."""
    rows = sql.rows(
        _LAST_ANSWERS, member=member.pk, question=question and question.pk, limit=limit,
        window=REVISABLE_AFTER_SETTLING,
    )  # fmt: skip
    reasons = {reason.value: str(reason.label) for reason in AbstainReason}
    return [Answer(**{**row, "label": row["label"] if row["kind"] == "vote" else reasons[row["label"]]}) for row in rows]


def own_vote(member: Membership, vote_id: int) -> OwnVote:
    """One's own vote with its item. Raises Missing for anyone else's, Conflict (consent, break, paused) while nothing is shown."""
    row = sql.one(_OWN_VOTE, vote=vote_id, member=member.pk)
    if row is None:
        raise Missing("You have no such vote.")
    refuse_while(member.pk, row.pop("question_id"), "consent", "break", "paused")
    return OwnVote(**row)


def progress_of(member: Membership, question: Question) -> tuple[int, int]:
    """(votes on this question in all, votes today); read from one row however many there are."""
    row = sql.one(
        """
        SELECT votes + checks AS votes, CASE WHEN day = current_date THEN votes_on_day ELSE 0 END AS today
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
        row = sql.the(
            """
            SELECT count(*) AS tasks, count(*) FILTER (WHERE state IN ('agreed', 'adjudicated')) AS settled
            FROM annotation_task WHERE question_id = %(question)s AND state <> 'retired'
            """,
            question=question.pk,
        )
        share = row["settled"] / row["tasks"] if row["tasks"] else -1.0
        cache.set(key, share, 60)
    return None if share < 0 else share


# ---------------------------------------------------------------- holding and leasing
def _top_up(member_id: int, question_id: int, progress: DictRow, *, voted: int = 0) -> Hand:
    """Hand out work until the member holds AHEAD tasks, as far as the gate lets them, and note what that taught us."""
    gate = pass_gate(member_id, question_id)
    marks, rescanned = _marks_of(progress), None
    work = _held(member_id, question_id) if gate.stop is None else []
    seen = 0
    while gate.stop is None and len(work) < AHEAD:
        open_to_sensitive = gate.room is None or seen < gate.room
        exposed = _hand_out_check(member_id, question_id, gate, marks, open_to_sensitive)
        if exposed is not None:
            work = _held(member_id, question_id)
        elif gate.practice:
            break
        else:
            found, late = _lease_next(member_id, question_id, progress, marks, _kinds(gate.benign_share, open_to_sensitive))
            rescanned = rescanned or late
            if found is None:
                break
            exposed = found.pop("sensitive")
            work.append(Work(**found))
        seen += exposed
    if gate.stop is not None:
        _give_up(member_id, question_id)
    if voted or rescanned or marks != _marks_of(progress):
        sql.rows(_NOTE_PROGRESS, progress=progress["id"], voted=voted, rescanned=rescanned, seen=marks[True], benign=marks[False])
    return Hand(work, gate.care.with_more(seen))


def _hand_out_check(member_id: int, question_id: int, gate: Gate, marks: "Marks", open_to_sensitive: bool) -> bool | None:
    """A known answer where practice comes first, or where the coin says so; whether it is sensitive, None when there is none.

    A check goes out only while live work is left: at the end of the queue it would be known for what it is.
    """
    as_check = random.random() < gate.check_share  # noqa: S311 - nobody gains by guessing a coin
    if gate.practice or (as_check and _live_left(member_id, question_id, marks, open_to_sensitive)):
        return checks.hand_out(member_id, question_id, practice=gate.practice, sensitive=open_to_sensitive)
    return None


def _live_left(member_id: int, question_id: int, marks: "Marks", open_to_sensitive: bool) -> bool:
    kinds = [False, True] if open_to_sensitive else [False]
    return any(
        sql.the(_LIVE_LEFT, member=member_id, question=question_id, sensitive=kind, seen=marks[kind] or _LONG_AGO)["left"] for kind in kinds
    )


def _give_up(member_id: int, question_id: int) -> None:
    """Who is stopped holds nothing; a hold that lapsed still takes an answer that is on its way."""
    sql.rows(_GIVE_UP, member=member_id, question=question_id)
    sql.rows(_GIVE_UP_CHECKS, member=member_id, question=question_id)


# Whether a task is sensitive -> how far the member is with tasks of that kind.
Marks = dict[bool, datetime | None]


def _marks_of(progress: Mapping[str, Any]) -> Marks:
    return {True: progress["seen_until"], False: progress["benign_until"]}


def _kinds(benign_share: float, open_to_sensitive: bool) -> list[bool]:
    """Which kinds of task may be handed out, the one to look for first in front: benign ones with this probability."""
    if not open_to_sensitive:
        return [False]
    return [False, True] if random.random() < benign_share else [True, False]  # noqa: S311


def _held(member_id: int, question_id: int) -> list[Work]:
    """What the member holds, in the order it was handed out: the one on screen, then the one after it."""
    return [Work(**{name: value for name, value in row.items() if name != "leased_at"})
            for row in sql.rows(_HELD, member=member_id, question=question_id)]  # fmt: skip


def _rescan_due(progress: Mapping[str, Any], every: timedelta) -> bool:
    last = progress["rescanned_at"]
    return last is None or progress["now"] - last > every


def _lease_next(
    member_id: int, question_id: int, progress: DictRow, marks: Marks, kinds: Sequence[bool]
) -> tuple[DictRow | None, datetime | None]:
    """Lease the next task for this member and move their marks; and when the queue was looked through from its beginning, if so."""
    if not _rescan_due(progress, RESCAN_ANYWAY):
        marked = any(marks.values())
        found = _lease_one(member_id, question_id, marks, kinds)
        if found["token"] is not None:
            return found, None
        if not marked or not _rescan_due(progress, RESCAN_EVERY):
            return None, None
    progress["rescanned_at"] = progress["now"]
    marks.update(dict.fromkeys(marks))
    found = _lease_one(member_id, question_id, marks, kinds)
    return (found if found["token"] is not None else None), progress["now"]


def _lease_one(member_id: int, question_id: int, marks: Marks, kinds: Sequence[bool]) -> DictRow:
    """The same, from the marks on. The row's `token` is None when there is none."""
    first, second = kinds[0], kinds[1] if len(kinds) > 1 else None
    arguments = {
        "member": member_id, "question": question_id, "token": uuid.uuid4(), "margin": SETTLING_IN,
        "first": first, "first_seen": marks[first] or _LONG_AGO,
        "second": second, "second_seen": (marks[second] if second is not None else None) or _LONG_AGO,
    }  # fmt: skip
    found = sql.the(_LEASE_ONE, **arguments)
    if found["someone_late"]:
        sql.rows(_LAPSE, question=question_id)
        if found["token"] is None:  # what was just freed may be what this member needs
            found = sql.the(_LEASE_ONE, **arguments)
    marks[first] = found.pop("first_seen")
    second_seen = found.pop("second_seen")
    if second is not None and second_seen is not None:
        marks[second] = second_seen
    del found["someone_late"]
    return found


def lock_progress(member_id: int, question_id: int) -> DictRow:
    """The member's Progress row and Sitting, locked: what they ask of one question goes one after the other, and they are one person."""
    arguments = {"member": member_id, "question": question_id}
    found = sql.one(LOCK_PROGRESS, **arguments)
    if found is None:
        sql.rows(_SIT_DOWN, member=member_id)
        sql.rows(
            """
            INSERT INTO annotation_progress (question_id, member_id, votes, votes_on_day) VALUES (%(question)s, %(member)s, 0, 0)
            ON CONFLICT (question_id, member_id) DO NOTHING RETURNING id
            """,
            **arguments,
        )
        found = sql.the(LOCK_PROGRESS, **arguments)
    return found


# ---------------------------------------------------------------- checks
def _require_voter(member: Membership) -> None:
    if not member.active or member.role not in VOTING:
        raise Forbidden("Only annotators and adjudicators vote: a researcher sees scores and other people's votes.")


def check_answer(asked: Mapping[str, Any], choice: str, tags: Sequence[str]) -> None:
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
        freed = sql.rows(_LAPSE_ON_TASK, task=held["task_id"])
        if not freed:
            raise Conflict("Your hold on this task ran out, and others have answered it since.", code="lease_expired")


def _receipt_of_earlier(member: Membership, token: uuid.UUID) -> Receipt:
    """The answer to a vote that is sent again."""
    vote = sql.one(
        """
        SELECT vote.id, vote.question_id, choice.value
        FROM annotation_vote AS vote JOIN annotation_choice AS choice ON choice.id = vote.choice_id
        WHERE vote.token = %(token)s AND vote.member_id = %(member)s
        """,
        token=token, member=member.pk,
    )  # fmt: skip
    if vote is None:
        raise _no_lease(member, token)
    work, care = _top_up(member.pk, vote["question_id"], lock_progress(member.pk, vote["question_id"]))
    return Receipt(vote["id"], vote["value"], work, care)


def _no_lease(member: Membership, token: uuid.UUID) -> Conflict | Missing:
    answered = sql.one(
        """
        SELECT id FROM annotation_vote WHERE token = %(token)s AND member_id = %(member)s
        UNION ALL SELECT id FROM annotation_abstention WHERE token = %(token)s AND member_id = %(member)s
        UNION ALL SELECT id FROM annotation_voidedvote WHERE token = %(token)s AND member_id = %(member)s
        """,
        token=token, member=member.pk,
    )  # fmt: skip
    if answered:
        return Conflict("You have already answered this task.", code="answered")
    return Missing("You do not hold this task any more. It went back to the queue.", code="no_lease")


# ---------------------------------------------------------------- settling
def settle(task_id: int) -> None:
    """Resolve a complete set of votes, under the task's lock and in the transaction of the vote that completed or changed it."""
    votes = sql.rows(_BALLOTS, task=task_id)
    policy: Policy = votes[0]["policy"]
    agreed = resolve(policy, [Ballot(vote["value"], frozenset(vote["tags"])) for vote in votes])
    if agreed is None:
        sql.rows(_DISPUTED, task=task_id)
        return
    set_truth(task_id, member=votes[-1]["member_id"], **_truth_of(agreed, votes))


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


def set_truth(task_id: int, **truth: Any) -> None:
    """Make this the task's ground truth, and the task agreed, or adjudicated where an adjudicator says so."""
    state = TaskState.ADJUDICATED if truth["source"] == Source.ADJUDICATED else TaskState.AGREED
    sql.rows(_SET_TRUTH, task=task_id, state=state.value, **{**truth, "source": truth["source"].value})


def quarantine(item_id: int) -> None:
    """Take an item out of everyone's sight, and with a picture every item that shows it, in every project.

    No task of them is open or held any more, and the picture is sealed.
    """
    items = [row["id"] for row in sql.rows(_SAME_PICTURE, item=item_id)]
    tasks = [
        row["id"] for row in sql.rows("SELECT id FROM annotation_task WHERE item_id = ANY(%(items)s) ORDER BY id FOR UPDATE", items=items)
    ]
    lapse_leases(tasks)
    sql.rows(
        "UPDATE annotation_task SET state = 'retired' WHERE id = ANY(%(tasks)s) AND state IN ('open', 'disputed') RETURNING id", tasks=tasks
    )
    sql.rows(_SEAL, items=items)
    # Looked for anew: an import that brings the same picture holds it, and is committed by now.
    sql.rows(_QUARANTINE, item=item_id)


def lapse_leases(task_ids: Sequence[int]) -> None:
    """Let every lease on these locked tasks lapse, rulings too."""
    sql.rows("UPDATE annotation_lease SET lapsed = true WHERE task_id = ANY(%(tasks)s) AND NOT lapsed RETURNING id", tasks=list(task_ids))
    sql.rows("UPDATE annotation_task SET lease_count = 0 WHERE id = ANY(%(tasks)s) AND lease_count > 0 RETURNING id", tasks=list(task_ids))


# ---------------------------------------------------------------- SQL
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# What a member sees of a task, a check or a dispute they hold.
WORK = """
    task.id AS task_id, lease.token, item.id AS item_id, item.kind, item.text, lease.expires_at, guideline.version AS guideline_version,
    CASE WHEN question.shows_origin AND item.kind = 'text' THEN origin.text END AS origin_text,
    item.kind = 'image' AND question.sensitive AS covered, media.width, media.height
"""
WORK_JOINS = """
    JOIN annotation_item AS item ON item.id = task.item_id
    JOIN annotation_question AS question ON question.id = task.question_id
    JOIN annotation_guideline AS guideline ON guideline.id = lease.guideline_id
    LEFT JOIN annotation_item AS origin ON origin.id = item.origin_id AND NOT origin.quarantined
    LEFT JOIN annotation_media AS media ON media.hash = item.media_hash
"""

_UNDER_GUIDELINE = """
    WITH checked AS (
        UPDATE annotation_check SET guideline_id = %(guideline)s
        WHERE member_id = %(member)s AND question_id = %(question)s AND answered_at IS NULL AND guideline_id <> %(guideline)s
    )
    UPDATE annotation_lease SET guideline_id = %(guideline)s
    WHERE member_id = %(member)s AND question_id = %(question)s AND NOT lapsed AND expires_at > now() AND guideline_id <> %(guideline)s
    RETURNING id
"""

_HELD = f"""
    SELECT {WORK}, false AS practice, lease.leased_at
    FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id {WORK_JOINS}
    WHERE lease.member_id = %(member)s AND lease.question_id = %(question)s AND lease.kind = 'vote'
      AND NOT lease.lapsed AND lease.expires_at > now()
    UNION ALL
    SELECT {WORK}, lease.practice, lease.leased_at
    FROM annotation_check AS lease JOIN annotation_knownanswer AS known ON known.id = lease.known_id
    JOIN annotation_task AS task ON task.id = known.task_id {WORK_JOINS}
    WHERE lease.member_id = %(member)s AND lease.question_id = %(question)s AND lease.answered_at IS NULL
      AND lease.expires_at > now() AND NOT item.quarantined
    ORDER BY leased_at
"""  # noqa: S608 - our own words
_HELD_COUNT = """
    SELECT (SELECT count(*) FROM annotation_lease AS lease
            WHERE lease.member_id = %(member)s AND NOT lease.lapsed AND lease.expires_at > now())
         + (SELECT count(*) FROM annotation_check AS mine
            WHERE mine.member_id = %(member)s AND mine.answered_at IS NULL AND mine.expires_at > now())
         + (SELECT count(*) FROM annotation_repeat AS mine
            WHERE mine.member_id = %(member)s AND mine.ruled_at IS NULL AND mine.expires_at > now()) AS held
"""

# With something to show, open, with a free slot, and not yet dealt with by this member. Whoever
# ruled on it or has seen its votes is barred in every round.
_FREE_FOR_MEMBER = """
    task.question_id = %(question)s AND task.state = 'open' AND task.vote_count < task.votes_required - task.lease_count
    AND EXISTS (SELECT FROM annotation_guideline AS guideline WHERE guideline.question_id = %(question)s)
    AND EXISTS (SELECT FROM annotation_item AS item
                WHERE item.id = task.item_id AND NOT item.quarantined AND (item.kind = 'text' OR item.media_hash IS NOT NULL))
    AND NOT EXISTS (SELECT FROM annotation_vote AS vote
                    WHERE vote.task_id = task.id AND vote.round = task.round AND vote.member_id = %(member)s)
    AND NOT EXISTS (SELECT FROM annotation_voidedvote AS voided
                    WHERE voided.task_id = task.id AND voided.round = task.round AND voided.member_id = %(member)s)
    AND NOT EXISTS (SELECT FROM annotation_lease AS mine
                    WHERE mine.task_id = task.id AND mine.member_id = %(member)s AND NOT mine.lapsed)
    AND NOT EXISTS (SELECT FROM annotation_abstention AS abstention
                    WHERE abstention.task_id = task.id AND abstention.round = task.round AND abstention.member_id = %(member)s)
    AND NOT EXISTS (SELECT FROM annotation_adjudication AS ruling
                    WHERE ruling.task_id = task.id AND ruling.member_id = %(member)s)
    AND NOT EXISTS (SELECT FROM annotation_knownanswer AS known JOIN annotation_check AS given ON given.known_id = known.id
                    WHERE known.task_id = task.id AND given.member_id = %(member)s)
"""
_LIVE_LEFT = f"""
    SELECT EXISTS (
        SELECT FROM annotation_task AS task WHERE {_FREE_FOR_MEMBER} AND task.sensitive = %(sensitive)s AND task.queued_at IS NULL
    ) OR EXISTS (
        SELECT FROM annotation_task AS task WHERE {_FREE_FOR_MEMBER} AND task.sensitive = %(sensitive)s AND task.queued_at >= %(seen)s
    ) AS left
"""  # noqa: S608 - our own words


def _two_ends(kind: str, *, unless: str = "") -> str:
    """The next started task of one kind, else the next fresh one. `unless` names what makes both searches needless."""
    needless = f"NOT EXISTS (SELECT FROM {unless}) AND" if unless else ""
    return f"""
    {kind}_started AS MATERIALIZED (
        SELECT task.id, task.queued_at FROM annotation_task AS task
        WHERE {needless} {_FREE_FOR_MEMBER} AND task.sensitive = %({kind})s AND task.queued_at >= %({kind}_seen)s
        ORDER BY task.queued_at, task.id LIMIT 1 FOR UPDATE OF task SKIP LOCKED
    ), {kind}_fresh AS MATERIALIZED (
        SELECT task.id FROM annotation_task AS task
        WHERE {needless} NOT EXISTS (SELECT FROM {kind}_started)
          AND {_FREE_FOR_MEMBER} AND task.sensitive = %({kind})s AND task.queued_at IS NULL
        ORDER BY task.rank, task.id LIMIT 1 FOR UPDATE OF task SKIP LOCKED
    ), {kind}_found AS MATERIALIZED (SELECT id FROM {kind}_started UNION ALL SELECT id FROM {kind}_fresh)
    """  # noqa: S608 - our own words


# One statement: find, lock, count and lease. What is not needed is not looked at (one-time filters): the fresh when something is
# started, the second kind when the first has something.
_LEASE_ONE = f"""
    WITH {_two_ends("first")}, {_two_ends("second", unless="first_found")}, task AS (
        UPDATE annotation_task AS chosen SET lease_count = chosen.lease_count + 1
        WHERE chosen.id = coalesce((SELECT id FROM first_found), (SELECT id FROM second_found))
        RETURNING chosen.id, chosen.item_id, chosen.question_id, chosen.round, chosen.sensitive
    ), lease AS (
        INSERT INTO annotation_lease (task_id, question_id, member_id, kind, round, guideline_id, token, leased_at, expires_at, lapsed)
        SELECT task.id, task.question_id, %(member)s, 'vote', task.round, guideline.id, %(token)s, clock_timestamp(),
               now() + question.lease_minutes * interval '1 minute', false
        FROM task
        {ASKED_UNDER.format(of="task")}
        RETURNING task_id, token, guideline_id, expires_at
    ), exposed AS (
        INSERT INTO annotation_exposure (member_id, task_id, at)
        SELECT %(member)s, task.id, clock_timestamp() FROM task WHERE task.sensitive
    )
    SELECT work.*,
           least(coalesce((SELECT queued_at FROM first_started), 'infinity'), statement_timestamp() - %(margin)s) AS first_seen,
           CASE WHEN NOT EXISTS (SELECT FROM first_found) THEN
               least(coalesce((SELECT queued_at FROM second_started), 'infinity'), statement_timestamp() - %(margin)s) END AS second_seen,
           EXISTS (
               SELECT FROM annotation_lease AS late
               WHERE late.question_id = %(question)s AND late.kind = 'vote' AND NOT late.lapsed AND late.expires_at <= now()
           ) AS someone_late
    FROM (SELECT) AS always LEFT JOIN (
        SELECT {WORK}, false AS practice, task.sensitive FROM lease JOIN task ON task.id = lease.task_id {WORK_JOINS}
    ) AS work ON true
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

# Whoever is stopped: what others work on at this moment is skipped, and runs out by itself.
_GIVE_UP = """
    WITH held AS MATERIALIZED (
        SELECT task.id FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id
        WHERE lease.member_id = %(member)s AND lease.question_id = %(question)s AND lease.kind = 'vote' AND NOT lease.lapsed
        ORDER BY task.id FOR UPDATE OF task SKIP LOCKED
    ), gone AS (
        UPDATE annotation_lease AS lease SET lapsed = true FROM held
        WHERE lease.task_id = held.id AND lease.member_id = %(member)s AND lease.kind = 'vote' AND NOT lease.lapsed RETURNING lease.task_id
    )
    UPDATE annotation_task AS task SET
        lease_count = task.lease_count - 1, queued_at = CASE WHEN task.queued_at IS NOT NULL THEN clock_timestamp() END
    FROM gone WHERE task.id = gone.task_id RETURNING task.id
"""
_GIVE_UP_CHECKS = """
    UPDATE annotation_check SET expires_at = now()
    WHERE member_id = %(member)s AND question_id = %(question)s AND answered_at IS NULL AND expires_at > now() RETURNING id
"""

_SIT_DOWN = """
    INSERT INTO annotation_sitting (user_id, since, last)
    SELECT user_id, now(), now() FROM annotation_membership WHERE id = %(member)s AND user_id IS NOT NULL
    ON CONFLICT (user_id) DO NOTHING RETURNING user_id
"""
_LOCK_SITTING = "SELECT user_id FROM annotation_sitting WHERE user_id = %(user)s FOR UPDATE"
# A member's Progress with its person's Sitting: both are locked, in this order.
_PERSON = """
    annotation_progress AS progress
    JOIN annotation_membership AS member ON member.id = progress.member_id
    JOIN annotation_sitting AS sitting ON sitting.user_id = member.user_id
"""
_PROGRESS = "progress.id, progress.seen_until, progress.benign_until, progress.rescanned_at, now() AS now"
LOCK_PROGRESS = f"""
    SELECT {_PROGRESS} FROM {_PERSON}
    WHERE progress.member_id = %(member)s AND progress.question_id = %(question)s FOR UPDATE OF progress, sitting
"""  # noqa: S608 - our own words
LOCK_ALL_PROGRESS = """
    SELECT id FROM annotation_progress
    WHERE member_id = %(member)s AND (%(question)s::bigint IS NULL OR question_id = %(question)s) ORDER BY id FOR UPDATE
"""
# Both locks in their order: the inner query is run, and its row locked, before the outer row is.
LOCK_HELD = f"""
    WITH progress AS MATERIALIZED (
        SELECT {_PROGRESS}, lease.task_id
        FROM {_PERSON} JOIN annotation_lease AS lease ON lease.member_id = progress.member_id AND lease.question_id = progress.question_id
        WHERE lease.token = %(token)s AND lease.member_id = %(member)s AND lease.kind = %(kind)s FOR UPDATE OF progress, sitting
    )
    SELECT progress.* FROM progress JOIN annotation_task AS task ON task.id = progress.task_id FOR UPDATE OF task
"""  # noqa: S608 - our own words
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

_READ_CHOICE = """
    SELECT choice.id AS choice_id, choice.tag_use,
           ARRAY(SELECT value::text FROM annotation_tag WHERE question_id = %(question)s ORDER BY position) AS allowed_tags
    FROM (SELECT) AS always LEFT JOIN annotation_choice AS choice ON choice.question_id = %(question)s AND choice.value = %(choice)s
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
_RELEASE_CHECKS = """
    DELETE FROM annotation_check
    WHERE member_id = %(member)s AND (%(question)s::bigint IS NULL OR question_id = %(question)s) AND answered_at IS NULL
      AND expires_at > now() RETURNING id
"""
_RELEASE_REPEATS = """
    UPDATE annotation_repeat SET expires_at = now()
    WHERE member_id = %(member)s AND (%(question)s::bigint IS NULL OR question_id = %(question)s) AND ruled_at IS NULL
      AND expires_at > now() RETURNING id
"""
_NOTE_PROGRESS = """
    UPDATE annotation_progress SET
        seen_until = %(seen)s, benign_until = %(benign)s,
        rescanned_at = coalesce(%(rescanned)s::timestamptz, rescanned_at),
        votes = votes + %(voted)s,
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
_SAME_PICTURE = """
    SELECT item.id FROM annotation_item AS item WHERE item.id = %(item)s
    UNION
    SELECT same.id FROM annotation_item AS item JOIN annotation_item AS same ON same.media_hash = item.media_hash WHERE item.id = %(item)s
    ORDER BY id
"""
_QUARANTINE = f"UPDATE annotation_item SET quarantined = true WHERE id IN ({_SAME_PICTURE}) RETURNING id"  # noqa: S608 - our own words
_SEAL = """
    UPDATE annotation_media SET sealed_at = coalesce(sealed_at, now())
    WHERE hash IN (SELECT media_hash FROM annotation_item WHERE id = ANY(%(items)s)) RETURNING hash
"""
_DISPUTED = """
    UPDATE annotation_task SET state = 'disputed', settled_at = coalesce(settled_at, clock_timestamp()) WHERE id = %(task)s RETURNING id
"""
SUPERSEDE_TRUTH = """
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
# An answer to a check may be changed as long as the member's last vote before it may: to them the two are of one kind.
_CHECK_CHANGEABLE = f"""
    NOT given.practice AND NOT item.quarantined AND coalesce((
        SELECT {_CHANGEABLE} FROM annotation_vote AS vote JOIN annotation_task AS task ON task.id = vote.task_id
        WHERE vote.member_id = given.member_id AND vote.question_id = given.question_id AND vote.created_at <= given.answered_at
        ORDER BY vote.created_at DESC LIMIT 1
    ), given.answered_at > clock_timestamp() - interval '10 minutes')
"""  # noqa: S608 - our own words
_CHECK_OPEN = f"""
    SELECT {_CHECK_CHANGEABLE} AS changeable
    FROM annotation_check AS given
    JOIN annotation_knownanswer AS known ON known.id = given.known_id
    JOIN annotation_task AS asked ON asked.id = known.task_id
    JOIN annotation_item AS item ON item.id = asked.item_id
    WHERE given.id = %(check)s
"""  # noqa: S608 - our own words
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
        ) UNION ALL (
            SELECT CASE WHEN given.choice_id IS NULL THEN 'abstention' ELSE 'vote' END, given.number, known.task_id,
                   coalesce(choice.value, ''), coalesce(choice.label, given.abstained), given.tags, given.comment, given.answered_at,
                   given.choice_id IS NOT NULL AND {_CHECK_CHANGEABLE}
            FROM annotation_check AS given
            JOIN annotation_knownanswer AS known ON known.id = given.known_id
            JOIN annotation_task AS asked ON asked.id = known.task_id
            JOIN annotation_item AS item ON item.id = asked.item_id
            LEFT JOIN annotation_choice AS choice ON choice.id = given.choice_id
            WHERE given.member_id = mine.member_id AND given.question_id = mine.question_id AND given.answered_at IS NOT NULL
              AND NOT given.practice
            ORDER BY given.answered_at DESC LIMIT %(limit)s
        )
    ) AS answer ON true
    JOIN annotation_task AS task ON task.id = answer.task_id
    JOIN annotation_question AS question ON question.id = mine.question_id
    JOIN annotation_project AS project ON project.id = question.project_id
    WHERE mine.member_id = %(member)s AND (%(question)s::bigint IS NULL OR mine.question_id = %(question)s)
    ORDER BY answer.at DESC LIMIT %(limit)s
"""  # noqa: S608 - our own words
_OWN_ITEM = """
    item.id AS item_id, item.kind, item.text, choice.value AS choice, own.tags, own.comment,
    CASE WHEN question.shows_origin AND item.kind = 'text' THEN origin.text END AS origin_text,
    item.kind = 'image' AND question.sensitive AS covered, media.width, media.height
"""
_OWN_ITEM_JOINS = """
    JOIN annotation_item AS item ON item.id = task.item_id AND NOT item.quarantined
    JOIN annotation_question AS question ON question.id = task.question_id
    JOIN annotation_choice AS choice ON choice.id = own.choice_id
    LEFT JOIN annotation_item AS origin ON origin.id = item.origin_id AND NOT origin.quarantined
    LEFT JOIN annotation_media AS media ON media.hash = item.media_hash
"""
_OWN_VOTE = f"""
    SELECT own.id AS vote_id, task.id AS task_id, own.question_id, {_OWN_ITEM}
    FROM annotation_vote AS own JOIN annotation_task AS task ON task.id = own.task_id {_OWN_ITEM_JOINS}
    WHERE own.id = %(vote)s AND own.member_id = %(member)s
    UNION ALL
    SELECT own.number, task.id, own.question_id, {_OWN_ITEM}
    FROM annotation_check AS own JOIN annotation_knownanswer AS known ON known.id = own.known_id
    JOIN annotation_task AS task ON task.id = known.task_id {_OWN_ITEM_JOINS}
    WHERE own.number = %(vote)s AND own.member_id = %(member)s AND NOT own.practice
"""  # noqa: S608 - our own words
_OWN_CHECK = f"{checks.READ} WHERE mine.number = %(number)s AND mine.member_id = %(member)s AND mine.choice_id IS NOT NULL"
_HAS_SEEN = """
    SELECT task.item_id FROM annotation_task AS task
    WHERE task.id = %(task)s AND (
        EXISTS (SELECT FROM annotation_lease AS lease WHERE lease.task_id = task.id AND lease.member_id = %(member)s)
        OR EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = %(member)s)
        OR EXISTS (SELECT FROM annotation_abstention AS given WHERE given.task_id = task.id AND given.member_id = %(member)s)
        OR EXISTS (SELECT FROM annotation_adjudication AS ruling WHERE ruling.task_id = task.id AND ruling.member_id = %(member)s)
        OR EXISTS (SELECT FROM annotation_knownanswer AS known JOIN annotation_check AS mine ON mine.known_id = known.id
                   WHERE known.task_id = task.id AND mine.member_id = %(member)s)
    )
"""
