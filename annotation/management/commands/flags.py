"""manage.py flags list|handle|lift PROJECT: what people flagged, that it was looked at, or the end of a quarantine."""

import json
from argparse import ArgumentParser
from typing import Any

import pghistory
from django.core.management.base import BaseCommand, CommandError

from annotation import flags, rounds
from annotation.errors import Missing, Refused
from annotation.management.of_project import researcher_of
from annotation.models import Item, Membership, Project


class Command(BaseCommand):
    help = "List flags, mark one as handled, or lift the quarantine of an item."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=["list", "handle", "lift"])
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("number", nargs="?", type=int, help="handle: the flag's number; lift: the item's")
        parser.add_argument("--handled", action="store_true", help="list those that were handled")
        parser.add_argument("--by", default="", help="the user name of the researcher in whose name it is done")
        parser.add_argument("--why", default="", help="what was done about it; why it may be shown again")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            said, text = self._list(options) if options["do"] == "list" else self._act(options)
        except Refused as error:
            raise CommandError(error.message) from error
        self.stdout.write(json.dumps(said) if options["json"] else text)

    def _list(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise Missing(f"There is no project {options['project']!r}.")
        rows = [
            {"number": one.pk, "task": one.task_id, "item": one.task.item_id, "reason": one.reason, "at": one.created_at.isoformat()}
            for one in flags.of_project(project, handled=options["handled"])
        ]
        return {"flags": rows}, "\n".join(f"{row['number']}: task {row['task']}, {row['reason']}" for row in rows) or "No flag."

    def _act(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if options["number"] is None or not options["by"]:
            raise CommandError("Give a number, and --by.")
        by = researcher_of(options["project"], options["by"])
        with pghistory.context(user=by.user_id, path=f"manage.py flags {options['do']}"):
            return self._do(options, by)

    def _do(self, options: dict[str, Any], by: Membership) -> tuple[dict[str, Any], str]:
        if options["do"] == "handle":
            flag = flags.handle(options["number"], by=by, note=options["why"])
            return {"handled": flag.pk}, "Handled."
        item = Item.objects.filter(project=by.project, pk=options["number"]).first()
        if item is None:
            raise Missing(f"There is no item {options['number']} in this project.")
        shown = rounds.lift_quarantine(item, by=by, why=options["why"])
        return {"lifted": item.pk, "shown": shown}, "Lifted." if shown else "Lifted here; its picture stays sealed by another project."
