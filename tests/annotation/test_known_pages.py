"""The researcher's pages of known answers, pauses and voided votes."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from annotation import known, queue
from annotation.models import KnownAnswer, Pause, Question, Task, VoidedVote, Vote
from tests import cast as make
from tests.annotation.test_known import said, settle


@pytest.fixture
def question(cast: make.Cast) -> Question:
    return make.make_question(cast.project, votes=2)


@pytest.fixture
def bob(cast: make.Cast, sign_in) -> Client:  # type: ignore[no-untyped-def]
    return sign_in(cast.bob)  # type: ignore[no-any-return]


PAGE = "/p/study/questions/toxicity/known/"


def text(response) -> str:  # type: ignore[no-untyped-def]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_items_are_named_and_listed_by_id_and_shown_on_request(cast: make.Cast, question: Question, bob: Client) -> None:
    make.make_items(cast.project, 3)
    bob.post(PAGE, {"do": "lines", "lines": "t0, yes\nt1, no,, Plain.", "use": "practice"})
    bob.post(PAGE, {"do": "lines", "lines": "t2, no", "use": "check"})
    assert [(one.task.item.external_id, one.practice) for one in KnownAnswer.objects.order_by("pk")] == [
        ("t0", True),
        ("t1", True),
        ("t2", False),
    ]
    page = text(bob.get(PAGE))
    assert "1. t0" in page
    assert "A mild text" not in page
    assert "A mild text, number 2." in text(bob.get(PAGE + "?contents=1"))


def test_what_was_typed_stays_when_a_line_is_wrong(cast: make.Cast, question: Question, bob: Client) -> None:
    make.make_items(cast.project, 1)
    answer = bob.post(PAGE, {"do": "lines", "lines": "t0, yes\nt7, no", "use": "practice"})
    assert answer.status_code == 422
    assert "Line 2 No item has the id “t7”." in text(answer)
    assert "t0, yes\nt7, no</textarea>" in answer.content.decode()
    assert bob.post(PAGE, {"do": "draw", "count": "many", "seed": "1"}).status_code == 422
    assert bob.post(PAGE, {"do": "dance"}).status_code == 422


def test_settled_tasks_are_drawn_and_the_page_says_when_checks_run_out(cast: make.Cast, question: Question, bob: Client) -> None:
    settle(question, 30, "no")
    Question.objects.update(check_share=0.2, accuracy_floor=0.8)
    assert bob.post(PAGE, {"do": "draw", "count": "3", "seed": "7", "use": "check"}).status_code == 302
    page = text(bob.get(PAGE))
    assert "20% of what annotators are handed. Someone who answers all 30 tasks meets about 8 checks; there are 3." in page
    assert "They run out. After about 15 answers" in page
    assert "fewer than 80% right, after at least 20 answers, is paused" in page


def test_a_check_that_most_people_miss_is_pointed_out_and_mended(cast: make.Cast, question: Question, bob: Client) -> None:
    [item] = make.make_items(cast.project, 1)
    one = known.mark(question, item.pk, choice="yes", by=cast.bob)
    for member in (cast.alice, cast.dave, cast.erin):
        said(one, member, "no")
    assert "3 of 3 most miss it: is it right?" in text(bob.get(PAGE))
    assert bob.post(f"{PAGE}{one.pk}/", {"do": "change", "choice": "maybe"}).status_code == 422
    bob.post(f"{PAGE}{one.pk}/", {"do": "change", "choice": "no", "why": "A quotation.", "use": "check"})
    assert "0 of 3" in text(bob.get(PAGE))
    bob.post(f"{PAGE}{one.pk}/", {"do": "remove"})
    assert bob.get(f"{PAGE}{one.pk}/").status_code == 404


def test_a_pause_is_on_the_page_of_the_question_the_person_and_the_known_answers_until_it_is_lifted(
    cast: make.Cast, question: Question, bob: Client
) -> None:
    Pause.objects.create(question=question, member=cast.alice, answers=22, correct=15, floor=0.8)
    person = f"/p/study/people/{cast.alice.number}/"
    for address, words in {
        PAGE: "Annotator 1 is paused", person: "Paused on Toxicity", "/p/study/questions/toxicity/": "Annotator 1 is paused",
        "/p/study/people/": "paused", "/p/study/": "Annotator 1 is paused",
    }.items():  # fmt: skip
        assert words in text(bob.get(address)), address
    assert "15 of 22 known answers were right, and the floor was 80%" in text(bob.get(person))
    lift = f"/p/study/questions/toxicity/pauses/{cast.alice.number}/lift/"
    assert bob.get(lift).status_code == 405
    assert bob.post(lift).status_code == 302
    assert bob.post(lift).status_code == 409
    page = text(bob.get(person))
    assert "Paused on" not in page
    assert "lifted" in page


def test_voiding_says_first_what_will_happen_and_then_does_it(cast: make.Cast, question: Question, bob: Client) -> None:
    make.make_tasks(question, 3)
    for member in (cast.alice, cast.dave):
        for choice in ("no", "yes") if member == cast.alice else ("no", "no"):
            work = queue.next_work(member, question)
            queue.cast_vote(member, work[0].token, choice=choice)
    states = sorted(Task.objects.values_list("state", flat=True))
    assert states == ["agreed", "disputed", "open"]
    Task.objects.filter(state="disputed").update(state="adjudicated", settled_at=timezone.now())
    page = f"/p/study/people/{cast.alice.number}/void/"
    shown = text(bob.get(f"{page}?question=toxicity"))
    assert "2 votes count nowhere any more" in shown
    assert "1 settled or disputed task is open again" in shown
    assert "1 task that an adjudicator ruled on keeps the ruling" in shown
    assert bob.post(page, {"question": "toxicity", "why": " "}).status_code == 422
    assert Vote.objects.count() == 4
    assert bob.post(page, {"question": "toxicity", "why": "Answered at random."}).status_code == 302
    assert (Vote.objects.count(), VoidedVote.objects.count()) == (2, 2)
    assert "no vote to void" in text(bob.get(page))
    assert "2 more voided" in text(bob.get(f"/p/study/people/{cast.alice.number}/"))
    assert bob.get(f"{page}?question=nowhere").status_code == 404
