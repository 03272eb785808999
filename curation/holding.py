"""Who is at a piece of background work: PostgreSQL's lock of it, which goes when the process does."""

import contextlib
from collections.abc import Iterator

from django.db import connection


@contextlib.contextmanager
def held(*key: int) -> Iterator[bool]:
    """The lock of this key, one number of 64 bits or two of 32, or False when another process has it."""
    places = ", ".join(["%s"] * len(key))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({places})", key)
        mine = bool(cursor.fetchone()[0])
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_advisory_unlock({places})", key)
