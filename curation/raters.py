"""Who votes how, question by question: each rater, each two of them, and the same votes settled in other ways.

For researchers only: nothing of it reaches a voter. People appear by pseudonym.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Count

from annotation import known, sql
from annotation.errors import Missing
from annotation.imported import nameless_members
from annotation.models import AbstainReason, Abstention, Choice, Membership, Question, Role
from curation import agreement, ballots
from curation.ballots import Ballots
from curation.keeping import Wanted, kept
from curation.stats.dawid_skene import MOST_ITERATIONS, SMOOTHING, TOLERANCE, DawidSkene, dawid_skene
from curation.stats.intervals import Estimate, Floats, Ints, wilson
from curation.stats.raters import FEWEST_SHARED, Pairs, majority, medians, pairs, settled_by_others

FEWEST = 5  # answers, before a share of them is given
FEWEST_ABSTAINING = 3  # people, before their reasons are added up
MOST_PAIRS = 200_000  # kept, those with the most shared items
MOST_LISTED = 10_000  # tasks kept of those that two methods settle differently, the surest first

TOO_FEW = f"Fewer than {FEWEST} of their votes are on tasks that others or a ruling settled."
TOO_FEW_CHECKS = f"Fewer than {FEWEST} answers to known items."
TOO_FEW_VOTES = f"Fewer than {FEWEST} votes on tasks that have all their votes."

# The same votes, settled in three ways; in the order of a table.
METHODS = {
    "policy": "Ground truth",
    "majority": "Majority",
    "dawid_skene": "Dawid-Skene",
}
COMPARED = (("policy", "majority"), ("policy", "dawid_skene"), ("majority", "dawid_skene"))


# ---------------------------------------------------------------- what callers get
@dataclass(frozen=True)
class Difference:
    """Two methods on the same tasks. `other`: both give a label, and not the same; `one`: only one of them gives one.

    Arrays are (listed,), the tasks whose Dawid-Skene label is surest first: ids, and of each method its choice, -1 for none.
    """

    between: tuple[str, str]
    other: int
    one: int
    task_ids: Ints
    labels: dict[str, Ints]
    probability: Floats

    @property
    def slug(self) -> str:
        return "-".join(self.between)

    @property
    def tasks(self) -> int:
        return self.other + self.one


@dataclass(frozen=True)
class Fit:
    """How the fit of Dawid and Skene's model went; `unsure`: tasks without a label of probability 0.99 or more."""

    iterations: int
    converged: bool
    log_likelihood: float
    priors: tuple[float, ...]
    unsure: int


@dataclass(frozen=True)
class Methods:
    """Labels by method: `labels[method][k]` tasks with the k-th choice, `unsettled[method]` without a label."""

    tasks: int
    labels: dict[str, tuple[int, ...]]
    unsettled: dict[str, int]
    differences: tuple[Difference, ...]
    fit: Fit


@dataclass(frozen=True)
class Rater:
    """One rater's votes of the current round.

    votes, median_s, unsure: of all of them; agreement: with what the others settle, or a ruling says; reliability: how probable,
    on average, Dawid and Skene's model holds the answers they gave; confusion (choices, choices): row j is how they answer
    where the true label is j, None without a vote on a complete task. `nameless`: why this is no person; then nothing is known of them.
    """

    member_id: int
    votes: int
    complete: int
    median_s: float | None
    unsure: Estimate
    agreement: Estimate
    reliability: Estimate
    confusion: Floats | None
    nameless: str = ""


@dataclass(frozen=True)
class Standing:
    """All that single votes tell of a question. `pairs` numbers raters by their place in `raters`.

    `methods` leave out the tasks with votes of nobody in particular, and are None where no other has all its votes.
    """

    choices: tuple[str, ...]
    items: int
    votes: int
    raters: tuple[Rater, ...]
    pairs: Pairs
    pairs_left_out: int
    methods: Methods | None
    at: datetime | None = None

    @property
    def nameless_votes(self) -> int:
        """Votes that came as counts or without names."""
        return sum(rater.votes for rater in self.raters if rater.nameless)

    @property
    def nameless(self) -> str:
        """Why they are nobody's; empty where there are none."""
        return " ".join(sorted({rater.nameless for rater in self.raters} - {""}))

    @property
    def tasks_left_out(self) -> int:
        """Complete tasks with such votes."""
        return self.items - (self.methods.tasks if self.methods else 0) if self.nameless else 0


