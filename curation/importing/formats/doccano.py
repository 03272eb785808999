"""doccano's export of classification projects: JSON lines, or the ZIP of them, one file a person, that it downloads as.

A line is a document with its labels: `label`, a list of names, or in older versions `annotations`, a list of objects with label and user.
Who gave them is the line's annotator where it names one, else the file of the ZIP; else one vote of nobody in particular.
https://github.com/doccano/doccano
"""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation.errors import Invalid
from annotation.models import Kind
from curation.importing.formats.common import LARGEST, HasQuestion, person
from curation.importing.mapping import Mapping
from curation.importing.readers import ROWS_PER_BLOCK, Block, Problem, Progress, Source, ValueBlock, opened
from curation.importing.votes import FROM_ANSWERS, Votes

PEOPLE = ("annotator", "user", "username", "annotated_by")
TEXTS = ("text", "data")
MOST_FILES = 1000
# What doccano calls the file of labels that are nobody's in particular.
NOBODY = {"all", "unknown", "dataset"}


def recognised(path: Path, head: str) -> bool:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            return bool(names) and all(name.endswith((".jsonl", ".json")) for name in names) and "manifest.jsonl" not in names
    line = head.lstrip("\ufeff \t\r\n").partition("\n")[0]
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get("id"), int) and _is_document(value)


def _is_document(value: dict[str, Any]) -> bool:
    labelled = isinstance(value.get("label"), list) or isinstance(value.get("annotations"), list)
    return labelled and any(isinstance(value.get(name), str) for name in (*TEXTS, "filename"))


def mapping(path: Path, source: Source, has_question: HasQuestion) -> Mapping:  # noqa: ARG001
    """One question, made from the labels where the project has none called label."""
    first = next((block for block in blocks(path, source, lambda _: None) if isinstance(block, ValueBlock) and block.values), None)
    texts = first is not None and any(value.get("text") for value in first.values)
    return Mapping(
        kind=Kind.TEXT if texts else Kind.IMAGE, text="text" if texts else None, external_id="id",
        votes=(Votes("label", "list", ("votes",), make=FROM_ANSWERS),),
    )  # fmt: skip


def blocks(path: Path, source: Source, progress: Progress) -> Iterator[Block]:  # noqa: ARG001
    """Lines of one document come together, whoever's they are, so the file is held at once."""
    documents: dict[str, tuple[int, dict[str, Any]]] = {}
    problems: list[Problem] = []
    for row, rater, line in _lines(path, progress):
        value = _read(line)
        if isinstance(value, str):
            problems.append(Problem(row, "", value))
            continue
        key = str(value.get("id", f"row {row}"))
        known = documents.setdefault(key, (row, _document(value)))[1]
        if known["text"] != _text(value):
            problems.append(Problem(row, "text", f"The document {key} has another text before."))
            continue
        known["votes"] += _votes(value, rater)
    kept = list(documents.values())
    for start in range(0, max(len(kept), 1), ROWS_PER_BLOCK):
        part = kept[start : start + ROWS_PER_BLOCK]
        if part or problems:
            yield ValueBlock([row for row, _ in part], [value for _, value in part], problems if start == 0 else [])


def _lines(path: Path, progress: Progress) -> Iterator[tuple[int, str | None, bytes]]:
    """Row, whose file, line. Rows go on from one file of a ZIP to the next."""
    with opened(path) as file:
        row = 0
        for rater, lines in _files(path, file):
            for line in lines:
                row += 1
                if line.strip():
                    yield row, rater, line
        progress(path.stat().st_size)


def _files(path: Path, file: Any) -> Iterator[tuple[str | None, Iterator[bytes]]]:
    if not zipfile.is_zipfile(path):
        if path.stat().st_size > LARGEST:
            raise Invalid(f"The file is larger than {LARGEST // 1024**2} MB, which this format allows: it is read at once.")
        yield None, iter(file)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) > MOST_FILES:
                raise Invalid(f"More than {MOST_FILES:,} files in the archive.")
            left = LARGEST
            for name in names:
                with archive.open(name) as inner:
                    data = inner.read(left + 1)
                left -= len(data)
                if left < 0:
                    raise Invalid(f"Unpacked, the archive is larger than {LARGEST // 1024**2} MB.")
                stem = Path(name).stem
                yield None if stem in NOBODY else person(stem), io.BytesIO(data)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError) as error:
        raise Invalid("The archive cannot be read: it is broken, encrypted or packed in an unknown way.") from error


def _read(line: bytes) -> dict[str, Any] | str:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return "Not JSON. Each line is one object."
    if not isinstance(value, dict) or not _is_document(value):
        return "This line is no labelled document: it has no text or file name, or no list of labels."
    if any(isinstance(label, (list, dict)) for label in value.get("label") or []):
        return "The labels mark parts of the text. Only labels of whole documents can be votes."
    return value


def _text(value: dict[str, Any]) -> str | None:
    return next((value[name] for name in TEXTS if isinstance(value.get(name), str)), None)


def _document(value: dict[str, Any]) -> dict[str, Any]:
    """The document without its labels, and room for its votes."""
    number = value.get("id")
    rest = {
        name: more for name, more in value.items() if name not in ("id", "label", "annotations", *TEXTS, *PEOPLE) and more not in ([], {})
    }
    return {"id": None if number is None else f"doccano-{number}", "text": _text(value), **rest, "votes": []}


def _votes(value: dict[str, Any], rater: str | None) -> list[dict[str, Any]]:
    """One vote a person, of all their labels; a document without labels has none."""
    who = person(next((value[name] for name in PEOPLE if value.get(name) not in (None, "")), None)) or rater
    if isinstance(value.get("label"), list):
        return [{"rater": who, "answer": value["label"]}] if value["label"] else []
    given: dict[str | None, list[Any]] = {}
    for one in value.get("annotations") or []:
        if isinstance(one, dict) and one.get("label") is not None:
            given.setdefault(person(one.get("user")) or who, []).append(one["label"])
    return [{"rater": name, "answer": labels} for name, labels in given.items()]
