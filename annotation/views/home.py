"""A person's own pages: what waits for them in every project, the way out, and support."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from annotation import access, gate, queue, sql, wellbeing
from annotation.disputes import dispute_counts
from annotation.gate import VOTING, Care, Stop
from annotation.models import Consent, Membership, Question, Role, User
from annotation.views.labelling import with_figures

LAST_ANSWERS = 10
HOURS_DRAWN = 8
LONGEST_PAUSE_MS = 5 * 60 * 1000  # an answer that took longer counts as this: the person was away

_DEALT_WITH = """(
    EXISTS (SELECT FROM annotation_vote AS vote
            WHERE vote.task_id = task.id AND vote.member_id = %(member)s AND vote.round = task.round)
    OR EXISTS (SELECT FROM annotation_voidedvote AS voided
               WHERE voided.task_id = task.id AND voided.member_id = %(member)s AND voided.round = task.round)
    OR EXISTS (SELECT FROM annotation_abstention AS given
               WHERE given.task_id = task.id AND given.member_id = %(member)s AND given.round = task.round)
    OR EXISTS (SELECT FROM annotation_adjudication AS ruling
               WHERE ruling.task_id = task.id AND ruling.member_id = %(member)s))"""


def _open_to_them(kind: str, mark: str) -> str:
    """Whether a task of this kind could be theirs now: a fresh one, one that came up since their mark in the queue (see
    annotation.queue), or one whose hold ran out."""
    return f"""
       EXISTS (SELECT FROM annotation_task AS task
               WHERE task.question_id = question.id AND task.sensitive = {kind} AND task.state = 'open' AND task.queued_at IS NULL
                 AND task.vote_count < task.votes_required - task.lease_count)
       OR EXISTS (SELECT FROM annotation_task AS task
               WHERE task.question_id = question.id AND task.sensitive = {kind} AND task.state = 'open'
                 AND task.queued_at >= coalesce({mark}, '-infinity')
                 AND task.vote_count < task.votes_required - task.lease_count AND NOT {_DEALT_WITH})
       OR EXISTS (SELECT FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id
               WHERE lease.question_id = question.id AND lease.kind = 'vote' AND NOT lease.lapsed AND lease.expires_at <= now()
                 AND task.sensitive = {kind} AND task.state = 'open' AND NOT {_DEALT_WITH})"""  # noqa: S608 - our own words


# Per question: how long this person's last answers took (their median, ms), whether they hold something, whether a benign or
# a sensitive task could be theirs, and whether practice comes first. What they hold and how long they took counts known answers
# in: the numbers must not tell those apart.
_WORK = f"""
SELECT question.id,
       (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY recent.elapsed_ms) FROM (
           (SELECT elapsed_ms FROM annotation_vote AS vote
            WHERE vote.member_id = %(member)s AND vote.question_id = question.id AND vote.elapsed_ms IS NOT NULL
            ORDER BY vote.created_at DESC LIMIT 50)
           UNION ALL
           (SELECT elapsed_ms FROM annotation_check AS answered
            WHERE answered.member_id = %(member)s AND answered.question_id = question.id AND answered.elapsed_ms IS NOT NULL
            ORDER BY answered.answered_at DESC LIMIT 50)) AS recent) AS median_ms,
       EXISTS (SELECT FROM annotation_lease AS lease
               WHERE lease.member_id = %(member)s AND lease.question_id = question.id AND lease.kind = 'vote'
                 AND NOT lease.lapsed AND lease.expires_at > now())
       OR EXISTS (SELECT FROM annotation_check AS held
               WHERE held.member_id = %(member)s AND held.question_id = question.id AND held.answered_at IS NULL
                 AND held.expires_at > now()) AS holds,
       {_open_to_them("false", "mark.benign_until")} AS benign,
       {_open_to_them("true", "mark.seen_until")} AS sensitive,
       EXISTS (SELECT FROM annotation_knownanswer AS known
               JOIN annotation_task AS task ON task.id = known.task_id
               JOIN annotation_item AS item ON item.id = task.item_id AND NOT item.quarantined
               WHERE known.question_id = question.id AND known.active AND known.practice
                 AND NOT EXISTS (SELECT FROM annotation_check AS done WHERE done.known_id = known.id
                                 AND done.member_id = %(member)s AND done.answered_at IS NOT NULL)) AS practice
