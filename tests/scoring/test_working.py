"""What a worker does with good scorers, bad ones, and single bad items."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from scoring import runs, working
from scoring.models import Failure, Score
from scoring.scorers import kinds
from scoring.scorers.base import Config, Machine, Prepared, Result, Unusable
from scoring.working import Bench
from tests.cast import Cast, make_items

LABELS = {"harmless": "-", "toxic": "toxicity"}


class Scripted(Prepared):
    """Answers as the test says: a number, or an exception for texts that name a number."""

    def __init__(self, answers: dict[str, float | None]) -> None:
        self.answers, self.batches = answers, 0

    def score(self, texts: Sequence[str]) -> list[Result]:
        self.batches += 1
        found: list[Result] = []
        for text in texts:
            answer = next((value for part, value in self.answers.items() if part in text), 0.5)
            if answer is None:
                raise RuntimeError("the model stumbled")
            found.append({"toxicity": answer})
        return found


def scripted(monkeypatch: pytest.MonkeyPatch, answers: dict[str, float | None]) -> Scripted:
    prepared = Scripted(answers)

    def prepare(self: object, config: Config, machine: Machine) -> Prepared:
        return prepared

    monkeypatch.setattr(type(kinds()["profanity"]), "prepare", prepare)
    return prepared


def test_one_item_that_the_model_stumbles_over_fails_alone(cast: Cast, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, {"number 3.": None, "number 5.": math.nan, "number 6.": 1.5})
    items = make_items(cast.project, 8)
    run = runs.start_run(runs.create_scorer(cast.project, "words", "profanity", {}, None)[0], None, None)
    working.work_on(run.pk, bench)
    run.refresh_from_db()
    assert (run.state, run.done, run.failed) == ("done", 5, 3)
    assert dict(Failure.objects.values_list("item_id", "reason")) == {
        items[3].pk: "The scorer failed on it: RuntimeError: the model stumbled",
        items[5].pk: "toxicity is not a finite number.",
        items[6].pk: "toxicity is 1.5, outside 0 to 1.",
    }


def test_a_scorer_that_fails_on_everything_fails_the_run_with_its_reason(cast: Cast, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, {"": None})
    make_items(cast.project, 8)
    run = runs.start_run(runs.create_scorer(cast.project, "words", "profanity", {}, None)[0], None, None)
    working.work_on(run.pk, bench)
    run.refresh_from_db()
    assert (run.state, run.done, run.failed) == ("failed", 0, 0)
    assert run.error == "The scorer failed on every item of a chunk: The scorer failed on it: RuntimeError: the model stumbled"


def test_a_scorer_is_loaded_once_however_many_chunks_and_runs(cast: Cast, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(kinds()["profanity"])
    monkeypatch.setattr(kind, "chunk_size", 2)
    loads = []
    prepare = kind.prepare
    monkeypatch.setattr(kind, "prepare", lambda self, config, machine: loads.append(1) or prepare(self, config, machine))
    items = make_items(cast.project, 8)
    scorer = runs.create_scorer(cast.project, "words", "profanity", {}, None)[0]
    for half in (items[:4], items[4:]):
        working.work_on(runs.start_run(scorer, [item.pk for item in half], None).pk, bench)
    assert (Score.objects.count(), len(loads)) == (8, 1)


def test_a_transformers_folder_scores_items_as_the_model_itself_does(cast: Cast, bench: Bench, model: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    make_items(cast.project, 5)
    scorer, new = runs.create_scorer(
        cast.project, "tiny", "transformers_text", {"folder": str(model), "labels": LABELS, "max_length": 64}, None, any_folder=True
    )
    assert (new, scorer.score_names, scorer.version) == (True, ["toxicity"], 1)
    run = runs.start_run(scorer, None, None)
    working.work_on(run.pk, bench)
    run.refresh_from_db()
    assert (run.state, run.done) == ("done", 5)
    tokenizer, own = AutoTokenizer.from_pretrained(model), AutoModelForSequenceClassification.from_pretrained(model)
    for score in Score.objects.select_related("item"):
        with torch.inference_mode():
            probability = own(**tokenizer(score.item.text, return_tensors="pt")).logits.softmax(-1)[0, 1].item()
        assert score.value == pytest.approx(probability, abs=1e-5)


def test_weights_that_changed_since_the_version_was_made_fail_the_run(cast: Cast, bench: Bench, model: Path) -> None:
    make_items(cast.project, 3)
    scorer, _new = runs.create_scorer(
        cast.project, "tiny", "transformers_text", {"folder": str(model), "labels": LABELS, "max_length": 64}, None, any_folder=True
    )
    run = runs.start_run(scorer, None, None)
    weights = model / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    working.work_on(run.pk, bench)
    run.refresh_from_db()
    assert run.state == "failed"
    assert run.error == "The weights, settings or code of tiny v1 have changed. Add the scorer again: that makes the next version."
    assert not Score.objects.exists()
    second, new = runs.create_scorer(
        cast.project, "tiny", "transformers_text", {"folder": str(model), "labels": LABELS, "max_length": 64}, None, any_folder=True
    )
    assert (second.version, new) == (2, True)


def test_an_error_of_halves_is_no_error_of_one(bench: Bench) -> None:
    with pytest.raises(Unusable):
        working.score_each(Scripted({"": None}), ["a", "b"])
    assert working.score_each(Scripted({"a": None}), ["a"]) != []
