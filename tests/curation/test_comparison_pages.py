"""The pages of a comparison, its API and its command."""

import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from curation import comparing
from curation.models import Comparison
from tests.cast import Cast, make_question
from tests.curation.settled import make_story

API = "/api/v1/projects/study/comparisons/"


@pytest.fixture
def comparison(cast: Cast) -> Comparison:
    question = make_question(cast.project, choices="yes no unsure")
    _, scorer = make_story(cast, question)
    return comparing.create(cast.bob, name="Judge", positive=question.choices.get(value="yes"), scorer=scorer, score_name="toxicity")


@pytest.fixture
def bob(cast: Cast, sign_in) -> Client:  # type: ignore[no-untyped-def]
    return sign_in(cast.bob)  # type: ignore[no-any-return]


def address(comparison: Comparison, rest: str = "") -> str:
    return f"/p/study/comparisons/{comparison.pk}/{rest}"


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_page_has_the_figures_the_matrix_and_what_is_left_out(bob: Client, comparison: Comparison) -> None:
    page = bob.get(address(comparison)).content.decode()
    said = text(page)
    assert "misses 1 of the 3 that people call Yes, and is wrong in 1 of the 3 it names" in said
    assert "0.667" in said
    assert "Votes still to come 1" in said
    assert "Labelled, but without this score 1" in said
    assert f"{address(comparison, 'items/')}?cell=false_negative&amp;threshold=0.5" in page
    assert "style=" not in page
    assert "mild text" not in page


def test_the_refresh_is_the_results_alone_and_keeps_nothing(bob: Client, comparison: Comparison) -> None:
    bob.get(address(comparison))
    answer = bob.get(address(comparison), {"threshold": "0.75"}, headers={"HX-Request": "true"})
    assert answer.headers["HX-Replace-Url"].endswith("?threshold=0.75")
    assert "<html" not in answer.content.decode()
    assert "is wrong in 0 of the 2 it names" in text(answer.content.decode())
    comparison.refresh_from_db()
    assert comparison.threshold == 0.5


def test_a_threshold_is_kept_when_asked(bob: Client, comparison: Comparison) -> None:
    assert "Keep 0.75" in text(bob.get(address(comparison), {"threshold": "0.75"}).content.decode())
    assert bob.post(address(comparison), {"threshold": "0.75"}).status_code == 302
    comparison.refresh_from_db()
    assert comparison.threshold == 0.75


@pytest.mark.parametrize("wrong", ["high", "nan", "inf", "1e999", "0,5"])
def test_a_threshold_that_is_no_number_is_said_beside_the_field(bob: Client, comparison: Comparison, wrong: str) -> None:
    answer = bob.get(address(comparison), {"threshold": wrong})
    assert answer.status_code == 422
    assert "must be a number" in answer.content.decode()
    assert f'value="{wrong}"' in answer.content.decode()
    assert bob.post(address(comparison), {"threshold": wrong}).status_code == 400
    assert bob.get(address(comparison, "items/"), {"threshold": wrong}).status_code == 400
    assert bob.get(f"{API}{comparison.pk}/result/", {"threshold": wrong}).status_code == 400


def test_items_of_a_cell_show_no_text_until_asked(bob: Client, comparison: Comparison) -> None:
    page = bob.get(address(comparison, "items/"), {"cell": "false_negative"}).content.decode()
    assert ">t2<" in page
    assert "0.2000" in page
    assert "mild text" not in page
    shown = bob.get(address(comparison, "items/"), {"cell": "false_negative", "contents": "1"}).content.decode()
    assert "A mild text, number 2." in shown
    assert bob.get(address(comparison, "items/"), {"cell": "nothing"}).status_code == 404
    assert bob.get(address(comparison, "items/"), {"page": "99"}).status_code == 200
    assert bob.get(address(comparison, "items/"), {"page": "x"}).status_code == 200


def test_a_breakdown_by_metadata(bob: Client, cast: Cast, comparison: Comparison) -> None:
    cast.project.items.filter(external_id__in=["t0", "t3"]).update(metadata={"recipe": "swap"})
    page = bob.get(address(comparison), {"by": "recipe"}).content.decode()
    assert "swap" in page
    assert "2 compared: 1 found, 0 missed, 1 false alarm" in text(page)
    assert bob.get(address(comparison), {"by": "no such key'); --"}).status_code == 200
    assert bob.get(address(comparison), {"by": "\0recipe"}).status_code == 200


def test_a_comparison_is_made_with_what_was_typed_kept_on_a_mistake(bob: Client, comparison: Comparison) -> None:
    new = "/p/study/comparisons/new/"
    assert "toxicity" in bob.get(new).content.decode()
    good = {
        "name": "Second",
        "positive": comparison.positive_id,
        "score": f"{comparison.scorer_id}:toxicity",
        "threshold": "0.4",
        "sample": "",
    }
    for wrong in (
        {"name": "Judge"},
        {"score": "9999:toxicity"},
        {"score": "x"},
        {"score": f"{comparison.scorer_id}:other"},
        {"threshold": "nan"},
    ):
        answer = bob.post(new, good | wrong)
        assert answer.status_code == 422
        assert 'value="0.4"' in answer.content.decode() or "threshold" in wrong
        assert "What you typed is all still here" in answer.content.decode()
    made = bob.post(new, good)
    assert made.status_code == 302
    assert bob.get(made.headers["Location"]).status_code == 200
    listed = bob.get("/p/study/comparisons/").content.decode()
    assert "Second" in listed
    assert "0.4" in listed
    assert bob.post(new, good | {"name": ""}).status_code == 302
    assert f"Toxicity: people and {comparison.scorer}" in bob.get("/p/study/comparisons/").content.decode()


