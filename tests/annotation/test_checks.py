"""Practice, known answers mixed in, and the pause below the floor: the queue's side of them."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from annotation import disputes, gate, queue
from annotation.errors import Conflict, Missing
from annotation.models import Adjudication, Check, Item, KnownAnswer, Lease, Pause, Progress, Question, Repeat, Task, Vote
from tests import cast as make
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    return make.make_question(cast.project)


def make_known(question: Question, count: int, *, choice: str = "no", practice: bool = False) -> list[KnownAnswer]:
    """`count` new items whose answer is known."""
    tasks = make.make_tasks(question, count)
    Task.objects.filter(pk__in=[task.pk for task in tasks]).update(state="retired")
    answer = question.choices.get(value=choice)
    return KnownAnswer.objects.bulk_create(
        KnownAnswer(question=question, task=task, choice=answer, practice=practice, why="It says so.") for task in tasks
    )


def set_share(question: Question, share: float, floor: float | None = None) -> None:
    Question.objects.filter(pk=question.pk).update(check_share=share, accuracy_floor=floor)


# ---------------------------------------------------------------- practice
def test_practice_comes_first_in_order_with_feedback_and_then_live_work(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 3)
    known = make_known(toxicity, 2, practice=True)
    first, second = queue.next_work(cast.alice, toxicity)
    assert [first.task_id, second.task_id] == [answer.task_id for answer in known]
    assert first.practice
    assert second.practice
    wrong = queue.cast_vote(cast.alice, first.token, choice="yes")
    assert wrong.feedback
    assert (wrong.feedback.correct, wrong.feedback.label, wrong.feedback.why) == (False, "No", "It says so.")
    assert [work.token for work in wrong.work] == [second.token]
    right = queue.cast_vote(cast.alice, second.token, choice="no")
    assert right.feedback
    assert right.feedback.correct
    assert len(right.work) == 2
    assert not any(work.practice for work in right.work)
    assert Vote.objects.count() == 0
    assert Progress.objects.get(member=cast.alice).votes == 0
    assert queue.progress_of(cast.alice, toxicity) == (0, 0)
    assert queue.last_answers(cast.alice) == []


def test_a_practice_answer_sent_again_gets_the_same_feedback(cast: Cast, toxicity: Question) -> None:
    make_known(toxicity, 1, practice=True)
    (work,) = queue.next_work(cast.alice, toxicity)
    first = queue.cast_vote(cast.alice, work.token, choice="no")
    again = queue.cast_vote(cast.alice, work.token, choice="yes")
    assert (again.vote_id, again.choice, again.feedback) == (first.vote_id, "no", first.feedback)
    assert Check.objects.filter(answered_at__isnull=False).count() == 1


# ---------------------------------------------------------------- checks
def test_a_check_is_held_answered_changed_and_listed_like_a_task(cast: Cast, toxicity: Question) -> None:
    make_known(toxicity, 1)
    set_share(toxicity, 0.5)
    Question.objects.filter(pk=toxicity.pk).update(check_share=0.5)
    make.make_tasks(toxicity, 40)
    work = queue.next_work(cast.alice, toxicity)
    numbers = []
    while not Check.objects.filter(answered_at__isnull=False).exists():
        receipt = queue.cast_vote(cast.alice, work[0].token, choice="yes", comment="hm")
        assert receipt.feedback is None
        numbers.append(receipt.vote_id)
        work = receipt.work
    assert numbers == sorted(numbers)
    check = Check.objects.get()
    assert (check.number, check.correct) == (numbers[-1], False)
    newest = queue.last_answers(cast.alice, toxicity)[0]
    assert (newest.kind, newest.id, newest.choice, newest.comment, newest.changeable) == ("vote", check.number, "yes", "hm", True)
    assert queue.own_vote(cast.alice, numbers[-1]).text == Item.objects.get(tasks__known_answer__pk=check.known_id).text
    queue.revise_vote(cast.alice, numbers[-1], choice="no")
    check.refresh_from_db()
    assert check.correct is True
    assert Vote.objects.count() == len(numbers) - 1
    twin = Vote.objects.filter(created_at__lt=check.answered_at).order_by("-created_at").first()
    if twin is None:
        Check.objects.update(answered_at=F("answered_at") - timedelta(minutes=11))
    else:  # what may be changed of a vote may be changed of a check, and no longer
        Task.objects.filter(pk=twin.task_id).update(state="retired")
        assert [answer.changeable for answer in queue.last_answers(cast.alice, toxicity)][:2] == [False, False]
    with pytest.raises(Conflict):
        queue.revise_vote(cast.alice, numbers[-1], choice="yes")
    with pytest.raises(Missing):
        queue.own_vote(cast.dave, numbers[-1])


def test_a_check_can_be_abstained_from_flagged_and_given_back(cast: Cast, toxicity: Question) -> None:
    Question.objects.filter(pk=toxicity.pk).update(check_share=0.5)
    known = {answer.task_id for answer in make_known(toxicity, 2)}
    make.make_tasks(toxicity, 40)
    while not (held := [work for work in queue.next_work(cast.alice, toxicity) if work.task_id in known]):
        queue.release(cast.alice)
    assert queue.held_count(cast.alice) == 2
    queue.flag(cast.alice, held[0].task_id, "wrong")
    queue.abstain(cast.alice, held[0].token, "cannot_judge")
    assert queue.last_answers(cast.alice)[0].label == "I cannot judge this"
    assert Task.objects.get(pk=held[0].task_id).abstention_count == 0
    with pytest.raises(Conflict):
        queue.cast_vote(cast.alice, held[0].token, choice="no")
    assert queue.release(cast.alice) == 2
    assert queue.held_count(cast.alice) == 0


def test_no_check_goes_out_when_no_live_work_is_left(cast: Cast, toxicity: Question) -> None:
    Question.objects.filter(pk=toxicity.pk).update(check_share=0.5)
    make_known(toxicity, 10)
    assert all(queue.next_work(cast.alice, toxicity) == [] for _ in range(20))


def test_who_knows_the_answer_is_not_asked_when_the_task_is_live_again(cast: Cast, toxicity: Question) -> None:
    (known,) = make_known(toxicity, 1, practice=True)
    (work,) = queue.next_work(cast.alice, toxicity)
    queue.cast_vote(cast.alice, work.token, choice="no")
    KnownAnswer.objects.update(active=False)
    Task.objects.filter(pk=known.task_id).update(state="open")
    assert queue.next_work(cast.alice, toxicity) == []
    assert [held.task_id for held in queue.next_work(cast.dave, toxicity)] == [known.task_id]


def test_the_task_of_an_active_known_answer_cannot_be_open(cast: Cast, toxicity: Question) -> None:
    (known,) = make_known(toxicity, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.filter(pk=known.task_id).update(state="open")
    (task,) = make.make_tasks(toxicity, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        KnownAnswer.objects.create(question=toxicity, task=task, choice=known.choice)


def test_nobody_is_asked_what_they_voted_on_before(cast: Cast, toxicity: Question) -> None:
    (task,) = make.make_tasks(toxicity, 1)
    for member in (cast.alice, cast.dave, cast.erin):
        queue.cast_vote(member, queue.next_work(member, toxicity)[0].token, choice="no")
    KnownAnswer.objects.create(question=toxicity, task=task, choice=toxicity.choices.get(value="no"), practice=True)
    assert queue.next_work(cast.alice, toxicity) == []
    (work,) = queue.next_work(cast.charlie, toxicity)
    assert work.task_id == task.pk


def test_a_check_whose_item_was_quarantined_goes_like_a_task_that_was_withdrawn(cast: Cast, toxicity: Question) -> None:
    known, _ = make_known(toxicity, 2, practice=True)
    first, second = queue.next_work(cast.alice, toxicity)
    queue.flag(cast.alice, first.task_id, "illegal")
    with pytest.raises(Conflict) as refusal:
        queue.cast_vote(cast.alice, first.token, choice="no")
    assert refusal.value.code == "settled"
    assert [work.token for work in queue.next_work(cast.alice, toxicity)] == [second.token]
    assert known.task.item.pk == first.item_id


# ---------------------------------------------------------------- the floor
def answer_checks(member: make.Membership, question: Question, count: int, *, right: int) -> queue.Receipt:
    """Go on until this many checks are answered, the first `right` of them rightly, and everything else with "yes"."""
    known = set(KnownAnswer.objects.values_list("task_id", flat=True))
    answered = 0
    while True:
        work = queue.next_work(member, question)[0]
        is_check = work.task_id in known
        receipt = queue.cast_vote(member, work.token, choice="no" if is_check and answered < right else "yes")
        answered += is_check
        if answered == count:
            return receipt


def test_below_the_floor_after_twenty_answers_a_member_is_paused_and_counting_starts_anew(cast: Cast, toxicity: Question) -> None:
    make_known(toxicity, 45)
    make.make_tasks(toxicity, 300)
    Question.objects.filter(pk=toxicity.pk).update(check_share=0.5, accuracy_floor=0.8)
    answer_checks(cast.alice, toxicity, 19, right=15)
    assert not Pause.objects.exists()
    assert answer_checks(cast.alice, toxicity, 1, right=0).work == []
    pause = Pause.objects.get()
    assert (pause.answers, pause.correct, pause.floor) == (20, 15, 0.8)
    stop = gate.stop_of(cast.alice, toxicity)
    assert stop
    assert stop.code == "paused"
    Pause.objects.update(lifted_at=pause.paused_at + timedelta(seconds=1), lifted_by=cast.bob)
    Check.objects.update(answered_at=F("answered_at") - timedelta(minutes=1))
    Pause.objects.update(paused_at=F("paused_at") - timedelta(seconds=50), lifted_at=F("lifted_at") - timedelta(seconds=50))
    answer_checks(cast.alice, toxicity, 20, right=16)
    assert Pause.objects.count() == 1


def test_at_the_floor_nobody_is_paused(cast: Cast, toxicity: Question) -> None:
    make_known(toxicity, 20)
    make.make_tasks(toxicity, 300)
    Question.objects.filter(pk=toxicity.pk).update(check_share=0.5, accuracy_floor=0.8)
    answer_checks(cast.alice, toxicity, 20, right=16)
    assert not Pause.objects.exists()


# ---------------------------------------------------------------- an adjudicator's own rulings again
def test_an_adjudicator_rules_again_on_a_ruling_of_their_own_and_nothing_but_the_repeat_changes(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 12)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "no")):
        while work := queue.next_work(member, toxicity):
            queue.cast_vote(member, work[0].token, choice=choice)
    for _ in range(11):
        dispute = disputes.next_dispute(cast.charlie, toxicity)
        assert dispute
        disputes.rule_blind(cast.charlie, dispute.token, choice="no")
        disputes.rule(cast.charlie, dispute.token, choice="no", reason="clear_error")
    Question.objects.filter(pk=toxicity.pk).update(repeat_share=0.5)
    oldest = Adjudication.objects.order_by("ruled_at")[0]
    while not Repeat.objects.exists():
        dispute = disputes.next_dispute(cast.charlie, toxicity)
        assert dispute
        assert dispute.votes is None
        if not Repeat.objects.exists():
            disputes.give_back(cast.charlie, dispute.token)
    assert dispute.task_id == oldest.task_id  # the ten after it are too fresh in mind
    assert (dispute.vote_count, dispute.blind_choice, dispute.abstentions) == (3, None, None)
    opened = disputes.rule_blind(cast.charlie, dispute.token, choice="yes")
    assert opened.votes
    assert len(opened.votes) == 3
    assert opened.blind_choice == "yes"
    disputes.rule(cast.charlie, dispute.token, choice="yes", reason="ambiguous")
    disputes.rule(cast.charlie, dispute.token, choice="no", reason="ambiguous")  # a double click changes nothing
    repeat = Repeat.objects.get()
    assert repeat.choice
    assert repeat.choice.value == "yes"
    assert oldest.task.truths.get(superseded_at=None).choice.value == "no"
    after = disputes.next_dispute(cast.charlie, toxicity)
    assert after
    assert after.task_id != oldest.task_id


def test_a_repeat_that_was_left_comes_back_under_its_own_token(cast: Cast, toxicity: Question) -> None:
    test_an_adjudicator_rules_again_on_a_ruling_of_their_own_and_nothing_but_the_repeat_changes(cast, toxicity)
    repeat = Repeat.objects.get()
    Repeat.objects.update(choice=None, ruled_at=None, blind_choice=None, blind_at=None)
    held = disputes.next_dispute(cast.charlie, toxicity)
    assert held
    assert held.token == repeat.token
    disputes.give_back(cast.charlie, held.token)
    other = disputes.next_dispute(cast.charlie, toxicity)
    assert other is not None


def test_a_check_that_ran_out_and_became_practice_is_put_to_its_holder_again(cast: Cast, toxicity: Question) -> None:
    (known,) = make_known(toxicity, 1)
    make.make_tasks(toxicity, 40)
    set_share(toxicity, 0.5)
    while not Check.objects.exists():
        queue.next_work(cast.alice, toxicity)
        Lease.objects.all().delete()
        Task.objects.update(lease_count=0)
    Check.objects.update(expires_at=F("leased_at") - timedelta(hours=1))
    KnownAnswer.objects.update(practice=True)
    (work,) = queue.next_work(cast.alice, toxicity)
    assert (work.task_id, work.practice) == (known.task_id, True)
    assert queue.cast_vote(cast.alice, work.token, choice="no").feedback is not None


def test_a_repeat_whose_item_was_quarantined_goes_back_silently_and_makes_room_for_the_next(cast: Cast, toxicity: Question) -> None:
    test_an_adjudicator_rules_again_on_a_ruling_of_their_own_and_nothing_but_the_repeat_changes(cast, toxicity)
    repeat = Repeat.objects.get()
    Repeat.objects.update(choice=None, ruled_at=None, blind_choice=None, blind_at=None)
    Item.objects.filter(tasks__adjudications=repeat.adjudication_id).update(quarantined=True)
    with pytest.raises(Conflict):
        disputes.rule_blind(cast.charlie, repeat.token, choice="no")
    disputes.give_back(cast.charlie, repeat.token)
    Question.objects.filter(pk=toxicity.pk).update(repeat_share=0.5)
    while Repeat.objects.filter(pk=repeat.pk).exists():
        held = disputes.next_dispute(cast.charlie, toxicity)
        assert held is not None
        disputes.give_back(cast.charlie, held.token)
