"""The raters' pages, their files, the API and the command."""

import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.imported import COUNTED, RaterVote, import_votes
from annotation.models import Membership, Pause, Question, Role
from tests import cast as make
from tests.cast import Cast, make_items, make_question
from tests.curation.settled import settle

PAGE = "/p/study/raters/toxicity/"
API = "/api/v1/projects/study/raters/toxicity/"
BALLOTS = ["yyy", "yyy", "nnn", "nnn", "nyy", "yyn > n", "ynn", *["yyy", "nnn"] * 4]


@pytest.fixture
def question(cast: Cast) -> Question:
    question = make_question(cast.project)
    settle(cast, question, make_items(cast.project, len(BALLOTS)), BALLOTS)
    return question


def test_the_list_shows_everyone_by_pseudonym_and_sorts_by_links(cast: Cast, question: Question, sign_in) -> None:  # type: ignore[no-untyped-def]
    Pause.objects.create(question=question, member=cast.dave, answers=20, correct=10, floor=0.7)
    client = sign_in(cast.bob)
    page = client.get(f"{PAGE}?sort=agreement").content.decode()
    names = re.findall(r'href="/p/study/raters/toxicity/(\d+)/">Annotator', page)
    assert names == [str(member.number) for member in (cast.alice, cast.dave, cast.erin)]
    assert 'aria-sort="ascending"' in page
    assert "?sort=-agreement" in page  # once more turns it round
    assert page.count("</svg> paused") == 1
    assert "alice" not in page
    assert "style=" not in page
    assert client.get(f"{PAGE}?sort=name").status_code == 404
    assert client.get(f"{PAGE}?page=7").status_code == 200
    assert client.get(f"{PAGE}?page=x").status_code == 200


def test_a_question_without_votes_says_so(cast: Cast, sign_in) -> None:  # type: ignore[no-untyped-def]
    make_question(cast.project)
    assert "Nobody has voted yet" in sign_in(cast.bob).get(PAGE).content.decode()
    assert sign_in(cast.bob).get(API).json()["raters"] == []


