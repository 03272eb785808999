"""Which column is what, and what a row must be to become an item."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.conf import settings

from annotation.errors import Invalid
from annotation.models import Kind
from curation.importing.archives import FILE_COLUMNS, LISTED
from curation.importing.images import Kept, Pictures
from curation.importing.readers import Block, Problem
from curation.importing.votes import Votes

ID_LENGTH = 200
# An item made from a seed or prompt column is known by the prompt's id, or by its text.
ORIGIN_PREFIX = "origin:"

# What columns are often called, best first.
USUAL = {
    "text": (
        "text",
        "tweet",
        "comment",
        "comment_text",
        "sentence",
        "content",
        "adversarial_text",
        "perturbed_text",
        "body",
        "message",
        "prompt",
    ),
    "external_id": ("external_id", "id", "item_id", "row_id", "uid", "uuid", "key", "index", ""),
    "seed": ("seed", "seed_text", "original", "original_text", "source_text", "origin_text", "prompt_text"),
    "prompt_id": ("prompt_id", "seed_id"),
    "origin": ("origin", "origin_id", "parent", "parent_id"),
}
USUAL_PROMPT = ("prompt", *USUAL["seed"], "caption", "text")  # beside pictures
NOTE = "picture_note"  # the metadata that says how a picture was changed


@dataclass(frozen=True)
class Mapping:
    """Columns by what they hold.

    `seed` holds the text that an item was derived from (for an image, its prompt): rows with the same text, or with the same
    `prompt_id` where that is mapped, share one origin, unless `seed_per_row`. `origin` instead names an item by its external id.
    `file` names each row's picture in the archive. `metadata` is a list of columns; None stands for all that are left. `votes` says
    where votes stand, one entry a question: where they come one a row (`per_vote`), the rows of an item share its id, or else its
    text. `existing`: the items are in the project already, and the file brings only votes.
    """

    kind: str = Kind.TEXT
    text: str | None = None
    file: str | None = None
    external_id: str | None = None
    seed: str | None = None
    prompt_id: str | None = None
    seed_per_row: bool = False
    origin: str | None = None
    metadata: tuple[str, ...] | None = None
    votes: tuple[Votes, ...] = ()
    existing: bool = False

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Mapping":
        """From JSON. An empty column name stands for none, except one that the file itself has (pandas writes such an index)."""
        unknown = sorted(set(given) - set(cls.__dataclass_fields__))
        if unknown:
            raise Invalid(f"The mapping has no part called {unknown[0]!r}. It has {', '.join(cls.__dataclass_fields__)}.")
        for name in ("kind", "text", "file", "external_id", "seed", "prompt_id", "origin"):
            if not isinstance(given.get(name), (str, type(None))):
                raise Invalid(f"In the mapping, {name} is the name of one column.", fields={name: "One column's name."})
        metadata = given.get("metadata")
        if metadata is not None and not (isinstance(metadata, (list, tuple)) and all(isinstance(name, str) for name in metadata)):
            raise Invalid(
                "In the mapping, metadata is a list of column names; leave it out for all that are left.", fields={"metadata": "A list."}
            )
        for name in ("seed_per_row", "existing"):
            if not isinstance(given.get(name, False), bool):
                raise Invalid(f"In the mapping, {name} is true or false.", fields={name: "True or false."})
        votes = given.get("votes") or ()
        if not isinstance(votes, (list, tuple)):
            raise Invalid("In the mapping, votes is a list: one entry a question.", fields={"votes": "A list."})
        parsed = {"metadata": None if metadata is None else tuple(metadata), "votes": tuple(Votes.of(one) for one in votes)}
        return cls(**{**given, "kind": given.get("kind") or Kind.TEXT, **parsed})

    @property
    def used(self) -> set[str]:
        """The columns that are no metadata, unless they are named as such."""
        named = {name for name in (self.text, self.external_id, self.seed, self.origin) if name is not None}
        return named.union(*(votes.used for votes in self.votes))

    @property
    def per_vote(self) -> bool:
        """Whether the rows are votes, and several may be of one item."""
        return any(votes.form == "long" for votes in self.votes)

    def as_dict(self) -> dict[str, Any]:
        metadata = None if self.metadata is None else list(self.metadata)
        return {**asdict(self), "metadata": metadata, "votes": [votes.as_dict() for votes in self.votes]}

    def checked(self, names: Sequence[str]) -> "Mapping":
        """Itself, or Invalid when it does not fit a file with these columns."""
        parts = [(part, getattr(self, part)) for part in ("text", "file", "external_id", "seed", "prompt_id", "origin")]
        parts += [("metadata", name) for name in self.metadata or ()]
        wrong = {part: f"The file has no column {name!r}." for part, name in parts if names and name is not None and name not in names}
        wrong |= self._wrong_for_existing() if self.existing else self._wrong_for_kind()
        if self.origin is not None and (self.seed is not None or self.prompt_id is not None):
            wrong["origin"] = "Either a column with the origin's text, or one with its id."
        if self.prompt_id is not None and self.seed is None:
            wrong["prompt_id"] = "Map the column with the prompt's text too."
        if self.per_vote and self.external_id is None and self.text is None:
            wrong["external_id"] = "Say which column names the item that each vote is on."
        for votes in self.votes:
            votes.checked(names, has_origin=self.seed is not None)
        if wrong:
            has = ", ".join(repr(name) for name in names[:30])
            raise Invalid(f"The mapping does not fit the file: {' '.join(wrong.values())} The file has {has}.", fields=wrong)
        return self

    def _wrong_for_kind(self) -> dict[str, str]:
        if self.kind not in Kind.values:
            return {"kind": "Use text or image."}
        if self.kind == Kind.IMAGE:
            return {} if self.text is None else {"text": "An image has no text; map a prompt as the seed."}
        no_text = {} if self.text is not None else {"text": "Say which column holds the text."}
        return no_text if self.file is None else {**no_text, "file": "A text has no picture."}

    def _wrong_for_existing(self) -> dict[str, str]:
        given = [part for part in ("text", "file", "seed", "origin") if getattr(self, part) is not None]
        wrong = dict.fromkeys(given, "The items are in the project already.")
        if self.external_id is None:
            wrong["external_id"] = "Say which column holds the ids of the items."
        if not self.votes:
            wrong["votes"] = "For items that are in the project already, map the votes that the file brings."
        return wrong


def guess(names: Sequence[str]) -> Mapping:
    """The likeliest mapping of these columns: by their names, the text else being the last that nothing else claims."""
    plain = {_plain(name): name for name in reversed(names)}
    found = {part: next((plain[usual] for usual in usual_names if usual in plain), None) for part, usual_names in USUAL.items()}
    if found["text"] is None and names:
        claimed = set(found.values())
        found["text"] = next((name for name in reversed(names) if name not in claimed), names[-1])
        found = {part: None if part != "text" and name == found["text"] else name for part, name in found.items()}
    if found["seed"] is None:
        found["prompt_id"] = None
    else:
        found["origin"] = None
    return Mapping(**found)  # type: ignore[arg-type]


def guess_pictures(names: Sequence[str]) -> Mapping:
    """The same for the table of an archive of pictures. Without an id, a path is one where the paths are all there is to know."""
    plain = {_plain(name): name for name in reversed(names)}
    wanted = {"file": FILE_COLUMNS, "external_id": USUAL["external_id"], "seed": USUAL_PROMPT, "prompt_id": USUAL["prompt_id"]}
    found = {part: next((plain[usual] for usual in usual_names if usual in plain), None) for part, usual_names in wanted.items()}
    if set(names) <= {LISTED, "folder"}:
        found["external_id"] = LISTED
    if found["seed"] is None:
        found["prompt_id"] = None
    return Mapping(kind=Kind.IMAGE, **found)  # type: ignore[arg-type]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


# ---------------------------------------------------------------- rows
COLUMNS = ("row", "external_id", "text", "content_hash", "metadata", "origin_key", "origin_text")


def rows(block: Block, mapping: Mapping, file_hash: str, pictures: Pictures | None = None) -> tuple[pa.RecordBatch, list[Problem]]:
    """A block as rows ready to store, by COLUMNS, and what was wrong with the rows that are left out.

    `content_hash` is that of the picture for an image, and empty for one without a file.
    """
    problems = list(block.problems)
    block.problems.clear()
    number = pa.array(block.rows, pa.int64())
    texts = _column(block, mapping.text)
    ids = _column(block, mapping.external_id)
    seeds = _column(block, mapping.seed)
    prompts = _column(block, mapping.prompt_id)
    origins = _column(block, mapping.origin)
    metadata = block.metadata(() if mapping.existing else mapping.metadata, mapping.used)
    problems += block.problems

    if mapping.kind == Kind.TEXT and not mapping.existing:
        _refuse(problems, number, mapping.text, texts, "The text is empty.")
    if mapping.external_id is not None:
        _refuse(problems, number, mapping.external_id, ids, "The id is empty.")
    for name, values, limit in (
        (mapping.text, texts, settings.MAX_TEXT_LENGTH),
        (mapping.seed, seeds, settings.MAX_TEXT_LENGTH),
        ("metadata", metadata, settings.MAX_TEXT_LENGTH),
        (mapping.external_id, ids, ID_LENGTH),
        (mapping.prompt_id, prompts, ID_LENGTH - len(ORIGIN_PREFIX)),
        (mapping.origin, origins, ID_LENGTH),
    ):
        _refuse_long(problems, number, name, values, limit)
        _refuse_nul(problems, number, name, values)

    hashes = _hashes(texts)
    if pictures is not None and mapping.file is not None:
        hashes, metadata = _pictured(problems, block, mapping.file, pictures, metadata)
    if mapping.external_id is None:
        ids = pa.array([f"{file_hash[:12]}:{key}" for key in (_short(hashes) if mapping.per_vote else block.rows)], pa.string())
    keys = origins if mapping.origin is not None else _origin_keys(mapping, ids, seeds, prompts)
    batch = pa.record_batch([number, ids, texts, hashes, metadata, keys, seeds], names=list(COLUMNS))
    return without(batch, {problem.row for problem in problems}), problems


def _pictured(
    problems: list[Problem], block: Block, column: str, pictures: Pictures, metadata: pa.StringArray
) -> tuple[pa.Array, pa.StringArray]:
    """The hashes of the rows' pictures, and their metadata with what was changed about them. Empty: the row names no picture."""
    before = len(block.problems)
    names = block.strings(column).to_pylist()
    problems += block.problems[before:]
    known = {problem.row for problem in problems}
    kept = pictures.of([None if row in known else name for row, name in zip(block.rows, names, strict=True)])
    problems += [Problem(row, column, why) for row, why in zip(block.rows, kept, strict=True) if isinstance(why, str)]
    noted = [
        json.dumps({NOTE: one.note, **json.loads(given)}, ensure_ascii=False) if isinstance(one, Kept) and one.note and given else given
        for one, given in zip(kept, metadata.to_pylist(), strict=True)
    ]
    return pa.array([one.digest if isinstance(one, Kept) else b"" for one in kept], pa.binary()), pa.array(noted, pa.string())


