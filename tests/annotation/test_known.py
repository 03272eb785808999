"""Known answers from the researcher's side: marked, drawn from what is settled, changed, taken out, and what they tell."""

import json
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotation import known, queue, rounds
from annotation.errors import Conflict, Invalid, Missing
from annotation.models import (
    Check,
    GroundTruth,
    Item,
    KnownAnswer,
    Lease,
    Membership,
    Pause,
    Question,
    Role,
    Task,
    TaskState,
)
from tests import cast as make


@pytest.fixture
def question(cast: make.Cast) -> Question:
    return make.make_question(cast.project, votes=2)


def settle(question: Question, count: int, choice: str, source: str = "unanimous", **fields: object) -> list[Task]:
    """Tasks with a ground truth, as their votes or a ruling would have left them."""
    tasks = make.make_tasks(question, count)
    chosen = question.choices.get(value=choice)
    state = TaskState.ADJUDICATED if source == "adjudicated" else TaskState.AGREED
    for task in tasks:
        GroundTruth.objects.create(task=task, question=question, item=task.item, round=1, choice=chosen, source=source, **fields)
    Task.objects.filter(pk__in=[task.pk for task in tasks]).update(state=state, vote_count=2, settled_at=timezone.now())
    return tasks


def said(one: KnownAnswer, member: Membership, choice: str, *, minutes_ago: int = 5) -> Check:
    """An answered check."""
    answer = one.question.choices.get(value=choice)
    at = timezone.now() - timedelta(minutes=minutes_ago)
    return Check.objects.create(
        known=one, question=one.question, member=member, practice=one.practice, guideline=one.question.guidelines.first(),
        token=uuid.uuid4(), number=Check.objects.count() + 1, leased_at=at, expires_at=at, answered_at=at, choice=answer,
        correct=answer == one.choice,
    )  # fmt: skip


# ---------------------------------------------------------------- marking
def test_an_item_without_a_task_becomes_a_known_answer_that_nobody_votes_on(cast: make.Cast, question: Question) -> None:
    [item] = make.make_items(cast.project, 1)
    one = known.mark(question, item.pk, choice="yes", why="It insults.", practice=True, by=cast.bob)
    assert (one.task.item, one.task.state, one.choice.value, one.why, one.practice) == (item, "retired", "yes", "It insults.", True)
    assert one.author == cast.bob


def test_an_open_task_leaves_the_queue_and_who_holds_it_is_told(cast: make.Cast, question: Question) -> None:
    [task] = make.make_tasks(question, 1)
    [work] = queue.next_work(cast.alice, question)
    known.mark(question, task.item_id, choice="no", by=cast.bob)
    task.refresh_from_db()
    assert (task.state, task.lease_count) == ("retired", 0)
    assert not Lease.objects.filter(task=task, lapsed=False).exists()
    with pytest.raises(Conflict, match="settled or withdrawn"):
        queue.cast_vote(cast.alice, work.token, choice="no")


def test_a_dispute_is_withdrawn_and_a_settled_task_keeps_its_label(cast: make.Cast, question: Question) -> None:
    [disputed] = make.make_tasks(question, 1)
    Task.objects.filter(pk=disputed.pk).update(state="disputed", vote_count=2, settled_at=timezone.now())
    [settled] = settle(question, 1, "no")
    known.mark(question, disputed.item_id, choice="yes", by=cast.bob)
    known.mark(question, settled.item_id, choice="no", by=cast.bob)
    states = dict(Task.objects.filter(question=question).values_list("pk", "state"))
    assert states == {disputed.pk: "retired", settled.pk: "agreed"}
    assert GroundTruth.objects.get(task=settled).superseded_at is None


def test_the_same_mark_again_changes_nothing_and_another_answer_is_refused(cast: make.Cast, question: Question) -> None:
    [item] = make.make_items(cast.project, 1)
    first = known.mark(question, item.pk, choice="yes", by=cast.bob)
    assert known.mark(question, item.pk, choice="yes", by=cast.bob) == first
    with pytest.raises(Invalid, match="another known answer"):
        known.mark(question, item.pk, choice="no", by=cast.bob)
    with pytest.raises(Invalid, match="another known answer"):  # practice or check, never both
        known.mark(question, item.pk, choice="yes", practice=True, by=cast.bob)


def test_what_cannot_be_asked_cannot_be_marked(cast: make.Cast, question: Question) -> None:
    sealed, image, theirs = (
        make.make_items(cast.project, 1, quarantined=True)[0],
        Item.objects.create(project=cast.project, kind="image", external_id="i1", content_hash=b"1"),
        make.make_items(cast.mallory.project, 1)[0],
    )
    pictures = make.make_question(cast.project, "harm", kind="image")
    for asked, item, why in [
        (question, sealed, "quarantined"), (question, image, "asked of texts"),
        (pictures, image, "missing"), (question, theirs, "no such item"),
    ]:  # fmt: skip
        with pytest.raises(Invalid, match=why):
            known.mark(asked, item.pk, choice="yes", by=cast.bob)
    assert not Task.objects.exists()


