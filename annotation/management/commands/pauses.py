"""manage.py pauses PROJECT: who is paused for too few right answers; --lift lets someone go on."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import known
from annotation.errors import Refused
from annotation.models import Project, Question


class Command(BaseCommand):
    help = "List who is paused on which question, or let someone go on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument(
            "--lift", nargs=2, metavar=("QUESTION", "NUMBER"), help="let the annotator of this number go on with the question"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        if options["lift"]:
            self._lift(project, *options["lift"])
        rows = [
            {
                "question": pause.question.slug, "number": pause.member.number, "correct": pause.correct, "answers": pause.answers,
                "floor": pause.floor, "paused_at": pause.paused_at.isoformat(),
            }
            for pause in known.paused(project)
        ]  # fmt: skip
        text = "\n".join(f"Annotator {row['number']} on {row['question']}: {row['correct']} of {row['answers']} right" for row in rows)
        self.stdout.write(json.dumps({"paused": rows}) if options["json"] else text or "Nobody is paused.")

    def _lift(self, project: Project, slug: str, number: str) -> None:
        question = Question.objects.filter(project=project, slug=slug).first()
        if question is None or not number.isdecimal():
            raise CommandError(f"There is no question {slug!r} in {project.name}, or {number!r} is no annotator's number.")
        try:
            known.lift_pause(question, int(number), None)
        except Refused as refusal:
            raise CommandError(refusal.message) from refusal
