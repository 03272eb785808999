"""manage.py import_items PROJECT FILE: bring items in from a file or a folder of this machine."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from annotation.errors import Invalid, Refused
from annotation.models import Kind, Project
from annotation.presets import PRESETS
from curation.importing import readers, service, voting
from curation.importing.mapping import Mapping
from curation.importing.votes import FORMS, FROM_ANSWERS, Votes
from curation.models import ImportBatch, ImportState


class Command(BaseCommand):
    help = (
        "Bring items in from a CSV, TSV, JSONL or Parquet file, or pictures from a ZIP or a folder. "
        "All rows, or none; with --skip-bad all the good ones."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("file", type=Path, help="or a folder of pictures, with a manifest.csv that names them or without")
        parser.add_argument("--text", help="the column with the text; guessed by its name")
        parser.add_argument("--id", dest="external_id", help="the column with the item's id; without one, the file and the row")
        parser.add_argument(
            "--kind", choices=Kind.values, help="text, or image, as in a ZIP or folder; in a table, images lack their files"
        )
        parser.add_argument("--picture", help="in a ZIP or folder: the column that names the picture's file; guessed by its name")
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
        parser.add_argument("--mapping", type=Path, help="a JSON file with the whole mapping, as the API takes it; instead of the options")
        _add_votes(parser)
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
            mapping = _mapping(batch, source, options)
            service.start(batch, mapping, source=source, skip_bad_rows=options["skip_bad"])
        except Refused as error:
            service.discard(batch)
            raise CommandError(error.message) from error
        batch = _run(batch)
        if options["json"]:
            self.stdout.write(json.dumps(as_dict(batch)))
        elif batch.state == ImportState.DONE:
            self.stdout.write(f"{batch.rows:,} rows: {batch.created:,} new items, {batch.unchanged:,} unchanged, {batch.bad:,} bad.")
            for line in map(voting.in_words, batch.votes):
                self.stdout.write(line)
        if not options["json"]:
            for problem in (*batch.problems, *batch.notes):
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
    return replace(service.source_of(batch, ready="format" in named or not _says_columns(options)), **named).checked()


def _says_columns(options: dict[str, Any]) -> bool:
    """Whether the file's own columns are named: then it is not read as a published layout of its own accord."""
    return any(options[name] is not None for name in ("mapping", "text", "external_id", "seed", "votes"))


def _mapping(batch: ImportBatch, source: readers.Source, options: dict[str, Any]) -> Mapping:
    """What the options name. Where they do not, the text column is guessed, and beside pictures or in a published layout all."""
    if options["mapping"] is not None:
        return _mapping_from(options["mapping"])
    named = {part: options[part] for part in ("kind", "text", "external_id", "seed", "prompt_id", "origin") if options[part] is not None}
    if options["picture"] is not None:
        named["file"] = options["picture"]
    if options["metadata"] is not None:
        named["metadata"] = tuple(options["metadata"])
    if options["votes"] is not None:
        named["votes"] = (_votes(options),)
    if options["existing"]:
        return Mapping(**named, existing=True)
    guessed = service.guess(batch, service.columns(batch, source), source)
    if source.format in readers.READY:
        return replace(guessed, **named)
    if not service.is_archive(batch):
        guessed = Mapping(text=None if options["kind"] == Kind.IMAGE else guessed.text)
    elif "origin" in named:
        guessed = replace(guessed, seed=None, prompt_id=None)
    return replace(guessed, **named, seed_per_row=options["seed_per_row"])


def _mapping_from(path: Path) -> Mapping:
    try:
        given = json.loads(path.read_text())
    except OSError as error:
        raise Invalid(f"The mapping cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise Invalid("The mapping is not JSON.") from error
    if not isinstance(given, dict):
        raise Invalid("The mapping is not a JSON object.")
    return Mapping.of(given)


def _add_votes(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("votes that come with the file")
    forms = "; ".join(f"{form}: {words}" for form, words in FORMS.items())
    group.add_argument("--votes", choices=list(FORMS), help=f"how they stand. {forms}")
    group.add_argument("--question", help="the question they are for")
    group.add_argument("--make", choices=[*PRESETS, FROM_ANSWERS], help="what to make the question from where the project has none")
    group.add_argument("--answers", nargs="+", metavar="COLUMN", help="the column with the answers, or one a rater, or one a choice")
    group.add_argument("--rater", metavar="COLUMN", help="who voted; without one, nobody in particular")
    group.add_argument("--tags", nargs="+", metavar="COLUMN")
    group.add_argument("--comment", metavar="COLUMN")
    group.add_argument("--time", metavar="COLUMN", help="when: ISO 8601, or seconds since 1970")
    group.add_argument("--elapsed", metavar="COLUMN", help="how long the answer took, in milliseconds")
    group.add_argument("--attributes", nargs="+", metavar="COLUMN", help="what is known of the rater")
    spelt = "an answer as the file spells it, as in --choice=-1=no; no choice: no vote"
    group.add_argument("--choice", action="append", metavar="SPELLING=CHOICE", help=spelt)
    group.add_argument("--tag", action="append", metavar="SPELLING=TAG")
    group.add_argument("--title", help="of a question that is made of the answers")
    group.add_argument("--label", action="append", metavar="CHOICE=LABEL", help="how a choice of such a question is called")
    group.add_argument("--votes-required", type=int, help="votes a task needs; as many as it has raters when not given")
    group.add_argument("--policy", help="of a question that is made: unanimous or majority")
    group.add_argument("--existing", action="store_true", help="the items are in the project already; only votes come")


def _votes(options: dict[str, Any]) -> Votes:
    if options["question"] is None or options["answers"] is None:
        raise Invalid("Votes need --question and --answers.")
    parts = ("rater", "comment", "time", "elapsed", "votes_required", "policy", "title")
    return Votes.of({
        "form": options["votes"], "question": options["question"], "make": options["make"], "columns": options["answers"],
        "tags": options["tags"], "attributes": options["attributes"], **{part: options[part] for part in parts},
        "choices": _pairs(options["choice"]), "tag_values": _pairs(options["tag"]),
        "labels": _pairs(options["label"], first=True),
    })  # fmt: skip


def _pairs(given: list[str] | None, *, first: bool = False) -> dict[str, str]:
    """Split at the last sign, since a spelling may hold one; `first`: at the first."""
    pairs = [text.partition("=") if first else text.rpartition("=") for text in given or []]
    if wrong := next((value for spelling, sign, value in pairs if not sign or not spelling), None):
        raise Invalid(f"{wrong!r} is no SPELLING=VALUE.")
    return {spelling: value.strip() for spelling, _, value in pairs}


def as_dict(batch: ImportBatch) -> dict[str, Any]:
    """How an import stands, for --json."""
    names = ("filename", "file_hash", "state", "rows", "created", "unchanged", "bad", "error", "problems", "votes", "notes")
    return {"id": str(batch.pk), **{name: getattr(batch, name) for name in names}}
