"""Votes that came in files settle by the same rules."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation import queue, rounds
from annotation.errors import Invalid
from annotation.imported import RaterVote, import_votes
from annotation.models import GroundTruth, Lease, Task, Vote
from annotation.tasks import create_tasks
from tests import cast as make
from tests.cast import Cast


def votes(items: list[make.Item], *columns: str) -> list[RaterVote]:
    """One column of choices per item: "a:yes b:no" are the votes of the raters a and b on it."""
    return [
        RaterVote(item.pk, word.split(":")[0], word.split(":")[1])
        for item, column in zip(items, columns, strict=True)
        for word in column.split()
    ]


def test_file_votes_settle_tasks_and_make_raters(cast: Cast) -> None:
    question = make.make_question(cast.project)
    items = make.make_items(cast.project, 3)
    done = import_votes(question, votes(items, "a:yes b:yes c:yes", "a:yes b:no c:yes", "d:no"))
    assert (done.votes, done.tasks, done.raters, done.repeats, done.surplus, done.taken) == (7, 3, 4, 0, 0, 0)
    assert done.states == {"agreed": 2, "disputed": 1}
    assert {truth.item_id: truth.choice.value for truth in GroundTruth.objects.all()} == {items[0].pk: "yes", items[2].pk: "no"}
    assert cast.project.memberships.get(rater="d").pseudonym == "Rater 9"


def test_fewer_votes_than_asked_for_leave_a_task_open_for_people(cast: Cast) -> None:
    question = make.make_question(cast.project)
    items = make.make_items(cast.project, 1)
    done = import_votes(question, votes(items, "a:yes b:yes"), votes_required=3)
    assert done.states == {"open": 1}
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes")
    assert Task.objects.get().state == "agreed"


def test_the_first_vote_of_a_rater_counts_and_repeats_are_reported(cast: Cast) -> None:
    question = make.make_question(cast.project, policy="majority")
    items = make.make_items(cast.project, 1)
    done = import_votes(question, votes(items, "a:yes a:no b:yes b:no c:no"))
    assert (done.votes, done.repeats) == (3, 2)
    assert GroundTruth.objects.get().choice.value == "yes"


def test_votes_beyond_what_is_required_are_reported_and_ties_are_disputes(cast: Cast) -> None:
    question = make.make_question(cast.project, policy="majority")
    items = make.make_items(cast.project, 2)
    done = import_votes(question, votes(items, "a:yes b:no c:yes", "a:no b:no"), votes_required=2)
    assert (done.surplus, done.states) == (1, {"disputed": 1, "agreed": 1})


def test_importing_again_changes_nothing(cast: Cast) -> None:
    question = make.make_question(cast.project)
    items = make.make_items(cast.project, 1)
    import_votes(question, votes(items, "a:yes b:yes"))
    again = import_votes(question, votes(items, "a:no b:no"))
    assert (again.votes, again.taken, again.raters) == (0, 2, 0)
    assert set(Vote.objects.values_list("choice__value", flat=True)) == {"yes"}


def test_tags_of_file_votes_follow_the_majority_rule(cast: Cast) -> None:
    question = make.make_question(cast.project, "harm", policy="majority", choices="harmful safe", tags="violence hateful")
    (item,) = make.make_items(cast.project, 1)
    import_votes(
        question,
        [
            RaterVote(item.pk, "a", "harmful", ["violence"]),
            RaterVote(item.pk, "b", "harmful", ["violence", "hateful"]),
            RaterVote(item.pk, "c", "safe"),
        ],
    )
    assert GroundTruth.objects.get().tags == ["violence"]


def test_an_unknown_choice_or_item_is_named_and_nothing_is_kept(cast: Cast) -> None:
    question = make.make_question(cast.project)
    (item,) = make.make_items(cast.project, 1)
    with pytest.raises(Invalid, match="Vote 2: 'maybe'"):
        import_votes(question, [RaterVote(item.pk, "a", "yes"), RaterVote(item.pk, "b", "maybe")])
    with pytest.raises(Invalid, match="item 999"):
        import_votes(question, [RaterVote(999, "a", "yes")])
    assert not Vote.objects.exists()
    assert not cast.project.memberships.filter(role="rater").exists()


def test_votes_fill_an_open_task_beside_people_and_leave_what_they_hold(cast: Cast) -> None:
    question = make.make_question(cast.project)
    items = make.make_items(cast.project, 2)
    create_tasks(question)
    held = {work.item_id: work for work in queue.next_work(cast.alice, question)}
    queue.cast_vote(cast.alice, held[items[0].pk].token, choice="yes")  # alice holds the other one still
    done = import_votes(question, votes(items, "a:yes b:yes c:no", "a:no b:no c:no"))
    assert (done.votes, done.surplus, done.taken, done.states) == (4, 2, 0, {"agreed": 1, "open": 1})
    first, second = Task.objects.order_by("item_id")
    assert (first.state, first.vote_count) == ("agreed", 3)
    assert (second.vote_count, second.lease_count) == (2, 1)
    assert not cast.project.memberships.filter(rater="c").exists()
    queue.cast_vote(cast.alice, held[items[1].pk].token, choice="no")
    assert set(GroundTruth.objects.values_list("choice__value", flat=True)) == {"yes", "no"}


def test_a_lease_that_ran_out_holds_nothing(cast: Cast) -> None:
    question = make.make_question(cast.project, votes=1)
    items = make.make_items(cast.project, 1)
    create_tasks(question)
    queue.next_work(cast.alice, question)
    Lease.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert import_votes(question, votes(items, "a:yes")).states == {"agreed": 1}
    assert Task.objects.get().lease_count == 0


def test_votes_go_into_the_round_that_runs_and_struck_out_ones_stay_out(cast: Cast) -> None:
    question = make.make_question(cast.project, votes=2)
    items = make.make_items(cast.project, 2)
    import_votes(question, votes(items, "a:yes b:yes", "a:yes b:yes"))
    tasks = list(Task.objects.order_by("item_id"))
    rounds.reopen(question, [tasks[0].pk])
    rounds.void_votes(cast.project.memberships.get(rater="a"), question, by=cast.bob, why="A robot.")
    done = import_votes(question, votes(items, "a:no b:no", "a:no b:no c:no"))
    assert (done.votes, done.struck, done.repeats, done.raters) == (3, 1, 1, 1)
    tasks[0].refresh_from_db()
    assert (tasks[0].round, tasks[0].state) == (2, "agreed")
    assert set(Vote.objects.filter(round=2).values_list("member__rater", flat=True)) == {"a", "b"}
    assert {left.why for left in done.left} == {"struck", "repeat"}


@pytest.mark.parametrize("state", ["disputed", "retired"])
def test_votes_on_a_task_that_is_not_open_are_told_one_by_one(cast: Cast, state: str) -> None:
    question = make.make_question(cast.project)
    items = make.make_items(cast.project, 1)
    import_votes(question, votes(items, "a:yes b:no"))
    if state == "retired":
        rounds.retire(question, [Task.objects.get().pk])
    done = import_votes(question, votes(items, "a:yes c:no c:yes"))
    assert (done.votes, done.taken, done.raters, done.states) == (0, 3, 0, {})
    assert [(left.why, left.row, left.rater, left.state) for left in done.left] == [
        ("taken", 1, "a", state), ("taken", 2, "c", state), ("taken", 3, "c", state),
    ]  # fmt: skip
    assert not cast.project.memberships.filter(rater="c").exists()
