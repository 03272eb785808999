"""manage.py import_items PROJECT FILE: bring items in from a file of this machine."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from annotation.errors import Refused
from annotation.models import Kind, Project
from curation.importing import mapping as mapping_
from curation.importing import readers, service
from curation.importing.mapping import Mapping
from curation.models import ImportBatch, ImportState


class Command(BaseCommand):
    help = "Bring items in from a CSV, TSV, JSONL or Parquet file. All rows, or none; with --skip-bad all the good ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("file", type=Path)
        parser.add_argument("--text", help="the column with the text; guessed by its name")
        parser.add_argument("--id", dest="external_id", help="the column with the item's id; without one, the file and the row")
        parser.add_argument("--kind", choices=Kind.values, default=Kind.TEXT, help="text, or image for rows whose picture is not here")
        parser.add_argument("--seed", help="the column with the text that the item was derived from")
        parser.add_argument("--prompt-id", help="the column with that text's id")
        parser.add_argument("--seed-per-row", action="store_true", help="equal seed texts stay apart")
        parser.add_argument("--origin", help="the column with the id of the item it was derived from")
        parser.add_argument("--metadata", nargs="*", help="the columns kept as metadata; all that are left when not given, none when empty")
        parser.add_argument("--format", choices=list(readers.FORMATS))
        parser.add_argument("--delimiter", help="one character")
        parser.add_argument("--encoding", help="utf-8 unless named")
        parser.add_argument("--no-quotes", action="store_true", help="a quote is an ordinary character")
        parser.add_argument("--skip-bad", action="store_true", help="leave bad rows out and report them")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            batch = service.take(project, options["file"], None)
        except Refused as error:
            raise CommandError(error.message) from error
        try:
            source = _source(batch, options)
            mapping = _mapping(readers.columns(options["file"].resolve(), source), options)
            service.start(batch, mapping, source=source, skip_bad_rows=options["skip_bad"])
        except Refused as error:
            service.discard(batch)
            raise CommandError(error.message) from error
        batch = _run(batch)
        if options["json"]:
            self.stdout.write(json.dumps(as_dict(batch)))
        elif batch.state == ImportState.DONE:
            self.stdout.write(f"{batch.rows:,} rows: {batch.created:,} new items, {batch.unchanged:,} unchanged, {batch.bad:,} bad.")
        if not options["json"]:
            for problem in batch.problems:
                where = f", {problem['field']}" if problem["field"] else ""
                self.stderr.write(f"row {problem['row']}{where}: {problem['message']}")
        if batch.state != ImportState.DONE:
            raise CommandError(batch.error or "The import did not end.")


def _run(batch: ImportBatch) -> ImportBatch:
    with tqdm(total=batch.size, unit="B", unit_scale=True, desc=batch.filename, file=sys.stderr, disable=None) as bar:

        def tell(bytes_read: int, rows: int) -> None:
            bar.update(bytes_read - bar.n)
            bar.set_postfix_str(f"{rows:,} rows", refresh=False)

        return service.run(batch.pk, tell)


def _source(batch: ImportBatch, options: dict[str, Any]) -> readers.Source:
    named = {name: options[name] for name in ("format", "delimiter", "encoding") if options[name]}
    if options["no_quotes"]:
        named["quotes"] = False
    if named.get("format") == "tsv":
        named.setdefault("delimiter", "\t")
    return replace(service.source_of(batch), **named).checked()


def _mapping(names: list[str], options: dict[str, Any]) -> Mapping:
    """What the options name; the text column is guessed where they do not."""
    kept = options["metadata"]
    return Mapping(
        kind=options["kind"],
        text=options["text"] if options["text"] is not None or options["kind"] == Kind.IMAGE else mapping_.guess(names).text,
        **{part: options[part] for part in ("external_id", "seed", "prompt_id", "seed_per_row", "origin")},
        metadata=None if kept is None else tuple(kept),
    )


def as_dict(batch: ImportBatch) -> dict[str, Any]:
    """How an import stands, for --json."""
    names = ("filename", "file_hash", "state", "rows", "created", "unchanged", "bad", "error", "problems")
    return {"id": str(batch.pk), **{name: getattr(batch, name) for name in names}}
