"""Plain SQL on Django's connection, where the ORM would be longer or slower: rows as dictionaries."""

import json
import re
from functools import lru_cache
from typing import Any

import pghistory.config
import psycopg
from django.db import connection, transaction
from pghistory import runtime
from psycopg.rows import DictRow, dict_row


def rows(sql: str, **parameters: Any) -> list[DictRow]:
    """Run one statement on Django's connection, prepared: planning the lease anew each time would cost more than running it.

    A statement that the audit trail keeps events of is told whose request it is part of.
    """
    connection.ensure_connection()
    told = asked_by() if keeps_events(sql) else None
    if told is None:
        return _run(sql, parameters)
    if not connection.in_atomic_block:
        with transaction.atomic():
            return rows(sql, **parameters)
    _run(_SAY_WHO, told)
    return _run(sql, parameters)


def one(sql: str, **parameters: Any) -> DictRow | None:
    found = rows(sql, **parameters)
    return found[0] if found else None


def the(sql: str, **parameters: Any) -> DictRow:
    """The one row of a statement that always has one."""
    (row,) = rows(sql, **parameters)
    return row


def _run(sql: str, parameters: dict[str, Any]) -> list[DictRow]:
    raw: psycopg.Connection[Any] = connection.connection
    with psycopg.Cursor(raw, row_factory=dict_row) as cursor:
        return cursor.execute(sql, parameters, prepare=True).fetchall()


# ---------------------------------------------------------------- who asks
# pghistory tells its triggers so in front of each statement of Django's; those here pass Django by.
_SAY_WHO = """
    SELECT set_config('pghistory.context_id', %(id)s, true) AS id,
           set_config('pghistory.context_metadata', %(metadata)s, true) AS metadata
"""
# Of a task, a vote that is counted or settles it is no event, and of a check being answered is none: what is asked of the
# database for a vote, or for an answer to a check, stays as little as it was.
_KEEPS = re.compile(
    r"\b(?:UPDATE|DELETE FROM) annotation_(?:vote|adjudication|groundtruth|knownanswer|pause|membership|assignment|question|project|item)\b"
    r"|\bINSERT INTO annotation_adjudication\b"
    r"|\bUPDATE annotation_task\b[^;]*?(?:\bround = task\.round|\bSET state = 'retired')"
    r"|\bUPDATE annotation_check\b(?![^;]*\b(?:answered_at|guideline_id|expires_at) =)"
)


@lru_cache(maxsize=1024)
def keeps_events(sql: str) -> bool:
    """Whether this statement may fire a trigger that keeps an event.

    >>> keeps_events("UPDATE annotation_vote SET choice_id = 2 RETURNING id")
    True
    >>> keeps_events("UPDATE annotation_task SET vote_count = vote_count + 1 RETURNING id")
    False
    """
    return _KEEPS.search(sql) is not None


def asked_by() -> dict[str, str] | None:
    """pghistory's context as its triggers read it; None outside of any."""
    context = getattr(runtime._tracker, "value", None)
    if context is None:
        return None
    return {"id": str(context.id), "metadata": json.dumps(context.metadata, cls=pghistory.config.json_encoder())}
