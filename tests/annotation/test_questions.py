"""Making and changing questions."""

from dataclasses import replace

import pytest
from django.db import connection

from annotation import presets, questions, queue, rounds
from annotation.errors import Conflict, Invalid
from annotation.models import Choice, Guideline, KnownAnswer, Question, Vote
from annotation.questions import ChoiceSpec, Example, GuidelineText, Settings, Spec, TagSpec
from tests.cast import Cast, make_project, make_tasks

YES_NO = (ChoiceSpec("yes", "Yes", "y"), ChoiceSpec("no", "No", "n"))


def settings(**changes: object) -> Settings:
    return replace(Settings(title="Rude", prompt="Is it rude?", choices=YES_NO), **changes)


def spec(slug: str = "rude", **changes: object) -> Spec:
    return Spec(slug=slug, settings=settings(**changes), guideline=GuidelineText("Judge with care."))


def faults(cast: Cast, **changes: object) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        questions.create_question(cast.project, spec(**changes))
    assert not Question.objects.exists()
    return error.value.fields


# ---------------------------------------------------------------- making
@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_ready_made_question_can_be_made(cast: Cast, name: str) -> None:
    question = questions.create_question(cast.project, presets.PRESETS[name], cast.bob.user)
    assert question.slug == name
    assert questions.settings_of(question) == presets.PRESETS[name].settings
    guideline = questions.current_guideline(question)
    assert guideline.version == 1
    assert guideline.author == cast.bob.user
    assert 3 <= len(guideline.examples) <= 6


def test_toxicity_and_naturalness_are_asked_as_the_paper_asks_them(cast: Cast) -> None:
    toxicity = questions.create_question(cast.project, presets.TOXICITY)
    naturalness = questions.create_question(cast.project, presets.NATURALNESS)
    assert [(c.value, c.hotkey) for c in toxicity.choices.all()] == [("yes", "y"), ("no", "n")]
    assert [(c.value, c.hotkey, c.is_unsure) for c in naturalness.choices.all()] == [
        ("yes", "1", False),
        ("no", "2", False),
        ("unsure", "3", True),
    ]
    assert (toxicity.votes_required, toxicity.policy, toxicity.shows_origin) == (3, "unanimous", False)
    assert (naturalness.votes_required, naturalness.policy, naturalness.shows_origin) == (3, "unanimous", True)


def test_one_choice_is_not_a_question(cast: Cast) -> None:
    assert "At least two" in faults(cast, choices=YES_NO[:1])["choices"]


def test_two_choices_may_not_share_a_value_or_a_key(cast: Cast) -> None:
    fields = faults(cast, choices=(*YES_NO, ChoiceSpec("yes", "Again", "n")))
    assert fields == {"choices.2.value": "“Yes” has this value already.", "choices.2.hotkey": "“No” has this key already."}


def test_a_tag_may_not_take_a_choices_key(cast: Cast) -> None:
    choices = (ChoiceSpec("yes", "Yes", "y", tag_use="offered"), ChoiceSpec("no", "No", "n"))
    assert list(faults(cast, choices=choices, tags=[TagSpec("hateful", "Hateful", "Y")])) == ["tags.0.hotkey"]


@pytest.mark.parametrize("key", list("zafcgpsubZAFCGPSUB"))
def test_keys_of_the_labelling_page_are_reserved(cast: Cast, key: str) -> None:
    assert "does something else" in faults(cast, choices=(YES_NO[0], ChoiceSpec("no", "No", key)))["choices.1.hotkey"]


@pytest.mark.parametrize("key", ["", "yy", " ", "é", "!", "²"])
def test_a_key_is_one_letter_or_digit(cast: Cast, key: str) -> None:
    assert faults(cast, choices=(YES_NO[0], ChoiceSpec("no", "No", key)))["choices.1.hotkey"] == "One letter or digit."


def test_a_choice_that_takes_tags_needs_tags(cast: Cast) -> None:
    choices = (ChoiceSpec("yes", "Yes", "y", tag_use="required"), YES_NO[1])
    assert "there are none" in faults(cast, choices=choices)["choices.0.tag_use"]


