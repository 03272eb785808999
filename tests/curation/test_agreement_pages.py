"""The agreement page, its files, the API and the command."""

import json
import re

import pytest
from django.core.management import CommandError, call_command

from tests.cast import Cast, make_items, make_question
from tests.curation.settled import settle

PAGE = "/p/study/agreement/toxicity/"


@pytest.fixture
def question(cast: Cast):  # type: ignore[no-untyped-def]
    question = make_question(cast.project)
    settle(cast, question, make_items(cast.project, 5), ["yyy", "yyn > y", "nnn", "nnn", "yn"])
    return question


def test_the_page_lists_every_figure_with_its_interval(cast: Cast, question, sign_in) -> None:  # type: ignore[no-untyped-def]
    page = sign_in(cast.bob).get(PAGE).content.decode()
    for words in ("Share unanimous", "Krippendorff's alpha", "AC1", "0.750", "4 items, 12 votes", "Adjudicated", "How the votes split"):
        assert words in page or words.replace("'", "&#x27;") in page
    assert "style=" not in page
    assert page.count('role="img" aria-label="Agreement.') == 1


def test_undefined_figures_say_why(cast: Cast, sign_in) -> None:  # type: ignore[no-untyped-def]
    question = make_question(cast.project)
    settle(cast, question, make_items(cast.project, 2), ["nnn", "nnn"])
    page = sign_in(cast.bob).get(PAGE).content.decode()
    assert page.count("Undefined. Every vote names the same choice") == 2
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)


def test_a_question_without_votes_and_a_project_without_questions_have_pages(cast: Cast, sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    assert "No question yet" in client.get("/p/study/agreement/").content.decode()
    make_question(cast.project)
    assert client.get("/p/study/agreement/").headers["Location"] == PAGE
    assert "No task has all its votes yet" in client.get(PAGE).content.decode()


@pytest.mark.parametrize("who", ["alice", "charlie", "mallory"])
def test_only_the_projects_researcher_sees_it(cast: Cast, question, sign_in, who: str) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(getattr(cast, who))
    for address in (PAGE, "/p/study/agreement/", f"{PAGE}figures/votes.csv", "/api/v1/projects/study/agreement/toxicity/"):
        assert client.get(address).status_code == (404 if who == "mallory" else 403)


def test_figures_download_as_files(cast: Cast, question, sign_in) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(cast.bob)
    png = client.get(f"{PAGE}figures/agreement.png")
    assert png.content.startswith(b"\x89PNG")
    assert png.headers["Content-Disposition"] == 'attachment; filename="study-toxicity-agreement.png"'
    assert b"3 No,2" in client.get(f"{PAGE}figures/votes.csv").content
    assert client.get(f"{PAGE}figures/votes.exe").status_code == 404
    assert client.get(f"{PAGE}figures/nothing.png").status_code == 404


def test_the_api_and_the_command_say_the_same(cast: Cast, question, sign_in, capsys) -> None:  # type: ignore[no-untyped-def]
    told = sign_in(cast.bob).get("/api/v1/projects/study/agreement/toxicity/").json()
    assert (told["items"], told["unanimous"]["value"], told["alpha_ordinal"]) == (4, 0.75, None)
    call_command("agreement", "study", "toxicity", "--json")
    assert json.loads(capsys.readouterr().out) == told
    call_command("agreement", "study", "toxicity")
    assert "Share unanimous        0.750" in capsys.readouterr().out
    with pytest.raises(CommandError):
        call_command("agreement", "study", "nothing")
