"""What the ready-made formats share."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from annotation.errors import Invalid
from curation.importing.mapping import Mapping
from curation.importing.readers import BLOCK_BYTES, Block, Progress, Source, opened
from curation.importing.votes import Answers

LARGEST = 256 * 1024 * 1024  # of a file that is one JSON value, or one after another is put together from
HasQuestion = Callable[[str], Answers | None]  # the answers of a question of the project, by its slug


@dataclass(frozen=True)
class Ready:
    """A layout: its name, whether a file is one by its first 64 kB, its rows, and the mapping that fits them."""

    words: str
    recognised: Callable[[Path, str], bool]
    blocks: Callable[[Path, Source, Progress], Iterator[Block]]
    mapping: Callable[[Path, Source, HasQuestion], Mapping]


def whole(path: Path) -> bytes:
    """A file that is read at once."""
    if path.exists() and path.stat().st_size > LARGEST:
        raise Invalid(f"The file is larger than {LARGEST // 1024**2} MB, which this format allows: it is read at once.")
    with opened(path) as file:
        return file.read()


def parsed(data: bytes) -> Any:
    """JSON, or Invalid without a word of what it holds."""
    try:
        return json.loads(data)
    except UnicodeDecodeError:
        raise Invalid("The file is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise Invalid(f"The file is not JSON: {error.msg} in line {error.lineno:,}.") from None
    except (ValueError, RecursionError):
        raise Invalid("The file is not JSON that can be read: nested too deep, or a number too long.") from None


def elements(path: Path, progress: Progress) -> Iterator[Any]:
    """The elements of a JSON array, one after another: memory for the longest of them."""
    with opened(path) as file:
        text = _Text(file, progress)
        if text.skipped(" \t\r\n\ufeff") != "[":
            raise Invalid("The file is not a JSON array.")
        text.take(1)
        while (first := text.skipped(" \t\r\n,")) != "]":
            if not first:
                raise Invalid("The file ends inside its JSON array.")
            yield text.value()


class _Text:
    """What has been read of a file and not been used."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self.file, self.progress = file, progress
        self.text, self.rest, self.ended = "", b"", False

    def skipped(self, blank: str) -> str:
        """The first character that is none of these; empty at the end of the file."""
        while True:
            self.text = self.text.lstrip(blank)
            if self.text or self.ended:
                return self.text[:1]
            self._read()

    def take(self, count: int) -> None:
        self.text = self.text[count:]

    def value(self) -> Any:
        """The JSON value that begins here."""
        while True:
            try:
                found, end = json.JSONDecoder().raw_decode(self.text)
            except RecursionError:
                raise Invalid("The file is not JSON that can be read: nested too deep.") from None
            except ValueError:
                end = len(self.text)
            # What ends with what was read may go on; an element that is broken is found when all is read.
            if end < len(self.text):
                self.take(end)
                return found
            if self.ended:
                raise Invalid("The file is not a JSON array that can be read to its end.")
            self._read()

    def _read(self) -> None:
        """Twice as much each time, so that a long element is not looked at again and again."""
        if len(self.text) > LARGEST:
            raise Invalid(f"One element is longer than {LARGEST // 1024**2} MB, or broken.")
        data = self.file.read(max(BLOCK_BYTES, len(self.text)))
        self.ended = not data
        data = self.rest + data
        try:
            self.text, self.rest = self.text + data.decode(), b""
        except UnicodeDecodeError as error:
            if self.ended or len(data) - error.start > 3:
                raise Invalid(f"Byte 0x{data[error.start]:02X} is not UTF-8.") from None
            self.text, self.rest = self.text + data[: error.start].decode(), data[error.start :]
        self.progress(self.file.tell())


def person(named: Any) -> str | None:
    """A rater's name: an id as it is; what looks like an address only as a number made of it, for names are in no file of ours."""
    if isinstance(named, dict):
        named = named.get("id", named.get("username", named.get("email")))
    if named is None or named == "":
        return None
    text = named if isinstance(named, str) else json.dumps(named)
    return f"user {hashlib.sha256(text.casefold().encode()).hexdigest()[:8]}" if "@" in text else text[:100]


def whole_ms(given: Any, scale: float = 1) -> int | None:
    """Milliseconds; None where it is no time that a person can have taken."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    ms = given * scale
    return round(ms) if 0 <= ms < 2**31 else None
