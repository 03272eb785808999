"""What annotators disagree on, by API."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from config.api import LARGEST_ID, read_query
from curation import disagreement
from curation.api.shapes import EstimateShape


class GroupShape(serializers.Serializer[disagreement.Group]):
    value = serializers.CharField(allow_null=True, help_text="null for tasks whose item has no such field.")
    tasks = serializers.IntegerField()
    differing = serializers.IntegerField(help_text="Tasks on which not all votes name the same choice.")
    disputed = EstimateShape()
    pairwise = EstimateShape(help_text="The mean share of a task's pairs of votes that differ.")

    class Meta:
        ref_name = "DisagreementGroup"


class ConfusedShape(serializers.Serializer[disagreement.Confused]):
    first = serializers.CharField()
    second = serializers.CharField()
    tasks = serializers.IntegerField(help_text="On which both got votes.")
    share = EstimateShape()

    class Meta:
        ref_name = "ConfusedChoices"


class DisagreementShape(serializers.Serializer[disagreement.Disagreement]):
    by = serializers.CharField(allow_blank=True)
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]  # a field of ours, not the serializer's
    all = GroupShape()
    groups = GroupShape(many=True)
    left_out = serializers.IntegerField(help_text="Values of the field that are not listed.")
    tags = GroupShape(many=True)
    confused = ConfusedShape(many=True)

    class Meta:
        ref_name = "Disagreement"


class ByQuery(serializers.Serializer[object]):
    by = serializers.CharField(default="", allow_blank=True, max_length=disagreement.LONGEST_FIELD, help_text="A field of the metadata.")


class TasksQuery(ByQuery):
    value = serializers.CharField(default="", allow_blank=True, max_length=1000, help_text="Of the field.")
    none = serializers.BooleanField(default=False, help_text="Instead of a value: without the field.")
    tag = serializers.CharField(default="", allow_blank=True, max_length=40, help_text="That at least one vote gave.")
    choice = serializers.ListField(child=serializers.CharField(max_length=40), default=list, max_length=2, help_text="That got votes.")
    after = serializers.IntegerField(default=0, min_value=0, max_value=LARGEST_ID, help_text="The last task of the page before.")


class SplitTaskShape(serializers.Serializer[Any]):
    task_id = serializers.IntegerField()
    item_id = serializers.IntegerField()
    external_id = serializers.CharField()
    state = serializers.CharField()
    votes = serializers.ListField(help_text="Pairs of a choice's label and how many named it.")

    class Meta:
        ref_name = "SplitTask"


class OfQuestion(APIView):
    @extend_schema(tags=["agreement"], operation_id="disagreements", parameters=[ByQuery], responses=DisagreementShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """Shares disputed and how far votes differ, by a field of metadata, by tag and by pair of choices."""
        asked = access.question(access.researcher(request.user, project), question)
        return Response(DisagreementShape(disagreement.of_question(asked, read_query(ByQuery, request)["by"])).data)


class Tasks(APIView):
    @extend_schema(tags=["agreement"], operation_id="disagreement_tasks", parameters=[TasksQuery], responses=SplitTaskShape(many=True))
    def get(self, request: Request, project: str, question: str) -> Response:
        """The tasks behind a number on which votes differ, by id, 50 at a time."""
        asked = access.question(access.researcher(request.user, project), question)
        given = read_query(TasksQuery, request)
        rows = disagreement.tasks(
            asked, by=given["by"], value=None if given["none"] else given["value"], tag=given["tag"], pair=given["choice"],
            after=given["after"],
        )  # fmt: skip
        return Response([SplitTaskShape(row).data for row in rows[: disagreement.PAGE]])
