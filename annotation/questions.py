"""Questions: made, changed, given new guideline versions, switched off and on. Each verb is one transaction.

A choice is known by its `value`: its label, key and place may change at any time, while what was voted for keeps its
value for good. A guideline version is never edited.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from django.db import transaction
from django.db.models import Count, Max, ProtectedError

from annotation import wellbeing
from annotation.errors import Conflict, Invalid
from annotation.models import (
    Adjudication,
    Check,
    Choice,
    GroundTruth,
    Guideline,
    Kind,
    KnownAnswer,
    Policy,
    Project,
    Question,
    Tag,
    TagUse,
    Task,
    User,
    Vote,
)

# Undo, abstain, flag, comment, guideline, break, seed, uncover, greyscale: the labelling page's own keys.
RESERVED_KEYS = frozenset("zafcgpsub")
RESERVED_SLUGS = frozenset({"new"})  # an address of its own beside the questions
MAX_BODY = 50_000
MAX_EXAMPLES = 50
MOST_SHARE = 0.5  # of checks, and of repeated rulings
_SLUG = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")


@dataclass(frozen=True)
class ChoiceSpec:
    """One possible answer. `hotkey` is one letter or digit."""

    value: str
    label: str
    hotkey: str
    tag_use: str = TagUse.NONE
    is_unsure: bool = False


@dataclass(frozen=True)
class TagSpec:
    """What an answer may be qualified by, with its key."""

    value: str
    label: str
    hotkey: str


@dataclass(frozen=True)
class Example:
    """A worked example of a guideline. `choice` is the value of the right answer."""

    title: str
    text: str
    choice: str
    why: str


@dataclass(frozen=True)
class Settings:
    """All of a question that may change later, and hold for what is asked from then on."""

    title: str
    prompt: str
    policy: str = Policy.UNANIMOUS
    votes_required: int = 3
    shows_origin: bool = False
    blind_ruling: bool = True
    sensitive: bool = False
    ordered: bool = False
    lease_minutes: int = 15
    check_share: float = 0.0  # of what is handed out, in [0, 0.5]
    accuracy_floor: float | None = None  # in (0, 1]; None: nobody is paused
    repeat_share: float = 0.0  # of an adjudicator's own rulings, in [0, 0.5]
    choices: Sequence[ChoiceSpec] = ()
    tags: Sequence[TagSpec] = ()


@dataclass(frozen=True)
class GuidelineText:
    """A guideline's words: Markdown, and worked examples."""

    body: str
    examples: Sequence[Example] = ()


@dataclass(frozen=True)
class Spec:
    """A whole new question."""

    slug: str
    settings: Settings
    guideline: GuidelineText
    kind: str = Kind.TEXT


# ---------------------------------------------------------------- verbs
def create_question(project: Project, spec: Spec, author: User | None = None) -> Question:
    """A new question with version 1 of its guideline. Raises Invalid with a message for every field at fault."""
    wrong = _Wrong()
    _check_slug(spec.slug, wrong)
    if spec.kind not in Kind.values:
        wrong("kind", f"One of {', '.join(Kind.values)}.")
    _check_settings(spec.settings, wrong)
    _check_guideline(spec.guideline, [choice.value for choice in spec.settings.choices], wrong)
    wrong.stop()
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # two people, one slug: the second is told, not failed
        if Question.objects.filter(project=project, slug=spec.slug).exists():
            wrong("slug", f"This project already has a question with the address “{spec.slug}”. Take another.")
            wrong.stop()
        question = Question.objects.create(project=project, slug=spec.slug, kind=spec.kind, **_own_fields(spec.settings))
        _put_choices(question, spec.settings.choices)
        _put_tags(question, spec.settings.tags)
        Guideline.objects.create(
            question=question, version=1, body=_tidy(spec.guideline.body), examples=_as_rows(spec.guideline.examples), author=author
        )
        if question.sensitive:
            wellbeing.ensure_warning(project, author)
    return question


def change_question(question: Question, settings: Settings) -> Question:
    """Give the question these settings. `votes_required` holds for tasks made from now on.

    Raises Invalid by field; also where a choice or tag that was given in a vote or a ruling would go.
    """
    wrong = _Wrong()
    _check_settings(settings, wrong)
    wrong.stop()
    with transaction.atomic():
        question = Question.objects.select_for_update(no_key=True).get(pk=question.pk)
        _check_removals(question, settings, wrong)
        wrong.stop()
        for name, value in _own_fields(settings).items():
            setattr(question, name, value)
        question.save()
        _put_choices(question, settings.choices)
        _put_tags(question, settings.tags)
        if question.sensitive:
            wellbeing.ensure_warning(question.project)
    return question


