"""The researcher's pages of people, trail and export, tokens, and the API's own page, in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation import people, queue
from annotation.models import Role, User
from tests import cast as make

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def study(live: object) -> make.Cast:
    cast = make.make_cast()
    question = make.make_question(cast.project)
    make.make_tasks(question, 5)
    for member in (cast.alice, cast.dave, cast.erin):
        work = queue.next_work(member, question)
        queue.cast_vote(member, work[0].token, choice="no")
    people.change_role(cast.project, cast.erin.number, Role.ADJUDICATOR)
    people.deactivate(cast.project, cast.dave.number)
    return cast


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, False), (1440, True)])
def test_every_page_is_accessible_and_keeps_its_width(
    study: make.Cast,
    browser_page: Callable[..., Page],
    axe: Callable[[Page], None],
    picture: Callable[[Page, str], None],
    *,
    width: int,
    dark: bool,
) -> None:
    page = browser_page(study.bob, width=width, dark=dark)
    for name, address in {
        "people": "/p/study/people/", "person": f"/p/study/people/{study.erin.number}/", "audit": "/p/study/audit/",
        "audit-labels": "/p/study/audit/?kind=tasks", "export": "/p/study/export/", "tokens": "/account/tokens/",
    }.items():  # fmt: skip
        page.goto(address)
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
        picture(page, f"{name}-{width}{'-dark' if dark else ''}")


def test_a_researcher_adds_someone_who_signs_in_and_hands_them_a_role(
    study: make.Cast, browser_page: Callable[..., Page], axe: Callable[[Page], None]
) -> None:
    bob = browser_page(study.bob)
    bob.goto("/p/study/people/")
    bob.get_by_label("User name").fill("frank")
    bob.get_by_label("Make a new account").check()
    bob.get_by_role("button", name="Add").click()
    password = bob.get_by_role("status").locator("code").inner_text()
    axe(bob)

    frank = browser_page(None)
    frank.goto("/sign-in/")
    frank.get_by_label("User name").fill("frank")
    frank.get_by_label("Password", exact=True).fill(password)
    frank.get_by_role("button", name="Sign in").click()
    expect(frank.get_by_role("heading", name="Your work")).to_be_visible()

    bob.get_by_role("link", name="Open frank").click()
    bob.get_by_label("Role in this project").select_option("adjudicator")
    bob.get_by_role("button", name="Change the role").click()
    expect(bob.get_by_role("row", name="frank")).to_contain_text("adjudicator", ignore_case=True)


def test_what_was_wrong_is_said_at_its_field(study: make.Cast, browser_page: Callable[..., Page], axe: Callable[[Page], None]) -> None:
    bob = browser_page(study.bob)
    bob.goto("/p/study/people/")
    bob.get_by_label("User name").fill("nobody-here")
    bob.get_by_role("button", name="Add").click()
    expect(bob.get_by_role("alert")).to_contain_text("There is no such account")
    expect(bob.get_by_label("User name")).to_have_value("nobody-here")
    axe(bob)


def test_a_download_comes_as_a_file(study: make.Cast, browser_page: Callable[..., Page]) -> None:
    bob = browser_page(study.bob)
    bob.goto("/p/study/export/")
    with bob.expect_download() as waiting:
        bob.get_by_role("link", name="JSONL").click()
    assert waiting.value.suggested_filename.endswith(".jsonl")
    assert len(waiting.value.path().read_text().splitlines()) == 5


def test_staff_begin_a_project(study: make.Cast, browser_page: Callable[..., Page], axe: Callable[[Page], None]) -> None:
    User.objects.filter(pk=study.bob.user_id).update(is_staff=True)
    bob = browser_page(study.bob)
    bob.goto("/")
    bob.get_by_role("link", name="Begin a project").click()
    axe(bob)
    bob.get_by_label("Name", exact=True).fill("Tea study")
    bob.get_by_label("Short name in addresses").fill("tea")
    bob.get_by_role("button", name="Begin").click()
    expect(bob).to_have_url(re.compile(r"/p/tea/$"))


def test_the_apis_page_works_under_the_strict_policy(live: object, browser_page: Callable[..., Page]) -> None:
    """browser_page fails on any violation of the policy."""
    page = browser_page(None)
    page.goto("/api/v1/docs/")
    expect(page.locator("#swagger-ui .opblock").first).to_be_visible()
    page.locator("#operations-work-vote").get_by_role("button").first.click()
    expect(page.locator("#operations-work-vote")).to_contain_text("Sending the same token again")
