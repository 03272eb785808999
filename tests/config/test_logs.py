"""Logs say who, what, how it ended and where it broke, and never what an item, a comment or a password says."""

import json
import logging
from collections.abc import Iterator
from io import StringIO

import pytest
import structlog
from django.db import IntegrityError, transaction
from django.test import Client

from annotation.models import Project
from config import logs
from tests.cast import Cast

SECRET = "a text that nobody should find in a log"


@pytest.fixture
def log_lines() -> Iterator[StringIO]:
    """What a production process would write, as text."""
    made = logs.settings("INFO", messages=False)
    formatter = made["formatters"]["json"]
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter["()"](**{key: value for key, value in formatter.items() if key != "()"}))
    handler.addFilter(logs.TaskErrors())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel("INFO")
    yield written
    root.removeHandler(handler)
    root.setLevel(level)
    structlog.reset_defaults()
    logs.settings("WARNING", messages=True)


def lines(written: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_request_is_one_line_without_its_query_or_body(cast: Cast, log_lines: StringIO) -> None:
    client = Client()
    client.force_login(cast.alice.user)
    client.post(f"/sign-in/?next={SECRET.replace(' ', '+')}", {"login": "alice", "password": SECRET})
    requests = [line for line in lines(log_lines) if line["event"] == "request"]
    assert [(line["method"], line["path"]) for line in requests] == [("POST", "/sign-in/")]
    assert requests[0]["user"] == cast.alice.user.pk
    assert SECRET not in log_lines.getvalue()
    assert SECRET.replace(" ", "+") not in log_lines.getvalue()


def test_an_error_is_logged_by_where_it_happened(log_lines: StringIO) -> None:
    def inner() -> None:
        raise ValueError(SECRET)

    try:
        try:
            inner()
        except ValueError as error:
            raise RuntimeError(SECRET) from error
    except RuntimeError:
        logging.getLogger("django.request").exception("Internal Server Error: %s", "/p/study/")
        structlog.get_logger("assay.any").exception("broke")
    assert SECRET not in log_lines.getvalue()
    for line in lines(log_lines):
        outer, cause = line["exception"]  # type: ignore[misc]
        assert outer["type"] == "builtins.RuntimeError"
        assert cause["type"] == "builtins.ValueError"
        assert cause["at"][-1].startswith("tests/config/test_logs.py:")
        assert cause["at"][-1].endswith(" inner")


def test_a_broken_constraint_is_named_without_the_row(log_lines: StringIO, db: None) -> None:
    Project.objects.create(slug="once", name=SECRET, seed=1)
    try:
        with transaction.atomic():
            Project.objects.create(slug="once", name=SECRET, seed=1)
    except IntegrityError:
        logging.getLogger("assay.any").exception("broke")
    assert SECRET not in log_lines.getvalue()
    assert "annotation_project_slug" in log_lines.getvalue()


def test_a_failed_task_is_logged_without_its_words(log_lines: StringIO) -> None:
    context = {"name": "workers.tasks.any", "id": "7", "exc": SECRET, "args": SECRET}
    logging.getLogger("celery.app.trace").error("Task %(name)s[%(id)s] raised: %(exc)s", context)
    assert "workers.tasks.any[7] failed" in log_lines.getvalue()
    assert SECRET not in log_lines.getvalue()
