"""Questions over the API."""

import pytest

from annotation import presets, questions
from annotation.models import Question
from tests.annotation.api import Program
from tests.cast import Cast

RUDE = {
    "slug": "rude",
    "title": "Rude",
    "prompt": "Is it rude?",
    "choices": [{"value": "yes", "label": "Yes", "hotkey": "y"}, {"value": "no", "label": "No", "hotkey": "n"}],
    "guideline": {"body": "Judge with care."},
}


@pytest.fixture
def bob(cast: Cast) -> Program:
    return Program(cast.bob)


def test_a_question_is_made_read_and_listed(bob: Program) -> None:
    made = bob.post("questions/", **RUDE)
    assert made.status_code == 201
    assert made.json()["guideline_version"] == 1
    assert made.json()["votes_required"] == 3
    assert bob.get("questions/rude/").json() == made.json()
    assert bob.get("questions/").json() == [made.json()]


def test_every_ready_made_question_can_be_sent_back_as_it_comes(bob: Program) -> None:
    for preset in bob.get("question-presets/").json():
        assert bob.post("questions/", **preset).status_code == 201
    assert set(Question.objects.values_list("slug", flat=True)) == set(presets.PRESETS)
    made = Question.objects.get(slug="image_harm")
    assert questions.settings_of(made) == presets.IMAGE_HARM.settings


def test_faults_come_by_field(bob: Program) -> None:
    answer = bob.post("questions/", **(RUDE | {"choices": RUDE["choices"][:1], "votes_required": 0}))
    assert answer.status_code == 400
    assert set(answer.json()["fields"]) == {"choices", "votes_required"}


def test_a_shape_that_is_wrong_is_told(bob: Program) -> None:
    answer = bob.post("questions/", **(RUDE | {"choices": "yes, no"}))
    assert answer.status_code == 400
    assert "choices" in answer.json()["fields"]


def test_a_change_touches_only_what_is_given(bob: Program) -> None:
    bob.post("questions/", **RUDE)
    changed = bob.send("PATCH", "questions/rude/", {"votes_required": 5, "active": False}).json()
    assert (changed["votes_required"], changed["active"], changed["title"]) == (5, False, "Rude")
    assert [choice["value"] for choice in changed["choices"]] == ["yes", "no"]


def test_a_refused_change_changes_nothing_at_all(bob: Program) -> None:
    bob.post("questions/", **RUDE)
    assert bob.send("PATCH", "questions/rude/", {"votes_required": 2000, "active": False}).status_code == 400
    assert Question.objects.get().active


def test_the_rows_of_a_change_are_given_whole(bob: Program) -> None:
    bob.post("questions/", **RUDE)
    answer = bob.send("PATCH", "questions/rude/", {"choices": [{"value": "yes"}, {"value": "no", "label": "No", "hotkey": "n"}]})
    assert answer.status_code == 400
    assert set(answer.json()["fields"]["choices"]["0"]) == {"label", "hotkey"}


def test_guideline_versions_are_added_and_kept(cast: Cast, bob: Program) -> None:
    bob.post("questions/", **RUDE)
    added = bob.post("questions/rude/guidelines/", after=1, body="Judge with great care.")
    assert (added.status_code, added.json()["version"], added.json()["author"]) == (201, 2, "bob")
    late = bob.post("questions/rude/guidelines/", after=1, body="Third.")
    assert (late.status_code, late.json()["code"]) == (409, "guideline_moved_on")
    assert [version["version"] for version in bob.get("questions/rude/guidelines/").json()] == [2, 1]


@pytest.mark.parametrize("who", ["alice", "charlie"])
def test_others_are_refused(cast: Cast, who: str) -> None:
    program = Program(getattr(cast, who))
    assert program.get("questions/").status_code == 403
    assert program.post("questions/", **RUDE).status_code == 403
