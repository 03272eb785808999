"""manage.py export PROJECT --format jsonl --output FILE: the project's items with labels, votes and scores."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from annotation.errors import Refused
from annotation.models import Project
from curation import exporting


class Command(BaseCommand):
    help = "Write a project's items with ground truth, pseudonymous votes and scores to a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("--format", choices=exporting.FORMATS, default="jsonl")
        parser.add_argument("--output", type=Path, required=True, help="the file to write; it appears when it is complete")
        parser.add_argument("--question", help="only items with a task of this question, and only its labels")
        parser.add_argument("--sample", type=int, help="only items of the sample with this id")
        parser.add_argument("--settled", action="store_true", help="only items with a ground truth")
        parser.add_argument("--comments", action="store_true", help="with the voters' comments")
        parser.add_argument("--json", action="store_true", help="print one JSON object at the end")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            what = exporting.wanted(
                project,
                question=options["question"], sample=options["sample"], settled=options["settled"], comments=options["comments"],
            )  # fmt: skip
        except Refused as refusal:
            raise CommandError(" ".join([refusal.message, *refusal.fields.values()])) from refusal
        output: Path = options["output"]
        items = self._write(what, options["format"], output)
        report = {"items": items, "bytes": output.stat().st_size, "file": str(output)}
        self.stdout.write(json.dumps(report) if options["json"] else f"{items:,} items in {output} ({report['bytes']:,} bytes).")

    def _write(self, what: exporting.Wanted, form: exporting.Format, output: Path) -> int:
        part = output.with_name(output.name + ".part")
        items = 0
        try:
            with (
                part.open("w", encoding="utf-8", newline="") as file,
                tqdm(total=exporting.count(what), unit=" items", unit_scale=True, disable=not sys.stderr.isatty()) as bar,
            ):
                for many, text in exporting.export(what, form):
                    file.write(text)
                    items += many
                    bar.update(many)
            part.replace(output)
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror}.") from error
        finally:
            part.unlink(missing_ok=True)
        return items
