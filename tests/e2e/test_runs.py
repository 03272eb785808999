"""Scorers and runs in the browser of a researcher."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Item
from scoring import runs, working
from scoring.models import ScoringRun
from scoring.scorers import kinds
from scoring.scorers.base import Machine
from scoring.working import Bench
from tests.cast import Cast, make_cast, make_items
from workers import health

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
LABELS = "harmless = -\ntoxic = toxicity"


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    cast = make_cast()
    make_items(cast.project, 40)
    Item.objects.filter(external_id="t3").update(text=" ")
    return cast


@pytest.fixture
def small_chunks() -> Iterator[None]:
    kind = type(kinds()["profanity"])
    before, kind.chunk_size = kind.chunk_size, 10
    yield
    kind.chunk_size = before


@pytest.fixture
def run(cast: Cast, small_chunks: None) -> ScoringRun:
    return runs.start_run(runs.create_scorer(cast.project, "words", "profanity", {}, cast.bob.user)[0], None, cast.bob.user)


def test_a_researcher_adds_a_scorer_and_a_wrong_folder_is_said_beside_its_field(
    cast: Cast, browser_page: Callable[..., Page], axe: Callable[[Page], None], picture: Callable[[Page, str], None]
) -> None:
    page = browser_page(cast.bob)
    page.goto("/p/study/scorers/")
    axe(page)
    picture(page, "scorers-empty")
    page.get_by_role("link", name="Add a scorer").click()
    page.get_by_label("Name").fill("words")
    axe(page)
    picture(page, "scorer-new-words")
    page.get_by_role("button", name="Add the scorer").click()
    expect(page.get_by_text("words v1 is ready")).to_be_visible()
    axe(page)
    picture(page, "scorers")
    page.get_by_role("link", name="Add a scorer").click()
    page.get_by_role("link", name="Transformers text classification").click()
    page.get_by_label("Name").fill("tox")
    page.get_by_label("Folder").fill("/nowhere/at/all")
    page.get_by_label("Labels").fill(LABELS)
    page.get_by_role("button", name="Add the scorer").click()
    expect(page.locator("#folder-error")).to_contain_text("Model folders must lie under")
    expect(page.get_by_label("Labels")).to_have_value(LABELS)
    axe(page)
    picture(page, "scorer-new-refused")


def test_a_run_is_watched_live_paused_resumed_and_done(
    cast: Cast, run: ScoringRun, browser_page: Callable[..., Page], axe: Callable[[Page], None], picture: Callable[[Page, str], None]
) -> None:
    page = browser_page(cast.bob)
    page.goto(f"/p/study/runs/{run.pk}/")
    expect(page.get_by_text("no worker listens to it")).to_be_visible()
    axe(page)
    picture(page, "run-queued")
    health.report("cpu-1", ["cpu"], "cpu", f"run {run.pk}, chunk 1")
    bench = Bench("cpu-1", Machine())
    working.work_on(run.pk, bench, seconds=0)  # one chunk
    expect(page.get_by_text("9 of 40")).to_be_visible()  # without a reload
    expect(page.get_by_text("The text is empty.")).to_be_visible()
    axe(page)
    picture(page, "run-running")
    page.get_by_role("button", name=re.compile("Pause")).click()
    expect(page.get_by_text(re.compile("paused by bob at"))).to_be_visible()
    picture(page, "run-paused")
    assert working.work_on(run.pk, bench) is False
    page.get_by_role("button", name=re.compile("Resume")).click()
    expect(page.get_by_text("waits for a worker")).to_be_visible()
    working.work_on(run.pk, bench)
    expect(page.get_by_text("39 of 40")).to_be_visible()
    expect(page.locator("#run[hx-trigger]")).to_have_count(0)  # nothing more to watch
    axe(page)
    picture(page, "run-done")


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1440, True)])
def test_the_pages_hold_on_a_phone_and_in_the_dark(  # noqa: PLR0917 - fixtures
    cast: Cast,
    run: ScoringRun,
    browser_page: Callable[..., Page],
    axe: Callable[[Page], None],
    picture: Callable[[Page, str], None],
    width: int,
    dark: bool,
) -> None:
    health.report("cpu-1", ["cpu"], "cpu", "")
    working.work_on(run.pk, Bench("cpu-1", Machine()), seconds=0)
    page = browser_page(cast.bob, width=width, dark=dark)
    for name, path in [
        ("scorers", "scorers/"),
        ("scorer-new", "scorers/new/?kind=transformers_text"),
        ("runs", "runs/"),
        ("run", f"runs/{run.pk}/"),
    ]:
        page.goto(f"/p/study/{path}")
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        picture(page, f"{name}-{'dark' if dark else width}")
