"""Which tasks come first, and who is given work."""

import pytest

from annotation import queue, steering
from annotation.errors import Invalid
from annotation.models import Assignment, Task
from tests import cast as make


def ranked(question: make.Question, count: int = 6) -> list[int]:
    """Task ids in the order in which they are handed out."""
    return [task.pk for task in make.make_tasks(question, count)]


def handed_out(member: make.Membership, question: make.Question) -> list[int]:
    """The tasks that this member answers, in order, until nothing is left for them."""
    seen = []
    while work := queue.next_work(member, question):
        seen.append(work[0].task_id)
        queue.cast_vote(member, work[0].token, choice="yes")
    return seen


def test_a_task_put_first_comes_before_all_fresh_ones(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    tasks = ranked(question)
    assert steering.put_first(question, [tasks[4]]) == 1
    assert handed_out(cast.alice, question) == [tasks[4], *tasks[:4], tasks[5]]


def test_tasks_put_first_together_keep_the_order_of_their_rank(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    tasks = ranked(question)
    steering.put_first(question, [tasks[5], tasks[3], tasks[4]])
    assert handed_out(cast.alice, question)[:3] == [tasks[3], tasks[4], tasks[5]]


def test_a_task_that_somebody_began_still_comes_before_one_put_first(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    tasks = ranked(question)
    begun = queue.next_work(cast.alice, question)[0]
    queue.cast_vote(cast.alice, begun.token, choice="yes")
    steering.put_first(question, [tasks[5]])
    assert [work.task_id for work in queue.next_work(cast.dave, question)] == [begun.task_id, tasks[5]]


def test_somebody_who_is_at_work_gets_what_was_put_first_meanwhile(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    tasks = ranked(question)
    work = queue.next_work(cast.alice, question)
    assert [one.task_id for one in work] == tasks[:2]
    steering.put_first(question, [tasks[5]])
    work = queue.cast_vote(cast.alice, work[0].token, choice="yes").work
    assert [one.task_id for one in work] == [tasks[1], tasks[5]]


def test_putting_first_twice_moves_nothing_the_second_time(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    tasks = ranked(question)
    assert steering.put_first(question, tasks[:3]) == 3
    assert steering.put_first(question, tasks[:3]) == 0


def test_put_back_gives_a_task_its_seeded_place_again(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    tasks = ranked(question)
    steering.put_first(question, tasks[3:])
    assert steering.needed(question).first == 3
    assert steering.put_back(question, tasks[3:]) == 3
    assert steering.needed(question).first == 0
    assert handed_out(cast.alice, question) == tasks


def test_a_begun_task_is_not_put_back(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    tasks = ranked(question)
    work = queue.next_work(cast.alice, question)[0]
    queue.cast_vote(cast.alice, work.token, choice="yes")
    assert steering.put_back(question, tasks) == 0
    assert Task.objects.get(pk=work.task_id).queued_at is not None


def test_tasks_of_another_question_stay_where_they_are(cast: make.Cast) -> None:
    toxicity, naturalness = make.make_question(cast.project), make.make_question(cast.project, "naturalness")
    others = ranked(naturalness)
    assert steering.put_first(toxicity, others) == 0


def test_more_than_a_block_is_put_first(cast: make.Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering, "BLOCK", 2)
    question = make.make_question(cast.project)
    tasks = ranked(question)
    assert steering.put_first(question, tasks[1:]) == 5
    assert steering.needed(question).first == 5


def test_assigning_sets_who_works_on_a_question(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    assert steering.assigned(question) == set()
    steering.assign(question, [cast.alice.number, cast.dave.number])
    assert steering.assigned(question) == {cast.alice.number, cast.dave.number}
    steering.assign(question, [cast.dave.number])
    assert steering.assigned(question) == {cast.dave.number}
    steering.assign(question, [])
    assert not Assignment.objects.exists()


def test_an_assignment_that_stays_is_not_made_anew(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    steering.assign(question, [cast.alice.number])
    before = Assignment.objects.get().pk
    steering.assign(question, [cast.alice.number, cast.dave.number])
    assert Assignment.objects.filter(pk=before).exists()


@pytest.mark.parametrize("number", [2, 99])
def test_only_those_who_label_can_be_assigned(cast: make.Cast, number: int) -> None:
    question = make.make_question(cast.project)  # 2 is bob, the researcher
    with pytest.raises(Invalid) as refused:
        steering.assign(question, [cast.alice.number, number])
    assert refused.value.message == f"Nobody of the number {number} labels in this project."
    assert not Assignment.objects.exists()


def test_what_is_left_counts_the_votes_of_open_tasks(cast: make.Cast) -> None:
    question = make.make_question(cast.project, votes=2)
    ranked(question, 3)
    work = queue.next_work(cast.alice, question)
    queue.cast_vote(cast.alice, work[0].token, choice="yes")
    left = steering.needed(question)
    assert (left.tasks, left.open_votes, left.held, left.begun, left.rulings) == ({"open": 3}, 5, 2, 1, 0)


def test_a_dispute_needs_a_ruling_and_no_vote(cast: make.Cast) -> None:
    question = make.make_question(cast.project, votes=2)
    ranked(question, 1)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no")):
        queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice)
    left = steering.needed(question)
    assert (left.open_votes, left.rulings) == (0, 1)


def test_a_question_without_tasks_needs_nothing(cast: make.Cast) -> None:
    left = steering.needed(make.make_question(cast.project))
    assert (left.tasks, left.open_votes, left.rulings, left.first) == ({}, 0, 0, 0)
