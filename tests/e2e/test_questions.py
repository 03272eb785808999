"""Questions, the overview and a new run in a real browser: axe on each face, rows by script and without, live figures."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation import presets, questions, queue, wellbeing
from annotation.models import Question
from annotation.questions import GuidelineText
from curation.models import Sample, SampleItem
from scoring.runs import create_scorer
from tests.cast import Cast, make_tasks

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]
Axe = Callable[[Page], None]
Picture = Callable[[Page, str], None]
FACES = [(1440, False), (1440, True), (390, False), (390, True)]


def make_study(cast: Cast) -> Question:
    """Two questions, one of them without tasks; some votes, a dispute, two versions of the guideline, a scorer, a sample."""
    question = questions.create_question(cast.project, presets.TOXICITY, cast.bob.user)
    questions.create_question(cast.project, presets.IMAGE_HARM, cast.bob.user)
    make_tasks(question, 6)
    for voter in (cast.alice, cast.dave, cast.erin):
        wellbeing.give_consent(voter, 1)
    for voter, answers in ((cast.alice, "yes yes no"), (cast.dave, "yes no no"), (cast.erin, "yes yes no")):
        for answer in answers.split():
            queue.cast_vote(voter, queue.next_work(voter, question)[0].token, choice=answer, elapsed_ms=3200)
    text = GuidelineText("A text is **toxic** when it hurts someone.", presets.TOXICITY.guideline.examples)
    questions.new_guideline_version(question, text, after=1, author=cast.bob.user)
    create_scorer(cast.project, "profanity", "profanity", {}, cast.bob.user)
    sample = Sample.objects.create(project=cast.project, name="First", seed=1, size=2, population=6)
    SampleItem.objects.bulk_create(SampleItem(sample=sample, item=item, probability=1 / 3) for item in cast.project.items.all()[:2])
    return question


@pytest.mark.parametrize(("width", "dark"), FACES)
def test_every_page_passes_axe(  # noqa: PLR0917 - fixtures and a face
    cast: Cast, browser_page: Open, axe: Axe, picture: Picture, width: int, dark: bool
) -> None:
    page = browser_page(cast.bob, width=width, dark=dark)
    face = f"{width}{'-dark' if dark else ''}"
    page.goto("/p/study/")
    axe(page)
    picture(page, f"overview-empty-{face}")
    page.goto("/p/study/questions/")
    axe(page)
    make_study(cast)
    for name, address in {
        "overview": "",
        "questions": "questions/",
        "question": "questions/toxicity/?version=2",
        "question-image": "questions/image_harm/",
        "question-new": "questions/new/?preset=image_harm",
        "question-change": "questions/toxicity/change/",
        "question-guideline": "questions/toxicity/guideline/",
        "run-new": "runs/new/",
    }.items():
        page.goto(f"/p/study/{address}")
        axe(page)
        picture(page, f"{name}-{face}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{address} is wider than the window"


def test_a_question_is_made_with_rows_added_and_taken_away(cast: Cast, browser_page: Open, axe: Axe) -> None:
    page = browser_page(cast.bob)
    page.goto("/p/study/questions/new/")
    page.get_by_label("Title").first.fill("Tone")
    page.get_by_label("The question, as annotators read it").fill("Which tone?")
    choices = page.locator("#rows-choices [data-row]")
    for number, (label, key) in enumerate((("Kind", "k"), ("Neutral", "n"), ("Harsh", "h"))):
        choices.nth(number).get_by_label("Label").fill(label)
        choices.nth(number).get_by_label("Key").fill(key)
    page.get_by_role("button", name="One more choice").click()
    expect(choices).to_have_count(4)
    expect(choices.nth(3).get_by_label("Label")).to_be_focused()
    choices.nth(3).get_by_label("Label").fill("Mistake")
    choices.nth(3).get_by_role("button", name="Take this choice away").click()
    expect(choices).to_have_count(3)
    page.get_by_label("Instructions").fill("Listen to it.")
    choices.nth(1).get_by_label("Key").fill("p")
    page.get_by_role("button", name="Make the question").last.click()
    expect(page.get_by_role("alert")).to_contain_text("One field needs another look.")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.locator("#choices-1-hotkey-error")).to_contain_text("P does something else")
    axe(page)
    page.locator("#choices-1-hotkey").fill("e")
    page.get_by_role("button", name="Make the question").last.click()
    expect(page.get_by_role("heading", name="Tone", exact=True)).to_be_visible()
    assert list(Question.objects.get().choices.values_list("value", "hotkey")) == [("kind", "k"), ("neutral", "e"), ("harsh", "h")]


def test_rows_are_added_without_a_script_too(cast: Cast, browser_page: Open) -> None:
    page = browser_page(cast.bob, script=False)
    page.goto("/p/study/questions/new/?preset=toxicity")
    before = page.locator("#rows-choices [data-row]").count()
    page.locator("#choices-0-label").fill("Surely")
    page.get_by_role("button", name="One more choice").click()
    expect(page.locator("#rows-choices [data-row]")).to_have_count(before + 1)
    expect(page.locator("#choices-0-label")).to_have_value("Surely")


def test_the_overview_moves_by_itself_and_keeps_what_was_unfolded(cast: Cast, browser_page: Open) -> None:
    question = make_study(cast)
    page = browser_page(cast.bob)
    page.goto("/p/study/")
    votes = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Votes")).first
    expect(votes).to_contain_text("9")
    page.get_by_text("The same as a table").click()
    page.get_by_role("heading", level=1).click()  # focus leaves the live part
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes")
    expect(votes).to_contain_text("10", timeout=12_000)
    expect(page.locator("details#hours")).to_have_attribute("open", "")


def test_the_count_of_a_new_run_follows_the_choice(cast: Cast, browser_page: Open) -> None:
    make_study(cast)
    page = browser_page(cast.bob)
    page.goto("/p/study/runs/new/")
    expect(page.locator("#count")).to_contain_text("6 items to score.")
    page.get_by_label("Items").select_option(label="First (2 texts)")
    expect(page.locator("#count")).to_contain_text("2 items to score.")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("main")).to_contain_text("of 2")
