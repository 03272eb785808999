"""Which workers live, what they do, and, in words, what waits with nobody to do it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count
from django.utils import timezone

from annotation.models import Project
from scoring.models import Chunk, ChunkState, RunState, ScoringRun, Worker

REPORT = 5.0  # seconds between reports
LOST_AFTER = timedelta(seconds=30)
FORGOTTEN_AFTER = timedelta(days=1)


def report(name: str, queues: Sequence[str], device: str, doing: str) -> None:
    """The worker lives, and this is what it does."""
    now = timezone.now()
    Worker.objects.update_or_create(name=name, defaults={"queues": list(queues), "device": device, "doing": doing[:120], "seen_at": now})
    Worker.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()


def leave(name: str) -> None:
    """The worker ended as it should."""
    Worker.objects.filter(name=name).delete()


@dataclass(frozen=True)
class Health:
    """A worker as the panel shows it."""

    name: str
    queues: list[str]
    device: str
    doing: str
    seen_at: datetime
    lost: bool
    silent: str


def workers() -> list[Health]:
    """Every worker heard of in the last day, the living ones first."""
    now = timezone.now()
    found = [
        Health(
            worker.name,
            worker.queues,
            worker.device,
            _doing(worker.doing, lost=now - worker.seen_at > LOST_AFTER),
            worker.seen_at,
            now - worker.seen_at > LOST_AFTER,
            short(now - worker.seen_at),
        )
        for worker in Worker.objects.order_by("name")
    ]
    return sorted(found, key=lambda worker: worker.lost)


def _doing(doing: str, *, lost: bool) -> str:
    if not lost:
        return doing or "idle"
    if "taken over" in doing:
        return f"lost; {doing}"
    return f"lost while on {doing}" if doing else "lost while idle"


def short(span: timedelta) -> str:
    """2 s, 6 min, 3 h."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 3600 else f"{seconds // 3600} h"


def chunks_waiting(project: Project) -> int:
    """Chunks of the project that no worker has yet."""
    return Chunk.objects.filter(run__project=project, run__state__in=[RunState.QUEUED, RunState.RUNNING], state=ChunkState.WAITING).count()


def listening(queue: str) -> bool:
    """Whether a living worker takes this queue's work."""
    living = Worker.objects.filter(seen_at__gte=timezone.now() - LOST_AFTER)
    return any(queue in queues for queues in living.values_list("queues", flat=True))


def queue_health(project: Project) -> list[str]:
    """A sentence for each queue that has this project's work and no living worker; empty when all is well."""
    waiting = (
        ScoringRun.objects.filter(project=project, state__in=[RunState.QUEUED, RunState.RUNNING])
        .values("queue")
        .annotate(runs=Count("id"))
        .order_by("queue")
    )
    return [_nobody(row["queue"], row["runs"]) for row in waiting if not listening(row["queue"])]


def _nobody(queue: str, count: int) -> str:
    wait = "1 run waits" if count == 1 else f"{count:,} runs wait"
    return f"{wait} on the {queue} queue and no worker listens to it. Start one with: python manage.py worker --queue {queue}"