def new_guideline_version(question: Question, text: GuidelineText, *, after: int, author: User | None = None) -> Guideline:
    """Write the next version. `after` is the version it was written from: if another came meanwhile, Conflict, so that none is lost."""
    wrong = _Wrong()
    _check_guideline(text, list(question.choices.values_list("value", flat=True)), wrong)
    wrong.stop()
    with transaction.atomic():
        Question.objects.select_for_update(no_key=True).get(pk=question.pk)
        latest = current_guideline(question)
        if latest.version != after:
            raise Conflict(
                f"Version {latest.version} was made while you wrote, from version {after}. Read it, put your changes into it, save again.",
                code="guideline_moved_on",
            )
        body, examples = _tidy(text.body), _as_rows(text.examples)
        if (latest.body, latest.examples) == (body, examples):
            raise Invalid(f"This is version {latest.version} word for word. Change something, or leave it as it is.", code="unchanged")
        return Guideline.objects.create(question=question, version=latest.version + 1, body=body, examples=examples, author=author)


def set_active(question: Question, active: bool) -> Question:
    """Offer the question to annotators, or stop offering it. Its tasks, votes and disputes stay as they are."""
    with transaction.atomic():
        question = Question.objects.select_for_update(no_key=True).get(pk=question.pk)
        if question.active != active:
            question.active = active
            question.save(update_fields=["active"])
    return question


# ---------------------------------------------------------------- reading
def current_guideline(question: Question) -> Guideline:
    """The version that votes are cast under now."""
    return Guideline.objects.filter(question=question).order_by("-version")[0]


def settings_of(question: Question) -> Settings:
    """The question's settings as they stand, in the shape that `change_question` takes."""
    return Settings(
        **{name: getattr(question, name) for name in _OWN},
        choices=tuple(ChoiceSpec(*row) for row in question.choices.values_list("value", "label", "hotkey", "tag_use", "is_unsure")),
        tags=tuple(TagSpec(*row) for row in question.tags.values_list("value", "label", "hotkey")),
    )


def policy_in_words(question: Question) -> str:
    """How votes become a label, as one sentence."""
    votes = question.votes_required
    if votes == 1:
        return "1 vote settles it."
    if question.policy == Policy.UNANIMOUS:
        return f"{votes} votes, all the same; else an adjudicator."
    return f"{votes} votes, more than half the same; else an adjudicator."


@dataclass(frozen=True)
class Line:
    """One line of a comparison of two guideline versions."""

    change: Literal["same", "added", "removed"]
    text: str


def difference(old: Guideline, new: Guideline) -> list[Line]:
    """What changed from one version to the next, line by line; worked examples as lines under the body."""
    names: dict[str, Literal["same", "added", "removed"]] = {"  ": "same", "+ ": "added", "- ": "removed"}
    return [Line(names[row[:2]], row[2:]) for row in difflib.ndiff(_lines(old), _lines(new)) if row[:2] in names]


def _lines(guideline: Guideline) -> list[str]:
    lines = guideline.body.splitlines()
    for example in guideline.examples:
        lines += ["", f"Example: {example['title']}", example["text"], f"Answer: {example['choice']}. {example['why']}"]
    return lines


