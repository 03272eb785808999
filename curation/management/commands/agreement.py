"""manage.py agreement PROJECT QUESTION: how far people agree."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Question
from curation import agreement, raters
from curation.figures.agreement import named
from curation.figures.detection import say


class Command(BaseCommand):
    help = "Agreement on a question: shares, kappa, alpha and AC1, with their intervals."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument("--group", default="", help="an attribute of raters: figures for each group too")
        parser.add_argument("--by", default="", help="a metadata key of items: figures for each of its values too")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        question = Question.objects.select_related("project").filter(project__slug=options["project"], slug=options["question"]).first()
        if question is None:
            raise CommandError(f"There is no question {options['question']!r} in a project {options['project']!r}.")
        group, by = options["group"], options["by"]
        if options["json"]:
            self.stdout.write(json.dumps(raters.agreement_as_json(question, group=group, by=by)))
            return
        found = agreement.of_question(question)
        self.stdout.write(f"{question.title}: {found.figures.items:,} items, {found.figures.votes:,} votes")
        for name, estimate, _ in named(found):
            self.stdout.write(f"  {name:<22} {say(estimate)}")
        for tag in found.tags:
            self.stdout.write(f"  alpha of tag {tag.label:<9} {say(tag.figures.alpha)}")
        self._parts([agreement.by_attribute(question, group)] if group else [])
        self._parts([agreement.by_metadata(question, by)] if by else [])
        self._methods(raters.of_question(question))

    def _parts(self, found: list[agreement.Parts]) -> None:
        for parts in found:
            self.stdout.write(f"By {parts.key}")
            for part in parts.parts:
                self.stdout.write(f"  {part.value or 'not given':<22} {part.figures.votes:,} votes, alpha {say(part.figures.alpha)}")

    def _methods(self, standing: raters.Standing) -> None:
        methods = standing.methods
        if standing.nameless:
            self.stdout.write(f"{standing.tasks_left_out:,} tasks are left out of Dawid-Skene. {standing.nameless}")
        if methods is None:
            return
        for method, name in raters.METHODS.items():
            labels = ", ".join(f"{label} {tasks:,}" for label, tasks in zip(standing.choices, methods.labels[method], strict=True))
            self.stdout.write(f"{name}: {labels}, not settled {methods.unsettled[method]:,}")
        fit = methods.fit
        how = "converged" if fit.converged else "did NOT converge"
        self.stdout.write(f"Dawid-Skene {how} in {fit.iterations} iterations, log-likelihood {fit.log_likelihood:.3f}")
