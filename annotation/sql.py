"""Plain SQL on Django's connection, where the ORM would be longer or slower: rows as dictionaries."""

from typing import Any

import psycopg
from django.db import connection
from psycopg.rows import DictRow, dict_row


def rows(sql: str, **parameters: Any) -> list[DictRow]:
    """Run one statement on Django's connection, prepared: planning the lease anew each time would cost more than running it."""
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    with psycopg.Cursor(raw, row_factory=dict_row) as cursor:
        return cursor.execute(sql, parameters, prepare=True).fetchall()


def one(sql: str, **parameters: Any) -> DictRow | None:
    found = rows(sql, **parameters)
    return found[0] if found else None


def the(sql: str, **parameters: Any) -> DictRow:
    """The one row of a statement that always has one."""
    (row,) = rows(sql, **parameters)
    return row
