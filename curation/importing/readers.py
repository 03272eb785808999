"""Files as blocks of rows. CSV and TSV, JSONL and Parquet, streamed: memory is bounded by the block, not by the file.

A row that cannot be read becomes a Problem with its number; a file that cannot be read on raises Invalid. Rows count from 1, without the
header; a JSONL row is a line.
"""

import codecs
import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from annotation.errors import Invalid

FORMATS = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "parquet": "Parquet"}
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
# How much is read at once, and the longest row that can be read: one that is longer than a block makes the reader go over the
# file in large ones, which cost ten times the memory; one that is longer still makes it refuse the file there.
BLOCK_BYTES = 1024 * 1024
LARGE_BLOCK_BYTES = 16 * 1024 * 1024
ROWS_PER_BLOCK = 10_000
Progress = Callable[[int], None]
READY: dict[str, Any] = {}  # published layouts by name (curation.importing.formats), which also stand in FORMATS


@dataclass(frozen=True)
class Problem:
    """What is wrong with one row. `field` is the column as the file names it, where it is one."""

    row: int
    field: str
    message: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Source:
    """How the bytes of a file are to be read."""

    format: str
    encoding: str = "utf-8"
    delimiter: str = ","
    quotes: bool = True

    def checked(self) -> "Source":
        """Itself, or Invalid that names the field."""
        if self.format not in FORMATS:
            raise Invalid(f"The format {self.format!r} is unknown. Use one of {', '.join(FORMATS)}.", fields={"format": "Unknown format."})
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise Invalid("The delimiter is one character, not a quote or a line end.", fields={"delimiter": "One character."})
        try:
            name = codecs.lookup(self.encoding).name
            "a".encode(name)
        except (LookupError, ValueError, TypeError):
            raise Invalid(
                f"The encoding {self.encoding!r} is unknown. Use utf-8, windows-1252, utf-16 or another name that Python knows.",
                fields={"encoding": "Unknown encoding."},
            ) from None
        return replace(self, encoding="utf-8" if name in ("utf-8", "utf-8-sig", "ascii") else name)


@dataclass
class TextBlock:
    """Rows of a CSV file: every cell is text, as bytes until it is known to be good."""

    rows: list[int]
    batch: pa.RecordBatch
    problems: list[Problem] = field(default_factory=list)
    _read: dict[str, pa.StringArray] = field(default_factory=dict)

    def strings(self, name: str) -> pa.StringArray:
        """One text a row; an empty cell is null."""
        if name not in self._read:
            column = self.batch.column(name)
            try:
                texts = column.cast(pa.string())
            except pa.ArrowInvalid:
                texts = self._decode_each(name, column)
            self._read[name] = pc.if_else(pc.equal(pc.binary_length(texts), 0), pa.scalar(None, pa.string()), texts)
        return self._read[name]

    def metadata(self, keep: Sequence[str] | None, without: Collection[str]) -> pa.StringArray:
        """One JSON object a row, of the cells that are not empty: those of the columns to keep, or of all but some."""
        names = [name for name in self.batch.schema.names if name not in without] if keep is None else keep
        if not names:
            return pa.array(["{}"] * len(self.rows), pa.string())
        pieces = []
        for name in names:
            values = self.strings(name)
            piece = pc.binary_join_element_wise(f",{json.dumps(name)}:", _as_json(values), "")
            pieces.append(pc.fill_null(piece, ""))
        joined = pc.binary_join_element_wise(*pieces, "") if len(pieces) > 1 else pieces[0]
        return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "")

    def shown(self, name: str) -> list[str | None]:
        """The cells as they can be shown, bad bytes and all."""
        return [cell.decode(errors="replace") for cell in self.batch.column(name).to_pylist()]

    def first(self, count: int) -> "TextBlock":
        return TextBlock(self.rows[:count], self.batch.slice(0, count))

    def parts(self, size: int = ROWS_PER_BLOCK) -> "Iterator[TextBlock]":
        """The same in blocks of no more than `size` rows; the problems go with the first."""
        for start in range(0, max(len(self.rows), 1), size):
            yield TextBlock(self.rows[start : start + size], self.batch.slice(start, size), self.problems if start == 0 else [])

    @property
    def reach(self) -> int:
        """The last row that is dealt with here."""
        return max([0, *self.rows[-1:], *(problem.row for problem in self.problems)])

    def after(self, row: int) -> "TextBlock":
        """The same without the rows up to this one."""
        keep = [number > row for number in self.rows]
        problems = [problem for problem in self.problems if problem.row > row]
        return TextBlock([number for number in self.rows if number > row], self.batch.filter(pa.array(keep, pa.bool_())), problems)

    def _decode_each(self, name: str, column: pa.Array) -> pa.StringArray:
        """Finds the cells that are not UTF-8."""
        texts: list[str | None] = []
        for row, cell in zip(self.rows, column.to_pylist(), strict=True):
            try:
                texts.append(cell.decode())
            except UnicodeDecodeError as error:
                texts.append(None)
                self.problems.append(
                    Problem(
                        row, name,
                        f"Byte {error.start + 1} of the cell, 0x{cell[error.start]:02X}, is not UTF-8. "
                        "Name the file's encoding, for instance windows-1252 or utf-16.",
                    )
                )  # fmt: skip
        return pa.array(texts, pa.string())


