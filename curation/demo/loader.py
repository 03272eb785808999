"""Loads the demo's two projects. A second time it finds everything there and changes nothing.

The texts are ours: 40 seeds from kind to rude but mild, and variants of them as attacks on a detector would make them. In the
file each has the answer that a careful reader would expect; only the simulated raters know it. They answer through the
queue's own service, each with errors of their own, so that agreement, disputes and rulings all come about.
"""

import hashlib
import json
import math
import os
import random
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pghistory.core
import pgtrigger
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from annotation import disputes, presets, queue, wellbeing
from annotation.models import Membership, Project, Question, Role, RulingReason, Task, User
from annotation.questions import create_question
from annotation.tasks import create_tasks
from curation import comparing, sampling, tasking
from curation.demo import pictures
from curation.importing import service as importing
from curation.importing.mapping import Mapping
from curation.models import Comparison, ImportState
from scoring import runs, working
from scoring.models import RunState, Scorer, ScoringRun
from scoring.scorers.base import Machine

TEXTS = Path(__file__).parent / "texts.jsonl"
SLUG = "demo"
NAME = "Adversarial text study"
ABOUT = "Do texts edited to fool a toxicity scorer still read as toxic, and as natural?"
SEED = 20251001
PEOPLE = (("bob", Role.RESEARCHER), ("alice", Role.ANNOTATOR), ("dave", Role.ANNOTATOR), ("charlie", Role.ADJUDICATOR))
# The simulated raters: how often each errs, and their median seconds a text.
RATERS = ((0.02, 4.2), (0.03, 6.0), (0.05, 3.1), (0.04, 8.4), (0.08, 2.4), (0.12, 5.2))
ERRS_ON_HARD = 0.15  # more on texts that careful readers disagree about
SHARE_VOTED = 0.6  # of all votes
SAMPLE_SIZE = 120
RULED = {"toxicity": 9, "naturalness": 4}  # the other disputes wait for charlie
UNLIMITED: dict[str, None] = {"hourly_limit": None, "daily_limit": None, "break_after_minutes": None}  # while they play
HOURS = 20  # over which the simulated votes are spread


@dataclass(frozen=True)
class SignIn:
    """One of the four people to sign in as. `password` is None for an account that was there before: it keeps its own."""

    username: str
    role: str
    password: str | None


@dataclass(frozen=True)
class Demo:
    """The demo project as it is now; `made` when this call made it."""

    project: Project
    made: bool
    sign_ins: list[SignIn]


@dataclass(frozen=True)
class Text:
    """A row of texts.jsonl. `expect` is what a careful reader would answer, by question, and whether it is hard to say."""

    id: str
    seed: str | None
    text: str
    recipe: str
    transformation: str
    constraints: list[str]
    target_model: str | None
    split: str
    expect: dict[str, Any]


def load(*, fresh: bool = False) -> Demo:
    """The demo project, made if it is not there. `fresh`: the present one is archived, with all that was done in it, and a new one made."""
    password = _password()
    with transaction.atomic():
        if fresh:
            _archive()
        project = Project.objects.filter(slug=SLUG).first()
        made = project is None
        if project is None:
            project = _make_project(password)
        if not Project.objects.filter(slug=pictures.SLUG).exists():
            _make_picture_project(password)
    # Scores are stored chunk by chunk, so this part has transactions of its own, and each step looks whether it was done.
    researcher = project.memberships.filter(role=Role.RESEARCHER).select_related("user", "project").earliest("number")
    scorer = _scored(project, researcher.user)
    if scorer is not None:
        _compare(researcher, scorer)
    return Demo(project, made, _sign_ins(project, password))


# ---------------------------------------------------------------- people
def _password() -> str:
    """From ASSAY_DEMO_PASSWORD; else one that is made once and kept, readable by its owner only, in the data folder."""
    if given := os.environ.get("ASSAY_DEMO_PASSWORD", ""):
        return given
    kept = Path(settings.DATA) / "demo_password"
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text("-".join(secrets.token_hex(2) for _ in range(4)))
    return kept.read_text()


def _member(project: Project, username: str, role: Role, password: str | None) -> Membership:
    researcher = role == Role.RESEARCHER  # who looks around in the demo begins a project of their own next
    user, new = User.objects.get_or_create(username=username, defaults={"is_active": password is not None, "is_staff": researcher})
    if new:
        user.set_password(password)  # None: nobody can sign in as this one
        user.save()
    return Membership.objects.create(project=project, user=user, role=role, number=project.memberships.count() + 1)


def _sign_ins(project: Project, password: str) -> list[SignIn]:
    people = {member.user.username: member for member in project.memberships.exclude(user=None).select_related("user") if member.user}
    there = [(people[name], role) for name, role in PEOPLE if name in people]
    return [
        SignIn(member.user.username, role.label, password if member.user.check_password(password) else None)
        for member, role in there
        if member.user
    ]


# ---------------------------------------------------------------- the project
def _archive() -> None:
    for project in Project.objects.select_for_update().filter(slug__in=(SLUG, pictures.SLUG)):
        project.slug = f"{project.slug}-{timezone.now():%Y%m%d-%H%M%S}"
        project.archived_at = timezone.now()
        project.save()


