"""A dispute settled by a program: blind first, then with the votes open."""

import pytest

from annotation.models import Question, TaskState
from tests import cast as make
from tests.annotation.api import Program


@pytest.fixture
def question(cast: make.Cast) -> Question:
    """With one disputed task: two say no, erin says yes and why."""
    question = make.make_question(cast.project, votes=3)
    make.make_tasks(question, 1)
    for member, choice in ((cast.alice, "no"), (cast.dave, "no"), (cast.erin, "yes")):
        program = Program(member)
        token = program.post("questions/toxicity/work/").json()["work"][0]["token"]
        program.post("votes/", token=token, choice=choice, comment="It stings." if choice == "yes" else "")
    return question


def test_an_adjudicator_rules_blind_then_sees_the_votes_without_names_and_settles_it(cast: make.Cast, question: Question) -> None:
    charlie = Program(cast.charlie)
    assert charlie.get("questions/toxicity/disputes/").json() == {"waiting": 1, "ruled": 0}
    answer = charlie.post("questions/toxicity/disputes/")
    dispute = answer.json()["dispute"]
    assert dispute["votes"] is None
    assert "It stings." not in answer.content.decode()

    opened = charlie.post("rulings/blind/", token=dispute["token"], choice="yes").json()
    assert sorted(vote["choice"] for vote in opened["votes"]) == ["no", "no", "yes"]
    assert {vote["letter"] for vote in opened["votes"]} == {"A", "B", "C"}
    assert "It stings." in str(opened)
    assert not {"alice", "dave", "erin"} & set(str(opened).replace("'", " ").split())

    ruled = charlie.post("rulings/", token=dispute["token"], choice="no", reason="ambiguous", note="Ironic.")
    assert ruled.status_code == 204
    assert question.tasks.get().state == TaskState.ADJUDICATED
    assert charlie.get("questions/toxicity/disputes/").json() == {"waiting": 0, "ruled": 1}


def test_the_votes_do_not_open_before_the_blind_ruling(cast: make.Cast, question: Question) -> None:
    charlie = Program(cast.charlie)
    token = charlie.post("questions/toxicity/disputes/").json()["dispute"]["token"]
    answer = charlie.post("rulings/", token=token, choice="no", reason="ambiguous")
    assert (answer.status_code, answer.json()["code"]) == (409, "blind_first")


def test_a_ruling_says_why(cast: make.Cast, question: Question) -> None:
    charlie = Program(cast.charlie)
    token = charlie.post("questions/toxicity/disputes/").json()["dispute"]["token"]
    charlie.post("rulings/blind/", token=token, choice="no")
    assert charlie.post("rulings/", token=token, choice="no").json()["fields"].keys() == {"reason"}
    assert charlie.post("rulings/", token=token, choice="no", reason="mood").json()["fields"].keys() == {"reason"}


def test_a_dispute_given_back_waits_for_someone_else(cast: make.Cast, question: Question) -> None:
    charlie, bob = Program(cast.charlie), Program(cast.bob)
    token = charlie.post("questions/toxicity/disputes/").json()["dispute"]["token"]
    assert bob.post("questions/toxicity/disputes/").json()["dispute"] is None
    assert charlie.post("disputes/give-back/", token=token).status_code == 204
    assert bob.post("questions/toxicity/disputes/").json()["dispute"] is not None


def test_an_annotator_sees_no_disputes(cast: make.Cast, question: Question) -> None:
    assert Program(cast.alice).get("questions/toxicity/disputes/").status_code == 403
