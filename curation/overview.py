"""How a project stands: what came in, what is asked and answered, who labels, and what needs a researcher.

Every figure is one aggregate over an index or over rows that are few. What still takes long at a million tasks is kept in
Redis for a while, so that watching never takes more than a hundredth of the machine's time.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.core.cache import cache
from django.db import connection
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, Sum
from django.utils import timezone

from annotation import known, sql
from annotation.imported import nameless_members
from annotation.models import (
    Adjudication,
    Choice,
    Flag,
    GroundTruth,
    Guideline,
    Membership,
    Pause,
    Project,
    Question,
    Role,
    RulingReason,
    TagUse,
    Task,
    TaskState,
)
from curation import agreement
from curation.keeping import BeingWorkedOut
from curation.models import ImportBatch, ImportState
from curation.stats.intervals import Estimate, wilson
from scoring.models import RunState, ScoringRun

HOURS = 24
RECENT_VOTES = 200  # of each annotator, for the median time
MOST_ANNOTATORS = 10
HARM = ("unsafe", "harmful", "yes")
SLOW = 0.05  # seconds; what takes longer is kept
SHARE = 0.01  # of the time, at most, goes into counting the same thing again
LIVE = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED)
T = TypeVar("T")


@dataclass(frozen=True)
class Items:
    """What came in. `kinds` from kind to count."""

    total: int
    kinds: dict[str, int]
    imports: int
    importing: int
    last_import: datetime | None


@dataclass(frozen=True)
class Label:
    """A choice and how many tasks have it as ground truth.

    `share` of the labels that are not unsure, with Wilson's 95% interval; None without any, and for unsure itself.
    """

    value: str
    label: str
    is_unsure: bool
    count: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Positives:
    """Share of one choice among labels that are not unsure, with Wilson's 95% interval. `share` is None without any.

    The choice that says harm: one that takes tags, else one called unsafe, harmful or yes, else the first.
    """

    choice: str
    k: int
    n: int
    unsure: int
    share: float | None
    low: float | None
    high: float | None

    @property
    def percents(self) -> tuple[str, str, str] | None:
        """Share, low and high in percent, as a page says them."""
        if self.share is None or self.low is None or self.high is None:
            return None
        return f"{100 * self.share:.1f}", f"{100 * self.low:.0f}", f"{100 * self.high:.0f}"


@dataclass(frozen=True)
class Asked:
    """A question, its tasks by state, its votes, and the ground truth so far."""

    slug: str
    title: str
    active: bool
    votes_required: int
    least_votes: int  # of what its tasks require: they keep what was asked for when they were made
    most_votes: int
    policy: str
    guideline_version: int
    tasks: int  # without retired ones
    states: dict[str, int]
    votes: int
    votes_wanted: int
    votes_retired: int  # on retired tasks, those of quarantined items among them; not in `votes`
    votes_earlier: int  # of earlier rounds; not in `votes`
    abstentions: int
    labels: list[Label]
    sources: dict[str, int]
    unsettled: int  # of the labels, those that lack a tag: one was required, and none had a majority
    positives: Positives
    provisional: bool  # some tasks are still to be settled, and disputes settle last
    oldest_dispute: datetime | None
    guideline_gaps: int  # rulings under the version in force that name a gap in it
    flags: int  # of its tasks, by those who label

    @property
    def settled(self) -> int:
        return sum(label.count for label in self.labels)


@dataclass(frozen=True)
class Agreed:
    """How far people agree on one question, over the tasks that have all their votes."""

    slug: str
    title: str
    unanimous: Estimate
    alpha: Estimate

    @property
    def shown(self) -> tuple[Estimate, Estimate]:
        return self.unanimous, self.alpha


@dataclass(frozen=True)
class Hour:
    """Votes in the hour that begins at `at`."""

    at: datetime
    votes: int


@dataclass(frozen=True)
class Annotator:
    """Someone who votes. `votes` that stand, and `voided` beside; `median_s` over their last votes with a time, None without any."""

    number: int
    pseudonym: str
    active: bool
    votes: int
    voided: int
    votes_today: int
    median_s: float | None


@dataclass(frozen=True)
class People:
    """Members by role, and those who voted most. `nameless`: votes came as counts or without names too."""

    roles: dict[str, int]
    annotators: list[Annotator]
    voters: int
    raters: int
    nameless: bool = False


@dataclass(frozen=True)
class Need:
    """Something that waits for a researcher. `kind` says what; `what` and `why` are its sentence."""

    kind: str
    what: str
    why: str
    question: str = ""
    count: int = 0
    since: datetime | None = None


@dataclass(frozen=True)
class Overview:
    """All of it, as of `at`."""

    at: datetime
    items: Items
    questions: list[Asked]
    hours: list[Hour]
    people: People
    runs: dict[str, int]
    needs: list[Need]


def overview(project: Project) -> Overview:
    """How the project stands now; figures that are slow to count may be a minute old."""
    items = _kept(project, "items", lambda: _items(project))
    questions = _kept(project, "questions", lambda: _questions(project))
    runs = dict(ScoringRun.objects.filter(project=project).values_list("state").annotate(Count("id")).order_by())
    return Overview(
        at=timezone.now(),
        items=items,
        questions=questions,
        hours=_kept(project, "hours", lambda: _hours(project)),
        people=_kept(project, "people", lambda: _people(project)),
        runs=runs,
        needs=_needs(project, items, questions, runs),
    )


def agreements(project: Project) -> list[Agreed]:
    """Share unanimous and Krippendorff's alpha of every question that has tasks; a minute old at most."""

    def count() -> list[Agreed]:
        asked = project.questions.filter(Exists(Task.objects.filter(question=OuterRef("pk")))).order_by("id")
        return [_agreed(question) for question in asked]

    return _kept(project, "agreement", count)


