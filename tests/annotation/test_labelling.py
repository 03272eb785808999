"""The labelling page and its endpoints over HTTP: the queue's invariants as a browser meets them."""

import json
import uuid

import pytest
from django.test import Client

from annotation import queue
from annotation.models import Abstention, Flag, Guideline, Lease, Question, TaskState, Vote
from tests.cast import Cast, make_question, make_tasks

SHOWN = {
    "token", "task", "item", "kind", "text", "origin", "expires", "version", "practice", "picture", "width", "height", "covered",
}  # fmt: skip


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    question = make_question(cast.project)
    make_tasks(question, 6)
    return question


def post(client: Client, path: str, **body: object):
    return client.post(f"/p/study/{path}", json.dumps(body), content_type="application/json", headers={"accept": "application/json"})


def held(client: Client) -> list[dict]:
    return client.get("/p/study/label/toxicity/next/").json()["work"]


def vote_as(client: Client, choice: str) -> dict:
    return post(client, "vote/", token=held(client)[0]["token"], choice=choice).json()


# ---------------------------------------------------------------- the page
def test_the_page_holds_the_current_task_and_the_one_after_it(cast: Cast, toxicity: Question, sign_in) -> None:
    response = sign_in(cast.alice).get("/p/study/label/toxicity/")
    assert response.status_code == 200
    assert [one["item"] for one in response.context["data"]["work"]] == [lease.task.item_id for lease in Lease.objects.order_by("id")]
    assert len(response.context["data"]["work"]) == 2
    assert "no-store" in response["Cache-Control"]


def test_a_researcher_does_not_vote(cast: Cast, toxicity: Question, sign_in) -> None:
    bob = sign_in(cast.bob)
    assert bob.get("/p/study/label/toxicity/").status_code == 403
    assert post(bob, "vote/", token=str(uuid.uuid4()), choice="yes").status_code == 403


def test_someone_of_another_project_learns_nothing(cast: Cast, toxicity: Question, sign_in) -> None:
    assert sign_in(cast.mallory).get("/p/study/label/toxicity/").status_code == 404


def test_the_guideline_is_markdown_without_html_and_its_headings_stay_under_the_pages(cast: Cast, toxicity: Question, sign_in) -> None:
    Guideline.objects.create(question=toxicity, version=2, body="# Yes when\n\n- it **hurts**\n\n<script>alert(1)</script>")
    page = sign_in(cast.alice).get("/p/study/label/toxicity/").content.decode()
    assert "<h2>Yes when</h2>" in page
    assert "<strong>hurts</strong>" in page
    assert "<script>alert(1)" not in page
    assert "version 2" in page


def test_a_closed_question_says_so(cast: Cast, toxicity: Question, sign_in) -> None:
    toxicity.active = False
    toxicity.save()
    assert "This question is closed" in sign_in(cast.alice).get("/p/study/label/toxicity/").content.decode()


# ---------------------------------------------------------------- one answer, one request
def test_a_vote_brings_the_work_that_follows(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    first, second = held(alice)
    answer = post(alice, "vote/", person=cast.alice.user_id, token=first["token"], choice="yes", comment="Plain.", elapsed_ms=900).json()
    assert next(one["token"] for one in answer["work"]) == second["token"]
    assert len(answer["work"]) == 2
    vote = Vote.objects.get()
    assert (vote.id, vote.choice.value, vote.comment, vote.elapsed_ms, vote.guideline.version) == (answer["vote"], "yes", "Plain.", 900, 1)


def test_the_same_vote_sent_twice_is_one_vote_and_one_answer(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    token = held(alice)[0]["token"]
    once = post(alice, "vote/", token=token, choice="yes").json()
    again = post(alice, "vote/", token=token, choice="no").json()
    assert (again["vote"], again["choice"]) == (once["vote"], "yes")
    assert Vote.objects.count() == 1


def test_another_persons_token_is_no_token(cast: Cast, toxicity: Question, sign_in) -> None:
    token = held(sign_in(cast.alice))[0]["token"]
    response = post(sign_in(cast.dave), "vote/", token=token, choice="yes")
    assert (response.status_code, response.json()["code"]) == (404, "no_lease")


def test_a_late_vote_is_taken_while_its_slot_is_free_and_refused_in_words_when_not(cast: Cast, sign_in) -> None:
    question = make_question(cast.project, votes=1)
    make_tasks(question, 1)
    alice, dave = sign_in(cast.alice), sign_in(cast.dave)
    token = held(alice)[0]["token"]
    Lease.objects.update(expires_at="2020-01-01T00:00Z")
    other = held(dave)[0]["token"]
    late = post(alice, "vote/", token=token, choice="yes")
    assert (late.status_code, late.json()["code"]) == (409, "lease_expired")
    assert "ran out" in late.json()["message"]
    Lease.objects.update(expires_at="2020-01-01T00:00Z")
    assert post(dave, "vote/", token=other, choice="no").status_code == 200


def test_what_one_person_had_left_to_send_is_not_taken_from_another(cast: Cast, toxicity: Question, sign_in) -> None:
    dave = sign_in(cast.dave)
    response = post(dave, "vote/", person=cast.alice.user_id, token=held(dave)[0]["token"], choice="yes")
    assert (response.status_code, response.json()["code"]) == (409, "other_person")
    assert not Vote.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"choice": "yes"},
        {"token": "x", "choice": "yes"},
        {"token": None, "choice": "maybe"},
        {"token": None, "choice": "yes", "tags": "violence"},
        {"token": None, "choice": "yes", "tags": [1]},
        {"token": None, "choice": "yes", "tags": ["violence"]},
        {"token": None, "choice": ["yes"]},
        {"token": None, "choice": "yes", "comment": "x" * 2001},
    ],
)
def test_a_wrong_answer_is_told_what_is_wrong(cast: Cast, toxicity: Question, sign_in, body: dict) -> None:
    alice = sign_in(cast.alice)
    if "token" in body and body["token"] is None:
        body = {**body, "token": held(alice)[0]["token"]}
    response = post(alice, "vote/", **body)
    assert response.status_code == 400
    assert response.json()["message"]
    assert not Vote.objects.exists()