def test_before_there_is_a_scorer_the_page_says_what_it_takes(cast: Cast, sign_in) -> None:  # type: ignore[no-untyped-def]
    page = sign_in(cast.bob).get("/p/study/comparisons/new/").content.decode()
    assert "It takes a question and a scorer" in page
    assert "No comparison yet" in sign_in(cast.bob).get("/p/study/comparisons/").content.decode()


@pytest.mark.parametrize("who", ["alice", "charlie", "mallory"])
def test_only_the_projects_researcher_gets_anything(cast: Cast, comparison: Comparison, sign_in, who: str) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(getattr(cast, who))
    wanted = 404 if who == "mallory" else 403
    own = f"{API}{comparison.pk}/"
    for got in (
        "/p/study/comparisons/", "/p/study/comparisons/new/", address(comparison), address(comparison, "items/"),
        address(comparison, "figures/scores.svg"), API, own, f"{own}result/", f"{own}items/?cell=unscored", f"{own}figures/scores/",
    ):  # fmt: skip
        assert client.get(got).status_code == wanted, got
    assert client.post(address(comparison), {"threshold": "0.9"}).status_code == wanted
    comparison.refresh_from_db()
    assert comparison.threshold == 0.5


def test_another_projects_comparison_is_not_found(cast: Cast, comparison: Comparison, sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.mallory)
    assert client.get(f"/p/elsewhere/comparisons/{comparison.pk}/").status_code == 404
    assert client.get(f"/p/elsewhere/comparisons/{10**30}/").status_code == 404


def test_figures_download_as_files(bob: Client, comparison: Comparison) -> None:
    signatures = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<svg", "csv": b"people,machine"}
    for kind, begins in signatures.items():
        answer = bob.get(address(comparison, f"figures/confusion.{kind}"), {"threshold": "0.75"})
        assert answer.content.startswith(begins)
        assert "attachment" in answer.headers["Content-Disposition"]
    assert "Yes,not Yes,1," in bob.get(address(comparison, "figures/confusion.csv")).content.decode()


def test_the_api_makes_reads_and_lists(bob: Client, comparison: Comparison) -> None:
    body = {"name": "By program", "question": "toxicity", "positive": "yes", "scorer": comparison.scorer_id, "score_name": "toxicity"}
    made = bob.post(API, body, content_type="application/json")
    assert made.status_code == 201
    own = f"{API}{made.json()['id']}/"
    told = bob.get(f"{own}result/", {"by": "recipe"}).json()
    assert (told["tp"], told["fn"], told["fp"], told["tn"]) == (2, 1, 1, 1)
    assert told["precision"]["n"] == 3
    assert told["unsure"] == {"positive": 1, "negative": 0}
    assert told["slices"][0]["value"] is None
    assert bob.get(f"{own}result/", {"threshold": "0.99"}).json()["precision"]["reason"]
    listed = bob.get(f"{own}items/", {"cell": "false_positive"}).json()
    assert [item["external_id"] for item in listed["items"]] == ["t3"]
    assert listed["items"][0]["text"] is None
    assert bob.patch(own, {"threshold": 0.3}, content_type="application/json").json()["threshold"] == 0.3
    assert bob.get(f"{own}figures/scores/").json()["vega_lite"]["layer"]
    assert len(bob.get(API).json()["results"]) == 2
    for wrong, field in (
        ({"question": "none"}, "positive"),
        ({"scorer": 9999}, "scorer"),
        ({"sample": 9999}, "sample"),
        ({"name": "Judge"}, "name"),
    ):
        answer = bob.post(API, body | {"name": "Third"} | wrong, content_type="application/json")
        assert answer.status_code == 400
        assert field in answer.json()["fields"]


def test_the_command_reads_a_stored_comparison_or_one_described(comparison: Comparison, capsys) -> None:  # type: ignore[no-untyped-def]
    call_command("compare", "study", "--name", "Judge", "--json")
    stored = json.loads(capsys.readouterr().out)
    call_command("compare", "study", "--question", "toxicity", "--positive", "yes", "--scorer", "judge", "--json")
    described = json.loads(capsys.readouterr().out)
    assert stored.pop("read_at")
    assert described.pop("read_at")
    assert stored == described
    call_command("compare", "study", "--name", "Judge", "--threshold", "0.75", "--by", "recipe")
    said = capsys.readouterr().out
    assert "tp 2, fp 0, fn 1, tn 2" in said
    assert "recipe=None: n=5" in said
    for wrong in (["--name", "No"], ["--question", "toxicity"], ["--name", "Judge", "--threshold", "nan"]):
        with pytest.raises(CommandError):
            call_command("compare", "study", *wrong)


def test_nothing_of_a_comparison_reaches_a_voters_page(cast: Cast, comparison: Comparison, sign_in) -> None:  # type: ignore[no-untyped-def]
    page = sign_in(cast.alice).get("/p/study/label/toxicity/", follow=True).content.decode()
    assert "comparison" not in page.lower()
    assert "score" not in page.lower()
