"""A question's form: from what was posted to what the service takes, and back, with each message beside its field.

A form is a plain dict of what stands in its fields, so that whatever was typed is shown again when something is wrong.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.http import QueryDict
from django.utils.text import slugify

from annotation.models import Guideline, TagUse
from annotation.questions import ChoiceSpec, Example, GuidelineText, Settings, Spec, TagSpec

Form = dict[str, Any]
_ROWS: dict[str, dict[str, str | bool]] = {
    "choices": {"value": "", "label": "", "hotkey": "", "tag_use": TagUse.NONE.value, "is_unsure": False},
    "tags": {"value": "", "label": "", "hotkey": ""},
    "examples": {"title": "", "text": "", "choice": "", "why": ""},
}
# Rows left blank for what may be added without a script.
_SPARE = {"choices": 1, "tags": 1, "examples": 1}
_LEAST = {"choices": 3, "tags": 1, "examples": 1}
_SWITCHES = ("shows_origin", "blind_ruling", "sensitive", "ordered")
_PERCENTS = ("check_share", "accuracy_floor", "repeat_share")
_WORDS = ("slug", "title", "prompt", "kind", "policy", "votes_required", "lease_minutes", *_PERCENTS, "body")


# ---------------------------------------------------------------- in
def posted(data: QueryDict) -> Form:
    """What was typed, rows that were left blank taken out."""
    form: Form = {name: data.get(name, "").strip() for name in _WORDS}
    form |= {name: name in data for name in _SWITCHES}
    for rows, blank in _ROWS.items():
        form[rows] = []
        for number in _numbers(data, rows):
            row = {name: _cell(data, f"{rows}-{number}-{name}", of=kind) for name, kind in blank.items()}
            if any(row[name] for name in blank if name not in ("tag_use", "is_unsure")):
                form[rows].append(row)
    return form


def _numbers(data: QueryDict, rows: str) -> list[int]:
    found = (re.fullmatch(rf"{rows}-(\d{{1,4}})-\w+", name) for name in data)
    return sorted({int(match[1]) for match in found if match})


def _cell(data: QueryDict, name: str, of: object) -> Any:
    return name in data if isinstance(of, bool) else data.get(name, "").strip()


def settings(form: Form) -> Settings:
    """What the service takes. A value left out is made of the label; a number that is none becomes 0, or -1 percent: both are refused."""
    return Settings(
        **{name: form[name] for name in ("title", "prompt", "policy", *_SWITCHES)},
        votes_required=whole(form["votes_required"]),
        lease_minutes=whole(form["lease_minutes"]),
        check_share=_share(form["check_share"]) or 0.0,
        accuracy_floor=_share(form["accuracy_floor"]),
        repeat_share=_share(form["repeat_share"]) or 0.0,
        choices=[
            ChoiceSpec(**{**row, "value": row["value"] or slugify(row["label"]), "tag_use": row["tag_use"] or TagUse.NONE})
            for row in form["choices"]
        ],
        tags=[TagSpec(**{**row, "value": row["value"] or slugify(row["label"])}) for row in form["tags"]],
    )


def guideline(form: Form, answers: Mapping[str, str]) -> GuidelineText:
    """`answers` from value to label: an example may name its right answer by either."""
    values = {name.lower(): value for value, label in answers.items() for name in (value, label)}
    examples = [Example(**row) for row in form["examples"]]
    return GuidelineText(
        form["body"], [replace(example, choice=values.get(example.choice.lower(), example.choice)) for example in examples]
    )


def spec(form: Form) -> Spec:
    """A whole new question."""
    asked = settings(form)
    return Spec(
        slug=form["slug"] or slugify(form["title"])[:60],
        kind=form["kind"],
        settings=asked,
        guideline=guideline(form, {choice.value: choice.label for choice in asked.choices}),
    )


def whole(typed: str) -> int:
    """A whole number as typed; 0 when it is none."""
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 9 else 0


def _share(typed: str) -> float | None:
    """Percent as typed, as a share: "12.5" is 0.125. None when empty; -0.01 for what is no number."""
    digits = typed.removesuffix("%").strip()
    if not typed:
        return None
    return round(float(digits) / 100, 6) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,4})?", digits) else -0.01


def _percent(share: float | None) -> str:
    """As it is typed: 0.125 is "12.5"."""
    return "" if share is None else f"{share * 100:.6g}"


# ---------------------------------------------------------------- out
def of_spec(given: Spec) -> Form:
    return {"slug": given.slug, "kind": given.kind} | of_settings(given.settings) | asdict(given.guideline)


def of_settings(given: Settings) -> Form:
    return asdict(given) | {name: _percent(getattr(given, name)) for name in _PERCENTS}


def of_guideline(given: Guideline) -> Form:
    return {"body": given.body, "examples": [dict(example) for example in given.examples]}


def shown(form: Form, errors: Mapping[str, str] | None = None, *, more: str = "") -> Form:
    """The form as the page draws it: messages beside their fields, spare blank rows, and one more of the rows named `more`."""
    errors = errors or {}
    page = form | {"errors": {name: message for name, message in errors.items() if "." not in name}}
    for rows, blank in _ROWS.items():
        filled = form.get(rows, [])
        wanted = max(len(filled) + _SPARE[rows] + (rows == more), _LEAST[rows])
        page[rows] = [dict(row) for row in filled] + [dict(blank) for _ in range(wanted - len(filled))]
        for number, row in enumerate(page[rows]):
            at = f"{rows}.{number}."
            row["errors"] = {name.removeprefix(at): message for name, message in errors.items() if name.startswith(at)}
    return page