def without(batch: pa.RecordBatch, bad: set[int]) -> pa.RecordBatch:
    """The rows that are not bad."""
    return batch.filter(pa.array([row not in bad for row in batch["row"].to_pylist()], pa.bool_())) if bad else batch


def _short(hashes: pa.Array) -> list[str]:
    """What a text is known by in its file."""
    return [text[:8].hex() for text in hashes.to_pylist()]


def _column(block: Block, name: str | None) -> pa.StringArray:
    return pa.nulls(len(block.rows), pa.string()) if name is None else block.strings(name)


def _hashes(texts: pa.StringArray) -> pa.Array:
    sha = hashlib.sha256
    return pa.array([b"" if text is None else sha(text).digest() for text in texts.cast(pa.binary()).to_pylist()], pa.binary())


def _origin_keys(mapping: Mapping, ids: pa.StringArray, seeds: pa.StringArray, prompts: pa.StringArray) -> pa.StringArray:
    """The external id of each row's origin; null for a row without a seed."""
    if mapping.seed is None:
        return pa.nulls(len(seeds), pa.string())
    keys: list[str | None] = []
    for own, seed, prompt in zip(ids.to_pylist(), seeds.to_pylist(), prompts.to_pylist(), strict=True):
        if mapping.seed_per_row and seed is not None and own is not None:
            keys.append(ORIGIN_PREFIX + hashlib.sha256(own.encode()).hexdigest())
        elif prompt is not None:
            keys.append(ORIGIN_PREFIX + prompt)
        else:
            keys.append(None if seed is None else ORIGIN_PREFIX + hashlib.sha256(seed.encode()).hexdigest())
    return pa.array(keys, pa.string())