@dataclass
class ValueBlock:
    """Rows of a JSONL or Parquet file: values of any JSON type."""

    rows: list[int]
    values: list[dict[str, Any]]
    problems: list[Problem] = field(default_factory=list)

    def strings(self, name: str) -> pa.StringArray:
        """One text a row; a number is written as JSON writes it, a missing, null or empty value is null."""
        return pa.array([self._text(row, name, value.get(name)) for row, value in zip(self.rows, self.values, strict=True)], pa.string())

    def metadata(self, keep: Sequence[str] | None, without: Collection[str]) -> pa.StringArray:
        """One JSON object a row, of the values that are not null: those to keep, or all but some. Nested values are kept."""
        texts: list[str | None] = []
        for row, value in zip(self.rows, self.values, strict=True):
            try:
                names = [name for name in value if name not in without] if keep is None else keep
                kept = {name: value[name] for name in names if value.get(name) is not None}
                text = json.dumps(kept, ensure_ascii=False, allow_nan=False)
                text.encode()
            except UnicodeEncodeError:
                text = None
                self.problems.append(Problem(row, "", "The metadata holds half of a surrogate pair, which no text may."))
            except (ValueError, TypeError, RecursionError) as error:
                text = None
                self.problems.append(Problem(row, "", f"The metadata cannot be written as JSON: {error}."))
            texts.append(text)
        return pa.array(texts, pa.string())

    def shown(self, name: str) -> list[str | None]:
        """The values as they can be shown."""
        values = [value.get(name) for value in self.values]
        texts = [value if isinstance(value, str) or value is None else json.dumps(value, ensure_ascii=False) for value in values]
        return [None if text is None else text.encode(errors="replace").decode() for text in texts]

    def first(self, count: int) -> "ValueBlock":
        return ValueBlock(self.rows[:count], self.values[:count])

    def parts(self, size: int) -> "Iterator[ValueBlock]":
        """The same in blocks of no more than `size` rows; the problems go with the first."""
        for start in range(0, max(len(self.rows), 1), size):
            end = start + size
            yield ValueBlock(self.rows[start:end], self.values[start:end], self.problems if start == 0 else [])

    def _text(self, row: int, name: str, value: Any) -> str | None:
        if value is None or value == "":
            return None
        if isinstance(value, (dict, list)):
            self.problems.append(Problem(row, name, "Nested JSON stands where a text is needed."))
            return None
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            self.problems.append(Problem(row, name, f"Character {error.start + 1} is half of a surrogate pair, which no text may hold."))
            return None
        return text


Block = TextBlock | ValueBlock


def _as_json(values: pa.StringArray) -> pa.StringArray:
    """Each text as a JSON string, nulls kept."""
    if pc.any(pc.match_substring_regex(values, "[\\x00-\\x1f]")).as_py():
        return pa.array([None if value is None else json.dumps(value, ensure_ascii=False) for value in values.to_pylist()], pa.string())
    escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")


# ---------------------------------------------------------------- guessing
def guess(path: Path, filename: str, *, ready: bool = True) -> Source:
    """Format, delimiter and quoting from the name and the first bytes. The encoding is UTF-8 unless a mark says UTF-16.

    `ready`: look for published layouts too.
    """
    with opened(path) as file:
        head = file.read(65536)
    ending = Path(filename).suffix.lower().lstrip(".")
    if head[:4] == b"PAR1":
        return Source("parquet")
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    text = head.decode(encoding, errors="replace").lstrip("\ufeff")
    if ready and ending not in ("csv", "tsv") and (found := next((name for name in READY if READY[name].recognised(path, text)), None)):
        return Source(found)
    known = {
        "csv": "csv",
        "tsv": "tsv",
        "tab": "tsv",
        "jsonl": "jsonl",
        "ndjson": "jsonl",
        "json": "jsonl",
        "parquet": "parquet",
        "pq": "parquet",
    }
    form = known.get(ending) or ("jsonl" if text.lstrip()[:1] == "{" else "csv")
    if form not in ("csv", "tsv"):
        return Source(form, encoding)
    header = text.splitlines()[0] if text.strip() else ""
    delimiter = "\t" if form == "tsv" else max(DELIMITERS, key=header.count)
    return Source("tsv" if delimiter == "\t" else "csv", encoding, delimiter, _quoted(text, delimiter))


