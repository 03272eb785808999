"""python -m benchmarks.scoring: items/s through a whole run beside the bare model, in one process, over the same texts.

A run is what a user starts: the items chosen and cut into chunks, every chunk claimed, read, scored, checked, stored and
counted in PostgreSQL. The bare side is a plain loop over the same texts in the same order, with the same chunks and
batches, that keeps its scores in a list. Both are timed in turn, several times; the medians count. The headline is a
DistilBERT with random weights (4 layers, 256 wide); the built-in word scorer, which is so fast that reading
and storing weigh most, stands beside it.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import common

from annotation.items import text_hash  # isort: skip
from annotation.models import Item, Project  # isort: skip
from scoring import runs, working  # isort: skip
from scoring.models import Score, Scorer, ScoringRun  # isort: skip
from scoring.scorers import kinds  # isort: skip
from scoring.scorers.base import Machine  # isort: skip
from scoring.working import Bench  # isort: skip
from tests.scoring.models_on_disk import WORDS, write_model  # isort: skip

LABELS = {"harmless": "-", "toxic": "toxicity"}
BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=2048, help="for the transformers model; the word scorer gets ten times as many")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--wide", type=int, default=256)
    options = parser.parse_args()
    with common.scratch_database("scoring"), tempfile.TemporaryDirectory() as folder:
        project = Project.objects.create(slug="bench", name="Bench", seed=7)
        write_model(Path(folder) / "model", layers=options.layers, wide=options.wide)
        given = {"folder": f"{folder}/model", "labels": LABELS, "max_length": 128, "batch_size": BATCH}
        model, _ = runs.create_scorer(project, "distilbert", "transformers_text", given, None, any_folder=True)
        words, _ = runs.create_scorer(project, "words", "profanity", {}, None)
        make_items(project, options.items * 10)
        headline = compare(model, bare_model(Path(folder) / "model"), options.items, options.repeats)
        beside = compare(words, bare_words(), options.items * 10, options.repeats)
    common.report(
        **headline,
        items=options.items,
        repeats=options.repeats,
        model=f"DistilBERT, {options.layers} layers, {options.wide} wide, random weights",
        **{f"profanity_{name}": value for name, value in beside.items()},
    )


def make_items(project: Project, count: int) -> None:
    """Mild texts of 4 to 60 words."""
    chance = random.Random(7)
    texts = (" ".join(chance.choices(WORDS, k=chance.randint(4, 60))) for _ in range(count))
    items = (
        Item(project=project, kind="text", external_id=str(at), text=text, content_hash=text_hash(text)) for at, text in enumerate(texts)
    )
    Item.objects.bulk_create(items, batch_size=5000)


def bare_model(folder: Path) -> Callable[[Sequence[str]], list[float]]:
    """The model in a plain loop: tokenize, longest first, pad, forward, softmax."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def score(texts: Sequence[str]) -> list[float]:
        tokens = tokenizer(list(texts), truncation=True, max_length=128)["input_ids"]
        order = sorted(range(len(texts)), key=lambda number: -len(tokens[number]))
        scores = [0.0] * len(texts)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            padded = tokenizer.pad({"input_ids": [tokens[number] for number in batch]}, return_tensors="pt")
            with torch.inference_mode():
                found = model(**padded).logits.softmax(dim=-1)[:, 1].tolist()
            for number, value in zip(batch, found, strict=True):
                scores[number] = value
        return scores

    return score


def bare_words() -> Callable[[Sequence[str]], list[float]]:
    from profanity_check import profanity_check as package

    return lambda texts: package.model.predict_proba(package.vectorizer.transform(texts))[:, 1].tolist()


def compare(scorer: Scorer, bare: Callable[[Sequence[str]], list[float]], items: int, repeats: int) -> dict[str, float]:
    """Items/s of both sides, medians of `repeats` rounds in which each goes first in turn."""
    bench = Bench("bench", Machine())
    bench.loaded(scorer)
    ids_and_texts = list(Item.objects.filter(project=scorer.project).order_by("pk").values_list("pk", "text")[:items])
    ids, texts = [pk for pk, _ in ids_and_texts], [text or "" for _, text in ids_and_texts]
    size = kinds()[scorer.kind].chunk_size
    expected = bare(texts[:size])  # warms the model up as well
    sides = {"run": lambda: whole_run(scorer, ids, bench), "bare": lambda: in_chunks(bare, texts, size)}
    seconds: dict[str, list[float]] = {"run": [], "bare": []}
    for number in range(repeats):
        for side in sorted(sides, reverse=bool(number % 2)):
            began = time.perf_counter()
            sides[side]()
            seconds[side].append(time.perf_counter() - began)
        check(scorer, ids[:size], expected, items)
        clear(scorer)
        latest = {side: items / found[-1] for side, found in seconds.items()}
        common.say(f"{scorer}, round {number + 1}: run {latest['run']:,.0f} items/s, bare {latest['bare']:,.0f} items/s")
    run, plain = (items / common.median(seconds[side]) for side in ("run", "bare"))
    return {"items_per_s": round(run, 1), "bare_items_per_s": round(plain, 1), "ratio": round(run / plain, 3)}


def whole_run(scorer: Scorer, ids: Sequence[int], bench: Bench) -> None:
    run = runs.start_run(scorer, ids, None)
    while working.work_on(run.pk, bench):
        pass
    run.refresh_from_db()
    assert (run.state, run.done) == ("done", len(ids)), run.error


def in_chunks(bare: Callable[[Sequence[str]], list[float]], texts: Sequence[str], size: int) -> None:
    scores: list[float] = []
    for start in range(0, len(texts), size):
        scores += bare(texts[start : start + size])
    assert len(scores) == len(texts)


def check(scorer: Scorer, ids: Sequence[int], expected: Sequence[float], items: int) -> None:
    """Both sides computed the same thing, and the run stored all of it."""
    assert Score.objects.filter(scorer=scorer).count() == items
    stored = dict(Score.objects.filter(scorer=scorer, item__in=ids).values_list("item_id", "value"))
    assert all(abs(stored[pk] - value) < 1e-4 for pk, value in zip(ids, expected, strict=True))


def clear(scorer: Scorer) -> None:
    Score.objects.filter(scorer=scorer)._raw_delete(using="default")
    ScoringRun.objects.filter(scorer=scorer).delete()


if __name__ == "__main__":
    main()
