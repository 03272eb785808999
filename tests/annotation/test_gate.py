"""What stands between a person and their next task: consent, breaks, limits, pauses, assignments; and the benign mixed in."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from annotation import disputes, gate, people, queue
from annotation.errors import Conflict
from annotation.models import (
    Assignment,
    Consent,
    ContentWarning,
    Exposure,
    Item,
    Lease,
    Membership,
    Pause,
    Progress,
    Project,
    Question,
    Role,
    Sitting,
    Task,
)
from annotation.tasks import create_tasks
from tests import cast as make
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def harm(cast: Cast) -> Question:
    """A sensitive question of a project without limits, shares or breaks, for each test to set its own."""
    Project.objects.update(hourly_limit=None, daily_limit=None, break_after_minutes=None, benign_share=0)
    cast.project.refresh_from_db()
    return make.make_question(cast.project, "harm", sensitive=True)


def make_mixed(question: Question, sensitive: int, benign: int) -> None:
    make.make_tasks(question, sensitive)
    items = make.make_items(question.project, benign, start=1000, metadata={"sensitive": "No"})
    create_tasks(question, [item.pk for item in items])


def let_pass(**span: float) -> None:
    """So much time has passed for everyone: what is stored moves back, the clock stays."""
    ago = timedelta(**span)
    Exposure.objects.update(at=F("at") - ago)
    Sitting.objects.update(since=F("since") - ago, last=F("last") - ago)
    Sitting.objects.filter(break_until__isnull=False).update(break_until=F("break_until") - ago)


def work_through(member: Membership, question: Question, most: int = 100) -> list[int]:
    """Vote until nothing comes; the items in order."""
    seen = []
    work = queue.next_work(member, question)
    while work and len(seen) < most:
        seen.append(work[0].item_id)
        work = queue.cast_vote(member, work[0].token, choice="yes").work
    return seen


def code(member: Membership, question: Question) -> str | None:
    stop = gate.stop_of(member, question)
    return stop.code if stop else None


# ---------------------------------------------------------------- consent
def test_nothing_is_handed_out_before_consent_to_the_latest_warning(cast: Cast, harm: Question) -> None:
    make.make_tasks(harm, 3)
    first = ContentWarning.objects.create(project=cast.project, version=1, body="Some of it is unpleasant.")
    assert queue.next_work(cast.alice, harm) == []
    assert code(cast.alice, harm) == "consent"
    consent = Consent.objects.create(member=cast.alice, warning=first)
    assert len(queue.next_work(cast.alice, harm)) == 2
    second = ContentWarning.objects.create(project=cast.project, version=2, body="More of it is unpleasant.")
    assert queue.next_work(cast.alice, harm) == []
    assert not Lease.objects.filter(member=cast.alice, lapsed=False).exists()
    Consent.objects.filter(pk=consent.pk).update(ended_at=timezone.now())
    Consent.objects.create(member=cast.alice, warning=second)
    assert len(queue.next_work(cast.alice, harm)) == 2


def test_adjudicators_consent_too_and_a_researcher_need_not(cast: Cast, harm: Question) -> None:
    (task,) = make.make_tasks(harm, 1)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "no")):
        queue.cast_vote(member, queue.next_work(member, harm)[0].token, choice=choice)
    ContentWarning.objects.create(project=cast.project, version=1, body="Some of it is unpleasant.")
    assert disputes.next_dispute(cast.charlie, harm) is None
    stop = gate.stop_of(cast.charlie, harm, ruling=True)
    assert stop
    assert stop.code == "consent"
    dispute = disputes.next_dispute(cast.bob, harm)
    assert dispute
    assert dispute.task_id == task.pk


def test_an_own_answer_is_not_opened_again_without_consent_nor_in_a_break(cast: Cast, harm: Question) -> None:
    make.make_tasks(harm, 3)
    receipt = queue.cast_vote(cast.alice, queue.next_work(cast.alice, harm)[0].token, choice="yes")
    assert queue.own_vote(cast.alice, receipt.vote_id).choice == "yes"
    ContentWarning.objects.create(project=cast.project, version=1, body="Some of it is unpleasant.")
    for refused in (
        lambda: queue.own_vote(cast.alice, receipt.vote_id),
        lambda: queue.revise_vote(cast.alice, receipt.vote_id, choice="no"),
    ):
        with pytest.raises(Conflict) as error:
            refused()
        assert error.value.code == "consent"
    ContentWarning.objects.all().delete()
    Sitting.objects.update(break_until=timezone.now() + timedelta(minutes=5))
    with pytest.raises(Conflict) as error:
        queue.own_vote(cast.alice, receipt.vote_id)
    assert error.value.code == "break"
    queue.revise_vote(cast.alice, receipt.vote_id, choice="no")  # it was open when the break began


# ---------------------------------------------------------------- limits
def test_the_hourly_limit_counts_what_is_handed_out_and_lets_go_on_an_hour_later(cast: Cast, harm: Question) -> None:
    Project.objects.update(hourly_limit=3)
    make.make_tasks(harm, 10)
    assert len(work_through(cast.alice, harm)) == 3
    stop = gate.stop_of(cast.alice, harm)
    assert stop
    assert stop.code == "hour_limit"
    assert stop.until
    assert timedelta(minutes=59) < stop.until - timezone.now() <= timedelta(hours=1)
    let_pass(minutes=59)
    assert queue.next_work(cast.alice, harm) == []
    let_pass(minutes=2)
    assert len(work_through(cast.alice, harm)) == 3


def test_the_daily_limit_holds_over_all_hours_and_says_when_the_next_is_free(cast: Cast, harm: Question) -> None:
    Project.objects.update(hourly_limit=2, daily_limit=5)
    make.make_tasks(harm, 10)
    seen = []
    for _ in range(4):
        seen += work_through(cast.alice, harm)
        let_pass(minutes=61)
    assert len(seen) == 5
    stop = gate.stop_of(cast.alice, harm)
    assert stop
    assert stop.code == "day_limit"
    let_pass(hours=20)
    assert len(work_through(cast.alice, harm)) == 2


def test_a_limit_is_a_persons_in_all_projects_and_questions(cast: Cast, harm: Question) -> None:
    Project.objects.update(hourly_limit=2)
    make.make_tasks(harm, 5)
    other = make.make_question(make.make_project("third"), "harm", sensitive=True)
    make.make_tasks(other, 5)
    there = Membership.objects.create(project=other.project, user=cast.alice.user, role=Role.ANNOTATOR, number=1)
    assert len(work_through(cast.alice, harm)) == 2
    Project.objects.update(hourly_limit=2)
    assert queue.next_work(there, other) == []
    care = gate.care_of(there)
    assert (care.hour, care.hour_limit) == (2, 2)


def test_benign_tasks_still_come_when_there_is_no_room_for_sensitive_ones(cast: Cast, harm: Question) -> None:
    Project.objects.update(hourly_limit=2)
    make_mixed(harm, sensitive=5, benign=4)
    seen = work_through(cast.alice, harm)
    benign = set(Task.objects.filter(sensitive=False).values_list("item_id", flat=True))
    assert len(seen) == 6
    assert benign <= set(seen)
    assert Exposure.objects.filter(member=cast.alice).count() == 2


def test_the_item_says_whether_it_is_sensitive_else_its_question_does(cast: Cast, harm: Question) -> None:
    plain = make.make_question(cast.project, "plain")
    items = make.make_items(cast.project, 1) + make.make_items(cast.project, 1, start=1, metadata={"sensitive": True})
    items += make.make_items(cast.project, 1, start=2, metadata={"sensitive": "no"})
    for question in (harm, plain):
        create_tasks(question)
    told = {question: list(Task.objects.filter(question=question).order_by("item").values_list("sensitive", flat=True))
            for question in (harm, plain)}  # fmt: skip
    assert told == {harm: [True, True, False], plain: [False, True, False]}
    assert Item.objects.count() == 3


def test_a_benign_share_of_one_looks_for_benign_tasks_first(cast: Cast, harm: Question) -> None:
    Project.objects.update(benign_share=1)
    make_mixed(harm, sensitive=3, benign=3)
    seen = work_through(cast.alice, harm)
    benign = set(Task.objects.filter(sensitive=False).values_list("item_id", flat=True))
    assert set(seen[:3]) == benign
    assert len(seen) == 6


def test_two_marks_pass_over_nothing_when_both_kinds_are_begun(cast: Cast, harm: Question) -> None:
    Project.objects.update(benign_share=0.5)
    make_mixed(harm, sensitive=6, benign=6)
    assert len(work_through(cast.alice, harm)) == 12
    assert sorted(work_through(cast.dave, harm)) == sorted(Task.objects.values_list("item_id", flat=True))
    assert len(work_through(cast.erin, harm)) == 12
    assert not Task.objects.filter(state="open").exists()


def test_a_dispute_is_an_exposure_too(cast: Cast, harm: Question) -> None:
    Project.objects.update(hourly_limit=1)
    make.make_tasks(harm, 2)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "no")):
        for _ in range(2):
            work = queue.next_work(member, harm)
            queue.cast_vote(member, work[0].token, choice=choice)
            let_pass(minutes=61)
    assert Task.objects.filter(state="disputed").count() == 2
    first = disputes.next_dispute(cast.charlie, harm)
    assert first
    disputes.rule_blind(cast.charlie, first.token, choice="no")
    disputes.rule(cast.charlie, first.token, choice="no", reason="clear_error")
    assert disputes.next_dispute(cast.charlie, harm) is None
    stop = gate.stop_of(cast.charlie, harm, ruling=True)
    assert stop
    assert stop.code == "hour_limit"


# ---------------------------------------------------------------- breaks
def test_after_so_many_minutes_a_break_is_due_and_what_is_held_goes_back(cast: Cast, harm: Question) -> None:
    Project.objects.update(break_after_minutes=50, break_minutes=10)
    make.make_tasks(harm, 10)
    work = queue.next_work(cast.alice, harm)
    for _ in range(5):  # never ten minutes without an answer
        let_pass(minutes=9)
        work = queue.cast_vote(cast.alice, work[0].token, choice="yes").work
        assert len(work) == 2
    let_pass(minutes=9)
    receipt = queue.cast_vote(cast.alice, work[0].token, choice="yes")
    assert receipt.work == []
    assert receipt.care.break_until is not None
    assert not Lease.objects.filter(member=cast.alice, lapsed=False).exists()
    stop = gate.stop_of(cast.alice, harm)
    assert stop
    assert stop.code == "break"
    assert stop.until == receipt.care.break_until
    let_pass(minutes=9)
    assert queue.next_work(cast.alice, harm) == []
    let_pass(minutes=2)
    assert len(queue.next_work(cast.alice, harm)) == 2
    due = gate.care_of(cast.alice).break_at
    assert due
    assert due - timezone.now() > timedelta(minutes=49)


def test_an_answer_that_is_on_its_way_when_the_break_begins_is_taken(cast: Cast, harm: Question) -> None:
    Project.objects.update(break_after_minutes=50, break_minutes=10)
    make.make_tasks(harm, 10)
    first, second = queue.next_work(cast.alice, harm)
    let_pass(minutes=5)
    Sitting.objects.update(since=F("since") - timedelta(minutes=50))
    assert queue.next_work(cast.alice, harm) == []
    queue.cast_vote(cast.alice, second.token, choice="no")
    assert Progress.objects.get(member=cast.alice).votes == 1
    assert Task.objects.get(pk=second.task_id).vote_count == 1
    assert Task.objects.get(pk=first.task_id).vote_count == 0


def test_who_rested_on_their_own_starts_a_new_sitting(cast: Cast, harm: Question) -> None:
    Project.objects.update(break_after_minutes=50, break_minutes=10)
    make.make_tasks(harm, 3)
    queue.next_work(cast.alice, harm)
    let_pass(minutes=45)
    assert queue.next_work(cast.alice, harm)
    let_pass(minutes=8)
    assert queue.next_work(cast.alice, harm)


# ---------------------------------------------------------------- pauses and assignments
def test_a_paused_member_gets_nothing_until_it_is_lifted(cast: Cast, harm: Question) -> None:
    make.make_tasks(harm, 3)
    pause = Pause.objects.create(question=harm, member=cast.alice, answers=20, correct=10, floor=0.8)
    assert queue.next_work(cast.alice, harm) == []
    assert code(cast.alice, harm) == "paused"
    assert len(queue.next_work(cast.dave, harm)) == 2
    Pause.objects.filter(pk=pause.pk).update(lifted_at=timezone.now(), lifted_by=cast.bob)
    assert len(queue.next_work(cast.alice, harm)) == 2


def test_a_question_given_to_some_is_worked_on_by_them_only(cast: Cast, harm: Question) -> None:
    make.make_tasks(harm, 3)
    assert len(queue.next_work(cast.alice, harm)) == 2
    Assignment.objects.create(question=harm, member=cast.dave)
    assert queue.next_work(cast.alice, harm) == []
    assert code(cast.alice, harm) == "unassigned"
    assert len(queue.next_work(cast.dave, harm)) == 2
    assert set(Task.objects.values_list("lease_count", flat=True)) == {0, 1}


def test_where_nothing_waits_there_is_no_reason_to_give(cast: Cast, harm: Question) -> None:
    assert queue.next_work(cast.alice, harm) == []
    assert gate.stop_of(cast.alice, harm) is None


def test_a_request_that_began_before_somebody_left_is_given_nothing_after(cast: Cast, harm: Question) -> None:
    make.make_tasks(harm, 3)
    as_it_was = Membership.objects.get(pk=cast.alice.pk)
    people.deactivate(cast.project, cast.alice.number)
    assert queue.next_work(as_it_was, harm) == []
    assert code(as_it_was, harm) == "inactive"
