"""The history of a task on one page: who did what, when, under which guideline, in every round."""

import uuid

import pytest

from annotation import disputes, history, queue
from annotation.models import Flag, Guideline, Repeat, Task
from tests.annotation.api import Program
from tests.cast import Cast, Question, make_question, make_tasks

# Committed: the time of an event that a trigger keeps is the beginning of its transaction.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    return make_question(cast.project)


def vote(member, question: Question, choice: str, comment: str = "") -> int:
    return queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice, comment=comment).vote_id


def told(task: Task) -> list[tuple[str, str, str]]:
    return [(step.kind, step.who, step.choice) for step in history.of_task(task)]


@pytest.fixture
def eventful(cast: Cast, toxicity: Question, sign_in) -> Task:
    """A vote changed, a dispute ruled on, a guideline changed, re-opened, abstained from, struck out, flagged, retired."""
    task = make_tasks(toxicity, 1)[0]
    first = vote(cast.alice, toxicity, "yes", "secret words")
    queue.revise_vote(cast.alice, first, choice="no", comment="other words")
    vote(cast.dave, toxicity, "no")
    vote(cast.erin, toxicity, "yes")
    token = disputes.next_dispute(cast.charlie, toxicity).token
    disputes.rule_blind(cast.charlie, token, choice="yes")
    disputes.rule(cast.charlie, token, choice="no", reason="guideline_gap", note="Say what sarcasm is.")
    Guideline.objects.create(question=toxicity, version=2, body="Judge with more care.")
    bob = sign_in(cast.bob)
    bob.post(f"/p/study/tasks/{task.pk}/reopen/")
    second = vote(cast.alice, toxicity, "yes")
    queue.abstain(cast.dave, queue.next_work(cast.dave, toxicity)[0].token, "distressing")
    bob.post(f"/p/study/tasks/{task.pk}/votes/{second}/void/", {"why": "A slip of hers."})
    queue.next_work(cast.erin, toxicity)
    queue.flag(cast.erin, task.pk, "private", "It names her.")
    bob.post(f"/p/study/flags/{Flag.objects.get().pk}/handled/", {"note": "Looked at."})
    bob.post(f"/p/study/tasks/{task.pk}/retire/")
    return task


def test_everything_that_happened_is_told_in_order(cast: Cast, eventful: Task) -> None:
    alice, bob, charlie, dave, erin = (m.pseudonym for m in (cast.alice, cast.bob, cast.charlie, cast.dave, cast.erin))
    assert told(eventful) == [
        ("made", "", ""),
        ("vote", alice, "Yes"),
        ("changed", alice, "No"),
        ("vote", dave, "No"),
        ("vote", erin, "Yes"),
        ("blind", charlie, "Yes"),
        ("ruling", charlie, "No"),
        ("truth", "", "No"),
        ("reopened", bob, ""),
        ("superseded", "", "No"),
        ("vote", alice, "Yes"),
        ("abstained", dave, ""),
        ("voided", bob, "Yes"),
        ("flag", erin, ""),
        ("handled", bob, ""),
        ("retired", bob, ""),
    ]
    steps = history.of_task(eventful)
    assert [step.round for step in steps if step.kind in ("vote", "reopened", "voided", "flag", "retired")] == [1, 1, 1, 2, 2, 2, 2, 2]
    assert [step.version for step in steps if step.kind in ("vote", "changed", "ruling")] == [1, 1, 1, 1, 1, 2]
    assert [step.words for step in steps if step.kind in ("vote", "changed", "voided")] == [
        "secret words", "other words", "", "", "", "A slip of hers.",
    ]  # fmt: skip
    assert history.seen_by(eventful) == [charlie]


def test_why_somebody_abstained_is_told_to_no_researcher(cast: Cast, eventful: Task, sign_in) -> None:
    bob = sign_in(cast.bob)
    for page in (f"/p/study/tasks/{eventful.pk}/", f"/p/study/items/{eventful.item_id}/", f"/api/v1/projects/study/tasks/{eventful.pk}/"):
        assert "istressing" not in bob.get(page).content.decode(), page


