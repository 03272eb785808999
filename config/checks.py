"""What must be true of the machine beneath: `manage.py check` says what is not, and what to do."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's name
from django.db import DatabaseError, connections

LEAST_POSTGRES = 15
LEAST_PGVECTOR = (0, 7)


@register(Tags.database)
def database_is_new_enough(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """PostgreSQL 15 or later with pgvector 0.7 or later. Run by `migrate`, `serve` and `check --database default`."""
    found: list[CheckMessage] = []
    for alias in databases or []:
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute("SHOW server_version_num")
                version = int(cursor.fetchone()[0]) // 10_000
                cursor.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
                row = cursor.fetchone()
        except DatabaseError as error:
            return [Error(f"The database does not answer: {str(error).strip()}", hint="See DATABASE_URL.", id="assay.E001")]
        found += judge_versions(version, row[0] if row else None)
    return found


def judge_versions(postgres: int, pgvector: str | None) -> list[CheckMessage]:
    """What these versions lack. `pgvector` is None where it is not installed."""
    found: list[CheckMessage] = []
    if postgres < LEAST_POSTGRES:
        found.append(
            Error(
                f"PostgreSQL {postgres} is too old.",
                hint=f"Assay needs {LEAST_POSTGRES} or later; name such a server in DATABASE_URL.",
                id="assay.E002",
            )
        )
    if pgvector is None:
        found.append(
            Warning(
                "This PostgreSQL has no pgvector: embeddings, near-duplicates and look-alikes will not work.",
                hint="Install pgvector 0.7 or later on the database's machine (on Debian: the package postgresql-NN-pgvector).",
                id="assay.W001",
            )
        )
    elif tuple(int(part) for part in pgvector.split(".")[:2]) < LEAST_PGVECTOR:
        found.append(Warning(f"pgvector {pgvector} is too old: it has no halfvec.", hint="Install pgvector 0.7 or later.", id="assay.W002"))
    return found


@register()
def data_folder_is_writable(**_: Any) -> list[CheckMessage]:
    data = Path(settings.DATA)
    if os.access(data, os.W_OK | os.X_OK):
        return []
    return [
        Error(
            f"Cannot write into the data folder {data}.",
            hint="Make it writable for this user, or name another with ASSAY_DATA.",
            id="assay.E003",
        )
    ]