# ---------------------------------------------------------------- what may not be
class _Wrong:
    """Collects one message a field, so that a form shows all of them at once."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}

    def __call__(self, name: str, message: str) -> None:
        self.fields.setdefault(name, message)

    def stop(self) -> None:
        if self.fields:
            count = len(self.fields)
            raise Invalid("One field needs another look." if count == 1 else f"{count} fields need another look.", fields=self.fields)


def _check_slug(slug: str, wrong: _Wrong) -> None:
    if not _SLUG.fullmatch(slug) or len(slug) > 60:
        wrong("slug", "Small letters and digits, with single hyphens or underscores between, at most 60: “text-toxicity”.")
    elif slug in RESERVED_SLUGS:
        wrong("slug", f"“{slug}” is taken by a page of Assay. Take another.")


def _check_settings(settings: Settings, wrong: _Wrong) -> None:
    _check_text("title", settings.title, 80, wrong)
    _check_text("prompt", settings.prompt, 200, wrong)
    if settings.policy not in Policy.values:
        wrong("policy", f"One of {', '.join(Policy.values)}.")
    _check_number("votes_required", settings.votes_required, 1000, "votes", wrong)
    _check_number("lease_minutes", settings.lease_minutes, 24 * 60, "minutes", wrong)
    _check_shares(settings, wrong)
    if len(settings.choices) < 2:
        wrong("choices", "At least two choices: with one there is nothing to decide.")
    if len(settings.choices) > 20:
        wrong("choices", "At most 20 choices; more do not fit a page, nor a keyboard.")
    if len(settings.tags) > 30:
        wrong("tags", "At most 30 tags.")
    keys: dict[str, str] = {}
    answers: dict[str, Sequence[ChoiceSpec | TagSpec]] = {"choices": settings.choices, "tags": settings.tags}
    for name, rows in answers.items():
        values: dict[str, str] = {}
        for number, row in enumerate(rows):
            _check_text(f"{name}.{number}.label", row.label, 60, wrong)
            _check_value(f"{name}.{number}.value", row, values, wrong)
            _check_key(f"{name}.{number}.hotkey", row, keys, wrong)
    _check_tag_use(settings, wrong)


def _check_tag_use(settings: Settings, wrong: _Wrong) -> None:
    for number, choice in enumerate(settings.choices):
        if choice.tag_use not in TagUse.values:
            wrong(f"choices.{number}.tag_use", f"One of {', '.join(TagUse.values)}.")
        elif choice.tag_use != TagUse.NONE and not settings.tags:
            wrong(f"choices.{number}.tag_use", f"“{choice.label}” takes tags, and there are none. Add tags below, or let it take none.")
    if settings.tags and all(choice.tag_use == TagUse.NONE for choice in settings.choices):
        wrong("tags", "No choice takes tags, so these would never be shown. Let a choice take them, or leave them out.")


def _check_text(name: str, text: str, longest: int, wrong: _Wrong) -> None:
    if not text.strip():
        wrong(name, "Write something here.")
    elif len(text) > longest:
        wrong(name, f"At most {longest} characters; this has {len(text):,}.")
    elif "\x00" in text:
        wrong(name, "A NUL character cannot be kept. Take it out.")


def _check_number(name: str, number: int, most: int, unit: str, wrong: _Wrong) -> None:
    if not 1 <= number <= most:
        wrong(name, f"From 1 to {most:,} {unit}.")


def _check_shares(settings: Settings, wrong: _Wrong) -> None:
    for name in ("check_share", "repeat_share"):
        if not 0 <= getattr(settings, name) <= MOST_SHARE:  # NaN is refused too
            wrong(name, "From 0 to 50 percent.")
    if settings.accuracy_floor is not None and not 0 < settings.accuracy_floor <= 1:
        wrong("accuracy_floor", "Above 0, up to 100 percent; empty: nobody is paused.")


def _check_value(name: str, row: ChoiceSpec | TagSpec, seen: dict[str, str], wrong: _Wrong) -> None:
    if not _SLUG.fullmatch(row.value) or len(row.value) > 40:
        wrong(name, "Small letters and digits, with single hyphens or underscores between, at most 40: “sexually-explicit”.")
    elif row.value in seen:
        wrong(name, f"“{seen[row.value]}” has this value already.")
    seen.setdefault(row.value, row.label)


def _check_key(name: str, row: ChoiceSpec | TagSpec, seen: dict[str, str], wrong: _Wrong) -> None:
    key = row.hotkey.lower()
    if len(key) != 1 or not key.isascii() or not key.isalnum():
        wrong(name, "One letter or digit.")
    elif key in RESERVED_KEYS:
        wrong(name, f"{key.upper()} does something else while labelling. Take another; these are taken: Z A F C G P S U B.")
    elif key in seen:
        wrong(name, f"“{seen[key]}” has this key already.")
    seen.setdefault(key, row.label)


def _check_guideline(text: GuidelineText, values: Sequence[str], wrong: _Wrong) -> None:
    if not text.body.strip():
        wrong("body", "Write what annotators must know to answer; a sentence will do to begin with.")
    elif len(text.body) > MAX_BODY:
        wrong("body", f"At most {MAX_BODY:,} characters; this has {len(text.body):,}.")
    elif "\x00" in text.body:
        wrong("body", "A NUL character cannot be kept. Take it out.")
    if len(text.examples) > MAX_EXAMPLES:
        wrong("examples", f"At most {MAX_EXAMPLES} examples.")
    for number, example in enumerate(text.examples):
        _check_text(f"examples.{number}.title", example.title, 120, wrong)
        _check_text(f"examples.{number}.text", example.text, 5000, wrong)
        _check_text(f"examples.{number}.why", example.why, 2000, wrong)
        if example.choice not in values:
            wrong(f"examples.{number}.choice", f"One of the answers: {', '.join(values) or 'there are none yet'}.")


def _check_removals(question: Question, settings: Settings, wrong: _Wrong) -> None:
    kept = {choice.value for choice in settings.choices}
    for choice in question.choices.all():
        if choice.value not in kept and (uses := _uses_of_choice(choice)):
            wrong("choices", f"“{choice.label}” ({choice.value}) has {uses}, so it stays, with this value. Its label and key may change.")
    kept = {tag.value for tag in settings.tags}
    for tag in question.tags.all():
        if tag.value not in kept and _tag_was_given(tag):
            wrong(
                "tags",
                f"“{tag.label}” ({tag.value}) was given in a vote or a ruling, so it stays, with this value. Its label and key may change.",
            )


def _uses_of_choice(choice: Choice) -> str:
    if Vote.objects.filter(choice=choice).exists():
        count = Vote.objects.filter(choice=choice).count()
        return "1 vote" if count == 1 else f"{count:,} votes"
    ruled = Adjudication.objects.filter(choice=choice) | Adjudication.objects.filter(blind_choice=choice)
    if ruled.exists() or GroundTruth.objects.filter(choice=choice).exists():
        return "rulings or labels"
    if KnownAnswer.objects.filter(choice=choice).exists() or Check.objects.filter(choice=choice).exists():
        return "known answers"
    return ""


def _tag_was_given(tag: Tag) -> bool:
    in_question, value = {"question": tag.question_id}, [tag.value]
    return (
        Vote.objects.filter(**in_question, tags__contains=value).exists()
        or Adjudication.objects.filter(**in_question, tags__contains=value).exists()
        or Adjudication.objects.filter(**in_question, blind_tags__contains=value).exists()
        or GroundTruth.objects.filter(**in_question, tags__contains=value).exists()
        or KnownAnswer.objects.filter(**in_question, tags__contains=value).exists()
        or Check.objects.filter(**in_question, tags__contains=value).exists()
    )


# ---------------------------------------------------------------- rows
_OWN = [f.name for f in fields(Settings) if f.name not in ("choices", "tags")]


def _own_fields(settings: Settings) -> dict[str, Any]:
    own = {name: getattr(settings, name) for name in _OWN}
    return own | {"title": settings.title.strip(), "prompt": settings.prompt.strip()}


def _put_choices(question: Question, specs: Sequence[ChoiceSpec]) -> None:
    _put(question.choices.all(), Choice, question, specs, lambda spec: {"tag_use": spec.tag_use, "is_unsure": spec.is_unsure})


def _put_tags(question: Question, specs: Sequence[TagSpec]) -> None:
    _put(question.tags.all(), Tag, question, specs, lambda _: {})


def _put(rows: Iterable[Any], model: type[Any], question: Question, specs: Sequence[Any], more: Callable[[Any], Mapping[str, Any]]) -> None:
    """Make the rows be `specs`, known by value; only rows that differ are written, so the audit trail shows real changes."""
    found = {row.value: row for row in rows}
    for value in found.keys() - {spec.value for spec in specs}:
        gone = found.pop(value)
        try:
            gone.delete()
        except ProtectedError as error:
            message = f"“{gone.label}” ({value}) is used elsewhere, perhaps by a comparison, so it stays. Its label and key may change."
            raise Invalid("One field needs another look.", fields={"choices": message}) from error
    for position, spec in enumerate(specs):
        wanted = {"label": spec.label.strip(), "hotkey": spec.hotkey.lower(), "position": position, **more(spec)}
        row = found.get(spec.value) or model(question=question, value=spec.value)
        if row.pk is None or any(getattr(row, name) != value for name, value in wanted.items()):
            for name, value in wanted.items():
                setattr(row, name, value)
            row.save()


def _tidy(body: str) -> str:
    """Browsers send CRLF; a comparison of versions should not see that."""
    return body.replace("\r\n", "\n").strip() + "\n"


def _as_rows(examples: Iterable[Example]) -> list[dict[str, str]]:
    return [{f.name: getattr(example, f.name).replace("\r\n", "\n").strip() for f in fields(Example)} for example in examples]


# ---------------------------------------------------------------- for lists of questions
@dataclass(frozen=True)
class Standing:
    """A question with its guideline version and how many of its tasks are in which state."""

    question: Question
    version: int
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        return sum(self.states.values())


def standings(project: Project) -> list[Standing]:
    """All questions of the project, in the order they were made. One aggregate over an index, whatever the number of tasks."""
    questions = list(project.questions.order_by("id"))
    counts: dict[int, dict[str, int]] = {question.pk: {} for question in questions}
    for row in Task.objects.filter(question__in=counts).values("question", "state").annotate(count=Count("pk")).order_by():
        counts[row["question"]][row["state"]] = row["count"]
    versions = dict(Guideline.objects.filter(question__in=counts).values_list("question").annotate(Max("version")).order_by())
    return [Standing(question, versions.get(question.pk, 0), counts[question.pk]) for question in questions]
