"""Votes that come with a file, as a researcher brings them: on the page, over the API, on the command line."""

import json
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.models import GroundTruth, Item, Membership, Question, Vote
from curation.models import ImportBatch
from tests.cast import Cast
from workers import tasks

LONG = (
    b"id,text,who,answer,age\n"
    b"a,A calm text.,ann,1,30\na,A calm text.,ben,1,40\na,A calm text.,cem,0,50\n"
    b"b,A rude text.,ann,0,30\nb,A rude text.,ben,1,41\nb,A rude text.,ben,0,40\n"
)
SignIn = Callable[[Any], Client]


@pytest.fixture(autouse=True)
def _own_uploads(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DATA = tmp_path / "data"
    monkeypatch.setattr(tasks, "send_import", lambda _: True)


def uploaded(client: Client, content: bytes = LONG, name: str = "votes.csv") -> str:
    answer = client.post(reverse("import_new", args=["study"]), {"file": SimpleUploadedFile(name, content)})
    assert answer.status_code == 302, answer.content.decode()
    return reverse("import_batch", args=["study", ImportBatch.objects.latest("created_at").pk])


def run(page: str) -> ImportBatch:
    tasks.run_import(page.rstrip("/").split("/")[-1])
    return ImportBatch.objects.latest("created_at")


def form(**given: Any) -> dict[str, Any]:
    """What the page sends for LONG."""
    return {
        "do": "start", "kind": "text", "keep": "all", "format": "csv", "encoding": "utf-8", "delimiter": ",", "quotes": "on",
        "text": "text", "external_id": "id", "seed": "-", "prompt_id": "-", "origin": "-", "votes_count": "1",
        "v0_form": "long", "v0_question": "make:toxicity", "v0_policy": "majority", "v0_columns": ["answer"], "v0_rater": "who",
        "v0_attributes": ["age"], "v0_answer_spelling": ["1", "0"], "v0_answer_value": ["yes", "no"], **given,
    }  # fmt: skip


class Controls(HTMLParser):
    """Every control of a page, with what a browser would send for it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, list[str]] = {}
        self.select: str | None = None
        self.first = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "select":
            self.select, self.first = given["name"], True
        elif tag == "option" and self.select and (self.first or "selected" in given):
            chosen = self.sent.setdefault(self.select, [])
            if not self.first:
                chosen.pop()
            chosen.append(given["value"] or "")
            self.first = False
        elif tag == "input" and given.get("name") and (given.get("type") not in ("checkbox", "radio") or "checked" in given):
            self.sent.setdefault(given["name"] or "", []).append(given.get("value") or ("on" if given.get("type") == "checkbox" else ""))


# ---------------------------------------------------------------- the page
def test_votes_are_mapped_brought_in_and_reported(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    page = uploaded(client)
    assert b'<details class="panel" id="votes">' in client.get(page).content, "closed by default"
    counted = client.post(page, form(do="read", v0_answer_spelling=[], v0_answer_value=[])).content.decode()
    assert '<details class="panel" id="votes" open>' in counted
    assert re.search(r'What 1 stands for">.*?<option value="yes" selected>', counted, re.DOTALL), "1 is likely yes"
    assert client.post(page, form()).status_code == 302
    done = run(page)
    assert done.votes[0] | {"title": ""} == {
        "question": "toxicity", "title": "", "made": True, "votes": 5, "tasks": 2, "raters": 3, "repeats": 1, "surplus": 0, "taken": 0,
        "struck": 0, "nameless": 0, "form": "long",
        "states": {"agreed": 1, "disputed": 1}, "unsettled": 0, "abstained": 0, "tags_left_out": 0,
    }  # fmt: skip
    shown = client.get(page).content.decode()
    assert "the question was made on the way" in shown
    assert "Rater &#x27;ben&#x27; has a vote on &#x27;b&#x27; already. The first counts." in shown
    assert "said to have age &#x27;40&#x27; before, and &#x27;41&#x27; here" in shown
    assert Membership.objects.get(rater="ben").attributes == {"age": "40"}
    assert GroundTruth.objects.get().item.external_id == "a"
    assert Item.objects.get(external_id="a").metadata == {}


def test_an_answer_that_is_mapped_to_nothing_is_listed_and_nothing_is_stored(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    page = uploaded(client)
    client.post(page, form(v0_answer_spelling=["1", "0"], v0_answer_value=["yes", "?"]))
    failed = run(page)
    assert (failed.state, failed.bad, failed.votes) == ("failed", 3, [{"question": "toxicity", "unmapped": {"0": 3}, "unmapped_tags": {}}])
    assert "Row 3, answer: The answer '0' is mapped to no choice. Map it to one of yes, no, or to no vote." in failed.error
    assert not Item.objects.exists()
    assert not Question.objects.exists()
    assert "Mapped to nothing: toxicity" in client.get(page).content.decode()
    client.post(page, form(v0_answer_value=["yes", "?"], skip_bad_rows="on"))
    assert (run(page).state, Vote.objects.count()) == ("done", 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"v0_question": ""}, "The project has no question"),
        ({"v0_columns": []}, "Say which column holds the votes."),
        ({"v0_rater": "-"}, "What is known of raters needs the column that names them."),
        ({"v0_required": "many"}, "A whole number, or nothing."),
        ({"v0_required": "0"}, "Votes needed: from 1 to 1,000"),
        ({"v0_form": "wide"}, "columns of a file with a row per vote"),
        ({"v0_form": "round"}, "The form of votes is one of"),
        ({"v0_answer_value": ["yes", "maybe"]}, "toxicity has no choice"),
    ],
)
def test_what_does_not_fit_is_said_and_what_was_typed_stays(cast: Cast, sign_in: SignIn, given: dict[str, Any], said: str) -> None:
    client = sign_in(cast.bob)
    page = uploaded(client)
    answer = client.post(page, form(**given))
    assert answer.status_code == 422
    text = answer.content.decode()
    assert said in text
    assert '<details class="panel" id="votes" open>' in text


def test_a_published_layout_is_recognised_and_comes_in_as_proposed(cast: Cast, sign_in: SignIn) -> None:
    pair = {
        "timestamp": {"7": 1}, "prompt": {"7": "a calm sea"}, "hashed_filename": {"7": 123},
        "submission_annotations": {"7": '{"example_uid": 9}'},
        "validation": {"7": [json.dumps({"annotator_id": str(n), "answer_time_ms": 5000, "text_safety_validation": ["text_safe"],
                                         "image_safety_validation": ["image_unsafe"], "image_failure_type": ["image_failure_violent"]})
                             for n in range(3)]},
    }  # fmt: skip
    client = sign_in(cast.bob)
    page = uploaded(client, json.dumps(pair).encode(), "dev.json")
    shown = client.get(page).content.decode()
    assert "This is Adversarial Nibbler JSON." in shown
    sent = {**Controls(shown).sent, "do": "start"}
    assert client.post(page, sent).status_code == 302
    done = run(page)
    assert (done.state, [one["question"] for one in done.votes]) == ("done", ["prompt_safety", "image_harm"]), done.error
    assert {truth.item.kind: (truth.choice.value, truth.tags) for truth in GroundTruth.objects.all()} == {
        "text": ("safe", []), "image": ("harmful", ["violence-and-gore"]),
    }  # fmt: skip


def test_hostile_spellings_are_only_text(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    page = uploaded(client, LONG.replace(b",1,", b',"<script>alert(1)</script>",'))
    assert b"<script>alert" not in client.post(page, form(do="read")).content


# ---------------------------------------------------------------- the API
MAPPING = {
    "text": "text", "external_id": "id",
    "votes": [{"question": "rude", "form": "long", "columns": ["answer"], "rater": "who", "attributes": ["age"], "make": "answers"}],
}  # fmt: skip


def test_the_api_takes_votes_in_the_mapping_and_tells_what_became_of_them(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    asked = {"file": SimpleUploadedFile("t.csv", LONG), "mapping": json.dumps(MAPPING)}
    answer = client.post(reverse("api_imports", args=["study"]), asked)
    assert answer.status_code == 202, answer.content
    tasks.run_import(answer.json()["id"])
    status = client.get(reverse("api_import", args=["study", answer.json()["id"]])).json()
    assert (status["state"], status["votes"][0]["votes"], len(status["notes"])) == ("done", 5, 2)
    assert list(Question.objects.get(slug="rude").choices.values_list("value", "label")) == [("0", "0"), ("1", "1")]


@pytest.mark.parametrize(
    "votes",
    [
        1, [1], [{}], [{"question": "x"}], [{"question": "x", "form": "long", "columns": "answer"}],
        [{"question": "x", "form": "long", "columns": ["answer"], "colour": 1}],
        [{"question": "x", "form": "long", "columns": ["nowhere"], "make": "answers"}],
        [{"question": "x", "form": "long", "columns": ["answer"], "choices": {"1": 1}}],
        [{"question": "A B", "form": "long", "columns": ["answer"], "make": "answers"}],
        [{"question": "x", "form": "long", "columns": ["answer"], "votes_required": True}],
        [{"question": "x", "form": "long", "columns": ["answer"], "make": "image_harm"}],
    ],
)  # fmt: skip
def test_the_api_says_what_is_wrong_with_a_mapping_of_votes(cast: Cast, sign_in: SignIn, votes: Any) -> None:
    asked = {"file": SimpleUploadedFile("t.csv", LONG), "mapping": json.dumps({**MAPPING, "votes": votes})}
    answer = sign_in(cast.bob).post(reverse("api_imports", args=["study"]), asked)
    assert answer.status_code == 400, answer.content
    assert not ImportBatch.objects.exists()


# ---------------------------------------------------------------- the command line
def command(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("import_items", "study", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_maps_votes_by_options_or_by_a_file(cast: Cast, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes(LONG)
    options = ["--votes", "long", "--question", "toxicity", "--make", "toxicity", "--answers", "answer", "--rater", "who"]
    given = [str(path), "--text", "text", "--id", "id", "--attributes", "age", *options]
    with pytest.raises(CommandError, match=r"Mapped to nothing: answers '1' \(3\), '0' \(3\)"):
        command(*given)
    said, noted = command(*given, "--choice", "1=yes", "--choice", "0=no")
    assert said.splitlines() == [
        "6 rows: 2 new items, 0 unchanged, 0 bad.",
        "toxicity: 5 votes, 3 new raters, 2 tasks: 2 disputed. 1 repeats left out.",
    ]
    assert "row 6, who: Rater 'ben' has a vote on 'b' already." in noted
    (tmp_path / "mapping.json").write_text(json.dumps(MAPPING))
    again = json.loads(command(str(path), "--mapping", str(tmp_path / "mapping.json"), "--json")[0])
    assert (again["unchanged"], again["votes"][0]["votes"], again["votes"][0]["raters"]) == (2, 5, 0)


def test_the_command_brings_votes_to_items_that_are_there(cast: Cast, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes(b"item,answer\nt0,yes\nt0,yes\nt1,no\nt9,no\n")
    Item.objects.bulk_create(
        Item(project=cast.project, kind="text", external_id=f"t{n}", text="Mild.", content_hash=b"") for n in range(2)
    )  # fmt: skip
    options = ["--existing", "--id", "item", "--votes", "long", "--question", "toxicity", "--make", "toxicity", "--answers", "answer"]
    with pytest.raises(CommandError, match="There is no text with the id 't9' in the project"):
        command(str(path), *options)
    said, _ = command(str(path), *options, "--skip-bad")
    assert said.splitlines() == [
        "4 rows: 0 new items, 2 unchanged, 1 bad.",
        "toxicity: 3 votes that came without names, 2 tasks: 2 agreed.",
    ]
    assert set(Membership.objects.filter(role="rater").values_list("rater", flat=True)) == {" vote 1 of 2", " vote 2 of 2", " vote 1 of 1"}


def test_the_commands_of_the_guide_bring_votes_in(cast: Cast, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/researchers.md").read_text().replace("\\\n", " ")
    line = next(line for line in guide.splitlines() if "import_items pilot votes.csv" in line)
    options = shlex.split(line)[4:]  # after manage.py import_items pilot votes.csv
    path = tmp_path / "votes.csv"
    path.write_text("id,comment,worker,answer,age,gender\na,Calm.,ann,1,30,f\na,Calm.,ben,-1,40,m\nb,Rude.,ann,-1,30,f\n")
    said, _ = command(str(path), *options)
    assert "toxicity: 3 votes, 2 new raters, 2 tasks: 1 agreed, 1 disputed." in said
    assert list(GroundTruth.objects.values_list("choice__value", flat=True)) == ["no"]


def test_the_page_says_what_is_not_mapped_yet(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    page = uploaded(client, LONG.replace(b"cem,0", b"cem,hm"))
    counted = client.post(page, form(do="read", v0_answer_spelling=[], v0_answer_value=[])).content.decode()
    said = re.search(r"Not mapped yet, for toxicity:</b>(.*?)</p>", counted, re.DOTALL)
    assert said is not None
    assert "hm (1)." in said[1]
    assert "1 (3)" not in said[1]
    mapped = form(do="read", v0_answer_spelling=["1", "0", "hm"], v0_answer_value=["yes", "no", ""])
    assert "Not mapped yet" not in client.post(page, mapped).content.decode()


def test_answers_of_count_columns_can_be_renamed_on_the_page(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    page = uploaded(client, b"id,text,n-dog,n-cat\na,One.,2,1\nb,Two.,1,2\n")
    given = form(
        v0_form="counts", v0_question="make:answers", v0_slug="animal", v0_columns=["n-dog", "n-cat"], v0_rater="-", v0_attributes=[],
        v0_answer_spelling=[], v0_answer_value=[],
    )  # fmt: skip
    shown = Controls(client.post(page, given | {"do": "read"}).content.decode()).sent
    assert shown["v0_answer_spelling"] == ["n-dog", "n-cat"]
    assert shown["v0_answer_value"] == ["dog", "cat"]
    assert shown["v0_answer_label"] == ["Dog", "Cat"]
    start = given | {"v0_title": "Which animal", "v0_answer_spelling": ["n-dog", "n-cat"], "v0_answer_value": ["dog", "cat"]}
    assert client.post(page, start | {"v0_answer_label": ["A dog", "Cat"]}).status_code == 302
    result = run(page)
    asked = Question.objects.get(slug="animal")
    assert (asked.title, [choice.label for choice in asked.choices.all()]) == ("Which animal", ["Cat", "A dog"])
    assert result.votes[0]["nameless"] == 6
    done = client.get(page).content.decode()
    assert "Votes that came as counts" in done
    assert "New raters" not in done
