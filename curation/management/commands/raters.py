"""manage.py raters PROJECT QUESTION: who votes how."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Question
from curation import raters
from curation.figures.detection import say


class Command(BaseCommand):
    help = "Raters of a question: votes, median time, agreement with the others, known answers, reliability."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument("--sort", default="-votes", choices=[sign + name for name in raters.SORTS for sign in ("", "-")])
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        question = Question.objects.select_related("project").filter(project__slug=options["project"], slug=options["question"]).first()
        if question is None:
            raise CommandError(f"There is no question {options['question']!r} in a project {options['project']!r}.")
        if options["json"]:
            self.stdout.write(json.dumps(raters.as_json(question, options["sort"])))
            return
        standing = raters.of_question(question)
        if standing.nameless:
            self.stdout.write(f"{standing.nameless_votes:,} votes in no figure of single raters. {standing.nameless}")
        for person in raters.ordered(raters.people(question, standing), options["sort"]):
            figures = person.figures
            if figures.nameless:
                continue
            time = "not timed" if figures.median_s is None else f"{figures.median_s:.1f} s"
            self.stdout.write(f"{person.pseudonym}{', paused' if person.paused else ''}: {figures.votes:,} votes, {time}")
            self.stdout.write(f"  with the others   {say(figures.agreement)}")
            self.stdout.write(f"  on known answers  {say(person.checks)}")
            self.stdout.write(f"  reliability       {say(figures.reliability)}")