def test_tags_that_no_choice_takes_are_refused(cast: Cast) -> None:
    assert "never be shown" in faults(cast, tags=[TagSpec("hateful", "Hateful", "h")])["tags"]


@pytest.mark.parametrize("votes", [0, 1001, -1])
def test_votes_go_from_1_to_1000(cast: Cast, votes: int) -> None:
    assert faults(cast, votes_required=votes)["votes_required"] == "From 1 to 1,000 votes."


@pytest.mark.parametrize("slug", ["", "Rude", "rude words", "-rude", "rude-", "new", "x" * 61, "rüde"])
def test_an_address_is_plain(cast: Cast, slug: str) -> None:
    with pytest.raises(Invalid) as error:
        questions.create_question(cast.project, spec(slug))
    assert list(error.value.fields) == ["slug"]


def test_an_address_is_used_once_in_a_project(cast: Cast) -> None:
    questions.create_question(cast.project, spec())
    with pytest.raises(Invalid) as error:
        questions.create_question(cast.project, spec())
    assert "already has" in error.value.fields["slug"]
    questions.create_question(make_project("third"), spec())


def test_all_faults_are_told_at_once(cast: Cast) -> None:
    assert set(faults(cast, title=" ", prompt="x" * 201, policy="guess", lease_minutes=0)) == {"title", "prompt", "policy", "lease_minutes"}


@pytest.mark.parametrize(
    ("name", "share"), [("check_share", 0.51), ("repeat_share", -0.1), ("accuracy_floor", 0.0), ("check_share", float("nan"))]
)
def test_a_share_is_a_share(cast: Cast, name: str, share: float) -> None:
    assert list(faults(cast, **{name: share})) == [name]


