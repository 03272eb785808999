"""What all of /api/v1/ shares: one shape of error for everything, paging, tokens, a complete schema, and its pages."""

import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from annotation import people
from tests import cast as make
from tests.annotation.api import Program

PROBLEM = {"type", "title", "status", "detail", "code"}


@pytest.fixture
def alice(cast: make.Cast) -> Program:
    make.make_question(cast.project)
    return Program(cast.alice)


def raw(program: Program, path: str, body: bytes | str, content_type: str = "application/json", method: str = "POST") -> object:
    return program.client.generic(method, program.base + path, body, content_type)


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "status"),
    [
        ("POST", "votes/", b"{", "application/json", 400),
        ("POST", "votes/", b"\xff\xfe", "application/json", 400),
        ("POST", "votes/", b"[]", "application/json", 400),
        ("POST", "votes/", b'"yes"', "application/json", 400),
        ("POST", "votes/", b"[" * 100_000, "application/json", 400),
        ("POST", "votes/", b'{"choice": "\\u0000"}', "application/json", 400),
        ("POST", "votes/", b'{"\\u0000": 1}', "application/json", 400),
        ("POST", "votes/", b'{"choice": "\\ud800"}', "application/json", 400),
        ("POST", "votes/", b'{"elapsed_ms": NaN}', "application/json", 400),
        ("POST", "votes/", b'{"elapsed_ms": 1e999}', "application/json", 400),
        ("POST", "flags/", b'{"task_id": 99999999999999999999, "reason": "wrong"}', "application/json", 400),
        ("POST", "votes/", b'{"choice": "' + b"x" * 3_000_000 + b'"}', "application/json", 400),
        ("POST", "votes/", b"choice=yes", "application/x-www-form-urlencoded", 415),
        ("POST", "votes/", b"<vote/>", "application/xml", 415),
        ("POST", "votes/", b"", "multipart/form-data", 400),
        ("PUT", "votes/", b"{}", "application/json", 405),
        ("GET", "votes/99999999999999999999/", b"", "application/json", 404),
        ("GET", "votes/0/", b"", "application/json", 404),
        ("GET", "questions/nothing/progress/", b"", "application/json", 404),
        ("GET", "answers/?limit=0", b"", "application/json", 400),
        ("GET", "answers/?limit=ten", b"", "application/json", 400),
        ("GET", "answers/?question=%00", b"", "application/json", 400),
        ("GET", "../?cursor=cD1hYmM%3D", b"", "application/json", 404),
        ("GET", "members/", b"", "application/json", 403),
        ("GET", "no/such/address/", b"", "application/json", 404),
        ("GET", "answers", b"", "application/json", 404),
    ],
)
def test_every_refusal_has_the_one_shape(alice: Program, *, method: str, path: str, body: bytes, content_type: str, status: int) -> None:
    answer = raw(alice, path, body, content_type, method)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    said = json.loads(answer.content)
    assert said.keys() - {"fields"} == PROBLEM
    assert said["status"] == status
    assert said["detail"]


def test_a_type_that_is_not_offered_is_not_acceptable(alice: Program) -> None:
    answer = alice.client.get("/api/v1/projects/", headers={"Accept": "application/xml"})
    assert (answer.status_code, answer["Content-Type"]) == (406, "application/problem+json")


@pytest.mark.parametrize("header", ["", "Token", "Token x y", "Token wrong", "Token " + "0" * 64, "Bearer abc", "Token \xff\xfe"])
def test_a_token_that_is_none_is_not_signed_in(db: None, header: str) -> None:
    answer = Client(headers={"Authorization": header} if header else {}).get("/api/v1/projects/")
    assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
    assert answer["WWW-Authenticate"] == "Token"


def test_a_session_needs_the_csrf_token_and_a_program_does_not(cast: make.Cast) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(cast.alice.user)
    refused = browser.post("/api/v1/tokens/")
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    _, token = people.new_token(cast.alice.user)
    program = Client(enforce_csrf_checks=True, headers={"Authorization": f"Token {token}"})
    assert program.post("/api/v1/tokens/").status_code == 201


def test_tokens_are_stored_hashed(cast: make.Cast) -> None:
    row, token = people.new_token(cast.alice.user)
    assert len(row.digest) == 128
    assert token not in (row.digest, row.token_key)
    assert token.startswith(row.token_key)


def test_a_cursor_that_is_none_is_refused(cast: make.Cast) -> None:
    assert Program(cast.bob).get("members/", cursor="nonsense").status_code == 404


def test_a_page_is_never_longer_than_a_thousand(cast: make.Cast) -> None:
    assert Program(cast.bob).get("members/", page_size=10**9).status_code == 200


def test_the_schema_is_complete_and_without_a_warning(db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yaml"))
    assert capsys.readouterr().err == ""


def test_every_operation_says_what_it_does_and_how_it_refuses(db: None) -> None:
    schema = Client().get("/api/v1/schema/", headers={"Accept": "application/json"}).json()
    untold = [
        f"{method} {path}"
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
        if not operation.get("description") or not operation.get("tags") or "default" not in operation["responses"]
    ]
    assert untold == []
    assert schema["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail", "code"]


def test_the_schema_has_every_address_of_the_api(db: None) -> None:
    from tests.config.routes import ROUTES

    schema = Client().get("/api/v1/schema/", headers={"Accept": "application/json"}).json()
    told = {(method.upper(), path) for path, operations in schema["paths"].items() for method in operations}
    there = {
        (method, "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern))
        for _, methods, pattern in ROUTES
        for method in methods.split()
        if pattern.startswith("api/v1/") and not pattern.endswith(("schema/", "docs/", "<path:rest>"))
    }
    assert there - told == set()


def test_the_docs_page_keeps_the_strict_policy(db: None) -> None:
    page = Client().get("/api/v1/docs/")
    assert "unsafe" not in page["Content-Security-Policy"]
    assert not re.search(rb"<script>|<script [^>]*>[^<]|<style| style=| on\w+=", page.content)
    script = Client().get("/api/v1/docs/?script=")
    assert script["Content-Type"].startswith("application/javascript")


def test_nothing_that_a_token_reads_is_kept_by_caches(cast: make.Cast, alice: Program) -> None:
    assert "no-store" in alice.get("answers/")["Cache-Control"]
