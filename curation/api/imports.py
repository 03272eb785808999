"""Imports over the API: a file and its mapping in one call, and how it went."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from annotation.errors import Invalid
from annotation.models import Project, User
from curation.importing import readers, service
from curation.importing.mapping import Mapping
from curation.models import ImportBatch
from curation.views.importing import of_project
from workers import tasks


class ProblemShape(serializers.Serializer[Any]):
    row = serializers.IntegerField(help_text="1 is the first after the header; in JSON lines, the first line.")
    field = serializers.CharField()
    message = serializers.CharField()

    class Meta:
        ref_name = "ImportProblem"


class ImportShape(serializers.ModelSerializer[ImportBatch]):
    problems = ProblemShape(many=True, read_only=True)
    notes = ProblemShape(many=True, read_only=True, help_text="Rows that are not bad, and what is worth knowing of them.")

    class Meta:
        model = ImportBatch
        fields = [
            "id", "filename", "file_hash", "size", "format", "kind", "mapping", "skip_bad_rows", "state", "bytes_read", "rows", "created",
            "unchanged", "bad", "problems", "votes", "notes", "error", "created_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields
        ref_name = "Import"


class AboutImport(serializers.Serializer[Any]):
    """Beside the file in a form; in the query string when the body is the file itself."""

    filename = serializers.CharField(required=False, max_length=255, help_text="When the body is the file: its name, for the format.")
    mapping = serializers.CharField(
        required=False, max_length=20_000,
        help_text='JSON: columns by part, as {"text": "tweet", "external_id": "id", "metadata": ["recipe"]}; guessed when left out.',
    )  # fmt: skip
    skip_bad_rows = serializers.BooleanField(default=False)
    file_format = serializers.ChoiceField(list(readers.FORMATS), required=False)
    delimiter = serializers.CharField(required=False, max_length=1, trim_whitespace=False)
    encoding = serializers.CharField(required=False, max_length=40)
    quotes = serializers.BooleanField(required=False)


class NewImport(AboutImport):
    file = serializers.FileField()


class Stream(BaseParser):
    """A body that is the file itself, read as it comes."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:  # noqa: ARG002 - DRF's
        return stream


class Imports(generics.ListAPIView[ImportBatch]):
    serializer_class = ImportShape
    parser_classes = [MultiPartParser, Stream]

    @extend_schema(operation_id="imports", tags=["imports"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Every import of the project."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> Any:
        if getattr(self, "swagger_fake_view", False):  # the schema asks without a project
            return ImportBatch.objects.none()
        member = access.researcher(self.request.user, self.kwargs["project"])
        return ImportBatch.objects.filter(project=member.project)

    @property
    def paginator(self) -> None:
        """Ids are not in order of time, and a project has few imports."""
        return None

    @extend_schema(
        operation_id="import_items",
        tags=["imports"],
        request={"multipart/form-data": NewImport, "application/octet-stream": OpenApiTypes.BINARY},
        parameters=[AboutImport],
        responses={202: ImportShape},
    )
    def post(self, request: Request, project: str) -> Response:
        """Bring in a file. It is read by a worker; ask for the import until its state is done or failed."""
        member = access.researcher(request.user, project)
        form = (request.content_type or "").startswith("multipart/form-data")
        asked = NewImport(data=request.data) if form else AboutImport(data=request.query_params)
        asked.is_valid(raise_exception=True)
        given = asked.validated_data
        file: Any = given.get("file")
        name = given.get("filename") or (file.name if file is not None else None) or "upload"
        chunks = file.chunks() if file is not None else _chunks(request)
        batch = _stored(member.project, name, chunks, member.user, given)
        return Response(ImportShape(batch).data, status=status.HTTP_202_ACCEPTED)


def _chunks(request: Request) -> Iterator[bytes]:
    while chunk := request._request.read(1 << 20):  # the stream below DRF's request
        yield chunk


def _stored(project: Project, name: str, chunks: Iterator[bytes], user: User | None, given: dict[str, Any]) -> ImportBatch:
    batch = service.store(project, name, chunks, user)
    try:
        named: dict[str, Any] = {part: given[part] for part in ("delimiter", "encoding", "quotes") if part in given}
        if "file_format" in given:
            named["format"] = given["file_format"]
        if named.get("format") == "tsv":
            named.setdefault("delimiter", "\t")
        # A mapping names the file's own columns: it is not for a published layout, unless that is asked for.
        mapping = _mapping(given.get("mapping"))
        source = replace(service.source_of(batch, ready=mapping is None or "format" in named), **named).checked()
        mapping = mapping or service.guess(batch, service.columns(batch, source), source)
        with transaction.atomic():
            batch = service.start(batch, mapping, source=source, skip_bad_rows=given["skip_bad_rows"])
            transaction.on_commit(lambda: tasks.send_import(batch))
    except Invalid:
        service.discard(batch)
        raise
    return batch


def _mapping(given: str | None) -> Mapping | None:
    if not given:
        return None
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Invalid("The mapping is not a JSON object.", fields={"mapping": "Not a JSON object."})
    return Mapping.of(value)


class Import(APIView):
    @extend_schema(operation_id="import_status", tags=["imports"], responses=ImportShape)
    def get(self, request: Request, project: str, batch: uuid.UUID) -> Response:
        """How an import stands: its state, rows read, and the first bad rows."""
        member = access.researcher(request.user, project)
        return Response(ImportShape(of_project(member, batch)).data)

    @extend_schema(operation_id="import_discard", tags=["imports"], responses={204: None})
    def delete(self, request: Request, project: str, batch: uuid.UUID) -> Response:
        """Forget an import that brought no items, and its file."""
        member = access.researcher(request.user, project)
        service.discard(of_project(member, batch))
        return Response(status=status.HTTP_204_NO_CONTENT)
