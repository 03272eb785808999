"""Retiring, re-opening and voiding: what is superseded, what opens again, and what stays on record."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from annotation import disputes, queue, rounds
from annotation.errors import Conflict, Invalid, Missing
from annotation.imported import RaterVote, import_votes
from annotation.models import Flag, GroundTruth, Guideline, Item, KnownAnswer, Lease, Membership, Task, TaskState, VoidedVote, Vote
from tests.cast import Cast, Question, make_question, make_tasks


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    return make_question(cast.project)


def vote(member: Membership, question: Question, choice: str) -> int:
    return queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice).vote_id


def settle(cast: Cast, question: Question, choices: str = "yes yes yes") -> Task:
    """The one task of the question, voted on by alice, dave and erin."""
    task = make_tasks(question, 1)[0]
    for member, choice in zip((cast.alice, cast.dave, cast.erin), choices.split(), strict=True):
        vote(member, question, choice)
    task.refresh_from_db()
    return task


def rule(cast: Cast, question: Question, choice: str, reason: str = "ambiguous") -> None:
    token = disputes.next_dispute(cast.charlie, question).token
    disputes.rule_blind(cast.charlie, token, choice=choice)
    disputes.rule(cast.charlie, token, choice=choice, reason=reason, note="Say more.")


# ---------------------------------------------------------------- retire
def test_retiring_lapses_leases_and_supersedes_the_truth_while_votes_stay(cast: Cast, toxicity: Question) -> None:
    settled = settle(cast, toxicity)
    held = make_tasks(toxicity, 1)[0]
    token = queue.next_work(cast.alice, toxicity)[0].token
    assert rounds.retire(toxicity, [settled.pk, held.pk]) == 2
    assert rounds.retire(toxicity, [settled.pk, held.pk]) == 0
    assert list(Task.objects.values_list("state", "lease_count")) == [("retired", 0)] * 2
    assert GroundTruth.objects.filter(superseded_at=None).count() == 0
    assert Vote.objects.count() == 3
    with pytest.raises(Conflict):
        queue.cast_vote(cast.alice, token, choice="yes")
    assert queue.next_work(cast.alice, toxicity) == []


def test_tasks_of_another_question_are_refused_and_nothing_is_changed(cast: Cast, toxicity: Question) -> None:
    own = make_tasks(toxicity, 1)[0]
    other = make_tasks(make_question(cast.project, "naturalness"), 1)[0]
    for verb in (rounds.retire, rounds.reopen):
        with pytest.raises(Missing, match=f"has no task {other.pk}"):
            verb(toxicity, [own.pk, other.pk])
    with pytest.raises(Missing, match="has no task 1, 2, 3 and 2 more"):
        rounds.retire(make_question(cast.project, "empty"), [1, 2, 3, 4, 5])
    assert set(Task.objects.values_list("state", flat=True)) == {"open"}


# ---------------------------------------------------------------- a new round
def test_a_reopened_task_is_asked_anew_of_everybody_who_voted(cast: Cast, toxicity: Question) -> None:
    task = settle(cast, toxicity)
    toxicity.votes_required = 2
    toxicity.save()
    assert rounds.reopen(toxicity, [task.pk]) == 1
    task.refresh_from_db()
    assert (task.state, task.round, task.vote_count, task.votes_required, task.settled_at) == ("open", 2, 0, 2, None)
    assert GroundTruth.objects.get().superseded_at is not None
    assert [vote(member, toxicity, "no") for member in (cast.alice, cast.dave)]
    assert GroundTruth.objects.get(superseded_at=None).choice.value == "no"
    assert Vote.objects.count() == 5


def test_sending_a_reopening_twice_starts_one_round(cast: Cast, toxicity: Question) -> None:
    task = settle(cast, toxicity)
    rounds.reopen(toxicity, [task.pk])
    vote(cast.alice, toxicity, "no")
    assert rounds.reopen(toxicity, [task.pk]) == 0
    task.refresh_from_db()
    assert (task.round, task.vote_count) == (2, 1)


def test_whoever_ruled_or_saw_the_votes_is_not_asked_in_the_new_round(cast: Cast, toxicity: Question) -> None:
    task = settle(cast, toxicity, "yes no yes")
    rule(cast, toxicity, "yes")
    rounds.reopen(toxicity, [task.pk])
    assert queue.next_work(cast.charlie, toxicity) == []
    assert queue.next_work(cast.alice, toxicity)[0].task_id == task.pk


def test_a_dispute_that_someone_holds_is_let_go(cast: Cast, toxicity: Question) -> None:
    task = settle(cast, toxicity, "yes no yes")
    token = disputes.next_dispute(cast.charlie, toxicity).token
    rounds.reopen(toxicity, [task.pk])
    with pytest.raises(Conflict, match="settled"):
        disputes.rule_blind(cast.charlie, token, choice="yes")
    assert Lease.objects.get().lapsed


def test_a_reopened_task_is_found_by_someone_whose_mark_had_passed_it(cast: Cast, toxicity: Question) -> None:
    first = settle(cast, toxicity)
    make_tasks(toxicity, 20)
    for _ in range(5):
        vote(cast.alice, toxicity, "yes")
    rounds.reopen(toxicity, [first.pk])
    queue.release(cast.alice, toxicity)
    assert first.pk in [work.task_id for work in queue.next_work(cast.alice, toxicity)]


def test_quarantined_items_and_known_answers_are_not_reopened(cast: Cast, toxicity: Question) -> None:
    first, second = make_tasks(toxicity, 2)
    rounds.retire(toxicity, [first.pk, second.pk])
    Item.objects.filter(pk=first.item_id).update(quarantined=True)
    KnownAnswer.objects.create(task=second, question=toxicity, choice=toxicity.choices.first(), author=cast.bob)
    with pytest.raises(Conflict) as refused:
        rounds.reopen(toxicity, [first.pk])
    assert refused.value.code == "quarantined"
    with pytest.raises(Conflict) as refused:
        rounds.reopen(toxicity, [second.pk])
    assert refused.value.code == "known_answer"
    assert set(Task.objects.values_list("state", flat=True)) == {"retired"}


# ---------------------------------------------------------------- voiding
def test_voiding_opens_exactly_the_slots_of_the_voided_votes(cast: Cast, toxicity: Question) -> None:
    task = settle(cast, toxicity)
    make_tasks(toxicity, 1)
    vote(cast.dave, toxicity, "no")  # an open task with a vote of somebody who is to be voided
    done = rounds.void_votes(cast.dave, toxicity, by=cast.bob, why="Answered without reading.")
    assert done == rounds.Voided(votes=2, reopened=1, kept_by_ruling=0)
    task.refresh_from_db()
    assert (task.state, task.round, task.vote_count, task.lease_count, task.settled_at) == ("open", 1, 2, 0, None)
    assert GroundTruth.objects.get().superseded_at is not None
    assert VoidedVote.objects.filter(member=cast.dave, why="Answered without reading.", voided_by=cast.bob).count() == 2
    assert not Vote.objects.filter(member=cast.dave).exists()
    assert rounds.void_votes(cast.dave, toxicity, by=cast.bob, why="Again.") == rounds.Voided(0, 0, 0)
    for _ in range(2):
        vote(cast.charlie, toxicity, "yes")  # someone else takes the slots, and the task settles anew
    assert GroundTruth.objects.get(superseded_at=None).choice.value == "yes"


def test_nobody_whose_vote_was_voided_votes_on_the_task_again_in_that_round_or_rules_on_it(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    vote(cast.charlie, toxicity, "no")
    rounds.void_votes(cast.charlie, None, by=cast.bob, why="In a hurry.")
    assert queue.next_work(cast.charlie, toxicity) == []
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "yes")):
        vote(member, toxicity, choice)
    assert disputes.next_dispute(cast.charlie, toxicity) is None
    rounds.reopen(toxicity, [task.pk])
    assert queue.next_work(cast.charlie, toxicity)[0].task_id == task.pk


def test_a_ruling_outlives_the_votes_it_was_made_on(cast: Cast, toxicity: Question) -> None:
    task = settle(cast, toxicity, "yes no yes")
    rule(cast, toxicity, "no")
    assert rounds.void_votes(cast.alice, None, by=cast.bob, why="x") == rounds.Voided(votes=1, reopened=0, kept_by_ruling=1)
    task.refresh_from_db()
    assert (task.state, task.vote_count, task.votes_required) == ("adjudicated", 2, 3)
    assert GroundTruth.objects.get(superseded_at=None).choice.value == "no"


def test_a_dispute_that_abstentions_caused_stays_one(cast: Cast) -> None:
    question = make_question(cast.project, votes=4)
    task = make_tasks(question, 1)[0]
    vote(cast.charlie, question, "yes")
    for member in (cast.alice, cast.dave, cast.erin):
        queue.abstain(member, queue.next_work(member, question)[0].token, "broken")
    assert rounds.void_votes(cast.charlie, question, by=cast.bob, why="x") == rounds.Voided(1, 0, 0)
    task.refresh_from_db()
    assert (task.state, task.vote_count) == ("disputed", 0)


def test_what_nobody_may_be_asked_about_is_retired_instead_of_opened(cast: Cast, toxicity: Question) -> None:
    task = settle(cast, toxicity)
    Item.objects.filter(pk=task.item_id).update(quarantined=True)
    assert rounds.void_votes(cast.alice, toxicity, by=cast.bob, why="x") == rounds.Voided(1, 0, 0)
    task.refresh_from_db()
    assert (task.state, task.vote_count) == ("retired", 2)
    assert not GroundTruth.objects.filter(superseded_at=None).exists()


def test_one_vote_is_voided_alone_and_once(cast: Cast, toxicity: Question) -> None:
    settle(cast, toxicity)
    mine = Vote.objects.get(member=cast.alice)
    assert rounds.void_vote(mine.pk, by=cast.bob, why="A slip.").votes == 1
    assert rounds.void_vote(mine.pk, by=cast.bob, why="A slip.") == rounds.Voided(0, 0, 0)
    assert Vote.objects.count() == 2
    with pytest.raises(Missing):
        rounds.void_vote(mine.pk, by=cast.mallory, why="Not mine.")
    with pytest.raises(Missing):
        rounds.void_votes(cast.alice, None, by=cast.mallory, why="Not mine.")
    for why in ("", "  ", "x" * 501):
        with pytest.raises(Invalid):
            rounds.void_vote(mine.pk, by=cast.bob, why=why)


def test_a_voided_vote_sent_again_is_told_that_it_was_answered(cast: Cast, toxicity: Question) -> None:
    make_tasks(toxicity, 1)
    token = queue.next_work(cast.alice, toxicity)[0].token
    queue.cast_vote(cast.alice, token, choice="yes")
    rounds.void_votes(cast.alice, None, by=cast.bob, why="x")
    with pytest.raises(Conflict) as refused:
        queue.cast_vote(cast.alice, token, choice="yes")
    assert refused.value.code == "answered"
    assert Vote.objects.count() == 0


def test_a_files_rater_can_be_voided_too(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    import_votes(toxicity, [RaterVote(task.item_id, f"rater {seat}", "yes") for seat in range(3)])
    rater = Membership.objects.get(rater="rater 1")
    assert rounds.void_votes(rater, None, by=cast.bob, why="A bot.") == rounds.Voided(1, 1, 0)
    vote(cast.alice, toxicity, "yes")
    task.refresh_from_db()
    assert task.state == TaskState.AGREED


# ---------------------------------------------------------------- after a new guideline
def test_a_new_guideline_offers_what_was_settled_before_it_and_reopens_the_chosen_group(cast: Cast, toxicity: Question) -> None:
    agreed = settle(cast, toxicity)
    gap = settle(cast, toxicity, "yes no yes")
    rule(cast, toxicity, "no", "guideline_gap")
    clear = settle(cast, toxicity, "yes no yes")
    rule(cast, toxicity, "no", "clear_error")
    disputed = settle(cast, toxicity, "yes no yes")
    assert rounds.affected_by_guideline(toxicity) == rounds.Affected(1, 0, 0, 0)
    Guideline.objects.create(question=toxicity, version=2, body="Judge with more care.")
    later = settle(cast, toxicity)
    assert rounds.affected_by_guideline(toxicity) == rounds.Affected(version=2, gaps=1, disputed=1, settled=3)
    assert rounds.reopen_affected(toxicity, "gaps", version=2) == 1
    assert rounds.affected_by_guideline(toxicity) == rounds.Affected(version=2, gaps=0, disputed=1, settled=2)
    assert rounds.reopen_affected(toxicity, "disputed", version=2) == 1
    assert rounds.reopen_affected(toxicity, "settled", version=2) == 2
    states = dict(Task.objects.values_list("pk", "state"))
    assert {states[task.pk] for task in (agreed, gap, clear, disputed)} == {"open"}
    assert states[later.pk] == "agreed"
    with pytest.raises(Conflict):
        rounds.reopen_affected(toxicity, "settled", version=1)
    with pytest.raises(Invalid):
        rounds.reopen_affected(toxicity, "everything", version=2)


# ---------------------------------------------------------------- quarantine
def test_a_quarantine_is_lifted_with_a_reason_and_its_tasks_stay_retired(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    queue.next_work(cast.alice, toxicity)
    queue.flag(cast.alice, task.pk, "illegal", "Looks like it.")
    item = Item.objects.get()
    with pytest.raises(Invalid):
        rounds.lift_quarantine(item, by=cast.bob, why=" ")
    with pytest.raises(Missing):
        rounds.lift_quarantine(item, by=cast.mallory, why="I say so.")
    rounds.lift_quarantine(item, by=cast.bob, why="A film still; checked with the law team.")
    item.refresh_from_db()
    assert not item.quarantined
    flag = Flag.objects.get()
    assert (flag.handled_by, flag.handled_note) == (cast.bob, "A film still; checked with the law team.")
    assert Task.objects.get().state == "retired"
    with pytest.raises(Conflict):
        rounds.lift_quarantine(item, by=cast.bob, why="Again.")
    assert rounds.reopen(toxicity, [task.pk]) == 1
    assert queue.next_work(cast.dave, toxicity)[0].task_id == task.pk


# ---------------------------------------------------------------- by command
def test_commands_retire_reopen_and_void(cast: Cast, toxicity: Question, capsys: pytest.CaptureFixture[str]) -> None:
    task = settle(cast, toxicity)
    call_command("retire", "study", "toxicity", str(task.pk), "--json")
    call_command("reopen", "study", "toxicity", "--tasks", str(task.pk))
    call_command("reopen", "study", "toxicity", "--after-guideline", "settled")
    call_command("void", "study", str(cast.alice.number), "--by", "bob", "--why", "A test.", "--json")
    assert capsys.readouterr().out.splitlines() == [
        '{"retired": 1}', "1 tasks open again, in a new round.", "0 tasks open again, in a new round.",
        '{"votes": 1, "reopened": 0, "kept_by_ruling": 0}',
    ]  # fmt: skip
    for wrong in (
        ["retire", "study", "toxicity", "999"], ["retire", "nowhere", "toxicity", "1"],
        ["void", "study", "99", "--by", "bob", "--why", "x"],
        ["void", "study", "1", "--by", "alice", "--why", "x"],
    ):  # fmt: skip
        with pytest.raises(CommandError):
            call_command(*wrong)
