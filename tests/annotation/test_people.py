"""People of a project: who is added, changed, let go and let in again, and what the trail says of it."""

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken

from annotation import audit, people, queue
from annotation.errors import Conflict, Forbidden, Invalid, Missing
from annotation.models import KnownAnswer, Lease, Membership, Pause, Project, Role, User
from curation.models import Sample
from tests import cast as make
from tests.annotation.api import Program


def test_a_new_member_gets_the_next_number(cast: make.Cast) -> None:
    User.objects.create_user("frank")
    added = people.add_member(cast.project, "frank", Role.ANNOTATOR)
    assert (added.member.number, added.password) == (6, None)


def test_a_new_account_signs_in_with_the_password_that_was_shown_once(cast: make.Cast) -> None:
    added = people.add_member(cast.project, "frank", Role.ANNOTATOR, new_account=True)
    browser = Client()
    browser.post("/sign-in/", {"login": "frank", "password": added.password})
    assert browser.get("/account/").status_code == 200
    assert added.password not in User.objects.get(username="frank").password


def test_a_name_nobody_has_is_no_member_and_makes_no_account(cast: make.Cast) -> None:
    with pytest.raises(Invalid) as refused:
        people.add_member(cast.project, "frnak", Role.ANNOTATOR)
    assert "frnak" in refused.value.fields["username"]
    assert not User.objects.filter(username="frnak").exists()


def test_nobody_is_a_member_twice(cast: make.Cast) -> None:
    with pytest.raises(Invalid, match="already"):
        people.add_member(cast.project, "alice", Role.ADJUDICATOR)


@pytest.mark.parametrize("name", ["", "a b", "a\0b", "a" * 151, "Alice"])
def test_an_account_needs_a_name_that_is_free_and_plain(cast: make.Cast, name: str) -> None:
    with pytest.raises(Invalid):
        people.add_user(name)


@pytest.mark.parametrize("role", ["", "rater", "owner"])
def test_there_are_three_roles_to_give(cast: make.Cast, role: str) -> None:
    with pytest.raises(Invalid, match="role"):
        people.add_member(cast.project, "mallory", role)


