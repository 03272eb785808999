"""A researcher brings a file in, looks at items, draws a sample and makes tasks, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Item, Task
from curation import sampling, tasking
from curation.importing import service
from curation.importing.mapping import Mapping
from tests import cast as make
from workers import tasks

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
TEXTS = "id,text,seed,recipe\n" + "".join(
    f"t{number},The rivr is clam in the morning {number}.,The river is calm.,{'A2T' if number % 2 else 'PWWS'}\n" for number in range(60)
)
Open = Callable[..., Page]


@pytest.fixture(autouse=True)
def _own_uploads(settings: Any, tmp_path: Path) -> None:
    settings.DATA = tmp_path / "data"


@pytest.fixture
def cast(transactional_db: None) -> make.Cast:
    return make.make_cast()


def test_a_file_goes_in_by_the_page_and_becomes_tasks(
    cast: make.Cast, browser_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "send_import", lambda _: True)  # the worker of this test is below
    make.make_question(cast.project)
    page = browser_page(cast.bob)
    page.goto("/p/study/imports/")
    page.get_by_role("link", name="Bring in a file").click()
    (tmp_path / "texts.csv").write_text(TEXTS)
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "texts.csv")
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("text")
    expect(page.get_by_text("The river is calm.").first).to_be_hidden()
    page.get_by_text("Show contents").click()
    expect(page.get_by_text("The river is calm.").first).to_be_visible()
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("waits for a worker", exact=True)).to_be_visible()
    service.run(service.ImportBatch.objects.get().pk)
    expect(page.get_by_text("60 new items of 60 rows")).to_be_visible()
    page.get_by_role("link", name="Draw a sample").click()
    page.get_by_label("Name").fill("First")
    page.get_by_label("How many items").fill("10")
    page.get_by_label("Strata: a metadata key").fill("recipe")
    page.get_by_role("button", name="Draw").click()
    expect(page.get_by_text("Drawn: 10 of 60 items.")).to_be_visible()
    page.get_by_role("link", name="Make tasks").click()
    page.get_by_role("button", name="Make tasks").click()
    expect(page.get_by_text("10 new tasks of Toxicity.")).to_be_visible()
    assert Task.objects.count() == 10


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False)])
def test_every_page_is_accessible_and_fits(  # noqa: PLR0917 - fixtures
    cast: make.Cast,
    browser_page: Open,
    axe: Callable[[Page], None],
    picture: Callable[[Page, str], None],
    tmp_path: Path,
    width: int,
    dark: bool,
) -> None:
    make.make_question(cast.project)
    (tmp_path / "texts.csv").write_text(TEXTS)
    (tmp_path / "bad.csv").write_text("id,text\na,\nb\n")
    done, waiting, bad = (service.take(cast.project, tmp_path / name, cast.bob.user) for name in ("texts.csv", "texts.csv", "bad.csv"))
    service.run(service.start(done, Mapping(text="text", external_id="id", seed="seed")).pk)
    service.run(service.start(bad, Mapping(text="text", external_id="id")).pk)
    sample = sampling.draw(cast.project, "First", 6, strata="recipe", allocation="equal")
    tasking.make_tasks(cast.project.questions.get(), f"sample:{sample.pk}")
    item = Item.objects.filter(origin__isnull=False, tasks__isnull=False).first()
    assert item is not None
    page = browser_page(cast.bob, width=width, dark=dark)
    pages = {
        "imports": "imports/",
        "import-new": "imports/new/",
        "import-preview": f"imports/{waiting.pk}/",
        "import-done": f"imports/{done.pk}/",
        "import-failed": f"imports/{bad.pk}/",
        "items": "items/",
        "items-contents": "items/?contents=1&state=open",
        "item": f"items/{item.pk}/",
        "samples": "samples/",
        "sample-new": "samples/new/",
        "sample": f"samples/{sample.pk}/",
        "tasks-new": "tasks/new/",
    }
    too_wide = []
    for name, address in pages.items():
        page.goto(f"/p/study/{address}")
        picture(page, f"{name}-{width}{'-dark' if dark else ''}")
        if not page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"):
            too_wide.append(name)
        axe(page)
    assert not too_wide


def test_a_form_that_takes_long_says_so_and_is_sent_once(cast: make.Cast, browser_page: Open) -> None:
    make.make_items(cast.project, 10)
    page = browser_page(cast.bob)
    sent: list[str] = []

    def slowly(route: Any) -> None:
        if route.request.method == "POST":
            sent.append(route.request.url)
            page.wait_for_timeout(1500)
        route.continue_()

    page.route("**/samples/new/", slowly)
    page.goto("/p/study/samples/new/")
    page.get_by_label("Name").fill("First")
    page.get_by_label("How many items").fill("5")
    page.evaluate(
        "new MutationObserver(() => sessionStorage.setItem('said', document.querySelector('[data-waiting]').textContent))"
        ".observe(document.querySelector('[data-waiting]'), {childList: true})"
    )
    page.evaluate("() => { for (const _ of [1, 2]) document.querySelector('main form .btn--primary').click(); }")
    page.wait_for_url("**/samples/*/")
    expect(page.get_by_text("Drawn: 5 of 10 items.")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('said')") == "Drawing. Some seconds from a million items."
    assert len(sent) == 1