def _agreed(question: Question) -> Agreed:
    try:
        figures = agreement.of_question(question).figures
    except BeingWorkedOut:
        later = Estimate.undefined("It is being worked out.")
        return Agreed(question.slug, question.title, later, later)
    return Agreed(question.slug, question.title, figures.unanimous, figures.alpha)


def _kept(project: Project, name: str, count: Callable[[], T]) -> T:
    return kept(f"{project.pk}:{name}", count)


def kept(name: str, count: Callable[[], T]) -> T:
    """What `count` says; when it took long, the same again for a hundred times as long as it took, a minute at most."""
    key = f"overview:{name}"
    found: T | None = cache.get(key)
    if found is not None:
        return found
    began = time.perf_counter()
    result = count()
    took = time.perf_counter() - began
    if took > SLOW:
        cache.set(key, result, min(60.0, took / SHARE))
    return result


# ---------------------------------------------------------------- items
def _items(project: Project) -> Items:
    kinds = dict(project.items.values_list("kind").annotate(Count("id")).order_by())
    imports = ImportBatch.objects.filter(project=project).aggregate(
        done=Count("id", filter=Q(state=ImportState.DONE)),
        running=Count("id", filter=Q(state=ImportState.RUNNING)),
        last=Max("finished_at"),
    )
    return Items(sum(kinds.values()), kinds, imports["done"], imports["running"], imports["last"])


# ---------------------------------------------------------------- questions
def _questions(project: Project) -> list[Asked]:
    questions = list(project.questions.order_by("id"))
    versions = dict(Guideline.objects.filter(question__in=questions).values_list("question").annotate(Max("version")).order_by())
    return [_asked(question, versions.get(question.pk, 0)) for question in questions]


def _asked(question: Question, version: int) -> Asked:
    rows = (
        Task.objects.filter(question=question)
        .values("state")
        .annotate(
            count=Count("id"),
            cast=Sum("vote_count"),
            wanted=Sum("votes_required"),
            abstained=Sum("abstention_count"),
            least=Min("votes_required"),
            most=Max("votes_required"),
        )
        .order_by()
    )
    by_state = {row["state"]: row for row in rows}
    counted = [row for state, row in by_state.items() if state != TaskState.RETIRED]
    tasks = sum(row["count"] for row in counted)
    labels, sources, unsettled = _truths(question)
    settled = sum(label.count for label in labels)
    return Asked(
        slug=question.slug,
        title=question.title,
        active=question.active,
        votes_required=question.votes_required,
        least_votes=min((row["least"] for row in counted), default=question.votes_required),
        most_votes=max((row["most"] for row in counted), default=question.votes_required),
        policy=question.policy,
        guideline_version=version,
        tasks=tasks,
        states={state: row["count"] for state, row in by_state.items()},
        votes=sum(row["cast"] for row in counted),
        votes_wanted=sum(row["wanted"] for row in counted),
        votes_retired=by_state[TaskState.RETIRED]["cast"] if TaskState.RETIRED in by_state else 0,
        votes_earlier=sql.the(_EARLIER_ROUNDS, question=question.pk)["votes"],
        abstentions=sum(row["abstained"] for row in counted),
        labels=labels,
        sources=sources,
        unsettled=unsettled,
        positives=_positives(labels, _says_harm(question)),
        provisional=settled < tasks,
        oldest_dispute=Task.objects.filter(question=question, state=TaskState.DISPUTED).aggregate(at=Min("settled_at"))["at"],
        guideline_gaps=Adjudication.objects.filter(
            question=question, reason=RulingReason.GUIDELINE_GAP, guideline__version=version, ruled_at__isnull=False
        ).count(),
        flags=Flag.objects.filter(task__question=question, handled_at=None).count(),
    )


