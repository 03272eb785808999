"""What every benchmark shares: Django set up, a scratch database that is dropped afterwards, one JSON line at the end."""

import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("ASSAY_LOG_LEVEL", "WARNING")
django.setup()

from django.conf import settings  # after setup
from django.core.management import call_command
from django.db import connection


@contextmanager
def scratch_database(name: str) -> Iterator[str]:
    """An empty, migrated database on the server of the settings, with Django connected to it; dropped at the end.

    Yields its name.
    """
    configured, scratch = connection.settings_dict["NAME"], f"assay_bench_{name}"
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{scratch}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{scratch}"')
    _connect_to(scratch)
    try:
        call_command("migrate", verbosity=0, interactive=False)
        yield scratch
    finally:
        _connect_to(configured)
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{scratch}" WITH (FORCE)')


def _connect_to(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
    settings.DATABASES["default"]["NAME"] = name


def conninfo() -> dict[str, Any]:
    """What bare psycopg needs to reach the database that Django is connected to."""
    given = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    return {key: connection.settings_dict[name] for key, name in given.items() if connection.settings_dict[name]}


def server_environment() -> dict[str, str]:
    """The environment for a server process that shares this process's database, Redis and secret."""
    at = connection.settings_dict
    password = f":{quote(at['PASSWORD'])}" if at["PASSWORD"] else ""
    port = f":{at['PORT']}" if at["PORT"] else ""
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql://{quote(at['USER'])}{password}@{port}/{at['NAME']}?host={quote(at['HOST'])}",
        "REDIS_URL": settings.REDIS_URL,
        "CELERY_BROKER_URL": settings.CELERY_BROKER_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "ASSAY_DATA": str(settings.DATA),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def peak_mb() -> float:
    """Peak resident memory of this process so far, in MB (VmHWM; ru_maxrss would count whoever started it too)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return round(int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) / 1024, 1)


def say(words: str) -> None:
    """Progress, on stderr: stdout is for the figures."""
    print(words, file=sys.stderr, flush=True)


def report(**figures: Any) -> None:
    """The last line: one JSON object."""
    print(json.dumps(figures), flush=True)
