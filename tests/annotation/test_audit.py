"""The audit trail tells who did what to tasks, votes and labels, and what is on record elsewhere."""

import pytest
from django.test import Client

from annotation import audit, flags, questions, queue, wellbeing
from annotation.models import Flag, Item, Lease, Question, Task, Vote
from annotation.questions import GuidelineText
from tests import cast as make


@pytest.fixture
def question(cast: make.Cast) -> Question:
    question = make.make_question(cast.project, votes=2)
    make.make_tasks(question, 3)
    return question


def vote(member: make.Membership, question: Question, choice: str) -> int:
    return queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice).vote_id


def said(cast: make.Cast, kind: str) -> list[tuple[str, str]]:
    return [(entry.who, entry.sentence) for entry in audit.trail(cast.project, kind).entries]


def post(client: Client, path: str, **given: object) -> None:
    answer = client.post(f"/p/study/{path}", given, headers={"Accept": "application/json"})
    assert answer.status_code < 400, answer.content


def send(member: make.Membership, client: Client, path: str, **given: object) -> None:
    """As the labelling page's script does."""
    answer = client.post(f"/p/study/{path}", {"person": member.user_id, **given}, content_type="application/json")
    assert answer.status_code < 400, answer.content


def test_retired_and_reopened_tasks_say_by_whom(cast: make.Cast, question: Question, sign_in: object) -> None:
    task = Task.objects.first()
    bob = sign_in(cast.bob)
    post(bob, f"tasks/{task.pk}/retire/")
    post(bob, f"tasks/{task.pk}/reopen/")
    assert said(cast, "tasks") == [
        ("bob", f"re-opened task {task.pk} of Toxicity in round 2"),
        ("bob", f"retired task {task.pk} of Toxicity"),
    ]


def test_a_ruling_says_by_whom(cast: make.Cast, question: Question, sign_in: object) -> None:
    vote(cast.alice, question, "yes")
    number = vote(cast.dave, question, "no")
    task = Vote.objects.get(pk=number).task_id
    charlie = sign_in(cast.charlie)
    charlie.get("/p/study/disputes/toxicity/")
    token = Lease.objects.get(kind="ruling").token
    post(charlie, "disputes/toxicity/", do="blind", token=token, choice="yes")
    post(charlie, "disputes/toxicity/", do="rule", token=token, choice="yes", reason="ambiguous", note="It can be read both ways.")
    assert said(cast, "tasks") == [("charlie", f"settled task {task} of Toxicity by a ruling")]
    assert said(cast, "rulings") == [("charlie", f"ruled on task {task} of Toxicity: Yes")]


def test_a_changed_vote_says_by_whom(cast: make.Cast, question: Question, sign_in: object) -> None:
    number = vote(cast.alice, question, "yes")
    task = Vote.objects.get().task_id
    send(cast.alice, sign_in(cast.alice), f"votes/{number}/", choice="no")
    assert said(cast, "votes") == [("alice", f"changed the vote on task {task} of Toxicity: choice from Yes to No")]


def test_striking_out_many_votes_is_one_line_with_its_reason(cast: make.Cast, question: Question, sign_in: object) -> None:
    for _ in range(3):
        vote(cast.alice, question, "yes")
    post(sign_in(cast.bob), f"people/{cast.alice.number}/void/", why="Clicked without reading.", question="", sure="on")
    told = ("bob", "struck out 3 votes of Annotator 1 on Toxicity: Clicked without reading.")
    assert said(cast, "people").count(told) == 1
    assert said(cast, audit.SETTINGS).count(told) == 1
    assert {who for who, _ in said(cast, "votes")} == {"bob"}


def test_what_is_on_record_itself_is_told(cast: make.Cast, question: Question, sign_in: object) -> None:
    task = Task.objects.order_by("rank").first()
    queue.next_work(cast.alice, question)
    queue.flag(cast.alice, task.pk, reason="wrong", note="Words that may quote the item.")
    flags.handle(Flag.objects.get().pk, by=cast.bob, note="Talked it over.")
    questions.new_guideline_version(question, GuidelineText("Judge with more care."), after=1, author=cast.bob.user)
    warning = wellbeing.new_warning(cast.project, "Some of it is rude.", cast.bob.user)
    wellbeing.give_consent(cast.alice, warning.version)
    wellbeing.withdraw_consent(cast.alice)
    found = said(cast, audit.SETTINGS)
    assert ("bob", "wrote version 2 of the guideline of Toxicity") in found
    assert ("bob", "wrote version 1 of the content warning") in said(cast, "care")
    assert ("alice", "agreed to version 1 of the content warning") in said(cast, "care")
    assert ("alice", f"flagged task {task.pk} of Toxicity: something is wrong with this task") in said(cast, "flags")
    assert ("bob", f"handled the flag on task {task.pk} of Toxicity: something is wrong with this task") in said(cast, "flags")
    assert not [sentence for _, sentence in found if "quote the item" in sentence]


def test_a_quarantine_and_its_end_say_by_whom(cast: make.Cast, question: Question, sign_in: object) -> None:
    task = queue.next_work(cast.alice, question)[0].task_id
    send(cast.alice, sign_in(cast.alice), "flag/", task=task, reason="illegal")
    item = Item.objects.get(quarantined=True)
    post(sign_in(cast.bob), f"items/{item.pk}/quarantine/lift/", why="A harmless joke.")
    assert [line for line in said(cast, "flags") if "quarantine" in line[1]] == [
        ("bob", f"lifted the quarantine of item {item.pk}"),
        ("alice", f"quarantined item {item.pk}"),
    ]


def test_records_are_paged_with_the_rest(cast: make.Cast, question: Question) -> None:
    for number in range(70):
        questions.new_guideline_version(question, GuidelineText(f"Version {number}."), after=number + 1, author=cast.bob.user)
    seen, mark = [], ""
    while True:
        page = audit.trail(cast.project, "questions", before=mark)
        seen += [entry.sentence for entry in page.entries]
        mark = page.older
        if not mark:
            break
    written = [sentence for sentence in seen if sentence.startswith("wrote version")]
    assert len(written) == len(set(written)) == 71
