"""Agreement of a question, counted by hand from a small story in the database."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import TaskState, Vote
from curation import agreement
from tests.cast import Cast, make_items, make_question
from tests.curation.settled import settle


@pytest.fixture
def story(cast: Cast) -> tuple[Cast, object]:
    question = make_question(cast.project, choices="yes no unsure")
    settle(cast, question, make_items(cast.project, 6), ["yyy", "yyn > y", "nnn", "ynu", "yn", "nnn"])
    return cast, question


def test_only_tasks_with_all_their_votes_count(story) -> None:  # type: ignore[no-untyped-def]
    _, question = story
    found = agreement.of_question(question)
    assert (found.figures.items, found.figures.votes) == (5, 15)
    assert found.figures.unanimous.value == 3 / 5
    assert found.figures.disputed.value == 2 / 5
    # Pairs: three times 3 of 3, once 1 of 3, once 0 of 3.
    assert found.figures.pairwise.value == pytest.approx(10 / 15)
    assert found.states == {"open": 1, "agreed": 3, "disputed": 1, "adjudicated": 1, "retired": 0}
    assert found.votes_by_choice == [("Yes", 6), ("No", 8), ("Unsure", 1)]
    assert [(split.votes, split.tasks) for split in found.splits] == [((0, 3, 0), 2), ((3, 0, 0), 1), ((2, 1, 0), 1), ((1, 1, 1), 1)]


def test_a_second_look_counts_no_vote_again_until_one_settles(story) -> None:  # type: ignore[no-untyped-def]
    cast, question = story
    agreement.of_question(question)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        agreement.of_question(question)
    assert not any("annotation_vote" in query["sql"] for query in queries)
    settle(cast, question, make_items(cast.project, 1, start=50), ["nnn"])
    assert agreement.of_question(question).figures.items == 6


def test_votes_of_an_earlier_round_and_retired_tasks_do_not_count(story) -> None:  # type: ignore[no-untyped-def]
    _, question = story
    first, second, *_ = question.tasks.order_by("rank")
    Vote.objects.filter(task=first).update(round=1)
    first.round = 2
    first.state, first.vote_count, first.settled_at = TaskState.OPEN, 0, None
    first.save()
    second.state = TaskState.RETIRED
    second.save()
    assert agreement.of_question(question).figures.items == 3


def test_an_ordered_question_has_an_ordinal_alpha_that_leaves_unsure_out(cast: Cast) -> None:
    question = make_question(cast.project, choices="low mid high unsure", ordered=True)
    settle(cast, question, make_items(cast.project, 3), ["lll", "mmh", "hhu"])
    found = agreement.of_question(question).figures
    assert found.alpha_ordinal is not None
    assert found.ordinal_left_out == 1
    assert found.alpha.value is not None
    assert (found.alpha_ordinal.value or 0) > found.alpha.value


def test_a_question_without_votes_says_so(cast: Cast) -> None:
    found = agreement.of_question(make_question(cast.project))
    assert found.figures.alpha.reason == "No task has all its votes yet."
    assert found.splits == ()
