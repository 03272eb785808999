"""Adjudication in a real browser: blind first, then the votes."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation import queue
from annotation.models import Adjudication, GroundTruth, Membership, Question, TaskState
from tests.cast import Cast, make_pictures, make_question, make_tasks

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]


def vote(member: Membership, question: Question, choice: str, comment: str = "") -> None:
    queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice, comment=comment)


def make_dispute(cast: Cast, **options: object) -> Question:
    question = make_question(cast.project, **options)
    make_tasks(question, 1)
    vote(cast.alice, question, "yes", "Sarcasm, but aimed at people.")
    vote(cast.dave, question, "no", "Annoyed, not abusive.")
    vote(cast.erin, question, "yes")
    assert question.tasks.get().state == TaskState.DISPUTED
    return question


def test_a_dispute_is_ruled_blind_by_key_then_changed_with_a_reason(cast: Cast, browser_page: Open, axe: Callable[[Page], None]) -> None:
    make_dispute(cast)
    page = browser_page(cast.charlie)
    page.goto("/")
    page.get_by_role("link", name="Rule on disputes of Toxicity").click()
    expect(page.get_by_text("open after your own ruling")).to_be_visible()
    assert "Sarcasm" not in page.content()
    axe(page)
    page.keyboard.press("n")
    expect(page.get_by_text("in an order drawn for this dispute")).to_be_visible()
    expect(page.get_by_text("Annoyed, not abusive.")).to_be_visible()
    expect(page.locator("#votes-h")).to_be_focused()
    assert "alice" not in page.content()
    expect(page.get_by_role("radio", name="No")).to_be_checked()
    axe(page)
    page.keyboard.press("y")
    page.keyboard.press("Shift+Digit3")
    page.keyboard.press("c")
    page.keyboard.type("Say whether mild sarcasm counts.")
    page.reload()
    expect(page.locator("#note")).to_have_value("Say whether mild sarcasm counts.")
    expect(page.locator("#confirm")).to_contain_text("Confirm: Yes")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Ruled. Your ruling is recorded.")).to_be_visible()
    ruling = Adjudication.objects.get()
    assert (ruling.blind_choice.value, ruling.choice.value, ruling.reason, ruling.note, ruling.blind) == (
        "no", "yes", "guideline_gap", "Say whether mild sarcasm counts.", True,
    )  # fmt: skip
    assert GroundTruth.objects.get().choice.value == "yes"
    axe(page)


def test_a_ruling_without_a_reason_is_not_sent(cast: Cast, browser_page: Open) -> None:
    question = make_dispute(cast, blind_ruling=False)
    page = browser_page(cast.charlie)
    page.goto(f"/p/study/disputes/{question.slug}/")
    expect(page.get_by_text("Annoyed, not abusive.")).to_be_visible()
    page.keyboard.press("y")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has_text="Say why")).to_be_visible()
    assert not Adjudication.objects.exclude(choice=None).exists()


def test_a_ruling_made_offline_goes_out_when_the_connection_returns(cast: Cast, browser_page: Open) -> None:
    question = make_dispute(cast)
    page = browser_page(cast.charlie)
    page.goto(f"/p/study/disputes/{question.slug}/")
    page.context.set_offline(True)
    page.keyboard.press("n")
    expect(page.get_by_text("Not sent yet.")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_text("in an order drawn for this dispute")).to_be_visible()
    assert Adjudication.objects.get().blind_choice.value == "no"


def test_a_dispute_can_be_given_back_and_a_researchers_ruling_says_it_is_not_blind(cast: Cast, browser_page: Open) -> None:
    question = make_dispute(cast)
    charlie = browser_page(cast.charlie)
    charlie.goto(f"/p/study/disputes/{question.slug}/")
    charlie.keyboard.press("a")
    expect(charlie.get_by_text("Given back.")).to_be_visible()
    bob = browser_page(cast.bob)
    bob.goto(f"/p/study/disputes/{question.slug}/")
    expect(bob.get_by_text("recorded as not blind: you are a researcher here")).to_be_visible()
    bob.keyboard.press("y")
    expect(bob.get_by_text("It is recorded as not blind.")).to_be_visible()
    bob.keyboard.press("Shift+Digit1")
    bob.keyboard.press("Control+Enter")
    expect(bob.get_by_text("No dispute waits for you")).to_be_visible()
    assert Adjudication.objects.get().blind is False


def test_without_script_a_dispute_is_ruled_by_forms(cast: Cast, browser_page: Open) -> None:
    question = make_dispute(cast)
    page = browser_page(cast.charlie, script=False)
    page.goto(f"/p/study/disputes/{question.slug}/")
    page.get_by_role("button", name="No", exact=True).click()
    page.locator(".tag", has_text="Clear error").click()
    page.locator("#confirm").click()
    expect(page.get_by_text("Ruled. Your ruling is recorded.")).to_be_visible()
    assert GroundTruth.objects.get().choice.value == "no"


def test_a_picture_is_ruled_on_after_it_was_uncovered_and_abstentions_are_told_afterwards(
    cast: Cast, browser_page: Open, axe: Callable[[Page], None], picture: Callable[[Page, str], None]
) -> None:
    question = make_question(cast.project, "harm", kind="image", sensitive=True, choices="harmful safe", tags="violence hateful")
    make_pictures(question, 1, prompt="a prompt nobody may see")
    for member, reason in ((cast.alice, "distressing"), (cast.dave, "cannot_judge"), (cast.erin, "distressing")):
        queue.abstain(member, queue.next_work(member, question)[0].token, reason)
    page = browser_page(cast.charlie)
    page.goto("/p/study/disputes/harm/")
    expect(page.get_by_role("img", name="The disputed image, covered")).to_be_visible()
    assert "istressing" not in page.content()
    axe(page)
    picture(page, "dispute-picture-covered")
    page.keyboard.press("s")
    expect(page.get_by_text("Uncover the picture first.")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_role("img", name="The disputed image, uncovered")).to_be_visible()
    page.keyboard.press("b")
    expect(page.locator("#item")).to_have_class("item item--image is-grey")
    page.keyboard.press("+")
    expect(page.locator("#zoom-button")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("s")
    expect(page.get_by_text("2: Too distressing")).to_be_visible()
    expect(page.get_by_text("1: I cannot judge this")).to_be_visible()
    expect(page.get_by_role("img", name="The disputed image, uncovered")).to_be_visible()
    page.goto("/p/study/disputes/harm/")
    expect(page.get_by_role("img", name="The disputed image, covered")).to_be_visible()
    page.keyboard.press("h")
    page.keyboard.press("1")
    page.keyboard.press("Shift+Digit2")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Uncover the picture first.")).to_be_visible()
    page.keyboard.press("u")
    page.keyboard.press("s")
    assert "a prompt nobody may see" not in page.content()
    axe(page)
    picture(page, "dispute-picture-open")
    page.keyboard.press("Shift+Digit2")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Ruled. Your ruling is recorded.")).to_be_visible()
    assert GroundTruth.objects.get().choice.value == "safe"


def test_an_adjudicator_flags_and_possibly_illegal_takes_the_item_away_at_once(
    cast: Cast, browser_page: Open, axe: Callable[[Page], None]
) -> None:
    question = make_dispute(cast)
    task = question.tasks.get()
    page = browser_page(cast.charlie)
    page.goto("/p/study/disputes/toxicity/")
    page.keyboard.press("f")
    page.keyboard.press("2")
    axe(page)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Flagged.")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_text("in an order drawn for this dispute")).to_be_visible()
    page.context.set_offline(True)
    page.keyboard.press("f")
    page.keyboard.press("3")
    page.get_by_role("button", name="Flag it").click()
    expect(page.get_by_text("Taken out of sight.")).to_be_visible()
    assert task.item.text not in page.content()
    assert "Sarcasm" not in page.content()
    page.context.set_offline(False)
    page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.startsWith('assay:out:'))")
    page.get_by_role("link", name="Go on").click()
    expect(page.get_by_text("No dispute waits for you")).to_be_visible()
    assert set(task.flags.values_list("member", "reason")) == {(cast.charlie.pk, "private"), (cast.charlie.pk, "illegal")}
    task.item.refresh_from_db()
    assert task.item.quarantined


def test_researchers_read_a_tasks_history_and_handle_flags(
    cast: Cast, browser_page: Open, axe: Callable[[Page], None], picture: Callable[[Page, str], None]
) -> None:
    question = make_dispute(cast)
    task = question.tasks.get()
    queue.flag(cast.alice, task.pk, "private", "It names her.")
    for width, dark in ((1440, False), (1440, True), (390, False)):
        page = browser_page(cast.bob, width=width, dark=dark)
        for name, address in (
            ("task", f"/p/study/tasks/{task.pk}/"), ("flags", "/p/study/flags/"), ("gaps", "/p/study/questions/toxicity/gaps/"),
            ("reopen", "/p/study/questions/toxicity/reopen/"), ("disagreements", "/p/study/questions/toxicity/disagreements/"),
            ("question", "/p/study/questions/toxicity/"), ("disagreement-tasks", "/p/study/questions/toxicity/disagreements/tasks/"),
        ):  # fmt: skip
            page.goto(address)
            axe(page)
            picture(page, f"{name}-{width}{'-dark' if dark else ''}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than {width}"
    page.goto(f"/p/study/tasks/{task.pk}/")
    expect(page.get_by_text("Sarcasm, but aimed at people.")).to_be_hidden()
    page.get_by_text("Show comment").first.click()
    expect(page.get_by_text("Sarcasm, but aimed at people.")).to_be_visible()
    page.get_by_text("Strike out this vote").first.click()
    page.get_by_label("Why").first.fill("A slip.")
    page.get_by_role("button", name="Strike it out").first.click()
    expect(page.get_by_text("What it settled is superseded, and its slot is open again.")).to_be_visible()
    page.goto("/p/study/flags/")
    page.get_by_label("What was done").fill("Asked her; she agrees.")
    page.get_by_role("button", name="Handled").click()
    expect(page.get_by_text("No flag waits.")).to_be_visible()
