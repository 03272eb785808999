"""The queue, told as stories. What many processes do to it at once is in tests/faults/test_queue_storm.py."""

import uuid
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation import disputes, questions, queue
from annotation.errors import Conflict, Forbidden, Invalid, Missing
from annotation.imported import RaterVote, import_votes
from annotation.models import Abstention, Adjudication, GroundTruth, Guideline, Item, Lease, Task, Vote
from tests import cast as make
from tests.cast import Cast, Membership, Question


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    return make.make_question(cast.project)


def vote(member: Membership, question: Question, choice: str = "yes", **more: object) -> queue.Receipt:
    """The member's answer to whatever is on their screen."""
    return queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice, **more)


def expire_leases() -> None:
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def settled_long_ago() -> None:
    Task.objects.exclude(settled_at=None).update(settled_at=timezone.now() - timedelta(minutes=2))


# ---------------------------------------------------------------- leasing
def test_an_annotator_holds_the_task_on_screen_and_the_one_after_it(cast: Cast, toxicity: Question) -> None:
    tasks = make.make_tasks(toxicity, 4)
    work = queue.next_work(cast.alice, toxicity)
    assert [held.task_id for held in work] == [tasks[0].pk, tasks[1].pk]
    assert queue.next_work(cast.alice, toxicity) == work


def test_fresh_tasks_come_in_the_seeded_order(cast: Cast, toxicity: Question) -> None:
    tasks = make.make_tasks(toxicity, 5)
    seen = [vote(cast.alice, toxicity) and Vote.objects.latest("id").task_id for _ in range(5)]
    assert seen == [task.pk for task in tasks]
    assert [task.rank for task in tasks] == sorted(task.rank for task in tasks)
    assert [task.pk for task in tasks] != sorted(task.pk for task in tasks)


def test_a_task_with_votes_comes_before_one_without(cast: Cast, toxicity: Question) -> None:
    tasks = make.make_tasks(toxicity, 6)
    Task.objects.filter(pk=tasks[5].pk).update(vote_count=0, queued_at=timezone.now())
    assert queue.next_work(cast.dave, toxicity)[0].task_id == tasks[5].pk


def test_nobody_gets_a_task_twice_in_a_round(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 3)
    for _ in range(3):
        vote(cast.alice, toxicity)
    assert queue.next_work(cast.alice, toxicity) == []
    assert Vote.objects.values("task").distinct().count() == 3


