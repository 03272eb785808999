"""Disputes over HTTP: blind first, then the votes without names, then the ruling."""

import pytest

from annotation import queue
from annotation.models import Adjudication, GroundTruth, Guideline, Membership, Question, TaskState
from tests.cast import Cast, make_question, make_tasks

HERE = "/p/study/disputes/toxicity/"


def vote(member: Membership, question: Question, choice: str, comment: str = "") -> None:
    queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice, comment=comment)


@pytest.fixture
def disputed(cast: Cast) -> Question:
    question = make_question(cast.project)
    make_tasks(question, 1)
    vote(cast.alice, question, "yes", "secret-of-alice")
    vote(cast.dave, question, "no", "secret-of-dave")
    vote(cast.erin, question, "yes", "secret-of-erin")
    return question


def test_the_list_counts_what_waits_and_what_is_ruled(cast: Cast, disputed: Question, sign_in) -> None:
    assert sign_in(cast.charlie).get("/p/study/disputes/").context["rows"] == [(disputed, 1, 0)]
    assert sign_in(cast.alice).get("/p/study/disputes/").status_code == 403


def test_nothing_of_the_votes_is_sent_before_the_blind_ruling(cast: Cast, disputed: Question, sign_in) -> None:
    charlie = sign_in(cast.charlie)
    page = charlie.get(HERE)
    assert "secret-of" not in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    token = page.context["dispute"].token
    early = charlie.post(HERE, {"token": token, "do": "rule", "choice": "no", "reason": "other"})
    assert early.status_code == 409
    assert "secret-of" not in early.content.decode()
    opened = charlie.post(HERE, {"token": token, "do": "blind", "choice": "no"}, follow=True).content.decode()
    assert all(secret in opened for secret in ("secret-of-alice", "secret-of-dave", "secret-of-erin"))
    assert not any(f">{name}<" in opened for name in ("alice", "dave", "erin", "Annotator 1"))


def test_both_rulings_are_kept_and_the_last_is_ground_truth(cast: Cast, disputed: Question, sign_in) -> None:
    charlie = sign_in(cast.charlie)
    token = charlie.get(HERE).context["dispute"].token
    charlie.post(HERE, {"token": token, "do": "blind", "choice": "no"})
    charlie.post(HERE, {"token": token, "do": "blind", "choice": "yes"})  # a second blind ruling is none
    charlie.post(HERE, {"token": token, "do": "rule", "choice": "yes", "reason": "clear_error", "note": "Aimed at a person."})
    again = charlie.post(HERE, {"token": token, "do": "rule", "choice": "no", "reason": "other"})
    assert again.status_code == 302
    ruling = Adjudication.objects.get()
    assert (ruling.blind_choice.value, ruling.choice.value, ruling.note) == ("no", "yes", "Aimed at a person.")
    assert GroundTruth.objects.get().choice.value == "yes"
    assert disputed.tasks.get().state == TaskState.ADJUDICATED


def test_without_a_reason_the_page_comes_back_with_what_was_typed(cast: Cast, disputed: Question, sign_in) -> None:
    charlie = sign_in(cast.charlie)
    token = charlie.get(HERE).context["dispute"].token
    charlie.post(HERE, {"token": token, "do": "blind", "choice": "no"})
    page = charlie.post(HERE, {"token": token, "do": "rule", "choice": "yes", "note": "Do not lose me."})
    assert page.status_code == 422
    assert "Do not lose me." in page.content.decode()
    assert page.context["chosen"] == "yes"


def test_the_script_gets_json_and_where_to_go_next(cast: Cast, disputed: Question, sign_in) -> None:
    charlie = sign_in(cast.charlie)
    token = charlie.get(HERE).context["dispute"].token
    response = charlie.post(HERE, {"token": token, "do": "blind", "choice": "no"}, headers={"accept": "application/json"})
    assert response.json() == {"next": HERE}
    wrong = charlie.post(HERE, {"token": token, "do": "rule", "choice": "no"}, headers={"accept": "application/json"})
    assert (wrong.status_code, wrong.json()["fields"].keys()) == (400, {"reason"})


