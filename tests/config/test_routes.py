"""Every address x every method x every kind of person, asked for real and held against the table in routes.py."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from annotation import known, people, queue
from annotation.models import Flag, Membership, Role, User
from curation.models import Comparison, ImportBatch, Sample, SampleItem
from scoring.models import Score, Scorer, ScoringRun
from tests import cast as make
from tests.config.routes import ADJUDICATOR, ANYONE, MEMBER, NOBODY, RESEARCHER, ROUTES, SIGNED_IN, STAFF, VOTER

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROLES = ("signed out", "annotator", "adjudicator", "researcher", "outsider", "without project", "left", "staff")
IN_PROJECT = {
    MEMBER: {"annotator", "adjudicator", "researcher"},
    VOTER: {"annotator", "adjudicator"},
    ADJUDICATOR: {"adjudicator", "researcher"},
    RESEARCHER: {"researcher"},
}
# What no voter may meet on any page: the machine's numbers and names, and what others answered.
SCORE, SCORER, COMMENT = "0.8642097531", "marker-scorer", "a comment that only dave knows of"


def routes() -> Iterator[str]:
    """The pattern of every address that the app answers."""

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, prefix + str(pattern.pattern))
            else:
                yield prefix + str(pattern.pattern)

    return walk(get_resolver().url_patterns, "")


@dataclass
class World:
    """A small real project, and someone of each kind who is signed in, or holds a token."""

    cast: make.Cast
    people: dict[str, User | None]
    client: Client = field(default_factory=Client)  # one for all: to make one takes long
    tokens: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def address(self, pattern: str, role: str) -> str:
        """The pattern with its parts filled in: one's own where something is one's own."""
        figures = {"/disagreements/": "pairs", "/agreement/": "agreement", "/raters/": "pairs", "/progress/": "burn-down"}
        figure = next((name for part, name in figures.items() if part in pattern), "confusion")
        pattern = pattern.replace("<slug:name>", figure)
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda part: str(self.parts[role][part[1]]), pattern)


@pytest.fixture
def world(transactional_db: None) -> World:
    """Committed, because an export reads by a connection of its own."""
    cast = make.make_cast()
    left = make.make_member(cast.project, "leonie", Role.ANNOTATOR)
    people.deactivate(cast.project, left.number)
    alone = User.objects.create_user("nina")
    staff = User.objects.create_user("stan", is_staff=True)
    question = make.make_question(cast.project, votes=3)
    make.make_tasks(question, 6)
    votes = {"annotator": _answer(cast.alice, question, "yes")}
    _answer(cast.dave, question, "no", COMMENT)
    _answer(cast.erin, question, "yes")  # a dispute, which charlie may rule on
    for choice in ("yes", "no"):
        for member in (cast.alice, cast.dave, cast.erin):
            _answer(member, question, choice)
    votes["adjudicator"] = _answer(cast.charlie, question, "yes")
    shared = _things(cast, question)
    seen = make.make_question(cast.project, "harm", kind="image")
    (picture,) = make.make_pictures(seen, 1)
    for member in (cast.alice, cast.charlie):
        _answer(member, seen, "yes")
    shared["picture"] = picture.pk
    world = World(
        cast,
        {
            "signed out": None, "annotator": cast.alice.user, "adjudicator": cast.charlie.user, "researcher": cast.bob.user,
            "outsider": cast.mallory.user, "without project": alone, "left": left.user, "staff": staff,
        },
    )  # fmt: skip
    for role, user in world.people.items():
        key = "0" * 15
        if user is not None:
            token, world.tokens[role] = people.new_token(user)
            key = token.token_key
        world.parts[role] = {**shared, "key": key, "vote": votes.get(role, votes["annotator"])}
    return world


def _answer(member: Membership, question: Any, choice: str, comment: str = "") -> int:
    work = queue.next_work(member, question)
    return queue.cast_vote(member, work[0].token, choice=choice, comment=comment).vote_id


def _things(cast: make.Cast, question: Any) -> dict[str, Any]:
    """One of everything that an address may name."""
    project = cast.project
    scorer = Scorer.objects.create(
        project=project, name=SCORER, kind="profanity", fingerprint="f" * 64, score_names=["toxicity"], created_by=cast.bob.user
    )
    run = ScoringRun.objects.create(project=project, scorer=scorer, created_by=cast.bob.user)
    for item in project.items.all():
        Score.objects.create(scorer=scorer, item=item, name="toxicity", value=float(SCORE))
    batch = ImportBatch.objects.create(
        project=project, filename="texts.csv", path="", file_hash="0" * 64, size=10, format="csv", state="done", created_by=cast.bob.user
    )
    sample = Sample.objects.create(project=project, name="first", seed=1, size=1, population=6, created_by=cast.bob.user)
    SampleItem.objects.create(sample=sample, item=item, probability=1 / 6)
    comparison = Comparison.objects.create(
        project=project, name="first", question=question, positive=question.choices.first(), scorer=scorer, score_name="toxicity",
        created_by=cast.bob.user,
    )  # fmt: skip
    flag = Flag.objects.create(task=item.tasks.get(question=question), member=cast.dave, reason="wrong")
    known_answer = known.mark(question, make.make_items(project, 1, start=90)[0].pk, choice="yes", by=cast.bob)
    return {
        "project": project.slug, "question": question.slug, "number": cast.dave.number, "item": item.pk, "scorer": scorer.pk, "run": run.pk,
        "known_answer": known_answer.pk, "batch": batch.pk, "sample": sample.pk, "comparison": comparison.pk, "form": "jsonl",
        "rest": "nowhere/", "kind": "svg", "task": item.tasks.get(question=question).pk, "flag": flag.pk,
    }  # fmt: skip


def table() -> dict[tuple[str, str], str]:
    """(method, pattern) -> who may."""
    return {(method, pattern): who for who, methods, pattern in ROUTES for method in methods.split()}


def expected(who: str, role: str, *, api: bool) -> str:
    """What someone of this role gets at an address that is for `who`."""
    if who == NOBODY:
        return "404"
    if who == ANYONE or (who == SIGNED_IN and role != "signed out"):
        return "allowed"
    if role == "signed out":
        return "401" if api else "sign in"
    if who == STAFF:
        return "allowed" if role == "staff" else "403"
    if role in IN_PROJECT[who]:
        return "allowed"
    return "403" if role in IN_PROJECT[MEMBER] else "404"


def is_api(pattern: str) -> bool:
    return pattern.startswith("api/")


def outcome(response: HttpResponseBase) -> str:
    """The same words for what was answered."""
    if response.status_code == 302 and response["Location"].startswith("/sign-in/"):
        return "sign in"
    if response.status_code in (401, 403, 404, 405) or response.status_code >= 500:
        return str(response.status_code)
    return "allowed"


def ask(world: World, role: str, method: str, pattern: str, *, by_token: bool = False, hostile: str = "") -> tuple[str, str]:
    """(outcome, body) of one request, whose changes are undone, so that every request meets the same project."""
    address, user = world.address(pattern, role), world.people[role]
    address += f"?{hostile}" if hostile else ""
    client = world.client
    client.cookies.clear()
    headers = {"Authorization": f"Token {world.tokens[role]}"} if by_token else {}
    with transaction.atomic():
        try:
            if user is not None and not by_token:
                client.force_login(user)
            if is_api(pattern):
                response = client.generic(method, address, "{}" if method != "GET" else "", "application/json", headers=headers)
            else:
                response = client.generic(method, address, hostile, "application/x-www-form-urlencoded")
            body = b"".join(response) if response.streaming else response.content
            return outcome(response), body.decode(errors="replace")
        except Exception as error:  # noqa: BLE001 - any fault of a view is a line of this test's report
            return f"500 {type(error).__name__}: {error}", ""
        finally:
            transaction.set_rollback(True)


def test_the_table_has_every_address_and_nothing_else() -> None:
    there, written = set(routes()), {pattern for _, _, pattern in ROUTES}
    assert "\n".join(sorted(there - written)) == "", "addresses that tests/config/routes.py lacks"
    assert "\n".join(sorted(written - there)) == "", "lines of tests/config/routes.py without an address"
    assert len(table()) == sum(len(methods.split()) for _, methods, _ in ROUTES), "a method is written twice"


def test_the_table_has_every_method_and_nothing_else(world: World) -> None:
    wrong = []
    for pattern in routes():
        for method in METHODS:
            # A method that a view does not take is refused before anything is asked about the person.
            got, _ = ask(world, "researcher", method, pattern)
            if (got != "405") != ((method, pattern) in table()):
                wrong.append(f"{method} /{pattern}: {got}")
    if wrong:
        pytest.fail("\n".join(wrong))


def test_everyone_gets_what_the_table_says_and_no_voter_learns_a_score_or_someone_elses_vote(world: World) -> None:
    wrong = []
    for (method, pattern), who in table().items():
        means = [(role, False) for role in ROLES] + [(role, True) for role in world.tokens if is_api(pattern)]
        for role, by_token in means:
            got, body = ask(world, role, method, pattern, by_token=by_token)
            asked = f"{method} /{pattern} as {role}{' by token' if by_token else ''}"
            if got != (right := expected(who, role, api=is_api(pattern))):
                wrong.append(f"{asked}: {got}, not {right}")
            if role != "researcher":
                wrong += [f"{asked} told {word}" for word in (SCORE, SCORER, COMMENT) if word in body]
    if wrong:
        pytest.fail("\n".join(wrong))


def test_the_markers_are_really_there_for_the_researcher(world: World) -> None:
    _, body = ask(world, "researcher", "GET", "p/<slug:project>/export/items.<slug:form>?comments=1")
    assert [word for word in (SCORE, SCORER, COMMENT) if word not in body] == []


def test_a_value_that_cannot_be_stored_is_refused_in_words_everywhere(world: World) -> None:
    """NUL is the one character that PostgreSQL does not take."""
    names = "answer before choice comment do items kind name note number question reason role sample size slug state tags token username"
    hostile = "&".join(f"{name}=%00" for name in names.split())
    wrong = []
    for (method, pattern), who in table().items():
        if method == "GET" or (method == "POST" and not is_api(pattern)):
            got, _ = ask(world, "annotator" if who == VOTER else "researcher", method, pattern, hostile=hostile)
            wrong += [f"{method} /{pattern}: {got}"] if got.startswith("500") else []
    if wrong:
        pytest.fail("\n".join(wrong))