@dataclass(frozen=True)
class Person:
    """A rater with who they are and what is known of them beside their votes.

    checks: their accuracy on known answers; paused: kept from this question now.
    """

    number: int
    pseudonym: str
    is_person: bool
    active: bool
    figures: Rater
    abstentions: int
    checks: Estimate
    paused: bool


# ---------------------------------------------------------------- from the votes
def of_question(question: Question) -> Standing:
    """Made once from all votes and kept; where that takes long it may be a little behind, as `at` says."""
    choices = list(question.choices.all())
    found = kept(
        Wanted("raters", question.pk), lambda: agreement.about(question, choices, with_open=True), lambda: _standing(question, choices)
    )
    return replace(found.result, at=found.at)


def _standing(question: Question, choices: Sequence[Choice]) -> Standing:
    given = ballots.read(question, [choice.pk for choice in choices])
    reasons = nameless_members(question.project_id)
    why = [reasons.get(member, "") for member in given.members.tolist()]
    nobody = np.array([reason != "" for reason in why], dtype=bool)
    named = ballots.of_named(given, nobody) if nobody.any() else given
    fit = dawid_skene(named.task, named.rater, named.choice, choices=len(choices)) if named.task.size else None
    people = ~nobody[given.rater]
    between, left_out = _most_shared(pairs(given.task[people], given.rater[people], given.choice[people], choices=len(choices)))
    return Standing(
        choices=tuple(choice.label for choice in choices),
        items=given.tasks.size,
        votes=given.task.size,
        raters=_raters(question, choices, given, named, fit, why),
        pairs=between,
        pairs_left_out=left_out,
        methods=_methods(named, len(choices), fit) if fit else None,
    )


def _most_shared(found: Pairs) -> tuple[Pairs, int]:
    if len(found) <= MOST_PAIRS:
        return found, 0
    some = np.sort(np.argsort(-found.n, kind="stable")[:MOST_PAIRS])
    return Pairs(*(getattr(found, name)[some] for name in Pairs.__dataclass_fields__)), len(found) - MOST_PAIRS


def _raters(  # noqa: PLR0917 - of all votes, those of people, and what is made of them
    question: Question, choices: Sequence[Choice], given: Ballots, named: Ballots, fit: DawidSkene | None, why: Sequence[str]
) -> tuple[Rater, ...]:
    people = given.members.size
    is_unsure = np.array([choice.is_unsure for choice in choices], dtype=bool)

    def count(where: Any = None, who: Ints = given.rater) -> Ints:
        return np.bincount(who if where is None else who[where], minlength=people)

    others = settled_by_others(given.task, given.choice, choices=len(choices), policy=question.policy)
    ruled = given.apart[given.task] == 1
    label = np.where(ruled, given.truth[given.task], others)
    judged, right = count(label >= 0), count((label >= 0) & (label == given.choice))
    held: Any = np.zeros(people)
    if fit is not None:
        held = np.bincount(named.rater, weights=fit.posterior[named.task, named.choice], minlength=people)
    votes, unsure = count(who=given.all_raters), count(is_unsure[given.all_choices], who=given.all_raters)
    timed = given.all_times >= 0
    median = medians(given.all_raters[timed], given.all_times[timed], people)
    complete, modelled = count(), count(who=named.rater)
    return tuple(
        _of_nobody(int(given.members[k]), int(votes[k]), int(complete[k]), why[k])
        if why[k]
        else Rater(
            member_id=int(given.members[k]),
            votes=int(votes[k]),
            complete=int(complete[k]),
            median_s=None if np.isnan(median[k]) else float(median[k]),
            unsure=share(int(unsure[k]), int(votes[k]), TOO_FEW_VOTES),
            agreement=share(int(right[k]), int(judged[k]), TOO_FEW),
            reliability=share(float(held[k]), int(modelled[k]), TOO_FEW_VOTES),
            confusion=fit.confusion[k] if fit is not None and modelled[k] else None,
        )
        for k in range(people)
    )


