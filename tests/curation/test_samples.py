"""Samples are the same for the same seed anywhere, each item knows its probability, and tasks are made from them."""

import json
from collections import Counter
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.errors import Conflict, Invalid
from annotation.items import text_hash
from annotation.models import Item, Project, Task
from curation import sampling, tasking
from curation.models import ImportBatch, Sample, SampleItem, TaskBatch
from tests.cast import Cast, make_items, make_question

SignIn = Callable[[Any], Client]


def names(sample: Sample) -> list[str]:
    return sorted(sample.members.values_list("item__external_id", flat=True))


def of_recipes(project: Project, **counts: int) -> None:
    start = 0
    for recipe, count in counts.items():
        make_items(project, count, start=start, metadata={"recipe": recipe})
        start += count


# ---------------------------------------------------------------- drawing
def test_a_simple_sample_is_the_first_of_the_items_in_the_order_of_their_hashes(cast: Cast) -> None:
    make_items(cast.project, 40)
    sample = sampling.draw(cast.project, "ten", 10, seed=5)
    by_hand = sorted((f"t{number}" for number in range(40)), key=lambda name: sampling.order_key(5, name))[:10]
    assert names(sample) == sorted(by_hand)
    assert (sample.size, sample.population) == (10, 40)
    assert set(sample.members.values_list("probability", flat=True)) == {0.25}


def test_the_same_seed_draws_the_same_anywhere_and_another_seed_others(cast: Cast) -> None:
    make_items(cast.project, 40)
    make_items(cast.mallory.project, 3, start=100)
    make_items(cast.mallory.project, 40)
    here = sampling.draw(cast.project, "here", 10, seed=5)
    batch = Item.objects.filter(project=cast.mallory.project, external_id__in=[f"t{number}" for number in range(100, 103)])
    batch.update(quarantined=True)
    assert names(sampling.draw(cast.mallory.project, "there", 10, seed=5)) == names(here)
    assert names(sampling.draw(cast.project, "other", 10, seed=6)) != names(here)
    assert sampling.draw(cast.project, "own", 10).seed == cast.project.seed


def test_a_larger_sample_of_the_same_seed_holds_the_smaller(cast: Cast) -> None:
    make_items(cast.project, 40)
    small, large = (sampling.draw(cast.project, f"of {size}", size, seed=5) for size in (10, 20))
    assert set(names(small)) < set(names(large))


def test_every_item_is_drawn_about_equally_often(cast: Cast) -> None:
    make_items(cast.project, 20)
    drawn = Counter(name for seed in range(200) for name in names(sampling.draw(cast.project, str(seed), 5, seed=seed)))
    assert len(drawn) == 20
    # 200 draws at 1/4: 50 expected, standard deviation 6.1
    assert all(50 - 4.5 * 6.1 < count < 50 + 4.5 * 6.1 for count in drawn.values())


def test_a_proportional_sample_has_the_shares_of_the_strata(cast: Cast) -> None:
    of_recipes(cast.project, A2T=60, PWWS=30, BAE=10)
    sample = sampling.draw(cast.project, "stratified", 20, seed=1, strata="recipe")
    assert sampling.weights(sample) == [("A2T", 12, 0.2), ("BAE", 2, 0.2), ("PWWS", 6, 0.2)]
    weighted = sum(1 / probability for probability in sample.members.values_list("probability", flat=True))
    assert weighted == pytest.approx(100)


def test_an_equal_sample_has_as_many_of_each_and_their_probabilities_differ(cast: Cast) -> None:
    of_recipes(cast.project, A2T=60, PWWS=30, BAE=10)
    sample = sampling.draw(cast.project, "equal", 15, seed=1, strata="recipe", allocation="equal")
    assert sampling.weights(sample) == [("A2T", 5, 5 / 60), ("BAE", 5, 0.5), ("PWWS", 5, 5 / 30)]


def test_items_without_the_key_are_a_stratum_of_their_own(cast: Cast) -> None:
    make_items(cast.project, 10)
    of = make_items(cast.project, 10, start=10, metadata={"recipe": 7})
    assert of
    assert sampling.weights(sampling.draw(cast.project, "x", 10, strata="recipe")) == [("", 5, 0.5), ("7", 5, 0.5)]


@pytest.mark.parametrize(
    ("available", "size", "allocation", "expected"),
    [
        ({"a": 50, "b": 30, "c": 20}, 10, "proportional", {"a": 5, "b": 3, "c": 2}),
        ({"a": 1, "b": 1, "c": 98}, 10, "proportional", {"a": 1, "b": 1, "c": 8}),
        ({"a": 1, "b": 1, "c": 1}, 3, "proportional", {"a": 1, "b": 1, "c": 1}),
        ({"a": 5, "b": 5, "c": 5}, 7, "proportional", {"a": 3, "b": 2, "c": 2}),
        ({"a": 2, "b": 50, "c": 50}, 12, "equal", {"a": 2, "b": 5, "c": 5}),
        ({"a": 2, "b": 3}, 5, "equal", {"a": 2, "b": 3}),
        ({"a": 9, "b": 9, "c": 9}, 10, "equal", {"a": 4, "b": 3, "c": 3}),
    ],
)
def test_allotting(available: dict[str, int], size: int, allocation: str, expected: dict[str, int]) -> None:
    assert sampling.allot(available, size, allocation) == expected


