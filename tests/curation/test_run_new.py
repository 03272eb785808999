"""Choosing what a scoring run covers."""

import uuid

import pytest
from django.test import Client

from annotation.models import Item
from annotation.tasks import create_tasks
from curation import choosing
from curation.models import ImportBatch, Sample, SampleItem
from scoring.models import Chunk, Score, Scorer, ScoringRun
from scoring.runs import create_scorer
from tests.annotation.api import Program
from tests.cast import Cast, make_items, make_project, make_question


@pytest.fixture
def scorer(cast: Cast) -> Scorer:
    return create_scorer(cast.project, "profanity", "profanity", {}, cast.bob.user)[0]


@pytest.fixture
def items(cast: Cast) -> list[Item]:
    """Ten items: the first four in a sample, the next three from an import, 5 to 9 with tasks."""
    items = make_items(cast.project, 10)
    sample = Sample.objects.create(project=cast.project, name="First", seed=1, size=4, population=10)
    SampleItem.objects.bulk_create(SampleItem(sample=sample, item=item, probability=0.4) for item in items[:4])
    batch = ImportBatch.objects.create(
        project=cast.project, filename="a.csv", path="", file_hash="0", size=1, format="csv", state="done", created=3
    )
    Item.objects.filter(pk__in=[item.pk for item in items[4:7]]).update(batch=batch.pk)
    create_tasks(make_question(cast.project), [item.pk for item in items[5:]])
    return items


@pytest.fixture
def bob(cast: Cast, sign_in) -> Client:  # type: ignore[no-untyped-def]
    return sign_in(cast.bob)  # type: ignore[no-any-return]


def chosen(sort: str) -> str:
    return {
        "all": "all",
        "sample": f"sample:{Sample.objects.get().pk}",
        "import": f"import:{ImportBatch.objects.get().pk}",
        "question": "question:toxicity",
    }[sort]


@pytest.mark.parametrize(
    ("sort", "which"), [("all", slice(0, 10)), ("sample", slice(0, 4)), ("import", slice(4, 7)), ("question", slice(5, 10))]
)
def test_a_run_covers_what_was_chosen(bob: Client, scorer: Scorer, items: list[Item], sort: str, which: slice) -> None:
    answer = bob.post("/p/study/runs/new/", {"scorer": scorer.pk, "items": chosen(sort), "queue": "cpu"})
    run = ScoringRun.objects.get()
    assert answer.headers["Location"] == f"/p/study/runs/{run.pk}/"
    covered = [item for chunk in Chunk.objects.filter(run=run).order_by("number") for item in chunk.item_ids]
    assert covered == [item.pk for item in items[which]]


def test_the_count_says_what_is_left(bob: Client, scorer: Scorer, items: list[Item]) -> None:
    Score.objects.create(scorer=scorer, item=items[0], name="toxicity", value=0.5)
    Item.objects.filter(pk=items[1].pk).update(quarantined=True)
    part = bob.get("/p/study/runs/new/", {"scorer": scorer.pk, "items": chosen("sample")}, headers={"HX-Request": "true"}).content.decode()
    assert "<b>2</b> of 3 items are left to score; 1 have this version" in part.replace("\n", "")
    assert "<html" not in part


def test_the_form_offers_what_there_is(bob: Client, scorer: Scorer, items: list[Item]) -> None:
    page = bob.get("/p/study/runs/new/").content.decode()
    for words in ("profanity v1", "All items that this scorer can score", "First (4 texts)", "a.csv, ", "Toxicity"):
        assert words in page
    assert "<b>10</b> items to score." in page


def test_without_a_scorer_the_page_says_what_to_do(bob: Client) -> None:
    assert "No scorer yet." in bob.get("/p/study/runs/new/").content.decode()


def test_nothing_left_is_said_and_what_was_chosen_is_kept(bob: Client, scorer: Scorer, items: list[Item]) -> None:
    Score.objects.bulk_create(Score(scorer=scorer, item=item, name="toxicity", value=0.5) for item in items)
    answer = bob.post("/p/study/runs/new/", {"scorer": scorer.pk, "items": chosen("question"), "queue": "gpu"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "already have scores" in page
    assert '<option value="question:toxicity" selected>' in page
    assert "<option selected>gpu</option>" in page


@pytest.mark.parametrize(
    "strange",
    [
        "",
        "everything",
        "sample:",
        "sample:0",
        "sample:x",
        "sample:9999999999999999999999",
        "import:x",
        f"import:{uuid.UUID(int=1)}",
        "question:no",
    ],
)
def test_a_choice_that_is_not_there_is_refused_at_its_field(bob: Client, scorer: Scorer, items: list[Item], strange: str) -> None:
    answer = bob.post("/p/study/runs/new/", {"scorer": scorer.pk, "items": strange})
    assert answer.status_code == 422
    assert 'id="items-error"' in answer.content.decode()
    assert not ScoringRun.objects.exists()


def test_another_projects_scorer_and_sample_are_not_there(cast: Cast, bob: Client, items: list[Item]) -> None:
    elsewhere = make_project("third")
    theirs, _ = create_scorer(elsewhere, "profanity", "profanity", {}, None)
    assert bob.post("/p/study/runs/new/", {"scorer": theirs.pk, "items": "all"}).status_code == 422
    Sample.objects.update(project=elsewhere)
    with pytest.raises(choosing.Invalid):
        choosing.items(cast.project, "text", chosen("sample"))


def test_the_api_offers_counts_and_starts(cast: Cast, scorer: Scorer, items: list[Item]) -> None:
    bob = Program(cast.bob)
    offered = [choice["items"] for choice in bob.get("runs/over/").json()]
    assert offered == ["all", chosen("sample"), "question:toxicity", chosen("import")]
    body = {"scorer": scorer.pk, "items": chosen("import")}
    assert bob.post("runs/coverage/", **body).json() == {"items": 3, "scored": 0, "left": 3}
    started = bob.post("runs/over/", **body)
    assert (started.status_code, started.json()["total"], started.json()["state"]) == (201, 3, "queued")
    assert bob.post("runs/over/", scorer=scorer.pk, items="sample:x").json()["fields"].keys() == {"items"}


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("charlie", 403), ("mallory", 404)])
def test_others_are_refused(cast: Cast, sign_in, who: str, status: int) -> None:  # type: ignore[no-untyped-def]
    assert sign_in(getattr(cast, who)).get("/p/study/runs/new/").status_code == status
