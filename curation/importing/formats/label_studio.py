"""Label Studio's JSON export: an array of tasks with their annotations.

Every control of choices becomes a column of votes, by its `from_name`. A cancelled annotation is an abstention; predictions are a
machine's and are left out. A text area's words become the comment of the annotation's votes.
https://labelstud.io/guide/task_format
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation.models import Kind
from curation.importing import mapping as mapping_
from curation.importing.formats.common import HasQuestion, elements, person, whole_ms
from curation.importing.mapping import Mapping
from curation.importing.readers import ROWS_PER_BLOCK, Block, Problem, Progress, Source, ValueBlock
from curation.importing.votes import FROM_ANSWERS, Votes, slug_of

VOTES = "votes: "  # then the control's name
_PICTURE = re.compile(r"\.(jpe?g|png|gif|webp|bmp)(\?|$)", re.IGNORECASE)


def recognised(path: Path, head: str) -> bool:  # noqa: ARG001 - one shape for all formats
    return head.lstrip("\ufeff \t\r\n")[:1] == "[" and '"annotations"' in head and '"data"' in head


def mapping(path: Path, source: Source, has_question: HasQuestion) -> Mapping:  # noqa: ARG001
    """A question a control, made from the answers where the project has none; texts or pictures as the tasks hold."""
    names: dict[str, None] = {}
    controls: dict[str, None] = {}
    shown: dict[str, str] = {}
    for block in blocks(path, source, lambda _: None):
        for value in block.values if isinstance(block, ValueBlock) else ():
            names |= dict.fromkeys(name for name in value if not name.startswith(VOTES))
            controls |= dict.fromkeys(name for name in value if name.startswith(VOTES))
            shown |= {name: text for name, text in value.items() if isinstance(text, str) and text and name not in shown}
    pictures = any(_PICTURE.search(text) for text in shown.values() if len(text) < 2000)
    found = mapping_.guess([name for name in names if name not in ("id", "task")])
    votes = tuple(Votes(slug_of(name.removeprefix(VOTES)), "list", (name,), make=FROM_ANSWERS) for name in controls)
    return Mapping(
        kind=Kind.IMAGE if pictures else Kind.TEXT, text=None if pictures else found.text, external_id="id",
        metadata=tuple(name for name in names if name != "id" and (pictures or name != found.text)), votes=votes,
    )  # fmt: skip


def blocks(path: Path, source: Source, progress: Progress) -> Iterator[Block]:  # noqa: ARG001
    block = ValueBlock([], [])
    for row, task in enumerate(elements(path, progress), start=1):
        if isinstance(task, dict) and isinstance(task.get("data"), dict):
            block.rows.append(row)
            block.values.append(_task(task))
        else:
            block.problems.append(Problem(row, "", "This is no task: it has no data."))
        if len(block.rows) + len(block.problems) >= ROWS_PER_BLOCK:
            yield block
            block = ValueBlock([], [])
    if block.rows or block.problems:
        yield block


def _task(task: dict[str, Any]) -> dict[str, Any]:
    number = task.get("id")
    row: dict[str, Any] = {"id": None if number is None else f"label-studio-{number}", **_data(task["data"])}
    annotations = [one for one in task.get("annotations") or task.get("completions") or [] if isinstance(one, dict)]
    for annotation in annotations:
        common = {
            "rater": person(annotation.get("completed_by")), "time": annotation.get("created_at"),
            "elapsed": whole_ms(annotation.get("lead_time"), 1000),
        }  # fmt: skip
        results = [one for one in annotation.get("result") or [] if isinstance(one, dict) and isinstance(one.get("value"), dict)]
        cancelled = bool(annotation.get("was_cancelled"))
        comment = " / ".join(text for one in results if one.get("type") == "textarea" for text in _texts(one["value"].get("text")))
        for one in results:
            if one.get("type") in ("choices", "rating"):
                answer = None if cancelled else _texts(one["value"].get("choices")) or one["value"].get("rating")
                votes = row.setdefault(f"{VOTES}{one.get('from_name') or 'choices'}", [])
                votes.append({**common, "answer": answer, "comment": comment or None})
        if cancelled and not any(one.get("type") in ("choices", "rating") for one in results):
            row.setdefault("cancelled_annotations", 0)
            row["cancelled_annotations"] += 1
    return row


def _data(data: dict[str, Any]) -> dict[str, Any]:
    """The task's data, where its own id does not hide the task's."""
    return {("data_id" if name == "id" else name): value for name, value in data.items() if not name.startswith(VOTES)}


def _texts(value: Any) -> list[str]:
    given = value if isinstance(value, list) else [value]
    return [text for text in given if isinstance(text, str)]
