"""Care in a real browser: every page light and dark, wide and narrow; stops, breaks, and the way back."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation import presets, queue, wellbeing
from annotation.models import Exposure, Membership, Pause, Question, Sitting
from annotation.questions import create_question
from tests.cast import Cast, make_pictures, make_question, make_tasks

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]
Axe = Callable[[Page], None]
Picture = Callable[[Page, str], None]
FACES = [(1440, False), (1440, True), (390, False), (390, True)]


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    question = create_question(cast.project, presets.TOXICITY, cast.bob.user)
    make_tasks(question, 8)
    return question


def expose(member: Membership, question: Question) -> None:
    """A few days of work: more at noon than at night."""
    task = question.tasks.all()[0]
    now = timezone.now()
    Exposure.objects.bulk_create(
        Exposure(member=member, task=task, at=now - timedelta(hours=hours, minutes=number))
        for hours in (0, 1, 2, 3, 5, 6, 26, 27, 50, 51, 52, 75)
        for number in range((hours * 7) % 19 + 3)
    )


@pytest.mark.parametrize(("width", "dark"), FACES)
def test_every_page_of_care_passes_axe(  # noqa: PLR0917 - fixtures and a face
    cast: Cast, toxicity: Question, browser_page: Open, axe: Axe, picture: Picture, width: int, dark: bool
) -> None:
    harm = create_question(cast.project, presets.IMAGE_HARM, cast.bob.user)
    make_pictures(harm, 3)
    make_tasks(make_question(cast.project, "naturalness"), 2)
    face = f"{width}{'-dark' if dark else ''}"
    alice = browser_page(cast.alice, width=width, dark=dark)

    def look(page: Page, address: str, name: str) -> None:
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        axe(page)
        picture(page, f"care-{name}-{face}")

    look(alice, "/", "home-before")
    look(alice, "/p/study/consent/", "consent")
    look(alice, "/p/study/label/toxicity/", "stop-consent")
    wellbeing.give_consent(cast.alice, 1)
    expose(cast.alice, toxicity)
    queue.next_work(cast.alice, toxicity)
    look(alice, "/", "home")
    look(alice, "/exposure/", "exposure")
    look(alice, "/p/study/consent/", "agreed")
    look(alice, "/p/study/label/image_harm/", "image")
    Sitting.objects.filter(user=cast.alice.user).update(break_until=timezone.now() + timedelta(minutes=9))
    look(alice, "/", "home-break")
    look(alice, "/p/study/label/toxicity/", "stop-break")
    charlie = browser_page(cast.charlie, width=width, dark=dark)
    look(charlie, "/", "home-adjudicator")
    bob = browser_page(cast.bob, width=width, dark=dark)
    wellbeing.new_warning(cast.project, "Insults and threats, about one item in three.", cast.bob.user)
    look(bob, "/p/study/care/", "care")


def test_a_break_begins_by_itself_and_nothing_starts_by_itself_after_it(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    wellbeing.give_consent(cast.alice, 1)
    page = browser_page(cast.alice)
    page.clock.install()
    page.goto("/p/study/label/toxicity/")
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    expect(page.get_by_role("link", name="Break in 50 min")).to_be_visible()
    Sitting.objects.filter(user=cast.alice.user).update(since=timezone.now() - timedelta(minutes=51))
    page.keyboard.press("y")
    expect(page.get_by_role("heading", name="Your break")).to_be_focused()
    expect(page.locator("#stop-until")).to_contain_text("in 10 minutes")
    expect(page.locator("#item")).to_be_hidden()
    assert "mild text" not in page.locator("main").inner_text()
    page.clock.fast_forward("03:00")
    expect(page.locator("#stop-until")).to_contain_text("in 7 minutes")
    page.clock.fast_forward("08:00")
    expect(page.locator("#stop-message")).to_have_text("You can go on now, whenever you like.")
    Sitting.objects.filter(user=cast.alice.user).update(break_until=timezone.now() - timedelta(seconds=1))
    page.get_by_role("link", name="Go on").click()
    expect(page.locator("#task")).to_have_attribute("data-state", "work")


def test_whoever_is_paused_is_told_on_home_and_on_the_page(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    wellbeing.give_consent(cast.alice, 1)
    Pause.objects.create(question=toxicity, member=cast.alice, answers=20, correct=9, floor=0.7)
    page = browser_page(cast.alice)
    page.goto("/")
    expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    page.goto("/p/study/label/toxicity/")
    expect(page.get_by_role("heading", name="You are paused on this question")).to_be_focused()
    expect(page.locator("#stop-message")).to_contain_text("A researcher has been told")
    expect(page.locator("#stop-message")).to_contain_text("Yours were 9 of 20 right, 70 % needed.")


def test_a_new_warning_takes_the_item_off_the_screen_with_the_next_answer(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    wellbeing.give_consent(cast.alice, 1)
    page = browser_page(cast.alice)
    page.goto("/p/study/label/toxicity/")
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    wellbeing.new_warning(cast.project, "It got worse.", cast.bob.user)
    page.keyboard.press("y")
    expect(page.get_by_role("heading", name="Before you start")).to_be_focused()
    assert "mild text" not in page.locator("main").inner_text()
    assert cast.alice.votes.count() == 1, "the answer on its way is kept"
    page.get_by_role("link", name="Read and decide").click()
    expect(page.get_by_text("The warning has changed.")).to_be_visible()
    page.get_by_label("I have read").check()
    page.get_by_label("I take part freely").check()
    page.get_by_role("button", name="I agree, version 2").click()
    expect(page.locator("#task")).to_have_attribute("data-state", "work")


def test_consent_is_withdrawn_from_home(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    wellbeing.give_consent(cast.alice, 1)
    queue.next_work(cast.alice, toxicity)
    page = browser_page(cast.alice)
    page.goto("/")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("2 tasks went back to the queue.")).to_be_visible()
    expect(page.get_by_role("link", name="Read and decide on Toxicity")).to_be_visible()
    assert wellbeing.consent_of(cast.alice) is None


def test_without_script_a_stop_says_the_same(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice, script=False)
    page.goto("/p/study/label/toxicity/")
    expect(page.get_by_role("heading", name="Before you start")).to_be_visible()
    page.get_by_role("link", name="Read and decide").click()
    page.get_by_label("I have read").check()
    page.get_by_label("I take part freely").check()
    page.get_by_role("button", name="I agree, version 1").click()
    expect(page.get_by_role("button", name="Yes", exact=True)).to_be_visible()


def test_nothing_that_was_answered_opens_again_while_a_stop_holds(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    wellbeing.give_consent(cast.alice, 1)
    receipt = queue.cast_vote(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, choice="no")
    wellbeing.withdraw_consent(cast.alice)
    page = browser_page(cast.alice)
    page.goto(f"/p/study/label/toxicity/?answer={receipt.vote_id}")
    expect(page.get_by_role("heading", name="Before you start")).to_be_focused()
    page.keyboard.press("z")
    expect(page.locator("#undo")).to_be_hidden()
    expect(page.locator("#item")).to_be_hidden()
    assert "mild text" not in page.content()


def test_withdrawing_in_one_tab_takes_the_item_off_the_others(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    wellbeing.give_consent(cast.alice, 1)
    page = browser_page(cast.alice)
    page.goto("/p/study/label/toxicity/")
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    other = page.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_role("heading", name="Everything is hidden")).to_be_visible()
    expect(other.get_by_text("is withdrawn.")).to_be_visible()
    page.get_by_role("link", name="Show it again").click()
    expect(page.get_by_role("heading", name="Before you start")).to_be_visible()
