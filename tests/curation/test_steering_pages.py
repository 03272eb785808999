"""The progress page, its files, its API and its commands."""

import json
import re
from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from annotation import queue, steering
from annotation.models import Item, Question, Task
from curation.models import TaskBatch
from tests import cast as make

PAGE = "/p/study/questions/toxicity/progress/"
API = "/api/v1/projects/study/questions/toxicity/"
SignIn = Callable[[make.Membership], Client]


@pytest.fixture
def question(cast: make.Cast) -> Question:
    """Six tasks of three votes, two votes cast."""
    question = make.make_question(cast.project)
    make.make_tasks(question, 6)
    work = queue.next_work(cast.alice, question)
    for _ in range(2):
        work = queue.cast_vote(cast.alice, work[0].token, choice="yes").work
    queue.release(cast.alice)
    return question


def test_the_page_says_what_is_left_and_why_there_is_no_date_yet(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    page = sign_in(cast.bob).get(PAGE).content.decode()
    for words in (
        "Votes left",
        "<dd>16<small>",
        "Too little to go by: 2 votes in 1 hour.",
        "Annotator 1",
        "4 of those who label can work now",
    ):
        assert words in page
    assert page.count('role="img" aria-label="16 votes left.') == 1
    assert "style=" not in page


def test_the_live_part_comes_alone(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    part = sign_in(cast.bob).get(PAGE, headers={"HX-Request": "true"}).content.decode()
    assert "What is left" in part
    assert "<html" not in part
    assert "<form" not in part


def test_a_question_without_tasks_has_a_page(cast: make.Cast, sign_in: SignIn) -> None:
    make.make_question(cast.project)
    page = sign_in(cast.bob).get(PAGE).content.decode()
    assert "No tasks yet" in page
    assert "There is no task that waits for votes." in page


def test_pausing_and_resuming(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    assert "not offered" in client.post(PAGE, {"do": "pause"}, follow=True).content.decode()
    assert queue.next_work(cast.dave, Question.objects.get(pk=question.pk)) == []
    client.post(PAGE, {"do": "resume"})
    assert len(queue.next_work(cast.dave, Question.objects.get(pk=question.pk))) == 2


def test_people_are_ticked_and_unticked(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    page = client.post(PAGE, {"do": "assign", "people": [cast.dave.number]}, follow=True).content.decode()
    assert "1 of those who label work on it now." in page
    assert steering.assigned(question) == {cast.dave.number}
    assert "3 are not assigned to this question" in page
    assert "Everyone who labels works on it now." in client.post(PAGE, {"do": "assign"}, follow=True).content.decode()


def test_only_the_assigned_are_given_work(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    sign_in(cast.bob).post(PAGE, {"do": "assign", "people": [cast.dave.number]})
    assert queue.next_work(cast.alice, question) == []
    assert len(queue.next_work(cast.dave, question)) == 2


def test_tasks_of_a_metadata_value_are_put_first_and_back(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    fresh = Task.objects.filter(vote_count=0).order_by("-rank")[:2]
    Item.objects.filter(pk__in=[task.item_id for task in fresh]).update(metadata={"recipe": "leet"})
    client = sign_in(cast.bob)
    given = {"do": "put_first", "items": "all", "metadata_key": "recipe", "metadata_value": "leet"}
    assert "2 tasks put first." in client.post(PAGE, given, follow=True).content.decode()
    assert steering.needed(question).first == 2
    assert "2 tasks put back in line." in client.post(PAGE, {"do": "put_back", "items": "all"}, follow=True).content.decode()


def test_single_tasks_are_put_first_by_number(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    task = Task.objects.filter(vote_count=0).order_by("-rank")[0]
    sign_in(cast.bob).post(PAGE, {"do": "put_first", "tasks": f"{task.pk}"})
    assert TaskBatch.objects.get().created_by == cast.bob.user
    task.refresh_from_db()
    assert task.queued_at is not None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"do": "put_first", "tasks": "12 abc"}, "“abc” is not a number."),
        ({"do": "put_first", "tasks": "9" * 18}, f"This question has no task {'9' * 18}."),
        ({"do": "put_first", "items": "sample:5"}, "This project has no sample “5”."),
        ({"do": "put_first", "metadata_value": "x"}, "Say which key has this value."),
        ({"do": "assign", "people": ["99"]}, "Nobody of the number 99 labels in this project."),
        ({"do": "assign", "people": ["x"]}, "“x” is not a number."),
        ({"do": "dance"}, "Say what to do."),
    ],
)
def test_what_cannot_be_done_is_said_beside_the_field(
    cast: make.Cast, question: Question, sign_in: SignIn, given: dict[str, object], says: str
) -> None:
    answer = sign_in(cast.bob).post(PAGE, given)
    assert answer.status_code == 422
    assert says in answer.content.decode()


def test_figures_download_as_files(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    assert client.get(f"{PAGE}figures/burn-down.png").content.startswith(b"\x89PNG")
    assert client.get(f"{PAGE}figures/burn-down.csv").content.decode().splitlines()[1].endswith(",16,2")
    assert client.get(f"{PAGE}figures/pace.svg").content.startswith(b"<svg")
    assert client.get(f"{PAGE}figures/other.svg").status_code == 404


@pytest.mark.parametrize("who", ["alice", "charlie", "mallory"])
def test_only_the_projects_researcher_comes_in(cast: make.Cast, question: Question, sign_in: SignIn, who: str) -> None:
    client = sign_in(getattr(cast, who))
    for address in (PAGE, f"{PAGE}figures/pace.csv", f"{API}steering/", f"{API}people/"):
        assert client.get(address).status_code == (404 if who == "mallory" else 403)
    assert client.post(PAGE, {"do": "pause"}).status_code == (404 if who == "mallory" else 403)


def test_the_api_says_and_does_the_same(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    found = client.get(f"{API}steering/").json()
    assert (found["votes_left"], found["tasks"], found["put_first"], found["free"]) == (16, {"open": 6}, 0, 4)
    assert found["forecast"]["reason"].startswith("Too little to go by")
    moved = client.post(f"{API}steering/", {"verb": "put_first"}, content_type="application/json")
    assert (moved.status_code, moved.json()["changed"]) == (200, 4)
    assert client.post(f"{API}steering/", {"verb": "make"}, content_type="application/json").status_code == 400
    assert client.put(f"{API}people/", {"people": [1, 4]}, content_type="application/json").json() == {"people": [1, 4]}
    assert client.get(f"{API}people/").json() == {"people": [1, 4]}
    assert client.put(f"{API}people/", {"people": [2]}, content_type="application/json").status_code == 400


def test_the_commands_do_the_same(cast: make.Cast, question: Question) -> None:
    def said(*words: str) -> str:
        out = StringIO()
        call_command(*words, stdout=out)
        return out.getvalue().strip()

    assert said("prioritise", "study", "toxicity", "--items", "all") == "4 tasks of Toxicity put first."
    assert json.loads(said("prioritise", "study", "toxicity", "--back", "--json")) == {
        "question": "toxicity",
        "verb": "put_back",
        "moved": 4,
    }
    assert said("assign", "study", "toxicity", "4", "1") == "Members 1, 4 work on Toxicity. It is on offer."
    assert said("assign", "study", "toxicity", "--everyone", "--pause") == "Everyone who labels works on Toxicity. It is not on offer."
    for words in (
        ("assign", "study", "toxicity", "2"),
        ("prioritise", "study", "none"),
        ("prioritise", "study", "toxicity", "--task", "0"),
    ):
        with pytest.raises(CommandError):
            call_command(*words)


def test_the_pace_is_drawn_as_bars_that_can_be_seen(cast: make.Cast, question: Question, sign_in: SignIn) -> None:
    svg = sign_in(cast.bob).get(f"{PAGE}figures/pace.svg").content.decode()
    widths = [float(width) for width in re.findall(r'<path d="M[\d.]+,[\d.]+h([\d.]+)v[\d.]+[^>]*#0b6470', svg)]
    assert widths
    assert min(widths) > 10