def _of_nobody(member_id: int, votes: int, complete: int, why: str) -> Rater:
    none = Estimate.undefined(why)
    return Rater(member_id, votes, complete, None, unsure=none, agreement=none, reliability=none, confusion=None, nameless=why)


def share(part: float, n: int, too_few: str) -> Estimate:
    """`part` of `n` with Wilson's interval; undefined below FEWEST."""
    return Estimate(part / n, *wilson(part, n), n) if n >= FEWEST else Estimate.undefined(too_few, n)


def _methods(given: Ballots, choices: int, fit: DawidSkene) -> Methods:
    labels = {"policy": given.truth, "majority": majority(given.task, given.choice, choices=choices), "dawid_skene": fit.labels}
    probability = fit.posterior.max(axis=1)
    return Methods(
        tasks=given.tasks.size,
        labels={method: tuple(np.bincount(found[found >= 0], minlength=choices).tolist()) for method, found in labels.items()},
        unsettled={method: int((found < 0).sum()) for method, found in labels.items()},
        differences=tuple(_difference(given.tasks, labels, probability, between) for between in COMPARED),
        fit=Fit(fit.iterations, fit.converged, fit.log_likelihood, tuple(fit.priors.tolist()), fit.unsure),
    )


def _difference(tasks: Ints, labels: dict[str, Ints], probability: Floats, between: tuple[str, str]) -> Difference:
    one, other = labels[between[0]], labels[between[1]]
    apart = np.flatnonzero(one != other)
    lacking = int(((one < 0) | (other < 0))[apart].sum())
    listed = apart[np.argsort(-probability[apart], kind="stable")][:MOST_LISTED]
    return Difference(
        between, int(apart.size) - lacking, lacking, tasks[listed], {method: found[listed] for method, found in labels.items()},
        probability[listed],
    )  # fmt: skip


# ---------------------------------------------------------------- with who they are
def people(question: Question, standing: Standing) -> list[Person]:
    """Everyone who voted, abstained or was checked, by number."""
    by_member = {rater.member_id: rater for rater in standing.raters}
    abstained = dict(Abstention.objects.filter(question=question).order_by().values_list("member").annotate(Count("id")))
    checks = {tally.member.pk: tally for tally in known.tallies(question)}
    members = Membership.objects.in_bulk([*{*by_member, *abstained, *checks}])
    found = [
        Person(
            number=member.number,
            pseudonym=member.pseudonym,
            is_person=member.role != Role.RATER,
            active=member.active,
            figures=by_member.get(pk) or _without_votes(pk),
            abstentions=abstained.get(pk, 0),
            checks=share(checks[pk].correct, checks[pk].answers, TOO_FEW_CHECKS) if pk in checks else Estimate.undefined(TOO_FEW_CHECKS),
            paused=pk in checks and checks[pk].pause is not None,
        )
        for pk, member in members.items()
    ]
    return sorted(found, key=lambda person: person.number)


def _without_votes(member_id: int) -> Rater:
    return Rater(
        member_id, 0, 0, None, Estimate.undefined(TOO_FEW_VOTES), Estimate.undefined(TOO_FEW), Estimate.undefined(TOO_FEW_VOTES), None
    )


def person(question: Question, standing: Standing, number: int) -> Person:
    """Raises Missing for someone who never dealt with the question."""
    for one in people(question, standing):
        if one.number == number:
            return one
    raise Missing("Nobody with this number has voted on this question.")


def abstentions_by_reason(question: Question) -> list[tuple[str, int]] | None:
    """How many abstentions of all raters gave each reason; None while fewer than FEWEST_ABSTAINING people have abstained.

    Beside everyone's own number, the reasons of one or two would be theirs to read.
    """
    found = Abstention.objects.filter(question=question).order_by()
    if found.values("member").distinct().count() < FEWEST_ABSTAINING:
        return None
    counts = dict(found.values_list("reason").annotate(Count("id")))
    return [(reason.label, counts.get(reason.value, 0)) for reason in AbstainReason]