def _make_project(password: str) -> Project:
    project = Project.objects.create(slug=SLUG, name=NAME, description=ABOUT, seed=SEED, **UNLIMITED)
    people = {name: _member(project, name, role, password) for name, role in PEOPLE}
    raters = [_member(project, f"demo-rater-{number}", Role.ANNOTATOR, None) for number in range(1, len(RATERS) + 1)]
    texts = {text.id: text for text in read_texts()}
    _import_items(project, people["bob"].user)
    sample = sampling.draw(project, "First sample of variants", SAMPLE_SIZE, seed=SEED, by=people["bob"].user)
    toxicity = create_question(project, presets.TOXICITY, people["bob"].user)
    naturalness = create_question(project, presets.NATURALNESS, people["bob"].user)
    _consent(project, [*people.values(), *raters])
    create_tasks(toxicity)
    tasking.make_tasks(naturalness, f"sample:{sample.pk}")
    for question in (toxicity, naturalness):
        _play_votes(question, raters, texts)
        _play_rulings(question, people["charlie"], texts)
    _spread_over_time(project)
    _set_limits(project)
    return project


def _make_picture_project(password: str) -> None:
    """dave has not read its content warning yet: whoever signs in as him meets it."""
    project = Project.objects.create(slug=pictures.SLUG, name=pictures.NAME, description=pictures.ABOUT, seed=pictures.SEED, **UNLIMITED)
    people = {name: _member(project, name, role, password) for name, role in PEOPLE}
    raters = [_member(project, f"demo-rater-{number}", Role.ANNOTATOR, None) for number in range(1, len(pictures.ERRS) + 2)]
    pictures.fill(project, people["bob"], people["charlie"], raters, [people["alice"]])
    _spread_over_time(project)
    pictures.spread_exposures(project, HOURS)
    _set_limits(project)


def _set_limits(project: Project) -> None:
    """As in any new project, once the simulated raters, who do a day's work in seconds, are through."""
    fresh = Project()
    for name in UNLIMITED:
        setattr(project, name, getattr(fresh, name))
    project.save()


def _consent(project: Project, members: list[Membership]) -> None:
    """Everyone who labels has read what they may see."""
    if (warning := wellbeing.warning_of(project)) is not None:
        for member in members:
            if member.role != Role.RESEARCHER:
                wellbeing.give_consent(member, warning.version)


def read_texts() -> list[Text]:
    """The demo's texts, with what is expected of their readers."""
    return [Text(**json.loads(line)) for line in TEXTS.read_text(encoding="utf-8").splitlines()]


def _import_items(project: Project, by: User | None) -> None:
    """The file comes in as any other would; what a careful reader would answer stays out."""
    batch = importing.take(project, TEXTS, by)
    kept = ("recipe", "transformation", "constraints", "target_model", "split")
    batch = importing.run(importing.start(batch, Mapping(text="text", external_id="id", origin="seed", metadata=kept)).pk)
    if batch.state != ImportState.DONE:
        raise RuntimeError(f"The demo's texts were not imported: {batch.error}")


