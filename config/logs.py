"""Logs that never hold content: one JSON object a line, and errors by where they happened instead of by what they say.

An exception's message may quote an item, a comment or a row of the database, so it stays out; its type, the lines it came
through and, from the database, the broken constraint tell an operator enough. ASSAY_DEBUG=1 prints messages too.
"""

import logging
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import structlog
from structlog.typing import EventDict, Processor

ROOT = Path(__file__).resolve().parent.parent


def exception_without_message(_: Any, __: str, event: EventDict) -> EventDict:
    """A structlog processor: `exc_info` becomes `exception`, a list of {type, at, ...}, the last raised first."""
    given = event.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else given[1] if isinstance(given, tuple) else sys.exc_info()[1] if given else None
    if error is not None:
        event["exception"] = [_described(one) for one in _chain(error)]
    return event


def _chain(error: BaseException) -> Iterator[BaseException]:
    following: BaseException | None = error
    while following is not None:
        yield following
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)


def _described(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    described: dict[str, Any] = {
        "type": f"{kind.__module__}.{kind.__qualname__}",
        "at": [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)],
    }
    if isinstance(error, psycopg.Error):
        described |= {"sqlstate": error.sqlstate, "table": error.diag.table_name, "constraint": error.diag.constraint_name}
    return described


def _short(filename: str) -> str:
    path = Path(filename)
    if path.is_relative_to(ROOT / ".venv") or not path.is_relative_to(ROOT):
        return "/".join(path.parts[-2:])
    return str(path.relative_to(ROOT))


class TaskErrors(logging.Filter):
    """Celery writes a failed task's message and arguments; its name and id are enough."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING and isinstance(record.args, dict) and "name" in record.args:
            record.msg = "task %(name)s[%(id)s] failed"
        return True


def settings(level: str, *, messages: bool) -> dict[str, Any]:
    """Django's LOGGING, with structlog configured to go the same way. `messages`: print what exceptions say."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info if messages else exception_without_message,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
                "foreign_pre_chain": shared,
            }
        },
        "filters": {"task_errors": {"()": TaskErrors}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["task_errors"]}},
        "root": {"handlers": ["console"], "level": level},
        # Django's own handlers for "django" would print a second, plain line.
        "loggers": {"django": {"level": level, "handlers": [], "propagate": True}, "django.server": {"handlers": [], "propagate": True}},
    }
