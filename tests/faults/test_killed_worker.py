"""Workers that are killed, stopped, or cut off from the broker: every score is there once, and nothing waits for ever."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import scoring.scorers
from scoring import runs
from scoring.models import Chunk, Score, Scorer, ScoringRun, Worker
from scoring.scorers import kinds
from tests.cast import make_items, make_project
from tests.faults import worker_processes as real

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slow() -> Iterator[Scorer]:
    """The slow scorer in a project of 60 items: six chunks of half a second."""
    folder = str(Path(__file__).with_name("kinds"))
    scoring.scorers.__path__.append(folder)
    kinds.cache_clear()
    project = make_project()
    make_items(project, 60)
    yield runs.create_scorer(project, "slow", "slow", {}, None)[0]
    scoring.scorers.__path__.remove(folder)
    kinds.cache_clear()


def killed_run(slow: Scorer, silence: float | None) -> float:
    """One worker is killed with a chunk in its hand, another finishes; seconds from the kill until its chunk was taken."""
    environment = real.environment(silence=silence)
    with real.worker(environment, "--concurrency", "1") as first:
        real.wait_for("the first worker reports", Worker.objects.exists)
        run = runs.start_run(slow, None, None)
        real.wait_for("a chunk is stored", lambda: Chunk.objects.filter(state="done").exists())
        real.wait_for("a chunk is in hand", lambda: Chunk.objects.filter(state="claimed").exists())
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        killed = time.monotonic()
    held = list(Chunk.objects.filter(state="claimed").values_list("pk", flat=True))
    assert held
    with real.worker(environment):
        real.wait_for("its chunk is taken over", lambda: not Chunk.objects.filter(pk__in=held, worker__contains=f"-{first.pid}").exists())
        took = time.monotonic() - killed
        real.wait_for("the run is done", lambda: ScoringRun.objects.get(pk=run.pk).state == "done")
        assert "was taken over by" in Worker.objects.get(name__endswith=f"-{first.pid}").doing
    run.refresh_from_db()
    assert (run.done, run.failed, Score.objects.count()) == (60, 0, 60)
    assert Score.objects.values("item").distinct().count() == 60
    return took


def test_a_killed_workers_chunk_is_finished_by_another_and_every_score_is_stored_once(slow: Scorer) -> None:
    killed_run(slow, silence=3)


@pytest.mark.slow
def test_a_killed_workers_chunk_is_taken_over_within_thirty_seconds(slow: Scorer) -> None:
    assert killed_run(slow, silence=None) < 30


def test_a_run_from_the_command_line_goes_through_the_broker_and_the_worker_leaves_cleanly(slow: Scorer) -> None:
    environment = real.environment()
    with real.worker(environment) as worker:
        real.wait_for("the worker reports", Worker.objects.exists)
        done = real.manage("score", "study", "slow", "--wait", "--json", environment=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        report = json.loads(done.stdout.strip().splitlines()[-1])
        assert (report["state"], report["done"], report["failed"]) == ("done", 60, 0)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert not Worker.objects.exists()


def test_a_worker_asked_to_stop_finishes_its_chunk_and_leaves_the_rest(slow: Scorer) -> None:
    with real.worker(real.environment(), "--concurrency", "1") as worker:
        real.wait_for("the worker reports", Worker.objects.exists)
        run = runs.start_run(slow, None, None)
        real.wait_for("a chunk is in hand", lambda: Chunk.objects.filter(state="claimed").exists())
        worker.send_signal(signal.SIGTERM)
        worker.wait(20)
    states = dict.fromkeys(Chunk.objects.values_list("state", flat=True))
    assert "claimed" not in states
    assert "waiting" in states
    run.refresh_from_db()
    assert run.state == "running"
    assert run.done == 10 * Chunk.objects.filter(state="done").count() == Score.objects.count()


def test_without_a_broker_a_worker_finds_the_run_by_itself(slow: Scorer, tmp_path: Path) -> None:
    run = runs.start_run(slow, None, None)
    with real.worker(real.environment(broker=f"redis+socket://{tmp_path}/nobody.sock")):
        real.wait_for("the run is done", lambda: ScoringRun.objects.get(pk=run.pk).state == "done")
    assert Score.objects.count() == 60
