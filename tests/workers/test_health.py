"""Worker health in words."""

from datetime import timedelta

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError

from scoring import runs
from scoring.models import ScoringRun, Worker
from tests.cast import Cast, make_items
from workers import health, process, tasks


@pytest.fixture
def run(cast: Cast) -> ScoringRun:
    make_items(cast.project, 3)
    return runs.start_run(runs.create_scorer(cast.project, "words", "profanity", {}, None)[0], None, None)


def silent_for(name: str, seconds: int) -> None:
    Worker.objects.filter(name=name).update(seen_at=timezone.now() - timedelta(seconds=seconds))


def test_a_queue_nobody_listens_to_is_said_in_words(cast: Cast, run: ScoringRun) -> None:
    ScoringRun.objects.filter(pk=run.pk).update(queue="gpu")
    health.report("cpu-1", ["cpu"], "cpu", "")
    assert health.queue_health(cast.project) == [
        "1 run waits on the gpu queue and no worker listens to it. Start one with: python manage.py worker --queue gpu"
    ]
    assert health.queue_health(cast.mallory.project) == []
    health.report("gpu-1", ["gpu"], "cuda", "")
    assert health.queue_health(cast.project) == []
    silent_for("gpu-1", 31)
    assert health.queue_health(cast.project) != []


def test_a_paused_run_waits_for_nobody(cast: Cast, run: ScoringRun) -> None:
    assert health.chunks_waiting(cast.project) == 1
    runs.pause(run, cast.bob.user)
    assert health.queue_health(cast.project) == []
    assert health.chunks_waiting(cast.project) == 0


def test_a_lost_worker_says_who_took_its_chunk(cast: Cast, run: ScoringRun) -> None:
    health.report("cpu-1", ["cpu"], "cpu", "run 1, chunk 1")
    health.report("cpu-2", ["cpu"], "cpu", "")
    claimed = runs.claim_chunk(run.pk, "cpu-1")
    assert claimed is not None
    silent_for("cpu-1", 400)
    run.chunks.update(heartbeat_at=timezone.now() - timedelta(seconds=400))
    assert runs.claim_chunk(run.pk, "cpu-2") is not None
    living, lost = health.workers()
    assert (living.name, living.lost, living.doing) == ("cpu-2", False, "idle")
    assert (lost.name, lost.lost, lost.silent) == ("cpu-1", True, "6 min")
    assert lost.doing == f"lost; chunk 1 of run {run.pk} was taken over by cpu-2"


def test_a_worker_that_leaves_is_not_lost(db: None) -> None:
    health.report("cpu-1", ["cpu"], "cpu", "")
    health.leave("cpu-1")
    assert health.workers() == []


def test_a_worker_of_the_day_before_yesterday_is_forgotten(db: None) -> None:
    health.report("old", ["cpu"], "cpu", "")
    silent_for("old", 2 * 86_400)
    health.report("new", ["cpu"], "cpu", "")
    assert [worker.name for worker in health.workers()] == ["new"]


def test_a_message_works_on_its_run_and_hands_on_only_what_is_left(run: ScoringRun, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(tasks, "_send", lambda *given: sent.append(given[0]) or True)
    tasks.work_on_run(run.pk)
    run.refresh_from_db()
    assert (run.state, sent) == ("done", [])
    tasks.work_on_run(run.pk)  # a message that came twice does nothing
    assert process.bench().machine.device == "cpu"


def test_starting_a_run_without_a_broker_is_no_error(run: ScoringRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*args: object, **kwargs: object) -> None:
        raise OperationalError("nobody there")

    monkeypatch.setattr(tasks.work_on_run, "apply_async", unreachable)
    tasks.wake(run)