def test_the_answer_must_be_one_that_an_annotator_could_give(cast: make.Cast) -> None:
    harm = make.make_question(cast.project, "harm", choices="harmful safe", tags="violence hate")
    [item] = make.make_items(cast.project, 1)
    for choice, tags, why in [
        ("maybe", (), "not an answer"), ("harmful", (), "at least one tag"),
        ("harmful", ("fire",), "Unknown tags"), ("safe", ("hate",), "no tags"),
    ]:  # fmt: skip
        with pytest.raises(Invalid, match=why):
            known.mark(harm, item.pk, choice=choice, tags=tags, by=cast.bob)
    one = known.mark(harm, item.pk, choice="harmful", tags=["violence", "hate", "hate"], by=cast.bob)
    assert one.tags == ["hate", "violence"]


def test_many_are_marked_at_once_or_none(cast: make.Cast, question: Question) -> None:
    make.make_items(cast.project, 3)
    with pytest.raises(Invalid) as error:
        known.mark_lines(question, "t0, yes\nt1, perhaps\nt9, no", practice=False, by=cast.bob)
    assert error.value.fields == {
        "line.2": "“perhaps” is not an answer of this question. One of: yes, no.",
        "line.3": "No item has the id “t9”.",
    }
    with pytest.raises(Invalid) as error:
        known.mark_lines(question, "id,answer\nt0, yes\nt1, perhaps", practice=False, by=cast.bob)
    assert list(error.value.fields) == ["line.3"]
    assert not KnownAnswer.objects.exists()
    made = known.mark_lines(question, "id\tanswer\ttags\twhy\nt0\tYes\t\tIt says so.\nt2\tno", practice=True, by=cast.bob)
    assert [(one.task.item.external_id, one.choice.value, one.why) for one in made] == [("t0", "yes", "It says so."), ("t2", "no", "")]


@pytest.mark.parametrize("text", ["", "id, answer", "t0", '"t0, yes', "t0, yes\nt0, yes"])
def test_lines_that_say_nothing_possible_are_refused_in_words(cast: make.Cast, question: Question, text: str) -> None:
    make.make_items(cast.project, 1)
    with pytest.raises(Invalid):
        known.mark_lines(question, text, practice=False, by=cast.bob)
    assert not KnownAnswer.objects.exists()


# ---------------------------------------------------------------- from settled tasks
def test_settled_tasks_are_drawn_evenly_over_the_answers_and_by_the_seed(cast: make.Cast, question: Question) -> None:
    settle(question, 10, "no")
    settle(question, 2, "yes", "adjudicated")
    settle(question, 3, "yes", "majority")  # not everyone agreed
    settle(question, 1, "yes", superseded_at=timezone.now())
    settle(question, 1, "yes", tags_unsettled=True)
    assert {choice.value: count for choice, count in known.settled_available(question).items()} == {"yes": 2, "no": 10}
    made = known.mark_settled(question, 6, seed=3, by=cast.bob)
    assert sorted(one.choice.value for one in made) == ["no"] * 4 + ["yes"] * 2
    assert {one.task.state for one in made} == {"agreed", "adjudicated"}
    # The same seed draws the same from the same, on a study that differs in nothing but what was marked.
    drawn = {one.task.item.external_id for one in made}
    KnownAnswer.objects.all().delete()
    assert {one.task.item.external_id for one in known.mark_settled(question, 6, seed=3, by=cast.bob)} == drawn
    KnownAnswer.objects.all().delete()
    assert {one.task.item.external_id for one in known.mark_settled(question, 6, seed=4, by=cast.bob)} != drawn


def test_more_than_there_is_is_not_drawn_and_nothing_is_drawn_twice(cast: make.Cast, question: Question) -> None:
    tasks = settle(question, 4, "no")
    with pytest.raises(Invalid) as error:
        known.mark_settled(question, 5, by=cast.bob)
    assert error.value.fields == {"count": "From 1 to 4."}
    [one] = known.mark_settled(question, 1, item_ids=[tasks[2].item_id], by=cast.bob)
    assert one.task == tasks[2]
    known.unmark(question, one.pk)
    known.mark_settled(question, 3, by=cast.bob)
    with pytest.raises(Invalid, match="0 settled tasks"):
        known.mark_settled(question, 1, by=cast.bob)


