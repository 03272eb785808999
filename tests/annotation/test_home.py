"""A person's own pages: home, account, support, and the page that hides everything."""

import re

from annotation import queue
from annotation.models import User
from tests.cast import PASSWORD, Cast, make_member, make_project, make_question, make_tasks


def test_home_lists_work_per_question_over_all_projects(cast: Cast, sign_in) -> None:
    question = make_question(cast.project)
    make_tasks(question, 2)
    other = make_project("second")
    make_member(other, "alice", "annotator")
    make_question(other, "naturalness")
    page = sign_in(cast.alice).get("/")
    assert [(row.question.slug, row.waits, row.answers) for row in page.context["work"]] == [
        ("naturalness", False, "Yes or no"),
        ("toxicity", True, "Yes or no"),
    ]
    assert "Start" in page.content.decode()


def test_home_counts_today_and_says_when_all_is_done(cast: Cast, sign_in) -> None:
    question = make_question(cast.project)
    make_tasks(question, 2)
    alice = sign_in(cast.alice)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes", elapsed_ms=8_000)
    page = alice.get("/")
    row = page.context["work"][0]
    assert (row.today, row.seconds, row.waits) == (1, 8, True)
    assert "Continue" in page.content.decode()
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="no", elapsed_ms=3_600_000)
    page = alice.get("/")
    assert page.context["today"] == {"votes": 2, "time": "5 min", "abstained": 0}
    assert "all done" in page.content.decode()


def test_a_task_that_was_withdrawn_is_no_longer_held(cast: Cast, sign_in) -> None:
    question = make_question(cast.project)
    make_tasks(question, 1)
    task_id = queue.next_work(cast.alice, question)[0].task_id
    queue.next_work(cast.dave, question)
    alice = sign_in(cast.alice)
    assert alice.get("/").context["holds"] == [(cast.alice, 1)]
    queue.flag(cast.dave, task_id, "illegal")
    page = alice.get("/")
    assert page.context["holds"] == []
    assert not page.context["work"][0].waits
    assert alice.get("/hidden/").context["held"] is None


def test_home_shows_ids_and_never_a_text(cast: Cast, sign_in) -> None:
    question = make_question(cast.project)
    make_tasks(question, 2)
    work = queue.next_work(cast.alice, question)
    queue.cast_vote(cast.alice, work[0].token, choice="yes")
    queue.abstain(cast.alice, work[1].token, "distressing")
    page = sign_in(cast.alice).get("/").content.decode()
    assert "mild text" not in page
    assert re.search(rf'class="mono">{work[0].item_id}<', page)
    assert "Abstained: Too distressing" in page


def test_an_adjudicator_sees_disputes_a_researcher_their_projects(cast: Cast, sign_in) -> None:
    question = make_question(cast.project, votes=2)
    make_tasks(question, 1)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no")):
        queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice)
    charlie = sign_in(cast.charlie).get("/")
    assert charlie.context["disputes"] == [(cast.charlie, question, 1, 0, None)]
    assert charlie.content.decode().count("btn--primary") == 1, "one button stands out, and it is the dispute's"
    assert charlie.context["first_dispute"] == question
    bob = sign_in(cast.bob).get("/")
    assert bob.context["disputes"] == []
    assert 'href="/p/study/"' in bob.content.decode()
    assert "dispute" not in sign_in(cast.alice).get("/").content.decode().lower()


def test_someone_without_a_project_is_told_what_to_do(db: None, client) -> None:
    client.force_login(User.objects.create_user("newcomer"))
    assert "You are in no project yet." in client.get("/").content.decode()


def test_hidden_says_nothing_and_leads_back_only_into_the_app(cast: Cast, sign_in) -> None:
    alice = sign_in(cast.alice)
    page = alice.get("/hidden/?back=/p/study/label/toxicity/").content.decode()
    assert "<title>Assay</title>" in page
    assert 'href="/p/study/label/toxicity/"' in page
    for elsewhere in ("https://evil.example/", "//evil.example/", "javascript:alert(1)"):
        page = alice.get("/hidden/", {"back": elsewhere}).content.decode()
        assert "evil" not in page
        assert "Show it again" not in page


def test_support_is_open_to_anyone(db: None, client) -> None:
    assert client.get("/support/").status_code == 200


def test_single_keys_are_switched_off_and_on(cast: Cast, sign_in) -> None:
    alice = sign_in(cast.alice)
    alice.post("/account/keys/", {})
    assert User.objects.get(username="alice").single_keys is False
    alice.post("/account/keys/", {"single_keys": "on"})
    assert User.objects.get(username="alice").single_keys is True


def test_a_password_is_changed_and_a_wrong_one_is_told(cast: Cast, sign_in) -> None:
    alice = sign_in(cast.alice)
    new = "quite-another-password"
    wrong = alice.post("/account/", {"old_password": "x", "new_password1": new, "new_password2": new})
    assert wrong.status_code == 422
    assert alice.post("/account/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new}).status_code == 302
    assert User.objects.get(username="alice").check_password(new)
    assert alice.get("/account/").status_code == 200


def test_tasks_that_one_holds_can_be_given_back_from_home(cast: Cast, sign_in) -> None:
    question = make_question(cast.project)
    make_tasks(question, 3)
    queue.next_work(cast.alice, question)
    alice = sign_in(cast.alice)
    assert alice.get("/").context["holds"] == [(cast.alice, 2)]
    assert "Given back: 2 tasks." in alice.post("/p/study/release/", follow=True).content.decode()
    assert alice.get("/").context["holds"] == []


def test_a_task_whose_hold_ran_out_waits_for_the_next_person(cast: Cast, sign_in) -> None:
    question = make_question(cast.project, votes=1)
    make_tasks(question, 1)
    queue.next_work(cast.dave, question)
    alice = sign_in(cast.alice)
    assert alice.get("/").context["work"][0].waits is False
    cast.dave.leases.update(expires_at="2020-01-01T00:00Z")
    assert alice.get("/").context["work"][0].waits is True
