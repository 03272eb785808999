"""Projects, members, tokens and tasks over the API."""

from annotation import queue
from annotation.models import Membership, User
from tests import cast as make
from tests.annotation.api import Program


def test_a_program_sees_its_own_projects(cast: make.Cast) -> None:
    alice = Program(cast.alice)
    [project] = alice.client.get("/api/v1/projects/").json()["results"]
    assert (project["slug"], project["your_role"], project["your_number"]) == ("study", "annotator", 1)
    assert alice.get("").json() == project


def test_staff_begin_projects_and_others_do_not(cast: make.Cast) -> None:
    body = {"slug": "tea", "name": "Tea"}
    bob = Program(cast.bob)
    assert bob.client.post("/api/v1/projects/", body, content_type="application/json").status_code == 403
    User.objects.filter(username="bob").update(is_staff=True)
    made = bob.client.post("/api/v1/projects/", body, content_type="application/json")
    assert (made.status_code, made.json()["your_role"]) == (201, "researcher")
    again = bob.client.post("/api/v1/projects/", body, content_type="application/json")
    assert again.json()["fields"].keys() == {"slug"}


def test_a_researcher_adds_changes_and_lets_go(cast: make.Cast) -> None:
    bob = Program(cast.bob)
    added = bob.post("members/", username="frank", role="annotator", new_account=True)
    assert added.status_code == 201
    assert User.objects.get(username="frank").check_password(added.json()["password"])
    number = added.json()["number"]
    changed = bob.send("PATCH", f"members/{number}/", {"role": "adjudicator", "active": False}).json()
    assert (changed["username"], changed["role"], changed["active"]) == (None, "adjudicator", False)
    assert bob.send("PATCH", f"members/{cast.bob.number}/", {"active": False}).json()["code"] == "last_researcher"
    assert bob.send("PATCH", "members/99/", {"active": False}).status_code == 404


def test_members_come_by_pages(cast: make.Cast) -> None:
    bob = Program(cast.bob)
    first = bob.get("members/", page_size=3).json()
    second = bob.client.get(first["next"]).json()
    assert [member["number"] for member in first["results"] + second["results"]] == [1, 2, 3, 4, 5]
    assert second["next"] is None


def test_tokens_are_made_listed_and_revoked(cast: make.Cast) -> None:
    client = Program(cast.alice).client
    made = client.post("/api/v1/tokens/").json()
    listed = client.get("/api/v1/tokens/").json()
    assert made["key"] in [token["key"] for token in listed]
    assert made["token"] not in str(listed)
    assert client.delete(f"/api/v1/tokens/{made['key']}/").status_code == 204
    assert client.delete(f"/api/v1/tokens/{made['key']}/").status_code == 404


def test_tasks_show_votes_by_pseudonym_and_the_ground_truth(cast: make.Cast) -> None:
    question = make.make_question(cast.project, votes=1)
    bob = Program(cast.bob)
    items = make.make_items(cast.project, 3)
    made = bob.post("questions/toxicity/tasks/", item_ids=[item.pk for item in items[:2]])
    assert made.json() == {"created": 2}
    assert bob.post("questions/toxicity/tasks/", item_ids=[items[1].pk, items[2].pk]).json() == {"created": 1}
    work = queue.next_work(cast.alice, question)
    queue.cast_vote(cast.alice, work[0].token, choice="yes", comment="Plain.")
    [task] = bob.get("questions/toxicity/tasks/", state="agreed").json()["results"]
    [vote] = task["votes"]
    assert (vote["annotator"], vote["choice"], vote["comment"], vote["guideline_version"]) == (cast.alice.number, "yes", "Plain.", 1)
    assert (task["ground_truth"]["choice"], task["ground_truth"]["source"]) == ("yes", "unanimous")
    open_tasks = bob.get("questions/toxicity/tasks/", state="open").json()["results"]
    assert [task["ground_truth"] for task in open_tasks] == [None, None]
    assert "alice" not in str(open_tasks) + str(task)
    assert bob.get("questions/toxicity/tasks/", state="lost").status_code == 400


def test_tasks_are_read_in_a_fixed_number_of_statements(cast: make.Cast, django_assert_max_num_queries: object) -> None:
    question = make.make_question(cast.project, votes=1)
    make.make_tasks(question, 20)
    bob = Program(cast.bob)
    with django_assert_max_num_queries(9):
        assert len(bob.get("questions/toxicity/tasks/").json()["results"]) == 20


def test_nobody_takes_an_item_of_another_project(cast: make.Cast) -> None:
    make.make_question(cast.project)
    [theirs] = make.make_items(cast.mallory.project, 1)
    assert Program(cast.bob).post("questions/toxicity/tasks/", item_ids=[theirs.pk]).json() == {"created": 0}
    assert Membership.objects.filter(user__username="mallory").count() == 1
