"""Nothing that reaches a voter tells a check from a task: shapes, sequences, counts, addresses, pictures, undo and refusals alike.

The test knows which is which from the database; the voter's side of it only collects what a browser or a program is sent.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from annotation import known, queue
from annotation.models import Check, Item, Question, Task, Vote
from tests import cast as make
from tests.annotation.api import Program

HEADERS_THAT_DIFFER = {"Date", "Set-Cookie", "Content-Length", "X-Request-Id"}


@pytest.fixture
def mixed(cast: make.Cast) -> Question:
    """As many checks as tasks, mixed half and half, from one import in no order."""
    question = make.make_question(cast.project, votes=3, check_share=0.5)
    tasks = make.make_tasks(question, 60)
    known.mark_many(question, [known.Answer(task.item_id, "no") for task in tasks[::2]], by=cast.bob)
    return question


def shape(value: Any) -> Any:
    """What is left of JSON without its contents."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    if isinstance(value, str):
        return "text" if value else "empty"
    return type(value).__name__


def seen_of(response: HttpResponse) -> tuple[Any, ...]:
    headers = tuple(sorted(name for name in response.headers if name not in HEADERS_THAT_DIFFER))
    return response.status_code, headers, json.dumps(shape(response.json()) if response.content else None, sort_keys=True)