@pytest.mark.parametrize("raw", ["", "[]", "{", "null", "[" * 100_000, '"x"', "\x00"])
def test_a_body_that_is_no_object_is_refused(cast: Cast, toxicity: Question, sign_in, raw: str) -> None:
    response = sign_in(cast.alice).post("/p/study/vote/", raw, content_type="application/json", headers={"accept": "application/json"})
    assert response.status_code == 400


@pytest.mark.parametrize("comment", ["a\x00b", "half \ud800 a pair"])
def test_a_character_that_cannot_be_kept_is_refused_in_words(cast: Cast, toxicity: Question, sign_in, comment: str) -> None:
    alice = sign_in(cast.alice)
    response = post(alice, "vote/", token=held(alice)[0]["token"], choice="yes", comment=comment)
    assert response.status_code == 400
    assert "cannot be kept" in response.json()["message"]


@pytest.mark.parametrize("path", ["votes/99999999999999999999/", "label/toxicity/?answer=99999999999", "label/nothing/"])
def test_what_is_not_there_is_not_found(cast: Cast, toxicity: Question, sign_in, path: str) -> None:
    assert sign_in(cast.alice).get(f"/p/study/{path}").status_code == 404


def test_a_form_with_a_nul_byte_is_shown_again(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    response = alice.post("/p/study/label/toxicity/", {"token": held(alice)[0]["token"], "choice": "yes", "comment": "a\x00b"})
    assert response.status_code == 422


def test_a_comment_may_say_anything_that_is_text(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    comment = "Ünïcödé 🙂 \u202e <b>not bold</b>"
    post(alice, "vote/", token=held(alice)[0]["token"], choice="yes", comment=comment)
    assert Vote.objects.get().comment == comment


# ---------------------------------------------------------------- changing, abstaining, flagging
def test_ones_own_vote_is_opened_and_changed_and_nobody_elses(cast: Cast, toxicity: Question, sign_in) -> None:
    alice, dave = sign_in(cast.alice), sign_in(cast.dave)
    vote = vote_as(alice, "yes")["vote"]
    assert alice.get(f"/p/study/votes/{vote}/").json()["choice"] == "yes"
    assert post(alice, f"votes/{vote}/", choice="no", comment="On reflection.").json() == {"vote": vote, "choice": "no"}
    assert Vote.objects.get().comment == "On reflection."
    assert dave.get(f"/p/study/votes/{vote}/").status_code == 404
    assert post(dave, f"votes/{vote}/", choice="yes").status_code == 404


def test_a_settled_answer_is_closed_after_a_minute(cast: Cast, sign_in) -> None:
    question = make_question(cast.project, votes=1)
    task = make_tasks(question, 1)[0]
    alice = sign_in(cast.alice)
    vote = vote_as(alice, "yes")["vote"]
    assert post(alice, f"votes/{vote}/", choice="no").status_code == 200
    task.refresh_from_db()
    assert task.state == TaskState.AGREED
    task.settled_at = "2020-01-01T00:00Z"
    task.save()
    response = post(alice, f"votes/{vote}/", choice="yes")
    assert (response.status_code, response.json()["code"]) == (409, "closed")


def test_abstaining_needs_a_reason_and_brings_other_work(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    token = held(alice)[0]["token"]
    assert post(alice, "abstain/", token=token, reason="bored").status_code == 400
    work = post(alice, "abstain/", token=token, reason="cannot_judge").json()["work"]
    assert token not in [one["token"] for one in work]
    assert Abstention.objects.get().reason == "cannot_judge"


def test_a_flag_needs_a_task_that_one_has_seen(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    mine = held(alice)[0]["task"]
    unseen = toxicity.tasks.exclude(leases__member=cast.alice).first()
    assert post(alice, "flag/", task=mine, reason="other", note="Hm.").status_code == 200
    assert post(alice, "flag/", task=unseen.pk, reason="other").status_code == 404
    assert post(alice, "flag/", task="x", reason="other").status_code == 400
    assert Flag.objects.get().note == "Hm."


def test_releasing_gives_everything_back(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    held(alice)
    assert alice.post("/p/study/release/").status_code == 302
    assert not Lease.objects.exists()


# ---------------------------------------------------------------- without script
def test_a_plain_form_votes_and_says_so(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    token = held(alice)[0]["token"]
    response = alice.post("/p/study/label/toxicity/", {"token": token, "choice": "no", "comment": "Plain form."}, follow=True)
    assert "Saved: No" in response.content.decode()
    assert Vote.objects.get().comment == "Plain form."


def test_a_plain_form_that_cannot_be_taken_keeps_what_was_typed(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    token = held(alice)[0]["token"]
    response = alice.post("/p/study/label/toxicity/", {"token": token, "choice": "", "comment": "Do not lose me."})
    assert response.status_code == 422
    assert "Do not lose me." in response.content.decode()
    gone = alice.post("/p/study/label/toxicity/", {"token": str(uuid.uuid4()), "choice": "no", "comment": "Nor me."})
    assert gone.status_code == 404
    assert "Nor me." in gone.content.decode()


# ---------------------------------------------------------------- blindness
def test_no_response_to_a_voter_says_what_others_answered(cast: Cast, toxicity: Question, sign_in) -> None:
    """erin answers last, after alice and dave wrote comments that can be searched for in all that she is sent."""
    for who, choice, secret in ((cast.alice, "yes", "secret-of-alice"), (cast.dave, "no", "secret-of-dave")):
        for _ in range(6):
            queue.cast_vote(who, queue.next_work(who, toxicity)[0].token, choice=choice, comment=secret)
    erin = sign_in(cast.erin)
    seen = [erin.get("/").content, erin.get("/p/study/label/toxicity/").content]
    for _ in range(6):
        work = held(erin)
        response = post(erin, "vote/", token=work[0]["token"], choice="yes")
        assert set(response.json()) == {"vote", "choice", "work", "care"}
        assert all(set(one) == SHOWN for one in [*work, *response.json()["work"]])
        seen += [response.content, erin.get(f"/p/study/votes/{response.json()['vote']}/").content]
    seen += [erin.get("/").content, erin.get("/p/study/label/toxicity/").content]
    everything = b"".join(seen).decode()
    assert "secret-of" not in everything
    assert toxicity.tasks.filter(state=TaskState.DISPUTED).count() == 6
    assert "disputed" not in everything.lower()
    assert erin.get("/p/study/disputes/toxicity/").status_code == 403


def test_answers_and_items_are_never_cached(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    vote = vote_as(alice, "yes")["vote"]
    for path in ("label/toxicity/", "label/toxicity/next/", f"votes/{vote}/"):
        assert "no-store" in alice.get(f"/p/study/{path}")["Cache-Control"]


def test_the_vote_asks_the_database_little(cast: Cast, toxicity: Question, sign_in, django_assert_max_num_queries) -> None:
    """The hot path. Savepoints, the audit's context and the session included."""
    alice = sign_in(cast.alice)
    vote_as(alice, "yes")
    token = held(alice)[0]["token"]
    with django_assert_max_num_queries(14):
        post(alice, "vote/", token=token, choice="yes")


def test_a_guideline_that_changed_holds_for_the_next_answers_once_the_page_has_shown_it(cast: Cast, toxicity: Question, sign_in) -> None:
    client = sign_in(cast.alice)
    assert held(client)[0]["version"] == 1
    Guideline.objects.create(question=toxicity, version=2, body="Judge with more care.")
    assert held(client)[0]["version"] == 1, "the script has not shown it"
    assert "Judge with more care." in client.get("/p/study/label/toxicity/").content.decode()
    assert {work["version"] for work in held(client)} == {2}
    vote_as(client, "yes")
    assert Vote.objects.get().guideline.version == 2


def test_a_question_that_closes_takes_what_is_held_and_gives_nothing_new(cast: Cast, toxicity: Question, sign_in) -> None:
    client = sign_in(cast.alice)
    now, ahead = held(client)
    Question.objects.filter(pk=toxicity.pk).update(active=False)
    first = post(client, "vote/", token=now["token"], choice="yes")
    assert [work["token"] for work in first.json()["work"]] in ([], [ahead["token"]])
    assert post(client, "vote/", token=ahead["token"], choice="no").json()["work"] == []
    assert Vote.objects.count() == 2
