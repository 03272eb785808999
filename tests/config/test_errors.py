"""What is said when something is not there, not allowed, or broken: a page in the look, or JSON for a program."""

from unittest.mock import patch

import psycopg
import pytest
from django.core.cache import cache
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from redis import ConnectionError as RedisGone

from config.refusals import refusal
from tests.cast import Cast


@pytest.fixture
def alice(cast: Cast) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(cast.alice.user)
    return client


def test_an_unknown_page_is_a_page(alice: Client) -> None:
    answer = alice.get("/no-such-page/")
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.content.decode()
    assert "default-src 'none'" in answer["Content-Security-Policy"]


def test_a_fault_of_ours_is_said_without_what_broke(alice: Client) -> None:
    with patch("annotation.access.member", side_effect=ValueError("inner words")):
        page = alice.get(reverse("questions", args=["study"]))
        answer = alice.get("/api/v1/projects/study/questions/")
    assert [page.status_code, answer.status_code] == [500, 500]
    assert "Something broke on our side" in page.content.decode()
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "fault"
    assert b"inner words" not in page.content + answer.content


def test_health_needs_no_sign_in(db: None) -> None:
    answer = Client().get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"database": "ok", "redis": "ok"}
    assert "no-store" in answer["Cache-Control"]


def test_health_says_which_server_does_not_answer(db: None) -> None:
    with patch.object(cache, "get", side_effect=RedisGone("gone")):
        answer = Client().get("/healthz")
    assert answer.status_code == 503
    assert answer.json() == {"database": "ok", "redis": "no answer"}
    with patch("config.views.connection.cursor", side_effect=OperationalError("gone")):
        assert Client().get("/healthz").json()["database"] == "no answer"


def test_two_changes_that_meet_end_as_a_refusal_that_may_be_sent_again() -> None:
    wrapped = OperationalError("deadlock detected")
    wrapped.__cause__ = psycopg.errors.DeadlockDetected()
    for error in (psycopg.errors.DeadlockDetected(), wrapped):
        refused = refusal(error)
        assert refused is not None
        assert (refused.status, refused.code) == (503, "busy")
    assert refusal(OperationalError("the server is gone")) is None
