"""The pages that make, change and show questions."""

import re

import pytest
from django.test import Client

from annotation import presets, questions, queue
from annotation.models import FlagReason, Question
from tests.cast import Cast, make_question, make_tasks

FORM = {
    "slug": "rude", "title": "Rude", "prompt": "Is it rude?", "kind": "text", "policy": "majority", "votes_required": "5",
    "lease_minutes": "15", "blind_ruling": "on", "body": "Judge with care.",
    "choices-0-label": "Yes, it is", "choices-0-value": "yes", "choices-0-hotkey": "y", "choices-0-tag_use": "offered",
    "choices-1-label": "No", "choices-1-value": "", "choices-1-hotkey": "N", "choices-1-tag_use": "none",
    "choices-7-label": "Unsure", "choices-7-value": "", "choices-7-hotkey": "3", "choices-7-tag_use": "none", "choices-7-is_unsure": "on",
    "choices-8-label": "", "choices-8-value": "", "choices-8-hotkey": "", "choices-8-tag_use": "none",
    "tags-0-label": "Hateful", "tags-0-value": "", "tags-0-hotkey": "h",
    "examples-0-title": "Geese", "examples-0-text": "You goose.", "examples-0-choice": "Yes, it is", "examples-0-why": "Rude.",
}  # fmt: skip


@pytest.fixture
def bob(cast: Cast, sign_in) -> Client:  # type: ignore[no-untyped-def]
    return sign_in(cast.bob)  # type: ignore[no-any-return]


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_an_empty_list_says_what_a_question_is_and_how_to_make_one(bob: Client) -> None:
    page = bob.get("/p/study/questions/").content.decode()
    assert "No question yet." in page
    assert "<table" not in page


def test_the_list_shows_policy_version_and_tasks_by_state(cast: Cast, bob: Client) -> None:
    question = questions.create_question(cast.project, presets.TOXICITY)
    questions.create_question(cast.project, presets.NATURALNESS)
    make_tasks(question, 3)
    said = text(bob.get("/p/study/questions/").content.decode())
    assert "Toxicity Text, toxicity 3 votes, all the same; else an adjudicator. version 1 3 3 0 0 0" in said
    assert "Naturalness Text, naturalness 3 votes, all the same; else an adjudicator. version 1 no tasks yet" in said


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_ready_made_question_is_made_by_sending_its_form_as_it_comes(bob: Client, name: str) -> None:
    page = bob.get("/p/study/questions/new/", {"preset": name}).content.decode()
    fields: dict[str, str] = {}
    for tag in re.findall(r"<input [^>]*>", page.partition("<main")[2]):
        values = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if "name" in values and ('type="checkbox"' not in tag or " checked" in tag):
            fields[values["name"]] = values.get("value", "on")
    for field, body in re.findall(r'<textarea [^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', page, re.DOTALL):
        fields[field] = body
    for field, options in re.findall(r'<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>', page, re.DOTALL):
        fields[field] = re.findall(r'value="([^"]+)"[^>]* selected', options)[0]
    answer = bob.post("/p/study/questions/new/", {key: value.replace("&quot;", '"') for key, value in fields.items()})
    assert answer.status_code == 302
    made = Question.objects.get()
    assert questions.settings_of(made) == presets.PRESETS[name].settings
    assert made.kind == presets.PRESETS[name].kind
    assert len(questions.current_guideline(made).examples) == len(presets.PRESETS[name].guideline.examples)


def test_a_question_of_ones_own_blank_rows_left_out_and_values_made_of_labels(cast: Cast, bob: Client) -> None:
    assert bob.post("/p/study/questions/new/", FORM).headers["Location"] == "/p/study/questions/rude/"
    question = Question.objects.get()
    assert (question.policy, question.votes_required, question.blind_ruling, question.sensitive) == ("majority", 5, True, False)
    assert [(c.value, c.label, c.hotkey, c.tag_use, c.is_unsure) for c in question.choices.all()] == [
        ("yes", "Yes, it is", "y", "offered", False),
        ("no", "No", "n", "none", False),
        ("unsure", "Unsure", "3", "none", True),
    ]
    guideline = questions.current_guideline(question)
    assert guideline.examples == [{"title": "Geese", "text": "You goose.", "choice": "yes", "why": "Rude."}]
    assert guideline.author == cast.bob.user


def test_a_wrong_form_comes_back_with_all_that_was_typed_and_each_message_at_its_field(bob: Client) -> None:
    wrong = FORM | {"votes_required": "many", "choices-1-hotkey": "z", "body": " ", "title": "<b>Rude</b>"}
    answer = bob.post("/p/study/questions/new/", wrong)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "3 fields need another look." in page
    assert 'value="&lt;b&gt;Rude&lt;/b&gt;"' in page
    assert 'value="many"' in page
    assert 'aria-describedby="votes_required-hint votes_required-error"' in page
    assert re.search(r'id="choices-1-hotkey-error"[^§]*?Z does something else', page)
    assert 'value="Yes, it is"' in page
    assert not Question.objects.exists()


def test_one_more_row_without_a_script(bob: Client) -> None:
    answer = bob.post("/p/study/questions/new/", FORM | {"add": "tags"})
    assert answer.status_code == 200
    assert 'name="tags-2-label"' in answer.content.decode()
    assert 'value="Hateful"' in answer.content.decode()
    assert not Question.objects.exists()


def test_a_strange_post_is_no_error_of_ours(bob: Client) -> None:
    for strange in (
        {},
        {"choices-0-nothing": "x"},
        {"choices-99999-label": "x"},
        FORM | {"kind": "sound", "policy": "guess", "votes_required": "9" * 40},
    ):
        assert bob.post("/p/study/questions/new/", strange).status_code == 422


