"""Raters of a question, counted by hand from small stories in the database."""

import uuid

import pytest
from django.utils import timezone

from annotation.imported import COUNTED, RaterVote, import_votes
from annotation.models import (
    Abstention,
    Check,
    GroundTruth,
    KnownAnswer,
    Membership,
    Pause,
    Question,
    Role,
    TaskState,
    Vote,
)
from curation import agreement, raters
from curation.stats.intervals import wilson
from tests import cast as make
from tests.cast import Cast, make_items, make_question, make_tasks
from tests.curation.settled import settle

# By alice, dave and erin, in this order.
BALLOTS = ["yyy", "yyy", "nnn", "nnn", "nyy", "yyn > n", "ynn"]


@pytest.fixture
def question(cast: Cast) -> Question:
    question = make_question(cast.project)
    settle(cast, question, make_items(cast.project, len(BALLOTS)), BALLOTS)
    return question


def of(question: Question, member: Membership) -> raters.Person:
    return raters.person(question, raters.of_question(question), member.number)


def test_a_vote_is_held_against_the_others_or_against_the_ruling_never_against_itself(cast: Cast, question: Question) -> None:
    # alice: 4 unanimous, right; nyy: others settle y, wrong; yyn > n: the ruling says n, wrong; ynn: others settle n, wrong.
    alice = of(question, cast.alice).figures
    assert (alice.votes, alice.complete) == (7, 7)
    assert (alice.agreement.value, alice.agreement.n) == (pytest.approx(4 / 7), 7)
    assert (alice.agreement.low, alice.agreement.high) == pytest.approx(wilson(4, 7))
    # dave: 4 right; nyy and ynn: the other two are apart; yyn > n: wrong.
    dave = of(question, cast.dave).figures
    assert (dave.agreement.value, dave.agreement.n) == (pytest.approx(4 / 5), 5)
    # erin: 4 right; nyy and ynn say nothing; yyn > n: right.
    erin = of(question, cast.erin).figures
    assert (erin.agreement.value, erin.agreement.n) == (1, 5)


def test_too_few_votes_say_so_in_words(cast: Cast) -> None:
    question = make_question(cast.project)
    settle(cast, question, make_items(cast.project, 2), ["yyy", "nnn"])
    alice = of(question, cast.alice)
    assert (alice.figures.agreement.value, alice.figures.agreement.reason, alice.figures.agreement.n) == (None, raters.TOO_FEW, 2)
    assert alice.checks.reason == raters.TOO_FEW_CHECKS
    assert alice.figures.reliability.reason == raters.TOO_FEW_VOTES


def test_volume_counts_open_tasks_too_and_the_median_time_is_of_all_votes(cast: Cast, question: Question) -> None:
    settle(cast, question, make_items(cast.project, 1, start=50), ["y"])
    times = [1000, 2000, 3000, 4000, None, 6000, 7000, 8000]
    for vote, time in zip(Vote.objects.filter(member=cast.alice).order_by("pk"), times, strict=True):
        Vote.objects.filter(pk=vote.pk).update(elapsed_ms=time)
    alice = of(question, cast.alice).figures
    assert (alice.votes, alice.complete, alice.median_s) == (8, 7, 4.0)
    assert of(question, cast.dave).figures.median_s is None


def test_the_share_of_unsure_is_of_all_their_votes(cast: Cast) -> None:
    question = make_question(cast.project, choices="yes no unsure")
    settle(cast, question, make_items(cast.project, 5), ["uyy", "uyy", "yyy", "yyy", "yyy"])
    unsure = of(question, cast.alice).figures.unsure
    assert (unsure.value, unsure.n) == (pytest.approx(2 / 5), 5)


def test_abstentions_checks_and_pauses_stand_beside_the_votes(cast: Cast, question: Question) -> None:
    (task,) = make_tasks(question, 1)
    Abstention.objects.create(task=task, question=question, member=cast.alice, round=1, reason="distressing", token=uuid.uuid4())
    for number, shown in enumerate(make_tasks(question, 8)):
        shown.state = TaskState.RETIRED
        shown.save()
        known = KnownAnswer.objects.create(task=shown, question=question, choice=question.choices.first(), practice=number >= 6)
        Check.objects.create(
            known=known, question=question, member=cast.alice, practice=number >= 6, guideline=question.guidelines.first(),
            token=uuid.uuid4(), number=9000 + number, expires_at=timezone.now(), choice=question.choices.first(), correct=number > 1,
            answered_at=timezone.now(),
        )  # fmt: skip
    Pause.objects.create(question=question, member=cast.alice, answers=6, correct=4, floor=0.7)
    alice = of(question, cast.alice)
    # Six checks, the first two wrong; practice is not counted.
    assert (alice.abstentions, alice.checks.value, alice.checks.n, alice.paused) == (1, pytest.approx(4 / 6), 6, True)
    assert alice.checks.low == pytest.approx(wilson(4, 6)[0])
    assert not of(question, cast.dave).paused


