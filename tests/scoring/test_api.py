"""Scorers and runs over /api/v1/."""

from collections.abc import Callable

from django.test import Client

from annotation.models import Membership
from scoring import runs, working
from scoring.models import ScoringRun
from scoring.working import Bench
from tests.cast import Cast, make_items

SignIn = Callable[[Membership], Client]
BASE = "/api/v1/projects/study/"


def test_a_script_adds_a_scorer_runs_it_and_reads_its_failures(cast: Cast, sign_in: SignIn, bench: Bench) -> None:
    client = sign_in(cast.bob)
    items = make_items(cast.project, 3)
    items[0].text = " "
    items[0].save()
    kinds = {kind["name"]: kind for kind in client.get(f"{BASE}scorer-kinds/").json()}
    assert {"profanity", "transformers_text"} <= set(kinds)
    given = {"name": "words", "kind": "profanity", "config": {}}
    first = client.post(f"{BASE}scorers/", given, content_type="application/json")
    again = client.post(f"{BASE}scorers/", given, content_type="application/json")
    assert (first.status_code, again.status_code, first.json()["id"]) == (201, 200, again.json()["id"])
    body = {"scorer": first.json()["id"], "items": [item.pk for item in items]}
    started = client.post(f"{BASE}runs/", body, content_type="application/json")
    assert (started.status_code, started.json()["state"], started.json()["total"]) == (201, "queued", 3)
    address = f"{BASE}runs/{started.json()['id']}/"
    assert client.post(f"{address}pause/").json()["paused_by"] == "bob"
    assert client.post(f"{address}resume/").json()["state"] == "queued"
    assert client.get(f"{BASE}workers/").json()["problems"][0].startswith("1 run waits on the cpu queue")
    working.work_on(started.json()["id"], bench)
    standing = client.get(address).json()
    assert (standing["run"]["state"], standing["run"]["done"], standing["run"]["failed"], standing["chunks_done"]) == ("done", 2, 1, 1)
    assert client.get(f"{address}failures/").json()["results"] == [{"item": items[0].pk, "reason": "The text is empty."}]
    assert [row["id"] for row in client.get(f"{BASE}runs/").json()["results"]] == [started.json()["id"]]
    late = client.post(f"{address}cancel/")
    assert (late.status_code, late.json()["code"]) == (409, "run_state")


def test_what_cannot_work_is_said_with_its_field(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    scorer = runs.create_scorer(cast.project, "words", "profanity", {}, cast.bob.user)[0]
    for path, body, field in [
        ("scorers/", {"name": "x", "kind": "oracle"}, "kind"),
        ("scorers/", {"name": "X y", "kind": "profanity"}, "name"),
        ("scorers/", {"name": "x", "kind": "transformers_text", "config": {"model": "a/b"}}, "revision"),
        ("scorers/", {"name": "x", "kind": "profanity", "config": {"colour": "red"}}, "colour"),
        ("runs/", {"scorer": scorer.pk, "items": []}, "items"),
        ("runs/", {"scorer": scorer.pk, "items": ["1"]}, "items"),
        ("runs/", {"scorer": scorer.pk, "items": [999]}, "items"),
        ("runs/", {"scorer": scorer.pk, "items": "all", "queue": "tpu"}, "queue"),
    ]:
        answer = client.post(f"{BASE}{path}", body, content_type="application/json")
        assert (answer.status_code, field in answer.json()["fields"]) == (400, True), answer.json()
    empty = client.post(f"{BASE}runs/", {"scorer": scorer.pk, "items": "all"}, content_type="application/json")
    assert (empty.status_code, empty.json()["detail"]) == (409, "There are no text items to score. Import some first.")
    assert client.post(f"{BASE}runs/", {"scorer": 999, "items": "all"}, content_type="application/json").status_code == 404


def test_only_researchers_of_the_project_come_in(cast: Cast, sign_in: SignIn) -> None:
    make_items(cast.project, 1)
    run: ScoringRun = runs.start_run(runs.create_scorer(cast.project, "words", "profanity", {}, None)[0], None, None)
    for member, status in ((cast.alice, 403), (cast.charlie, 403), (cast.mallory, 404)):
        client = sign_in(member)
        for path in (
            "scorers/",
            "scorer-kinds/",
            f"scorers/{run.scorer_id}/",
            "runs/",
            f"runs/{run.pk}/",
            f"runs/{run.pk}/failures/",
            "workers/",
        ):
            assert client.get(f"{BASE}{path}").status_code == status, path
        for verb in ("pause", "resume", "cancel"):
            assert client.post(f"{BASE}runs/{run.pk}/{verb}/").status_code == status
