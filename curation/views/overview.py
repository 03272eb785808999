"""The overview: how a project stands, and what needs its researcher."""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince
from django.views.decorators.http import require_GET

from annotation import access
from annotation.models import Membership, Project, Role
from curation.overview import LIVE, Asked, Hour, Label, Need, Overview, agreements, overview
from scoring import progress
from scoring.models import RunState
from scoring.progress import Standing
from scoring.views import workers_panel
from workers import health

RUNS_SHOWN = 5


@require_GET
def show(request: HttpRequest, project: str) -> HttpResponse:
    """The page; for htmx the part that is drawn again every few seconds."""
    member = access.researcher(request.user, project)
    found = overview(member.project)
    first = _first_steps(member.project, found)
    live = bool(request.headers.get("HX-Request"))
    return render(
        request,
        "curation/_overview.html" if live else "curation/overview.html",
        {
            "member": member,
            "here": "overview",
            "overview": found,
            "needs": [_unheard(member.project, sentence) for sentence in health.queue_health(member.project)] + _waiting(member, found),
            "first_steps": first,
            "next_step": next((step for step in first if not step.done), None),
            "questions": [_rows(asked) for asked in found.questions if asked.tasks],
            "agreements": agreements(member.project),
            "bars": bars(found.hours),
            "standings": _runs(member.project),
            "finished": sum(count for state, count in found.runs.items() if state not in LIVE),
        }
        | workers_panel(member),
    )


# ---------------------------------------------------------------- what needs you
@dataclass(frozen=True)
class Line:
    """A line of the list: an icon, a sentence whose first words are strong, and the one thing to do."""

    icon: str
    need: Need
    link: str
    do: str

    @property
    def since(self) -> str:
        """How long it waits, in one unit: the oldest for 5 hours."""
        if self.need.since is None or timezone.now() - self.need.since < timedelta(minutes=1):
            return ""
        span = timesince(self.need.since, depth=1)
        return f", for {span}" if self.need.count == 1 else f", the oldest for {span}"


def _waiting(member: Membership, found: Overview) -> list[Line]:
    slug = member.project.slug
    lines = []
    for need in found.needs:
        icon, link, do = {
            "disputes": ("scales", reverse("disputes", args=[slug]), "Open disputes"),
            "guideline_gaps": ("book", reverse("gaps", args=[slug, need.question]) if need.question else "", "Read the list"),
            "flags": ("flag", reverse("flags", args=[slug]), "Look at them"),
            "pause": ("pause", reverse("known", args=[slug, need.question]) if need.question else "", "Decide"),
            "no_tasks": ("dice", f"{reverse('tasks_new', args=[slug])}?{urlencode({'question': need.question})}", "Make tasks"),
            "failed_runs": ("warn", reverse("runs", args=[slug]), "See why"),
            "failed_imports": ("warn", reverse("imports", args=[slug]), "See why"),
        }[need.kind]
        lines.append(Line(icon, need, link, do))
    return lines


def _unheard(project: Project, sentence: str) -> Line:
    what, _, why = sentence.partition(". ")[0].partition(" and ")
    return Line("pause", Need("unheard_queue", what, f"and {why}"), reverse("runs", args=[project.slug]), "See the runs")


@dataclass(frozen=True)
class Step:
    """One of the first things to do in a new project."""

    done: bool
    what: str
    why: str
    link: str
    do: str


def _first_steps(project: Project, found: Overview) -> list[Step]:
    """What a new project still lacks to collect its first vote; empty once it has all of it."""
    slug = project.slug
    tasks = any(asked.tasks for asked in found.questions)
    voters = found.people.roles.get(Role.ANNOTATOR, 0)
    steps = [
        Step(
            found.items.total > 0,
            "Import items",
            "Texts from a table or JSONL file, pictures from a folder or a ZIP.",
            reverse("import_new", args=[slug]),
            "Import a file",
        ),
        Step(bool(found.questions), "Make a question", "Four come ready-made.", reverse("question_new", args=[slug]), "Make a question"),
        Step(tasks, "Make tasks", "From a sample of the items, or from all of them.", reverse("tasks_new", args=[slug]), "Make tasks"),
        Step(voters > 0, "Let annotators in", "As many as a task wants, and an adjudicator.", reverse("people", args=[slug]), "Add people"),
    ]
    return [] if all(step.done for step in steps) else steps


# ---------------------------------------------------------------- from items to ground truth
@dataclass(frozen=True)
class Row:
    """A line of the table: how many, of how many, and the bar: solid from `start` to `end`, then waiting up to `open_end`, in percent."""

    name: str
    sub: str
    count: int
    of: int
    note: str = ""
    start: float = 0.0
    waiting: int = 0

    @property
    def share(self) -> float | None:
        return 100 * self.count / self.of if self.of else None

    @property
    def bar(self) -> dict[str, str]:
        """Lengths as SVG takes them, whatever the language of the page."""
        scale = 100 / self.of if self.of else 0
        solid = (self.count - self.waiting) * scale
        return {
            "x": f"{self.start:.2f}",
            "solid": f"{solid:.2f}",
            "at": f"{self.start + solid:.2f}",
            "waiting": f"{self.waiting * scale:.2f}",
        }


