"""The export over the API: the same pieces as the page's, streamed."""

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from annotation import access
from config.api import LARGEST_ID
from curation import exporting
from curation.views.exporting import stream


class ExportQuery(serializers.Serializer[Any]):
    question = serializers.SlugField(default=None, max_length=60, help_text="Only items with a task of it, and only its labels.")
    sample = serializers.IntegerField(default=None, min_value=1, max_value=LARGEST_ID, help_text="Only items of this sample.")
    settled = serializers.BooleanField(default=False, help_text="Only items with a ground truth.")
    comments = serializers.BooleanField(default=False, help_text="With the voters' comments.")


class Lines(JSONRenderer):
    """Offered so that a client may ask for it; what this renderer itself writes is a problem."""

    media_type = "application/x-ndjson"
    format = "jsonl"


class Table(JSONRenderer):
    media_type = "text/csv"
    format = "csv"


class Export(APIView):
    form: exporting.Format

    def stream(self, request: Request, project: str) -> StreamingHttpResponse:
        member = access.researcher(request.user, project)
        asked = ExportQuery(data=request.query_params)
        asked.is_valid(raise_exception=True)
        return stream(exporting.wanted(member.project, **asked.validated_data), self.form)


class JsonLines(Export):
    form = "jsonl"
    renderer_classes = [Lines, JSONRenderer]

    @extend_schema(
        operation_id="export_jsonl", tags=["export"], parameters=[ExportQuery],
        responses={(200, "application/x-ndjson"): OpenApiResponse(OpenApiTypes.STR, "One JSON object an item.")},
    )  # fmt: skip
    def get(self, request: Request, project: str) -> StreamingHttpResponse:
        """Items with ground truth, pseudonymous votes and scores, one JSON object a line."""
        return self.stream(request, project)


class Csv(Export):
    form = "csv"
    renderer_classes = [Table, JSONRenderer]

    @extend_schema(
        operation_id="export_csv", tags=["export"], parameters=[ExportQuery],
        responses={(200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, "One row an item; formulas disarmed.")},
    )  # fmt: skip
    def get(self, request: Request, project: str) -> StreamingHttpResponse:
        """The same, flattened to one row an item."""
        return self.stream(request, project)
