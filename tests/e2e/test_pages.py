"""Every page that annotators and adjudicators see: axe in light and dark, at a desk and on a phone."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from annotation.items import text_hash
from annotation.models import Guideline, Item, Membership
from annotation.tasks import create_tasks
from tests.cast import PASSWORD, Cast, make_items, make_question, make_tasks
from tests.e2e.test_adjudication import make_dispute, vote

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]
Axe = Callable[[Page], None]
Picture = Callable[[Page, str], None]
FACES = {"desk": (1440, False), "desk-dark": (1440, True), "phone": (390, False), "phone-dark": (390, True)}


@dataclass
class Face:
    """A browser of one width and theme. `look` checks the page as it stands, and keeps its picture when asked."""

    width: int
    dark: bool
    new_page: Open
    axe: Axe
    picture: Picture

    def open(self, member: Membership | None) -> Page:
        return self.new_page(member, width=self.width, dark=self.dark)

    def look(self, page: Page, name: str) -> None:
        assert page.evaluate("document.documentElement.scrollWidth") == self.width
        self.axe(page)
        self.picture(page, f"{name}-{self.width}{'-dark' if self.dark else ''}")


@pytest.fixture(params=FACES.values(), ids=FACES.keys())
def face(request: pytest.FixtureRequest, browser_page: Open, axe: Axe, picture: Picture) -> Face:
    return Face(*request.param, browser_page, axe, picture)


BODY = """A text is **toxic** when it is offensive or harmful: hate, harassment, threats, or anything that may distress a reader.

## Answer yes when it

- contains toxic material, mild or strong, or
- asks for toxic material.

## Answer no when it

- is only rude about a thing, not a person,
- quotes a toxic word in order to discuss it.
"""
EXAMPLES = [
    {
        "title": "A misspelt insult",
        "text": "Only a gooose would park like that.",
        "choice": "yes",
        "why": "The insult to a person is still there.",
    },
    {"title": "A blunt review", "text": "This soup is a disgrace.", "choice": "no", "why": "Harsh, but about soup."},
]


def test_the_sign_in_page_signs_in_and_says_how_many_tries_are_left(cast: Cast, face: Face) -> None:
    page = face.open(None)
    page.goto("/")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("That pair does not match. Four tries are left, then a pause of 5 minutes.")
    face.look(page, "sign-in")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Your work")).to_be_visible()


def test_every_page_of_an_annotator_passes_axe(cast: Cast, face: Face) -> None:
    toxicity = make_question(cast.project)
    Guideline.objects.create(question=toxicity, version=2, body=BODY, examples=EXAMPLES)
    make_tasks(toxicity, 4)
    natural = make_question(cast.project, "naturalness", choices="yes no unsure", shows_origin=True)
    seed = make_items(cast.project, 1, start=50)[0]
    create_tasks(natural, [one.pk for one in make_items(cast.project, 2, start=51, origin=seed)])
    harm = make_question(cast.project, "harm", choices="harmful safe unsure", tags="violence hate other")
    make_tasks(harm, 1)
    done = make_question(cast.project, "grammar")
    make_tasks(done, 1)
    vote(cast.alice, done, "yes", "A comment.")
    vote(cast.alice, toxicity, "no")

    page = face.open(cast.alice)
    page.goto("/")
    face.look(page, "home")
    page.goto("/account/")
    face.look(page, "account")
    page.goto("/support/")
    face.look(page, "support")
    page.goto("/sign-out/")
    face.look(page, "sign-out")
    page.goto("/p/study/label/toxicity/")
    page.goto("/")
    face.look(page, "home-holding")
    page.goto("/p/study/label/toxicity/")
    page.get_by_role("button", name="No", exact=True).click()
    expect(page.locator("#status")).to_contain_text("Saved: No")
    face.look(page, "label")
    page.get_by_role("button", name="Abstain").click()
    face.look(page, "label-abstain")
    page.get_by_role("button", name="Flag").click()
    face.look(page, "label-flag")
    page.get_by_role("link", name="Undo").click()
    expect(page.locator("#again")).to_be_visible()
    face.look(page, "label-undo")
    page.context.set_offline(True)
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_text("Not sent yet.")).to_be_visible()
    face.look(page, "label-offline")
    page.context.set_offline(False)
    expect(page.get_by_text("Not sent yet.")).to_be_hidden()
    if face.width > 600:
        page.get_by_role("button", name="Keys").click()
        face.look(page, "label-keys")
    page.goto("/p/study/label/naturalness/")
    page.get_by_role("button", name="Show seed").click()
    page.get_by_role("button", name="Comment").click()
    page.locator("#comment").fill("The 1 for an l looks like a disguise more than a slip.")
    face.look(page, "naturalness")
    page.goto("/p/study/label/harm/")
    page.get_by_role("button", name="Harmful").click()
    page.locator(".tag", has_text="Hate").click()
    face.look(page, "label-tags")
    page.goto("/p/study/label/grammar/")
    expect(page.locator("#nothing")).to_be_visible()
    face.look(page, "label-nothing")
    page.goto("/p/study/label/toxicity/")
    page.keyboard.press("Escape")
    page.wait_for_url("**/hidden/**")
    face.look(page, "hidden")


def test_every_page_of_an_adjudicator_passes_axe(cast: Cast, face: Face) -> None:
    question = make_dispute(cast)
    page = face.open(cast.charlie)
    page.goto("/")
    face.look(page, "home-adjudicator")
    page.goto("/p/study/disputes/")
    face.look(page, "disputes")
    page.goto(f"/p/study/disputes/{question.slug}/")
    face.look(page, "dispute-blind")
    page.get_by_role("button", name="No", exact=True).click()
    expect(page.get_by_text("in an order drawn for this dispute")).to_be_visible()
    page.locator(".tag", has_text="Guideline gap").click()
    page.locator("#note").fill("Say whether mild sarcasm about conduct counts.")
    face.look(page, "dispute-open")
    page.locator("#confirm").click()
    expect(page.get_by_text("Ruled. Your ruling is recorded.")).to_be_visible()
    face.look(page, "dispute-none")


def test_a_researcher_reads_the_disputes_in_their_own_shell(cast: Cast, face: Face) -> None:
    make_dispute(cast)
    page = face.open(cast.bob)
    page.goto("/")
    face.look(page, "home-researcher")
    page.goto("/p/study/disputes/")
    face.look(page, "disputes-researcher")


def test_a_long_text_keeps_the_answer_and_the_way_out_on_screen(cast: Cast, face: Face) -> None:
    question = make_question(cast.project)
    long = "A mild text that goes on. " * 120
    item = Item.objects.create(project=cast.project, kind="text", external_id="long", text=long, content_hash=text_hash(long))
    create_tasks(question, [item.pk])
    page = face.open(cast.alice)
    page.goto("/p/study/label/toxicity/")
    expect(page.get_by_role("button", name="Yes", exact=True)).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("link", name="Hide")).to_be_in_viewport(ratio=1)
    face.look(page, "label-long")
    page.mouse.wheel(0, 1500)
    expect(page.get_by_role("link", name="Hide")).to_be_in_viewport(ratio=1)


def test_the_theme_is_kept_in_the_browser(cast: Cast, browser_page: Open) -> None:
    page = browser_page(cast.alice)
    page.goto("/account/")
    page.get_by_role("button", name="Dark").click()
    page.goto("/")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
