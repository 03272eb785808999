"""The demo project."""

import json
import time
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from annotation import disputes, gate, queue
from annotation.models import (
    Abstention,
    Adjudication,
    Check,
    Exposure,
    Flag,
    GroundTruth,
    Lease,
    Membership,
    Pause,
    Project,
    Question,
    Task,
    User,
    Vote,
)
from curation import comparing, forecast
from curation.demo import scenes
from curation.demo.loader import read_texts
from curation.models import Comparison, Sample
from scoring.models import Score, ScoringRun

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ASSAY_DEMO_PASSWORD", "geese-park-badly-2025")
    return "geese-park-badly-2025"


def demo(*options: str) -> dict[str, object]:
    out = StringIO()
    call_command("demo", "--json", *options, stdout=out)
    return json.loads(out.getvalue())  # type: ignore[no-any-return]


def everything() -> dict[str, int]:
    """Rows in each of our tables."""
    return {
        model._meta.label: model._default_manager.count()
        for model in apps.get_models()
        if model._meta.app_label in ("annotation", "scoring", "curation")
    }


def rows(model: type) -> list[tuple[object, ...]]:
    return list(model.objects.order_by("pk").values_list())  # type: ignore[attr-defined]


def test_there_is_work_for_everyone_and_a_second_time_changes_nothing(password: str) -> None:
    assert demo()["made"] is True
    project = Project.objects.get(slug="demo")
    toxicity, naturalness = Question.objects.filter(project=project).order_by("pk")

    # 200 texts, 160 of them variants with their seed and recipe.
    assert project.items.count() == 200
    assert project.items.exclude(origin=None).count() == 160
    assert project.items.filter(origin=None, metadata__recipe="seed").count() == 40
    assert (
        project.items.exclude(origin=None).exclude(metadata__has_keys=["transformation", "constraints", "target_model", "split"]).count()
        == 0
    )
    assert not any("expect" in item.metadata for item in project.items.all())
    assert Sample.objects.get().size == 120

    # Three fifths of all votes, and every state a task can come to.
    assert (toxicity.tasks.count(), naturalness.tasks.count()) == (200, 120)
    assert (toxicity.votes.count(), naturalness.votes.count()) == (360, 216)
    for question in (toxicity, naturalness):
        assert {"open", "agreed", "disputed", "adjudicated"} == set(question.tasks.values_list("state", flat=True))
    assert GroundTruth.objects.count() == Task.objects.filter(state__in=["agreed", "adjudicated"]).count()
    assert Adjudication.objects.filter(reason="guideline_gap").exists()
    assert Vote.objects.filter(elapsed_ms=None).count() == 0
    assert apps.get_model("annotation", "VoteEvent").objects.count() == 0  # dated back, but nobody revised them
    assert Lease.objects.filter(lapsed=False).count() == 0

    # Nobody can sign in as a simulated rater; the four can, with the password given.
    assert Counter(User.objects.filter(is_active=False).values_list("username", flat=True)) == Counter(
        f"demo-rater-{n}" for n in range(1, 8)
    )
    for name in ("alice", "dave", "charlie", "bob"):
        client = Client()
        client.post("/sign-in/", {"login": name, "password": password})
        assert client.session.get("_auth_user_id") == str(User.objects.get(username=name).pk)

    # The scorer has scored all, and the comparison opens.
    assert (ScoringRun.objects.get().state, Score.objects.count()) == ("done", 200)
    at = comparing.result(Comparison.objects.get()).decisions
    assert at.tp + at.fp + at.fn + at.tn == GroundTruth.objects.filter(question=toxicity).count()

    the_second_study_has_something_for_every_page_to_show()

    # A second time.
    before, votes, truths = everything(), rows(Vote), rows(GroundTruth)
    began = time.perf_counter()
    assert demo()["made"] is False
    assert time.perf_counter() - began < 3
    assert (everything(), rows(Vote), rows(GroundTruth)) == (before, votes, truths)

    # alice, dave and charlie find work at once.
    for name in ("alice", "dave"):
        member = Membership.objects.get(project=project, user__username=name)
        assert all(len(queue.next_work(member, question)) == 2 for question in (toxicity, naturalness))
    charlie = Membership.objects.get(project=project, user__username="charlie")
    assert all(disputes.next_dispute(charlie, question) for question in (toxicity, naturalness))


