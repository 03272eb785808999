"""Pictures in a real browser: by keys alone, on a phone, by a screen reader's tree, and when the connection drops."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation import presets, wellbeing
from annotation.models import Abstention, Consent, KnownAnswer, Media, Question, Task, User, Vote
from annotation.questions import create_question
from tests.cast import Cast, make_pictures, make_question, make_tasks
from tests.e2e.test_labelling import answer, item, kept, label_page

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]
Axe = Callable[[Page], None]
Picture = Callable[[Page, str], None]


@pytest.fixture
def harm(cast: Cast) -> Question:
    """The ready-made question with a dozen drawn pictures; its content warning came with it."""
    question = create_question(cast.project, presets.IMAGE_HARM, cast.bob.user)
    make_pictures(question, 12, prompt="a prompt that nobody may see")
    return question


def agree(*members: object) -> None:
    for member in members:
        wellbeing.give_consent(member, 1)


def shown(page: Page) -> dict[str, object]:
    """What of pictures is on screen: the visible ones, and whether they are there."""
    return page.evaluate(
        """() => { const all = [...document.querySelectorAll("#frame img")], on = all.filter((one) => one.checkVisibility());
                   return { held: all.length, on: on.length, loaded: on.every((one) => one.complete && one.naturalWidth > 0),
                            alt: on.map((one) => one.alt).join() }; }"""
    )


def uncovered(page: Page) -> None:
    page.keyboard.press("u")
    expect(page.locator("#item")).not_to_have_class("is-covered")
    expect(page.get_by_role("img", name="The image to judge, uncovered")).to_be_visible()


# ---------------------------------------------------------------- four people
def test_someone_with_only_a_keyboard_agrees_uncovers_tags_undoes_abstains_and_leaves(
    cast: Cast, harm: Question, browser_page: Open, axe: Axe, picture: Picture
) -> None:
    page = browser_page(cast.alice)
    page.goto("/p/study/label/image_harm/")
    expect(page.get_by_role("heading", name="Before you start")).to_be_focused()
    assert page.locator("img").count() == 0, "no picture before consent"
    axe(page)
    picture(page, "image-before-consent")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # Read and decide
    expect(page.get_by_role("heading", name="Before you start: what you may see")).to_be_visible()
    axe(page)
    picture(page, "consent")
    page.get_by_label("I have read what I may see").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    axe(page)
    picture(page, "image-covered")
    assert Consent.objects.get().member == cast.alice
    assert shown(page)["alt"] == "The image to judge, covered"

    first = item(page)
    page.keyboard.press("2")
    expect(page.locator("#status")).to_contain_text("Uncover the picture first")
    uncovered(page)
    page.keyboard.press("2")
    page.keyboard.press("v")
    page.keyboard.press("h")
    picture(page, "image-tags")
    axe(page)
    answer(page, "Enter", "Saved: Harmful")
    assert shown(page) == {"held": 2, "on": 1, "loaded": True, "alt": "The image to judge, covered"}
    uncovered(page)
    answer(page, "1", "Saved: Safe")
    page.keyboard.press("z")
    page.keyboard.press("z")
    expect(page.locator("#item-id")).to_have_text(first)
    expect(page.locator("#status")).to_contain_text("Your answer was: Harmful")
    page.keyboard.press("h")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Changed: Harmful")
    page.keyboard.press("a")
    answer(page, "3", "Abstained")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Everything is hidden")).to_be_focused()
    assert page.locator("img").count() == 0
    assert list(Vote.objects.order_by("id").values_list("choice__value", "tags")) == [("harmful", ["violence-and-gore"]), ("safe", [])]
    assert Abstention.objects.get().reason == "distressing"


def test_someone_on_a_phone_labels_pictures_with_taps(cast: Cast, harm: Question, browser_page: Open, axe: Axe, picture: Picture) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice, width=390)
    label_page(page, harm)
    axe(page)
    picture(page, "image-390")
    page.get_by_role("button", name="Harmful").tap()
    expect(page.locator("#status")).to_contain_text("Uncover the picture first")
    page.get_by_role("button", name="Uncover").tap()
    expect(page.get_by_role("img", name="The image to judge, uncovered")).to_be_visible()
    page.get_by_role("img").tap()  # zooms in, and out again
    expect(page.locator("#item")).to_have_class("item item--image is-zoomed")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("img").tap(force=True)
    page.get_by_role("button", name="Harmful").tap()
    page.locator("label.tag", has_text="Violence and gore").tap()
    picture(page, "image-tags-390")
    axe(page)
    first = item(page)
    page.get_by_role("button", name="Send: Harmful").tap()
    expect(page.locator("#item-id")).not_to_have_text(first)
    expect(page.locator("#status")).to_contain_text("Saved: Harmful")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("link", name="Hide").tap()
    expect(page.get_by_role("heading", name="Everything is hidden")).to_be_visible()


def test_a_screen_readers_tree_names_every_part_and_the_prompt_is_nowhere(cast: Cast, harm: Question, browser_page: Open) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice)
    label_page(page, harm)
    expect(page.locator("main")).to_match_aria_snapshot(
        """
        - main:
          - 'heading "Image harm: one image to judge" [level=1]'
          - figure "The image to judge":
            - img "The image to judge, covered"
            - button "Uncover"
            - button "Greyscale"
          - group "Is this image harmful?":
            - button "Safe"
            - button "Harmful"
            - button "Unsure"
          - status
          - button "Abstain"
          - button "Flag"
          - button "Comment"
        """
    )
    expect(page.locator(".taskbar")).to_match_aria_snapshot(
        """
        - banner:
          - link "Assay, your work"
          - navigation "Where you are"
          - progressbar "Settled"
          - meter "Sensitive this hour"
          - link /Break/
          - link "Hide everything"
        """
    )
    uncovered(page)
    page.get_by_role("button", name="Harmful").click()
    expect(page.locator("#tags")).to_match_aria_snapshot(
        """
        - group /Which kind/:
          - checkbox "Sexually explicit"
          - checkbox "Violence and gore"
          - checkbox "Hateful"
          - checkbox "Other"
          - 'button "Send: Harmful"'
        """
    )
    everything = page.content() + page.evaluate("fetch('/p/study/label/image_harm/next/').then((answer) => answer.text())")
    assert "nobody may see" not in everything


def test_three_answers_that_could_not_be_sent_for_20_seconds_all_arrive_once(cast: Cast, harm: Question, browser_page: Open) -> None:
    """Two pictures that are here already, and a text in another tab."""
    agree(cast.alice)
    other = make_question(cast.project)
    make_tasks(other, 3)
    page = browser_page(cast.alice)
    label_page(page, harm)
    second = page.context.new_page()
    label_page(second, other)
    page.bring_to_front()
    page.context.set_offline(True)
    for _ in range(2):
        uncovered(page)
        page.keyboard.press("1")
    second.keyboard.press("y")
    expect(page.get_by_text("3 answers are kept here")).to_be_visible()
    expect(page.locator("#task")).to_have_attribute("data-state", "waiting")
    page.wait_for_timeout(20_000)
    assert len(kept(page)) == 3
    assert Vote.objects.count() == 0
    page.context.set_offline(False)
    expect(page.locator("#task")).to_have_attribute("data-state", "work")
    page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.startsWith('assay:out:'))")
    expect(page.get_by_text("Not sent yet.")).to_be_hidden()
    assert sorted(Vote.objects.values_list("question__slug", "choice__value")) == [
        ("image_harm", "safe"), ("image_harm", "safe"), ("toxicity", "yes"),
    ]  # fmt: skip
    assert kept(page) == []


# ---------------------------------------------------------------- the picture
def test_the_next_picture_is_there_before_the_answer_is_sent(cast: Cast, harm: Question, browser_page: Open) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice)
    label_page(page, harm)
    page.wait_for_function("() => [...document.querySelectorAll('#frame img')].every((one) => one.complete)")
    uncovered(page)
    page.route("**/vote/", lambda _: None)  # the server never answers
    page.keyboard.press("1")
    assert shown(page) == {"held": 1, "on": 1, "loaded": True, "alt": "The image to judge, covered"}


def test_a_picture_has_its_shape_before_it_is_there(cast: Cast, harm: Question, browser_page: Open) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice)
    page.route("**/picture*", lambda _: None)
    page.goto("/p/study/label/image_harm/", wait_until="domcontentloaded")
    expect(page.locator("#frame")).to_have_attribute("data-sized", "")
    box = page.evaluate("document.getElementById('picture').getBoundingClientRect().toJSON()")
    assert box["width"] / box["height"] == pytest.approx(320 / 240, abs=0.01)
    page.keyboard.press("u")
    page.keyboard.press("1")
    expect(page.locator("#status")).to_contain_text("The picture is not there yet.")
    assert Vote.objects.count() == 0


def test_greyscale_is_kept_for_the_person_and_never_takes_the_cover_off(cast: Cast, harm: Question, browser_page: Open) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice)
    label_page(page, harm)
    with page.expect_response("**/account/greyscale/"):
        page.keyboard.press("b")
    assert User.objects.get(username="alice").greyscale
    look = "getComputedStyle(document.querySelector('#frame img:not([hidden])')).filter"
    assert "blur(36px)" in page.evaluate(look)
    assert "grayscale(1)" in page.evaluate(look)
    page.reload()
    expect(page.get_by_role("button", name="Greyscale")).to_have_attribute("aria-pressed", "true")
    uncovered(page)
    assert page.evaluate(look) == "grayscale(1)"


def test_zooming_by_key_lets_the_arrow_keys_move_and_covering_ends_it(cast: Cast, harm: Question, browser_page: Open, axe: Axe) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice)
    label_page(page, harm)
    page.keyboard.press("+")
    expect(page.locator("#zoom-button")).to_be_hidden()  # not through the cover
    uncovered(page)
    page.keyboard.press("+")
    expect(page.locator("#zoom-button")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("group", name="The image, enlarged")).to_be_focused()
    before = page.evaluate("document.getElementById('frame').scrollTop")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("(before) => document.getElementById('frame').scrollTop > before", arg=before)
    axe(page)
    page.keyboard.press("u")
    expect(page.locator("#item")).to_have_class("item item--image is-covered")
    assert page.evaluate("document.getElementById('frame').scrollTop") == 0


def test_a_picture_that_does_not_load_can_be_tried_again_or_called_broken(
    cast: Cast, harm: Question, browser_page: Open, picture: Picture, axe: Axe
) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice)
    page.route("**/picture*", lambda route: route.fulfill(status=404, body=""))
    label_page(page, harm)
    expect(page.get_by_role("alert")).to_contain_text("The picture did not load.")
    axe(page)
    picture(page, "image-gone")
    page.unroute("**/picture*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("img", name="The image to judge, covered")).to_be_visible()
    page.route("**/picture*", lambda route: route.fulfill(status=404, body=""))
    page.reload()
    page.get_by_role("button", name="Abstain: the item is broken").click()
    expect(page.locator("#status")).to_contain_text("Abstained")
    assert Abstention.objects.get().reason == "broken"


def test_tags_half_chosen_survive_reload_and_escape(cast: Cast, harm: Question, browser_page: Open) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice)
    label_page(page, harm)
    uncovered(page)
    page.keyboard.press("2")
    page.keyboard.press("v")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Show it again").click()
    expect(page.get_by_role("checkbox", name="Violence and gore")).to_be_checked()
    expect(page.get_by_role("img", name="The image to judge, covered")).to_be_visible()


def test_without_script_a_picture_is_uncovered_by_a_box_and_answered_by_a_form(cast: Cast, harm: Question, browser_page: Open) -> None:
    agree(cast.alice)
    page = browser_page(cast.alice, script=False)
    page.goto("/p/study/label/image_harm/")
    page.get_by_role("button", name="Safe").click()  # the box is required: the browser asks for it
    assert Vote.objects.count() == 0
    page.locator("label.cover").click()
    page.get_by_role("button", name="Safe").click()
    expect(page.locator("#status")).to_have_text("Saved: Safe")
    page.get_by_label("The item is broken").check()
    page.get_by_role("button", name="Abstain").click()
    expect(page.locator("#status")).to_have_text("Abstained")


SHAPES = [(320, 240), (40, 30), (120, 2400), (2400, 120), (900, 1600)]


@pytest.mark.parametrize("width", [1440, 390])
def test_the_answers_are_at_one_place_whatever_the_pictures_shape(
    cast: Cast, harm: Question, browser_page: Open, picture: Picture, width: int
) -> None:
    agree(cast.alice)
    tasks = list(Task.objects.filter(question=harm).select_related("item__media").order_by("rank"))
    for task, (across, down) in zip(tasks, SHAPES, strict=False):
        Media.objects.filter(pk=task.item.media_id).update(width=across, height=down)
    page = browser_page(cast.alice, width=width)
    label_page(page, harm)
    place = "document.querySelector('.choice').getBoundingClientRect().toJSON()"
    places = []
    for number in range(len(SHAPES)):
        places.append(page.evaluate(place))
        if width == 390:
            page.get_by_role("button", name="Uncover").tap()
        else:
            page.keyboard.press("u")
        places.append(page.evaluate(place))
        assert page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.getElementById('item'))") == 0
        picture(page, f"shape-{number}-{width}")
        page.get_by_role("button", name="Harmful").click()
        expect(page.locator("#tags")).to_be_visible()
        assert page.evaluate(place)["y"] + page.evaluate("scrollY") == pytest.approx(places[0]["y"], abs=1)
        page.locator("label.tag", has_text="Hateful").click()
        before = item(page)
        page.locator("#send").click()
        expect(page.locator("#item-id")).not_to_have_text(before)
    assert {(round(one["x"]), round(one["y"])) for one in places} == {(round(places[0]["x"]), round(places[0]["y"]))}
    assert places[0]["y"] + places[0]["height"] <= (844 if width == 390 else 900)


@pytest.mark.parametrize("shape", [(2400, 120), (120, 2400), (40, 30)])
def test_zoom_shows_at_least_the_pictures_own_pixels(cast: Cast, harm: Question, browser_page: Open, shape: tuple[int, int]) -> None:
    agree(cast.alice)
    Media.objects.update(width=shape[0], height=shape[1])
    page = browser_page(cast.alice)
    label_page(page, harm)
    uncovered(page)
    width = "document.querySelector('#frame img:not([hidden])').getBoundingClientRect().width"
    frame = page.locator("#frame").bounding_box()
    small = page.evaluate(width)
    page.keyboard.press("+")
    large = page.evaluate(width)
    if shape == (40, 30):
        assert (small, large) == (160, 160), "four times, and no more"
        assert page.evaluate("getComputedStyle(document.querySelector('#frame img')).imageRendering") == "pixelated"
    elif shape[0] > shape[1]:
        assert small == pytest.approx(frame["width"], abs=1)
        assert large >= 2400
    else:
        assert small == pytest.approx(frame["height"] / 20, abs=1)
        assert large == pytest.approx(480, abs=1), "four times its pixels, which the frame has room for"


# ---------------------------------------------------------------- practice
def test_practice_tells_what_was_right_and_enter_goes_on(
    cast: Cast, harm: Question, browser_page: Open, axe: Axe, picture: Picture
) -> None:
    agree(cast.alice)
    harmful = harm.choices.get(value="harmful")
    for task in Task.objects.filter(question=harm).order_by("id")[:2]:
        Task.objects.filter(pk=task.pk).update(state="retired")
        KnownAnswer.objects.create(
            task=task, question=harm, choice=harmful, tags=["violence-and-gore"], why="Two knights fight.", practice=True, author=cast.bob
        )
    page = browser_page(cast.alice)
    label_page(page, harm)
    first = item(page)
    expect(page.get_by_text("Practice", exact=True)).to_be_visible()
    uncovered(page)
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name="Not quite")).to_be_focused()
    expect(page.locator("#feedback")).to_contain_text("The answer is Harmful: Violence and gore.")
    expect(page.locator("#feedback")).to_contain_text("Two knights fight.")
    assert item(page) == first, "it stays until it is read"
    axe(page)
    picture(page, "image-feedback")
    page.reload()
    expect(page.get_by_role("heading", name="Not quite")).to_be_visible()
    expect(page.locator("#feedback")).to_contain_text("Two knights fight.")
    page.keyboard.press("Enter")
    expect(page.locator("#item-id")).not_to_have_text(first)
    uncovered(page)
    page.keyboard.press("2")
    page.keyboard.press("v")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="That is right")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Practice", exact=True)).to_be_hidden()
    uncovered(page)
    page.wait_for_function("document.querySelector('#frame img:not([hidden])').complete")  # handed out a moment ago
    answer(page, "1", "Saved: Safe")
    assert Vote.objects.count() == 1