# What a list of people can be sorted by; a missing value comes last either way.
SORTS: dict[str, Callable[[Person], float | None]] = {
    "number": lambda person: person.number,
    "votes": lambda person: person.figures.votes,
    "time": lambda person: person.figures.median_s,
    "agreement": lambda person: person.figures.agreement.value,
    "checks": lambda person: person.checks.value,
    "reliability": lambda person: person.figures.reliability.value,
    "unsure": lambda person: person.figures.unsure.value,
    "abstentions": lambda person: person.abstentions,
}


def ordered(found: Sequence[Person], by: str) -> list[Person]:
    """Sorted by a name of SORTS, downwards with a minus before it. Raises Missing for another name."""
    key = SORTS.get(by.removeprefix("-"))
    if key is None:
        raise Missing("People can be sorted by: " + ", ".join(SORTS) + ".")
    sign = -1 if by.startswith("-") else 1

    def place(person: Person) -> tuple[bool, float, int]:
        value = key(person)
        return value is None, 0 if value is None else sign * value, person.number

    return sorted(found, key=place)


# ---------------------------------------------------------------- pairs
@dataclass(frozen=True)
class Pair:
    """Two people by number, and how far they agree."""

    first: int
    second: int
    observed: Estimate
    kappa: Estimate


def numbers_of(standing: Standing) -> list[int]:
    """The number of each rater of `standing.raters`."""
    numbers = dict(Membership.objects.filter(pk__in=[rater.member_id for rater in standing.raters]).values_list("pk", "number"))
    return [numbers[rater.member_id] for rater in standing.raters]


def most_connected(standing: Standing, most: int) -> list[int]:
    """Places in `standing.raters` of the `most` who share most items with others, pairs with enough of them for a kappa first."""
    found, size = standing.pairs, len(standing.raters)
    enough = np.where(found.n >= FEWEST_SHARED, found.n, 0)
    many, any_ = (
        np.bincount(found.first, weights=weights, minlength=size) + np.bincount(found.second, weights=weights, minlength=size)
        for weights in (enough, found.n)
    )
    return [int(place) for place in np.lexsort((-any_, -many))[:most] if any_[place]]


def pair_list(standing: Standing, *, of: int | None = None, within: Collection[int] | None = None, most: int | None = None) -> list[Pair]:
    """Pairs, the most shared items first; `of`: only those of one number; `within`: only among these numbers."""
    numbers = np.array(numbers_of(standing), dtype=np.int64)
    return _made(standing, numbers, _places(standing, numbers, of, within)[:most])


def pair_page(standing: Standing, page: int, *, of: int | None = None, size: int = 1000) -> tuple[int, list[Pair]]:
    """How many pairs there are, and one page of them."""
    numbers = np.array(numbers_of(standing), dtype=np.int64)
    places = _places(standing, numbers, of, None)
    return places.size, _made(standing, numbers, places[(page - 1) * size : page * size])


def _places(standing: Standing, numbers: Ints, of: int | None, within: Collection[int] | None) -> Ints:
    found = standing.pairs
    places = np.argsort(-found.n, kind="stable")
    first, second = numbers[found.first[places]], numbers[found.second[places]]
    if of is not None:
        places = places[(first == of) | (second == of)]
    if within is not None:
        places = places[np.isin(first, list(within)) & np.isin(second, list(within))]
    return places


def _made(standing: Standing, numbers: Ints, places: Ints) -> list[Pair]:
    found, made = standing.pairs, []
    for place in places:
        one, other = sorted((int(numbers[found.first[place]]), int(numbers[found.second[place]])))
        made.append(Pair(one, other, found.observed(int(place)), found.cohen(int(place))))
    return made


# ---------------------------------------------------------------- tasks that two methods settle differently
@dataclass(frozen=True)
class Listed:
    """A task with its label by each method; `probability` of the Dawid-Skene label; `text` only when contents were asked for."""

    task_id: int
    item_id: int
    external_id: str
    kind: str
    quarantined: bool
    votes: str
    labels: dict[str, str | None]
    probability: float
    text: str | None