def test_changing_keeps_what_was_voted_and_says_why(cast: Cast, bob: Client) -> None:
    bob.post("/p/study/questions/new/", FORM)
    question = Question.objects.get()
    make_tasks(question, 1)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes")
    answer = bob.post("/p/study/questions/rude/change/", FORM | {"choices-0-value": "certainly"})
    assert answer.status_code == 422
    assert "has 1 vote, so it stays" in answer.content.decode()
    assert 'value="certainly"' in answer.content.decode()
    assert bob.post("/p/study/questions/rude/change/", FORM | {"choices-0-label": "Certainly", "title": "Rudeness"}).status_code == 302
    question.refresh_from_db()
    assert (question.title, question.choices.get(value="yes").label) == ("Rudeness", "Certainly")


def test_the_page_of_a_question_shows_what_annotators_see_and_what_changed(cast: Cast, bob: Client) -> None:
    bob.post("/p/study/questions/new/", FORM)
    first = bob.get("/p/study/questions/rude/").content.decode()
    assert "No tasks yet." in first
    assert "What changed" not in first
    assert bob.post("/p/study/questions/rude/guideline/", {"after": "1", "body": "Judge with great care."}).status_code == 302
    page = bob.get("/p/study/questions/rude/", {"version": "2"}).content.decode()
    assert "version 2, in force" in page
    assert "<del>Judge with care.</del>" in page
    assert "<ins>Judge with great care.</ins>" in page
    assert "style=" not in page
    old = bob.get("/p/study/questions/rude/", {"version": "1"}).content.decode()
    assert "version 1</span>" in old
    assert "You goose." in old


def test_a_version_written_meanwhile_is_not_lost(bob: Client) -> None:
    bob.post("/p/study/questions/new/", FORM)
    bob.post("/p/study/questions/rude/guideline/", {"after": "1", "body": "Second."})
    answer = bob.post("/p/study/questions/rude/guideline/", {"after": "1", "body": "Mine, written long."})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Version 2 was made while you wrote" in page
    assert "Mine, written long." in page
    assert "Second." in page
    assert 'name="after" value="2"' in page


def test_hostile_markdown_and_examples_stay_text(bob: Client) -> None:
    evil = "<script>alert(1)</script> [x](javascript:alert(1)) ![p](http://elsewhere.example/x.png)"
    bob.post("/p/study/questions/new/", FORM | {"body": evil, "examples-0-text": "<img src=x>"})
    page = bob.get("/p/study/questions/rude/").content.decode()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page


def test_flags_are_counted_on_the_questions_page_and_listed_without_contents(cast: Cast, bob: Client) -> None:
    question = make_question(cast.project)
    make_tasks(question, 1)
    work = queue.next_work(cast.alice, question)[0]
    queue.flag(cast.alice, work.task_id, FlagReason.WRONG, "It is cut off.")
    assert bob.get("/p/study/questions/toxicity/").context["flags"] == 1
    page = bob.get("/p/study/flags/").content.decode()
    assert "It is cut off." in page
    assert f"Annotator {cast.alice.number}" in page
    assert "mild text" not in page


def test_switching_off_and_on(bob: Client) -> None:
    bob.post("/p/study/questions/new/", FORM)
    bob.post("/p/study/questions/rude/active/", {"active": "0"})
    assert "not offered" in bob.get("/p/study/questions/rude/").content.decode()
    assert not Question.objects.get().active
    bob.post("/p/study/questions/rude/active/", {"active": "1"})
    assert Question.objects.get().active


@pytest.mark.parametrize("who", ["alice", "charlie", "mallory"])
@pytest.mark.parametrize("path", ["", "new/", "rude/", "rude/change/", "rude/guideline/"])
def test_others_are_refused(cast: Cast, bob: Client, sign_in, who: str, path: str) -> None:  # type: ignore[no-untyped-def]
    bob.post("/p/study/questions/new/", FORM)
    assert sign_in(getattr(cast, who)).get(f"/p/study/questions/{path}").status_code == (404 if who == "mallory" else 403)


def test_a_question_that_is_not_there_is_not_found(bob: Client) -> None:
    assert bob.get("/p/study/questions/nothing/").status_code == 404


def test_shares_are_typed_in_percent_and_kept_as_shares(cast: Cast, bob: Client) -> None:
    bob.post("/p/study/questions/new/", FORM)
    page = "/p/study/questions/rude/change/"
    assert bob.post(page, FORM | {"check_share": "12.5", "accuracy_floor": "80 %", "repeat_share": ""}).status_code == 302
    rude = Question.objects.get(slug="rude")
    assert (rude.check_share, rude.accuracy_floor, rude.repeat_share) == (0.125, 0.8, 0.0)
    shown = bob.get(page).content.decode()
    assert 'name="check_share" value="12.5"' in shown
    assert 'name="accuracy_floor" value="80"' in shown


@pytest.mark.parametrize(
    ("field", "typed"), [("check_share", "51"), ("repeat_share", "much"), ("accuracy_floor", "0"), ("accuracy_floor", "101")]
)
def test_a_share_that_cannot_be_is_refused_at_its_field(cast: Cast, bob: Client, field: str, typed: str) -> None:
    answer = bob.post("/p/study/questions/new/", FORM | {field: typed})
    assert answer.status_code == 422
    assert f'id="{field}-error"' in answer.content.decode()
    assert f'value="{typed}"' in answer.content.decode()
