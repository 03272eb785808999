"""Every page that a person can click to, as each kind of person: strict policy, nothing inline, nothing missing."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.test import Client

from annotation.models import User
from curation.demo import loader

POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'", "font-src 'self'",
    "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
}  # fmt: skip
MOST_PAGES = 250
MOST_OF_A_KIND = 8  # of addresses that differ in their numbers only
NEVER_SHOWN = re.compile(r"^\s*(None|undefined)\s*$|\bNone[,.]|\b(NaN|nan|Infinity)\b|\{\{|\{%|<bound|object at 0x")


class Page(HTMLParser):
    """What a page links to, and what a strict policy forbids in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.parts: list[str] = []
        self.forbidden: list[str] = []
        self.words: list[str] = []
        self._silent = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style", "template"):
            self._silent += 1
        if tag == "a" and given.get("href") and "download" not in given:
            self.links.append(given["href"] or "")
        if (part := given.get("src")) or (tag == "link" and (part := given.get("href"))):
            self.parts.append(part)
        if tag == "style" or "style" in given or (tag == "script" and "src" not in given and given.get("type") != "application/json"):
            self.forbidden.append(self.get_starttag_text() or tag)
        if any(name.startswith("on") for name in given) or (given.get("href") or "").startswith("javascript:"):
            self.forbidden.append(self.get_starttag_text() or tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "template"):
            self._silent -= 1

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)


def clicked_through(client: Client) -> Iterator[tuple[str, HttpResponse]]:
    """From the home page, every link of this site, once; of pages that differ in numbers only, some."""
    waiting, seen, kinds = ["/"], {"/"}, dict[str, int]()
    while waiting and len(seen) < MOST_PAGES:
        address = waiting.pop(0)
        answer = client.get(address, follow=True)
        yield address, answer
        if not answer.get("Content-Type", "").startswith("text/html"):
            continue
        for link in Page(answer.content.decode()).links:
            target = urlsplit(urljoin(address, link))
            path = target.path + (f"?{target.query}" if target.query else "")
            kind = re.sub(r"\d+", "0", path)
            if target.netloc or path in seen or path.startswith("/static/") or kinds.get(kind, 0) >= MOST_OF_A_KIND:
                continue
            kinds[kind] = kinds.get(kind, 0) + 1
            seen.add(path)
            waiting.append(path)


def faults(address: str, answer: HttpResponse) -> Iterator[str]:
    """What is wrong with one answer, in words."""
    if answer.status_code != 200:
        yield f"answers {answer.status_code}"
    if {part.strip() for part in answer.get("Content-Security-Policy", "").split(";")} != POLICY:
        yield "has another policy"
    if answer.get("X-Content-Type-Options") != "nosniff":
        yield "may be sniffed"
    if answer.get("Content-Type", "").startswith("text/html"):
        yield from faults_in(Page(answer.content.decode()))


def faults_in(page: Page) -> Iterator[str]:
    for inline in page.forbidden:
        yield f"has {inline}"
    for part in page.parts:
        if part.startswith("/static/") and not finders.find(part.removeprefix("/static/")):
            yield f"takes {part}, which is not there"
        if not part.startswith(("/", "data:")):
            yield f"takes {part} from elsewhere"
    for words in page.words:
        if found := NEVER_SHOWN.search(words):
            yield f"says {words[max(0, found.start() - 40) : found.end() + 40].strip()!r}"


def test_every_page_is_whole_and_strict(db: None) -> None:
    loader.load()
    reached, wrong = {}, []
    for username in (None, "alice", "charlie", "bob"):
        client = Client()
        if username:
            client.force_login(User.objects.get(username=username))
        reached[username] = 0
        for address, answer in clicked_through(client):
            reached[username] += 1
            wrong += [f"{username} at {address}: {fault}" for fault in faults(address, answer)]
    assert not wrong, "\n".join(wrong)
    assert reached["alice"] >= 5
    assert reached["charlie"] >= 5
    assert reached["bob"] >= 20
