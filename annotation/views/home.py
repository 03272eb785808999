"""A person's own pages: what waits for them in every project, the way out, and support."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from annotation import access, queue
from annotation.disputes import dispute_counts
from annotation.models import Lease, LeaseKind, Membership, Question, Role

LAST_ANSWERS = 10
LONGEST_PAUSE_MS = 5 * 60 * 1000  # an answer that took longer counts as this: the person was away

_DEALT_WITH = """(
    EXISTS (SELECT FROM annotation_vote AS vote
            WHERE vote.task_id = task.id AND vote.member_id = %(member)s AND vote.round = task.round)
    OR EXISTS (SELECT FROM annotation_abstention AS given
               WHERE given.task_id = task.id AND given.member_id = %(member)s AND given.round = task.round))"""
# Per question: how long this person's last 50 answers took (their median, ms), and whether a task could be theirs now: one
# they hold, a fresh one, one that came up since their mark in the queue (see annotation.queue), or one whose hold ran out.
_WORK = f"""
SELECT question.id,
       (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY recent.elapsed_ms)
        FROM (SELECT elapsed_ms FROM annotation_vote AS vote
              WHERE vote.member_id = %(member)s AND vote.question_id = question.id AND vote.elapsed_ms IS NOT NULL
              ORDER BY vote.created_at DESC LIMIT 50) AS recent) AS median_ms,
       EXISTS (SELECT FROM annotation_lease AS lease
               WHERE lease.member_id = %(member)s AND lease.question_id = question.id AND lease.kind = 'vote'
                 AND NOT lease.lapsed AND lease.expires_at > now())
       OR EXISTS (SELECT FROM annotation_task AS task
               WHERE task.question_id = question.id AND task.state = 'open' AND task.queued_at IS NULL
                 AND task.vote_count < task.votes_required - task.lease_count)
       OR EXISTS (SELECT FROM annotation_task AS task
               WHERE task.question_id = question.id AND task.state = 'open' AND task.queued_at >= coalesce(mark.seen_until, '-infinity')
                 AND task.vote_count < task.votes_required - task.lease_count AND NOT {_DEALT_WITH})
       OR EXISTS (SELECT FROM annotation_lease AS lease JOIN annotation_task AS task ON task.id = lease.task_id
               WHERE lease.question_id = question.id AND lease.kind = 'vote' AND NOT lease.lapsed AND lease.expires_at <= now()
                 AND task.state = 'open' AND NOT {_DEALT_WITH}) AS waits
FROM annotation_question AS question
LEFT JOIN annotation_progress AS mark ON mark.question_id = question.id AND mark.member_id = %(member)s
WHERE question.id = ANY(%(questions)s)
"""  # noqa: S608 - our own words
_TODAY = """
SELECT count(*), coalesce(sum(least(elapsed_ms, %(longest)s)) FILTER (WHERE elapsed_ms IS NOT NULL), 0),
       (SELECT count(*) FROM annotation_abstention WHERE member_id = ANY(%(members)s) AND created_at >= current_date)
FROM annotation_vote WHERE member_id = ANY(%(members)s) AND created_at >= current_date
"""


@dataclass(frozen=True)
class WorkRow:
    """One question of one project, as its line on the home page."""

    member: Membership
    question: Question
    answers: str
    seconds: int | None
    today: int
    votes: int
    waits: bool


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Work per question, disputes, one's own last answers (ids, never texts), and the projects one researches."""
    person = access.person(request.user)
    members = list(
        Membership.objects.select_related("project")
        .filter(user=person, active=True, project__archived_at=None)
        .order_by("project__name", "pk")
    )
    voting = [member for member in members if member.role in (Role.ANNOTATOR, Role.ADJUDICATOR)]
    work = [row for member in voting for row in _work_of(member)]
    disputes = [
        (member, question, *dispute_counts(question))
        for member in members
        if member.role == Role.ADJUDICATOR
        for question in member.project.questions.order_by("pk")
    ]
    # One button stands out: settling what waits for an adjudicator, else the question begun today.
    first_dispute = next((question for _, question, waiting, _ in disputes if waiting), None)
    first = None if first_dispute else next((row for row in sorted(work, key=lambda row: not row.today) if row.waits), None)
    answers = [answer for member in voting for answer in queue.last_answers(member, limit=LAST_ANSWERS)]
    context = {
        "members": members,
        "voting": voting,
        "work": work,
        "first": first,
        "disputes": disputes,
        "first_dispute": first_dispute,
        "answers": sorted(answers, key=lambda answer: answer.at, reverse=True)[:LAST_ANSWERS],
        "holds": _holds(voting),
        "today": _today([member.pk for member in voting]),
        "researching": [member for member in members if member.role == Role.RESEARCHER],
    }
    return render(request, "annotation/home.html", context)


def _work_of(member: Membership) -> list[WorkRow]:
    questions = list(member.project.questions.filter(active=True).prefetch_related("choices").order_by("pk"))
    with connection.cursor() as cursor:
        cursor.execute(_WORK, {"member": member.pk, "questions": [question.pk for question in questions]})
        facts = {question: (median, waits) for question, median, waits in cursor.fetchall()}
    rows = []
    for question in questions:
        median, waits = facts[question.pk]
        votes, today = queue.progress_of(member, question)
        seconds = None if median is None else max(1, round(median / 1000))
        rows.append(WorkRow(member, question, _in_words([choice.label for choice in question.choices.all()]), seconds, today, votes, waits))
    return rows


def _in_words(labels: Sequence[str]) -> str:
    """Yes, no or unsure."""
    if not labels:
        return "No choices yet"
    words = [labels[0], *(label.lower() for label in labels[1:])]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _holds(members: list[Membership]) -> list[tuple[Membership, int]]:
    """How many tasks this person holds, by project; none where they hold none."""
    held = (
        Lease.objects.filter(member__in=members, kind=LeaseKind.VOTE, lapsed=False, expires_at__gt=timezone.now())
        .values_list("member")
        .annotate(Count("id"))
    )
    counts = dict(held)
    return [(member, counts[member.pk]) for member in members if member.pk in counts]


def _today(members: list[int]) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(_TODAY, {"members": members, "longest": LONGEST_PAUSE_MS})
        votes, elapsed_ms, abstained = cursor.fetchone()
    minutes = int(elapsed_ms) // 60_000
    return {"votes": votes, "time": f"{minutes // 60} h {minutes % 60:02d}" if minutes >= 60 else f"{minutes} min", "abstained": abstained}


@never_cache
@require_GET
def hidden(request: HttpRequest) -> HttpResponse:
    """Where Esc leads: nothing to see, and the way back. `?back=` is the page that was left."""
    person = access.person(request.user)
    back = request.GET.get("back", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None) or not back.startswith("/"):
        back = ""
    held = Lease.objects.filter(member__user=person, lapsed=False, expires_at__gt=timezone.now()).order_by("expires_at").first()
    return render(request, "annotation/hidden.html", {"back": back, "held": held})


@login_not_required
@require_GET
def support(request: HttpRequest) -> HttpResponse:
    """Someone to talk to, for every kind of user; open to people who are not signed in."""
    return render(request, "annotation/support.html")