def test_who_only_abstained_is_listed_without_votes(cast: Cast, question: Question) -> None:
    (task,) = make_tasks(question, 1)
    Abstention.objects.create(task=task, question=question, member=cast.charlie, round=1, reason="broken", token=uuid.uuid4())
    charlie = of(question, cast.charlie)
    assert (charlie.figures.votes, charlie.abstentions, charlie.figures.confusion) == (0, 1, None)


def test_reasons_of_abstaining_are_added_up_only_when_nobodys_own_can_be_read_off(cast: Cast, question: Question) -> None:
    def abstain(member: Membership, reason: str) -> None:
        (task,) = make_tasks(question, 1)
        Abstention.objects.create(task=task, question=question, member=member, round=1, reason=reason, token=uuid.uuid4())

    abstain(cast.alice, "distressing")
    abstain(cast.alice, "distressing")
    abstain(cast.dave, "broken")
    assert raters.abstentions_by_reason(question) is None
    abstain(cast.erin, "broken")
    assert raters.abstentions_by_reason(question) == [("I cannot judge this", 0), ("The item is broken", 2), ("Too distressing", 2)]


def test_votes_of_an_earlier_round_and_of_retired_tasks_do_not_count(cast: Cast, question: Question) -> None:
    first, second, *_ = question.tasks.order_by("rank")
    GroundTruth.objects.filter(task=first).update(superseded_at=timezone.now())
    first.round, first.state, first.vote_count, first.settled_at = 2, TaskState.OPEN, 0, None
    first.save()
    second.state = TaskState.RETIRED
    second.save()
    assert of(question, cast.alice).figures.votes == 5
    assert raters.of_question(question).items == 5


def test_pairs_share_what_both_voted_on(cast: Cast, question: Question) -> None:
    found = {(pair.first, pair.second): pair for pair in raters.pair_list(raters.of_question(question))}
    alice_and_dave = found[cast.alice.number, cast.dave.number]
    assert (alice_and_dave.observed.value, alice_and_dave.observed.n) == (pytest.approx(5 / 7), 7)
    assert "fewer than 10" in alice_and_dave.kappa.reason
    assert len(raters.pair_list(raters.of_question(question), of=cast.erin.number)) == 2
    assert raters.pair_page(raters.of_question(question), 1)[0] == 3


def test_the_same_votes_in_three_ways(cast: Cast, question: Question) -> None:
    methods = raters.of_question(question).methods
    assert methods is not None
    # Ground truth: yes 2, no 2 + 1 ruled; two disputes. Majority: yes 2 + nyy + yyn, no 2 + ynn.
    assert methods.labels["policy"] == (2, 3)
    assert methods.unsettled == {"policy": 2, "majority": 0, "dawid_skene": 0}
    assert methods.labels["majority"] == (4, 3)
    by_name = {found.slug: found for found in methods.differences}
    # The ruled one has another label; the two disputes are settled by the majority only.
    assert (by_name["policy-majority"].other, by_name["policy-majority"].one) == (1, 2)
    assert methods.fit.converged


def test_the_tasks_that_two_ways_label_differently_are_listed_with_their_votes(cast: Cast, question: Question) -> None:
    standing = raters.of_question(question)
    found = raters.difference(standing, "policy-majority")
    rows = raters.differing(standing, found)
    assert {row.external_id for row in rows} == {"t4", "t5", "t6"}
    ruled = next(row for row in rows if row.external_id == "t5")
    assert (ruled.votes, ruled.labels["policy"], ruled.labels["majority"], ruled.text) == ("2 Yes, 1 No", "No", "Yes", None)
    assert raters.differing(standing, found, contents=True)[0].text is not None
    assert raters.differing(standing, found, page=2) == []


def test_people_are_sorted_and_what_is_missing_comes_last(cast: Cast, question: Question) -> None:
    (task,) = make_tasks(question, 1)
    Abstention.objects.create(task=task, question=question, member=cast.charlie, round=1, reason="broken", token=uuid.uuid4())
    people = raters.people(question, raters.of_question(question))
    names = {member.number: name for name, member in vars(cast).items() if isinstance(member, Membership) and name != "mallory"}
    for sort, expected in {
        "agreement": ["alice", "dave", "erin", "charlie"],
        "-agreement": ["erin", "dave", "alice", "charlie"],
        "-abstentions": ["charlie", "alice", "dave", "erin"],
    }.items():
        assert [names[person.number] for person in raters.ordered(people, sort)] == expected


def test_a_void_vote_counts_no_more_at_once(cast: Cast, question: Question) -> None:
    assert of(question, cast.alice).figures.votes == 7
    task = question.tasks.order_by("rank")[5]  # the ruled one keeps its state
    Vote.objects.filter(task=task, member=cast.alice).delete()
    task.vote_count -= 1
    task.save()
    assert of(question, cast.alice).figures.votes == 6
    assert raters.of_question(question).items == 6


