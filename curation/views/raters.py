"""Raters of a question, one by one and two by two: for researchers."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation import access
from curation import raters
from curation.figures import raters as figures
from curation.stats.raters import FEWEST_SHARED
from curation.views.figures import download, drawn
from curation.views.waiting import shows_when_ready

PAGE = 50
MOST_PAIRS = 30
# What stands over each column: its name for sorting, the words, and how it is sorted at first.
_COLUMNS = [
    ("number", "Rater", ""),
    ("votes", "Votes", "-"),
    ("time", "Median time", "-"),
    ("agreement", "With the others", ""),
    ("checks", "On known answers", ""),
    ("reliability", "Reliability", ""),
    ("unsure", "Unsure", "-"),
    ("abstentions", "Abstained", "-"),
]


@require_GET
@shows_when_ready("agreement")
def listing(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """Everyone who answered, sorted by ?sort=; how far each two agree; two figures."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    standing = raters.of_question(asked)
    people = raters.people(asked, standing)
    sort = request.GET.get("sort", "-votes")
    rows = [person for person in raters.ordered(people, sort) if not person.figures.nameless]
    page = page_number(request.GET.get("page", ""))
    pairs = raters.pair_list(standing, most=MOST_PAIRS)
    context = {
        "member": member, "here": "agreement", "question": asked, "questions": member.project.questions.order_by("id"),
        "standing": standing, "rows": rows[(page - 1) * PAGE : page * PAGE], "people": len(rows), "columns": _columns(sort),
        "before": _address(sort, page - 1) if page > 1 else "", "after": _address(sort, page + 1) if page * PAGE < len(rows) else "",
        "pairs": sorted(pairs, key=lambda pair: (pair.kappa.value is None, pair.kappa.value or 0)), "all_pairs": len(standing.pairs),
        "figures": drawn(figures.of_standing(standing, people)), "fewest": raters.FEWEST, "most_drawn": figures.MOST_RATERS,
        "fewest_shared": FEWEST_SHARED, "has_unsure": any(choice.is_unsure for choice in asked.choices.all()),
        "reasons": raters.abstentions_by_reason(asked), "fewest_abstaining": raters.FEWEST_ABSTAINING,
        "abstained": sum(person.abstentions for person in people),
    }  # fmt: skip
    return render(request, "curation/raters.html", context)


@require_GET
@shows_when_ready("agreement")
def one(request: HttpRequest, project: str, question: str, number: int) -> HttpResponse:
    """One rater: their figures, how they answer, and how far they agree with each of the others."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    standing = raters.of_question(asked)
    person = raters.person(asked, standing, number)
    confusion = figures.confusion(person, standing.choices)
    context = {
        "member": member, "here": "agreement", "question": asked, "person": person, "standing": standing,
        "pairs": raters.pair_list(standing, of=number, most=MOST_PAIRS), "figures": drawn([confusion] if confusion else []),
        "fewest_shared": FEWEST_SHARED, "has_unsure": any(choice.is_unsure for choice in asked.choices.all()),
        "most_pairs": MOST_PAIRS,
    }  # fmt: skip
    return render(request, "curation/rater.html", context)


@require_GET
def figure(request: HttpRequest, project: str, question: str, name: str, kind: str) -> HttpResponse:
    """A figure of the list as a file, its data with every rater and every pair; of one rater with ?number=."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    standing = raters.of_question(asked)
    number = request.GET.get("number", "")
    if not number:
        found = figures.of_standing(standing, raters.people(asked, standing), whole=kind == "csv")
        return download(found, name, kind, f"{project}-{question}")
    confusion = figures.confusion(raters.person(asked, standing, page_number(number)), standing.choices)
    return download([confusion] if confusion else [], name, kind, f"{project}-{question}-{page_number(number)}")


def page_number(given: str) -> int:
    return max(1, int(given)) if given.isascii() and given.isdigit() and len(given) < 7 else 1


def _address(sort: str, page: int) -> str:
    return "?" + urlencode({"sort": sort, "page": page})


def _columns(sort: str) -> list[dict[str, Any]]:
    """Each head as a link that sorts by it; the one that sorts now turns round."""
    made = []
    for name, words, first in _COLUMNS:
        now = sort.removeprefix("-") == name
        to = (name if sort.startswith("-") else f"-{name}") if now else f"{first}{name}"
        way = ("descending" if sort.startswith("-") else "ascending") if now else ""
        made.append({"name": name, "words": words, "to": "?" + urlencode({"sort": to}), "way": way})
    return made
