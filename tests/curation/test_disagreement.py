"""What people disagree on: by recipe, by harm, by pair of choices, with numbers that one can check by hand."""

import pytest

from annotation.errors import Invalid
from annotation.imported import RaterVote, import_votes
from annotation.models import Item
from curation import disagreement
from curation.stats.intervals import wilson
from tests.cast import Cast, Question, make_items, make_question


@pytest.fixture
def study(cast: Cast) -> Question:
    """Three votes a task. Four texts by bae: yyn, ynn, yyy, yyy; two by pwws: ynu, nnn; one of no recipe: yyy."""
    question = make_question(cast.project, choices="yes no unsure", tags="insult threat")
    items = make_items(cast.project, 7)
    for item, recipe in zip(items, ["bae"] * 4 + ["pwws"] * 2, strict=False):
        Item.objects.filter(pk=item.pk).update(metadata={"recipe": recipe, "split": "test"})
    names = {"y": "yes", "n": "no", "u": "unsure"}
    votes = [
        RaterVote(item.pk, f"rater {seat}", names[letter], ["insult"] if letter == "y" else [])
        for item, letters in zip(items, ["yyn", "ynn", "yyy", "yyy", "ynu", "nnn", "yyy"], strict=True)
        for seat, letter in enumerate(letters)
    ]
    import_votes(question, votes)
    return question


def test_shares_and_pairs_are_counted_by_recipe(study: Question) -> None:
    found = disagreement.of_question(study)
    assert (found.by, found.fields) == ("recipe", ("recipe", "split"))
    assert (found.all.tasks, found.all.differing, found.all.disputed.value) == (7, 3, 3 / 7)
    assert (found.all.disputed.low, found.all.disputed.high) == wilson(3, 7)
    # yyn and ynn: 2 of 3 pairs differ; ynu: all 3 do.
    assert found.all.pairwise.value == pytest.approx((2 / 3 + 2 / 3 + 1) / 7)
    by_value = {group.value: (group.tasks, group.differing, group.disputed.value, group.pairwise.value) for group in found.groups}
    assert by_value == {
        "bae": (4, 2, 0.5, pytest.approx(1 / 3)), "pwws": (2, 1, 0.5, pytest.approx(0.5)), None: (1, 0, 0.0, pytest.approx(0.0)),
    }  # fmt: skip
    assert [group.value for group in found.groups] == ["bae", "pwws", None]


def test_confused_choices_and_harms_are_counted_in_tasks(study: Question) -> None:
    found = disagreement.of_question(study)
    assert [(pair.first, pair.second, pair.tasks, pair.share.n) for pair in found.confused] == [
        ("yes", "no", 3, 7), ("yes", "unsure", 1, 7), ("no", "unsure", 1, 7),
    ]  # fmt: skip
    (insult,) = found.tags
    assert (insult.value, insult.tasks, insult.differing) == ("insult", 6, 3)


def test_every_number_leads_to_its_tasks(study: Question) -> None:
    ids = list(study.tasks.order_by("pk").values_list("pk", flat=True))

    def behind(**given: object) -> list[int]:
        return [row.task_id for row in disagreement.tasks(study, **given)]

    assert len(behind()) == 3
    assert behind(by="recipe", value="bae") == ids[:2]
    assert behind(by="recipe", value="pwws") == [ids[4]]
    assert behind(by="recipe", value=None) == []
    assert behind(pair=["unsure", "no"]) == [ids[4]]
    assert behind(tag="insult", after=ids[0]) == [ids[1], ids[4]]
    assert behind(tag="threat") == []
    first = disagreement.tasks(study)[0]
    assert (first.votes, first.state, first.text) == ([("Yes", 2), ("No", 1)], "disputed", None)
    assert disagreement.tasks(study, contents=True)[0].text == "A mild text, number 0."
    with pytest.raises(Invalid):
        disagreement.tasks(study, pair=["maybe"])


def test_without_votes_the_figures_say_why_they_are_missing(cast: Cast) -> None:
    found = disagreement.of_question(make_question(cast.project))
    assert (found.all.disputed.value, found.all.disputed.reason) == (None, "No task has all its votes yet.")
    assert (found.groups, found.confused, found.by) == ((), (), "")
    with pytest.raises(Invalid):
        disagreement.of_question(make_question(cast.project, "other"), "recipe")


def test_the_page_shows_lists_and_figures_and_no_text_before_it_is_asked_for(cast: Cast, study: Question, sign_in) -> None:
    bob = sign_in(cast.bob)
    here = f"/p/study/questions/{study.slug}/disagreements/"
    page = bob.get(here).content.decode()
    assert "pwws" in page
    assert "0.429" in page
    assert "Yes and No" in page
    assert bob.get(f"{here}?by=split").status_code == 200
    assert bob.get(f"{here}?by=nothing").status_code == 422
    assert bob.get(f"{here}figures/by-field.svg?by=recipe").status_code == 200
    listed = bob.get(f"{here}tasks/?by=recipe&value=bae").content.decode()
    assert "2 Yes, 1 No" in listed
    assert "A mild text" not in listed
    assert "A mild text" in bob.get(f"{here}tasks/?by=recipe&value=bae&contents=on").content.decode()
    assert bob.get(f"{here}tasks/?choice=maybe").status_code == 422
    assert bob.get(f"{here}tasks/?after=99999999999999999999&value=%00").status_code < 500


def test_the_api_says_the_same(cast: Cast, study: Question, sign_in) -> None:
    bob = sign_in(cast.bob)
    here = f"/api/v1/projects/study/questions/{study.slug}/disagreements/"
    found = bob.get(here, {"by": "recipe"}).json()
    assert found["all"]["disputed"]["n"] == 7
    assert [group["value"] for group in found["groups"]] == ["bae", "pwws", None]
    rows = bob.get(f"{here}tasks/", {"choice": ["yes", "unsure"]}).json()
    assert [row["votes"] for row in rows] == [[["Yes", 1], ["No", 1], ["Unsure", 1]]]
