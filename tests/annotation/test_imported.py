"""Votes that came in files settle by the same rules."""

import pytest

from annotation import queue
from annotation.errors import Invalid
from annotation.imported import RaterVote, import_votes
from annotation.models import GroundTruth, Task, Vote
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
