"""Known answers by program: marked, drawn, changed, taken out, and what they tell."""

import pytest

from annotation import known, people
from annotation.models import KnownAnswer, Pause, Question, Role, User
from tests import cast as make
from tests.annotation.api import Program
from tests.annotation.test_known import said, settle

AT = "questions/toxicity/known-answers/"


@pytest.fixture
def question(cast: make.Cast) -> Question:
    return make.make_question(cast.project, votes=2)


def test_a_program_marks_reads_changes_and_takes_out(cast: make.Cast, question: Question) -> None:
    bob = Program(cast.bob)
    items = make.make_items(cast.project, 3)
    answers = [{"item_id": item.pk, "choice": "yes", "why": "It insults."} for item in items[:2]]
    made = bob.post(AT, answers=answers, practice=True)
    assert made.status_code == 201
    assert bob.post(AT, answers=answers, practice=True).json() == made.json()  # sent again: the same, once
    first, _ = made.json()["ids"]
    shown = bob.get(AT, practice=True).json()
    assert [(one["external_id"], one["choice"], one["why"]) for one in shown] == [
        ("t0", "yes", "It insults."),
        ("t1", "yes", "It insults."),
    ]
    assert bob.get(AT).json() == []
    assert bob.send("PATCH", f"{AT}{first}/", {"choice": "no", "practice": False}).json()["choice"] == "no"
    assert [one["id"] for one in bob.get(AT).json()] == [first]
    assert bob.send("PATCH", f"{AT}{first}/", {"choice": "perhaps"}).status_code == 400
    assert bob.send("DELETE", f"{AT}{first}/").status_code == 204
    assert bob.send("DELETE", f"{AT}{first}/").status_code == 404
    refused = bob.post(AT, answers=[{"item_id": items[2].pk, "choice": "yes"}, {"item_id": 10**12, "choice": "no"}])
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["answers.1"])
    assert bob.post(AT, answers=[]).status_code == 400
    assert KnownAnswer.objects.count() == 2


def test_a_program_draws_from_what_is_settled_of_a_sample(cast: make.Cast, question: Question) -> None:
    tasks = settle(question, 4, "no")
    bob = Program(cast.bob)
    [one] = bob.post(f"{AT}draw/", count=1, item_ids=[tasks[3].item_id]).json()["ids"]
    assert KnownAnswer.objects.get(pk=one).task == tasks[3]
    assert bob.post(f"{AT}draw/", count=9).json()["fields"] == {"count": "From 1 to 3."}


def test_accuracy_comes_by_pseudonym_and_a_pause_is_lifted(cast: make.Cast, question: Question) -> None:
    one = known.mark(question, make.make_items(cast.project, 1)[0].pk, choice="yes", by=cast.bob)
    said(one, cast.alice, "no")
    Pause.objects.create(question=question, member=cast.alice, answers=20, correct=9, floor=0.5)
    bob = Program(cast.bob)
    told = bob.get(f"{AT}accuracy/").json()
    [tally] = told["tallies"]
    assert (told["checks"], tally["number"], tally["answers"], tally["correct"]) == (1, cast.alice.number, 1, 0)
    assert "alice" not in str(told)
    assert [(pause["question"], pause["number"]) for pause in bob.get("pauses/").json()] == [("toxicity", cast.alice.number)]
    assert bob.post(f"questions/toxicity/pauses/{cast.alice.number}/lift/").status_code == 200
    assert bob.get("pauses/").json() == []
    assert bob.post(f"questions/toxicity/pauses/{cast.alice.number}/lift/").json()["code"] == "not_paused"


def test_who_left_has_no_name_and_may_be_forgotten(cast: make.Cast) -> None:
    bob = Program(cast.bob)
    forget = f"members/{cast.dave.number}/forget/"
    assert bob.post(forget).json()["code"] == "not_ours"  # still in
    people.deactivate(cast.project, cast.dave.number)
    assert bob.get(f"members/{cast.dave.number}/").json()["username"] is None
    assert bob.post(forget).status_code == 204
    assert not User.objects.filter(username="dave").exists()
    assert bob.post(forget).status_code == 409
    people.change_role(cast.project, cast.erin.number, Role.ADJUDICATOR)
    assert bob.get(f"members/{cast.erin.number}/").json()["username"] == "erin"