def test_an_answer_that_is_known_of_an_item_stays(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    [task] = make_tasks(question, 1)
    rounds.retire(question, [task.pk])
    KnownAnswer.objects.create(task=task, question=question, choice=question.choices.first())
    only_no = replace(questions.settings_of(question), choices=(ChoiceSpec("no", "No", "n"), ChoiceSpec("other", "Other", "o")))
    with pytest.raises(Invalid) as error:
        questions.change_question(question, only_no)
    assert "known answers" in error.value.fields["choices"]


def test_a_worked_example_names_one_of_the_answers(cast: Cast) -> None:
    guideline = GuidelineText("Judge.", [Example("One", "A text.", "maybe", "Because.")])
    with pytest.raises(Invalid) as error:
        questions.create_question(cast.project, replace(spec(), guideline=guideline))
    assert error.value.fields == {"examples.0.choice": "One of the answers: yes, no."}


# ---------------------------------------------------------------- changing
def test_labels_keys_and_order_change_and_two_choices_may_swap_keys(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    before = {c.value: c.pk for c in question.choices.all()}
    swapped = (ChoiceSpec("no", "Not rude", "y"), ChoiceSpec("yes", "Rude", "n"))
    questions.change_question(question, settings(choices=swapped, title="Rudeness"))
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what a commit would check
    question.refresh_from_db()
    assert question.title == "Rudeness"
    assert [(c.value, c.label, c.hotkey) for c in question.choices.all()] == [("no", "Not rude", "y"), ("yes", "Rude", "n")]
    assert {c.value: c.pk for c in question.choices.all()} == before


def test_votes_required_holds_for_new_tasks_only(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    old = make_tasks(question, 1)[0]
    question = questions.change_question(question, settings(votes_required=5))
    new = make_tasks(question, 1)[0]
    old.refresh_from_db()
    assert (old.votes_required, new.votes_required) == (3, 5)


def test_a_choice_with_votes_can_be_renamed_but_not_removed(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    make_tasks(question, 1)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes")
    three = (ChoiceSpec("certainly", "Yes", "y"), YES_NO[1])
    with pytest.raises(Invalid) as error:
        questions.change_question(question, settings(choices=three))
    assert error.value.fields["choices"] == "“Yes” (yes) has 1 vote, so it stays, with this value. Its label and key may change."
    questions.change_question(question, settings(choices=(ChoiceSpec("yes", "Certainly", "y"), YES_NO[1])))
    assert Vote.objects.get().choice.label == "Certainly"


def test_a_choice_without_votes_can_go(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec(choices=(*YES_NO, ChoiceSpec("maybe", "Maybe", "m"))))
    questions.change_question(question, settings())
    assert list(question.choices.values_list("value", flat=True)) == ["yes", "no"]


def test_a_given_tag_stays(cast: Cast) -> None:
    choices = (ChoiceSpec("yes", "Yes", "y", tag_use="required"), YES_NO[1])
    tags = (TagSpec("hateful", "Hateful", "h"), TagSpec("other", "Other", "o"))
    question = questions.create_question(cast.project, spec(choices=choices, tags=tags))
    make_tasks(question, 1)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes", tags=["hateful"])
    with pytest.raises(Invalid) as error:
        questions.change_question(question, settings(choices=choices, tags=tags[1:]))
    assert "was given in a vote" in error.value.fields["tags"]
    questions.change_question(question, settings(choices=choices, tags=tags[:1]))
    assert list(question.tags.values_list("value", flat=True)) == ["hateful"]


def test_a_refused_change_changes_nothing(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    with pytest.raises(Invalid):
        questions.change_question(question, settings(title="New", choices=YES_NO[:1]))
    assert questions.settings_of(Question.objects.get()) == settings()


def test_switching_off_stops_the_offer_and_keeps_the_rest(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    make_tasks(question, 2)
    assert not questions.set_active(question, False).active
    assert questions.set_active(question, True).active
    assert question.tasks.count() == 2


# ---------------------------------------------------------------- guideline versions
def test_a_new_version_leaves_the_old_one_as_it_was(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    second = questions.new_guideline_version(question, GuidelineText("Judge with great care.\r\nTwice."), after=1, author=cast.bob.user)
    assert (second.version, second.body) == (2, "Judge with great care.\nTwice.\n")
    assert Guideline.objects.get(version=1).body == "Judge with care.\n"
    assert questions.current_guideline(question) == second


def test_a_version_written_from_an_old_one_is_refused_so_that_none_is_lost(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    questions.new_guideline_version(question, GuidelineText("Second."), after=1)
    with pytest.raises(Conflict, match="Version 2 was made while you wrote"):
        questions.new_guideline_version(question, GuidelineText("Another second."), after=1)


def test_the_same_words_are_no_new_version(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    with pytest.raises(Invalid, match="word for word"):
        questions.new_guideline_version(question, GuidelineText("Judge with care."), after=1)


def test_the_difference_of_two_versions_is_told_by_line(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec())
    first = questions.current_guideline(question)
    text = GuidelineText("Judge with care.\nTake your time.", [Example("Geese", "You goose.", "yes", "Rude.")])
    second = questions.new_guideline_version(question, text, after=1)
    assert [(line.change, line.text) for line in questions.difference(first, second)] == [
        ("same", "Judge with care."),
        ("added", "Take your time."),
        ("added", ""),
        ("added", "Example: Geese"),
        ("added", "You goose."),
        ("added", "Answer: yes. Rude."),
    ]


# ---------------------------------------------------------------- reading
@pytest.mark.parametrize(
    ("policy", "votes", "words"),
    [
        ("unanimous", 3, "3 votes, all the same; else an adjudicator."),
        ("majority", 5, "5 votes, more than half the same; else an adjudicator."),
        ("majority", 1, "1 vote settles it."),
    ],
)
def test_a_policy_is_said_in_words(policy: str, votes: int, words: str) -> None:
    assert questions.policy_in_words(Question(policy=policy, votes_required=votes)) == words


def test_standings_count_tasks_by_state(cast: Cast) -> None:
    question = questions.create_question(cast.project, spec(votes_required=1))
    questions.create_question(cast.project, spec("other"))
    make_tasks(question, 3)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes")
    first, second = questions.standings(cast.project)
    assert (first.states, first.tasks, first.version) == ({"open": 2, "agreed": 1}, 3, 1)
    assert (second.states, second.tasks) == ({}, 0)
    assert Choice.objects.filter(question=question).count() == 2