class Diary:
    """What a voter saw, apart for checks and tasks; they must be the same."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[bool, set[Any]]] = defaultdict(lambda: {True: set(), False: set()})

    def note(self, what: str, check: bool, seen: Any) -> None:
        self.seen[what][check].add(seen)

    def compare(self) -> None:
        assert self.seen
        for what, sides in self.seen.items():
            assert sides[True] == sides[False], what


def is_check(item_id: int) -> bool:
    return Check.objects.filter(known__task__item=item_id).exists()


def browse(client: Client, method: str, path: str, **body: Any) -> HttpResponse:
    return client.generic(
        method, f"/p/study/{path}", json.dumps(body) if body else "", "application/json", headers={"accept": "application/json"}
    )


def test_by_the_page_a_check_is_a_task(cast: make.Cast, mixed: Question, sign_in: Callable[..., Client]) -> None:
    alice, diary = sign_in(cast.alice), Diary()
    alice.post("/p/study/vote/")  # the first request makes the session
    work = browse(alice, "GET", "label/toxicity/next/").json()["work"]
    numbers, choices = [], ("yes", "no")
    for step in range(24):
        current, check = work[0], is_check(work[0]["item"])
        diary.note("work", check, json.dumps(shape(current), sort_keys=True))
        diary.note("page", check, alice.get("/p/study/label/toxicity/").status_code)
        answer = browse(
            alice,
            "POST",
            "vote/",
            person=cast.alice.user_id,
            token=current["token"],
            choice=choices[step % 2],
            comment="hm",
            elapsed_ms=900,
        )
        again = browse(alice, "POST", "vote/", person=cast.alice.user_id, token=current["token"], choice="yes")
        told = answer.json()
        assert again.json()["vote"] == told["vote"]
        diary.note("vote", check, seen_of(answer))
        diary.note("vote again", check, seen_of(again))
        vote = told["vote"]
        numbers.append(vote)
        opened = browse(alice, "GET", f"votes/{vote}/")
        diary.note("opened", check, seen_of(opened))
        assert opened.json()["item"] == current["item"]
        other = choices[(step + 1) % 2]
        changed = browse(alice, "POST", f"votes/{vote}/", person=cast.alice.user_id, choice=other, comment="changed")
        diary.note("changed", check, seen_of(changed))
        assert browse(alice, "GET", f"votes/{vote}/").json()["choice"] == other
        newest = queue.last_answers(cast.alice)[0]
        assert (newest.id, newest.choice, newest.comment, newest.item_id) == (vote, other, "changed", current["item"])
        diary.note("last answers", check, (newest.kind, newest.changeable, newest.label in ("Yes", "No")))
        assert queue.progress_of(cast.alice, mixed) == (step + 1, step + 1)
        home = alice.get("/").content.decode()
        assert f"<b>{step + 1}</b><span>today</span>" in home
        assert f"<dt>Answers</dt><dd>{step + 1}</dd>" in home
        work = told["work"]
    diary.compare()
    assert len(diary.seen) >= 7
    assert 4 <= Check.objects.filter(member=cast.alice, correct__isnull=False).count() <= 20
    assert numbers == sorted(set(numbers)), "ids that a voter sees rise as if there were one kind"


def test_by_program_a_check_is_a_task(cast: make.Cast, mixed: Question) -> None:
    dave, diary = Program(cast.dave), Diary()
    work = dave.post("questions/toxicity/work/").json()["work"]
    for step in range(20):
        current, check = work[0], is_check(work[0]["item_id"])
        diary.note("work", check, json.dumps(shape(current), sort_keys=True))
        wrong = dave.post("votes/", token=current["token"], choice="perhaps")
        diary.note("refused", check, (wrong.status_code, wrong.json()["code"], wrong.json()["detail"]))
        if step % 4 == 3:
            diary.note("abstained", check, seen_of(answer := dave.post("abstentions/", token=current["token"], reason="broken")))
            late = dave.post("votes/", token=current["token"], choice="yes")
            diary.note("vote after abstaining", check, (late.status_code, late.json()["code"]))
        else:
            answer = dave.post("votes/", token=current["token"], choice="yes", comment="", elapsed_ms=5)
            diary.note("vote", check, seen_of(answer))
            vote = answer.json()["vote_id"]
            diary.note("read", check, seen_of(dave.get(f"votes/{vote}/")))
            diary.note("changed", check, seen_of(dave.send("PUT", f"votes/{vote}/", {"choice": "no", "comment": "hm"})))
            late = dave.post("abstentions/", token=current["token"], reason="broken")
            diary.note("abstaining after the vote", check, (late.status_code, late.json()["code"]))
            other = Program(cast.erin)
            diary.note(
                "somebody else's",
                check,
                (other.get(f"votes/{vote}/").status_code, other.post("votes/", token=current["token"], choice="no").status_code),
            )
        diary.note("flagged", check, dave.post("flags/", task_id=current["task_id"], reason="wrong").status_code)
        newest = dave.get("answers/").json()[0]
        diary.note("answers", check, (json.dumps(shape(newest), sort_keys=True), newest["kind"]) if step % 4 != 3 else newest["kind"])
        told = dave.get("questions/toxicity/progress/").json()
        assert told["votes"] == step + 1 - (step + 1) // 4
        work = answer.json()["work"]
    for name in ("abstained", "vote after abstaining"):  # seldom: one side may not have come up
        if not all(diary.seen[name].values()):
            del diary.seen[name]
    diary.seen["answers"] = {side: {one for one in seen if isinstance(one, tuple)} for side, seen in diary.seen["answers"].items()}
    diary.compare()


def test_the_picture_of_a_check_comes_like_that_of_a_task(cast: make.Cast, sign_in: Callable[..., Client]) -> None:
    harm = make.make_question(cast.project, "harm", kind="image", votes=3, check_share=0.5)
    items = make.make_pictures(harm, 32)
    known.mark_many(harm, [known.Answer(item.pk, "no") for item in items[::2]], by=cast.bob)
    alice, diary = sign_in(cast.alice), Diary()
    work = browse(alice, "GET", "label/harm/next/").json()["work"]
    handed: set[int] = set()
    for _ in range(12):
        handed |= {one["item"] for one in work}
        current, check = work[0], is_check(work[0]["item"])
        diary.note("work", check, json.dumps(shape(current), sort_keys=True))
        diary.note("address", check, current["picture"].replace(str(current["item"]), "N"))
        picture = alice.get(current["picture"])
        diary.note("picture", check, (picture.status_code, tuple(sorted(picture.headers)), picture["Cache-Control"]))
        work = browse(alice, "POST", "vote/", person=cast.alice.user_id, token=current["token"], choice="yes").json()["work"]
        diary.note("afterwards", check, alice.get(current["picture"]).status_code)
    for item in items:  # what was not handed out is not shown, be it a check or not
        if item.pk not in handed | {one["item"] for one in work}:
            assert alice.get(f"/p/study/items/{item.pk}/picture").status_code == 404
    diary.compare()


def test_a_withdrawn_check_is_refused_like_a_withdrawn_task(cast: make.Cast, mixed: Question) -> None:
    """The item is quarantined while it is held: the same words, either way."""
    told: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    dave = Program(cast.dave)
    while not all(told.values()):
        current = dave.post("questions/toxicity/work/").json()["work"][0]
        check = is_check(current["item_id"])
        assert dave.post("flags/", task_id=current["task_id"], reason="illegal").status_code == 204
        refused = dave.post("votes/", token=current["token"], choice="no").json()
        told[check].add((refused["code"], refused["detail"]))
    assert told[True] == told[False]


def test_what_a_voter_is_sent_never_says_so_in_words(cast: make.Cast, mixed: Question, sign_in: Callable[..., Client]) -> None:
    alice = sign_in(cast.alice)
    for _ in range(6):
        page = alice.get("/p/study/label/toxicity/").content.decode()
        work = browse(alice, "GET", "label/toxicity/next/").json()["work"]
        home = alice.get("/").content.decode()
        for told in (page, json.dumps(work), home):
            assert "gold" not in told.lower()
            assert "known answer" not in told.lower()
        browse(alice, "POST", "vote/", person=cast.alice.user_id, token=work[0]["token"], choice="yes")


def test_a_check_and_its_answers_count_in_nothing_that_votes_count_in(cast: make.Cast, mixed: Question) -> None:
    states = dict(Task.objects.values_list("pk", "state"))
    for member in (cast.alice, cast.dave, cast.erin):
        for _ in range(12):
            queue.cast_vote(member, queue.next_work(member, mixed)[0].token, choice="no")
    checked = Task.objects.filter(known_answer__isnull=False)
    assert not Vote.objects.filter(task__in=checked).exists()
    assert {task.pk: task.state for task in checked} == {task.pk: states[task.pk] for task in checked}
    assert Check.objects.filter(answered_at__isnull=False).count() + Vote.objects.count() == 36
    assert Item.objects.count() == 60
    assert uuid.UUID(str(Check.objects.first().token)).version == 4