def _blank(values: pa.StringArray) -> pa.BooleanArray:
    return pc.fill_null(pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(values)), 0), True)


def _refuse(problems: list[Problem], number: pa.Array, name: str | None, values: pa.StringArray, message: str) -> None:
    """A problem for each blank value, unless its row has one: a cell that cannot be read is blank too."""
    known = {problem.row for problem in problems}
    problems += [Problem(row, name or "", message) for row in number.filter(_blank(values)).to_pylist() if row not in known]


def _refuse_long(problems: list[Problem], number: pa.Array, name: str | None, values: pa.StringArray, limit: int) -> None:
    lengths = pc.fill_null(pc.utf8_length(values), 0)
    wrong = pc.greater(lengths, limit)
    for row, length in zip(number.filter(wrong).to_pylist(), lengths.filter(wrong).to_pylist(), strict=True):
        problems.append(Problem(row, name or "", f"{length:,} characters; the most is {limit:,}."))


def _refuse_nul(problems: list[Problem], number: pa.Array, name: str | None, values: pa.StringArray) -> None:
    """PostgreSQL stores no NUL, neither as itself nor escaped in JSON."""
    suspect = pc.fill_null(pc.or_(pc.match_substring(values, "\x00"), pc.match_substring(values, "\\u0000")), False)
    for row, value in zip(number.filter(suspect).to_pylist(), values.filter(suspect).to_pylist(), strict=True):
        if "\x00" in value or (name == "metadata" and _has_nul(json.loads(value))):
            problems.append(Problem(row, name or "", "There is a NUL character in it, which no text may hold."))


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(_has_nul(inner) for inner in value)
    return isinstance(value, str) and "\x00" in value