def test_one_rater_has_a_page_with_how_they_answer_and_a_way_to_their_part(cast: Cast, question: Question, sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    page = client.get(f"{PAGE}{cast.alice.number}/").content.decode()
    assert "How they answer, by label" in page
    assert f"/p/study/people/{cast.alice.number}/" in page
    assert "15 votes" in page
    drawn = client.get(f"{PAGE}figures/confusion.csv?number={cast.alice.number}").content.decode()
    assert drawn.startswith("label,answer,share\nYes,Yes,")
    assert client.get(f"{PAGE}{cast.bob.number}/").status_code == 404
    assert client.get(f"{PAGE}4000000000/").status_code == 404


def test_a_rater_from_a_file_has_no_part_in_the_project_and_meets_no_checks(cast: Cast, question: Question, sign_in) -> None:  # type: ignore[no-untyped-def]
    fred = Membership.objects.create(project=cast.project, role=Role.RATER, number=90, rater="fred")
    question.votes.filter(member=cast.alice).update(member=fred)
    page = sign_in(cast.bob).get(f"{PAGE}90/").content.decode()
    assert "a rater from a file meets none" in page
    assert "/people/90/" not in page
    assert "fred" not in page


def test_figures_and_their_data_download(cast: Cast, question: Question, sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    assert client.get(f"{PAGE}figures/pairs.png").content.startswith(b"\x89PNG")
    assert client.get(f"{PAGE}figures/raters.svg").content.startswith(b"<svg")
    rows = client.get(f"{PAGE}figures/pairs.csv").content.decode().splitlines()
    assert len(rows) == 1 + 3
    assert rows[1].startswith("1,4,15,0.8")
    assert client.get(f"{PAGE}figures/nothing.png").status_code == 404


def test_the_tasks_labelled_differently_show_their_contents_only_on_request(cast: Cast, question: Question, sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    listing = "/p/study/agreement/toxicity/differences/"
    page = client.get(f"{listing}?between=policy-majority").content.decode()
    assert "3 tasks of Toxicity: 1 with another label, 2 that only one of the two settles" in page
    assert "2 Yes, 1 No" in page
    assert "A mild text" not in page
    shown = client.get(f"{listing}?between=policy-majority&contents=1").content.decode()
    assert "A mild text" in shown
    assert "Hide" in shown  # the way out stands on the page
    assert client.get(f"{listing}?between=nothing").status_code == 404
    assert "This page is past the end" in client.get(f"{listing}?between=policy-majority&page=9").content.decode()


@pytest.mark.parametrize("who", ["alice", "charlie", "mallory"])
def test_only_the_projects_researcher_sees_raters(cast: Cast, question: Question, sign_in, who: str) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(getattr(cast, who))
    for address in (PAGE, f"{PAGE}1/", f"{PAGE}figures/pairs.csv", "/p/study/agreement/toxicity/differences/", API, f"{API}pairs/"):
        assert client.get(address).status_code == (404 if who == "mallory" else 403)


def test_the_api_and_the_command_say_the_same_of_raters(cast: Cast, question: Question, sign_in, capsys) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    told = client.get(f"{API}?sort=number").json()
    alice = told["raters"][0]
    assert (alice["pseudonym"], alice["votes"], alice["agreement"]["n"], alice["checks"]["value"]) == ("Annotator 1", 15, 15, None)
    assert len(alice["confusion"]) == 2
    call_command("raters", "study", "toxicity", "--sort", "number", "--json")
    assert json.loads(capsys.readouterr().out) == told
    call_command("raters", "study", "toxicity")
    assert "Annotator 1: 15 votes, not timed" in capsys.readouterr().out
    with pytest.raises(CommandError):
        call_command("raters", "study", "nothing")
    assert client.get(f"{API}?sort=name").status_code == 400


def test_the_api_gives_pairs_and_the_tasks_labelled_differently(cast: Cast, question: Question, sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    pairs = client.get(f"{API}pairs/?number={cast.erin.number}").json()
    assert (pairs["count"], len(pairs["pairs"]), pairs["pairs"][0]["observed"]["n"]) == (2, 2, 15)
    listed = client.get("/api/v1/projects/study/agreement/toxicity/differences/?between=policy-majority").json()
    assert (listed["count"], listed["tasks"][0]["text"]) == (3, None)
    figure = client.get(f"{API}figures/pairs/").json()
    assert figure["vega_lite"]["layer"]
    assert client.get(f"{API}figures/nothing/").status_code == 404


def test_the_agreement_page_shows_the_three_ways_and_the_parts_asked_for(cast: Cast, question: Question, sign_in, capsys) -> None:  # type: ignore[no-untyped-def]
    Membership.objects.filter(pk=cast.alice.pk).update(attributes={"age": "young"})
    question.project.items.filter(external_id__in=["t0", "t1", "t4"]).update(metadata={"recipe": "A2T"})
    client = sign_in(cast.bob)
    page = client.get("/p/study/agreement/toxicity/?group=age&by=recipe").content.decode()
    for words in ("settled in three ways", "it converged after", "Alpha by recipe", "A2T", "young", f'href="{PAGE}"'):
        assert words in page
    told = client.get("/api/v1/projects/study/agreement/toxicity/?group=age&by=recipe").json()
    assert told["methods"]["labels"]["majority"] == {"by_choice": [8, 7], "unsettled": 0}
    assert [part["value"] for part in told["slices"]["parts"]] == ["A2T", None]
    assert told["groups"]["parts"][0]["raters"] == 1
    call_command("agreement", "study", "toxicity", "--group", "age", "--by", "recipe", "--json")
    assert json.loads(capsys.readouterr().out) == told
    call_command("agreement", "study", "toxicity", "--group", "age")
    assert "Dawid-Skene converged in" in capsys.readouterr().out
    assert client.get("/p/study/agreement/toxicity/?group=%00&by=nothing%00").status_code == 200
    assert client.get("/api/v1/projects/study/agreement/toxicity/?group=%00").status_code in (200, 400)


def test_votes_that_came_as_counts_are_called_so_and_never_people(cast: Cast, sign_in, capsys) -> None:  # type: ignore[no-untyped-def]
    asked = make.make_question(cast.project, "counted", policy="majority")
    items = make.make_items(cast.project, 12, start=900)
    import_votes(asked, [RaterVote(item.pk, f"{COUNTED}{k} of 3", "yes") for item in items for k in (1, 2, 3)])
    bob = sign_in(cast.bob)
    why = "These votes came as counts: nobody knows who cast which."
    page = bob.get(reverse("raters", args=["study", "counted"])).content.decode()
    assert "Not defined for 36 votes." in page
    assert why in page
    assert "Nobody has voted yet" not in page
    assert "0 raters, 36 votes" in page
    assert why in bob.get(reverse("agreement_question", args=["study", "counted"])).content.decode()
    number = cast.project.memberships.filter(role="rater").first().number
    assert why in bob.get(reverse("rater", args=["study", "counted", number])).content.decode()
    people = bob.get(reverse("people", args=["study"])).content.decode()
    assert "36 votes came as counts or without names" in people
    assert " came in files" not in people
    assert "counts or without names" in bob.get(reverse("overview", args=["study"])).content.decode()
    call_command("raters", "study", "counted")
    assert f"36 votes in no figure of single raters. {why}" in capsys.readouterr().out
