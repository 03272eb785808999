"""How runs and scorers stand: the figures that pages, API and commands show."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from annotation.models import Project, User
from scoring.models import RunState, Scorer, ScoringRun
from scoring.runs import ACTIVE, SILENCE

RECENT = timedelta(seconds=60)
MOST_COUNTED = 1_000_000


@dataclass(frozen=True)
class Holder:
    """A worker's part in a run: chunks stored, chunks in hand, and how long the quietest of those has been silent."""

    worker: str
    stored: int
    in_hand: int
    silent_seconds: int | None

    @property
    def silent(self) -> bool:
        return self.silent_seconds is not None and self.silent_seconds > SILENCE.total_seconds()


@dataclass(frozen=True)
class Standing:
    """A run as it stands. `rate` (items/s of late) and `left` are None while nothing can be said of them."""

    run: ScoringRun
    chunks: int
    chunks_done: int
    rate: float | None
    left: timedelta | None
    took: timedelta | None
    holders: list[Holder]
    changed_at: datetime | None
    changed_by: str

    @property
    def handled(self) -> int:
        """Items that are scored or failed."""
        return self.run.done + self.run.failed

    @property
    def active(self) -> bool:
        return self.run.state in ACTIVE

    @property
    def ended(self) -> bool:
        return self.run.state in (RunState.DONE, RunState.CANCELLED)


_CHUNKS = """
SELECT count(*), count(*) FILTER (WHERE state = 'done'),
       sum(cardinality(item_ids)) FILTER (WHERE state = 'done' AND heartbeat_at > now() - %s)
FROM scoring_chunk WHERE run_id = %s
"""
_HOLDERS = """
SELECT worker, count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'claimed'),
       extract(epoch FROM now() - min(heartbeat_at) FILTER (WHERE state = 'claimed'))::int
FROM scoring_chunk WHERE run_id = %s AND worker <> '' AND state <> 'waiting'
GROUP BY worker ORDER BY worker
"""


def standing(run: ScoringRun) -> Standing:
    """Reads the run's chunks: a few thousand rows for a million items."""
    with connection.cursor() as cursor:
        cursor.execute(_CHUNKS, [RECENT, run.pk])  # type: ignore[list-item]
        chunks, chunks_done, recent = cursor.fetchone()
        cursor.execute(_HOLDERS, [run.pk])
        holders = [Holder(*row) for row in cursor.fetchall()]
    changed_at, changed_by = _last_change(run)
    rate = _rate(run, recent or 0)
    remaining = run.total - run.done - run.failed
    took = run.finished_at - run.started_at if run.finished_at and run.started_at else None
    left = timedelta(seconds=round(remaining / rate)) if rate else None
    return Standing(run, chunks, chunks_done, rate, left, took, holders, changed_at, changed_by)


def _rate(run: ScoringRun, recent: int) -> float | None:
    if run.state != RunState.RUNNING or run.started_at is None:
        return None
    ran = max((timezone.now() - run.started_at).total_seconds(), 0.001)
    found = recent / min(ran, RECENT.total_seconds()) or (run.done + run.failed) / ran
    return found or None


def _last_change(run: ScoringRun) -> tuple[datetime | None, str]:
    """When the run came into its state and by whom, from the audit trail."""
    event = run.state_error_paused_by_events.select_related("pgh_context").order_by("-pgh_id").first()  # type: ignore[attr-defined]
    if event is None:
        return None, ""
    by = event.pgh_context.metadata.get("user") if event.pgh_context else None
    user = run.paused_by or (User.objects.filter(pk=by).first() if by else None)
    return event.pgh_created_at, run.project.name_of(user) if user else ""


def in_words(span: timedelta | None) -> str:
    """45 s, 1 min 42 s, 2 h 5 min."""
    if span is None:
        return ""
    seconds = max(round(span.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s" if seconds else "under 1 s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def runs_of(project: Project) -> QuerySet[ScoringRun]:
    """The project's runs, newest first."""
    return ScoringRun.objects.filter(project=project).select_related("scorer", "paused_by", "created_by").order_by("-pk")


def scored_items(scorer: Scorer) -> tuple[int, bool]:
    """How many items have this version's scores, and whether there are more: it counts to a million and no further."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM scoring_score WHERE scorer_id = %s AND name = %s LIMIT %s) AS found",
            [scorer.pk, (scorer.score_names or [""])[0], MOST_COUNTED + 1],
        )
        found: int = cursor.fetchone()[0]
    return min(found, MOST_COUNTED), found > MOST_COUNTED
