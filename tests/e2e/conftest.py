"""The bench for tests in a real browser: Django's live server, Chromium, axe.

Where there is no browser the tests fail and say so; tests/browser.py looks for one.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from annotation.models import Membership
from tests.browser import ARGUMENTS, executable

TIMEOUT_MS = 15_000
expect.set_options(timeout=TIMEOUT_MS)
# Playwright's sync API runs an event loop in this thread; the ORM calls of a test are still plain and synchronous.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = executable()
    if path is None:
        pytest.fail(
            "No browser for the browser tests. Install Chromium (`apt install chromium`), run `.venv/bin/playwright install chromium`,"
            " or name one in ASSAY_CHROMIUM.",
            pytrace=False,
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def live(live_server: LiveServer) -> LiveServer:
    """The app on a real port, on the test database."""
    return live_server


@pytest.fixture
def browser_page(browser: Browser, live: LiveServer) -> Iterator[Callable[..., Page]]:
    """browser_page(member, width=1440, dark=False) -> a page signed in as that member's user (None: nobody).

    Each call is a browser of its own: other cookies, other storage. A script error on a page fails the test.
    """
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def browser_page(member: Membership | None = None, *, width: int = 1440, dark: bool = False, script: bool = True) -> Page:
        phone = width < 600
        context = browser.new_context(
            base_url=live.url,
            viewport={"width": width, "height": 844 if phone else 900},
            color_scheme="dark" if dark else "light",
            has_touch=phone,
            is_mobile=phone,
            java_script_enabled=script,
            timezone_id="UTC",
            locale="en-GB",
        )
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        if member is not None:
            sign_in_context(context, member, live.url)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        page.on("console", lambda line: wrong.append(line.text) if "Content Security Policy" in line.text else None)
        return page

    yield browser_page
    for context in contexts:
        context.close()
    assert not wrong, wrong


def sign_in_context(context: BrowserContext, member: Membership, url: str) -> None:
    """Give the browser the session of a signed-in person without going through the page."""
    client = Client()
    client.force_login(member.user)
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": client.cookies[settings.SESSION_COOKIE_NAME].value, "url": url}])


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], None]:
    """axe(page) fails, with the rules and the places, when axe finds a violation of WCAG 2.2 AA or of its best practices."""
    checker = Axe()

    def axe(page: Page) -> None:
        found = checker.run(page).response["violations"]
        told = [f"{page.url} {one['id']} ({one['impact']}): {[node['target'] for node in one['nodes']]}" for one in found]
        assert not told, "\n".join(told)

    return axe


@pytest.fixture
def picture() -> Callable[[Page, str], None]:
    """picture(page, name) keeps a screenshot in ASSAY_PICTURES, when that is set."""
    folder = os.environ.get("ASSAY_PICTURES")

    def picture(page: Page, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    return picture
