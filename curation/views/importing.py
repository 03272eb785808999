"""Imports: upload a file, look at its first rows, say which column is what, start, and watch."""

import uuid
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access
from annotation.errors import Invalid, Missing
from annotation.models import Item, Kind, Membership
from curation.importing import readers, service
from curation.importing.mapping import Mapping
from curation.importing.readers import Source
from curation.models import ImportBatch, ImportState
from curation.views import import_votes
from workers import tasks

MOST_LISTED = 200
PROBLEMS_SHOWN = 100
NONE = "-"  # a column of any other name can be chosen, even one without a name


@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """Every import, the newest first."""
    member = access.researcher(request.user, project)
    batches = ImportBatch.objects.filter(project=member.project).defer("problems").select_related("created_by").order_by("-created_at")
    rows = [service.settled(batch) for batch in batches[:MOST_LISTED]]
    context = {"member": member, "here": "imports", "batches": rows, "active": any(_active(batch) for batch in rows)}
    return render(request, "curation/_imports.html" if request.headers.get("HX-Request") else "curation/imports.html", context)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, project: str) -> HttpResponse:
    """Upload a file."""
    member = access.researcher(request.user, project)
    error = None
    if request.method == "POST":
        try:
            batch = _uploaded(request, member)
            return redirect("import_batch", member.project.slug, batch.pk)
        except Invalid as refused:
            error = refused.message
    context = {"member": member, "here": "imports", "error": error, "formats": readers.FORMATS.values()}
    return render(request, "curation/import_new.html", context, status=422 if error else 200)


def _uploaded(request: HttpRequest, member: Membership) -> ImportBatch:
    file = request.FILES.get("file")
    if file is None:
        raise Invalid("Choose a file.")
    return service.store(member.project, file.name or "", file.chunks(), member.user)


@require_http_methods(["GET", "POST"])
def batch(request: HttpRequest, project: str, batch: uuid.UUID) -> HttpResponse:
    """One import: its preview and mapping until it is started, then how far it is and what became of it."""
    member = access.researcher(request.user, project)
    found = of_project(member, batch)
    do = request.POST.get("do")
    if do == "discard":
        service.discard(found)
        messages.success(request, f"Discarded: {found.filename}. It had brought no items.")
        return redirect("imports", member.project.slug)
    if do == "start":
        return _start(request, member, found)
    if do == "read" or request.GET.get("map") or (found.state == ImportState.UPLOADED and not found.mapping):
        return _preview(request, member, found)
    return _standing(request, member, found)


def of_project(member: Membership, batch: uuid.UUID) -> ImportBatch:
    """The import with this id, as it stands."""
    found = ImportBatch.objects.select_related("project", "created_by").filter(project=member.project, pk=batch).first()
    if found is None:
        raise Missing("There is no such import in this project.")
    return service.settled(found)


def _active(batch: ImportBatch) -> bool:
    return batch.state == ImportState.RUNNING or (batch.state == ImportState.UPLOADED and bool(batch.mapping))


def _standing(request: HttpRequest, member: Membership, batch: ImportBatch) -> HttpResponse:
    mapping = service.mapping_of(batch)
    context: dict[str, Any] = {
        "member": member, "here": "imports", "batch": batch, "active": _active(batch), "mapping": mapping,
        "problems": batch.problems[:PROBLEMS_SHOWN], "notes": batch.notes[:PROBLEMS_SHOWN],
        "origins": 0, "source": service.source_of(batch) if batch.mapping else None,
    }  # fmt: skip
    if batch.state == ImportState.DONE and mapping and mapping.seed:
        context["origins"] = max(0, Item.objects.filter(project=member.project, batch=batch.pk).count() - batch.created)
    return render(request, "curation/_import.html" if request.headers.get("HX-Request") else "curation/import.html", context)


def _start(request: HttpRequest, member: Membership, batch: ImportBatch) -> HttpResponse:
    try:
        source, mapping = _source(request.POST, service.source_of(batch)), _mapping(request.POST)
        with transaction.atomic():
            batch = service.start(batch, mapping, source=source, skip_bad_rows="skip_bad_rows" in request.POST)
            transaction.on_commit(lambda: _send(request, batch))
    except Invalid as error:
        return _preview(request, member, batch, error)
    return redirect("import_batch", member.project.slug, batch.pk)