_LISTED = """
SELECT task.id AS task_id, item.id AS item_id, item.external_id, item.kind, item.quarantined,
       CASE WHEN %(contents)s AND NOT item.quarantined THEN item.text END AS text, counted.votes
FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted(id, place)
JOIN annotation_task AS task ON task.id = wanted.id
JOIN annotation_item AS item ON item.id = task.item_id
JOIN LATERAL (
    SELECT string_agg(number || ' ' || label, ', ' ORDER BY number DESC, position) AS votes
    FROM (
        SELECT choice.label, choice.position, count(*) AS number
        FROM annotation_vote AS vote JOIN annotation_choice AS choice ON choice.id = vote.choice_id
        WHERE vote.task_id = task.id AND vote.round = task.round GROUP BY choice.id
    ) AS by_choice
) AS counted ON true
ORDER BY wanted.place
"""


def difference(standing: Standing, slug: str) -> Difference:
    """By its name, such as "policy-majority". Raises Missing."""
    for found in standing.methods.differences if standing.methods else ():
        if found.slug == slug:
            return found
    raise Missing("There is no such comparison, or no task has all its votes yet.")


def differing(standing: Standing, found: Difference, *, page: int = 1, size: int = 100, contents: bool = False) -> list[Listed]:
    """A page of the tasks that two methods settle differently."""
    some = slice((page - 1) * size, page * size)
    names = [*standing.choices, None]  # -1 is the last: no label
    place = {int(task): k for k, task in enumerate(found.task_ids[some], (page - 1) * size)}
    rows = sql.rows(_LISTED, ids=list(place), contents=contents)
    return [
        Listed(
            **row,
            labels={method: names[int(labels[place[row["task_id"]]])] for method, labels in found.labels.items()},
            probability=float(found.probability[place[row["task_id"]]]),
        )
        for row in rows
    ]


# ---------------------------------------------------------------- for a program
def methods_as_json(standing: Standing) -> dict[str, Any] | None:
    """The three ways to settle for a program; None while no task has all its votes."""
    methods = standing.methods
    if methods is None:
        return None
    return {
        "tasks": methods.tasks,
        "labels": {
            method: {"by_choice": list(counts), "unsettled": methods.unsettled[method]} for method, counts in methods.labels.items()
        },
        "differences": [
            {"between": list(found.between), "other_label": found.other, "settled_by_one_only": found.one} for found in methods.differences
        ],
        "dawid_skene": asdict(methods.fit) | {"tolerance": TOLERANCE, "smoothing": SMOOTHING, "most_iterations": MOST_ITERATIONS},
    }


def person_as_json(found: Person) -> dict[str, Any]:
    """One rater for a program."""
    figures = found.figures
    return {
        "number": found.number,
        "pseudonym": found.pseudonym,
        "votes": figures.votes,
        "median_s": figures.median_s,
        "agreement": asdict(figures.agreement),
        "checks": asdict(found.checks),
        "reliability": asdict(figures.reliability),
        "unsure": asdict(figures.unsure),
        "abstentions": found.abstentions,
        "paused": found.paused,
        "confusion": None if figures.confusion is None else figures.confusion.round(6).tolist(),
    }


def as_json(question: Question, sort: str = "-votes") -> dict[str, Any]:
    """Everyone who answered, for a program."""
    standing, reasons = of_question(question), abstentions_by_reason(question)
    return {
        "question": question.slug,
        "choices": list(standing.choices),
        "at": standing.at.isoformat() if standing.at else None,
        "votes_without_names": standing.nameless_votes,
        "raters": [person_as_json(found) for found in ordered(people(question, standing), sort)],
        "abstentions_by_reason": None if reasons is None else dict(reasons),
    }


def agreement_as_json(question: Question, *, group: str = "", by: str = "") -> dict[str, Any]:
    """All of the agreement page for a program, with its parts where asked for."""
    told = agreement.as_json(question, agreement.of_question(question)) | {"methods": methods_as_json(of_question(question))}
    if group:
        told["groups"] = agreement.parts_as_json(agreement.by_attribute(question, group))
    if by:
        told["slices"] = agreement.parts_as_json(agreement.by_metadata(question, by))
    return told
