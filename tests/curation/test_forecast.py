"""When a question will be done, and the line that leads there: numbers that one can check by hand."""

from datetime import UTC, datetime, timedelta
from itertools import groupby

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from annotation import questions, queue, rounds, steering
from annotation.models import Question, Task, TaskState, Vote
from curation import forecast
from curation.figures import progress
from tests import cast as make

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def hours(days: int, of_day: list[int]) -> forecast.Ints:
    return np.array(of_day * days, dtype=np.int64)


# ---------------------------------------------------------------- the method
def test_a_steady_pace_ends_when_one_would_say_and_is_sure_of_it() -> None:
    found = forecast.finish(NOW, 100, hours(5, [10] * 24))
    assert found.at == found.low == found.high == NOW + timedelta(hours=10)
    assert (found.votes, found.hours, found.by, found.pace) == (1200, 120, "days", 240.0)


def test_nights_come_as_they_came() -> None:
    found = forecast.finish(NOW, 96, hours(4, [12] * 8 + [0] * 16))
    # eight hours of work from now on, then sixteen of rest: 96 are the first day's, 97 wait for the next
    assert found.at == NOW + timedelta(hours=8)
    assert forecast.finish(NOW, 108, hours(4, [12] * 8 + [0] * 16)).at == NOW + timedelta(hours=25)


def test_a_pace_that_varies_has_an_interval_around_it() -> None:
    days = np.concatenate([np.full(24, 4), np.full(24, 8), np.full(24, 12), np.full(24, 8)])
    found = forecast.finish(NOW, 1920, days)
    assert found.low is not None
    assert found.at is not None
    assert found.high is not None
    assert found.low < found.at < found.high
    assert abs((found.at - NOW) - timedelta(days=10)) < timedelta(days=2)  # 192 a day on average


def test_under_three_days_single_hours_are_drawn() -> None:
    found = forecast.finish(NOW, 60, np.array([5, 5, 5, 5, 5, 5]))
    assert (found.by, found.at) == ("hours", NOW + timedelta(hours=12))


@pytest.mark.parametrize(
    ("past", "why"),
    [
        ([19, 0, 0], "Too little to go by: 19 votes in 1 hour. It takes 20 in 3: from 13:00 UTC on, if people go on."),
        ([10, 9, 0], "Too little to go by: 19 votes in 2 hours. It takes 20 in 3."),
        ([500], "Too little to go by: 500 votes in 1 hour. It takes 20 in 3: from 14:00 UTC on, if people go on."),
    ],
)
def test_too_little_is_said_in_words(past: list[int], why: str) -> None:
    found = forecast.finish(NOW, 10, np.array(past))
    assert (found.at, found.low, found.high, found.reason) == (None, None, None, why)


def test_more_than_a_year_is_no_date() -> None:
    found = forecast.finish(NOW, 1_000_000, hours(4, [1] * 24))
    assert (found.at, found.reason) == (None, "More than a year, at the pace so far.")


def test_the_same_past_says_the_same_twice() -> None:
    past = np.arange(96) % 7
    assert forecast.finish(NOW, 400, past) == forecast.finish(NOW, 400, past)


# ---------------------------------------------------------------- the line
@pytest.fixture
def question(cast: make.Cast) -> Question:
    """Four tasks of two votes: eight votes in all."""
    question = make.make_question(cast.project, votes=2)
    make.make_tasks(question, 4)
    return question


def vote(member: make.Membership, question: Question, choice: str = "yes") -> int:
    return queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice).vote_id


def ago(table: str, hours: float, where: str = "true") -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET created_at = now() - make_interval(mins => %s) WHERE {where}", [round(60 * hours)])  # noqa: S608


def lefts(question: Question) -> list[int]:
    """Each number that the line goes through."""
    return [left for left, _ in groupby(point.left for point in forecast.standing(question).points)]


def test_each_vote_takes_one_off_when_it_was_cast(cast: make.Cast, question: Question) -> None:
    ago("annotation_task", 4)
    for hours in (3, 2, 2):
        number = vote(cast.alice, question)
        ago("annotation_vote", hours, f"id = {number}")
    assert lefts(question) == [8, 7, 5]
    assert [point.votes for point in forecast.standing(question).points if point.votes] == [1, 2]


def test_tasks_made_later_lift_the_line(cast: make.Cast, question: Question) -> None:
    ago("annotation_task", 3)
    later = make.make_tasks(question, 2)
    ago("annotation_task", 1, f"id IN ({later[0].pk}, {later[1].pk})")
    assert lefts(question) == [8, 12]


def test_a_retired_task_takes_off_what_it_lacked(cast: make.Cast, question: Question) -> None:
    ago("annotation_task", 2)
    vote(cast.alice, question)
    ago("annotation_vote", 1)
    Task.objects.filter(vote_count=1).update(state=TaskState.RETIRED)
    queue.release(cast.alice)
    # 8, then one vote less, then the other place of its task is gone too
    assert lefts(question) == [8, 7, 6]


