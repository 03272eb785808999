"""What a researcher does while people are in the middle of answering: each waits for the other, and nothing is half done."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction

from annotation import disputes, queue, rounds
from annotation.errors import Conflict
from annotation.models import Adjudication, Flag, GroundTruth, Item, Task, VoidedVote, Vote
from annotation.tasks import create_tasks
from tests.cast import Cast, Question, make_question, make_tasks
from tests.faults.test_races import begin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    return make_question(cast.project, votes=2)


def test_a_vote_that_was_first_is_kept_when_its_task_is_retired(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    token = queue.next_work(cast.alice, toxicity)[0].token
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            queue.cast_vote(cast.alice, token, choice="yes")
            retiring = begin(pool, lambda: rounds.retire(toxicity, [task.pk]))
        assert retiring.result(10) == 1
    task.refresh_from_db()
    assert (task.state, task.vote_count, task.lease_count, Vote.objects.count()) == ("retired", 1, 0, 1)


def test_a_vote_that_came_second_is_told_that_its_task_was_withdrawn(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    token = queue.next_work(cast.alice, toxicity)[0].token
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            rounds.retire(toxicity, [task.pk])
            voting = begin(pool, lambda: queue.cast_vote(cast.alice, token, choice="yes"))
        with pytest.raises(Conflict, match="withdrawn"):
            voting.result(10)
    assert Vote.objects.count() == 0


def test_the_vote_that_settles_and_a_reopening_come_one_after_the_other(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, choice="yes")
    token = queue.next_work(cast.dave, toxicity)[0].token
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            queue.cast_vote(cast.dave, token, choice="yes")
            reopening = begin(pool, lambda: rounds.reopen(toxicity, [task.pk]))
        assert reopening.result(10) == 1
    task.refresh_from_db()
    assert (task.state, task.round, task.vote_count) == ("open", 2, 0)
    assert GroundTruth.objects.get().superseded_at is not None


def test_two_people_who_reopen_at_once_start_one_round(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    rounds.retire(toxicity, [task.pk])
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert rounds.reopen(toxicity, [task.pk]) == 1
            second = begin(pool, lambda: rounds.reopen(toxicity, [task.pk]))
        assert second.result(10) == 0
    task.refresh_from_db()
    assert task.round == 2


def test_a_vote_that_is_just_being_cast_is_struck_out_with_the_others(cast: Cast, toxicity: Question) -> None:
    make_tasks(toxicity, 2)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, choice="yes")
    token = queue.next_work(cast.alice, toxicity)[0].token
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            queue.cast_vote(cast.alice, token, choice="no")
            voiding = begin(pool, lambda: rounds.void_votes(cast.alice, toxicity, by=cast.bob, why="x"))
        assert voiding.result(10).votes == 2
    assert Vote.objects.count() == 0
    assert set(Task.objects.values_list("vote_count", flat=True)) == {0}


def test_two_people_who_strike_out_at_once_do_it_once(cast: Cast, toxicity: Question) -> None:
    make_tasks(toxicity, 1)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, choice="yes")

    def void() -> int:
        return rounds.void_votes(cast.alice, toxicity, by=cast.bob, why="x").votes

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert void() == 1
            second = begin(pool, void)
        assert second.result(10) == 0
    assert VoidedVote.objects.count() == 1


def test_a_vote_that_was_struck_out_is_not_changed_any_more(cast: Cast, toxicity: Question) -> None:
    make_tasks(toxicity, 1)
    vote = queue.cast_vote(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, choice="yes").vote_id
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            rounds.void_vote(vote, by=cast.bob, why="x")
            changing = begin(pool, lambda: queue.revise_vote(cast.alice, vote, choice="no"))
        with pytest.raises(Conflict):
            changing.result(10)
    assert VoidedVote.objects.get().choice.value == "yes"


def test_a_ruling_in_flight_and_a_struck_out_vote_come_one_after_the_other(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no")):
        queue.cast_vote(member, queue.next_work(member, toxicity)[0].token, choice=choice)
    token = disputes.next_dispute(cast.charlie, toxicity).token
    disputes.rule_blind(cast.charlie, token, choice="no")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            disputes.rule(cast.charlie, token, choice="no", reason="ambiguous")
            voiding = begin(pool, lambda: rounds.void_votes(cast.alice, None, by=cast.bob, why="x"))
        assert voiding.result(10) == rounds.Voided(votes=1, reopened=0, kept_by_ruling=1)
    task.refresh_from_db()
    assert (task.state, task.vote_count) == ("adjudicated", 1)


def test_a_ruling_on_a_dispute_whose_vote_was_struck_out_is_refused(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no")):
        queue.cast_vote(member, queue.next_work(member, toxicity)[0].token, choice=choice)
    token = disputes.next_dispute(cast.charlie, toxicity).token
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            rounds.void_votes(cast.alice, None, by=cast.bob, why="x")
            ruling = begin(pool, lambda: disputes.rule_blind(cast.charlie, token, choice="no"))
        with pytest.raises(Conflict):
            ruling.result(10)
    task.refresh_from_db()
    assert (task.state, task.vote_count, Adjudication.objects.count()) == ("open", 1, 0)


def test_two_people_flag_two_tasks_of_one_item_at_once(cast: Cast, toxicity: Question) -> None:
    """Both quarantine the same item: the second waits for the first, and neither waits for ever."""
    first = make_tasks(toxicity, 1)[0]
    other = make_question(cast.project, "naturalness", votes=2)
    create_tasks(other, [first.item_id])
    second = other.tasks.get()
    queue.next_work(cast.alice, toxicity)
    queue.next_work(cast.dave, other)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            queue.flag(cast.dave, second.pk, "illegal")
            flagging = begin(pool, lambda: queue.flag(cast.alice, first.pk, "illegal"))
        assert flagging.exception(10) is None
    assert Flag.objects.count() == 2
    assert Item.objects.get().quarantined
    assert set(Task.objects.values_list("state", "lease_count")) == {("retired", 0)}