def _quoted(text: str, delimiter: str) -> bool:
    """Tab-separated files often quote nothing: then a field may begin with a quote that does not close in it."""
    if delimiter != "\t":
        return True
    cells = [cell for line in text.splitlines()[:-1] for cell in line.split("\t") if cell.startswith('"')]
    return all(len(cell) > 1 and cell.endswith('"') for cell in cells)


def opened(path: Path) -> BinaryIO:
    """The file, or Invalid that says why it cannot be read."""
    try:
        if path.is_dir():
            raise Invalid(f"{path.name} is a folder. Give a file.")
        if path.stat().st_size == 0:
            raise Invalid("The file is empty.")
        return path.open("rb")
    except FileNotFoundError:
        raise Invalid("The file is no longer there. Bring it in again.") from None
    except OSError as error:
        raise Invalid(f"The file cannot be read: {error.strerror}.") from None


# ---------------------------------------------------------------- reading
def columns(path: Path, source: Source) -> list[str]:
    """The names of the columns. JSONL: those of the first rows, in the order they come; none when no row can be read."""
    if source.format == "parquet":
        return list(_parquet(path).schema_arrow.names)
    if source.format in READY:
        return list(dict.fromkeys(name for block in blocks(path, source) for value in getattr(block, "values", ()) for name in value))
    if source.format == "jsonl":
        first = next((block for block in _jsonl_blocks(path, source, lambda _: None) if block.values), None)
        return [] if first is None else list(dict.fromkeys(name for value in first.values for name in value))
    for size in (BLOCK_BYTES, LARGE_BLOCK_BYTES):
        try:
            with opened(path) as file:
                return _header(_Decoded(file, source.encoding), source, size)
        except pa.ArrowInvalid as error:
            if size == LARGE_BLOCK_BYTES or not _too_long(error):
                raise _unreadable(error, 0) from None
    raise AssertionError("unreachable")


def blocks(path: Path, source: Source, progress: Progress = lambda _: None) -> Iterator[Block]:
    """The file's rows. `progress` is called with how many bytes have been read."""
    if source.format in READY:
        rows: Iterator[Block] = READY[source.format].blocks(path, source, progress)
        return rows
    if source.format == "parquet":
        return _parquet_blocks(path, progress)
    if source.format == "jsonl":
        return _jsonl_blocks(path, source, progress)
    return _csv_blocks(path, source, progress)


