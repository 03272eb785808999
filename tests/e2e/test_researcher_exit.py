"""The way out, on every page of a researcher that can show contents: top right, one key, what was typed kept."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from curation.models import Comparison
from scoring.models import Scorer
from tests import cast as make

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]


@pytest.fixture
def cast(transactional_db: None) -> make.Cast:
    return make.make_cast()


@pytest.mark.parametrize("width", [1440, 390])
def test_pages_that_can_show_contents_have_the_way_out_at_their_top_right(cast: make.Cast, browser_page: Open, width: int) -> None:
    question = make.make_question(cast.project)
    item = make.make_tasks(question, 30)[0].item
    scorer = Scorer.objects.create(
        project=cast.project, name="words", kind="profanity", item_kind="text", score_names=["toxicity"], fingerprint="a" * 64
    )
    comparison = Comparison.objects.create(
        project=cast.project, name="One", question=question, positive=question.choices.all()[0], scorer=scorer, score_name="toxicity"
    )
    page = browser_page(cast.bob, width=width)
    for path in (
        "items/?contents=1", f"items/{item.pk}/", "questions/toxicity/", "questions/toxicity/guideline/",
        f"comparisons/{comparison.pk}/items/?cell=unlabelled&contents=1",
    ):  # fmt: skip
        page.goto(f"/p/study/{path}")
        out = page.locator("a[data-exit]")
        page.mouse.wheel(0, 2000)
        expect(out).to_be_in_viewport()
        box = out.bounding_box()
        assert box is not None
        assert box["y"] < 20
        assert width - box["x"] - box["width"] < 60
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("Escape")
        expect(page.get_by_role("heading", name="Everything is hidden")).to_be_focused()
        assert page.title() == "Assay"
        page.get_by_role("link", name="Show it again").click()
        page.wait_for_url(f"**/p/study/{path}")


def test_what_was_typed_into_a_guideline_is_there_again(cast: make.Cast, browser_page: Open) -> None:
    make.make_question(cast.project)
    page = browser_page(cast.bob)
    page.goto("/p/study/questions/toxicity/guideline/")
    page.locator("textarea[name=body]").fill("Judge with more care.")
    rows = page.locator("[data-row]").count()
    page.locator("[data-add]").click()
    page.locator(f"[name=examples-{rows}-why]").fill("A reason")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Show it again").click()
    expect(page.locator("textarea[name=body]")).to_have_value("Judge with more care.")
    expect(page.locator(f"[name=examples-{rows}-why]")).to_have_value("A reason")
    page.reload()
    expect(page.locator("textarea[name=body]")).to_have_value("Judge with care.")
