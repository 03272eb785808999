"""What the database refuses, as a refusal that says what to do."""

import psycopg
from django.db import DataError, OperationalError

from annotation.errors import Busy, Invalid, Refused

_MET = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure, psycopg.errors.LockNotAvailable)


def refusal(error: Exception) -> Refused | None:
    """The refusal that this error amounts to; None for what is a fault of ours."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, DataError | psycopg.DataError):  # a NUL in a text, a number beyond bigint: nobody meant them
        return Invalid("A value is outside what can be stored.", code="bad_request")
    cause = error.__cause__ if isinstance(error, OperationalError) else error
    if isinstance(cause, _MET):
        return Busy("Somebody else changed the same things at this moment, so nothing was changed here. Try again.")
    return None