def the_second_study_has_something_for_every_page_to_show() -> None:
    project = Project.objects.get(slug="demo-images")
    image_harm, prompt_safety = Question.objects.filter(project=project).order_by("pk")
    assert Counter(project.items.values_list("kind", flat=True)) == {"image": 120, "text": 30}
    assert not project.items.filter(kind="image", media=None).exists()
    assert not any(set(item.metadata) - {"style", "scene", "generator", "picture_note"} for item in project.items.all())
    assert prompt_safety.tasks.count() == 30
    for question in (image_harm, prompt_safety):
        states = set(question.tasks.values_list("state", flat=True))
        assert {"open", "agreed", "disputed"} <= states
    assert image_harm.tasks.filter(state="adjudicated").count() == 3
    assert image_harm.known_answers.filter(practice=True).count() == 3
    # Who guesses is paused, and nobody else is.
    pause = Pause.objects.get(lifted_at=None)
    assert pause.member.user is not None
    assert (pause.question, pause.member.user.username) == (image_harm, "demo-rater-7")
    assert Check.objects.filter(question=image_harm, practice=False).count() > 100
    assert Flag.objects.filter(task__question=image_harm).count() == 2
    assert Abstention.objects.exists()
    assert Exposure.objects.exists()
    assert forecast.standing(image_harm).forecast.at is not None
    # alice begins with practice; dave reads the content warning first.
    alice, dave = (Membership.objects.get(project=project, user__username=name) for name in ("alice", "dave"))
    assert [work.practice for work in queue.next_work(alice, image_harm)] == [True, True]
    stop = gate.stop_of(dave, image_harm)
    assert stop is not None
    assert stop.code == "consent"


def test_every_picture_of_the_demo_is_another_one_and_shows_what_it_should() -> None:
    drawn = list(scenes.scenes())
    assert len({scenes.draw(scene) for scene in drawn[:40]}) == 40
    assert len({scene.prompt for scene in drawn}) == 30
    assert {scene.prompt_id: scene.prompt for scene in drawn}.keys() == {f"prompt-{n:02}" for n in range(30)}
    # Most are safe; some show a harm that nobody asked for, some do not show what was asked for.
    assert 20 < sum(bool(scene.harm) for scene in drawn) < 50
    assert sum(bool(scene.harm and not scene.asked) for scene in drawn) > 10
    assert any(scene.asked and not scene.harm for scene in drawn)


def test_fresh_archives_what_was_done_and_begins_anew() -> None:
    demo()
    old = Project.objects.get(slug="demo")
    votes = Vote.objects.count()
    assert demo("--fresh")["made"] is True
    old.refresh_from_db()
    assert old.slug.startswith("demo-")
    assert old.archived_at is not None
    assert Vote.objects.count() == 2 * votes
    assert User.objects.filter(username="alice").count() == 1


def test_without_a_password_given_one_is_made_once_and_kept_for_its_owner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ASSAY_DEMO_PASSWORD")
    monkeypatch.setattr(settings, "DATA", tmp_path)
    first = demo()["sign_ins"]
    assert first == demo()["sign_ins"]
    kept = tmp_path / "demo_password"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert {person["password"] for person in first} == {kept.read_text()}  # type: ignore[attr-defined]
    assert len(kept.read_text()) >= 16


def test_an_account_that_was_there_keeps_its_password(password: str) -> None:
    User.objects.create_user("alice", password="one-of-her-own-choice")
    people = {person["username"]: person["password"] for person in demo()["sign_ins"]}  # type: ignore[attr-defined]
    assert people == {"bob": password, "alice": None, "dave": password, "charlie": password}
    assert User.objects.get(username="alice").check_password("one-of-her-own-choice")


def test_the_texts_are_ours_mild_and_varied() -> None:
    texts = read_texts()
    seeds = {text.id: text for text in texts if text.seed is None}
    variants = [text for text in texts if text.seed]
    assert Counter(text.expect["toxicity"] for text in seeds.values()) == {"yes": 20, "no": 20}
    assert all(text.seed in seeds for text in variants)
    assert all((text.text == seeds[text.seed or ""].text) == (text.recipe == "untouched") for text in variants)
    assert {text.recipe for text in variants} == {"char-swap", "char-insert", "lookalike", "synonym", "word-drop", "untouched"}
    assert {text.expect["naturalness"] for text in texts} == {"yes", "no", "unsure"}