def _send(request: HttpRequest, batch: ImportBatch) -> None:
    if not tasks.send_import(batch):
        messages.warning(request, "The queue does not answer, so no worker was told. When it runs again, start the import once more.")


def _preview(request: HttpRequest, member: Membership, batch: ImportBatch, error: Invalid | None = None) -> HttpResponse:
    if batch.state not in (ImportState.UPLOADED, ImportState.FAILED):
        return _standing(request, member, batch)
    preview = None
    source = None
    mapping = service.mapping_of(batch)
    try:
        source = service.source_of(batch)
        source = _source(request.POST, source)
        preview = service.preview(batch, source)
    except Invalid as refused:
        error = error or refused
    sent = None
    try:
        sent = _mapping(request.POST) if "external_id" in request.POST else None
    except Invalid as refused:
        error = error or refused
    if sent is not None and (preview is None or request.POST.get("do") == "start" or _known(sent) <= set(preview.columns)):
        mapping = sent
    elif preview is not None and (mapping is None or not _known(mapping) <= set(preview.columns)):
        mapping = preview.mapping
    context: dict[str, Any] = {
        "member": member, "here": "imports", "batch": batch, "preview": preview, "source": source, "mapping": mapping or Mapping(),
        "formats": readers.FORMATS.items(), "delimiters": readers.DELIMITERS.items(), "kinds": Kind.choices, "none": NONE,
        "error": error, "wrong": error.fields if error else {}, "skip": "skip_bad_rows" in request.POST or batch.skip_bad_rows,
        "used": _uses(mapping) if mapping else {}, "pictures": service.is_archive(batch),
        "ready": readers.FORMATS[source.format] if source and source.format in readers.READY else "",
    }  # fmt: skip
    if preview is not None:
        asked = any(name.startswith("votes") for name in (error.fields if error else {}))
        table = service.table_of(batch)
        context["votes"] = import_votes.form_of(batch, preview.source, table, context["mapping"], preview.columns, wrong=asked)
    return render(request, "curation/import_preview.html", context, status=422 if error else 200)


def _source(given: QueryDict, guessed: Source) -> Source:
    if "format" not in given:
        return guessed
    form = str(given["format"])
    delimiter = "\t" if form == "tsv" else given.get("delimiter", guessed.delimiter)
    if form == "csv" and delimiter == "\t":
        form = "tsv"
    return replace(
        guessed, format=form, encoding=given.get("encoding", "").strip() or "utf-8", delimiter=delimiter, quotes="quotes" in given
    ).checked()


def _mapping(given: QueryDict) -> Mapping:
    parts = ("text", "file", "external_id", "seed", "prompt_id", "origin")
    columns: dict[str, Any] = {part: None if given.get(part, NONE) == NONE else given[part] for part in parts}
    kept = {"all": None, "none": (), "chosen": tuple(given.getlist("metadata"))}.get(given.get("keep", "all"))
    columns["file" if given.get("kind") != Kind.IMAGE else "text"] = None
    votes = import_votes.votes_of(given)
    kind, existing = given.get("kind", Kind.TEXT), "existing" in given
    if existing:
        columns |= dict.fromkeys(("text", "file", "seed", "prompt_id", "origin"))
    return Mapping(kind=kind, seed_per_row="seed_per_row" in given, metadata=kept, votes=votes, existing=existing, **columns)


def _known(mapping: Mapping) -> set[str]:
    named = {mapping.text, mapping.file, mapping.external_id, mapping.seed, mapping.prompt_id, mapping.origin}
    return {name for name in named if name is not None}.union(mapping.metadata or (), *(votes.used for votes in mapping.votes))


def _uses(mapping: Mapping) -> dict[str, str]:
    words = {"text": "text", "file": "picture", "external_id": "id", "seed": "seed", "prompt_id": "prompt id", "origin": "origin"}
    votes = dict.fromkeys((name for one in mapping.votes for name in one.used), "votes")
    return votes | {getattr(mapping, part): word for part, word in words.items() if getattr(mapping, part) is not None}