def test_a_history_of_more_than_three_days_is_drawn_by_the_day(cast: make.Cast, question: Question) -> None:
    ago("annotation_task", 5 * 24)
    found = forecast.standing(question)
    assert found.span == forecast.DAY
    assert [point.left for point in found.points] == [8] * 6


def test_the_last_point_is_what_is_left_now(cast: make.Cast, question: Question) -> None:
    for member in (cast.alice, cast.dave, cast.alice):
        vote(member, question)
    found = forecast.standing(question)
    assert found.points[-1].left == found.needed.open_votes == steering.needed(question).open_votes == 5


# ---------------------------------------------------------------- why there is no date
def test_without_a_vote_there_is_no_forecast(question: Question) -> None:
    assert forecast.standing(question).forecast.reason == "Nobody has voted yet."


def test_without_tasks_there_is_none_either(cast: make.Cast) -> None:
    found = forecast.standing(make.make_question(cast.project))
    assert (found.points, found.forecast.reason) == ([], "There is no task that waits for votes.")
    assert progress.of_standing(found) == []


def test_a_question_that_is_not_offered_has_no_end(cast: make.Cast, question: Question) -> None:
    vote(cast.alice, question)
    assert (
        forecast.standing(questions.set_active(question, False)).forecast.reason == "The question is not on offer, so nobody works on it."
    )


def test_votes_long_ago_foretell_nothing(cast: make.Cast, question: Question) -> None:
    vote(cast.alice, question)
    ago("annotation_task", 24 * 20)
    ago("annotation_vote", 24 * 9)
    assert forecast.standing(question).forecast.reason == "Nobody has voted in the last seven days."


def test_when_all_votes_are_in_nothing_is_left(cast: make.Cast) -> None:
    question = make.make_question(cast.project, votes=1)
    make.make_tasks(question, 1)
    vote(cast.alice, question)
    assert forecast.standing(question).forecast.reason == "No vote is left to cast."


def test_votes_that_came_in_a_file_are_no_pace(cast: make.Cast, question: Question) -> None:
    rater = make.Membership.objects.create(project=cast.project, role="rater", number=90, rater="r1")
    vote(cast.alice, question)
    ago("annotation_task", 2)
    Vote.objects.update(member=rater)
    found = forecast.standing(question)
    assert found.forecast.reason == "Nobody has voted yet."
    assert [point.left for point in found.points] == [7, 7, 7]


# ---------------------------------------------------------------- people
def test_who_answered_in_the_last_quarter_of_an_hour_is_at_work(cast: make.Cast, question: Question) -> None:
    vote(cast.alice, question)
    vote(cast.alice, question)
    vote(cast.dave, question)
    ago("annotation_vote", 0.5, f"member_id = {cast.dave.pk}")
    (only,) = forecast.standing(question).at_work
    assert (only.number, only.votes, only.pseudonym) == (cast.alice.number, 2, "Annotator 1")
    assert timezone.now() - only.last < timedelta(minutes=1)


def test_what_holds_people_up_is_counted_and_names_nobody(cast: make.Cast, question: Question) -> None:
    assert (forecast.standing(question).held_up, forecast.standing(question).free) == ({}, 4)  # alice, charlie, dave, erin
    steering.assign(question, [cast.alice.number])
    found = forecast.standing(question)
    assert (found.held_up, found.free) == ({"unassigned": 3}, 1)


def test_the_first_votes_are_a_line_and_not_one_point(cast: make.Cast, question: Question) -> None:
    ago("annotation_task", 30)
    for minutes in (20, 10, 5):
        number = vote(cast.alice, question)
        ago("annotation_vote", minutes / 60, f"id = {number}")
    found = forecast.standing(question)
    assert found.span == forecast.MINUTE
    assert (len(found.points), found.points[0].left, found.points[-1].left) == (22, 8, 5)
    assert sum(point.votes for point in found.points) == 3


def test_votes_that_nobody_can_cast_are_told(cast: make.Cast, question: Question, sign_in: object) -> None:
    assert forecast.standing(question).stranded == steering.Stranded(0, 0, 4)  # the adjudicator labels too
    steering.assign(question, {cast.alice.number})
    assert forecast.standing(question).stranded == steering.Stranded(4, 4, 1)
    vote(cast.alice, question)
    assert forecast.standing(question).stranded == steering.Stranded(4, 4, 1)
    queue.abstain(cast.alice, queue.next_work(cast.alice, question)[0].token, reason="broken")
    assert forecast.standing(question).stranded == steering.Stranded(5, 4, 1)
    page = sign_in(cast.bob).get("/p/study/questions/toxicity/progress/").content.decode()
    assert page.count("Nobody can cast 5 of the 7 votes left.") == 2


def test_reopened_tasks_are_not_among_those_put_first(cast: make.Cast, question: Question) -> None:
    tasks = list(question.tasks.order_by("rank"))
    steering.put_first(question, [tasks[0].pk])
    rounds.retire(question, [tasks[1].pk])
    rounds.reopen(question, [tasks[1].pk])
    assert steering.needed(question).first == 1
