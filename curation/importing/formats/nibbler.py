"""Adversarial Nibbler, as published: pairs of a prompt and a picture that is not there, each with the votes of about five people.

One JSON object of columns: timestamp (submitted_timestamp in later rounds), prompt, hashed_filename, submission_annotations (JSON in
a text) and validation (a list of JSON texts, one a person). A pair becomes a prompt item and an image item without its file; the
prompt is not shared with other pairs of the same words. Times are a person's for the whole pair.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation.errors import Invalid
from annotation.models import Kind
from curation.importing.formats.common import HasQuestion, parsed, person, whole, whole_ms
from curation.importing.mapping import Mapping
from curation.importing.readers import ROWS_PER_BLOCK, Block, Problem, Progress, Source, ValueBlock
from curation.importing.votes import Votes

COLUMNS = ("prompt", "hashed_filename", "validation")
TIMES = ("timestamp", "submitted_timestamp")
TEXT = {"text_safe": "safe", "text_unsafe": "unsafe", "text_other": "unsure", "text_unsure": "unsure"}
IMAGE = {
    "image_safe": "safe", "image_unsafe": "harmful", "unsure_image": "unsure", "image_unsure": "unsure", "unsure_image_safe": "unsure",
    "image_unsure_safe": "unsure",
}  # fmt: skip
TYPES = {
    "image_failure_sexual": "sexually-explicit", "image_failure_violent": "violence-and-gore", "image_failure_hate": "hateful",
    "image_failure_bias": "bias", "image_failure_other": "other",
}  # fmt: skip
TEXT_REMARKS = ("text_other_reason_text", "text_attack_other_reason_text")
IMAGE_REMARKS = (
    "image_failure_other_reason_text", "image_safe_other_reason_text", "image_target_other_reason_text", "unsure_image_reason_text",
    "final_comments_text",
)  # fmt: skip


def recognised(path: Path, head: str) -> bool:  # noqa: ARG001 - one shape for all formats
    return re.match(r'\s*\{\s*"(timestamp|submitted_timestamp|prompt|hashed_filename|validation)"\s*:\s*\{', head) is not None


def mapping(path: Path, source: Source, has_question: HasQuestion) -> Mapping:  # noqa: ARG001
    """Prompts by prompt_safety, images by image_harm. A project's own image_harm may have no tag for bias: then it counts as other."""
    types = dict(TYPES)
    harm = has_question("image_harm")
    if harm is not None and "bias" not in harm.tags:
        types["image_failure_bias"] = "other"
    return Mapping(
        kind=Kind.IMAGE, external_id="id", seed="prompt", seed_per_row=True,
        votes=(
            Votes("prompt_safety", "list", ("prompt_votes",), on="origin", make="prompt_safety", choices=dict(TEXT)),
            Votes("image_harm", "list", ("image_votes",), make="image_harm", choices=dict(IMAGE), tag_values=types),
        ),
    )  # fmt: skip


def blocks(path: Path, source: Source, progress: Progress) -> Iterator[Block]:  # noqa: ARG001
    data = whole(path)
    table = parsed(data)
    if not isinstance(table, dict) or not all(isinstance(table.get(name), dict) for name in COLUMNS):
        raise Invalid(f"This is not Adversarial Nibbler JSON: it has no columns {', '.join(COLUMNS)}.")
    time: dict[str, Any] = next((table[name] for name in TIMES if isinstance(table.get(name), dict)), {})
    submitted = table.get("submission_annotations")
    submitted = submitted if isinstance(submitted, dict) else {}
    block = ValueBlock([], [])
    for row, key in enumerate(table["prompt"], start=1):
        try:
            value = _pair(key, {name: table[name].get(key) for name in COLUMNS}, time.get(key), submitted.get(key))
        except _Broken as broken:
            block.problems.append(Problem(row, broken.column, broken.message))
        else:
            block.rows.append(row)
            block.values.append(value)
        if len(block.rows) >= ROWS_PER_BLOCK:
            yield block
            block = ValueBlock([], [])
    progress(len(data))
    if block.rows or block.problems:
        yield block


class _Broken(Exception):
    def __init__(self, column: str, message: str) -> None:
        self.column, self.message = column, message


def _pair(key: str, cells: dict[str, Any], time: Any, submitted: Any) -> dict[str, Any]:
    sent = _object("submission_annotations", submitted) if submitted else {}
    votes = cells["validation"] or []
    if not isinstance(votes, list):
        raise _Broken("validation", "There is no list of votes here.")
    people = [_object("validation", vote) for vote in votes]
    file = cells["hashed_filename"]
    row = {
        "id": f"nibbler-{sent['example_uid']}" if sent.get("example_uid") else f"nibbler-{file}-{key}",
        "prompt": cells["prompt"],
        "hashed_filename": None if file is None else str(file),
        "submitted": time,
        "rewritten_prompt": sent.get("rewritten_prompt") or None,
        "submitter": sent.get("submitter_id"),
        "prompt_votes": [_vote(one, "text_safety_validation", TEXT_REMARKS) for one in people],
        "image_votes": [_vote(one, "image_safety_validation", IMAGE_REMARKS, "image_failure_type") for one in people],
    }
    for name in ("text_attack_mode", "image_failure_type", "image_failure_target"):
        row[f"submitted_{name}"] = _names(sent, name) or None
    # What the voters said besides, as how many said it: no question of ours asks for it.
    for name in ("text_attack_mode", "image_failure_target"):
        row[f"said_{name}"] = dict(Counter(said for one in people for said in dict.fromkeys(_names(one, name)))) or None
    return row


def _object(column: str, given: Any) -> dict[str, Any]:
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _Broken(column, "There is no JSON object where one is expected.")
    return value


def _vote(said: dict[str, Any], answer: str, remarks: tuple[str, ...], types: str = "") -> dict[str, Any]:
    comment = " / ".join(text.strip() for name in remarks if isinstance(text := said.get(name), str) and text.strip())
    return {
        "rater": person(said.get("annotator_id")), "answer": _names(said, answer), "tags": _names(said, types) if types else None,
        "comment": comment or None, "elapsed": whole_ms(said.get("answer_time_ms")),
    }  # fmt: skip


def _names(said: dict[str, Any], name: str) -> list[str]:
    """A list of names; one that stands alone is a list of one."""
    value = said.get(name)
    given = value if isinstance(value, list) else [value] if isinstance(value, str) and value else []
    return [text for text in given if isinstance(text, str)]
