"""Labelling in a real browser, as an annotator does it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Abstention, Flag, Item, Question, Vote
from annotation.tasks import create_tasks
from tests.cast import PASSWORD, Cast, make_items, make_question, make_tasks

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    question = make_question(cast.project)
    make_tasks(question, 12)
    return question


def label_page(page: Page, question: Question) -> None:
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


def answers() -> list[str]:
    return list(Vote.objects.order_by("id").values_list("choice__value", flat=True))


def kept(page: Page) -> list[str]:
    """The keys of the answers and drafts that this browser still keeps."""
    return [key for key in page.evaluate("Object.keys(localStorage)") if key.startswith(("assay:out:", "assay:draft:"))]


def test_five_texts_are_labelled_by_keys_alone_one_request_each(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for key, word in zip("ynyny", ("Yes", "No", "Yes", "No", "Yes"), strict=True):
        answer(page, key, f"Saved: {word}")
    assert len(requests) == 5
    assert answers() == ["yes", "no", "yes", "no", "yes"]
    assert all(vote.elapsed_ms is not None and vote.elapsed_ms < 60_000 for vote in Vote.objects.all())
    assert kept(page) == []


def test_the_next_text_is_there_before_the_server_has_answered(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    page.route("**/vote/", lambda _: None)  # the server never answers
    page.keyboard.press("y")
    assert item(page) != first
    assert page.evaluate("document.activeElement.id") == "item"


def test_keys_do_nothing_in_a_field_with_a_modifier_on_repeat_or_switched_off(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.keyboard.press("c")
    page.keyboard.type("yes, any of these")
    page.locator("#item").focus()
    page.keyboard.press("Control+y")
    page.keyboard.press("Shift+Y")
    page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'y', code: 'KeyY', repeat: true, bubbles: true}))")
    page.keyboard.press("Shift+?")
    expect(page.get_by_role("button", name="Close")).to_be_focused()
    with page.expect_response("**/account/keys/"):
        page.get_by_label("Answer by single keys").uncheck()
    page.keyboard.press("Shift+?")
    page.keyboard.press("y")
    assert answers() == []
    page.reload()
    page.keyboard.press("y")
    page.get_by_role("button", name="No", exact=True).click()
    expect(page.locator("#status")).to_contain_text("Saved: No")
    assert answers() == ["no"]


def test_undo_opens_the_last_answers_one_by_one_and_they_can_be_changed(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    answer(page, "y", "Saved: Yes")
    answer(page, "y", "Saved: Yes")
    current = item(page)
    page.keyboard.press("z")
    expect(page.locator("#again")).to_be_visible()
    page.keyboard.press("z")
    expect(page.locator("#item-id")).to_have_text(first)
    expect(page.locator(".choice[value=yes]")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("n")
    expect(page.locator("#status")).to_contain_text("Changed: No")
    expect(page.locator("#item-id")).to_have_text(current)
    assert answers() == ["no", "yes"]
    page.keyboard.press("z")
    expect(page.locator("#again")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#item-id")).to_have_text(current)
    page.keyboard.press("z")
    expect(page.locator("#again")).to_be_visible()
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("Kept as it was: Yes")
    assert answers() == ["no", "yes"]


def test_keys_go_by_their_place_where_the_layout_has_no_latin_letters(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'н', code: 'KeyY', bubbles: true }))")
    expect(page.locator("#status")).to_contain_text("Saved: Yes")


def test_long_labels_and_odd_guidelines_stay_inside_a_phone(cast: Cast, browser_page: Open) -> None:
    question = make_question(cast.project, choices="yes no maybe certainly", tags="one two")
    make_tasks(question, 2)
    question.choices.filter(value="yes").update(label="Perhaps, depending" + "on" * 20)
    question.guidelines.update(body="| a | b |\n|---|---|\n| " + "w" * 90 + " | x |\n\n```\n" + "y" * 300 + "\n```")
    page = browser_page(cast.alice, width=390)
    label_page(page, question)
    page.locator(".choice[value=yes]").tap()
    expect(page.locator("#tags")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_an_answer_is_changed_from_the_home_page_too(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    answer(page, "y", "Saved: Yes")
    page.keyboard.press("p")
    page.get_by_role("link", name=f"Change your answer for item {first}").click()
    expect(page.locator("#item-id")).to_have_text(first)
    page.keyboard.press("n")
    expect(page.locator("#status")).to_contain_text("Changed: No")
    assert answers() == ["no"]


def test_abstaining_takes_two_keys_and_gives_a_reason(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    page.keyboard.press("a")
    answer(page, "3", "Abstained")
    given = Abstention.objects.get()
    assert (str(given.task.item_id), given.reason) == (first, "distressing")


def test_a_flag_carries_a_reason_and_a_note_and_leaves_the_text_to_be_answered(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    page.keyboard.press("f")
    page.keyboard.press("2")
    page.locator("#flag-note").fill("It names my neighbour.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#status")).to_contain_text("Flagged")
    assert item(page) == first
    assert Flag.objects.get().note == "It names my neighbour."
    answer(page, "y", "Saved: Yes")


def test_possibly_illegal_takes_the_text_away_at_the_press_in_every_tab_also_offline(
    cast: Cast, toxicity: Question, browser_page: Open
) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    other = page.context.new_page()
    label_page(other, toxicity)
    first, text = item(page), page.locator("#text").inner_text()
    assert item(other) == first
    page.bring_to_front()
    page.keyboard.press("c")
    page.keyboard.type("a draft")
    page.locator("#item").focus()
    page.context.set_offline(True)
    page.keyboard.press("f")
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    assert item(page) != first
    assert text not in page.content()
    expect(other.locator("#item-id")).not_to_have_text(first)
    assert text not in other.content()
    assert [key for key in kept(page) if "draft" in key] == []
    assert not Item.objects.get(pk=int(first)).quarantined
    page.context.set_offline(False)
    page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.startsWith('assay:out:'))")
    assert Item.objects.get(pk=int(first)).quarantined
    for one in (page, other):
        expect(one.locator("#task")).to_have_attribute("data-state", "work")
        assert item(one) != first
        one.wait_for_load_state("networkidle")


def test_an_answer_whose_item_was_taken_out_does_not_stop_undo(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    answer(page, "y", "Saved: Yes")
    second = item(page)
    answer(page, "n", "Saved: No")
    Item.objects.filter(pk=int(second)).update(quarantined=True)
    page.keyboard.press("z")
    expect(page.locator("#status")).to_have_text("One answer cannot be opened any more. Your answer was: Yes")
    expect(page.locator("#item-id")).to_have_text(first)


def test_a_comment_that_cannot_be_kept_comes_back_with_its_item_and_the_words_in_their_field(
    cast: Cast, toxicity: Question, browser_page: Open
) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    page.keyboard.press("c")
    page.evaluate("document.getElementById('comment').value = 'w'.repeat(2001)")
    page.locator("#item").focus()
    page.keyboard.press("y")
    expect(page.get_by_role("alert").filter(has_text="at most 2,000 characters")).to_be_visible()
    expect(page.locator("#item-id")).to_have_text(first)
    expect(page.locator("#comment")).to_have_value("w" * 2001)
    expect(page.locator("#outbox")).to_be_empty()
    page.locator("#comment").fill("Shorter.")
    page.locator("#item").focus()
    answer(page, "y", "Saved: Yes")
    assert list(Vote.objects.values_list("comment", flat=True)) == ["Shorter."]


def test_signing_out_in_one_tab_takes_the_item_off_the_others(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    other = page.context.new_page()
    other.goto("/sign-out/")
    other.get_by_role("button", name="Sign out").click()
    expect(page.locator("#task")).to_have_count(0)
    expect(other.get_by_label("User name")).to_be_visible()
    assert "mild text" not in page.content()


def test_choices_stay_whole_words_on_a_page_enlarged_four_times(cast: Cast, browser_page: Open) -> None:
    question = make_question(cast.project, choices="yes no unsure")
    make_tasks(question, 2)
    page = browser_page(cast.alice, width=320)
    label_page(page, question)
    lines = """() => [...document.querySelectorAll(".choice")].map((one) => {
        const range = document.createRange();
        range.selectNodeContents(one.childNodes[1]);
        return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
    })"""
    assert page.evaluate(lines) == [1, 1, 1]
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_a_comment_survives_reload_and_escape_and_goes_with_the_answer(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.keyboard.press("c")
    page.keyboard.type("The 1 looks like a disguise.")
    page.reload()
    expect(page.locator("#comment")).to_have_value("The 1 looks like a disguise.")
    page.locator("#comment").focus()
    page.keyboard.press("Escape")
    page.wait_for_url("**/hidden/**")
    page.get_by_role("link", name="Show it again").click()
    expect(page.locator("#comment")).to_have_value("The 1 looks like a disguise.")
    page.locator("#comment").press("Control+Enter")
    answer(page, "y", "Saved: Yes")
    assert Vote.objects.get().comment == "The 1 looks like a disguise."
    assert kept(page) == []


def test_tags_follow_the_choice_that_needs_them(cast: Cast, browser_page: Open) -> None:
    question = make_question(cast.project, "harm", choices="harmful safe", tags="violence hate")
    make_tasks(question, 4)
    page = browser_page(cast.alice)
    label_page(page, question)
    page.keyboard.press("h")
    page.keyboard.press("Enter")
    expect(page.locator("#tags-error")).to_be_visible()
    page.keyboard.press("2")
    answer(page, "Enter", "Saved: Harmful")
    answer(page, "s", "Saved: Safe")
    assert list(Vote.objects.order_by("id").values_list("choice__value", "tags")) == [("harmful", ["hate"]), ("safe", [])]


def test_the_seed_shows_on_request_only(cast: Cast, browser_page: Open) -> None:
    question = make_question(cast.project, "naturalness", choices="yes no unsure", shows_origin=True)
    seed = make_items(cast.project, 1)[0]
    derived = make_items(cast.project, 1, start=1, origin=seed)
    create_tasks(question, [one.pk for one in derived])
    page = browser_page(cast.alice)
    label_page(page, question)
    expect(page.get_by_text(seed.text)).to_be_hidden()
    page.keyboard.press("s")
    expect(page.get_by_text(seed.text)).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#nothing")).to_be_visible()
    expect(page.locator("#status")).to_contain_text("Saved: Unsure")
    plain = browser_page(cast.dave, script=False)
    label_page(plain, question)
    expect(plain.get_by_text(seed.text)).to_be_hidden()
    plain.get_by_text("Show seed", exact=True).first.click()
    expect(plain.get_by_text(seed.text)).to_be_visible()


# ---------------------------------------------------------------- nothing is lost
def test_a_second_thought_survives_reload_and_escape_too(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    first = item(page)
    answer(page, "y", "Saved: Yes")
    page.keyboard.press("z")
    expect(page.locator("#item-id")).to_have_text(first)
    page.keyboard.press("c")
    page.keyboard.type("On reflection.")
    page.reload()
    expect(page.locator("#comment")).to_have_value("On reflection.")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Show it again").click()
    expect(page.locator("#item-id")).to_have_text(first)
    expect(page.locator("#comment")).to_have_value("On reflection.")
    page.keyboard.press("n")
    expect(page.locator("#status")).to_contain_text("Changed: No")
    page.reload()
    expect(page.locator("#item-id")).not_to_have_text(first)
    assert Vote.objects.get().comment == "On reflection."


def test_an_answer_given_offline_is_kept_and_sent_when_the_connection_returns(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.context.set_offline(True)
    page.keyboard.press("y")
    expect(page.get_by_text("Not sent yet.")).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator("#task")).to_have_attribute("data-state", "waiting")
    assert len(kept(page)) == 2
    assert "mild text" not in page.evaluate("JSON.stringify(localStorage)")
    page.context.set_offline(False)
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    expect(page.get_by_text("Not sent yet.")).to_be_hidden()
    assert answers() == ["yes", "no"]
    assert kept(page) == []


def test_an_answer_given_after_the_session_ended_is_sent_after_signing_in_again(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.keyboard.press("c")
    page.keyboard.type("Kept across the sign-in.")
    page.locator("#comment").press("Control+Enter")
    page.context.clear_cookies()
    page.keyboard.press("y")
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    page.get_by_role("link", name="Sign in again").click()
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#status")).to_contain_text("Saved: Yes")
    assert [(vote.choice.value, vote.comment) for vote in Vote.objects.all()] == [("yes", "Kept across the sign-in.")]
    assert kept(page) == []


def test_what_one_person_could_not_send_never_goes_out_in_anothers_name(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.context.clear_cookies()
    page.keyboard.press("y")
    page.get_by_role("link", name="Sign in again").click()
    page.get_by_label("User name").fill("dave")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    answer(page, "n", "Saved: No")
    assert [(vote.member, vote.choice.value) for vote in Vote.objects.all()] == [(cast.dave, "no")]
    assert len(kept(page)) == 1


def test_a_failing_server_is_tried_again(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.route("**/vote/", lambda route: route.fulfill(status=502, body="Bad gateway"), times=1)
    page.keyboard.press("y")
    expect(page.get_by_text("Not sent yet.")).to_be_visible()
    expect(page.locator("#status")).to_contain_text("Saved: Yes")
    assert answers() == ["yes"]


def test_a_response_that_got_lost_does_not_make_a_second_vote(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)

    def lose(route: object) -> None:
        route.fetch()
        route.abort()

    page.route("**/vote/", lose, times=1)
    page.keyboard.press("y")
    expect(page.get_by_text("Not sent yet.")).to_be_visible()
    expect(page.locator("#status")).to_contain_text("Saved: Yes")
    assert answers() == ["yes"]


def test_a_late_vote_is_refused_with_the_text_kept(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.keyboard.press("c")
    page.keyboard.type("Worth keeping.")
    page.locator("#comment").press("Control+Enter")
    cast.alice.leases.all().delete()
    # The counter is the queue's: take the slots back as it would.
    toxicity.tasks.update(lease_count=0)
    page.keyboard.press("y")
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("Not taken.")
    expect(notice).to_contain_text("Worth keeping.")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("Worth keeping.")
    page.get_by_role("button", name="Put away").click()
    assert kept(page) == []


def test_someone_taken_out_of_the_project_is_told_and_does_not_wait_for_ever(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    type(cast.alice).objects.filter(pk=cast.alice.pk).update(active=False)
    page.keyboard.press("y")
    page.keyboard.press("y")
    expect(page.get_by_role("alert")).to_have_count(2)
    expect(page.get_by_role("alert").first).to_contain_text("you are not in it. Your answer was: Yes.")
    expect(page.locator("#task")).to_have_attribute("data-state", "nothing")


def test_two_tabs_of_one_person_make_one_vote_and_say_so(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    one = browser_page(cast.alice)
    label_page(one, toxicity)
    two = one.context.new_page()
    label_page(two, toxicity)
    assert item(one) == item(two)
    answer(one, "y", "Saved: Yes")
    two.keyboard.press("n")
    expect(two.locator("#status")).to_contain_text("You had already answered this one elsewhere: Yes")
    assert answers() == ["yes"]


# ---------------------------------------------------------------- the way out
def test_a_tab_that_waits_goes_on_when_another_tab_has_sent_its_answers(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.context.route("**/vote/", lambda route: route.abort())
    page.keyboard.press("y")
    page.keyboard.press("n")
    expect(page.locator("#task")).to_have_attribute("data-state", "waiting")
    other = page.context.new_page()
    page.context.unroute("**/vote/")
    page.route("**/vote/", lambda route: route.abort())
    other.goto(f"/p/study/label/{toxicity.slug}/")
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    expect(page.locator("#outbox .notice")).to_have_count(0)
    assert answers() == ["yes", "no"]


def test_escape_hides_everything_and_back_shows_nothing(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    page.goto("/")
    page.get_by_role("link", name="Start with Toxicity").click()
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    page.keyboard.press("Escape")
    page.wait_for_url("**/hidden/**")
    assert page.title() == "Assay"
    expect(page.get_by_role("heading", name="Everything is hidden")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Everything is hidden")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Your work")).to_be_visible()


def test_back_over_an_older_content_page_leads_to_hidden_again(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    answer(page, "y", "Saved: Yes")
    vote = Vote.objects.get()
    page.goto(f"/p/study/label/toxicity/?answer={vote.pk}")
    page.keyboard.press("Escape")
    page.wait_for_url("**/hidden/**")
    page.go_back()
    expect(page.get_by_role("heading", name="Everything is hidden")).to_be_visible()
    page.get_by_role("link", name="Show it again").click()
    expect(page.locator("#item-id")).to_have_text(str(vote.task.item_id))


# ---------------------------------------------------------------- other hands
def test_a_phone_labels_with_taps(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice, width=390)
    label_page(page, toxicity)
    before = item(page)
    page.get_by_role("button", name="No", exact=True).tap()
    expect(page.locator("#item-id")).not_to_have_text(before)
    expect(page.locator("#status")).to_contain_text("Saved: No")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_double_click_answers_once(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    label_page(page, toxicity)
    page.get_by_role("button", name="Yes", exact=True).dblclick()
    expect(page.locator("#status")).to_contain_text("Saved: Yes")
    page.wait_for_timeout(200)
    assert answers() == ["yes"]


def test_without_script_every_step_works_by_forms(cast: Cast, toxicity: Question, browser_page: Open) -> None:
    page = browser_page(cast.alice, script=False)
    page.goto("/p/study/label/toxicity/")
    page.locator("#comment").fill("No script here.")
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.locator("#status")).to_have_text("Saved: Yes")
    page.get_by_role("link", name="Undo").click()
    page.get_by_role("button", name="No", exact=True).click()
    expect(page.locator("#status")).to_have_text("Saved: No")
    page.get_by_label("Too distressing").check()
    page.get_by_role("button", name="Abstain").click()
    expect(page.locator("#status")).to_have_text("Abstained")
    assert [(vote.choice.value, vote.comment) for vote in Vote.objects.all()] == [("no", "No script here.")]