def test_an_unsure_answer_or_one_persons_word_is_no_known_answer(cast: make.Cast) -> None:
    question = make.make_question(cast.project, choices="yes no unsure", votes=2)
    settle(question, 2, "unsure")
    [alone] = settle(question, 1, "yes")
    Task.objects.filter(pk=alone.pk).update(votes_required=1, vote_count=1)
    assert sum(known.settled_available(question).values()) == 0


# ---------------------------------------------------------------- changed and taken out
def test_a_corrected_answer_is_held_against_what_people_said_before(cast: make.Cast, question: Question) -> None:
    [item] = make.make_items(cast.project, 1)
    one = known.mark(question, item.pk, choice="yes", by=cast.bob)
    for member, choice in ((cast.alice, "no"), (cast.dave, "yes"), (cast.erin, "no")):
        said(one, member, choice)
    [line] = known.active(question, practice=False)
    assert (line.asked, line.missed, line.suspicious) == (3, 2, True)
    known.change(question, one.pk, choice="no")
    [line] = known.active(question, practice=False)
    assert (line.asked, line.missed, line.suspicious) == (3, 1, False)
    assert {tally.member: tally.correct for tally in known.tallies(question)} == {cast.alice: 1, cast.dave: 0, cast.erin: 1}


def test_what_was_taken_out_is_listed_no_more_and_can_be_marked_anew(cast: make.Cast, question: Question) -> None:
    [item] = make.make_items(cast.project, 1)
    one = known.mark(question, item.pk, choice="yes", by=cast.bob)
    said(one, cast.alice, "yes")
    known.unmark(question, one.pk)
    assert known.active(question, practice=False) == []
    with pytest.raises(Missing):
        known.change(question, one.pk, choice="no")
    again = known.mark(question, item.pk, choice="no", practice=True, by=cast.bob)
    assert (again.pk, again.active, again.practice) == (one.pk, True, True)


def test_the_task_of_an_active_known_answer_is_never_open(cast: make.Cast, question: Question) -> None:
    """Neither by re-opening nor by voiding what settled it; once taken out, it may be."""
    make.make_tasks(question, 1)
    for member in (cast.alice, cast.dave):
        [work] = queue.next_work(member, question)
        queue.cast_vote(member, work.token, choice="no")
    task = Task.objects.get()
    one = known.mark(question, task.item_id, choice="no", by=cast.bob)
    with pytest.raises(Conflict):
        rounds.reopen(question, [task.pk])
    rounds.void_votes(cast.alice, question, by=cast.bob, why="Answered at random.")
    task.refresh_from_db()
    assert task.state == "retired"
    known.unmark(question, one.pk)
    assert rounds.reopen(question, [task.pk]) == 1


# ---------------------------------------------------------------- what they tell
def test_tallies_count_answers_and_since_the_last_pause_those_that_the_rule_reads(cast: make.Cast, question: Question) -> None:
    items = make.make_items(cast.project, 5)
    marked = known.mark_many(question, [known.Answer(item.pk, "yes") for item in items[:4]], by=cast.bob)
    practice = known.mark(question, items[4].pk, choice="yes", practice=True, by=cast.bob)
    for one, choice in zip(marked, ("no", "no", "yes", "yes"), strict=True):
        said(one, cast.alice, choice, minutes_ago=60 if choice == "no" else 1)
    said(marked[0], cast.dave, "yes")
    said(practice, cast.dave, "no")
    pause = Pause.objects.create(question=question, member=cast.alice, answers=2, correct=0, floor=0.8)
    [alice, dave] = known.tallies(question)
    assert (alice.answers, alice.correct, alice.counted, alice.counted_correct, alice.left, alice.pause) == (4, 2, 4, 2, 0, pause)
    assert (dave.member, dave.answers, dave.correct, dave.left, dave.pause) == (cast.dave, 1, 1, 3, None)
    known.lift_pause(question, cast.alice.number, cast.bob)
    Pause.objects.update(lifted_at=timezone.now() - timedelta(minutes=30))
    [alice, _] = known.tallies(question)
    assert (alice.answers, alice.counted, alice.counted_correct, alice.pause) == (4, 2, 2, None)


def test_a_pause_is_listed_until_somebody_lifts_it(cast: make.Cast, question: Question) -> None:
    pause = Pause.objects.create(question=question, member=cast.alice, answers=20, correct=11, floor=0.8)
    assert known.paused(cast.project) == [pause]
    assert known.paused(cast.mallory.project) == []
    lifted = known.lift_pause(question, cast.alice.number, cast.bob)
    assert (lifted.lifted_by, known.paused(cast.project), known.pauses_of(cast.alice)) == (cast.bob, [], [pause])
    with pytest.raises(Conflict, match="not paused"):
        known.lift_pause(question, cast.alice.number, cast.bob)
    with pytest.raises(Missing):
        known.lift_pause(question, 99, cast.bob)