def test_the_page_reads_in_rounds_with_what_people_typed_behind_a_click(cast: Cast, eventful: Task, sign_in) -> None:
    page = sign_in(cast.bob).get(f"/p/study/tasks/{eventful.pk}/").content.decode()
    assert page.index("Round 1") < page.index("Round 2") < page.index("opened round 2")
    for hidden in ("secret words", "A mild text, number 0.", "Say what sarcasm is.", "A slip of hers."):
        before = page[: page.index(hidden)]
        assert before.rindex("<details") > before.rindex("</details>") if "</details>" in before else "<details" in before
    assert "struck out the vote of Annotator 1" in page


def test_the_api_tells_the_same(cast: Cast, eventful: Task) -> None:
    found = Program(cast.bob).get(f"tasks/{eventful.pk}/").json()
    assert (found["state"], found["round"], found["barred"]) == ("retired", 2, [cast.charlie.pseudonym])
    assert [step["kind"] for step in found["history"]] == [kind for kind, _, _ in told(eventful)]


def test_another_projects_task_does_not_exist(cast: Cast, eventful: Task, sign_in) -> None:
    mallory = sign_in(cast.mallory)
    for number in (eventful.pk, 2**63, 10**30):
        assert mallory.get(f"/p/elsewhere/tasks/{number}/").status_code == 404
        assert mallory.post(f"/p/elsewhere/tasks/{number}/retire/").status_code == 404
    assert mallory.post(f"/p/elsewhere/tasks/{eventful.pk}/votes/1/void/", {"why": "x"}).status_code == 404


# ---------------------------------------------------------------- pages and API of what is done afterwards
def test_a_vote_is_struck_out_only_with_a_reason(cast: Cast, toxicity: Question, sign_in) -> None:
    task = make_tasks(toxicity, 1)[0]
    number = vote(cast.alice, toxicity, "yes")
    bob = sign_in(cast.bob)
    for why in ("", "x" * 501, "\x00"):
        refused = bob.post(f"/p/study/tasks/{task.pk}/votes/{number}/void/", {"why": why})
        assert refused.status_code == 422
        assert "Not struck out." in refused.content.decode()
    assert bob.post(f"/p/study/tasks/{task.pk}/votes/{2**70}/void/", {"why": "x"}).status_code == 404


def test_flags_wait_illegal_ones_first_and_are_handled(cast: Cast, toxicity: Question, sign_in) -> None:
    tasks = make_tasks(toxicity, 2)
    held = queue.next_work(cast.alice, toxicity)
    queue.flag(cast.alice, held[0].task_id, "illegal", "Look at this at once.")
    queue.flag(cast.alice, held[1].task_id, "wrong")
    bob = sign_in(cast.bob)
    page = bob.get("/p/study/flags/")
    assert [flag.reason for flag in page.context["page"]] == ["illegal", "wrong"]
    flag = Flag.objects.get(reason="wrong")
    bob.post(f"/p/study/flags/{flag.pk}/handled/", {"note": "Nothing is wrong."})
    bob.post(f"/p/study/flags/{flag.pk}/handled/", {"note": "Again."})
    flag.refresh_from_db()
    assert (flag.handled_by, flag.handled_note) == (cast.bob, "Nothing is wrong.")
    assert "Nothing is wrong." in bob.get("/p/study/flags/?handled=1").content.decode()
    assert sign_in(cast.mallory).post(f"/p/elsewhere/flags/{flag.pk}/handled/").status_code == 404
    program = Program(cast.bob)
    assert [row["reason"] for row in program.get("flags/").json()["results"]] == ["illegal"]
    assert program.get("flags/", handled="true").json()["results"][0]["handled_note"] == "Nothing is wrong."
    assert Program(cast.alice).get("flags/").status_code == 403
    item = tasks[0].item_id if held[0].task_id == tasks[0].pk else tasks[1].item_id
    assert bob.post(f"/p/study/items/{item}/quarantine/lift/", {"why": " "}).status_code == 422
    assert program.post(f"items/{item}/quarantine/lift/", why="Checked.").json() == {"shown": True}


