"""Typed readers for environment variables. A value that does not parse is an error, never a default."""

import os
from collections.abc import Sequence
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str | None = None) -> str:
    """The value of `name`; without a default, its absence is an error."""
    value = os.environ.get(name, "").strip() or default
    if value is None:
        raise ImproperlyConfigured(f"{name} is not set. Set it in the environment; see docs/operators.md.")
    return value


def flag(name: str, default: bool) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    if value == "":
        return default
    raise ImproperlyConfigured(f"{name} is {value!r}. Use 1 or 0.")


def number(name: str, default: int, *, least: int = 0) -> int:
    value = os.environ.get(name, "").strip()
    try:
        result = int(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {value!r}. Use a whole number.") from None
    if result < least:
        raise ImproperlyConfigured(f"{name} is {result}. Use {least} or more.")
    return result


def one_of(name: str, default: str, choices: Sequence[str]) -> str:
    value = os.environ.get(name, "").strip() or default
    if value not in choices:
        raise ImproperlyConfigured(f"{name} is {value!r}. Use one of {', '.join(choices)}.")
    return value


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, blanks dropped."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def folder(name: str, default: Path) -> Path:
    """An absolute folder path."""
    return Path(os.environ.get(name, "").strip() or default).expanduser().resolve()
