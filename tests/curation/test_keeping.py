"""Figures of very many votes: a worker makes them, and the pages say so meanwhile."""

import pytest
from django.core.cache import cache

from annotation.models import Question
from curation import agreement, disagreement, keeping, raters
from curation.keeping import BeingWorkedOut, Wanted, without_waiting
from tests.cast import Cast, make_items, make_question
from tests.curation.settled import settle
from workers import tasks

AGREEMENT = "/p/study/agreement/toxicity/"
RATERS = "/p/study/raters/toxicity/"
DISAGREEMENTS = "/p/study/questions/toxicity/disagreements/"


@pytest.fixture
def question(cast: Cast) -> Question:
    question = make_question(cast.project)
    settle(cast, question, make_items(cast.project, 5)[:4], ["yyy", "yyn", "nnn", "nnn"])
    return question


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Wanted]:
    """What workers are told; any vote at all is too many for a request."""
    found: list[Wanted] = []
    monkeypatch.setattr(tasks, "send_wanted", found.append)
    monkeypatch.setattr(keeping, "MOST_AT_ONCE", 0)
    return found


def make_all(sent: list[Wanted]) -> None:
    """A worker's part."""
    while sent:
        wanted = sent.pop(0)
        tasks.make_figures(wanted.kind, wanted.question_id, wanted.by)


@pytest.mark.parametrize(
    "address", [AGREEMENT, f"{RATERS}?sort=votes", f"{RATERS}1/", DISAGREEMENTS, f"{AGREEMENT}?group=gender&by=recipe"]
)
def test_a_page_says_that_its_figures_are_being_worked_out_until_they_are_there(  # type: ignore[no-untyped-def]
    cast: Cast, question: Question, sent: list[Wanted], sign_in, address: str
) -> None:
    client = sign_in(cast.bob)
    first = client.get(address)
    assert first.status_code == 202
    page = first.content.decode()
    assert "Being worked out" in page
    assert 'hx-trigger="every 2s"' in page
    assert f'hx-get="{address.replace("&", "&amp;")}"' in page
    assert len(sent) == 1
    for _ in range(4):  # the page of agreement shows up to four results
        make_all(sent)
        if (answer := client.get(address)).status_code == 200:
            break
    assert answer.status_code == 200
    assert "Being worked out" not in answer.content.decode()
    assert sent == []


def test_a_worker_is_told_once_however_often_the_page_looks(cast: Cast, question: Question, sent: list[Wanted], sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    for _ in range(3):
        assert client.get(RATERS).status_code == 202
    assert sent == [Wanted("raters", question.pk)]


def test_older_figures_are_shown_while_newer_ones_are_made(cast: Cast, question: Question, sent: list[Wanted], sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    client.get(RATERS)
    make_all(sent)
    assert "Newer ones" not in client.get(RATERS).content.decode()
    settle(cast, question, cast.project.items.order_by("pk")[4:], ["yyy"])
    page = client.get(RATERS).content.decode()
    assert "Newer ones are being worked out" in page
    assert "12 votes on 4 complete tasks" in page
    make_all(sent)
    page = client.get(RATERS).content.decode()
    assert "Newer ones" not in page
    assert "15 votes on 5 complete tasks" in page


def test_a_program_is_told_to_ask_again(cast: Cast, question: Question, sent: list[Wanted], sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    for address in ("agreement/toxicity/", "raters/toxicity/", "questions/toxicity/disagreements/"):
        answer = client.get(f"/api/v1/projects/study/{address}")
        assert (answer.status_code, answer.json()["code"]) == (503, "being_worked_out")
    assert {wanted.kind for wanted in sent} == {"agreement", "raters", "disagreement"}
    assert client.get(f"{AGREEMENT}figures/votes.csv").status_code == 503


def test_the_overview_does_not_wait_either(cast: Cast, question: Question, sent: list[Wanted], sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    assert "It is being worked out." in client.get("/p/study/").content.decode()
    make_all(sent)
    assert "It is being worked out." not in client.get("/p/study/").content.decode()


def test_few_votes_are_counted_at_once_and_a_command_waits_for_many(question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_waiting() as asked:
        few = raters.of_question(question)
    assert asked.wanted == []
    monkeypatch.setattr(keeping, "MOST_AT_ONCE", 11)
    with without_waiting() as asked, pytest.raises(BeingWorkedOut):
        agreement.of_question(question)
    assert asked.wanted == [Wanted("agreement", question.pk)]
    assert agreement.of_question(question).figures.votes == few.votes == 12


def test_many_votes_come_to_the_same_figures_as_few(cast: Cast, question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [agreement.of_question, raters.of_question, disagreement.of_question]
    few = [make(question) for make in made]
    monkeypatch.setattr(keeping, "MOST_AT_ONCE", 0)
    cache.clear()
    many = [make(question) for make in made]
    assert few[0].figures == many[0].figures  # type: ignore[attr-defined]
    assert few[1].raters[0].agreement == many[1].raters[0].agreement  # type: ignore[attr-defined]
    assert few[2] == many[2]