def test_gaps_are_listed_by_choice_and_beside_the_guideline_editor(cast: Cast, toxicity: Question, sign_in) -> None:
    task = make_tasks(toxicity, 1)[0]
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "yes")):
        vote(member, toxicity, choice)
    token = disputes.next_dispute(cast.charlie, toxicity).token
    disputes.rule_blind(cast.charlie, token, choice="no")
    disputes.rule(cast.charlie, token, choice="no", reason="guideline_gap", note="Say what sarcasm is.")
    bob = sign_in(cast.bob)
    page = bob.get("/p/study/questions/toxicity/gaps/").content.decode()
    assert "Ruled No" in page
    assert "Say what sarcasm is." in page
    assert "Say what sarcasm is." in bob.get("/p/study/questions/toxicity/guideline/").content.decode()
    assert Program(cast.bob).get("questions/toxicity/gaps/").json()["gaps"][0]["task_id"] == task.pk
    bob.post("/p/study/questions/toxicity/guideline/", {"after": "1", "body": "Sarcasm about conduct is no attack."})
    assert "No ruling names a gap." in bob.get("/p/study/questions/toxicity/gaps/").content.decode()
    assert "Ruled No" in bob.get("/p/study/questions/toxicity/gaps/?version=1").content.decode()
    shown = bob.get("/p/study/questions/toxicity/").content.decode()
    assert "Settled before version 2: 1, 1 of them with a gap." in shown
    here = "/p/study/questions/toxicity/reopen/"
    assert "Rulings that named a gap" in bob.get(here).content.decode()
    assert bob.post(here, {"group": "all", "version": "2"}).status_code == 400
    assert bob.post(here, {"group": "gaps", "version": "1"}).status_code == 409
    assert "1 task is open again" in bob.post(here, {"group": "gaps", "version": "2"}, follow=True).content.decode()
    assert Program(cast.bob).get("questions/toxicity/affected/").json() == {"version": 2, "gaps": 0, "disputed": 0, "settled": 0}
    task.refresh_from_db()
    assert (task.state, task.round) == ("open", 2)


def test_the_api_retires_reopens_and_voids(cast: Cast, toxicity: Question) -> None:
    tasks = [task.pk for task in make_tasks(toxicity, 3)]
    number = vote(cast.alice, toxicity, "yes")
    program = Program(cast.bob)
    assert program.post("questions/toxicity/tasks/retire/", task_ids=tasks).json() == {"retired": 3}
    assert program.post("questions/toxicity/tasks/reopen/", task_ids=tasks).json() == {"reopened": 3}
    assert program.post("questions/toxicity/tasks/reopen/", task_ids=[]).status_code == 400
    assert program.post("questions/toxicity/tasks/reopen/", task_ids=[10**12]).status_code == 404
    assert program.post(f"votes/{number}/void/", why="A slip.").json() == {"votes": 1, "reopened": 0, "kept_by_ruling": 0}
    assert program.post(f"votes/{number}/void/").status_code == 400
    assert program.post(f"members/{cast.alice.number}/void/", why="All.").json()["votes"] == 0
    assert Program(cast.alice).post(f"votes/{number}/void/", why="Mine.").status_code == 403


def test_adjudicators_see_their_own_consistency_and_researchers_everyones(cast: Cast, sign_in) -> None:
    question = make_question(cast.project, votes=2, repeat_share=0.5)
    make_tasks(question, 6)
    yes, no = question.choices.all()
    for place in range(6):
        for member, choice in ((cast.alice, "yes"), (cast.dave, "no")):
            vote(member, question, choice)
        held = disputes.next_dispute(cast.charlie, question)
        disputes.rule_blind(cast.charlie, held.token, choice="no")
        disputes.rule(cast.charlie, held.token, choice="no", reason="ambiguous")
        ruling = cast.charlie.adjudications.order_by("-pk").first()
        if place < 4:
            Repeat.objects.create(
                adjudication=ruling, question=question, member=cast.charlie, guideline=ruling.guideline, token=uuid.uuid4(),
                expires_at="2100-01-01T00:00:00Z", choice=yes if place == 0 else no, ruled_at="2026-01-01T00:00:00Z",
            )  # fmt: skip
    charlie, bob = sign_in(cast.charlie), sign_in(cast.bob)
    assert "Fewer than 5 of your rulings" in charlie.get("/p/study/disputes/").content.decode()
    assert "3 of 4" in bob.get("/p/study/disputes/").content.decode()
    assert Program(cast.charlie).get("consistency/").json() == []
    Repeat.objects.create(
        adjudication=ruling, question=question, member=cast.charlie, guideline=ruling.guideline, token=uuid.uuid4(),
        expires_at="2100-01-01T00:00:00Z", choice=no, ruled_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    assert "<b>4 of 5</b>" in charlie.get("/p/study/disputes/").content.decode()
    assert Program(cast.charlie).get("consistency/").json()[0]["same_choice"] == 4
