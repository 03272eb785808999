"""manage.py known_answers list|mark|draw|remove PROJECT QUESTION: items whose right answer is known, for practice or as checks."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import known
from annotation.errors import Refused
from annotation.models import KnownAnswer, Question


class Command(BaseCommand):
    help = "List known answers and how they are answered, mark items, draw from settled tasks, or take one out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=["list", "mark", "draw", "remove"])
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument(
            "what",
            nargs="?",
            default="",
            help='mark: a file of "id, answer, tags, why" (- for standard input); draw: how many; remove: an id',
        )
        parser.add_argument("--practice", action="store_true", help="for practice, with feedback; else as checks, mixed in unseen")
        parser.add_argument("--seed", type=int, help="of the draw; the project's own unless named")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        question = Question.objects.select_related("project").filter(project__slug=options["project"], slug=options["question"]).first()
        if question is None:
            raise CommandError(f"There is no question {options['question']!r} in a project {options['project']!r}.")
        try:
            if options["do"] == "list":
                self._list(question, as_json=options["json"])
            elif options["do"] == "remove":
                known.unmark(question, _whole(options["what"], "the id of a known answer"))
                self._told(options["json"], {"removed": int(options["what"])}, "Taken out.")
            else:
                made = self._mark(question, options)
                self._told(options["json"], {"ids": [one.pk for one in made]}, f"{len(made):,} known answers in use.")
        except Refused as refusal:
            lines = [f"  {name}: {why}" for name, why in refusal.fields.items()]
            raise CommandError("\n".join([refusal.message, *lines])) from refusal

    def _mark(self, question: Question, options: dict[str, Any]) -> list[KnownAnswer]:
        if options["do"] == "draw":
            count = _whole(options["what"], "how many")
            return known.mark_settled(question, count, seed=options["seed"], practice=options["practice"], by=None)
        return known.mark_lines(question, _read(options["what"]), practice=options["practice"], by=None)

    def _list(self, question: Question, *, as_json: bool) -> None:
        lines = [line for practice in (True, False) for line in _all(question, practice=practice)]
        rows = [
            {
                "id": line.known.pk, "item": line.known.task.item.external_id, "choice": line.known.choice.value, "tags": line.known.tags,
                "practice": line.known.practice, "asked": line.asked, "missed": line.missed, "suspicious": line.suspicious,
            }
            for line in lines
        ]  # fmt: skip
        text = "\n".join(
            f"{row['id']:>8}  {'practice' if row['practice'] else 'check':8}  {row['item']:30}  {row['choice']:12}  "
            f"{row['missed']} of {row['asked']} missed{'  (most miss it)' if row['suspicious'] else ''}"
            for row in rows
        )
        self._told(as_json, {"known_answers": rows}, text or "No known answer is in use.")

    def _told(self, as_json: bool, found: dict[str, Any], text: str) -> None:
        self.stdout.write(json.dumps(found) if as_json else text)


def _all(question: Question, *, practice: bool) -> list[known.Line]:
    found: list[known.Line] = []
    while more := known.active(question, practice=practice, after=found[-1].known.pk if found else 0):
        found += more
    return found


def _whole(typed: str, what: str) -> int:
    if not typed.isdecimal() or len(typed) > 18:
        raise CommandError(f"Say {what}, a whole number.")
    return int(typed)


def _read(name: str) -> str:
    if not name:
        raise CommandError('Name a file of "id, answer, tags, why", or - for standard input.')
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}.") from error