def test_votes_and_leases_never_exceed_what_is_required(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    for member in (cast.alice, cast.dave, cast.erin):
        assert len(queue.next_work(member, toxicity)) == 1
    assert queue.next_work(cast.charlie, toxicity) == []
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.update(vote_count=1)


def test_an_expired_lease_frees_its_slot_by_itself(cast: Cast) -> None:
    question = make.make_question(cast.project, votes=1)
    make.make_tasks(question, 1)
    queue.next_work(cast.alice, question)
    assert queue.next_work(cast.dave, question) == []
    expire_leases()
    assert len(queue.next_work(cast.dave, question)) == 1


def test_a_late_vote_is_taken_while_the_slot_is_free(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    held = queue.next_work(cast.alice, toxicity)[0]
    expire_leases()
    queue.next_work(cast.dave, toxicity)  # finds that alice's lease ran out
    assert Lease.objects.get(member=cast.alice).lapsed
    assert queue.cast_vote(cast.alice, held.token, choice="yes").choice == "yes"
    task = Task.objects.get()
    assert (task.vote_count, task.lease_count) == (1, 1)


def test_a_late_vote_is_refused_in_words_when_others_have_answered(cast: Cast) -> None:
    question = make.make_question(cast.project, votes=1)
    make.make_tasks(question, 1)
    held = queue.next_work(cast.alice, question)[0]
    expire_leases()
    queue.next_work(cast.dave, question)
    with pytest.raises(Conflict, match="ran out") as refused:
        queue.cast_vote(cast.alice, held.token, choice="yes")
    assert refused.value.code == "lease_expired"
    vote(cast.dave, question)
    with pytest.raises(Conflict, match="settled") as refused:
        queue.cast_vote(cast.alice, held.token, choice="yes")
    assert refused.value.code == "settled"


def test_a_late_vote_takes_the_slot_of_another_that_ran_out(cast: Cast) -> None:
    question = make.make_question(cast.project, votes=1)
    make.make_tasks(question, 1)
    held = queue.next_work(cast.alice, question)[0]
    expire_leases()
    queue.next_work(cast.dave, question)
    expire_leases()
    assert queue.cast_vote(cast.alice, held.token, choice="no").choice == "no"


def test_a_task_handed_out_twice_to_one_person_takes_one_vote(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    first = queue.next_work(cast.alice, toxicity)[0]
    expire_leases()
    second = queue.next_work(cast.alice, toxicity)[0]
    assert second.task_id == first.task_id
    assert second.token != first.token
    queue.cast_vote(cast.alice, first.token, choice="yes")
    with pytest.raises(Missing, match="do not hold"):
        queue.cast_vote(cast.alice, second.token, choice="no")
    task = Task.objects.get()
    assert (task.vote_count, task.lease_count, Vote.objects.get().choice.value) == (1, 0, "yes")


def test_leases_that_are_returned_free_their_slots(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 3)
    queue.next_work(cast.alice, toxicity)
    assert queue.release(cast.alice) == 2
    assert not Lease.objects.exists()
    assert set(Task.objects.values_list("lease_count", flat=True)) == {0}


def test_a_researcher_does_not_vote(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    with pytest.raises(Forbidden, match="researcher"):
        queue.next_work(cast.bob, toxicity)


def test_a_switched_off_question_hands_out_nothing(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    questions.set_active(toxicity, False)
    assert queue.next_work(cast.alice, toxicity) == []


def test_a_question_that_is_switched_off_takes_back_what_is_held_but_not_an_answer_on_its_way(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 5)
    first, second = queue.next_work(cast.alice, toxicity)
    questions.set_active(toxicity, False)
    assert queue.cast_vote(cast.alice, first.token, choice="yes").work == []
    assert Task.objects.get(pk=second.task_id).lease_count == 0
    assert queue.cast_vote(cast.alice, second.token, choice="yes").work == []
    assert Task.objects.get(pk=second.task_id).vote_count == 1


def test_a_question_without_a_guideline_hands_out_nothing(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    Guideline.objects.all().delete()
    assert queue.next_work(cast.alice, toxicity) == []
    assert Task.objects.get().lease_count == 0


# ---------------------------------------------------------------- the mark that keeps leasing quick
def test_what_came_up_before_the_mark_is_not_read_again(cast: Cast, toxicity: Question) -> None:
    tasks = make.make_tasks(toxicity, 8)
    for _ in range(4):
        vote(cast.alice, toxicity)
    long_ago = timezone.now() - timedelta(hours=1)
    Task.objects.filter(vote_count=1).update(queued_at=long_ago)
    queue.release(cast.alice)
    queue.next_work(cast.alice, toxicity)
    mark = cast.alice.progress_set.get().seen_until
    assert long_ago < mark <= timezone.now() - queue.SETTLING_IN
    # A task behind the mark comes up anew when another's lease on it is returned.
    queue.next_work(cast.dave, toxicity)
    assert Lease.objects.filter(member=cast.dave, task__vote_count=1).exists()
    queue.release(cast.dave)
    assert Task.objects.filter(vote_count=1, queued_at__gt=mark).exists()
    assert len(tasks) == 8


def test_a_started_task_behind_someones_mark_is_still_found_when_nothing_else_is_left(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    vote(cast.dave, toxicity)
    Task.objects.update(queued_at=timezone.now() - timedelta(hours=1))
    cast.alice.progress_set.create(question=toxicity, seen_until=timezone.now() - timedelta(minutes=5))
    assert len(queue.next_work(cast.alice, toxicity)) == 1


def test_progress_counts_without_reading_votes(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 3)
    assert queue.progress_of(cast.alice, toxicity) == (0, 0)
    receipt = vote(cast.alice, toxicity)
    queue.cast_vote(cast.alice, Vote.objects.get(pk=receipt.vote_id).token, choice="yes")
    vote(cast.alice, toxicity)
    assert queue.progress_of(cast.alice, toxicity) == (2, 2)


# ---------------------------------------------------------------- voting and settling
def test_the_last_vote_and_what_it_settles_commit_together(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    for member in (cast.alice, cast.dave):
        vote(member, toxicity, "yes")
        assert Task.objects.get().state == "open"
    vote(cast.erin, toxicity, "yes")
    truth = GroundTruth.objects.get()
    assert Task.objects.get().state == "agreed"
    assert (truth.choice.value, truth.source, truth.member, truth.guideline.version) == ("yes", "unanimous", cast.erin, 1)


def test_one_voice_apart_is_a_dispute_and_no_truth(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "yes")):
        vote(member, toxicity, choice)
    assert Task.objects.get().state == "disputed"
    assert not GroundTruth.objects.exists()


def test_a_majority_settles_with_the_tags_of_its_majority(cast: Cast) -> None:
    question = make.make_question(cast.project, "harm", policy="majority", choices="harmful safe", tags="violence hateful")
    make.make_tasks(question, 1)
    vote(cast.alice, question, "harmful", tags=["violence"])
    vote(cast.dave, question, "harmful", tags=["violence", "hateful"])
    vote(cast.erin, question, "safe")
    truth = GroundTruth.objects.get()
    assert (truth.choice.value, truth.tags, truth.source, truth.tags_unsettled) == ("harmful", ["violence"], "majority", False)


def test_a_required_tag_without_a_majority_leaves_the_harm_type_unsettled(cast: Cast) -> None:
    question = make.make_question(cast.project, "harm", votes=2, choices="harmful safe", tags="violence hateful")
    make.make_tasks(question, 1)
    vote(cast.alice, question, "harmful", tags=["violence"])
    vote(cast.dave, question, "harmful", tags=["hateful"])
    truth = GroundTruth.objects.get()
    assert (truth.choice.value, truth.tags, truth.tags_unsettled) == ("harmful", [], True)


def test_the_same_vote_sent_again_gives_the_same_answer_and_changes_nothing(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 3)
    token = queue.next_work(cast.alice, toxicity)[0].token
    first = queue.cast_vote(cast.alice, token, choice="yes", comment="first")
    again = queue.cast_vote(cast.alice, token, choice="no", comment="second")
    assert again == first
    assert Vote.objects.get().comment == "first"
    assert Task.objects.get(votes__isnull=False).vote_count == 1


def test_a_token_is_worth_nothing_in_anothers_hands(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    token = queue.next_work(cast.alice, toxicity)[0].token
    for stranger, unknown in ((cast.dave, token), (cast.alice, uuid.uuid4())):
        with pytest.raises(Missing):
            queue.cast_vote(stranger, unknown, choice="yes")
    assert not Vote.objects.exists()


@pytest.mark.parametrize(
    ("choice", "tags", "field"),
    [("maybe", [], "choice"), ("safe", ["violence"], "tags"), ("harmful", [], "tags"), ("harmful", ["rude"], "tags")],
)
def test_an_answer_that_the_question_does_not_offer_is_refused_and_the_task_kept(
    cast: Cast, choice: str, tags: list[str], field: str
) -> None:
    question = make.make_question(cast.project, "harm", choices="harmful safe", tags="violence hateful")
    make.make_tasks(question, 1)
    work = queue.next_work(cast.alice, question)
    with pytest.raises(Invalid) as refused:
        queue.cast_vote(cast.alice, work[0].token, choice=choice, tags=tags)
    assert list(refused.value.fields) == [field]
    assert queue.next_work(cast.alice, question) == work


def test_a_vote_records_the_guideline_it_was_handed_out_with(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    work = queue.next_work(cast.alice, toxicity)
    Guideline.objects.create(question=toxicity, version=2, body="Judge with more care.")
    queue.cast_vote(cast.alice, work[0].token, choice="yes")
    assert Vote.objects.get().guideline.version == work[0].guideline_version == 1


def test_the_seed_comes_along_only_where_the_question_shows_it(cast: Cast) -> None:
    seed = Item.objects.create(project=cast.project, kind="text", external_id="seed", text="A seed.", content_hash=b"")
    make.make_items(cast.project, 1, origin=seed)
    for slug, shows in (("toxicity", False), ("naturalness", True)):
        question = make.make_question(cast.project, slug, shows_origin=shows)
        make.create_tasks(question)
        texts = {held.origin_text for held in queue.next_work(cast.alice, question)}
        assert texts == ({"A seed.", None} if shows else {None})


def test_a_quarantined_seed_is_shown_to_nobody(cast: Cast) -> None:
    seed = Item.objects.create(project=cast.project, kind="text", external_id="seed", text="A seed.", content_hash=b"", quarantined=True)
    make.make_items(cast.project, 1, origin=seed)
    question = make.make_question(cast.project, votes=2, shows_origin=True)
    make.create_tasks(question)
    assert [held.origin_text for held in queue.next_work(cast.alice, question)] == [None]
    receipt = vote(cast.alice, question, "yes")
    assert queue.own_vote(cast.alice, receipt.vote_id).origin_text is None
    vote(cast.dave, question, "no")
    assert disputes.next_dispute(cast.charlie, question).origin_text is None


# ---------------------------------------------------------------- abstaining and flagging
def test_abstaining_frees_the_slot_and_bars_for_the_round(cast: Cast, toxicity: Question) -> None:
    tasks = make.make_tasks(toxicity, 2)
    work = queue.next_work(cast.alice, toxicity)
    left = queue.abstain(cast.alice, work[0].token, "distressing")
    assert [held.task_id for held in left] == [tasks[1].pk]
    assert queue.abstain(cast.alice, work[0].token, "distressing") == left
    assert Abstention.objects.count() == 1
    task = Task.objects.get(pk=tasks[0].pk)
    assert (task.abstention_count, task.lease_count, task.state) == (1, 0, "open")
    with pytest.raises(Conflict, match="already answered"):
        queue.cast_vote(cast.alice, work[0].token, choice="yes")


def test_three_abstentions_send_a_task_to_an_adjudicator(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    waiting = queue.next_work(cast.charlie, toxicity)[0]
    queue.release(cast.charlie)
    for member in (cast.alice, cast.dave, cast.erin):
        queue.abstain(member, queue.next_work(member, toxicity)[0].token, "cannot_judge")
    assert Task.objects.get().state == "disputed"
    with pytest.raises(Missing):
        queue.cast_vote(cast.charlie, waiting.token, choice="yes")


def test_a_reason_is_needed_to_abstain(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    with pytest.raises(Invalid):
        queue.abstain(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, "tired")


def test_possibly_illegal_takes_the_item_from_everyone_at_once(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    held = {member.pk: queue.next_work(member, toxicity)[0] for member in (cast.alice, cast.dave)}
    queue.flag(cast.alice, held[cast.alice.pk].task_id, "illegal")
    assert Item.objects.get(quarantined=True).pk == held[cast.alice.pk].item_id
    assert queue.next_work(cast.alice, toxicity) == queue.next_work(cast.erin, toxicity) == []
    with pytest.raises(Conflict, match="withdrawn"):
        queue.cast_vote(cast.dave, held[cast.dave.pk].token, choice="yes")


def test_only_who_has_seen_a_task_can_flag_it(cast: Cast, toxicity: Question) -> None:
    task = make.make_tasks(toxicity, 1)[0]
    with pytest.raises(Missing):
        queue.flag(cast.alice, task.pk, "illegal")


# ---------------------------------------------------------------- going back
def test_a_vote_can_be_changed_while_its_task_is_open_and_the_first_version_is_kept(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    receipt = vote(cast.alice, toxicity, "yes", comment="sure")
    queue.revise_vote(cast.alice, receipt.vote_id, choice="no", comment="not sure")
    changed = Vote.objects.get()
    assert (changed.choice.value, changed.comment, changed.revised_at is not None) == ("no", "not sure", True)
    kept = changed.events.get()
    assert (kept.choice.value, kept.comment) == ("yes", "sure")


def test_the_vote_that_settled_can_be_changed_for_a_minute_and_settles_anew(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    for member in (cast.alice, cast.dave):
        vote(member, toxicity)
    last = vote(cast.erin, toxicity, "no")
    assert Task.objects.get().state == "disputed"
    queue.revise_vote(cast.erin, last.vote_id, choice="yes")
    assert Task.objects.get().state == "agreed"
    queue.revise_vote(cast.erin, last.vote_id, choice="no")
    assert Task.objects.get().state == "disputed"
    assert GroundTruth.objects.get().superseded_at is not None
    settled_long_ago()
    with pytest.raises(Conflict, match="closed"):
        queue.revise_vote(cast.erin, last.vote_id, choice="yes")


def test_a_vote_on_a_task_that_abstentions_sent_to_an_adjudicator_is_closed(cast: Cast) -> None:
    question = make.make_question(cast.project, votes=4)
    make.make_tasks(question, 1)
    only = vote(make.make_member(cast.project, "frank", "annotator"), question)
    for member in (cast.alice, cast.dave, cast.erin):
        queue.abstain(member, queue.next_work(member, question)[0].token, "cannot_judge")
    with pytest.raises(Conflict, match="closed"):
        queue.revise_vote(Vote.objects.get().member, only.vote_id, choice="no")
    assert Task.objects.get().state == "disputed"


def test_only_the_vote_that_settled_can_still_be_changed(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    early = vote(cast.alice, toxicity)
    for member in (cast.dave, cast.erin):
        vote(member, toxicity)
    with pytest.raises(Conflict, match="closed"):
        queue.revise_vote(cast.alice, early.vote_id, choice="no")


def test_a_dispute_that_someone_holds_is_not_changed_under_them(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    vote(cast.alice, toxicity)
    vote(cast.dave, toxicity)
    last = vote(cast.erin, toxicity, "no")
    assert disputes.next_dispute(cast.charlie, toxicity) is not None
    with pytest.raises(Conflict, match="closed"):
        queue.revise_vote(cast.erin, last.vote_id, choice="yes")


def test_nobody_opens_or_changes_anothers_vote(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    receipt = vote(cast.alice, toxicity)
    with pytest.raises(Missing):
        queue.own_vote(cast.dave, receipt.vote_id)
    with pytest.raises(Missing):
        queue.revise_vote(cast.dave, receipt.vote_id, choice="no")


def test_last_answers_are_ones_own_newest_first(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 3)
    vote(cast.alice, toxicity, "yes")
    queue.abstain(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, "broken")
    vote(cast.dave, toxicity, "no")
    answers = queue.last_answers(cast.alice)
    assert [(answer.kind, answer.label, answer.changeable) for answer in answers] == [
        ("abstention", "The item is broken", False),
        ("vote", "Yes", True),
    ]


# ---------------------------------------------------------------- ruling
@pytest.fixture
def dispute(cast: Cast, toxicity: Question) -> Task:
    make.make_tasks(toxicity, 1)
    for member, choice, comment in ((cast.alice, "yes", "rude"), (cast.dave, "no", ""), (cast.erin, "yes", "")):
        vote(member, toxicity, choice, comment=comment)
    return Task.objects.get()


def test_the_votes_open_only_after_a_blind_ruling_and_both_rulings_are_kept(cast: Cast, toxicity: Question, dispute: Task) -> None:
    held = disputes.next_dispute(cast.charlie, toxicity)
    assert held.task_id == dispute.pk
    assert held.votes is None
    with pytest.raises(Conflict, match="blind"):
        disputes.rule(cast.charlie, held.token, choice="no", reason="ambiguous")
    opened = disputes.rule_blind(cast.charlie, held.token, choice="no")
    assert sorted((shown.letter, shown.choice) for shown in opened.votes)[0][0] == "A"
    assert sorted(shown.choice for shown in opened.votes) == ["no", "yes", "yes"]
    assert disputes.next_dispute(cast.charlie, toxicity) == opened
    disputes.rule(cast.charlie, held.token, choice="yes", reason="guideline_gap", note="Say whether mild insults count.")
    ruling = Adjudication.objects.get()
    assert (ruling.blind_choice.value, ruling.choice.value, ruling.blind) == ("no", "yes", True)
    truth = GroundTruth.objects.get()
    assert (truth.source, truth.member, truth.choice.value, Task.objects.get().state) == ("adjudicated", cast.charlie, "yes", "adjudicated")
    disputes.rule(cast.charlie, held.token, choice="no", reason="ambiguous")  # sent again
    assert GroundTruth.objects.get().choice.value == "yes"


def test_a_second_blind_ruling_does_not_replace_the_first(cast: Cast, toxicity: Question, dispute: Task) -> None:
    held = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule_blind(cast.charlie, held.token, choice="no")
    assert disputes.rule_blind(cast.charlie, held.token, choice="yes").blind_choice == "no"
    assert dispute.adjudications.count() == 1


def test_one_adjudicator_at_a_time_and_never_who_voted(cast: Cast, toxicity: Question, dispute: Task) -> None:
    second = make.make_member(cast.project, "frank", "adjudicator")
    voted = make.make_member(cast.project, "grace", "adjudicator")
    Vote.objects.filter(member=cast.alice).update(member=voted)
    assert disputes.next_dispute(voted, toxicity) is None
    assert disputes.next_dispute(cast.charlie, toxicity).task_id == dispute.pk
    assert disputes.next_dispute(second, toxicity) is None
    expire_leases()
    assert disputes.next_dispute(second, toxicity).task_id == dispute.pk


def test_a_late_ruling_is_taken_while_nobody_else_holds_the_dispute(cast: Cast, toxicity: Question, dispute: Task) -> None:
    second = make.make_member(cast.project, "frank", "adjudicator")
    held = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule_blind(cast.charlie, held.token, choice="no")
    expire_leases()
    assert disputes.next_dispute(second, toxicity) is not None
    with pytest.raises(Conflict, match="someone else"):
        disputes.rule(cast.charlie, held.token, choice="no", reason="other")
    queue.release(second)
    disputes.rule(cast.charlie, held.token, choice="no", reason="other")
    assert dispute.truths.get().choice.value == "no"


def test_a_dispute_given_back_waits_for_the_next(cast: Cast, toxicity: Question, dispute: Task) -> None:
    held = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule_blind(cast.charlie, held.token, choice="no")
    disputes.give_back(cast.charlie, held.token)
    assert not Lease.objects.filter(lapsed=False).exists()
    assert dispute.adjudications.get().choice is None
    assert disputes.next_dispute(cast.bob, toxicity).task_id == dispute.pk
    with pytest.raises(Conflict):
        disputes.rule(cast.charlie, held.token, choice="no", reason="other")


def test_a_ruling_says_the_guideline_of_its_own_lease(cast: Cast, toxicity: Question, dispute: Task) -> None:
    held = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule_blind(cast.charlie, held.token, choice="no")
    disputes.give_back(cast.charlie, held.token)
    Guideline.objects.create(question=toxicity, version=2, body="Judge with more care.")
    again = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule(cast.charlie, again.token, choice="no", reason="ambiguous")
    assert dispute.adjudications.get().guideline.version == dispute.truths.get().guideline.version == 2


def test_a_question_may_open_the_votes_at_once(cast: Cast, toxicity: Question, dispute: Task) -> None:
    Question.objects.update(blind_ruling=False)
    held = disputes.next_dispute(cast.charlie, toxicity)
    assert len(held.votes) == 3
    disputes.give_back(cast.charlie, held.token)
    seen = dispute.adjudications.get()
    assert (seen.member, seen.choice) == (cast.charlie, None), "whoever has seen the votes is on record"
    held = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule(cast.charlie, held.token, choice="no", reason="clear_error")
    ruling = dispute.adjudications.get()
    assert (ruling.blind_choice, ruling.choice.value) == (None, "no")


def test_a_researchers_ruling_is_recorded_as_not_blind(cast: Cast, toxicity: Question, dispute: Task) -> None:
    held = disputes.next_dispute(cast.bob, toxicity)
    disputes.rule_blind(cast.bob, held.token, choice="no")
    disputes.rule(cast.bob, held.token, choice="no", reason="ambiguous")
    assert dispute.adjudications.get().blind is False


def test_an_annotator_does_not_rule(cast: Cast, toxicity: Question, dispute: Task) -> None:
    with pytest.raises(Forbidden):
        disputes.next_dispute(cast.alice, toxicity)
    assert dispute.state == "disputed"


def test_who_has_ruled_is_barred_from_voting_in_a_later_round(cast: Cast, toxicity: Question, dispute: Task) -> None:
    held = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule_blind(cast.charlie, held.token, choice="no")
    disputes.give_back(cast.charlie, held.token)
    Task.objects.update(state="open", round=2, vote_count=0, settled_at=None, queued_at=timezone.now())
    assert queue.next_work(cast.charlie, toxicity) == []
    assert len(queue.next_work(cast.alice, toxicity)) == 1


def test_disputes_are_counted(cast: Cast, toxicity: Question, dispute: Task) -> None:
    assert disputes.dispute_counts(toxicity) == (1, 0)
    held = disputes.next_dispute(cast.charlie, toxicity)
    disputes.rule_blind(cast.charlie, held.token, choice="no")
    disputes.rule(cast.charlie, held.token, choice="no", reason="ambiguous")
    assert disputes.dispute_counts(toxicity) == (0, 1)
    assert dispute.pk


# ---------------------------------------------------------------- the database's own word
def test_the_settled_share_is_a_minute_old_so_that_it_tells_a_voter_nothing(cast: Cast) -> None:
    question = make.make_question(cast.project, votes=1)
    make.make_tasks(question, 2)
    assert queue.settled_share(question) == 0
    vote(cast.alice, question)
    assert queue.settled_share(question) == 0


def test_the_database_itself_refuses_a_second_vote_and_a_second_truth(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    vote(cast.alice, toxicity)
    first = Vote.objects.get()
    with pytest.raises(IntegrityError, match="vote_once_per_round"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO annotation_vote (task_id, question_id, member_id, round, choice_id, tags, comment, token, created_at)"
            " SELECT task_id, question_id, member_id, round, choice_id, tags, comment, gen_random_uuid(), now()"
            " FROM annotation_vote WHERE id = %s",
            [first.pk],
        )


def test_people_are_never_deleted_from_under_their_votes(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    vote(cast.alice, toxicity)
    with pytest.raises(Exception, match="protected"):
        cast.alice.user.delete()
    with pytest.raises(Exception, match="protected"):
        cast.alice.delete()


def test_what_cannot_be_shown_is_never_handed_out(cast: Cast) -> None:
    question = make.make_question(cast.project, kind="image")
    image = Item.objects.create(project=cast.project, kind="image", external_id="lost", content_hash=b"")
    import_votes(question, [RaterVote(image.pk, "rater", "yes")], votes_required=3)
    assert Task.objects.get().state == "open"
    assert queue.next_work(cast.alice, question) == []


def test_a_ruling_of_someone_who_voted_is_refused_however_they_came_to_hold_the_dispute(
    cast: Cast, toxicity: Question, dispute: Task
) -> None:
    held = disputes.next_dispute(cast.charlie, toxicity)
    assert dispute.votes.filter(member=cast.alice).update(member=cast.charlie) == 1
    with pytest.raises(Forbidden, match="voted"):
        disputes.rule_blind(cast.charlie, held.token, choice="no")
