"""A run from start to end, through the services, with the chunk's claims as workers see them."""

import uuid

import pytest
from django.db import IntegrityError, connection, transaction

from annotation.errors import Conflict, Invalid
from scoring import runs, working
from scoring.models import Chunk, Failure, Score, Scorer, ScoringRun
from scoring.scorers import kinds
from scoring.working import Bench
from tests.cast import Cast, make_items

PROFANITY = kinds()["profanity"]


@pytest.fixture
def scorer(cast: Cast) -> Scorer:
    return runs.create_scorer(cast.project, "words", "profanity", {}, cast.bob.user)[0]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(PROFANITY), "chunk_size", 4)


def age(chunk_id: int, seconds: int) -> None:
    """As if the chunk's worker had been silent for so long."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scoring_chunk SET heartbeat_at = now() - %s * interval '1 second' WHERE id = %s", [seconds, chunk_id])


def all_scored(claimed: runs.Claimed, value: float = 0.5) -> dict[int, dict[str, float]]:
    return {item: {"toxicity": value} for item in claimed.item_ids}


def test_a_run_scores_every_item_once(cast: Cast, scorer: Scorer, bench: Bench, small_chunks: None) -> None:
    items = make_items(cast.project, 10)
    run = runs.start_run(scorer, [item.pk for item in items], cast.bob.user)
    assert (run.state, run.total, run.chunks.count()) == ("queued", 10, 3)
    assert working.work_on(run.pk, bench) is False
    run.refresh_from_db()
    assert (run.state, run.done, run.failed) == ("done", 10, 0)
    assert run.started_at is not None
    assert run.finished_at is not None
    assert Score.objects.filter(scorer=scorer, name="toxicity", value__gte=0, value__lte=1).count() == 10


def test_a_second_run_leaves_out_what_is_scored_and_counts_it(cast: Cast, scorer: Scorer, bench: Bench) -> None:
    items = make_items(cast.project, 6)
    working.work_on(runs.start_run(scorer, [item.pk for item in items[:4]], cast.bob.user).pk, bench)
    second = runs.start_run(scorer, None, cast.bob.user)
    assert (second.total, second.already_scored) == (2, 4)
    working.work_on(second.pk, bench)
    assert Score.objects.count() == 6
    with pytest.raises(Conflict, match=r"All 6 items already have scores of words v1\."):
        runs.start_run(scorer, None, cast.bob.user)
    assert ScoringRun.objects.count() == 2


def test_items_of_another_project_are_refused(cast: Cast, scorer: Scorer) -> None:
    theirs = make_items(cast.mallory.project, 2)
    with pytest.raises(Invalid, match="2 of these are no text items of this project"):
        runs.start_run(scorer, [item.pk for item in theirs], cast.bob.user)
    assert not ScoringRun.objects.exists()


def test_a_quarantined_item_is_never_scored(cast: Cast, scorer: Scorer, bench: Bench) -> None:
    items = make_items(cast.project, 2)
    make_items(cast.project, 1, start=2, quarantined=True)
    run = runs.start_run(scorer, None, cast.bob.user)
    assert run.total == 2
    items[0].quarantined = True
    items[0].save()
    working.work_on(run.pk, bench)
    assert Failure.objects.get().reason == "The item was quarantined or is gone."
    assert list(Score.objects.values_list("item_id", flat=True)) == [items[1].pk]


def test_an_empty_text_fails_alone(cast: Cast, scorer: Scorer, bench: Bench) -> None:
    items = make_items(cast.project, 3)
    items[1].text = "  \n"
    items[1].save()
    run = runs.start_run(scorer, None, cast.bob.user)
    working.work_on(run.pk, bench)
    run.refresh_from_db()
    assert (run.state, run.done, run.failed) == ("done", 2, 1)
    assert Failure.objects.values_list("item_id", "reason").get() == (items[1].pk, "The text is empty.")


def test_pausing_stops_claims_and_resuming_goes_on(cast: Cast, scorer: Scorer, bench: Bench, small_chunks: None) -> None:
    make_items(cast.project, 8)
    run = runs.start_run(scorer, None, cast.bob.user)
    first = runs.claim_chunk(run.pk, "worker-1")
    assert first is not None
    run = runs.pause(run, cast.bob.user)
    assert (run.state, run.paused_by) == ("paused", cast.bob.user)
    assert runs.claim_chunk(run.pk, "worker-1") is None
    assert runs.store(first, all_scored(first), {})  # what was in work when it was paused is kept
    run = runs.resume(run, cast.bob.user)
    assert (run.state, run.paused_by, run.done) == ("queued", None, 4)
    working.work_on(run.pk, bench)
    run.refresh_from_db()
    assert (run.state, run.done) == ("done", 8)
    with pytest.raises(Conflict, match="This run is done; it cannot be paused"):
        runs.pause(run, cast.bob.user)


def test_after_a_cancel_nothing_is_stored(cast: Cast, scorer: Scorer) -> None:
    make_items(cast.project, 3)
    run = runs.start_run(scorer, None, cast.bob.user)
    claimed = runs.claim_chunk(run.pk, "worker-1")
    assert claimed is not None
    runs.cancel(run, cast.bob.user)
    assert not runs.store(claimed, all_scored(claimed), {})
    assert not Score.objects.exists()
    assert runs.claim_chunk(run.pk, "worker-1") is None
    with pytest.raises(Conflict, match="This run is cancelled; it cannot be resumed"):
        runs.resume(run, cast.bob.user)


def test_a_silent_workers_chunk_is_taken_over_and_its_late_scores_are_refused(cast: Cast, scorer: Scorer) -> None:
    make_items(cast.project, 3)
    run = runs.start_run(scorer, None, cast.bob.user)
    first = runs.claim_chunk(run.pk, "worker-1")
    assert first is not None
    assert runs.claim_chunk(run.pk, "worker-2") is None
    age(first.chunk_id, 10)
    assert runs.claim_chunk(run.pk, "worker-2") is None  # ten seconds are no silence yet
    age(first.chunk_id, 16)
    second = runs.claim_chunk(run.pk, "worker-2")
    assert second is not None
    assert (second.chunk_id, second.taken_over) == (first.chunk_id, True)
    assert not runs.beat(first)
    assert not runs.store(first, all_scored(first, 0.1), {})
    assert runs.store(second, all_scored(second, 0.9), {})
    assert set(Score.objects.values_list("value", flat=True)) == {0.9}
    run.refresh_from_db()
    assert (run.state, run.done) == ("done", 3)


def test_a_silent_chunk_of_another_run_in_the_queue_comes_first(cast: Cast, scorer: Scorer, small_chunks: None) -> None:
    items = make_items(cast.project, 12)
    first = runs.start_run(scorer, [item.pk for item in items[:4]], cast.bob.user)
    second = runs.start_run(scorer, [item.pk for item in items[4:]], cast.bob.user)
    lost = runs.claim_chunk(first.pk, "worker-1")
    assert lost is not None
    age(lost.chunk_id, 16)
    taken = runs.claim_chunk(second.pk, "worker-2")
    assert taken is not None
    assert taken.run_id == first.pk


def test_storing_a_chunk_twice_counts_it_once(cast: Cast, scorer: Scorer) -> None:
    items = make_items(cast.project, 3)
    run = runs.start_run(scorer, None, cast.bob.user)
    claimed = runs.claim_chunk(run.pk, "worker-1")
    assert claimed is not None
    scores = {item: {"toxicity": 0.5} for item in claimed.item_ids[1:]}
    failures = {items[0].pk: "The text is empty."}
    assert runs.store(claimed, scores, failures)
    assert runs.store(claimed, scores, failures)
    run.refresh_from_db()
    assert (run.done, run.failed, Score.objects.count(), Failure.objects.count()) == (2, 1, 2, 1)


def test_a_store_that_leaves_an_item_out_is_refused(cast: Cast, scorer: Scorer) -> None:
    make_items(cast.project, 3)
    run = runs.start_run(scorer, None, cast.bob.user)
    claimed = runs.claim_chunk(run.pk, "worker-1")
    assert claimed is not None
    with pytest.raises(ValueError, match="has 3 items, not 1 scored and 0 failed"):
        runs.store(claimed, {claimed.item_ids[0]: {"toxicity": 0.5}}, {})


def test_a_chunk_that_keeps_stopping_its_workers_ends_the_run(cast: Cast, scorer: Scorer) -> None:
    make_items(cast.project, 3)
    run = runs.start_run(scorer, None, cast.bob.user)
    for attempt in range(3):
        claimed = runs.claim_chunk(run.pk, f"worker-{attempt}")
        assert claimed is not None
        age(claimed.chunk_id, 16)
    assert runs.claim_chunk(run.pk, "worker-4") is None
    run.refresh_from_db()
    assert run.state == "failed"
    assert run.error.startswith("Chunk 1 stopped its worker 3 times")
    runs.resume(run, cast.bob.user)
    assert runs.claim_chunk(run.pk, "worker-5") is not None


def test_runs_take_turns(cast: Cast, scorer: Scorer, small_chunks: None) -> None:
    items = make_items(cast.project, 16)
    first = runs.start_run(scorer, [item.pk for item in items[:8]], cast.bob.user)
    second = runs.start_run(scorer, [item.pk for item in items[8:]], cast.bob.user)
    assert runs.next_run(["cpu"]) == first.pk
    assert runs.next_run(["gpu"]) is None
    claimed = runs.claim_chunk(first.pk, "worker-1")
    assert claimed is not None
    runs.store(claimed, all_scored(claimed), {})
    assert runs.next_run(["cpu"]) == second.pk
    claimed = runs.claim_chunk(second.pk, "worker-1")
    assert claimed is not None
    assert runs.next_run(["cpu"]) == first.pk


def test_the_database_itself_refuses_a_score_that_is_no_number(cast: Cast, scorer: Scorer) -> None:
    item = make_items(cast.project, 1)[0]
    for value in (float("nan"), float("inf")):
        with pytest.raises(IntegrityError), transaction.atomic():
            Score.objects.create(scorer=scorer, item=item, name="toxicity", value=value)


def test_a_chunk_cannot_be_stored_under_a_claim_that_never_was(cast: Cast, scorer: Scorer) -> None:
    make_items(cast.project, 1)
    run = runs.start_run(scorer, None, cast.bob.user)
    chunk = Chunk.objects.get(run=run)
    forged = runs.Claimed(chunk.pk, run.pk, scorer.pk, 1, uuid.uuid4(), chunk.item_ids, taken_over=False)
    assert not runs.store(forged, all_scored(forged), {})