# ---------------------------------------------------------------- tags, groups, slices
def test_a_tag_is_a_yes_or_no_of_those_who_could_give_it(cast: Cast) -> None:
    question = make_question(cast.project, policy="majority", choices="harmful safe", tags="violence hate")
    tasks = settle(cast, question, make_items(cast.project, 3), ["hhh", "hhs", "sss"])
    for task, tagged in zip(tasks, [("violence", "violence", "hate"), ("violence", "violence", ""), ("", "", "")], strict=True):
        for vote, tag in zip(Vote.objects.filter(task=task).order_by("pk"), tagged, strict=True):
            Vote.objects.filter(pk=vote.pk).update(tags=[tag] if tag else [])
    violence, hate = agreement.of_question(question).tags
    # Five votes could carry a tag: four have violence, one has hate.
    assert (violence.given.value, violence.given.n, hate.given.value) == (pytest.approx(4 / 5), 5, pytest.approx(1 / 5))
    # Pairs: of three votes 1 of 3 agree, of two 1 of 1.
    assert (violence.figures.pairwise.value, violence.figures.pairwise.n) == (pytest.approx(2 / 4), 2)


def test_agreement_by_a_raters_attribute_and_where_the_groups_majorities_differ(cast: Cast) -> None:
    question = make_question(cast.project, votes=3)
    fred = Membership.objects.create(
        project=cast.project, role=Role.RATER, number=90, rater="fred", attributes={"age": "old"}
    )  # fmt: skip
    Membership.objects.filter(pk__in=[cast.alice.pk, cast.dave.pk]).update(attributes={"age": "young"})
    Membership.objects.filter(pk=cast.erin.pk).update(attributes={"age": "old"})
    settle(cast, question, make_items(cast.project, 4), ["yyn", "nnn", "ynn", "yyn"])
    found = agreement.by_attribute(question, "age")
    by_value = {part.value: part for part in found.parts}
    assert agreement.attributes(question) == ["age"]
    assert fred.pk  # without a vote: not counted
    assert (by_value["young"].raters, by_value["young"].figures.votes, by_value["old"].raters) == (2, 8, 1)
    assert by_value["young"].figures.pairwise.value == pytest.approx(3 / 4)
    assert by_value["young"].shares[0].value == pytest.approx(5 / 8)
    # With one vote an item there is nothing that could agree.
    assert by_value["old"].figures.alpha.value is None
    # yyn twice: yes against no. ynn: the young are one each, so without a majority.
    assert (found.both, found.differ, found.lacking) == (4, 2, 1)


def test_agreement_by_metadata_of_items(cast: Cast) -> None:
    question = make_question(cast.project)
    items = [*make_items(cast.project, 2, metadata={"recipe": "A2T"}), *make_items(cast.project, 1, start=2)]
    settle(cast, question, items, ["yyy", "yyn", "nnn"])
    found = agreement.by_metadata(question, "recipe")
    assert agreement.metadata_keys(question) == ["recipe"]
    assert [(part.value, part.figures.items, part.figures.unanimous.value) for part in found.parts] == [("A2T", 2, 0.5), (None, 1, 1)]
    assert (found.both, found.parts[0].raters) == (None, None)
    settle(cast, question, make_items(cast.project, 1, start=3, metadata={"recipe": "A2T"}), ["nnn"])
    assert agreement.by_metadata(question, "recipe").parts[0].figures.items == 3


def test_votes_that_came_as_counts_are_nobodys_and_named_ones_beside_them_keep_their_figures(cast: Cast) -> None:
    asked = make.make_question(cast.project, "counted", policy="majority")
    items = make.make_items(cast.project, 14, start=900)
    two = [RaterVote(item.pk, who, "yes" if k % 2 else "no") for k, item in enumerate(items[:12]) for who in ("ann", "ben")]
    counts = [RaterVote(item.pk, f"{COUNTED}{k} of 3", "yes") for item in items[12:] for k in (1, 2, 3)]
    beside = [RaterVote(items[12].pk, "ann", "no")]
    import_votes(asked, [*two, *counts, *beside])
    standing = raters.of_question(asked)
    assert standing.methods is not None
    assert (standing.items, standing.methods.tasks, standing.tasks_left_out, standing.nameless_votes) == (14, 12, 2, 6)
    assert standing.nameless == "These votes came as counts: nobody knows who cast which."
    assert [(pair.observed.n, pair.observed.value) for pair in raters.pair_list(standing)] == [(12, 1.0)]
    by_name = {Membership.objects.get(pk=rater.member_id).rater: rater for rater in standing.raters}
    assert (by_name["ann"].votes, by_name["ann"].reliability.n, by_name["ann"].agreement.n) == (13, 12, 13)
    counted = by_name[f"{COUNTED}1 of 3"]
    assert (counted.votes, counted.confusion) == (2, None)
    for figure in (counted.agreement, counted.reliability, counted.unsure):
        assert (figure.value, figure.reason) == (None, standing.nameless)


def test_a_question_of_counts_alone_has_no_pairs_and_no_dawid_skene(cast: Cast) -> None:
    asked = make.make_question(cast.project, "counted", policy="majority")
    items = make.make_items(cast.project, 12, start=900)
    import_votes(asked, [RaterVote(item.pk, f"{COUNTED}{k} of 3", "yes") for item in items for k in (1, 2, 3)])
    standing = raters.of_question(asked)
    assert (standing.methods, len(standing.pairs), standing.tasks_left_out, standing.nameless_votes) == (None, 0, 12, 36)
