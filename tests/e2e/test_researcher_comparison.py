"""A researcher reads agreement and a comparison, moves the threshold, and looks behind a number."""

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from annotation.models import Item
from curation import comparing
from curation.models import Comparison
from tests.cast import Cast, make_items, make_question
from tests.curation.settled import make_scorer, settle

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def comparison(cast: Cast) -> Comparison:
    """Sixty items in three recipes, a third of them derived from the first; the machine is right more often than not."""
    rng = np.random.default_rng(11)
    question = make_question(cast.project, choices="yes no unsure")
    items = make_items(cast.project, 60)
    ballots = rng.choice(["yyy", "nnn", "nnn", "nnn", "yyn > y", "ynn > n", "uuu", "yn"], size=60).tolist()
    settle(cast, question, items, ballots)
    for number, item in enumerate(items):
        Item.objects.filter(pk=item.pk).update(
            metadata={"recipe": ["swap", "typo", "a recipe with a long name"][number % 3]}, origin=items[0] if number % 3 == 1 else None
        )
    scores = {
        item: float(np.clip(rng.normal(0.65 if "y" in ballot[:2] else 0.3, 0.2), 0, 1))
        for item, ballot in zip(items[:57], ballots, strict=False)
    }
    scorer = make_scorer(cast, scores)
    return comparing.create(cast.bob, name="Judge on all", positive=question.choices.get(value="yes"), scorer=scorer, score_name="toxicity")


@pytest.fixture
def check(axe: Callable[[Page], None], picture: Callable[[Page, str], None]) -> Callable[[Page, str], None]:
    """check(page, name): a picture, axe, and no sideways scrolling."""

    def check(page: Page, name: str) -> None:
        picture(page, name)
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name

    return check


def test_the_threshold_moves_without_a_reload_and_every_number_opens_its_items(
    cast: Cast, comparison: Comparison, browser_page: Callable[..., Page]
) -> None:
    page = browser_page(cast.bob)
    page.goto(f"/p/study/comparisons/{comparison.pk}/")
    expect(page.get_by_role("heading", name="Precision, recall and F1 at 0.5")).to_be_visible()
    page.evaluate("window.stayed = true")
    page.get_by_label("Threshold, slide").fill("0.7")
    expect(page.get_by_role("heading", name="Precision, recall and F1 at 0.7")).to_be_visible()
    expect(page.get_by_label("Threshold", exact=True)).to_have_value("0.7")
    assert page.evaluate("window.stayed")
    assert page.url.endswith("?threshold=0.7")
    page.get_by_label("Break down by metadata").select_option("recipe")
    expect(page.get_by_role("heading", name="By recipe")).to_be_visible()
    page.get_by_role("button", name="Keep 0.7").click()
    expect(page.get_by_text("the threshold of this comparison is 0.7")).to_be_visible()
    comparison.refresh_from_db()
    assert comparison.threshold == 0.7
    page.locator("a[href*='cell=false_negative']").click()
    expect(page.get_by_role("heading", name="People: Yes, machine: not Yes")).to_be_visible()
    assert "mild text" not in page.content()
    page.get_by_role("link", name="Show contents").click()
    expect(page.get_by_text("A mild text").first).to_be_visible()


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_axe_finds_nothing_and_nothing_sticks_out(
    comparison: Comparison, browser_page: Callable[..., Page], check: Callable[[Page, str], None], width: int, dark: bool
) -> None:
    bob = comparison.project.memberships.get(role="researcher")
    page = browser_page(bob, width=width, dark=dark)
    own = f"/p/study/comparisons/{comparison.pk}/"
    face = f"{width}{'-dark' if dark else ''}"
    for name, address in {
        "comparison": f"{own}?threshold=0.62&by=recipe",
        "comparison-items": f"{own}items/?cell=false_positive&contents=1",
        "comparisons": "/p/study/comparisons/",
        "comparison-new": "/p/study/comparisons/new/",
        "agreement": "/p/study/agreement/toxicity/",
    }.items():
        page.goto(address)
        check(page, f"{name}-{face}")