def _truths(question: Question) -> tuple[list[Label], dict[str, int], int]:
    """Labels and sources in force, and how many labels lack their tags.

    Those of retired tasks are few and are taken off: to join all tasks costs five times as much.
    """
    current = GroundTruth.objects.filter(question=question, superseded_at=None)
    labels: Counter[int] = Counter()
    sources: Counter[str] = Counter()
    unsettled = 0
    for found, sign in ((current, 1), (current.filter(task__state=TaskState.RETIRED, task__question=question), -1)):
        for choice, source, lacks, count in found.values_list("choice", "source", "tags_unsettled").annotate(Count("id")).order_by():
            labels[choice] += sign * count
            sources[source] += sign * count
            unsettled += sign * count * lacks
    choices = list(Choice.objects.filter(question=question))
    decided = sum(labels[choice.pk] for choice in choices if not choice.is_unsure)
    told = [Label(choice.value, choice.label, choice.is_unsure, labels[choice.pk], *_share(choice, labels, decided)) for choice in choices]
    return told, dict(+sources), unsettled


def _share(choice: Choice, labels: Counter[int], decided: int) -> tuple[float | None, float | None, float | None]:
    if choice.is_unsure or not decided:
        return None, None, None
    return labels[choice.pk] / decided, *wilson(labels[choice.pk], decided)


def _says_harm(question: Question) -> str:
    """The value of the choice whose share is the one that a study of harm asks for."""
    choices = list(Choice.objects.filter(question=question, is_unsure=False))
    takes_tags = [choice.value for choice in choices if choice.tag_use != TagUse.NONE]
    named = [choice.value for choice in choices if choice.value in HARM]
    return next(iter(takes_tags + named + [choice.value for choice in choices]), "")


def _positives(labels: list[Label], value: str) -> Positives:
    n = sum(label.count for label in labels if not label.is_unsure)
    unsure = sum(label.count for label in labels if label.is_unsure)
    found = next((label for label in labels if label.value == value), None)
    if found is None:
        return Positives("", 0, n, unsure, None, None, None)
    return Positives(found.label, found.count, n, unsure, found.share, found.low, found.high)


# What a task had before it was re-opened.
_EARLIER_ROUNDS = """
    SELECT count(*) AS votes FROM annotation_task AS task
    JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round < task.round
    WHERE task.question_id = %(question)s AND task.round > 1
"""


# ---------------------------------------------------------------- people
# One short range of the index vote_recent for each person and question, however many votes there are.
_RECENT_HOURS = """
SELECT date_trunc('hour', recent.created_at) AS hour, count(*)
FROM annotation_membership AS member
JOIN annotation_question AS question ON question.project_id = member.project_id
JOIN LATERAL (
    SELECT vote.created_at FROM annotation_vote AS vote
    WHERE vote.member_id = member.id AND vote.question_id = question.id AND vote.created_at >= %(since)s
) AS recent ON true
WHERE member.project_id = %(project)s AND member.role <> 'rater'
GROUP BY 1
"""
_ANNOTATORS = """
SELECT member.number, member.active, done.votes - struck.votes, struck.votes, done.today, recent.median
FROM annotation_membership AS member
JOIN LATERAL (
    SELECT count(*) AS votes FROM annotation_voidedvote AS voided WHERE voided.member_id = member.id
) AS struck ON true
JOIN LATERAL (
    SELECT sum(progress.votes) AS votes, sum(CASE WHEN progress.day = current_date THEN progress.votes_on_day ELSE 0 END) AS today
    FROM annotation_progress AS progress WHERE progress.member_id = member.id
) AS done ON done.votes > 0
LEFT JOIN LATERAL (
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY last.elapsed_ms) / 1000 AS median
    FROM annotation_question AS question
    JOIN LATERAL (
        SELECT vote.elapsed_ms FROM annotation_vote AS vote
        WHERE vote.member_id = member.id AND vote.question_id = question.id
        ORDER BY vote.created_at DESC LIMIT %(recent)s
    ) AS last ON last.elapsed_ms IS NOT NULL
    WHERE question.project_id = member.project_id
) AS recent ON true
WHERE member.project_id = %(project)s AND member.role <> 'rater'
ORDER BY done.votes - struck.votes DESC, member.number
LIMIT %(most)s
"""