def test_whoever_leaves_gives_back_what_they_hold_and_keeps_their_votes(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    make.make_tasks(question, 3)
    work = queue.next_work(cast.alice, question)
    queue.cast_vote(cast.alice, work[0].token, choice="yes")
    people.deactivate(cast.project, cast.alice.number)
    assert Lease.objects.filter(member=cast.alice).count() == 0
    assert cast.alice.votes.count() == 1
    assert queue.next_work(cast.dave, question)


def test_whoever_left_finds_the_project_no_more_and_comes_back_as_who_they_were(cast: make.Cast, sign_in: object) -> None:
    people.deactivate(cast.project, cast.alice.number)
    question = make.make_question(cast.project)
    page = f"/p/study/label/{question.slug}/"
    assert sign_in(cast.alice).get(page).status_code == 404
    back = people.reactivate(cast.project, cast.alice.number)
    assert (back.role, back.number) == (Role.ANNOTATOR, cast.alice.number)
    assert sign_in(cast.alice).get(page).status_code == 200


def test_a_new_role_takes_the_work_of_the_old_one_away(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    make.make_tasks(question, 3)
    queue.next_work(cast.alice, question)
    people.change_role(cast.project, cast.alice.number, Role.RESEARCHER)
    assert Lease.objects.filter(member=cast.alice).count() == 0
    with pytest.raises(Forbidden):
        queue.next_work(Membership.objects.get(pk=cast.alice.pk), question)


def test_the_last_researcher_stays(cast: make.Cast) -> None:
    with pytest.raises(Conflict, match="last researcher"):
        people.deactivate(cast.project, cast.bob.number)
    people.add_member(cast.project, "mallory", Role.RESEARCHER)
    people.deactivate(cast.project, cast.bob.number)
    assert not Membership.objects.get(pk=cast.bob.pk).active


def test_a_researcher_has_seen_votes_and_scores_and_never_votes_again(cast: make.Cast) -> None:
    people.add_member(cast.project, "mallory", Role.RESEARCHER)
    for role in (Role.ANNOTATOR, Role.ADJUDICATOR):
        with pytest.raises(Conflict, match="no longer vote"):
            people.change_role(cast.project, cast.bob.number, role)


def test_a_number_of_another_project_or_of_a_rater_is_nobody(cast: make.Cast) -> None:
    Membership.objects.create(project=cast.project, role=Role.RATER, rater="worker 1", number=6)
    for number in (6, 99):
        with pytest.raises(Missing):
            people.deactivate(cast.project, number)


def test_the_page_adds_someone_and_shows_the_password_once(cast: make.Cast, sign_in: object) -> None:
    bob = sign_in(cast.bob)
    answer = bob.post("/p/study/people/", {"username": "frank", "role": "annotator", "account": "new"})
    shown = re.search(r"<code>([\w-]{23})</code>", answer.content.decode())
    assert shown is not None
    assert "no-store" in answer["Cache-Control"]
    assert User.objects.get(username="frank").check_password(shown[1])
    assert shown[1] not in bob.get("/p/study/people/").content.decode()


def test_the_page_keeps_what_was_typed_when_it_says_no(cast: make.Cast, sign_in: object) -> None:
    answer = sign_in(cast.bob).post("/p/study/people/", {"username": "frnak", "role": "adjudicator", "account": "there"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="frnak"' in page
    assert '<option value="adjudicator" selected>' in page


def test_the_page_changes_roles_and_ends_and_begins_a_part(cast: make.Cast, sign_in: object) -> None:
    bob, page = sign_in(cast.bob), f"/p/study/people/{cast.dave.number}/"
    bob.post(page, {"do": "role", "role": "adjudicator"})
    bob.post(page, {"do": "leave"})
    dave = Membership.objects.get(pk=cast.dave.pk)
    assert (dave.role, dave.active) == (Role.ADJUDICATOR, False)
    bob.post(page, {"do": "return"})
    assert Membership.objects.get(pk=cast.dave.pk).active
    assert bob.post(page, {"do": "dance"}).status_code == 422
    assert bob.post(f"/p/study/people/{cast.bob.number}/", {"do": "leave"}).status_code == 422


def test_the_trail_says_who_changed_what_and_where(cast: make.Cast, sign_in: object) -> None:
    sign_in(cast.bob).post(f"/p/study/people/{cast.dave.number}/", {"do": "role", "role": "adjudicator"})
    [newest] = [entry for entry in audit.trail(cast.project).entries if entry.verb == "changed"]
    assert (newest.who, newest.sentence) == ("bob", "changed the role of Annotator 4 from annotator to adjudicator")
    assert newest.path == f"/p/study/people/{cast.dave.number}/"
    assert newest.changes == [audit.Change("role", "annotator", "adjudicator")]


def test_the_trail_names_the_owner_of_a_token(cast: make.Cast) -> None:
    _, token = people.new_token(cast.bob.user)
    program = Client(headers={"Authorization": f"Token {token}"})
    path = f"/api/v1/projects/study/members/{cast.dave.number}/"
    assert program.patch(path, '{"active": false}', content_type="application/json").status_code == 200
    [newest] = [entry for entry in audit.trail(cast.project).entries if entry.verb == "changed"]
    assert (newest.who, newest.path) == ("bob", path)


def test_the_trail_of_one_project_has_nothing_of_another(cast: make.Cast) -> None:
    make.make_question(cast.mallory.project, "elsewhere-only")
    assert not [entry for entry in audit.trail(cast.project).entries if "Elsewhere" in entry.what]
    assert [entry for entry in audit.trail(cast.mallory.project).entries if "Elsewhere-Only" in entry.what]


def test_the_trail_pages_through_everything_once(cast: make.Cast) -> None:
    for number in range(130):
        Project.objects.filter(pk=cast.project.pk).update(description=f"draft {number}")
    seen, mark = [], ""
    while True:
        page = audit.trail(cast.project, before=mark)
        seen += page.entries
        if not (mark := page.older):
            break
    assert len([entry for entry in seen if entry.verb == "changed" and entry.what == "project Study"]) == 130
    assert len(seen) == 130 + 1 + 5  # the project made, and its five members


def test_the_trail_says_that_a_comment_changed_and_not_into_what(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    make.make_tasks(question, 1)
    work = queue.next_work(cast.alice, question)
    vote = queue.cast_vote(cast.alice, work[0].token, choice="yes", comment="private words").vote_id
    queue.revise_vote(cast.alice, vote, choice="no", comment="other words")
    [entry] = audit.trail(cast.project, "votes").entries
    assert entry.verb == "revised"
    assert audit.Change("choice", "Yes", "No") in entry.changes
    assert audit.Change("comment", None, None) in entry.changes


@pytest.mark.parametrize("query", ["?before=nonsense", "?kind=secrets", "?before=2026-01-01T00:00:00Z,x,y"])
def test_a_place_in_the_trail_that_is_none_is_refused(cast: make.Cast, sign_in: object, query: str) -> None:
    assert sign_in(cast.bob).get(f"/p/study/audit/{query}", headers={"Accept": "application/json"}).status_code == 400


def test_whoever_may_begins_a_project_and_is_its_researcher(cast: make.Cast) -> None:
    staff = User.objects.create_user("stan", is_staff=True)
    browser = Client()
    browser.force_login(staff)
    browser.post("/projects/new/", {"slug": "tea", "name": "Tea"})
    assert Membership.objects.get(project__slug="tea").role == Role.RESEARCHER
    again = browser.post("/projects/new/", {"slug": "tea", "name": "Tea"})
    assert again.status_code == 422
    assert browser.post("/projects/new/", {"slug": "Not a slug", "name": "Tea"}).status_code == 422
    assert browser.post("/projects/new/", {"slug": "", "name": "Tea, again"}).headers["Location"] == "/p/tea-again/"
    assert browser.post("/projects/new/", {"slug": "", "name": "茶"}).status_code == 422


def test_a_token_is_shown_once_works_and_ends_at_once(cast: make.Cast, sign_in: object) -> None:
    alice = sign_in(cast.alice)
    page = alice.post("/account/tokens/")
    shown = re.search(r"<code>([0-9a-f]{64})</code>", page.content.decode())
    assert shown is not None
    assert shown[1] not in alice.get("/account/tokens/").content.decode()
    program = Client(headers={"Authorization": f"Token {shown[1]}"})
    assert program.get("/api/v1/projects/").status_code == 200
    alice.post(f"/account/tokens/{shown[1][:15]}/revoke/")
    assert program.get("/api/v1/projects/").status_code == 401


def test_a_token_ends_by_itself_after_a_year(cast: make.Cast) -> None:
    token, text = people.new_token(cast.alice.user)
    program = Client(headers={"Authorization": f"Token {text}"})
    assert timedelta(days=364) < token.expiry - token.created <= timedelta(days=366)
    assert program.get("/api/v1/tokens/").json()[0]["ends_at"].startswith(str(token.expiry.year))
    AuthToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    assert program.get("/api/v1/projects/").status_code == 401


def test_nobody_ends_someone_elses_token(cast: make.Cast, sign_in: object) -> None:
    token, _ = people.new_token(cast.bob.user)
    assert sign_in(cast.alice).post(f"/account/tokens/{token.token_key}/revoke/").status_code == 404
    assert people.tokens(cast.bob.user).count() == 1


def test_an_account_that_is_switched_off_has_no_working_token(cast: make.Cast) -> None:
    _, token = people.new_token(cast.alice.user)
    User.objects.filter(pk=cast.alice.user.pk).update(is_active=False)
    assert Client(headers={"Authorization": f"Token {token}"}).get("/api/v1/projects/").status_code == 401


def test_the_command_line_makes_accounts_projects_members_and_tokens(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("user", "add", "frank")
    call_command("project", "add", "tea", "Tea")
    call_command("member", "add", "tea", "frank", "researcher")
    capsys.readouterr()
    call_command("token", "frank")
    token = capsys.readouterr().out.strip()
    program = Client(headers={"Authorization": f"Token {token}"})
    assert program.get("/api/v1/projects/").json()["results"][0]["your_role"] == "researcher"


@pytest.mark.parametrize(
    "words",
    [("user", "add", "a b"), ("project", "add", "Bad Slug", "x"), ("member", "add", "none", "frank", "researcher"), ("token", "nobody")],
)
def test_the_command_line_says_what_is_wrong(db: None, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        call_command(*words)


def test_a_name_that_cannot_be_stored_is_refused_in_words(cast: make.Cast, sign_in: object) -> None:
    bob = sign_in(cast.bob)
    for account in ("there", "new"):
        assert bob.post("/p/study/people/", {"username": "a\0b", "role": "annotator", "account": account}).status_code == 422
    with pytest.raises(Invalid):
        people.add_project("tea", "Tea\0")


def test_the_trail_says_each_thing_in_a_sentence_and_by_whom(cast: make.Cast, sign_in: object) -> None:
    bob, question = sign_in(cast.bob), make.make_question(cast.project)
    make.make_items(cast.project, 1)
    bob.post("/p/study/questions/toxicity/known/", {"do": "lines", "lines": "t0, yes", "use": "check"})
    one = KnownAnswer.objects.get()
    bob.post(f"/p/study/questions/toxicity/known/{one.pk}/", {"do": "remove"})
    Pause.objects.create(question=question, member=cast.alice, answers=20, correct=11, floor=0.8)
    bob.post(f"/p/study/questions/toxicity/pauses/{cast.alice.number}/lift/")
    bob.post(f"/p/study/people/{cast.dave.number}/", {"do": "leave"})
    page = bob.get("/p/study/audit/?kind=people").content.decode()
    said = [(entry.who, entry.sentence) for entry in audit.trail(cast.project).entries]
    assert set(said) >= {
        ("bob", "ended the part of Annotator 4"),
        ("bob", "let Annotator 1 go on with Toxicity"),
        ("Assay itself", "paused Annotator 1 on Toxicity: 11 of 20 known answers right, below 80%"),
        ("bob", "took a known answer of Toxicity out"),
        ("bob", "marked a known answer of Toxicity, as a check"),
    }
    assert "ended the part of Annotator 4" in page
    assert "known answer of" not in page  # that is of questions
    assert {entry.who for entry in audit.trail(cast.project, who=cast.bob).entries} == {"bob"}
    assert audit.trail(cast.project, who=cast.alice).entries == []
    assert bob.get("/p/study/audit/?kind=settings&who=99").status_code == 404


def test_the_name_of_who_left_is_nowhere_any_more(cast: make.Cast, sign_in: object) -> None:
    """A researcher who did what researchers do, and left: all pages that told of them say the pseudonym."""
    people.add_member(cast.project, "mallory", Role.RESEARCHER)
    mallory = sign_in(cast.mallory)
    question = make.make_question(cast.project)
    make.make_items(cast.project, 4)
    mallory.post(
        "/p/study/samples/new/", {"name": "few", "size": "2", "kind": "text", "items": "all", "allocation": "proportional", "seed": "1"}
    )
    mallory.post("/p/study/questions/toxicity/guideline/", {"body": "Judge anew.", "after": "1"})
    mallory.post("/p/study/questions/toxicity/known/", {"do": "lines", "lines": "t0, yes", "use": "practice"})
    assert (question.guidelines.count(), Sample.objects.count()) == (2, 1)
    pages = [
        "people/", "people/6/", "audit/", "audit/?who=6", "samples/", f"samples/{Sample.objects.get().pk}/", "questions/toxicity/",
        "questions/toxicity/known/", "", "care/", "imports/", "comparisons/", "runs/", "scorers/",
    ]  # fmt: skip
    bob = sign_in(cast.bob)
    assert "mallory" in bob.get("/p/study/samples/").content.decode()
    bob.post("/p/study/people/6/", {"do": "leave"})
    told = [address for address in pages if "mallory" in bob.get(f"/p/study/{address}").content.decode()]
    assert told == []
    assert "Annotator 6" in bob.get("/p/study/samples/").content.decode()
    program = Program(cast.bob)
    assert "mallory" not in program.get("members/").content.decode() + program.get("questions/toxicity/guidelines/").content.decode()


def test_a_forgotten_account_has_no_name_password_session_or_token(cast: make.Cast, sign_in: object) -> None:
    dave = cast.dave.user
    User.objects.filter(pk=dave.pk).update(email="dave@example.org", first_name="Dave")
    User.objects.filter(pk=dave.pk).update(last_name="D.")  # the trail has his name and e-mail by now
    _, token = people.new_token(dave)
    signed_in = sign_in(cast.dave)
    assert signed_in.get("/account/").status_code == 200
    with pytest.raises(Conflict, match="still in a project"):
        people.forget(dave)
    people.deactivate(cast.project, cast.dave.number)
    people.forget(dave)
    dave.refresh_from_db()
    assert (dave.username, dave.email, dave.first_name, dave.has_usable_password(), dave.is_active) == (
        f"forgotten-{dave.pk}",
        "",
        "",
        False,
        False,
    )
    assert signed_in.get("/account/").status_code == 302
    assert not Session.objects.exists()
    assert Client(headers={"Authorization": f"Token {token}"}).get("/api/v1/projects/").status_code == 401
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM annotation_userevent AS event WHERE event::text ~* 'dave'")
        assert cursor.fetchone() == (0,)
    assert Membership.objects.get(pk=cast.dave.pk).pseudonym == "Annotator 4"


def test_a_researcher_forgets_only_whom_nobody_else_knows(cast: make.Cast) -> None:
    people.add_member(cast.project, "mallory", Role.ANNOTATOR)  # of another project, too
    people.deactivate(cast.project, 6)
    with pytest.raises(Conflict, match="in no other project"):
        people.forget_member(cast.project, 6)
    User.objects.filter(username="dave").update(is_staff=True)
    people.deactivate(cast.project, cast.dave.number)
    with pytest.raises(Conflict):
        people.forget_member(cast.project, cast.dave.number)
    people.deactivate(cast.project, cast.erin.number)
    people.forget_member(cast.project, cast.erin.number)
    assert not User.objects.filter(username="erin").exists()


def test_the_command_line_lists_changes_and_ends_parts_and_forgets_an_account(cast: make.Cast, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("member", "role", "study", "4", "adjudicator")
    call_command("member", "leave", "study", "5", "--json")
    assert capsys.readouterr().out.splitlines()[-1] == (
        '{"project": "study", "username": null, "role": "annotator", "number": 5, "active": false}'
    )
    call_command("member", "list", "study")
    assert capsys.readouterr().out.splitlines()[3:] == ["dave is Adjudicator in Study, as Annotator 4.", "Annotator 5 has left Study."]
    call_command("user", "forget", "erin")
    assert not User.objects.filter(username="erin").exists()
    for words in (
        ("member", "role", "study", "4"),
        ("member", "leave", "study", "dave"),
        ("user", "forget", "nobody"),
        ("user", "forget", "dave"),
    ):
        with pytest.raises(CommandError):
            call_command(*words)
