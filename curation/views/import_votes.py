"""The votes part of the import's page: its form from a mapping, and a mapping from its form."""

from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict

from annotation.errors import Invalid
from annotation.models import Policy, Project
from annotation.presets import PRESETS
from curation.importing import readers, voting
from curation.importing import votes as votes_
from curation.importing.mapping import Mapping
from curation.importing.votes import FORMS, FROM_ANSWERS, Answers, Survey, Votes
from curation.models import ImportBatch

NONE = "-"
NOT_SAID = "?"  # a spelling that is mapped to nothing yet
LOOKED_AT = 20_000  # rows that are looked through for spellings
SPELLINGS = 200


@dataclass(frozen=True)
class Spelling:
    """One row of the table: how it is spelt, how often, what it stands for, and how a new choice for it is called."""

    index: int
    text: str
    times: int
    chosen: str
    options: list[tuple[str, str]]
    label: str | None = None


@dataclass(frozen=True)
class Entry:
    """One question's part of the form. `fixed`: a published layout says where its votes stand."""

    index: int
    votes: Votes
    asked: str
    questions: list[tuple[str, str]]
    answers: list[Spelling]
    tags: list[Spelling]
    whole: bool
    fixed: bool

    @property
    def unmapped(self) -> list[Spelling]:
        """What is mapped to nothing yet."""
        return [row for row in (*self.answers, *self.tags) if row.chosen == NOT_SAID]


@dataclass(frozen=True)
class Form:
    """The whole part. `shown`: it is opened from the start."""

    entries: list[Entry]
    forms: dict[str, str]
    policies: list[tuple[str, str]]
    existing: bool
    shown: bool
    looked_at: int = LOOKED_AT


# ---------------------------------------------------------------- from the form
def votes_of(given: QueryDict) -> tuple[Votes, ...]:
    """The votes that were mapped. Raises Invalid for what is not the shape of it."""
    count = given.get("votes_count", "0")
    entries = range(min(int(count), 50)) if count.isdecimal() else ()
    return tuple(_entry(given, f"v{index}_") for index in entries if given.get(f"v{index}_form"))


def _entry(given: QueryDict, name: str) -> Votes:
    def column(part: str) -> str | None:
        value = given.get(name + part, NONE)
        return None if value == NONE else str(value)

    kind, _, slug = given.get(f"{name}question", "").partition(":")
    made = slug if kind == "make" else ""
    asked = (given.get(f"{name}slug", "").strip() if made == FROM_ANSWERS else slug) or votes_.slug_of(given.get(f"{name}columns", ""))
    required = given.get(f"{name}required", "").strip()
    if required and not required.isdecimal():
        raise Invalid("Votes needed is a whole number.", code="votes", fields={"votes_required": "A whole number, or nothing."})
    return Votes.of({
        "question": asked, "make": made, "form": given[f"{name}form"], "on": given.get(f"{name}on") or "item",
        "policy": given.get(f"{name}policy") or None, "votes_required": int(required) if required else None,
        "columns": given.getlist(f"{name}columns"), "attributes": given.getlist(f"{name}attributes"),
        "tags": [tag] if (tag := column("tags")) is not None else [],
        **{part: column(part) for part in ("rater", "comment", "time", "elapsed")},
        "choices": _spellings(given, f"{name}answer"), "tag_values": _spellings(given, f"{name}tag"),
        "title": given.get(f"{name}title", ""), "labels": _labels(given, f"{name}answer"),
    })  # fmt: skip


def _spellings(given: QueryDict, name: str) -> dict[str, str]:
    pairs = zip(given.getlist(f"{name}_spelling"), given.getlist(f"{name}_value"), strict=False)
    return {spelling: value for spelling, value in pairs if value != NOT_SAID}


def _labels(given: QueryDict, name: str) -> dict[str, str]:
    pairs = zip(given.getlist(f"{name}_value"), given.getlist(f"{name}_label"), strict=False)
    return {value: label.strip() for value, label in pairs if value not in ("", NOT_SAID) and label.strip()}


# ---------------------------------------------------------------- to the form
def form_of(batch: ImportBatch, source: readers.Source, table: Any, mapping: Mapping, columns: list[str], *, wrong: bool) -> Form:
    """What the page shows for this mapping: the entries that it has, or an empty one. The file is looked at for its spellings."""
    fixed = source.format in readers.READY
    entries = mapping.votes or (Votes(question="", form="", columns=()),)
    known = [votes for votes in entries if votes.form in FORMS and votes.columns and votes.used <= set(columns)]
    surveys = dict(zip(map(id, known), votes_.survey(readers.blocks(table, source), known, LOOKED_AT), strict=True)) if known else {}
    return Form(
        entries=[_shown(index, batch.project, mapping, votes, surveys.get(id(votes)), fixed) for index, votes in enumerate(entries)],
        forms=FORMS, policies=[("", "as it is ready-made, or majority"), *((value, value) for value in Policy.values)],
        existing=mapping.existing, shown=bool(mapping.votes) or mapping.existing or wrong,
    )  # fmt: skip


def _shown(index: int, project: Project, mapping: Mapping, votes: Votes, found: Survey | None, fixed: bool) -> Entry:  # noqa: PLR0917
    kind = voting.kind_asked(mapping, votes)
    there = list(project.questions.filter(kind=kind).order_by("id"))
    slugs = {question.slug for question in there}
    questions = [(f"use:{question.slug}", question.title) for question in there]
    ready = [(name, spec) for name, spec in PRESETS.items() if spec.kind == kind and name not in slugs]
    questions += [(f"make:{name}", f"{spec.settings.title}, ready-made") for name, spec in ready]
    questions.append((f"make:{FROM_ANSWERS}", "A new one, of the answers found"))
    asked = f"use:{votes.question}" if votes.question in slugs or not votes.make else f"make:{votes.make}"
    answers = tags = []
    if found is not None:
        possible = _possible(project, mapping, votes, found)
        new = asked == f"make:{FROM_ANSWERS}"
        if new:
            answers = _new_rows(found.answers, votes)
        else:
            answers = _rows(found.answers, votes.choices, possible.choices, lambda one: votes_.guess_choice(one, possible))
        tags = _rows(found.tags, votes.tag_values, None if new else possible.tags, lambda one: votes_.guess_tag(one, possible))
    return Entry(index, votes, asked, questions, answers, tags, found is None or found.whole, fixed)


def _possible(project: Project, mapping: Mapping, votes: Votes, found: Survey) -> Answers:
    complete = votes if votes.choices or votes.make != FROM_ANSWERS else votes_.completed(votes, found)
    try:
        return voting.answers_for(project, mapping, complete)
    except Invalid:
        return Answers({}, {})


def _rows(counts: Any, mapped: dict[str, str], among: Any, guess: Any) -> list[Spelling]:
    """`among`: value -> label of the question's; None where every spelling becomes one."""
    rows = []
    for index, (text, times) in enumerate(counts.most_common(SPELLINGS)):
        options = [("", "left out")] if among is None else [(NOT_SAID, "choose …"), *among.items(), ("", "left out")]
        if among is None:
            own = votes_.value_of(text)
            options = [(own, f"{own}, one of its own"), *options]
            chosen = mapped.get(text, own)
        else:
            chosen = mapped[text] if text in mapped else guess(text) or NOT_SAID
        rows.append(Spelling(index, text, times, chosen, options))
    return rows


def _new_rows(counts: Any, votes: Votes) -> list[Spelling]:
    """Each spelling as a choice of its own, with the label that it would have."""
    names, rows = votes_.short_names(votes, counts), []
    for index, (text, times) in enumerate(counts.most_common(SPELLINGS)):
        own = votes_.value_of(names[text])
        chosen = votes.choices.get(text, own)
        options = [(own, f"{own}, one of its own"), *([(chosen, chosen)] if chosen not in ("", own) else []), ("", "left out")]
        rows.append(Spelling(index, text, times, chosen, options, votes.labels.get(chosen) or votes_.label_of(names[text])))
    return rows


def with_guesses(mapping: Mapping, form: Form) -> Mapping:
    """The mapping with what the page proposes for its spellings."""
    done = tuple(
        replace(
            entry.votes,
            choices={row.text: row.chosen for row in entry.answers if row.chosen != NOT_SAID} or entry.votes.choices,
            tag_values={row.text: row.chosen for row in entry.tags if row.chosen != NOT_SAID} or entry.votes.tag_values,
        )
        for entry in form.entries
        if entry.votes.form
    )
    return replace(mapping, votes=done)
