"""The researcher's pages of scorers and runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from annotation.models import Item, Membership
from scoring import runs, working
from scoring.models import Scorer, ScoringRun
from scoring.working import Bench
from tests.cast import Cast, make_items

SignIn = Callable[[Membership], Client]


@pytest.fixture
def run(cast: Cast) -> ScoringRun:
    make_items(cast.project, 3)
    make_items(cast.project, 1, start=3)
    Item.objects.filter(external_id="t3").update(text=" ")
    return runs.start_run(runs.create_scorer(cast.project, "words", "profanity", {}, cast.bob.user)[0], None, cast.bob.user)


def test_a_researcher_adds_the_built_in_scorer(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    assert "No scorer yet." in client.get("/p/study/scorers/").content.decode()
    answer = client.post("/p/study/scorers/new/", {"kind": "profanity", "name": "words"}, follow=True)
    page = answer.content.decode()
    assert "words v1 is ready" in page
    assert "takes names of groups" in page
    assert Scorer.objects.get().created_by == cast.bob.user
    again = client.post("/p/study/scorers/new/", {"kind": "profanity", "name": "words"}, follow=True).content.decode()
    assert "already gives exactly these scores" in again


def test_a_form_that_cannot_work_comes_back_with_what_was_typed(cast: Cast, sign_in: SignIn) -> None:
    given = {
        "kind": "transformers_text",
        "name": "Tiny One",
        "config-folder": "/nowhere",
        "config-labels": "toxic = toxicity",
        "config-max_length": "x",
    }
    answer = sign_in(cast.bob).post("/p/study/scorers/new/", given)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="Tiny One"' in page
    assert "toxic = toxicity" in page
    assert "short name of small letters" in page
    answer = sign_in(cast.bob).post("/p/study/scorers/new/", given | {"name": "tiny"})
    assert (answer.status_code, "Give a whole number." in answer.content.decode()) == (422, True)


def test_the_form_offers_the_model_folders_that_are_there(cast: Cast, sign_in: SignIn, model: Path, settings: object) -> None:
    settings.MODEL_FOLDERS = [str(model.parent), "/nowhere"]
    page = sign_in(cast.bob).get("/p/study/scorers/new/?kind=transformers_text").content.decode()
    assert f'<option value="{model}">' in page
    assert f"It lies under {model.parent} or /nowhere." in page


def test_a_run_page_tells_its_story(cast: Cast, sign_in: SignIn, run: ScoringRun, bench: Bench) -> None:
    client = sign_in(cast.bob)
    address = f"/p/study/runs/{run.pk}/"
    page = client.get(address).content.decode()
    assert "waits for a worker" in page
    assert "1 run waits on the cpu queue and no worker listens to it. Start one with: python manage.py worker --queue cpu" in page
    assert 'hx-trigger="every 2s"' in page
    assert client.post(f"{address}pause/", follow=True).status_code == 200
    assert "paused by bob" in client.get(address).content.decode()
    client.post(f"{address}resume/")
    working.work_on(run.pk, bench)
    page = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert page.lstrip().startswith('<div class="stack')
    assert "hx-trigger" not in page
    assert "The text is empty." in page
    assert "worker-1" in page
    assert "<b>3</b> of 4" in page
    late = client.post(f"{address}cancel/")
    assert (late.status_code, "This run is done; it cannot be cancelled" in late.content.decode()) == (409, True)
    assert "1 failed" in client.get("/p/study/runs/").content.decode()


def test_a_failed_run_says_why_and_can_be_tried_again(cast: Cast, sign_in: SignIn, run: ScoringRun, bench: Bench) -> None:
    Scorer.objects.update(fingerprint="0" * 64)
    working.work_on(run.pk, bench)
    client = sign_in(cast.bob)
    page = client.get(f"/p/study/runs/{run.pk}/").content.decode()
    assert "have changed. Add the scorer again" in page
    assert "Try again" in page
    client.post(f"/p/study/runs/{run.pk}/cancel/")
    assert "cancelled by bob" in client.get(f"/p/study/runs/{run.pk}/").content.decode()


def test_annotators_adjudicators_and_strangers_see_nothing_of_it(cast: Cast, sign_in: SignIn, run: ScoringRun) -> None:
    for member, status in ((cast.alice, 403), (cast.charlie, 403), (cast.mallory, 404)):
        client = sign_in(member)
        for path in ("scorers/", "scorers/new/", "runs/", f"runs/{run.pk}/"):
            assert client.get(f"/p/study/{path}").status_code == status
        assert client.post(f"/p/study/runs/{run.pk}/cancel/").status_code == status
    assert sign_in(cast.mallory).get(f"/p/elsewhere/runs/{run.pk}/").status_code == 404
