"""A folder or ZIP of pictures, with a table that says which is which. What is in it is believed in nothing.

The table is the manifest: `manifest.csv` (or .tsv, .jsonl, .parquet), else `metadata.csv` or `metadata.jsonl` as Hugging Face's imagefolder
writes them, one a folder where there are several, else the only table there is. Without one, each picture is a row by its path.
No name of an archive ever becomes a path on disk: files are read by name, into memory, under bounds.
"""

import contextlib
import json
import os
import re
import stat
import tempfile
import threading
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from annotation.errors import Invalid
from annotation.pictures import MOST_BYTES, BadPicture
from curation.importing import readers

FORMATS = {"zip": "ZIP", "folder": "folder"}
MOST_FILES = 250_000
MOST_TABLE_BYTES = 1024**3
# An archive may unpack to this many times its size, and in any case to a gigabyte.
MOST_RATIO = 200
ALWAYS_BYTES = 1024**3
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
# What is a row where no table names the rows: pictures, and what would be taken for one, so that it gets its reason.
PICTURES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".gif", ".webp", ".bmp", ".tif", ".tiff")
NOT_READ = (".svg", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".ico", ".psd", ".zip", ".tar", ".gz", ".tgz", ".7z", ".rar")
_LARGEST_DIRECTORY = 400 * MOST_FILES  # bytes of a ZIP's list of files


@dataclass(frozen=True)
class Entry:
    """A file of an archive. `problem` says why it cannot be read, where that is known before reading it."""

    name: str
    size: int
    source: zipfile.ZipInfo | Path
    problem: str = ""


