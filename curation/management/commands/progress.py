"""manage.py progress PROJECT QUESTION: what is left, when it will be done, and what nobody can cast."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused
from annotation.management.of_project import question_of
from curation import forecast
from curation.api.steering import StandingShape, shown
from curation.figures import progress


class Command(BaseCommand):
    help = "Say what is left of a question, when it will be done, and who is held up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            question = question_of(options["project"], options["question"])
        except Refused as error:
            raise CommandError(error.message) from error
        found = forecast.standing(question)
        if options["json"]:
            self.stdout.write(json.dumps(StandingShape(shown(question, found)).data))
            return
        self.stdout.write(f"{progress.finding(found)} {found.needed.rulings:,} rulings left. {found.free:,} people can work now.")
        if found.stranded.votes:
            self.stdout.write(f"Nobody can cast {found.stranded.votes:,} of them: assign or add people.")
