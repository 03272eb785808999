"""What a kind of scorer is. No Django here, and nothing heavy at import: the web process lists kinds and their forms.

A kind is one module of this folder with a `KIND`. It has two halves. `identify` is light (files, JSON, hashes) and runs
wherever a scorer is added: it refuses what cannot work and names exactly what will score. `prepare` is heavy (torch
and its like) and runs in a worker only, before the first item of a run.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

SCORE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,59}")
Config = dict[str, Any]


class Unusable(Exception):
    """A scorer cannot work as configured. `fields` says which setting is at fault, where one is."""

    def __init__(self, message: str, **fields: str) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields


@dataclass(frozen=True)
class Machine:
    """Where a scorer is to work: `device` is "cpu" or "cuda", `hub` the folder that downloads go to."""

    device: str = "cpu"
    hub: Path | None = None


@dataclass(frozen=True)
class Failed:
    """An item that could not be scored, and why."""

    reason: str


Result = dict[str, float] | Failed


class Prepared(ABC):
    """A scorer with its weights in memory. One thread at a time uses it."""

    @abstractmethod
    def score(self, texts: Sequence[str]) -> list[Result]:
        """For each text, in order, its scores by name, or why it has none."""


@dataclass(frozen=True)
class Setting:
    """One field of a kind's configuration, and of its form.

    `changes_scores` is False for what only says where the weights lie or how fast to go: it does not make a new version.
    """

    name: str
    label: str
    help: str = ""
    type: Literal["text", "number", "choice", "mapping", "folder"] = "text"
    default: Any = ""
    choices: tuple[tuple[str, str], ...] = ()
    least: int = 1
    most: int = 1_000_000
    changes_scores: bool = True

    def read(self, given: object) -> Any:
        """The value, typed, from a form (text) or JSON; ValueError in words when it is none."""
        if given is None or given == "":
            return {} if self.type == "mapping" and not self.default else self.default
        if self.type == "mapping":
            return _mapping(given)
        if self.type == "number":
            return self._number(given)
        if not isinstance(given, str):
            raise ValueError("Give a text.")  # noqa: TRY004 - one kind of error for whatever is typed
        if self.type == "choice" and given not in dict(self.choices):
            raise ValueError(f"Choose one of {', '.join(dict(self.choices))}.")
        return given.strip()

    def _number(self, given: object) -> int:
        try:
            number = int(str(given))
        except ValueError:
            raise ValueError("Give a whole number.") from None
        if not self.least <= number <= self.most:
            raise ValueError(f"Give a number from {self.least:,} to {self.most:,}.")
        return number


def _mapping(given: object) -> dict[str, str]:
    """{"toxic": "toxicity"}, or the same as lines: toxic = toxicity."""
    if isinstance(given, Mapping):
        return {str(key): "-" if value in (None, "") else str(value) for key, value in given.items()}
    pairs: dict[str, str] = {}
    for line in filter(str.strip, str(given).splitlines()):
        left, equals, right = line.rpartition("=")
        if not (equals and left.strip() and right.strip()):
            raise ValueError(f'"{line.strip()}" is not of the form: label = score name.')
        if left.strip() in pairs:
            raise ValueError(f'"{left.strip()}" is there twice.')
        pairs[left.strip()] = right.strip()
    return pairs


@dataclass(frozen=True)
class Identity:
    """Exactly what would score: equal fingerprints give equal scores. `config` is the configuration as it is to be kept."""

    fingerprint: str
    score_names: tuple[str, ...]
    config: Config = field(default_factory=dict)


class Kind(ABC):
    """A kind of scorer. `bounds` are what its scores must lie in; `limits` what its users must know."""

    name: str
    title: str
    description: str
    limits: str
    item_kind = "text"
    settings: tuple[Setting, ...] = ()
    chunk_size = 512
    bounds = (0.0, 1.0)
    revision = 1  # of the module's own code: one more whenever a change of it could change a score

    @abstractmethod
    def identify(self, config: Config, machine: Machine) -> Identity:
        """Check a configuration and its files without loading them. Raises Unusable, saying what is wrong and what to do."""

    @abstractmethod
    def prepare(self, config: Config, machine: Machine) -> Prepared:
        """Load it. In a worker only. Raises Unusable when the weights do not make the model that the configuration names."""

    def read(self, given: Mapping[str, object]) -> Config:
        """A configuration from a form or JSON, every setting present and typed. Raises Unusable with the fields at fault."""
        config: Config = {}
        wrong: dict[str, str] = {}
        known = {setting.name for setting in self.settings}
        for name in given:
            if name not in known:
                wrong[name] = f"{self.title} has no such setting. Its settings: {', '.join(sorted(known)) or 'none'}."
        for setting in self.settings:
            try:
                config[setting.name] = setting.read(given.get(setting.name))
            except ValueError as error:
                wrong[setting.name] = str(error)
        if wrong:
            raise Unusable(" ".join(f"{name}: {message}" for name, message in wrong.items()), **wrong)
        return config

    def fingerprint(self, config: Config, weights: Iterable[str]) -> str:
        """SHA-256 over the kind, the settings that change scores, and whatever names the weights."""
        settings = {setting.name: config[setting.name] for setting in self.settings if setting.changes_scores}
        whole = {"kind": self.name, "revision": self.revision, "settings": settings, "weights": sorted(weights)}
        return hashlib.sha256(json.dumps(whole, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
