"""Labelling in a real browser, as an annotator does it."""

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Vote
from tests.cast import Cast, make_question, make_tasks

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def toxicity(cast: Cast):
    question = make_question(cast.project)
    make_tasks(question, 12)
    return question


def open_page(page: Page, question) -> None:
    page.goto(f"/p/study/label/{question.slug}/")
    expect(page.locator("#task")).to_have_attribute("data-state", "work")


def item(page: Page) -> str:
    return page.locator("#item-id").inner_text()


def answer(page: Page, key: str, words: str) -> None:
    """Press a key and wait for the next item and for the server's word."""
    before = item(page)
    page.keyboard.press(key)
    expect(page.locator("#item-id")).not_to_have_text(before)
    expect(page.locator("#status")).to_contain_text(words)


def test_five_texts_are_labelled_by_keys_alone_one_request_each(cast: Cast, toxicity, browser_page) -> None:
    page = browser_page(cast.alice)
    open_page(page, toxicity)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for key, word in zip("ynyny", ("Yes", "No", "Yes", "No", "Yes"), strict=True):
        answer(page, key, f"Saved: {word}")
    assert len(requests) == 5
    assert list(Vote.objects.order_by("id").values_list("choice__value", flat=True)) == ["yes", "no", "yes", "no", "yes"]
    assert all(vote.elapsed_ms is not None and vote.elapsed_ms < 60_000 for vote in Vote.objects.all())
    assert page.evaluate("Object.keys(localStorage)") == []