def test_an_adjudicator_who_voted_does_not_get_the_dispute(cast: Cast, sign_in) -> None:
    question = make_question(cast.project, votes=2)
    make_tasks(question, 1)
    vote(cast.charlie, question, "yes")
    vote(cast.dave, question, "no")
    page = sign_in(cast.charlie).get(HERE)
    assert page.context["dispute"] is None
    assert "you have voted on them yourself" in page.content.decode()


def test_a_researchers_ruling_is_recorded_and_shown_as_not_blind(cast: Cast, disputed: Question, sign_in) -> None:
    bob = sign_in(cast.bob)
    page = bob.get(HERE)
    assert "recorded as not blind" in page.content.decode()
    token = page.context["dispute"].token
    bob.post(HERE, {"token": token, "do": "blind", "choice": "no"})
    bob.post(HERE, {"token": token, "do": "rule", "choice": "no", "reason": "ambiguous"})
    assert Adjudication.objects.get().blind is False


def test_where_the_blind_step_is_off_the_votes_are_open_at_once(cast: Cast, disputed: Question, sign_in) -> None:
    disputed.blind_ruling = False
    disputed.save()
    page = sign_in(cast.charlie).get(HERE).content.decode()
    assert "secret-of-alice" in page
    assert "Rule blind" not in page


def test_a_ruling_is_made_under_the_guideline_that_its_page_shows(cast: Cast, disputed: Question, sign_in) -> None:
    charlie = sign_in(cast.charlie)
    token = charlie.get(HERE).context["dispute"].token
    Guideline.objects.create(question=disputed, version=2, body="Judge with more care.")
    assert charlie.get(HERE).context["dispute"].guideline_version == 2
    charlie.post(HERE, {"token": token, "do": "blind", "choice": "no"})
    charlie.post(HERE, {"token": token, "do": "rule", "choice": "no", "reason": "clear_error"})
    assert GroundTruth.objects.get().guideline.version == 2


def test_a_task_that_everyone_abstained_from_says_so(cast: Cast, sign_in) -> None:
    question = make_question(cast.project)
    make_tasks(question, 1)
    for member in (cast.alice, cast.dave, cast.erin):
        queue.abstain(member, queue.next_work(member, question)[0].token, "distressing")
    charlie = sign_in(cast.charlie)
    page = charlie.get(HERE)
    assert "nobody voted" in page.content.decode()
    assert "3 abstained." in page.content.decode()
    charlie.post(HERE, {"token": page.context["dispute"].token, "do": "blind", "choice": "no"})
    assert "Why did it need a ruling?" in charlie.get(HERE).content.decode()


def test_a_second_tab_is_told_that_the_first_has_ruled(cast: Cast, disputed: Question, sign_in) -> None:
    charlie = sign_in(cast.charlie)
    token = charlie.get(HERE).context["dispute"].token
    charlie.post(HERE, {"token": token, "do": "blind", "choice": "no"})
    second = charlie.post(HERE, {"token": token, "do": "blind", "choice": "yes"}, follow=True).content.decode()
    assert "You had already ruled blind elsewhere: No." in second
    charlie.post(HERE, {"token": token, "do": "rule", "choice": "no", "reason": "other"})
    second = charlie.post(HERE, {"token": token, "do": "rule", "choice": "yes", "reason": "other"}, follow=True).content.decode()
    assert "You had already ruled on this one elsewhere: No." in second
    assert GroundTruth.objects.get().choice.value == "no"


def test_a_dispute_given_back_goes_to_someone_else(cast: Cast, disputed: Question, sign_in) -> None:
    charlie, bob = sign_in(cast.charlie), sign_in(cast.bob)
    token = charlie.get(HERE).context["dispute"].token
    assert bob.get(HERE).context["dispute"] is None
    charlie.post(HERE, {"token": token, "do": "back"})
    assert bob.get(HERE).context["dispute"] is not None
