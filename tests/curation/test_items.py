"""The item browser finds items by what they are and what was said of them, and shows their texts only when asked."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import GroundTruth, Item, Task
from annotation.tasks import create_tasks
from curation import browsing, sampling
from curation.browsing import Filters
from curation.models import ImportBatch
from scoring.models import Score, Scorer
from tests.cast import Cast, make_items, make_question

SignIn = Callable[[Any], Client]


def found(cast: Cast, **filters: Any) -> list[str]:
    return [row.item.external_id for row in browsing.page(cast.project, Filters(**filters)).rows]


@pytest.fixture
def items(cast: Cast) -> list[Item]:
    made = make_items(cast.project, 3, metadata={"recipe": "A2T", "n": 1})
    made += make_items(cast.project, 2, start=3, metadata={"recipe": "PWWS", "n": 2, "flag": True})
    make_items(cast.mallory.project, 1, start=50)
    return made


def scorer_of(cast: Cast, values: dict[Item, float]) -> Scorer:
    scorer = Scorer.objects.create(project=cast.project, name="tox", kind="x", fingerprint="0" * 64, score_names=["toxic"])
    Score.objects.bulk_create(Score(scorer=scorer, item=item, name="toxic", value=value) for item, value in values.items())
    return scorer


# ---------------------------------------------------------------- finding
def test_items_are_found_by_kind_origin_import_sample_and_words(cast: Cast, items: list[Item]) -> None:
    Item.objects.create(project=cast.project, kind="image", external_id="i", content_hash=b"", origin=items[0])
    batch = ImportBatch.objects.create(project=cast.project, filename="f", path="f", file_hash="0", size=1, format="csv")
    Item.objects.filter(external_id="t3").update(batch=batch.pk)
    sample = sampling.draw(cast.project, "x", 2, metadata={"recipe": "PWWS"})
    assert found(cast) == ["t0", "t1", "t2", "t3", "t4", "i"]
    assert found(cast, kind="image") == ["i"]
    assert found(cast, origin=items[0].pk) == ["i"]
    assert found(cast, batch=batch.pk) == ["t3"]
    assert found(cast, sample=sample.pk) == ["t3", "t4"]
    assert found(cast, text="NUMBER 2") == ["t2"]
    assert found(cast, text="100%_") == []


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("recipe", "PWWS", ["t3", "t4"]), ("n", "1", ["t0", "t1", "t2"]), ("flag", "true", ["t3", "t4"]), ("flag", None, ["t3", "t4"]),
        ("recipe", "nothing", []), ("none", None, []), ("n", "NaN", []), ("n", "[" * 1000, []),
    ],
)  # fmt: skip
def test_items_are_found_by_metadata(cast: Cast, items: list[Item], key: str, value: str | None, expected: list[str]) -> None:
    assert found(cast, metadata_key=key, metadata_value=value) == expected


def test_items_are_found_by_state_truth_and_score(cast: Cast, items: list[Item]) -> None:
    question, other = make_question(cast.project), make_question(cast.project, "naturalness")
    create_tasks(question, [item.pk for item in items[:3]])
    create_tasks(other, [items[4].pk])
    task = Task.objects.get(question=question, item=items[1])
    yes, no = question.choices.order_by("position")
    Task.objects.filter(pk=task.pk).update(state="adjudicated", settled_at="2026-01-01T00:00Z")
    GroundTruth.objects.create(task=task, question=question, item=items[1], round=1, choice=yes, source="adjudicated")
    scorer = scorer_of(cast, {items[0]: 0.1, items[1]: 0.5, items[4]: 0.9})
    assert found(cast, question=question.pk) == ["t0", "t1", "t2"]
    assert found(cast, question=question.pk, state="open") == ["t0", "t2"]
    assert found(cast, state="open") == ["t0", "t2", "t4"]
    assert found(cast, truth=yes.pk) == ["t1"]
    assert found(cast, truth=no.pk) == []
    assert found(cast, scorer=scorer.pk) == ["t0", "t1", "t4"]
    assert found(cast, scorer=scorer.pk, score_from=0.5) == ["t1", "t4"]
    assert found(cast, scorer=scorer.pk, score="toxic", score_from=0.2, score_to=0.6) == ["t1"]
    assert found(cast, scorer=scorer.pk, score="other") == []


def test_pages_go_forth_and_back_and_count_what_fits(cast: Cast) -> None:
    make_items(cast.project, 25)
    first = browsing.page(cast.project, Filters(), size=10)
    second = browsing.page(cast.project, Filters(), after=first.after, size=10)
    third = browsing.page(cast.project, Filters(), after=second.after, size=10)
    assert [len(page.rows) for page in (first, second, third)] == [10, 10, 5]
    assert (first.before, third.after, first.count) == (None, None, 25)
    back = browsing.page(cast.project, Filters(), before=third.before, size=10)
    assert [row.item.pk for row in back.rows] == [row.item.pk for row in second.rows]
    assert browsing.page(cast.project, Filters(), before=back.before, size=10).before is None


def test_a_page_costs_the_same_number_of_queries_whatever_is_on_it(
    cast: Cast, items: list[Item], django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    create_tasks(make_question(cast.project))
    scorer_of(cast, dict.fromkeys(items, 0.5))
    with django_assert_max_num_queries(9):
        browsing.page(cast.project, Filters())


def test_a_search_that_takes_too_long_is_said(cast: Cast, items: list[Item], monkeypatch: pytest.MonkeyPatch, sign_in: SignIn) -> None:
    monkeypatch.setattr(browsing, "PATIENCE_S", 0.001)
    monkeypatch.setattr(browsing, "_slice", lambda *_: list(Item.objects.raw("SELECT *, pg_sleep(1) FROM annotation_item")))
    answer = sign_in(cast.bob).get(reverse("items", args=["study"]))
    assert answer.status_code == 422
    assert b"This search takes too long." in answer.content


# ---------------------------------------------------------------- pages
def test_the_list_shows_ids_and_the_texts_only_behind_the_switch(cast: Cast, items: list[Item], sign_in: SignIn) -> None:
    create_tasks(make_question(cast.project))
    scorer_of(cast, {items[0]: 0.125})
    client = sign_in(cast.bob)
    shown = client.get(reverse("items", args=["study"])).content.decode()
    assert "t0" in shown
    assert "A mild text" not in shown
    assert "A2T" not in shown, "values of metadata are contents too"
    assert "0.125" in shown
    assert "Toxicity: Open, 0 of 3" in shown
    assert "A mild text, number 0." in client.get(reverse("items", args=["study"]), {"contents": "1"}).content.decode()


def test_the_list_keeps_its_filters_on_every_link(cast: Cast, sign_in: SignIn) -> None:
    make_items(cast.project, 120, metadata={"recipe": "A&B"})
    shown = sign_in(cast.bob).get(reverse("items", args=["study"]), {"metadata_key": "recipe", "metadata_value": "A&B", "kind": ""})
    assert b"metadata_key=recipe&amp;metadata_value=A%26B&amp;after=" in shown.content
    assert b"120 items" in shown.content


@pytest.mark.parametrize(
    "query", ["kind=video", "batch=x", "after=-1", "score_from=high", "sample=99999999999999999999", "truth=a", "text=" + "x" * 201]
)
def test_a_filter_that_does_not_fit_is_said(cast: Cast, items: list[Item], sign_in: SignIn, query: str) -> None:
    answer = sign_in(cast.bob).get(f"{reverse('items', args=['study'])}?{query}")
    assert answer.status_code == 422
    assert b"A filter does not fit." in answer.content
    assert sign_in(cast.bob).get(f"{reverse('api_items', args=['study'])}?{query}").status_code == 400


@pytest.mark.parametrize(
    "query", ["text=%00", "metadata_key=%00&metadata_value=x", "metadata_key=a&metadata_value=%00", "score=%00&scorer=1"]
)
def test_a_nul_in_a_filter_is_no_error_of_ours(cast: Cast, items: list[Item], sign_in: SignIn, query: str) -> None:
    for name in ("items", "api_items"):
        assert sign_in(cast.bob).get(f"{reverse(name, args=['study'])}?{query}").status_code in (200, 400, 422)


def test_one_item_shows_where_it_came_from_and_what_was_said_of_it(cast: Cast, items: list[Item], sign_in: SignIn) -> None:
    question = make_question(cast.project, votes=1)
    create_tasks(question, [items[1].pk])
    Item.objects.filter(pk=items[1].pk).update(origin=items[0])
    task = Task.objects.get()
    yes = question.choices.get(value="yes")
    task.votes.create(
        question=question, member=cast.alice, round=1, choice=yes, token="00000000-0000-0000-0000-000000000001", comment="Clear."
    )
    Task.objects.filter(pk=task.pk).update(state="agreed", vote_count=1, settled_at="2026-01-01T00:00Z")
    GroundTruth.objects.create(task=task, question=question, item=items[1], round=1, choice=yes, source="unanimous")
    scorer_of(cast, {items[1]: 0.75})
    client = sign_in(cast.bob)
    shown = client.get(reverse("item", args=["study", items[1].pk])).content.decode()
    for expected in (cast.alice.pseudonym, "Clear.", "Yes", "Unanimous", "0.7500", reverse("item", args=["study", items[0].pk])):
        assert expected in shown
    assert "alice" not in shown, "pseudonyms, never names"
    assert "A mild text" not in shown.partition("<summary")[0]
    seed = client.get(reverse("item", args=["study", items[0].pk])).content.decode()
    assert reverse("item", args=["study", items[1].pk]) in seed


def test_a_quarantined_item_shows_its_text_nowhere(cast: Cast, items: list[Item], sign_in: SignIn) -> None:
    Item.objects.filter(pk=items[0].pk).update(quarantined=True)
    client = sign_in(cast.bob)
    for answer in (
        client.get(reverse("items", args=["study"]), {"contents": "1"}),
        client.get(reverse("item", args=["study", items[0].pk])),
        client.get(reverse("api_items", args=["study"]), {"contents": "true"}),
        client.get(reverse("api_item", args=["study", items[0].pk])),
    ):
        assert b"A mild text, number 0." not in answer.content


def test_only_researchers_of_the_project_look(cast: Cast, items: list[Item], sign_in: SignIn) -> None:
    for member, status in ((cast.alice, 403), (cast.charlie, 403), (cast.mallory, 404)):
        for name, arguments in (("items", []), ("item", [items[0].pk]), ("api_items", []), ("api_item", [items[0].pk])):
            assert sign_in(member).get(reverse(name, args=["study", *arguments])).status_code == status
    assert sign_in(cast.mallory).get(reverse("item", args=["elsewhere", items[0].pk])).status_code == 404


# ---------------------------------------------------------------- API
def test_the_api_pages_through_items_with_texts_on_request(cast: Cast, items: list[Item], sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    address = reverse("api_items", args=["study"])
    first = client.get(address, {"size": 3}).json()
    assert (first["count"], [row["external_id"] for row in first["results"]]) == (5, ["t0", "t1", "t2"])
    assert first["results"][0]["text"] is None
    assert first["results"][0]["metadata_keys"] == ["n", "recipe"]
    rest = client.get(address, {"size": 3, "after": first["next"], "contents": "true"}).json()
    assert (rest["next"], [row["text"] for row in rest["results"]]) == (None, ["A mild text, number 3.", "A mild text, number 4."])
    one = client.get(reverse("api_item", args=["study", items[0].pk])).json()
    assert (one["text"], one["metadata"], one["tasks"]) == ("A mild text, number 0.", {"recipe": "A2T", "n": 1}, [])


def test_long_ids_keep_their_two_ends_in_lists_and_are_whole_on_their_page(cast: Cast, sign_in: SignIn) -> None:
    item = make_items(cast.project, 1)[0]
    item.external_id = "0123456789abcdef" * 4 + ":40000"
    item.save()
    bob = sign_in(cast.bob)
    assert ">0123456789abcd…cdef:40000<" in bob.get("/p/study/items/").content.decode()
    assert item.external_id in bob.get(f"/p/study/items/{item.pk}/").content.decode()
