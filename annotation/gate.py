"""What stands between a person and their next task: consent, breaks, limits, a pause, an assignment (SPEC section 2).

`pass_gate` is asked in the transaction that hands out work, with the person's Sitting locked (see queue.py on locks), so a
limit holds however many tabs, questions and projects somebody works in at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from annotation import checks, sql
from annotation.errors import Conflict
from annotation.models import Membership, Question, Role

HOUR, DAY = timedelta(hours=1), timedelta(hours=24)
# A sitting is written down only this often: a person's every answer would be a row changed for nothing.
NOTED_EVERY = timedelta(seconds=15)
VOTING, RULING = (Role.ANNOTATOR, Role.ADJUDICATOR), (Role.ADJUDICATOR, Role.RESEARCHER)


@dataclass(frozen=True)
class Stop:
    """Why somebody gets no work now, in words; `until` when it goes on by itself, None when something must be done first."""

    code: str  # consent, break, hour_limit, day_limit, paused, unassigned or inactive
    message: str
    until: datetime | None = None


@dataclass(frozen=True)
class Care:
    """Sensitive items handed to a person in the last hour and 24 hours, in all their projects, and when a break is due.

    A limit is None where the project sets none; the counts are then 0.
    """

    hour: int
    hour_limit: int | None
    day: int
    day_limit: int | None
    break_at: datetime | None
    break_until: datetime | None

    def with_more(self, items: int) -> "Care":
        """The same after so many sensitive items more."""
        return replace(self, hour=self.hour + items, day=self.day + items) if items else self


@dataclass(frozen=True)
class Gate:
    """What the gate says. `room` is how many sensitive items may be handed out now, None for any number."""

    stop: Stop | None
    care: Care
    room: int | None
    practice: bool
    check_share: float
    repeat_share: float
    benign_share: float


def pass_gate(member_id: int, question_id: int, *, ruling: bool = False) -> Gate:
    """Ask for a member who wants work, their Sitting locked; begins a break that is due, and notes that they are here."""
    state = _read(member_id, question_id)
    sitting = _sitting(state)
    if sitting != (state["since"], state["break_until"]) or state["now"] - state["last"] > NOTED_EVERY:
        sql.rows(_NOTE_SITTING, user=state["user_id"], since=sitting[0], until=sitting[1])
    return _gate(state, sitting, ruling)


def stop_of(member: Membership, question: Question, *, ruling: bool = False) -> Stop | None:
    """Why the member has no work on this question (or no dispute); None when simply nothing waits for them. Changes nothing."""
    state = _read(member.pk, question.pk)
    gate = _gate(state, _sitting(state), ruling)
    return gate.stop or limit_reached(gate, state["user_id"])


def refuse_while(member_id: int, question_id: int, *codes: str) -> None:
    """Raises the Stop that holds for this member on this question as Conflict, when it is one of these."""
    state = _read(member_id, question_id)
    stop = _gate(state, _sitting(state), ruling=False).stop
    if stop is not None and stop.code in codes:
        raise Conflict(stop.message, code=stop.code)


def care_of(member: Membership) -> Care:
    """How much of what is hard to look at the person saw lately, and when their break is. Changes nothing."""
    state = _read(member.pk, None)
    return _care(state, _sitting(state))


def limit_reached(gate: Gate, user_id: int | None) -> Stop | None:
    """The limit that leaves no room for a sensitive item, with when there is room again."""
    if gate.room is None or gate.room > 0:
        return None
    care = gate.care
    daily = care.day_limit is not None and care.day >= care.day_limit
    limit, span = (care.day_limit, DAY) if daily else (care.hour_limit, HOUR)
    # There is room as soon as the limit's last item, counted from now back, has left the span.
    oldest = sql.one(_NTH_EXPOSURE, user=user_id, skip=(limit or 1) - 1)
    words = "24 hours" if daily else "hour"
    return Stop(
        "day_limit" if daily else "hour_limit",
        f"You have seen {limit:,} sensitive items in the last {words}, which is as many as this project hands to anyone. "
        "Harmless items still come when there are any; the others wait.",
        oldest["at"] + span if oldest else None,
    )


def _read(member_id: int, question_id: int | None) -> Mapping[str, Any]:
    return sql.the(_STATE, member=member_id, question=question_id)


def _sitting(state: Mapping[str, Any]) -> tuple[datetime, datetime | None]:
    """(since, break_until) as of now: a rest as long as a break begins a new sitting, a sitting that is too long a break."""
    now, since, until = state["now"], state["since"], state["break_until"]
    rest = timedelta(minutes=state["break_minutes"])
    if until is not None:
        return (since, until) if now < until else (now, None)
    if since is None or now - state["last"] >= rest:
        return now, None
    after = state["break_after_minutes"]
    if after is not None and now - since >= timedelta(minutes=after):
        return since, now + rest
    return since, None


def _gate(state: Mapping[str, Any], sitting: tuple[datetime, datetime | None], ruling: bool) -> Gate:
    care = _care(state, sitting)
    rooms = [limit - seen for limit, seen in ((care.hour_limit, care.hour), (care.day_limit, care.day)) if limit is not None]
    return Gate(
        stop=_stop(state, sitting[1], ruling), care=care, room=max(0, min(rooms)) if rooms else None, practice=bool(state["practice"]),
        check_share=state["check_share"] or 0, repeat_share=state["repeat_share"] or 0, benign_share=state["benign_share"],
    )  # fmt: skip


def _care(state: Mapping[str, Any], sitting: tuple[datetime, datetime | None]) -> Care:
    after = state["break_after_minutes"]
    due = sitting[0] + timedelta(minutes=after) if after is not None and sitting[1] is None else None
    return Care(state["hour"], state["hourly_limit"], state["day"], state["daily_limit"], due, sitting[1])


def _stop(state: Mapping[str, Any], break_until: datetime | None, ruling: bool) -> Stop | None:
    """The first reason that holds. A pause and an assignment are about labelling; rulings go on."""
    reasons = (
        (
            not state["belongs"] or state["role"] not in (RULING if ruling else VOTING),
            Stop("inactive", "You have no part in this work any more."),
        ),
        (
            not state["consented"] and state["role"] != Role.RESEARCHER,
            Stop("consent", "Read what you may see in this project, and decide whether you want to take part."),
        ),
        (
            state["paused"] and not ruling,
            Stop(
                "paused",
                "You are paused on this question: too few of your answers to tasks whose answer is known were right. "
                "A researcher has been told, and can let you go on. Reading the guideline again is a good use of the time.",
            ),
        ),
        (not state["assigned"] and not ruling, Stop("unassigned", "This question is given to other people at the moment.")),
        (not state["active"] and not ruling, Stop("inactive", "This question is not on offer at the moment.")),
        (
            break_until is not None,
            Stop("break", "Time for a break. Nothing is held for you meanwhile, and nothing is lost.", break_until),
        ),
    )
    return next((stop for holds, stop in reasons if holds), None)


# ---------------------------------------------------------------- SQL
# The counts are over all of a person's projects, and only where there is a limit to hold them against.
_EXPOSED = """
    FROM annotation_exposure AS exposure
    WHERE exposure.member_id IN (SELECT own.id FROM annotation_membership AS own WHERE own.user_id = {user})