def _hours(project: Project) -> list[Hour]:
    """The last 24 hours, the one that runs now included, oldest first; hours without votes too."""
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    hours = [now - timedelta(hours=back) for back in range(HOURS - 1, -1, -1)]
    with connection.cursor() as cursor:
        cursor.execute(_RECENT_HOURS, {"project": project.pk, "since": hours[0]})
        counts = dict(cursor.fetchall())
    return [Hour(hour, counts.get(hour, 0)) for hour in hours]


def _people(project: Project) -> People:
    roles = dict(Membership.objects.filter(project=project, active=True).values_list("role").annotate(Count("id")).order_by())
    nameless = len(nameless_members(project.pk))
    raters = roles.pop(Role.RATER, 0) - nameless
    with connection.cursor() as cursor:
        cursor.execute(_ANNOTATORS, {"project": project.pk, "recent": RECENT_VOTES, "most": MOST_ANNOTATORS})
        annotators = [Annotator(row[0], f"Annotator {row[0]}", *row[1:]) for row in cursor.fetchall()]
    voters = Membership.objects.filter(project=project, progress__votes__gt=0).distinct().count()
    return People(roles, annotators, voters, raters, nameless > 0)


# ---------------------------------------------------------------- what needs someone
def _needs(project: Project, items: Items, questions: list[Asked], runs: dict[str, int]) -> list[Need]:
    needs = _failures(project, runs) + [_pause(pause) for pause in known.paused(project)]
    for asked in questions:
        needs += _needs_of(asked, items)
    return needs


def _needs_of(asked: Asked, items: Items) -> list[Need]:
    needs = []
    if waiting := asked.states.get(TaskState.DISPUTED, 0):
        why = f"of {asked.title} {'waits' if waiting == 1 else 'wait'} for an adjudicator"
        needs.append(Need("disputes", _count(waiting, "dispute"), why, asked.slug, waiting, asked.oldest_dispute))
    if gaps := asked.guideline_gaps:
        why = f"{'names' if gaps == 1 else 'name'} a gap in version {asked.guideline_version} of the {asked.title} guideline"
        needs.append(Need("guideline_gaps", _count(gaps, "ruling"), why, asked.slug, gaps))
    if asked.flags:
        needs.append(
            Need("flags", _count(asked.flags, "flag"), f"on tasks of {asked.title}, from those who label", asked.slug, asked.flags)
        )
    if asked.active and not asked.tasks and items.total:
        needs.append(Need("no_tasks", f"{asked.title} has no tasks", "yet, so annotators see nothing of it", asked.slug))
    return needs


def _pause(pause: Pause) -> Need:
    why = f"on {pause.question.title}: {pause.correct} of {pause.answers} known answers right"
    return Need("pause", f"{pause.member.pseudonym} is paused", why, pause.question.slug, since=pause.paused_at, count=1)


def _failures(project: Project, runs: dict[str, int]) -> list[Need]:
    needs = []
    if failed := runs.get(RunState.FAILED, 0):
        needs.append(Need("failed_runs", _count(failed, "run"), f"{'has' if failed == 1 else 'have'} failed", count=failed))
    today = timezone.now() - timedelta(days=1)
    if broken := ImportBatch.objects.filter(project=project, state=ImportState.FAILED, created_at__gte=today).count():
        needs.append(Need("failed_imports", _count(broken, "import"), "failed since yesterday", count=broken))
    return needs


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
