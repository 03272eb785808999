"""The settings as an operator meets them: in both modes, wrong in every way, and ready for production."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from config.checks import judge_versions
from config.settings import database

ROOT = Path(__file__).resolve().parents[2]
OURS = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "SECRET_KEY", "ASSAY_HTTPS", "ASSAY_HOSTS", "ASSAY_DEBUG")


def manage(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if name not in OURS and not name.startswith("DJANGO_")}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env={**clean, "ASSAY_DATA": str(settings.DATA), **environment}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def real_services(**changes: str) -> dict[str, str]:
    """The servers that the tests run on, named as a production installation names its own."""
    if settings.EMBEDDED is None:
        address, redis = os.environ["DATABASE_URL"], os.environ["REDIS_URL"]
    else:
        address, redis = settings.EMBEDDED.database_url, f"unix://{settings.EMBEDDED.redis_socket}"
    return {
        "DATABASE_URL": address, "REDIS_URL": redis, "SECRET_KEY": "k3" * 30 + "!?&abcdefgh",
        "ASSAY_HTTPS": "1", "ASSAY_HOSTS": "assay.example", **changes,
    }  # fmt: skip


def test_check_deploy_is_clean_in_production_settings() -> None:
    done = manage("check", "--deploy", "--database", "default", "--fail-level", "WARNING", **real_services())
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"SECRET_KEY": ""}, "SECRET_KEY is not set."),
        ({"REDIS_URL": ""}, "REDIS_URL is not set."),
        ({"DATABASE_URL": "sqlite:///x.db"}, "DATABASE_URL must begin with postgresql://."),
        ({"ASSAY_HTTPS": "perhaps"}, "ASSAY_HTTPS is 'perhaps'. Use 1 or 0."),
        ({"ASSAY_LOG_LEVEL": "LOUD"}, "ASSAY_LOG_LEVEL is 'LOUD'. Use one of DEBUG, INFO, WARNING, ERROR."),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_no_traceback(changes: dict[str, str], sentence: str) -> None:
    done = manage("check", **real_services(**changes))
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_is_not_there_is_said_by_the_check() -> None:
    done = manage("check", "--database", "default", **real_services(DATABASE_URL="postgresql://nobody@127.0.0.1:1/none"))
    assert done.returncode == 1
    assert "assay.E001" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_part_of_a_database_address_is_understood() -> None:
    found = database("postgresql://some%40one:p%2Fw@db.example:6543/study?sslmode=require")
    assert [found[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == ["some@one", "p/w", "db.example", "6543", "study"]
    assert found["OPTIONS"]["sslmode"] == "require"
    assert database("postgresql://assay@/assay?host=/run/here")["HOST"] == "/run/here"


@pytest.mark.parametrize(
    ("postgres", "pgvector", "codes"),
    [(18, "0.8.5", []), (15, "0.7.0", []), (14, "0.8.0", ["assay.E002"]), (16, None, ["assay.W001"]), (16, "0.5.1", ["assay.W002"])],
)
def test_old_servers_are_named_with_what_to_do(postgres: int, pgvector: str | None, codes: list[str]) -> None:
    found = judge_versions(postgres, pgvector)
    assert [one.id for one in found] == codes
    assert all(one.hint for one in found)


def test_models_and_migrations_agree() -> None:
    done = manage("makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout
