"""Votes that come with a file: which columns hold them, and a block's rows as votes (SPEC section 2, "Items")."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from annotation.errors import Invalid
from annotation.models import Policy, Question, TagUse
from annotation.presets import PRESETS
from annotation.questions import RESERVED_KEYS, ChoiceSpec, GuidelineText, Settings, Spec, TagSpec
from curation.importing.readers import Block, Problem, ValueBlock

FORMS = {
    "long": "a row per vote",
    "wide": "a column per rater",
    "list": "one column with a list of answers",
    "counts": "a column per answer, with how many gave it",
}
FROM_ANSWERS = "answers"  # `make`: a question of the answers that the file gives
RATER_LENGTH = 100
MOST_VOTES = 1000
MOST_NAMED = 5  # columns and spellings in one message
MOST_EMPTY = 1000  # rows without a vote that are told one by one
LONGEST_MS = 2**31 - 1
_ONE = ("rater", "comment", "time", "elapsed")  # parts that are one column of a long file


@dataclass(frozen=True)
class Votes:
    """Where the votes for one question stand, and how they are spelt.

    `columns` by form: long, list: the one with the answers; wide: one a rater; counts: one an answer, and then its name is the
    spelling. `choices` maps spellings to choices of the question, or to "" for an answer that is no vote; a spelling that is
    a choice's value or label need not be in it. `tag_values` does the same for tags. `make` says what to make where the question
    does not exist: a ready-made one by its slug, or "answers", with this `title` and these `labels` by choice.
    """

    question: str
    form: str
    columns: tuple[str, ...]
    on: str = "item"
    make: str = ""
    policy: str | None = None
    votes_required: int | None = None
    rater: str | None = None
    tags: tuple[str, ...] = ()
    comment: str | None = None
    time: str | None = None
    elapsed: str | None = None
    attributes: tuple[str, ...] = ()
    choices: dict[str, str] = field(default_factory=dict)
    tag_values: dict[str, str] = field(default_factory=dict)
    title: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> "Votes":
        """From JSON. Raises Invalid for what is not the shape of it."""
        if not isinstance(given, dict):
            raise _wrong("Votes are mapped by an object a question.")
        if unknown := sorted(set(given) - {f.name for f in fields(cls)}):
            raise _wrong(f"The mapping of votes has no part called {unknown[0]!r}. It has {', '.join(f.name for f in fields(cls))}.")
        for name in ("question", "form"):
            if not isinstance(given.get(name), str) or not given[name]:
                raise _wrong(f"In the mapping of votes, {name} is needed.")
        for name in ("on", "make", "policy", "title", *_ONE):
            if not isinstance(given.get(name), (str, type(None))):
                raise _wrong(f"In the mapping of votes, {name} is one text.")
        required = given.get("votes_required")
        if required is not None and (not isinstance(required, int) or isinstance(required, bool) or not 1 <= required <= MOST_VOTES):
            raise _wrong(f"Votes needed: from 1 to {MOST_VOTES:,}, or none for as many as there are raters.", "required")
        lists = {name: tuple(_texts(given.get(name) or (), name)) for name in ("columns", "tags", "attributes")}
        spelt = {name: _spellings(given.get(name) or {}, name) for name in ("choices", "tag_values", "labels")}
        texts = {"on": given.get("on") or "item", "make": given.get("make") or "", "title": given.get("title") or ""}
        return cls(**{**given, **lists, **spelt, **texts})

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "columns": list(self.columns), "tags": list(self.tags), "attributes": list(self.attributes)}

    @property
    def used(self) -> set[str]:
        """The columns that are no metadata of the item."""
        one = {getattr(self, name) for name in _ONE} - {None}
        return {*self.columns, *self.tags, *self.attributes, *one}

    def checked(self, names: Sequence[str], has_origin: bool) -> "Votes":
        """Itself, or Invalid when it does not fit a file with these columns."""
        if self.form not in FORMS:
            raise _wrong(f"The form of votes is one of {', '.join(FORMS)}.", "form")
        if not self.columns:
            raise _wrong("Say which column holds the votes.", "columns")
        if self.form in ("long", "list") and len(self.columns) > 1:
            raise _wrong("The answers stand in one column.", "columns")
        if names and (gone := sorted(self.used - set(names))):
            raise _wrong(f"The file has no column {gone[0]!r}.", "columns")
        if self.form != "long" and (self.used - set(self.columns)):
            raise _wrong("Rater, tags, comment, times and what is known of raters are columns of a file with a row per vote.", "rater")
        if self.attributes and self.rater is None:
            raise _wrong("What is known of raters needs the column that names them.", "attributes")
        self._check_question(has_origin)
        return self

    def _check_question(self, has_origin: bool) -> None:
        if self.on not in ("item", "origin"):
            raise _wrong("Votes are on the item or on its origin.", "on")
        if self.on == "origin" and self.form == "long":
            raise _wrong("Votes that come one a row are on the item.", "on")
        if self.on == "origin" and not has_origin:
            raise _wrong("For votes on the seed or prompt, map its text too.", "on")
        if self.policy is not None and self.policy not in Policy.values:
            raise _wrong(f"The policy is one of {', '.join(Policy.values)}.", "policy")
        if self.make not in ("", FROM_ANSWERS, *PRESETS):
            raise _wrong(f"A question is made from {', '.join(PRESETS)}, or from the answers.", "make")


def _texts(value: Any, name: str) -> Sequence[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise _wrong(f"In the mapping of votes, {name} is a list of columns.")
    return value


def _spellings(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise _wrong(f"In the mapping of votes, {name} is an object: the spelling in the file, and what it stands for.")
    return value


def _wrong(message: str, part: str = "") -> Invalid:
    return Invalid(message, code="votes", fields={f"votes_{part}" if part else "votes": message})


# ---------------------------------------------------------------- what may be answered
@dataclass(frozen=True)
class Answers:
    """The choices and tags of a question: value -> label, and which choices take no tags."""

    choices: Mapping[str, str]
    tags: Mapping[str, str]
    untagged: frozenset[str] = frozenset()
    unsure: str | None = None

    @classmethod
    def of_settings(cls, settings: Settings) -> "Answers":
        return cls(
            {choice.value: choice.label for choice in settings.choices},
            {tag.value: tag.label for tag in settings.tags},
            frozenset(choice.value for choice in settings.choices if choice.tag_use == TagUse.NONE),
            next((choice.value for choice in settings.choices if choice.is_unsure), None),
        )

    @classmethod
    def of_question(cls, question: Question) -> "Answers":
        choices = list(question.choices.all())
        return cls(
            {choice.value: choice.label for choice in choices},
            {tag.value: tag.label for tag in question.tags.all()},
            frozenset(choice.value for choice in choices if choice.tag_use == TagUse.NONE),
            next((choice.value for choice in choices if choice.is_unsure), None),
        )


def plain(spelling: str) -> str:
    """What is compared of a spelling: case, spaces and punctuation aside; numbers as they are, 1.0 as 1."""
    spelling = spelling.strip().casefold()
    if re.fullmatch(r"[-+]?\d+(\.0+)?", spelling):
        return str(int(float(spelling)))
    return re.sub(r"[\W_]+", "_", spelling).strip("_") or spelling


def exact(spelling: str, among: Mapping[str, str]) -> str | None:
    """The value that is spelt like this, or whose label is."""
    wanted = plain(spelling)
    return next((value for value, label in among.items() if wanted in (plain(value), plain(label))), None)


_YES = {"1", "true", "y", "t", "positive", "toxic", "unsafe", "harmful", "offensive"}
_NO = {"0", "-1", "false", "n", "f", "negative", "not_toxic", "non_toxic", "nontoxic", "not", "none", "safe", "benign", "clean"}
_UNSURE = {"unsure", "other", "unknown", "not_sure", "dont_know", "don_t_know", "cannot_say", "unclear", "maybe"}


def guess_choice(spelling: str, answers: Answers) -> str | None:
    """The likeliest choice for a spelling: shown for a person to confirm, never taken silently."""
    if (found := exact(spelling, answers.choices)) is not None:
        return found
    wanted = plain(spelling)
    if wanted in _UNSURE and answers.unsure:
        return answers.unsure
    for words, values in ((_YES, ("yes", "unsafe", "harmful")), (_NO, ("no", "safe"))):
        if wanted in words:
            return next((value for value in values if value in answers.choices), None)
    ends = [value for value in answers.choices if wanted.endswith(f"_{plain(value)}")]
    return max(ends, key=len) if ends else None


def guess_tag(spelling: str, answers: Answers) -> str | None:
    """The likeliest tag: the one spelt so, else one that shares a word's beginning."""
    if (found := exact(spelling, answers.tags)) is not None:
        return found
    words = [word[:5] for word in plain(spelling).split("_") if len(word) > 3]
    return next((value for value, label in answers.tags.items() if any(word in plain(label) for word in words)), None)


def spec_from_answers(votes: Votes, kind: str) -> Spec:
    """A question of the answers that `choices` names, in their order; its tags are those that `tag_values` names."""
    choices: dict[str, str] = {}
    names = short_names(votes, votes.choices)
    for spelling, value in votes.choices.items():
        if value:
            choices.setdefault(value, votes.labels.get(value, "").strip() or names[spelling])
    tags: dict[str, str] = {}
    for spelling, value in votes.tag_values.items():
        if value:
            tags.setdefault(value, spelling.strip())
    keys = (key for key in "123456789eyntdhijklmoqrvwx0" if key not in RESERVED_KEYS)
    use = TagUse.OFFERED if tags else TagUse.NONE
    title = votes.title.strip() or votes.question.replace("_", " ").replace("-", " ").strip().capitalize()
    return Spec(
        slug=votes.question,
        kind=kind,
        settings=Settings(
            title=title[:80] or "Question",
            prompt=f"{title[:190]}?",
            policy=votes.policy or Policy.MAJORITY,
            votes_required=votes.votes_required or 3,
            choices=tuple(
                ChoiceSpec(value, label_of(spelling), next(keys, "?"), tag_use=use, is_unsure=plain(spelling) in _UNSURE - {"other"})
                for value, spelling in choices.items()
            ),
            tags=tuple(TagSpec(value, label_of(spelling), next(keys, "?")) for value, spelling in tags.items()),
        ),
        guideline=GuidelineText(body="These votes came in a file. Write here what people are asked to go by.\n"),
    )


def spec_of(votes: Votes, kind: str) -> Spec | None:
    """The question that `make` would make: a ready-made one with the tags that `tag_values` names besides, or one of the answers."""
    if votes.make == FROM_ANSWERS:
        return spec_from_answers(votes, kind)
    preset = PRESETS.get(votes.make)
    if preset is None:
        return None
    settings = preset.settings
    has = {tag.value for tag in settings.tags}
    taken = {choice.hotkey for choice in settings.choices} | {tag.hotkey for tag in settings.tags}
    keys = (key for key in "eytdijklmnqrw0456789" if key not in RESERVED_KEYS | taken)
    more = dict.fromkeys(value for value in votes.tag_values.values() if value and value not in has)
    added = tuple(TagSpec(value, label_of(value.replace("-", " ")), next(keys, "?")) for value in more) if has else ()
    settings = replace(settings, policy=votes.policy or settings.policy, tags=(*settings.tags, *added))
    return replace(preset, slug=votes.question, settings=settings)


def is_address(slug: str) -> bool:
    """Whether a question can have it."""
    return len(slug) <= 60 and slug != "new" and re.fullmatch(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", slug) is not None


def slug_of(name: str) -> str:
    """A question's address for a control or column of this name."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:60].strip("-")
    return slug if slug and slug != "new" else "question"


def short_names(votes: Votes, spellings: Iterable[str]) -> dict[str, str]:
    """What to call the answers: as they are spelt; where columns stand for them, without the words that all these begin with."""
    names = {spelling: spelling.strip() for spelling in spellings}
    if votes.form != "counts" or len(names) < 2:
        return names
    least, most = min(names.values()), max(names.values())
    alike = next((at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), len(least))
    common = re.sub(r"[^-_ .:/]*$", "", least[:alike])
    return {spelling: name[len(common) :] or name for spelling, name in names.items()}


def value_of(spelling: str) -> str:
    """A choice's value for a spelling that is to become one."""
    value = re.sub(r"[^a-z0-9]+", "-", spelling.strip().casefold()).strip("-")[:40].strip("-")
    if spelling.strip().startswith("-"):
        value = f"minus-{value}"[:40]
    return value or "empty"


def label_of(spelling: str) -> str:
    """How a choice is called that is made of a spelling."""
    return (spelling[:1].upper() + spelling[1:])[:60]


# ---------------------------------------------------------------- reading
class Raw(NamedTuple):
    """One vote as the file gives it. A rater of None is one of the item's raters, whichever; an answer of None is no vote."""

    row: int
    column: str
    rater: str | None
    answer: Any
    tags: Any = None
    comment: str | None = None
    time: Any = None
    elapsed: Any = None
    attributes: dict[str, Any] | None = None


@dataclass
class Staged:
    """Votes ready to store, by column. `raters` are (row, rater, attributes as JSON)."""

    row: list[int] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    rater: list[str | None] = field(default_factory=list)
    choice: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)
    time: list[str | None] = field(default_factory=list)
    elapsed: list[str | None] = field(default_factory=list)
    raters: list[tuple[int, str, str]] = field(default_factory=list)

    def without(self, rows: set[int]) -> "Staged":
        """The same without what these rows brought."""
        if not rows:
            return self
        keep = [row not in rows for row in self.row]
        columns = {
            f.name: [value for value, kept in zip(getattr(self, f.name), keep, strict=True) if kept]
            for f in fields(self) if f.name != "raters"
        }  # fmt: skip
        return replace(self, **columns, raters=[said for said in self.raters if said[0] not in rows])


_NO_VOTE = ""


class Reader:
    """Reads the votes for one question, block by block; counts what is no vote, and what is mapped to nothing."""

    def __init__(self, votes: Votes, answers: Answers) -> None:
        self.votes, self.answers = votes, answers
        self.abstained = 0
        self.tags_left_out = 0
        self.empty: list[int] = []  # rows whose counts are all 0
        self.unmapped: Counter[str] = Counter()
        self.unmapped_tags: Counter[str] = Counter()
        self._choices: dict[str, str | None] = {}
        self._tags: dict[str, str | None] = {}
        self._known: set[tuple[str, str]] = set()

    def staged(self, block: Block, keys: Mapping[int, str]) -> tuple[Staged, list[Problem]]:
        """The block's votes. `keys` names the item of each row that is good so far; only those are read."""
        out = Staged()
        problems: list[Problem] = []
        wrong: dict[tuple[int, str], list[tuple[str, str]]] = {}  # by row and reason: columns and spellings
        self._known.clear()
        for vote in raw(block, self.votes, problems):
            if (key := keys.get(vote.row)) is None:
                continue
            try:
                self._add(out, vote, key)
            except _Bad as bad:
                wrong.setdefault((vote.row, bad.message), []).append((bad.column or vote.column, bad.spelling))
        problems += [_told(row, message, cells) for (row, message), cells in wrong.items()]
        bad_rows = {problem.row for problem in problems}
        if self.votes.form == "counts":
            found = bad_rows.union(out.row)
            self.empty += [row for row in block.rows if row in keys and row not in found][: MOST_EMPTY - len(self.empty)]
        return out.without(bad_rows), problems

    def _add(self, out: Staged, vote: Raw, key: str) -> None:
        choice, tags = self._answer(vote.answer)
        if choice == _NO_VOTE:
            self.abstained += 1
            return
        if not key:
            raise _Bad("There is a vote on the seed or prompt here, and the row has none.")
        if vote.tags is not None:
            tags = tags + [tag for given in _several(vote.tags) if (tag := self._tag(given)) and tag not in tags]
        if tags and choice in self.answers.untagged:
            tags = []
            self.tags_left_out += 1
        rater = vote.rater
        if rater is not None:
            rater = _sound(rater.strip(), RATER_LENGTH, "The rater’s name")
            if not rater:
                raise _Bad("The row names no rater.", self.votes.rater)
        comment = _sound((vote.comment or "").strip(), None, "The comment")
        time, elapsed = _time(vote.time), _elapsed(vote.elapsed)
        out.row.append(vote.row)
        out.key.append(key)
        out.rater.append(rater)
        out.choice.append(choice)
        out.tags.append(",".join(tags))
        out.comment.append(comment)
        out.time.append(time)
        out.elapsed.append(elapsed)
        if vote.attributes and rater is not None:
            said = (rater, json.dumps(vote.attributes, ensure_ascii=False, sort_keys=True))
            if "\\u0000" in said[1]:
                raise _Bad("There is a NUL character in what is known of the rater.")
            if said not in self._known:
                self._known.add(said)
                out.raters.append((vote.row, *said))

    def _answer(self, given: Any) -> tuple[str, list[str]]:
        """The choice, "" for no vote, and tags that stand among the answers."""
        if given is None:
            return _NO_VOTE, []
        if not isinstance(given, (list, tuple)):
            return self._choice(_spelt(given)), []
        choices: list[str] = []
        tags: list[str] = []
        for one in map(_spelt, given):
            tag = self._tag_or_none(one) if one not in self.votes.choices and exact(one, self.answers.choices) is None else None
            (tags if tag is not None else choices).append(tag if tag is not None else self._choice(one))
        named = sorted({choice for choice in choices if choice != _NO_VOTE})
        if len(named) > 1:
            raise _Bad(f"One vote names {len(named)} choices: {', '.join(named)}. Map all but one to tags, or to no vote.")
        if not named:
            if any(tags):
                raise _Bad("The vote has tags and names no choice.")
            return _NO_VOTE, []
        return named[0], [tag for tag in dict.fromkeys(tags) if tag]

    def _choice(self, spelling: str) -> str:
        if spelling not in self._choices:
            mapped = self.votes.choices.get(spelling, self.votes.choices.get(spelling.strip()))
            found = mapped if mapped is not None else exact(spelling, self.answers.choices)
            self._choices[spelling] = found if found == _NO_VOTE or found in self.answers.choices else None
        choice = self._choices[spelling]
        if choice is None:
            self.unmapped[spelling] += 1
            known = ", ".join(self.answers.choices)
            raise _Bad(f"The answer {{}} is mapped to no choice. Map it to one of {known}, or to no vote.", spelling=spelling)
        return choice

    def _tag_or_none(self, spelling: str) -> str | None:
        """The tag, "" for one that is left out, None for what is no tag."""
        if spelling not in self._tags:
            mapped = self.votes.tag_values.get(spelling)
            found = mapped if mapped is not None else exact(spelling, self.answers.tags)
            self._tags[spelling] = found if found == "" or found in self.answers.tags else None
        return self._tags[spelling]

    def _tag(self, spelling: str) -> str:
        tag = self._tag_or_none(spelling)
        if tag is None:
            self.unmapped_tags[spelling] += 1
            known = ", ".join(self.answers.tags) or "none: the question has no tags"
            said = f"The tag {short(spelling)!r} is mapped to none of the question’s. They are {known}."
            raise _Bad(said, next(iter(self.votes.tags), None))
        return tag


def short(spelling: str) -> str:
    """As much of it as a message shows: in a column that holds no answers, it may be a text."""
    return spelling if len(spelling) <= 40 else spelling[:40] + " …"


class _Bad(Exception):
    """What is wrong with a vote; {} in the message stands for its spelling."""

    def __init__(self, message: str, column: str | None = None, spelling: str = "") -> None:
        self.message, self.column, self.spelling = message, column, spelling


def _told(row: int, message: str, cells: Sequence[tuple[str, str]]) -> Problem:
    """One line for all the cells of a row that have this wrong with them."""
    columns, spellings = (list(dict.fromkeys(part)) for part in zip(*cells, strict=True))
    named = ", ".join(columns[:MOST_NAMED]) + (f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else "")
    if spellings != [""]:
        shown = ", ".join(repr(short(spelling)) for spelling in spellings[:MOST_NAMED])
        shown += f" and {len(spellings) - MOST_NAMED} more" if len(spellings) > MOST_NAMED else ""
        if len(spellings) > 1:
            message = message.replace("The answer {} is", "The answers {} are", 1).replace("Map it", "Map them", 1)
        message = message.replace("{}", shown, 1)
    return Problem(row, named, message)


def raw(block: Block, votes: Votes, problems: list[Problem]) -> Iterator[Raw]:
    """The votes of a block as they are spelt; an empty cell is no vote and does not come."""
    if votes.form == "long":
        yield from _long(block, votes)
    elif votes.form == "wide":
        for column in votes.columns:
            for row, answer in zip(block.rows, block.strings(column).to_pylist(), strict=True):
                if answer is not None and answer.strip():
                    yield Raw(row, column, column, answer)
    elif votes.form == "counts":
        yield from _counts(block, votes, problems)
    else:
        yield from _lists(block, votes, problems)


@dataclass
class Survey:
    """How the answers and tags of a file are spelt, and how often. `whole` is False when only its first rows were looked at."""

    answers: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    whole: bool = True


def survey(blocks: Iterable[Block], mapped: Sequence[Votes], most_rows: int | None = None) -> list[Survey]:
    """Look through a file for the spellings of each question's votes."""
    found = [Survey() for _ in mapped]
    rows = 0
    for block in blocks:
        if most_rows is not None and rows >= most_rows:
            for one in found:
                one.whole = False
            break
        rows += len(block.rows)
        for one, votes in zip(found, mapped, strict=True):
            for vote in raw(block, votes, []):
                given = vote.answer if isinstance(vote.answer, (list, tuple)) else [vote.answer]
                one.answers.update(_spelt(answer).strip() for answer in given if answer is not None)
                one.tags.update(_several(vote.tags) if vote.tags is not None else ())
    for one in found:
        one.answers.pop("", None)
    return found


def completed(votes: Votes, found: Survey) -> Votes:
    """With a choice for every answer that was found, in the order of their spelling, for a question that is made of them."""
    names = short_names(votes, found.answers)
    choices = {spelling: value_of(names[spelling]) for spelling in sorted(found.answers, key=_natural)}
    tags = {spelling: value_of(spelling) for spelling in sorted(found.tags, key=_natural)}
    return replace(votes, choices=choices, tag_values=votes.tag_values or tags)


def _natural(spelling: str) -> tuple[float, str]:
    """Numbers in their order, before words."""
    try:
        return float(spelling), ""
    except ValueError:
        return float("inf"), spelling.casefold()


def _long(block: Block, votes: Votes) -> Iterator[Raw]:
    def column(name: str | None) -> list[Any]:
        return [None] * len(block.rows) if name is None else block.strings(name).to_pylist()

    answers, raters = column(votes.columns[0]), column(votes.rater)
    comments, times, spans = column(votes.comment), column(votes.time), column(votes.elapsed)
    tags = _cells(block, votes.tags)
    known = {name: _values(block, name) for name in votes.attributes}
    named = votes.rater is not None
    for index, row in enumerate(block.rows):
        answer = answers[index]
        attributes = {name: said for name, values in known.items() if (said := values[index]) is not None} if known else None
        yield Raw(
            row, votes.columns[0], (raters[index] or "") if named else None, answer if answer and answer.strip() else None,
            [one for cells in tags if (cell := cells[index]) for one in _several(cell)] if tags else None,
            comments[index], times[index], spans[index], attributes,
        )  # fmt: skip


def _values(block: Block, name: str) -> list[Any]:
    """The cells as JSON values."""
    if isinstance(block, ValueBlock):
        return [None if value.get(name) == "" else value.get(name) for value in block.values]
    texts: list[Any] = block.strings(name).to_pylist()
    return texts


def _cells(block: Block, names: Sequence[str]) -> list[list[Any]]:
    return [_values(block, name) for name in names]


