"""A researcher brings votes in a real browser, at a desk and on a phone, by day and by night; with and without script."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from annotation.models import GroundTruth
from curation.models import ImportBatch
from tests.cast import Cast
from tests.curation.test_import_votes_pages import LONG
from workers import tasks

Open = Callable[..., Page]
Picture = Callable[[Page, str], None]


@pytest.fixture(autouse=True)
def _own_uploads(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DATA = tmp_path / "data"
    monkeypatch.setattr(tasks, "send_import", lambda _: True)


@pytest.mark.parametrize(("width", "dark", "script"), [(1440, False, True), (390, True, True), (1440, True, False)])
def test_votes_are_mapped_counted_and_read_as_a_result(  # noqa: PLR0917 - fixtures
    cast: Cast, browser_page: Open, axe: Axe, picture: Picture, tmp_path: Path, width: int, dark: bool, script: bool
) -> None:
    (tmp_path / "votes.csv").write_bytes(LONG)
    page = browser_page(cast.bob, width=width, dark=dark, script=script)
    name = f"votes-{width}{'-dark' if dark else ''}{'' if script else '-plain'}"
    page.goto("/p/study/imports/new/")
    page.get_by_label("File").set_input_files(tmp_path / "votes.csv")
    page.get_by_role("button", name="Look at it").click()
    section = page.locator("#votes")
    expect(section).not_to_have_attribute("open", "")
    section.locator("summary").click()
    section.get_by_label("They come as").select_option("long")
    section.get_by_label("Question", exact=True).select_option("make:toxicity")
    section.get_by_role("group", name="Columns with answers").get_by_label("answer").check()
    section.get_by_label("Rater", exact=True).select_option("who")
    section.get_by_role("group", name="What is known of the rater").get_by_label("age").check()
    section.get_by_label("What settles a question that is made").select_option("majority")
    section.get_by_role("button", name="Count the answers").click()
    section = page.locator("#votes")
    expect(section.get_by_label("What 1 stands for")).to_have_value("yes")
    picture(page, f"{name}-form")
    if script:
        axe(page)
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/imports/*/")
    tasks.run_import(str(ImportBatch.objects.latest("created_at").pk))
    page.reload()
    expect(page.get_by_role("heading", name="Votes: Toxicity")).to_be_visible()
    expect(page.get_by_text("The first counts.")).to_be_visible()
    assert GroundTruth.objects.get().item.external_id == "a"
    picture(page, f"{name}-result")
    if script:
        axe(page)