FROM annotation_question AS question
LEFT JOIN annotation_progress AS mark ON mark.question_id = question.id AND mark.member_id = %(member)s
WHERE question.id = ANY(%(questions)s)
"""  # noqa: S608 - our own words
_TODAY = """
SELECT count(*) FILTER (WHERE NOT abstained) AS votes, count(*) FILTER (WHERE abstained) AS abstained,
       coalesce(sum(least(elapsed_ms, %(longest)s)), 0) AS elapsed_ms
FROM (
    SELECT elapsed_ms, false AS abstained FROM annotation_vote WHERE member_id = ANY(%(members)s) AND created_at >= current_date
    UNION ALL
    SELECT elapsed_ms, abstained <> '' FROM annotation_check WHERE member_id = ANY(%(members)s) AND answered_at >= current_date
    UNION ALL
    SELECT NULL, true FROM annotation_abstention WHERE member_id = ANY(%(members)s) AND created_at >= current_date
) AS given
"""
_HELD_UNTIL = """
SELECT min(held.expires_at) AS until FROM (
    SELECT member_id, expires_at FROM annotation_lease WHERE NOT lapsed
    UNION ALL SELECT member_id, expires_at FROM annotation_check WHERE answered_at IS NULL
    UNION ALL SELECT member_id, expires_at FROM annotation_repeat WHERE ruled_at IS NULL
) AS held JOIN annotation_membership AS member ON member.id = held.member_id
WHERE member.user_id = %(user)s AND held.expires_at > now()
"""


@dataclass(frozen=True)
class Rest:
    """A break that is on, or the whole minutes to the next one. How long one works and rests is each project's own rule."""

    until: datetime | None
    minutes: int | None


@dataclass(frozen=True)
class WorkRow:
    """One question of one project, as its line on the home page. `waits`: it can be gone on with now."""

    member: Membership
    question: Question
    answers: str
    seconds: int | None
    today: int
    votes: int
    waits: bool
    practice: bool
    stop: Stop | None
    rest: "Rest | None"  # said here only where the person's projects differ


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Work per question, disputes, one's own last answers (ids, never texts), and the projects one researches."""
    person = access.person(request.user)
    members = list(
        Membership.objects.select_related("project")
        .filter(user=person, active=True, project__archived_at=None)
        .order_by("project__name", "pk")
    )
    voting = [member for member in members if member.role in VOTING]
    cares = [(member, gate.care_of(member)) for member in voting]
    rests = {member.pk: _rest(member, care) for member, care in cares}
    differ = len(set(rests.values())) > 1
    work = [row for member in voting for row in _work_of(member, rests[member.pk] if differ else None)]
    disputes = [
        (member, question, *dispute_counts(question), gate.stop_of(member, question, ruling=True))
        for member in members
        if member.role == Role.ADJUDICATOR
        for question in member.project.questions.order_by("pk")
    ]
    # One button stands out: settling what waits for an adjudicator, else the question begun today, else reading what one may see.
    first_dispute = next((question for _, question, waiting, _, stop in disputes if waiting and stop is None), None)
    ready = sorted((row for row in work if row.waits or _asks_consent(row)), key=lambda row: (_asks_consent(row), not row.today))
    answers = [answer for member in voting for answer in queue.last_answers(member, limit=LAST_ANSWERS)]
    titles = Counter(row.question.title for row in work)
    names = {member.project.slug: member.project.name for member in voting}
    context = {
        "members": members,
        "voting": voting,
        "work": work,
        "first": None if first_dispute else next(iter(ready), None),
        "disputes": disputes,
        "first_dispute": first_dispute,
        "answers": [
            (answer, names[answer.project_slug]) for answer in sorted(answers, key=lambda answer: answer.at, reverse=True)[:LAST_ANSWERS]
        ],
        "twice": {title for title, times in titles.items() if times > 1},
        "holds": [(member, count) for member in voting if (count := queue.held_count(member))],
        "today": _today([member.pk for member in voting]),
        "researching": [member for member in members if member.role == Role.RESEARCHER],
        "agreed": Consent.objects.filter(member__in=voting, ended_at=None).select_related("member__project", "warning").order_by("pk"),
        **_exposure(person, cares),
        "one_break": None if differ else next(iter(rests.values()), None),
    }
    return render(request, "annotation/home.html", context)


