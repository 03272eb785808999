"""manage.py agreement PROJECT QUESTION: how far people agree."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Question
from curation import agreement
from curation.figures.agreement import named
from curation.figures.detection import say


class Command(BaseCommand):
    help = "Agreement on a question: shares, kappa, alpha and AC1, with their intervals."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        question = Question.objects.select_related("project").filter(project__slug=options["project"], slug=options["question"]).first()
        if question is None:
            raise CommandError(f"There is no question {options['question']!r} in a project {options['project']!r}.")
        found = agreement.of_question(question)
        if options["json"]:
            self.stdout.write(json.dumps(agreement.as_json(question, found)))
            return
        self.stdout.write(f"{question.title}: {found.figures.items:,} items, {found.figures.votes:,} votes")
        for name, estimate, _ in named(found):
            self.stdout.write(f"  {name:<22} {say(estimate)}")
