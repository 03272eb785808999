"""The demo's second study: prompts, and pictures drawn from them, judged apart by simulated raters.

They consent, practise, meet known answers and are paused, as people are.
"""

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from django.conf import settings
from django.db import connection

from annotation import disputes, known, presets, queue, wellbeing
from annotation.models import AbstainReason, FlagReason, Item, Membership, Project, Question, RulingReason
from annotation.questions import GuidelineText, Settings, Spec, create_question
from curation import tasking
from curation.demo import scenes
from curation.demo.scenes import Scene, chance
from curation.importing import service as importing
from curation.importing.mapping import Mapping as Columns
from curation.models import ImportState

SLUG = "demo-images"
NAME = "Text-to-image study"
ABOUT = "Do pictures show harm that their prompts did not ask for?"
SEED = 20251002
ERRS = (0.02, 0.03, 0.05, 0.04, 0.08, 0.12)  # how often each simulated rater errs; the one who comes after them guesses
ERRS_ON_HARD = 0.5
PRACTICE, CHECKS = 3, 24
SHARE_VOTED = 0.7
RULED = 3
GUESSES = 0.75
ABSTAIN_EACH = 61  # turns
MOST_TURNS, MOST_GUESSES = 5000, 120
Answer = tuple[str, list[str]]
PROXY = """\
**In this demonstration nothing harmful is shown.** Marks stand in for it: a **red triangle** for violence and gore, a **black
square** for hateful content, a **purple disc** for other harm. Judge the marks as you would judge the thing itself.

"""


def fill(project: Project, researcher: Membership, adjudicator: Membership, raters: list[Membership], agreed: list[Membership]) -> None:
    """Everything into the empty project. `agreed`: who else has read the content warning. The last rater guesses, and is paused."""
    shown = {scene.id: scene for scene in _import_pictures(project, researcher)}
    image_harm = create_question(project, _with_proxy(presets.IMAGE_HARM), researcher.user)
    prompt_safety = create_question(project, _with_proxy(presets.PROMPT_SAFETY), researcher.user)
    tasking.make_tasks(image_harm, by=researcher.user)
    tasking.make_tasks(prompt_safety, "prompts:all", by=researcher.user)
    _mark_known(image_harm, researcher, shown)
    warning = wellbeing.warning_of(project)
    for member in (*raters, adjudicator, *agreed):
        wellbeing.give_consent(member, warning.version if warning else 0)
    pictures = {name: _expected_of(scene) for name, scene in shown.items()}
    _play(_Played(image_harm, pictures, {name for name, scene in shown.items() if scene.hard}), raters, guesses=True)
    prompts: dict[str, Answer] = {scene.prompt: (scene.prompt_expects, []) for scene in shown.values()}
    _play(_Played(prompt_safety, prompts, {scene.prompt for scene in shown.values() if scene.asked}), raters[:-1])
    _flag_two(image_harm, raters)
    _rule(image_harm, adjudicator, shown)


def _with_proxy(spec: Spec) -> Spec:
    """The ready-made question, with checks, and with the words that say what stands for harm here."""
    settings_: Settings = replace(spec.settings, check_share=0.3, accuracy_floor=0.6)
    return replace(spec, settings=settings_, guideline=GuidelineText(PROXY + spec.guideline.body, spec.guideline.examples))


def _import_pictures(project: Project, researcher: Membership) -> list[Scene]:
    """They come in as any others would: a folder with a manifest."""
    (Path(settings.DATA) / "imports").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="demo-", dir=Path(settings.DATA) / "imports") as name:
        folder = Path(name) / "pictures"
        folder.mkdir()
        drawn = scenes.write(folder)
        batch = importing.take(project, folder, researcher.user)
        columns = Columns(
            kind="image", file="file", external_id="id", seed="prompt", prompt_id="prompt_id", metadata=("style", "scene", "generator")
        )
        batch = importing.run(importing.start(batch, columns).pk)
        if batch.state != ImportState.DONE or batch.bad:
            raise RuntimeError(f"The demo's pictures were not imported: {batch.error or batch.problems}")
    return drawn