class _Decoded(io.RawIOBase):
    """A file as UTF-8, whatever it is stored in. Remembers its end, and where it was when it met bytes that are not text."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.file = file
        self.plain = encoding == "utf-8"
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.encoding = encoding
        self.end = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while True:
            at = self.file.tell()
            raw = self.file.read(size)
            data = raw if self.plain else self._decode(raw, at)
            if data or not raw:
                self.end = data[-1_000_000:] if len(data) > 1_000_000 else (self.end + data)[-1_000_000:]
                return data

    def _decode(self, raw: bytes, at: int) -> bytes:
        waiting = len(self.decoder.getstate()[0])
        try:
            return self.decoder.decode(raw, final=not raw).encode()
        except UnicodeError as error:
            where = at - waiting + getattr(error, "start", 0) + 1
            raise Invalid(f"Byte {where:,} of the file is not {self.encoding}. Name the encoding that the file was saved in.") from None


def _csv_options(source: Source, size: int, **handler: Any) -> dict[str, Any]:
    return {
        "read_options": pa_csv.ReadOptions(block_size=size, use_threads=False),
        "parse_options": pa_csv.ParseOptions(
            delimiter=source.delimiter, quote_char='"' if source.quotes else False, newlines_in_values=source.quotes, **handler
        ),
    }


def _header(stream: _Decoded, source: Source, size: int) -> list[str]:
    try:
        with pa_csv.open_csv(stream, **_csv_options(source, size, invalid_row_handler=lambda _: "skip")) as reader:
            names = list(reader.schema.names)
    except UnicodeDecodeError as error:
        raise _unreadable(error, 0) from None
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Invalid(f"Two columns are called {twice[0] or 'nothing'!r}. Give every column a name of its own.")
    return names


def _unreadable(error: Exception, rows: int) -> Invalid:
    said = str(error)
    if "Empty CSV" in said:
        return Invalid("The file has a header and no rows." if "infer" in said else "The file is empty.")
    if _too_long(error):
        return Invalid(f"Row {rows + 1:,} is longer than {LARGE_BLOCK_BYTES // 1024**2} MB: perhaps a quote in it never closes.")
    if "utf" in said.lower():
        return Invalid("The header is not UTF-8. Name the file's encoding, for instance windows-1252 or utf-16.")
    # What the parser says beyond its first words quotes the row, and texts show on no error page.
    if found := re.search(r"Expected (\d+) columns?, got (\d+)", said):
        return Invalid(
            f"The file cannot be read on after row {rows:,}: {found[1]} columns are expected, and {found[2]} found."
            " See whether it is such a table at all, and what stands between its columns."
        )
    return Invalid(f"The file cannot be read on after row {rows:,}: {said.partition(':')[0]}.")


def _too_long(error: Exception) -> bool:
    return "straddl" in str(error)


def _csv_blocks(path: Path, source: Source, progress: Progress) -> Iterator[Block]:
    names = columns(path, source)
    row = 0
    try:
        for block in _csv_pass(path, source, names, BLOCK_BYTES, progress):
            row = block.reach
            yield block
    except pa.ArrowInvalid as error:
        if not _too_long(error):
            raise _unreadable(error, row) from None
    else:
        return
    done = row
    try:
        for block in _csv_pass(path, source, names, LARGE_BLOCK_BYTES, progress):
            row = block.reach
            yield block.after(done)
    except pa.ArrowInvalid as error:
        raise _unreadable(error, row) from None


def _csv_pass(path: Path, source: Source, names: list[str], size: int, progress: Progress) -> Iterator["TextBlock"]:
    """The file in blocks of `size` bytes. A row that is longer raises ArrowInvalid."""
    bad: list[Problem] = []

    def ragged(row: pa_csv.InvalidRow) -> str:
        bad.append(Problem(row.number - 1, "", _ragged(row)))
        return "skip"

    row = 0
    last: TextBlock | None = None
    with opened(path) as file:
        stream = _Decoded(file, source.encoding)
        convert = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary()))
        with pa_csv.open_csv(stream, convert_options=convert, **_csv_options(source, size, invalid_row_handler=ragged)) as reader:
            try:
                for batch in reader:
                    if last is not None:
                        yield from last.parts()
                        last = None
                    row, rows, met = _number(row, batch.num_rows, bad)
                    last = TextBlock(rows, batch, met)
                    progress(file.tell())
            except pa.ArrowInvalid:
                if last is not None:
                    yield from last.parts()
                raise
        if last is not None:
            _look_at_the_end(last, stream.end, source)
            yield from last.parts()
        if bad:
            yield TextBlock([], pa.RecordBatch.from_pydict({name: pa.array([], pa.binary()) for name in names}), bad)


def _number(row: int, count: int, bad: list[Problem]) -> tuple[int, list[int], list[Problem]]:
    """Numbers of the next `count` good rows after `row`; the bad rows among them leave the list and are handed on."""
    if not bad:
        return row + count, list(range(row + 1, row + count + 1)), []
    skipped = {problem.row for problem in bad}
    rows: list[int] = []
    while len(rows) < count:
        row += 1
        if row not in skipped:
            rows.append(row)
    met = [problem for problem in bad if problem.row <= row]
    bad[:] = [problem for problem in bad if problem.row > row]
    return row, rows, met


def _ragged(row: pa_csv.InvalidRow) -> str:
    message = f"{row.expected_columns} columns are expected, and {row.actual_columns} found."
    if "\n" in row.text.rstrip("\r\n"):
        message += " The row runs over several lines: perhaps a quote in it never closes."
    return message


def _look_at_the_end(block: TextBlock, end: bytes, source: Source) -> None:
    """A quote that never closes has taken the rest of the file into its cell: the file ends inside it."""
    if not source.quotes or not block.rows:
        return
    cell = block.batch.column(block.batch.num_columns - 1)[-1].as_py()
    opened_and_cell = b'"' + cell.replace(b'"', b'""')
    open_and_empty = not cell and end.endswith(b'"') and not end.endswith(b'""')
    if open_and_empty or (cell and (end.endswith(opened_and_cell) or opened_and_cell.endswith(end))):
        block.problems.append(
            Problem(block.rows[-1], block.batch.schema.names[-1], "A quote opens here and never closes: the file ends inside it.")
        )


def _jsonl_blocks(path: Path, source: Source, progress: Progress) -> Iterator[ValueBlock]:
    block = ValueBlock([], [])
    size = 0
    with opened(path) as file:
        stream = io.BufferedReader(_Readinto(_Decoded(file, source.encoding)), 1 << 20)
        for number, line in enumerate(_lines(stream), start=1):
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901
            if not line.strip():
                continue
            size += len(line)
            value = _object(number, line)
            if isinstance(value, Problem):
                block.problems.append(value)
            else:
                block.rows.append(number)
                block.values.append(value)
            if len(block.rows) + len(block.problems) >= ROWS_PER_BLOCK or size > 4 * BLOCK_BYTES:
                progress(file.tell())
                yield block
                block, size = ValueBlock([], []), 0
        progress(file.tell())
        if block.rows or block.problems:
            yield block


class _Readinto(io.RawIOBase):
    """What BufferedReader wants to read from."""

    def __init__(self, stream: _Decoded) -> None:
        self.stream = stream
        self.left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.left:
            self.left = self.stream.read(len(buffer))
        data, self.left = self.left[: len(buffer)], self.left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def _lines(stream: "io.BufferedReader[Any]") -> Iterator[bytes]:
    """Lines; of one that is too long only the beginning, so that it costs no memory."""
    while line := stream.readline(LARGE_BLOCK_BYTES):
        if len(line) == LARGE_BLOCK_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(BLOCK_BYTES)) and not rest.endswith(b"\n"):
                pass
        yield line


def _object(row: int, line: bytes) -> dict[str, Any] | Problem:
    if len(line) >= LARGE_BLOCK_BYTES:
        return Problem(row, "", f"The line is longer than {LARGE_BLOCK_BYTES // 1024**2} MB.")
    try:
        value = json.loads(line.decode(), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        return Problem(
            row, "",
            f"Byte {error.start + 1} of the line, 0x{line[error.start]:02X}, is not UTF-8. Name the encoding, for instance windows-1252.",
        )  # fmt: skip
    except json.JSONDecodeError as error:
        return Problem(row, "", f"Not JSON: {error.msg} at character {error.pos + 1}. Each line is one JSON object.")
    except (ValueError, RecursionError) as error:
        return Problem(row, "", "Not JSON: nested too deep." if isinstance(error, RecursionError) else f"Not JSON: {error}.")
    if not isinstance(value, dict):
        return Problem(row, "", 'The line is not a JSON object. Each line is one object: {"text": ...}.')
    return value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _parquet(path: Path) -> pq.ParquetFile:
    opened(path).close()
    try:
        return pq.ParquetFile(path, memory_map=False, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise Invalid(f"This is not a Parquet file that can be read: {error}.") from None


def _parquet_blocks(path: Path, progress: Progress) -> Iterator[Block]:
    row = 0
    size = path.stat().st_size if path.exists() else 0
    with _parquet(path) as file:
        total = file.metadata.num_rows
        stored = sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups))
        # Rows of a megabyte each come a few at a time.
        at_once = max(1, min(ROWS_PER_BLOCK, int(4 * BLOCK_BYTES * total / max(stored, 1))))
        try:
            for batch in file.iter_batches(batch_size=at_once):
                block = _values(row, batch)
                row += batch.num_rows
                progress(size * row // total)
                yield block
        except (pa.ArrowException, OSError) as error:
            raise Invalid(f"The Parquet file is broken after row {row:,}: {error}.") from None


def _values(row: int, batch: pa.RecordBatch) -> ValueBlock:
    """Arrow values as JSON values. Text that is not UTF-8 is found here: Arrow does not look."""
    rows = list(range(row + 1, row + batch.num_rows + 1))
    block = ValueBlock(rows, [])
    try:
        batch.validate(full=True)
        block.values = [{name: _plain(value) for name, value in values.items()} for values in batch.to_pylist()]
    except (pa.ArrowInvalid, UnicodeDecodeError):
        block.rows = []
    else:
        return block
    for number in range(batch.num_rows):
        try:
            values = batch.slice(number, 1).to_pylist()[0]
            block.values.append({name: _plain(value) for name, value in values.items()})
            block.rows.append(rows[number])
        except UnicodeDecodeError:
            block.problems.append(Problem(rows[number], "", "A text in this row is not UTF-8."))
    return block


def _plain(value: Any) -> Any:
    """A value that JSON can hold. Not-a-number is a missing value; times are ISO 8601; bytes are hexadecimal."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
