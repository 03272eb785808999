"""manage.py scorer_add and score."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Item
from scoring.models import Score, Scorer, ScoringRun
from tests.cast import Cast, make_items


def run(*arguments: object) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_a_scorer_is_added_and_used_without_redis_or_a_worker(cast: Cast) -> None:
    make_items(cast.project, 5)
    Item.objects.filter(external_id="t2").update(text=" ")
    assert json.loads(run("scorer_add", "study", "words", "--kind", "profanity", "--json"))["new"] is True
    assert run("scorer_add", "study", "words", "--kind", "profanity") == "words v1 gives toxicity (it was there already).\n"
    report = json.loads(run("score", "study", "words", "--here", "--json"))
    assert {name: report[name] for name in ("state", "total", "done", "failed")} == {"state": "done", "total": 5, "done": 4, "failed": 1}
    assert Score.objects.count() == 4
    with pytest.raises(CommandError, match="has no scorer 'other'"):
        run("score", "study", "other")


def test_a_model_folder_is_added_from_the_command_line(cast: Cast, model: Path) -> None:
    items = make_items(cast.project, 4)
    given = (
        "--kind",
        "transformers_text",
        "--set",
        f"folder={model}",
        "--set",
        "max_length=64",
        "--label",
        "toxic=toxicity",
        "--label",
        "harmless=-",
    )
    assert run("scorer_add", "study", "tiny", *given) == "tiny v1 gives toxicity.\n"
    assert "2 of 2 scored" in run("score", "study", "tiny:1", "--items", items[0].pk, items[1].pk, "--here")
    with pytest.raises(CommandError, match="Nothing says what harmless is to be called here"):
        run("scorer_add", "study", "tiny", *given[:-2])


def test_a_run_that_fails_ends_the_command_with_its_reason(cast: Cast) -> None:
    make_items(cast.project, 2)
    run("scorer_add", "study", "words", "--kind", "profanity")
    Scorer.objects.update(fingerprint="0" * 64)
    with pytest.raises(CommandError, match="have changed"):
        run("score", "study", "words", "--here")
    assert ScoringRun.objects.get().state == "failed"