def _asks_consent(row: WorkRow) -> bool:
    return row.stop is not None and row.stop.code == "consent"


def _work_of(member: Membership, rest: Rest | None) -> list[WorkRow]:
    """The member's questions; those that are given to others are left out."""
    questions = list(member.project.questions.filter(active=True).prefetch_related("choices").order_by("pk"))
    facts = {row["id"]: row for row in sql.rows(_WORK, member=member.pk, questions=[question.pk for question in questions])}
    rows = []
    for question in questions:
        fact = facts[question.pk]
        stop = gate.stop_of(member, question)
        if stop and stop.code == "unassigned":
            continue
        waits = fact["holds"] or fact["practice"] or fact["benign"]
        if stop and stop.code in ("hour_limit", "day_limit"):  # benign tasks still come, and what is held may be answered
            stop = None if waits or not fact["sensitive"] else stop
        else:
            waits = stop is None and (waits or fact["sensitive"])
        stop = with_figures(stop, member, question) if stop else None
        votes, today = queue.progress_of(member, question)
        seconds = None if fact["median_ms"] is None else max(1, round(fact["median_ms"] / 1000))
        labels = _in_words([choice.label for choice in question.choices.all()])
        rows.append(WorkRow(member, question, labels, seconds, today, votes, waits, fact["practice"], stop, rest))
    return rows


def _in_words(labels: Sequence[str]) -> str:
    """Yes, no or unsure."""
    if not labels:
        return "No choices yet"
    words = [labels[0], *(label.lower() for label in labels[1:])]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _exposure(person: User, cares: Sequence[tuple[Membership, Care]]) -> dict[str, Any]:
    """The meters, one set for each pair of limits that holds somewhere, with the projects' names; and the last hours.

    Nothing for who never meets the like.
    """
    alike: dict[tuple[int | None, int | None], list[tuple[Membership, Care]]] = {}
    for member, care in cares:
        if (care.hour_limit or care.day_limit) and (care.day or wellbeing.warning_of(member.project)):
            alike.setdefault((care.hour_limit, care.day_limit), []).append((member, care))
    limits = [(" and ".join(member.project.name for member, _ in some), some[0][1], some[0][0]) for some in alike.values()]
    hours = wellbeing.last_hours(person, HOURS_DRAWN)
    hourly = [care.hour_limit for _, care, _ in limits if care.hour_limit]
    return {
        "limits": limits,
        "hours": hours if any(hour.items for hour in hours) else [],
        "hour_limit": min(hourly, default=None),
    }


def _rest(member: Membership, care: Care) -> Rest | None:
    """The break that is on, or the one that is due where somebody is at work: who has only come has a whole sitting before them."""
    if care.break_until:
        return Rest(care.break_until, None)
    if care.break_at is None:
        return None
    left = (care.break_at - timezone.now()).total_seconds() / 60
    return Rest(None, max(0, int(left) + 1)) if left < (member.project.break_after_minutes or 0) - 1 else None


def _today(members: list[int]) -> dict[str, Any]:
    row = sql.the(_TODAY, members=members, longest=LONGEST_PAUSE_MS)
    minutes = int(row["elapsed_ms"]) // 60_000
    time = f"{minutes // 60} h {minutes % 60:02d}" if minutes >= 60 else f"{minutes} min"
    return {"votes": row["votes"], "time": time, "abstained": row["abstained"]}


@never_cache
@require_GET
def hidden(request: HttpRequest) -> HttpResponse:
    """Where Esc leads: nothing to see, and the way back. `?back=` is the page that was left."""
    person = access.person(request.user)
    back = request.GET.get("back", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None) or not back.startswith("/"):
        back = ""
    held: datetime | None = sql.the(_HELD_UNTIL, user=person.pk)["until"]
    return render(request, "annotation/hidden.html", {"back": back, "held": held})


@login_not_required
@require_GET
def support(request: HttpRequest) -> HttpResponse:
    """Someone to talk to, for every kind of user; open to people who are not signed in. Whoever is sees their projects' notes."""
    projects = access.projects(request.user).exclude(support_note="").order_by("name")
    return render(request, "annotation/support.html", {"projects": projects})
