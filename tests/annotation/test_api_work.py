"""A whole question answered by programs with tokens: lease, vote, abstain, change, and what they are never told."""

import uuid

import pytest

from annotation.models import ContentWarning, Question, Task, TaskState
from tests import cast as make
from tests.annotation.api import Program


@pytest.fixture
def question(cast: make.Cast) -> Question:
    return make.make_question(cast.project, votes=3, choices="yes no", tags="insult threat")


def test_three_programs_label_two_tasks_to_the_end(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 2)
    for member in (cast.alice, cast.dave, cast.erin):
        program = Program(member)
        work = program.post("questions/toxicity/work/").json()["work"]
        assert len(work) == 2
        while work:
            answer = program.post("votes/", token=work[0]["token"], choice="no", elapsed_ms=900)
            assert answer.status_code == 200
            work = answer.json()["work"]
        assert program.get("questions/toxicity/progress/").json()["votes"] == 2
    assert set(question.tasks.values_list("state", flat=True)) == {TaskState.AGREED}


def test_the_same_vote_sent_twice_is_one_vote(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 1)
    alice = Program(cast.alice)
    token = alice.post("questions/toxicity/work/").json()["work"][0]["token"]
    first, second = (alice.post("votes/", token=token, choice="no").json() for _ in range(2))
    assert first["vote_id"] == second["vote_id"]
    assert cast.alice.votes.count() == 1


def test_a_wrong_answer_says_which_field_and_why(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 1)
    alice = Program(cast.alice)
    token = alice.post("questions/toxicity/work/").json()["work"][0]["token"]
    cases = {
        "choice": {"choice": "maybe"},
        "tags": {"choice": "yes", "tags": ["rudeness"]},
        "comment": {"choice": "no", "comment": "x" * 2001},
        "elapsed_ms": {"choice": "no", "elapsed_ms": -1},
    }
    for field, body in cases.items():
        answer = alice.post("votes/", token=token, **body)
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json"), field
        assert field in answer.json()["fields"]
    assert alice.post("votes/", token="not-a-token", choice="no").json()["fields"].keys() == {"token"}
    assert cast.alice.votes.count() == 0


def test_a_token_that_is_nobodys_is_missing(cast: make.Cast, question: Question) -> None:
    answer = Program(cast.alice).post("votes/", token=str(uuid.uuid4()), choice="no")
    assert (answer.status_code, answer.json()["code"]) == (404, "no_lease")


def test_nobody_votes_with_someone_elses_token(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 1)
    token = Program(cast.alice).post("questions/toxicity/work/").json()["work"][0]["token"]
    assert Program(cast.dave).post("votes/", token=token, choice="no").status_code == 404


def test_a_vote_is_read_and_changed_by_its_own_voter_only(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 1)
    alice = Program(cast.alice)
    token = alice.post("questions/toxicity/work/").json()["work"][0]["token"]
    vote = alice.post("votes/", token=token, choice="no").json()["vote_id"]
    changed = alice.send("PUT", f"votes/{vote}/", {"choice": "yes", "tags": ["insult"], "comment": "on reflection"})
    assert changed.json()["choice"] == "yes"
    assert alice.get("answers/").json()[0]["comment"] == "on reflection"
    assert alice.get("answers/", question="toxicity", limit=1).json()[0]["tags"] == ["insult"]
    assert Program(cast.dave).get(f"votes/{vote}/").status_code == 404
    assert Program(cast.dave).send("PUT", f"votes/{vote}/", {"choice": "no"}).status_code == 404


def test_abstaining_and_giving_back_free_the_slots(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 2)
    alice = Program(cast.alice)
    work = alice.post("questions/toxicity/work/").json()["work"]
    left = alice.post("abstentions/", token=work[0]["token"], reason="cannot_judge").json()["work"]
    assert [task["task_id"] for task in left] == [work[1]["task_id"]]
    assert alice.send("DELETE", "questions/toxicity/work/").json() == {"released": 1}
    assert set(question.tasks.values_list("lease_count", flat=True)) == {0}
    assert alice.post("abstentions/", token=work[1]["token"], reason="tired").json()["fields"].keys() == {"reason"}


def test_a_flag_of_possibly_illegal_takes_the_item_out_of_sight(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 1)
    alice = Program(cast.alice)
    task = alice.post("questions/toxicity/work/").json()["work"][0]["task_id"]
    assert alice.post("flags/", task_id=task, reason="illegal").status_code == 204
    assert Task.objects.get(pk=task).item.quarantined
    assert alice.post("flags/", task_id=task, reason="boring").status_code == 400


def test_the_seed_comes_only_where_the_question_shows_it(cast: make.Cast) -> None:
    [seed] = make.make_items(cast.project, 1)
    [item] = make.make_items(cast.project, 1, start=1, origin=seed)
    for slug, shows in (("toxicity", False), ("naturalness", True)):
        question = make.make_question(cast.project, slug, shows_origin=shows)
        make.create_tasks(question, [item.pk])
        work = Program(cast.alice).post(f"questions/{slug}/work/").json()["work"]
        assert work[0]["origin_text"] == (seed.text if shows else None)


def test_a_voters_answers_hold_nothing_but_these_fields(cast: make.Cast, question: Question) -> None:
    """The shape itself has no place for a score or for someone else's vote."""
    make.make_tasks(question, 2)
    alice = Program(cast.alice)
    hand = alice.post("questions/toxicity/work/").json()
    assert hand.keys() == {"work", "stop", "care"}
    held = hand["work"][0]
    assert held.keys() == {
        "task_id", "token", "item_id", "kind", "text", "origin_text", "expires_at", "guideline_version",
        "practice", "covered", "width", "height",
    }  # fmt: skip
    receipt = alice.post("votes/", token=held["token"], choice="no").json()
    assert receipt.keys() == {"vote_id", "choice", "work", "care", "feedback"}
    assert alice.get("questions/toxicity/progress/").json().keys() == {"votes", "votes_today", "settled_share"}


def test_why_there_is_no_work_is_told_and_for_how_long(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 2)
    ContentWarning.objects.create(project=cast.project, version=1, body="Some of it is unpleasant.")
    hand = Program(cast.alice).post("questions/toxicity/work/").json()
    assert hand["work"] == []
    assert (hand["stop"]["code"], hand["stop"]["until"]) == ("consent", None)
    assert hand["care"]["hour"] == 0


def test_a_researcher_gets_no_work(cast: make.Cast, question: Question) -> None:
    answer = Program(cast.bob).post("questions/toxicity/work/")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