def test_allotting_always_sums_up_and_never_takes_more_than_there_is() -> None:
    for size in range(3, 111):
        for allocation in sampling.ALLOCATIONS:
            available = {"a": 1, "b": 9, "c": 100}
            given = sampling.allot(available, size, allocation)
            assert sum(given.values()) == size
            assert all(1 <= given[name] <= available[name] for name in available), (size, allocation, given)


def test_the_population_can_be_an_import_a_sample_or_what_metadata_says(cast: Cast) -> None:
    of_recipes(cast.project, A2T=6, PWWS=3)
    batch = ImportBatch.objects.create(
        project=cast.project, filename="f", path="f", file_hash="0", size=1, format="csv", state="done", created=4
    )
    Item.objects.filter(external_id__in=["t0", "t1", "t2", "t6"]).update(batch=batch.pk)
    assert sampling.draw(cast.project, "a", 3, metadata={"recipe": "PWWS"}).population == 3
    assert names(sampling.draw(cast.project, "b", 4, items=f"import:{batch.pk}")) == ["t0", "t1", "t2", "t6"]
    assert names(sampling.draw(cast.project, "c", 1, items=f"import:{batch.pk}", metadata={"recipe": "PWWS"})) == ["t6"]
    again = Sample.objects.get(name="b")
    assert sampling.draw(cast.project, "d", 2, items=f"sample:{again.pk}").population == 4


def seeded(project: Project) -> tuple[Item, Item]:
    seed, derived = make_items(project, 2)
    Item.objects.filter(pk=derived.pk).update(origin=seed)
    return seed, derived


def test_seeds_and_quarantined_items_are_left_out(cast: Cast) -> None:
    seeded(cast.project)
    assert names(sampling.draw(cast.project, "derived", 1)) == ["t1"]
    assert names(sampling.draw(cast.project, "with seeds", 2, seeds=True)) == ["t0", "t1"]
    Item.objects.filter(external_id="t1").update(quarantined=True)
    with pytest.raises(Invalid, match="0 items fit"):
        sampling.draw(cast.project, "none", 1)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"), ({"size": 0}, "size"), ({"size": 11}, "size"), ({"kind": "video"}, "kind"),
        ({"items": "sample:9"}, "items"),
        ({"items": "import:x"}, "items"), ({"items": "x"}, "items"), ({"strata": "nowhere"}, "strata"), ({"allocation": "x"}, "allocation"),
        ({"seed": 2**63}, "seed"), ({"strata": "recipe", "size": 1}, "size"),
    ],
)  # fmt: skip
def test_a_draw_that_cannot_be_made_names_the_field(cast: Cast, given: dict[str, Any], field: str) -> None:
    of_recipes(cast.project, A2T=5, PWWS=5)
    with pytest.raises(Invalid) as refusal:
        sampling.draw(cast.project, **{"name": "x", "size": 3, **given})
    assert field in refusal.value.fields
    assert not Sample.objects.exists()


def test_two_samples_cannot_have_one_name(cast: Cast) -> None:
    make_items(cast.project, 3)
    sampling.draw(cast.project, "x", 1)
    with pytest.raises(Conflict):
        sampling.draw(cast.project, "x", 2)


# ---------------------------------------------------------------- tasks
def test_tasks_are_made_for_all_items_a_sample_or_an_import(cast: Cast) -> None:
    question = make_question(cast.project)
    seeded(cast.project)
    make_items(cast.project, 8, start=2)
    sample = sampling.draw(cast.project, "x", 4)
    assert tasking.make_tasks(question, f"sample:{sample.pk}") == 4
    assert tasking.make_tasks(question, f"sample:{sample.pk}") == 0
    assert tasking.make_tasks(question) == 5, "nine derived items less the four"
    assert tasking.make_tasks(question, seeds=True) == 1
    assert Task.objects.filter(question=question).count() == 10


def test_prompts_of_images_are_texts_to_ask_about(cast: Cast) -> None:
    question = make_question(cast.project)
    prompt = make_items(cast.project, 1)[0]
    Item.objects.create(project=cast.project, kind="image", external_id="i", content_hash=text_hash(""), origin=prompt)
    assert tasking.make_tasks(question) == 1
    assert Task.objects.get().item == prompt