def _counts(block: Block, votes: Votes, problems: list[Problem]) -> Iterator[Raw]:
    """Who gave which is not known; and with a count over what is asked for, nor which came first."""
    columns = [(name, block.strings(name).to_pylist()) for name in votes.columns]
    for index, row in enumerate(block.rows):
        total = 0
        for name, cells in columns:
            given = (cells[index] or "0").strip() or "0"
            if not re.fullmatch(r"\d{1,6}(\.0+)?", given):
                problems.append(Problem(row, name, f"{given[:40]!r} is no number of votes."))
                continue
            total += (count := int(float(given)))
            if total > 2 * MOST_VOTES:
                problems.append(Problem(row, name, f"More than {2 * MOST_VOTES:,} votes on one item."))
                break
            yield from (Raw(row, name, None, name) for _ in range(count))
        if votes.votes_required is not None and total > votes.votes_required:
            message = f"{total} votes are counted and {votes.votes_required} asked for; which came first is not known."
            problems.append(Problem(row, "", message))


def _lists(block: Block, votes: Votes, problems: list[Problem]) -> Iterator[Raw]:
    """One column with a list: of answers, or of objects with answer, rater, tags, comment, time, elapsed and attributes."""
    (name,) = votes.columns
    for row, cell in zip(block.rows, _values(block, name), strict=True):
        given = _listed(cell)
        if given is None:
            problems.append(Problem(row, name, "There is no list of answers here."))
            continue
        for vote in given:
            if not isinstance(vote, dict):
                yield Raw(row, name, None, vote if vote != "" else None)
                continue
            rater, comment, attributes = vote.get("rater"), vote.get("comment"), vote.get("attributes")
            yield Raw(
                row, name, None if rater is None else _spelt(rater), vote.get("answer"), vote.get("tags"),
                None if comment is None else _spelt(comment), vote.get("time"), vote.get("elapsed"),
                attributes if isinstance(attributes, dict) else None,
            )  # fmt: skip


def _listed(cell: Any) -> list[Any] | None:
    """A cell as a list: JSON as it is; [a, b] and a; b as texts."""
    if cell is None:
        return []
    if isinstance(cell, list):
        return list(cell)
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    if text.startswith("["):
        value: Any
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = [part.strip().strip("'\"") for part in text.strip("[]").split(",")]
        return list(value) if isinstance(value, list) else None
    return list(_several(text))


def _several(cell: Any) -> Iterator[str]:
    """The spellings in a cell: a list, or a text with ; | or , between them."""
    parts = cell if isinstance(cell, (list, tuple)) else re.split(r"[;|,]", _spelt(cell))
    yield from (text for part in parts if (text := _spelt(part).strip()))


def _spelt(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _sound(text: str, longest: int | None, what: str) -> str:
    if "\x00" in text:
        raise _Bad(f"{what} holds a NUL character, which no text may.")
    if longest is not None and len(text) > longest:
        raise _Bad(f"{what} has {len(text):,} characters; the most is {longest}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Bad(f"{what} holds half of a surrogate pair, which no text may.") from None
    return text


def _elapsed(given: Any) -> str | None:
    """Milliseconds as a whole number."""
    if given is None or given == "":
        return None
    try:
        number = round(float(given))
    except (TypeError, ValueError, OverflowError):
        raise _Bad(f"{_spelt(given)[:40]!r} is no number of milliseconds.") from None
    if not 0 <= number <= LONGEST_MS:
        raise _Bad(f"{number:,} milliseconds: from 0 to {LONGEST_MS:,}.")
    return str(number)


def _time(given: Any) -> str | None:
    """When, in ISO 8601 with its zone, UTC where none is named. Numbers are seconds or milliseconds since 1970."""
    if given is None or given == "":
        return None
    text = _spelt(given).strip()
    try:
        if re.fullmatch(r"-?\d+(\.\d+)?", text):
            seconds = float(text) / (1000 if abs(float(text)) > 1e11 else 1)
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        when = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise _Bad(f"{text[:40]!r} is no time. Use ISO 8601, as 2026-11-20T10:00:00Z, or seconds since 1970.") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).isoformat()
