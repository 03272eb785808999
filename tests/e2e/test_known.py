"""Known answers from end to end in a real browser: marked by a researcher, practised and answered, a pause, and going on after it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation import known, queue
from annotation.models import KnownAnswer, Pause, Question
from tests import cast as make

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
PAGE = "/p/study/questions/toxicity/known/"


@pytest.fixture
def study(live: object) -> make.Cast:
    cast = make.make_cast()
    make.make_tasks(make.make_question(cast.project), 30)
    return cast


def used(study: make.Cast) -> Question:
    """A question with practice, checks, someone paused, and a check that most people miss."""
    question = Question.objects.get()
    make.make_tasks(question, 70)
    items = make.make_items(study.project, 34, start=100)
    known.mark_many(question, [known.Answer(item.pk, "yes", (), "It insults a person.") for item in items[:3]], practice=True, by=study.bob)
    known.mark_many(question, [known.Answer(item.pk, "no" if n else "yes") for n, item in enumerate(items[3:])], by=study.bob)
    Question.objects.update(check_share=0.5, accuracy_floor=0.8)
    question.refresh_from_db()
    for member, right in ((study.alice, False), (study.dave, True), (study.erin, True)):
        answer_all(member, question, right=right)
    return question


def answer_all(member: make.Membership, question: Question, *, right: bool) -> None:
    while not Pause.objects.filter(member=member).exists():
        work = queue.next_work(member, question)
        if not work:
            return
        one = KnownAnswer.objects.filter(task=work[0].task_id).first()
        truth = one.choice.value if one and one.practice else "no"
        queue.cast_vote(member, work[0].token, choice=truth if right or one is None or one.practice else "yes")


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, False), (1440, True), (390, True)])
def test_every_page_is_accessible_and_keeps_its_width(
    study: make.Cast,
    browser_page: Callable[..., Page],
    axe: Callable[[Page], None],
    picture: Callable[[Page, str], None],
    *,
    width: int,
    dark: bool,
) -> None:
    question = used(study)
    first = KnownAnswer.objects.filter(practice=False).first()
    page = browser_page(study.bob, width=width, dark=dark)
    for name, address in {
        "known": PAGE, "known-contents": f"{PAGE}?contents=1", "known-one": f"{PAGE}{first.pk}/?contents=1",
        "question": f"/p/study/questions/{question.slug}/", "settings": f"/p/study/questions/{question.slug}/change/",
        "person": f"/p/study/people/{study.alice.number}/", "void": f"/p/study/people/{study.dave.number}/void/?question=toxicity",
        "people": "/p/study/people/", "audit": "/p/study/audit/", "overview": "/p/study/",
    }.items():  # fmt: skip
        page.goto(address)
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
        picture(page, f"e-{name}-{width}{'-dark' if dark else ''}")


def test_a_researcher_marks_items_and_an_annotator_practises(
    study: make.Cast, browser_page: Callable[..., Page], axe: Callable[[Page], None], picture: Callable[[Page, str], None]
) -> None:
    bob = browser_page(study.bob)
    bob.goto("/p/study/questions/toxicity/")
    bob.get_by_role("link", name="Known answers").click()
    bob.get_by_label("Items and their answers").fill("t0, yes,, It insults a person.\nt99, no")
    bob.get_by_label("for practice, with feedback").first.check()
    bob.get_by_role("button", name="Mark them").click()
    expect(bob.get_by_role("alert")).to_contain_text("lines cannot be marked")
    axe(bob)
    picture(bob, "e-known-wrong-1440")
    bob.get_by_label("Items and their answers").fill("t0, yes,, It insults a person.\nt1, no")
    bob.get_by_role("button", name="Mark them").click()
    expect(bob.get_by_text("2 known answers in use as practice")).to_be_visible()

    alice = browser_page(study.alice)
    alice.goto("/p/study/label/toxicity/")
    alice.keyboard.press("n")
    expect(alice.get_by_text("It insults a person.")).to_be_visible()
    picture(alice, "e-practice-1440")


def test_a_paused_annotator_is_told_and_goes_on_when_a_researcher_says_so(
    study: make.Cast, browser_page: Callable[..., Page], picture: Callable[[Page, str], None]
) -> None:
    used(study)
    alice = browser_page(study.alice)
    alice.goto("/p/study/label/toxicity/")
    expect(alice.get_by_role("heading", name="You are paused on this question")).to_be_visible()
    picture(alice, "e-paused-1440")
    bob = browser_page(study.bob)
    bob.goto("/p/study/")
    expect(bob.get_by_text("Annotator 1 is paused")).to_be_visible()
    bob.goto(f"/p/study/people/{study.alice.number}/")
    bob.get_by_role("button", name="Let them go on").click()
    expect(bob.get_by_text("Annotator 1 can go on with Toxicity")).to_be_visible()
    alice.reload()
    expect(alice.get_by_role("button", name="No")).to_be_visible()


def test_voiding_asks_first(study: make.Cast, browser_page: Callable[..., Page]) -> None:
    used(study)
    bob = browser_page(study.bob)
    bob.goto(f"/p/study/people/{study.dave.number}/")
    bob.get_by_role("link", name="Void votes").click()
    expect(bob.get_by_role("heading", name="What will happen")).to_be_visible()
    bob.get_by_label("Why").fill("Answered at random.")
    bob.get_by_role("button", name="Void").click()
    expect(bob.get_by_text("more voided")).to_be_visible()