class Archive:
    """The files of a folder or ZIP, by name. Its reading may be called from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_bytes = 0  # of the archive as it lies there, for progress
        self._unpacked = 0
        self._lock = threading.Lock()
        self._zip = None if path.is_dir() else _zip(path)
        self.entries = self._of_folder() if self._zip is None else self._of_zip(self._zip)
        self.size = sum(entry.size for entry in self.entries.values()) if self._zip is None else path.stat().st_size
        self.most = max(ALWAYS_BYTES, MOST_RATIO * self.size)
        declared = sum(entry.size for entry in self.entries.values())
        if self._zip is not None and declared > self.most:
            raise Invalid(f"The archive has {self.size:,} bytes and says that it unpacks to {declared:,}. It is not unpacked.")
        self._by_bare_name = _unique({name: PurePosixPath(name).name for name in self.entries})

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip is not None:
            self._zip.close()

    # ------------------------------------------------------------ what is in it
    def _of_zip(self, archive: zipfile.ZipFile) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for info in archive.infolist():
            name = _zip_name(info)
            if info.is_dir() or _is_hidden(name):
                continue
            problem = _leads_out(name) or _zip_problem(info)
            if name in entries:
                problem = "The archive has two files of this name."
            entries[name] = Entry(name, info.file_size, info, problem)
        return entries

    def _of_folder(self) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for file in files:
                path = Path(folder, file)
                name = _plain(path.relative_to(self.path).as_posix())
                if _is_hidden(name):
                    continue
                status = path.lstat()
                problem = "" if stat.S_ISREG(status.st_mode) else "It is a link or a device, not a file."
                entries[name] = Entry(name, status.st_size, path, problem)
                if len(entries) > MOST_FILES:
                    raise Invalid(f"The folder has more than {MOST_FILES:,} files. Bring them in by several.")
        return entries

    def find(self, name: str, folder: str = "") -> Entry:
        """The file that a row names: by its path from the table's folder or the top, else by a bare name that only one has.

        Raises BadPicture.
        """
        plain = _plain(name)
        if problem := _leads_out(plain):
            raise BadPicture(problem)
        tried = [f"{folder}/{plain}" if folder else plain, plain]
        found = next((self.entries[one] for one in tried if one in self.entries), None)
        if found is None and "/" not in plain and plain in self._by_bare_name:
            found = self.entries[self._by_bare_name[plain]]
        if found is None:
            raise BadPicture(f"There is no file {name!r} in the {'folder' if self._zip is None else 'archive'}.")
        return found

    def read(self, entry: Entry) -> bytes:
        """Its bytes. Raises BadPicture, and Invalid when the whole archive has unpacked to too much."""
        if entry.problem:
            raise BadPicture(entry.problem)
        if entry.size > MOST_BYTES:
            raise BadPicture(f"The file has {entry.size:,} bytes; the most is {MOST_BYTES:,}.")
        with self._opened(entry) as file, _readable():
            data = file.read(MOST_BYTES + 1)
        stored = entry.source.compress_size if isinstance(entry.source, zipfile.ZipInfo) else len(data)
        with self._lock:
            self._unpacked += len(data)
            self.read_bytes = min(self.size, self.read_bytes + stored)
            if self._unpacked > self.most:
                raise Invalid(f"The archive has {self.size:,} bytes and unpacks to more than {self.most:,}. It is not unpacked further.")
        return data

    def _opened(self, entry: Entry) -> IO[bytes]:
        with _readable():
            if isinstance(entry.source, zipfile.ZipInfo):
                assert self._zip is not None  # noqa: S101 - for the type checker
                return self._zip.open(entry.source)
            return os.fdopen(os.open(entry.source, os.O_RDONLY | os.O_NOFOLLOW), "rb")

    # ------------------------------------------------------------ its table
    def tables(self) -> list[Entry]:
        """The manifest, or one a folder. None: every picture is a row. Raises Invalid where it cannot be told which it is."""
        known = [entry for name, entry in self.entries.items() if PurePosixPath(name).suffix.lower() in TABLES]
        for stem in ("manifest", "metadata"):
            if named := [entry for entry in known if PurePosixPath(entry.name).stem.lower() == stem]:
                return sorted(named, key=lambda entry: entry.name)
        if len(known) > 1:
            names = ", ".join(sorted(entry.name for entry in known)[:5])
            raise Invalid(f"Which table names the pictures? Call it manifest.csv. There are {names}.")
        return known

    @property
    def folder(self) -> str:
        """Where the one table lies: its rows name files from there."""
        tables = self.tables()
        return _parent(tables[0].name) if len(tables) == 1 else ""

    def write_table(self, to: Path) -> None:
        """The rows, as a file of a format that is read like any other. Raises Invalid where there is nothing to bring in."""
        tables = self.tables()
        if len(tables) == 1:
            self._copy(tables[0], to)
            return
        lines = self._joined(tables) if tables else self._listed()
        with to.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")
        if not to.stat().st_size:
            raise Invalid("There is no picture in it, and no manifest that names some.")

    def _copy(self, entry: Entry, to: Path) -> None:
        if entry.problem:
            raise Invalid(f"The manifest {entry.name!r} cannot be read. {entry.problem}")
        written = 0
        try:
            with self._opened(entry) as file, _readable(), to.open("wb") as out:
                while piece := file.read(1 << 20):
                    written += len(piece)
                    if written > MOST_TABLE_BYTES:
                        raise Invalid(f"The manifest is larger than {MOST_TABLE_BYTES // 1024**2:,} MB.")
                    out.write(piece)
        except BadPicture as error:
            raise Invalid(f"The manifest {entry.name!r} cannot be read. {error.reason}") from None

    def _listed(self) -> Iterator[dict[str, str]]:
        for name in sorted(self.entries):
            if PurePosixPath(name).suffix.lower() in PICTURES + NOT_READ:
                yield {LISTED: name} | ({"folder": _parent(name)} if _parent(name) else {})

    def _joined(self, tables: list[Entry]) -> Iterator[dict[str, object]]:
        """Rows of several tables, each with its folder as the split, and its files named from the top."""
        for table in tables:
            folder = _parent(table.name)
            with tempfile.TemporaryDirectory() as kept:
                path = Path(kept, "table")
                self._copy(table, path)
                for row in _rows(path, table.name):
                    for column in FILE_COLUMNS:
                        if isinstance(row.get(column), str) and row[column] and folder:
                            row[column] = f"{folder}/{_plain(str(row[column]))}"
                    yield {"split": folder, **row} if folder else row


LISTED = "path"  # the column of a table that we write ourselves, where there is none
FILE_COLUMNS = ("file", "file_name", "filename", "image", "image_file", "image_path", LISTED)


def is_archive(path: Path) -> bool:
    """Whether it is a folder, or begins as ZIP files do."""
    if path.is_dir():
        return True
    with readers.opened(path) as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


# ---------------------------------------------------------------- names
def _plain(name: str) -> str:
    """One spelling a name: composed letters, forward slashes, from the top."""
    name = unicodedata.normalize("NFC", name).replace("\\", "/")
    while name.startswith("./"):
        name = name[2:]
    return name


def _leads_out(name: str) -> str:
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        return "Its path leads out of the archive."
    return ""


def _is_hidden(name: str) -> bool:
    """What systems leave behind: .DS_Store, __MACOSX/._a.jpg, Thumbs.db."""
    parts = name.split("/")
    return parts[0] == "__MACOSX" or parts[-1].lower() == "thumbs.db" or any(part.startswith(".") and part.strip(".") for part in parts)


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _unique(bare_names: dict[str, str]) -> dict[str, str]:
    """The bare names that only one file has, with its whole name."""
    found: dict[str, str] = {}
    twice = set()
    for name, bare in bare_names.items():
        if bare in found:
            twice.add(bare)
        found[bare] = name
    return {bare: name for bare, name in found.items() if bare not in twice}


def _rows(path: Path, name: str) -> Iterator[dict[str, object]]:
    for block in readers.blocks(path, readers.guess(path, name, ready=False)):
        if block.problems:
            problem = block.problems[0]
            raise Invalid(f"{name}, row {problem.row:,}: {problem.message}")
        if isinstance(block, readers.ValueBlock):
            yield from block.values
        else:
            columns = {column: block.strings(column).to_pylist() for column in block.batch.schema.names}
            for index in range(len(block.rows)):
                yield {column: values[index] for column, values in columns.items()}


# ---------------------------------------------------------------- ZIP
def _zip(path: Path) -> zipfile.ZipFile:
    if _says_too_many(path):
        raise Invalid(f"The archive has more than {MOST_FILES:,} files. Bring them in by several.")
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
        raise Invalid(f"This ZIP archive cannot be read: it is broken, or only a part of one ({error}).") from None
    if len(archive.infolist()) > MOST_FILES:
        archive.close()
        raise Invalid(f"The archive has more than {MOST_FILES:,} files. Bring them in by several.")
    return archive


def _says_too_many(path: Path) -> bool:
    """Whether the list of files at the end is too long to be read at all: it would be held in memory."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 65_557 - 76))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        return False  # the reader says what is wrong with it
    long, far = int.from_bytes(tail[at + 12 : at + 16], "little"), tail.rfind(b"PK\x06\x06", 0, at)
    if far >= 0:
        long = max(long if long != 0xFFFFFFFF else 0, int.from_bytes(tail[far + 40 : far + 48], "little"))
    return long > _LARGEST_DIRECTORY


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name in the letters it was written in: many programs write UTF-8 and do not say so."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode()
    return _plain(name)


def _zip_problem(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 0x1:
        return "It is encrypted. Bring it without a password."
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "It is packed in a way that is not read here. Pack it as an ordinary ZIP (deflate)."
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "It is a link or a device, not a file."
    return ""


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError):
        raise BadPicture("It cannot be read: the file is broken or is not there.") from None
