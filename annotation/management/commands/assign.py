"""manage.py assign PROJECT QUESTION [NUMBER …]: who works on a question, and whether it is offered at all."""

import json
from argparse import ArgumentParser
from contextlib import nullcontext
from typing import Any

import pghistory
from django.core.management.base import BaseCommand, CommandError

from annotation import questions, steering
from annotation.errors import Refused
from annotation.management.of_project import researcher_of
from annotation.models import Question


class Command(BaseCommand):
    help = "Say who works on a question: with numbers only these members, with --everyone all who label. Without either, show it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument("number", nargs="*", type=int, help="members by number, as People lists them")
        parser.add_argument("--everyone", action="store_true", help="everyone who labels works on it")
        parser.add_argument("--by", default="", help="the user name of the researcher in whose name it is done")
        offer = parser.add_mutually_exclusive_group()
        offer.add_argument("--pause", action="store_true", help="offer the question to nobody")
        offer.add_argument("--resume", action="store_true", help="offer it again")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        question = Question.objects.filter(project__slug=options["project"], slug=options["question"]).first()
        if question is None:
            raise CommandError(f"There is no question {options['question']!r} in a project {options['project']!r}.")
        if options["everyone"] and options["number"]:
            raise CommandError("Give numbers, or --everyone.")
        try:
            by = researcher_of(options["project"], options["by"]) if options["by"] else None
            with pghistory.context(user=by.user_id, path="manage.py assign") if by else nullcontext():
                if options["everyone"] or options["number"]:
                    steering.assign(question, options["number"])
                if options["pause"] or options["resume"]:
                    question = questions.set_active(question, options["resume"])
        except Refused as error:
            raise CommandError(error.message) from error
        people = sorted(steering.assigned(question))
        if options["json"]:
            self.stdout.write(json.dumps({"question": question.slug, "people": people, "active": question.active}))
            return
        who = f"Members {', '.join(map(str, people))} work" if people else "Everyone who labels works"
        self.stdout.write(f"{who} on {question.title}. It is {'on' if question.active else 'not on'} offer.")