# ---------------------------------------------------------------- simulated people
def _chance(*what: object) -> float:
    """A number in [0, 1) that is the same on every machine for the same rater and text."""
    digest = hashlib.sha256(":".join(map(str, (SEED, *what))).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _answer(text: Text, question: Question, choices: list[str], who: object, errs: float) -> str:
    """The expected answer, or, as often as this person errs on such a text, another one."""
    right: str = text.expect[question.slug]
    if text.expect["hard"]:
        errs += ERRS_ON_HARD
    if _chance(question.slug, text.id, who) >= errs:
        return right
    others = [choice for choice in choices if choice != right]
    return others[int(_chance("which", question.slug, text.id, who) * len(others))]


def _seconds(text: Text, question: Question, who: object, median: float) -> float:
    """A reading time: long tail, longer for hard texts."""
    spread = math.exp(
        0.5 * math.sqrt(-2 * math.log(1 - _chance("u", question.slug, text.id, who))) * math.cos(6.283 * _chance("v", text.id, who))
    )
    return median * spread * (1.4 if text.expect["hard"] else 1.0)


def _play_votes(question: Question, raters: list[Membership], texts: dict[str, Text]) -> None:
    """Votes of the simulated raters, through the queue, until the wanted share of all votes is in; what they still hold goes back."""
    left = round(SHARE_VOTED * question.votes_required * question.tasks.count())
    choices = list(question.choices.values_list("value", flat=True))
    names = dict(question.project.items.values_list("id", "external_id"))
    for number in _turns(len(raters), left):
        rater, (errs, median) = raters[number], RATERS[number]
        work = queue.next_work(rater, question)
        if not work:
            continue
        text = texts[names[work[0].item_id]]
        queue.cast_vote(
            rater,
            work[0].token,
            choice=_answer(text, question, choices, number, errs),
            elapsed_ms=round(1000 * _seconds(text, question, number, median)),
        )
    for rater in raters:
        queue.release(rater, question)


def _turns(raters: int, count: int) -> Iterator[int]:
    """Who votes next: in random order, some more often than others."""
    draw = random.Random(SEED)  # noqa: S311 - to be repeated, not guessed
    yield from draw.choices(range(raters), weights=range(2 * raters, raters, -1), k=count)


_REASONS = ((RulingReason.AMBIGUOUS, "It can be read both ways; the guideline decides."), (RulingReason.CLEAR_ERROR, ""))
_GAPS = {
    "toxicity": "The guideline does not say whether a tease among friends counts.",
    "naturalness": "The guideline does not say whether one lost word is a typing mistake.",
}


def _play_rulings(question: Question, adjudicator: Membership, texts: dict[str, Text]) -> None:
    """Some disputes ruled by the adjudicator: blind, then with the votes open."""
    names = dict(question.project.items.values_list("id", "external_id"))
    for number in range(RULED[question.slug]):
        dispute = disputes.next_dispute(adjudicator, question)
        if dispute is None:
            return
        choice = texts[names[dispute.item_id]].expect[question.slug]
        disputes.rule_blind(adjudicator, dispute.token, choice=choice)
        reason, note = (*_REASONS, (RulingReason.GUIDELINE_GAP, _GAPS[question.slug]))[number % 3]
        disputes.rule(adjudicator, dispute.token, choice=choice, reason=reason, note=note)


def _spread_over_time(project: Project) -> None:
    """Date the simulated votes back over the last hours, and what they settled with them, as if people had worked then.

    The audit trail is not told: it keeps what people change, and nobody changed these.
    """
    with pgtrigger.ignore("annotation.Vote:revised_update", "annotation.GroundTruth:update_update"), connection.cursor() as cursor:
        cursor.execute(_AGE_VOTES, [project.pk, HOURS])
        cursor.execute(_AGE_TASKS, [project.pk])
        cursor.execute(_AGE_TRUTHS, [project.pk])
        cursor.execute(_AGE_MADE, [HOURS + 3, project.pk])
        cursor.execute(_AGE_EVENTS, [HOURS + 3, project.pk])


_AGE_VOTES = """
WITH aged AS (
    SELECT vote.id, row_number() OVER (ORDER BY vote.id)::float / count(*) OVER () AS place
    FROM annotation_vote AS vote JOIN annotation_question AS question ON question.id = vote.question_id
    WHERE question.project_id = %s
)
UPDATE annotation_vote AS vote
SET created_at = vote.created_at - make_interval(mins => (60 * %s * (1 - place) + 70 * sin(place * 12.6))::int)
FROM aged WHERE aged.id = vote.id
"""
_AGE_TASKS = """
UPDATE annotation_task AS task SET settled_at = last.at
FROM (SELECT task_id, max(created_at) AS at FROM annotation_vote GROUP BY task_id) AS last, annotation_question AS question
WHERE last.task_id = task.id AND question.id = task.question_id AND question.project_id = %s
  AND task.state IN ('agreed', 'disputed')
"""
_AGE_TRUTHS = """
UPDATE annotation_groundtruth AS truth SET created_at = task.settled_at
FROM annotation_task AS task JOIN annotation_question AS question ON question.id = task.question_id
WHERE task.id = truth.task_id AND question.project_id = %s AND task.state = 'agreed'
"""
_AGE_MADE = """
UPDATE annotation_task AS task SET created_at = task.created_at - make_interval(hours => %s)
FROM annotation_question AS question WHERE question.id = task.question_id AND question.project_id = %s
"""
# Known answers were taken out of the queue when the tasks were made.
_AGE_EVENTS = f"""
UPDATE {pghistory.core.event_models(tracks_model=Task)[0]._meta.db_table} AS event
SET pgh_created_at = event.pgh_created_at - make_interval(hours => %s)
FROM annotation_task AS task JOIN annotation_question AS question ON question.id = task.question_id
WHERE task.id = event.pgh_obj_id AND question.project_id = %s AND event.state = 'retired'
"""  # noqa: S608 - our own words


# ---------------------------------------------------------------- the machine
def _scored(project: Project, by: User | None) -> Scorer | None:
    """The default text scorer, with every text scored in this process; None when its run was stopped or failed."""
    scorer, _ = runs.create_scorer(project, "profanity", "profanity", {}, by)
    run = ScoringRun.objects.filter(scorer=scorer).order_by("id").first() or runs.start_run(scorer, None, by)
    if run.state in runs.ACTIVE:
        working.work_on(run.pk, working.Bench("demo", Machine(hub=runs.hub_cache())), seconds=600)
        run.refresh_from_db()
    return scorer if run.state == RunState.DONE else None


def _compare(researcher: Membership, scorer: Scorer) -> None:
    if Comparison.objects.filter(project=researcher.project).exists():
        return
    toxicity = Question.objects.get(project=researcher.project, slug="toxicity")
    comparing.create(
        researcher, name="Toxicity: people and profanity v1", positive=toxicity.choices.get(value="yes"), scorer=scorer,
        score_name=scorer.score_names[0], threshold=0.5,
    )  # fmt: skip