"""
_STATE = f"""
    SELECT now() AS now, member.user_id, member.role, member.active AS belongs,
           project.hourly_limit, project.daily_limit, project.break_after_minutes, project.break_minutes,
           project.benign_share, question.active, question.check_share, question.repeat_share,
           sitting.since, sitting.last, sitting.break_until, coalesce(seen.hour, 0) AS hour, coalesce(seen.day, 0) AS day,
           warning.id IS NULL OR EXISTS (
               SELECT FROM annotation_consent AS consent
               WHERE consent.member_id = member.id AND consent.warning_id = warning.id AND consent.ended_at IS NULL
           ) AS consented,
           EXISTS (SELECT FROM annotation_pause AS pause
                   WHERE pause.question_id = question.id AND pause.member_id = member.id AND pause.lifted_at IS NULL) AS paused,
           NOT EXISTS (SELECT FROM annotation_assignment AS given WHERE given.question_id = question.id)
           OR EXISTS (SELECT FROM annotation_assignment AS mine
                      WHERE mine.question_id = question.id AND mine.member_id = member.id) AS assigned,
           EXISTS (
               SELECT {checks.KNOWN}
               WHERE known.question_id = question.id AND known.practice AND {checks.ASKABLE.format(member="member.id")}
                 AND NOT EXISTS (SELECT FROM annotation_check AS done
                                 WHERE done.known_id = known.id AND done.member_id = member.id AND done.answered_at IS NOT NULL)
           ) AS practice
    FROM annotation_membership AS member
    JOIN annotation_project AS project ON project.id = member.project_id
    LEFT JOIN annotation_question AS question ON question.id = %(question)s
    LEFT JOIN annotation_sitting AS sitting ON sitting.user_id = member.user_id
    LEFT JOIN LATERAL (
        SELECT id FROM annotation_contentwarning WHERE project_id = project.id ORDER BY version DESC LIMIT 1
    ) AS warning ON true
    LEFT JOIN LATERAL (
        SELECT count(*) FILTER (WHERE exposure.at > now() - interval '1 hour') AS hour, count(*) AS day
        {_EXPOSED.format(user="member.user_id")} AND exposure.at > now() - interval '24 hours'
    ) AS seen ON project.hourly_limit IS NOT NULL OR project.daily_limit IS NOT NULL
    WHERE member.id = %(member)s
"""  # noqa: S608 - our own words
_NTH_EXPOSURE = f"SELECT exposure.at {_EXPOSED.format(user='%(user)s')} ORDER BY exposure.at DESC OFFSET %(skip)s LIMIT 1"
_NOTE_SITTING = """
    UPDATE annotation_sitting SET since = %(since)s, break_until = %(until)s::timestamptz, last = now() WHERE user_id = %(user)s
    RETURNING user_id
"""