def _mark_known(question: Question, researcher: Membership, shown: Mapping[str, Scene]) -> None:
    """Pictures that nobody could mistake: the first for practice, the others as checks."""
    clear = [scene for scene in sorted(shown.values(), key=lambda scene: chance("known", scene.id)) if not scene.hard]
    marked = [scene for scene in clear if scene.harm][: (PRACTICE + CHECKS) // 2]
    plain = [scene for scene in clear if not scene.harm][: PRACTICE + CHECKS - len(marked)]
    chosen = sorted((*marked, *plain), key=lambda scene: chance("place", scene.id))
    numbers = dict(question.project.items.values_list("external_id", "pk"))
    answers = [known.Answer(numbers[scene.id], *_expected_of(scene), _why(scene)) for scene in chosen]
    known.mark_many(question, answers[:PRACTICE], practice=True, by=researcher)
    known.mark_many(question, answers[PRACTICE:], by=researcher)


def _why(scene: Scene) -> str:
    return f"It comes {scenes.MARKS[scene.harm]}." if scene.harm else "There is no mark in it."


# ---------------------------------------------------------------- simulated people
def _expected_of(scene: Scene) -> Answer:
    return ("harmful", [scene.harm]) if scene.harm else ("safe", [])


@dataclass(frozen=True)
class _Played:
    """A question, and the answer to each of its items, by the picture's id or the prompt's text."""

    question: Question
    expected: Mapping[str, Answer]
    hard: Collection[str]

    def name_of(self, work: queue.Work) -> str:
        return work.text if work.text is not None else Item.objects.values_list("external_id", flat=True).get(pk=work.item_id)

    def answer_of(self, name: str, number: int) -> Answer:
        """What this rater says: mostly what is expected; the more often otherwise, the harder it is, and the last one guesses."""
        choice, tags = self.expected[name]
        errs = ERRS[number] if number < len(ERRS) else GUESSES
        if name in self.hard:
            errs += ERRS_ON_HARD
        key = (self.question.slug, name, number)
        if chance("errs", *key) >= errs:
            return choice, tags
        others = [value for value in self.question.choices.values_list("value", flat=True) if value != choice]
        other = others[int(chance("other", *key) * len(others))]
        return other, [list(scenes.MARKS)[int(chance("tag", *key) * len(scenes.MARKS))]] if other == "harmful" else []


def _play(played: _Played, raters: list[Membership], *, guesses: bool = False) -> None:
    """Everyone answers in turn until the wanted share of votes is in; with `guesses`, the last one until they are paused, first."""
    question = played.question
    if guesses:
        for _ in range(MOST_GUESSES):
            if not _answer(played, raters[-1], len(raters) - 1):
                break
    left = round(SHARE_VOTED * question.votes_required * question.tasks.filter(known_answer=None).count())
    for turn in range(1, MOST_TURNS):
        _answer(played, raters[turn % len(raters)], turn % len(raters), abstains=turn % ABSTAIN_EACH == 0)
        if question.votes.count() >= left:
            break
    for rater in raters:
        queue.release(rater, question)


def _answer(played: _Played, rater: Membership, number: int, *, abstains: bool = False) -> bool:
    """One answer; whether there was anything to answer."""
    work = queue.next_work(rater, played.question)
    if work and abstains:
        queue.abstain(rater, work[0].token, AbstainReason.CANNOT_JUDGE)
    elif work:
        name = played.name_of(work[0])
        choice, tags = played.answer_of(name, number)
        seconds = 2.5 + 6 * chance("time", played.question.slug, name, number)
        queue.cast_vote(rater, work[0].token, choice=choice, tags=tags, elapsed_ms=round(1000 * seconds))
    return bool(work)


def _flag_two(question: Question, raters: list[Membership]) -> None:
    for rater, reason, note in zip(
        raters, (FlagReason.WRONG, FlagReason.PRIVATE), ("The picture is upside down?", "It looks like my street."), strict=False
    ):
        queue.flag(rater, queue.last_answers(rater, question, 5)[-1].task_id, reason, note)


def _rule(question: Question, adjudicator: Membership, shown: Mapping[str, Scene]) -> None:
    names = dict(question.project.items.values_list("pk", "external_id"))
    reasons = ((RulingReason.AMBIGUOUS, "The mark is small and pale."), (RulingReason.GUIDELINE_GAP, "How small may a mark be?"))
    for number in range(RULED):
        dispute = disputes.next_dispute(adjudicator, question)
        if dispute is None:
            return
        choice, tags = _expected_of(shown[names[dispute.item_id]])
        disputes.rule_blind(adjudicator, dispute.token, choice=choice, tags=tags)
        reason, note = reasons[number % 2]
        disputes.rule(adjudicator, dispute.token, choice=choice, tags=tags, reason=reason, note=note)


def spread_exposures(project: Project, hours: int) -> None:
    """Date back what the raters were shown as their votes are, so that their day looks like one."""
    with connection.cursor() as cursor:
        cursor.execute(_AGE_EXPOSURES, [project.pk, hours])


_AGE_EXPOSURES = """
    WITH aged AS (
        SELECT exposure.id, row_number() OVER (ORDER BY exposure.id)::float / count(*) OVER () AS place
        FROM annotation_exposure AS exposure JOIN annotation_membership AS member ON member.id = exposure.member_id
        WHERE member.project_id = %s
    )
    UPDATE annotation_exposure AS exposure SET at = exposure.at - make_interval(mins => (60 * %s * (1 - place))::int)
    FROM aged WHERE aged.id = exposure.id
"""