def _rows(asked: Asked) -> dict[str, object]:
    states = asked.states
    agreed, ruled, waiting = states.get("agreed", 0), states.get("adjudicated", 0), states.get("disputed", 0)
    still_open = states.get("open", 0)
    rule = "all the same" if asked.policy == "unanimous" else "more than half the same"
    sources = ", ".join(f"{count:,} {source}" for source, count in sorted(asked.sources.items(), reverse=True))
    if asked.unsettled:
        sources += f"; {asked.unsettled:,} {'lacks its' if asked.unsettled == 1 else 'lack their'} tag: none had a majority"
    each = f"{asked.least_votes}" if asked.least_votes == asked.most_votes else f"{asked.least_votes} to {asked.most_votes}"
    votes = f"{each} a task, {asked.votes_wanted:,} in all"
    rows = [
        Row("Votes", votes, asked.votes, asked.votes_wanted, _beside(asked)),
        Row("Agreed", rule, agreed, asked.tasks, f"{still_open:,} still open" if still_open else "none open"),
        Row(
            "Disputed", f"{ruled:,} ruled, {waiting:,} waiting", ruled + waiting, asked.tasks,
            start=100 * agreed / asked.tasks, waiting=waiting,
        ),
    ]  # fmt: skip
    truth = Row("Ground truth", sources or "none yet", asked.settled, asked.tasks)
    return {"asked": asked, "rows": rows, "truth": truth, "shares": [Share(label, asked) for label in asked.labels if asked.settled]}


def _beside(asked: Asked) -> str:
    """What was given and is not among the votes: so that the sums of the page can be told apart."""
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (asked.abstentions, "abstained"),
            (asked.votes_retired, "more on retired tasks"),
            (asked.votes_earlier, "more of earlier rounds"),
        )
        if count
    ]
    return "; ".join(parts)


@dataclass(frozen=True)
class Share:
    """A choice's part of the labels: its bar as part of all of them, unsure ones included."""

    label: Label
    asked: Asked

    @property
    def line(self) -> Row:
        return Row(self.label.label, "", self.label.count, self.asked.settled)

    @property
    def percents(self) -> tuple[str, str, str] | None:
        """Share, low and high in percent, as the page says them; None for unsure, and where all are."""
        if self.label.share is None or self.label.low is None or self.label.high is None:
            return None
        return f"{100 * self.label.share:.1f}", f"{100 * self.label.low:.0f}", f"{100 * self.label.high:.0f}"

    @property
    def of(self) -> int:
        return self.asked.positives.n


# ---------------------------------------------------------------- votes per hour
@dataclass(frozen=True)
class Bar:
    """A bar of the figure in its units (352 x 138), as SVG attributes; `label` where the axis names the hour."""

    hour: Hour
    x: str
    y: str
    height: str
    middle: str
    label: str


@dataclass(frozen=True)
class Bars:
    """The figure: its bars, the marks of its axis (position, number) and what it says in words."""

    bars: list[Bar]
    marks: list[tuple[str, str, int]]
    total: int
    said: str


def bars(hours: list[Hour]) -> Bars:
    """Votes an hour as bars of the look: 12.9 units apart, 102 high at the top mark."""
    total = sum(hour.votes for hour in hours)
    top = _round_up(max((hour.votes for hour in hours), default=0))
    drawn = []
    for number, hour in enumerate(hours):
        x, height = 37 + 13.1 * number, 102 * hour.votes / top
        label = f"{hour.at:%H}:00" if hour.at.hour % 6 == 0 else ""
        drawn.append(Bar(hour, f"{x:.1f}", f"{112 - height:.1f}", f"{height:.1f}", f"{x + 5:.1f}", label))
    marks = [(f"{112 - 102 * part:.0f}", f"{116 - 102 * part:.0f}", round(top * part)) for part in (0, 0.5, 1)]
    most = max(hours, key=lambda hour: hour.votes)
    said = f"{total:,} votes in the last {len(hours)} hours; most, {most.votes:,}, in the hour from {most.at:%H}:00 UTC." if total else ""
    return Bars(drawn, marks, total, said)


def _round_up(most: int) -> int:
    """The top mark: an even 1, 2, 4, 6 or 8 times a power of ten, at least 2, so that its half is whole."""
    power = 1
    while True:
        for first in (2, 4, 6, 8, 10):
            if first * power >= most:
                return first * power
        power *= 10


def _runs(project: Project) -> list[Standing]:
    """Runs that live, the newest first; when none does, the last one that ended."""
    found = progress.runs_of(project)
    shown = list(found.filter(state__in=LIVE)[:RUNS_SHOWN]) or list(found.exclude(state=RunState.CANCELLED)[:1])
    return [progress.standing(run) for run in shown]