# ---------------------------------------------------------------- pages, API, command line
def test_a_sample_is_drawn_on_the_page_and_tasks_made_from_it(cast: Cast, sign_in: SignIn) -> None:
    question = make_question(cast.project)
    of_recipes(cast.project, A2T=6, PWWS=4)
    client = sign_in(cast.bob)
    assert b"No sample yet." in client.get(reverse("samples", args=["study"])).content
    assert client.get(reverse("sample_new", args=["study"])).status_code == 200
    given = {"name": "First", "size": "5", "seed": "3", "kind": "text", "items": "all", "strata": "recipe", "allocation": "proportional"}
    drawn = client.post(reverse("sample_new", args=["study"]), given, follow=True)
    assert b"Drawn: 5 of 10 items." in drawn.content
    assert b"0.500000" in drawn.content
    sample = Sample.objects.get()
    assert sample.query == {
        "kind": "text",
        "items": "all",
        "metadata": {},
        "seeds": False,
        "strata": "recipe",
        "allocation": "proportional",
    }
    made = client.post(reverse("tasks_new", args=["study"]), {"question": "toxicity", "items": f"sample:{sample.pk}"}, follow=True)
    assert b"5 new tasks of Toxicity." in made.content
    assert Task.objects.filter(question=question).count() == 5
    assert b"First" in client.get(reverse("samples", args=["study"])).content


def test_a_wrong_form_keeps_what_was_typed(cast: Cast, sign_in: SignIn) -> None:
    make_items(cast.project, 3)
    client = sign_in(cast.bob)
    for given, said in [
        ({"size": "30"}, b"At most 3."),
        ({"name": ""}, b"name-error"),
        ({"seed": "x"}, b"seed-error"),
        ({"items": "sample:77"}, b"items-error"),
    ]:
        answer = client.post(reverse("sample_new", args=["study"]), {"name": "My sample", "size": "2", "strata": "", **given})
        assert answer.status_code == 422
        assert said in answer.content
    answer = client.post(reverse("tasks_new", args=["study"]), {"question": "none", "items": "all"})
    assert answer.status_code == 422


def test_the_api_draws_lists_and_makes_tasks(cast: Cast, sign_in: SignIn) -> None:
    make_question(cast.project)
    of_recipes(cast.project, A2T=6, PWWS=4)
    client = sign_in(cast.bob)
    samples = reverse("api_samples", args=["study"])
    made = client.post(samples, {"name": "x", "size": 2, "metadata": {"recipe": "PWWS"}}, content_type="application/json")
    assert made.status_code == 201
    assert (made.json()["population"], made.json()["size"]) == (4, 2)
    assert [sample["name"] for sample in client.get(samples).json()["results"]] == ["x"]
    rows = client.get(reverse("api_sample_items", args=["study", made.json()["id"]])).json()["results"]
    assert [row["probability"] for row in rows] == [0.5, 0.5]
    over = {"question": "toxicity", "items": f"sample:{made.json()['id']}"}
    answer = client.post(reverse("api_tasks_over", args=["study"]), over, content_type="application/json")
    assert (answer.status_code, answer.json()) == (201, {"question": "toxicity", "made": 2, "batch": TaskBatch.objects.get().pk})
    assert client.post(samples, {"name": "y", "size": 99}, content_type="application/json").json()["fields"] == {"size": "At most 10."}
    assert client.post(samples, {"name": "x", "size": 1}, content_type="application/json").status_code == 409
    assert client.post(reverse("api_tasks_over", args=["study"]), {"question": "no"}, content_type="application/json").status_code == 404


def test_only_researchers_sample(cast: Cast, sign_in: SignIn) -> None:
    make_items(cast.project, 3)
    sample = sampling.draw(cast.project, "x", 2)
    for member, status in ((cast.alice, 403), (cast.charlie, 403), (cast.mallory, 404)):
        for name, arguments in (("samples", []), ("sample_new", []), ("sample", [sample.pk]), ("tasks_new", []), ("api_samples", [])):
            assert sign_in(member).get(reverse(name, args=["study", *arguments])).status_code == status
    assert sign_in(cast.mallory).get(reverse("sample", args=["elsewhere", sample.pk])).status_code == 404


def test_the_commands_draw_and_make_tasks(cast: Cast) -> None:
    make_question(cast.project)
    of_recipes(cast.project, A2T=6, PWWS=4)
    out = StringIO()
    call_command("draw_sample", "study", "x", "5", "--strata", "recipe", "--json", stdout=out)
    drawn = json.loads(out.getvalue())
    assert drawn["strata"] == [{"stratum": "A2T", "drawn": 3, "probability": 0.5}, {"stratum": "PWWS", "drawn": 2, "probability": 0.5}]
    out = StringIO()
    call_command("make_tasks", "study", "toxicity", "--sample", "x", stdout=out)
    assert out.getvalue() == "5 new tasks of Toxicity.\n"
    call_command("make_tasks", "study", "toxicity", "--json", stdout=out)
    assert Task.objects.count() == 10
    for wrong in (
        ["make_tasks", "study", "no"],
        ["make_tasks", "study", "toxicity", "--sample", "no"],
        ["draw_sample", "study", "x", "5"],
        ["draw_sample", "no", "x", "5"],
    ):
        with pytest.raises(CommandError):
            call_command(*wrong)
    assert SampleItem.objects.count() == 5