def test_the_outlook_says_when_checks_run_out(cast: make.Cast, question: Question) -> None:
    make.make_tasks(question, 100)  # 100 tasks and 11 checks: 1 in 10 of what is handed out
    Question.objects.filter(pk=question.pk).update(check_share=0.1)
    question.refresh_from_db()
    known.mark_many(question, [known.Answer(item.pk, "yes") for item in make.make_items(cast.project, 6, start=100)], by=cast.bob)
    found = known.outlook(question)
    assert (found.tasks, found.checks, found.met, found.lasts, found.enough) == (100, 6, 11, 60, False)
    Item.objects.filter(external_id="t100").update(quarantined=True)
    assert known.outlook(question).checks == 5


def test_a_rater_from_a_file_is_nobody_to_pause(cast: make.Cast, question: Question) -> None:
    rater = Membership.objects.create(project=cast.project, role=Role.RATER, rater="w1", number=9)
    with pytest.raises(Missing):
        known.lift_pause(question, rater.number, cast.bob)


# ---------------------------------------------------------------- command line
def test_the_command_line_marks_lists_draws_and_takes_out(
    cast: make.Cast, question: Question, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make.make_items(cast.project, 2)
    (tmp_path / "known.csv").write_text("id,answer,tags,why\nt0,yes,,It insults.\nt1,no\n")
    call_command("known_answers", "mark", "study", "toxicity", str(tmp_path / "known.csv"), "--practice")
    settle(question, 3, "no")
    call_command("known_answers", "draw", "study", "toxicity", "2", "--seed", "1")
    capsys.readouterr()
    call_command("known_answers", "list", "study", "toxicity", "--json")
    told = json.loads(capsys.readouterr().out)["known_answers"]
    assert [(one["choice"], one["practice"]) for one in told] == [("yes", True), ("no", True), ("no", False), ("no", False)]
    call_command("known_answers", "remove", "study", "toxicity", str(told[0]["id"]))
    assert KnownAnswer.objects.filter(active=True).count() == 3
    for words in (("mark", "nowhere.csv"), ("draw", "99"), ("remove", "x"), ("draw", "")):
        with pytest.raises(CommandError):
            call_command("known_answers", words[0], "study", "toxicity", words[1])


def test_the_command_line_lists_pauses_and_lifts_one(cast: make.Cast, question: Question, capsys: pytest.CaptureFixture[str]) -> None:
    Pause.objects.create(question=question, member=cast.alice, answers=20, correct=11, floor=0.8)
    call_command("pauses", "study")
    assert capsys.readouterr().out.strip() == "Annotator 1 on toxicity: 11 of 20 right"
    call_command("pauses", "study", "--lift", "toxicity", "1")
    assert capsys.readouterr().out.strip() == "Nobody is paused."
    with pytest.raises(CommandError):
        call_command("pauses", "study", "--lift", "toxicity", "1")


def test_every_bad_line_is_told_at_once(cast: make.Cast) -> None:
    question = make.make_question(cast.project, "harm", tags="violence hate")
    make.make_items(cast.project, 4)
    lines = "t0, no\nnobody, no\nt1, perhaps\nt2, yes\nt3\nt0, no\nnothing, maybe"
    with pytest.raises(Invalid, match="6 of 7 lines cannot be marked") as refused:
        known.mark_lines(question, lines, practice=False, by=cast.bob)
    assert refused.value.fields == {
        "line.2": "No item has the id “nobody”.",
        "line.3": "“perhaps” is not an answer of this question. One of: yes, no.",
        "line.4": "“Yes” needs at least one tag: violence, hate.",
        "line.5": "An id and an answer, with a comma between.",
        "line.6": "This item is named twice.",
        "line.7": "No item has the id “nothing”. “maybe” is not an answer of this question. One of: yes, no.",
    }
    assert not KnownAnswer.objects.exists()


def test_a_floor_that_cannot_act_says_how_many_checks_it_lacks(cast: make.Cast, question: Question, sign_in: object) -> None:
    items = make.make_items(cast.project, 3)
    known.mark_many(question, [known.Answer(item.pk, "yes") for item in items], by=cast.bob)
    assert known.outlook(question).below_floor == 0, "no floor is set"
    Question.objects.filter(pk=question.pk).update(accuracy_floor=0.8)
    question.refresh_from_db()
    assert known.outlook(question).below_floor == 17
    page = sign_in(cast.bob).get("/p/study/questions/toxicity/known/").content.decode()
    assert "The floor cannot act." in page
    assert "Add at least 17 more." in page
