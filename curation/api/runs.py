"""Runs over what curation knows: a sample, an import, a question's items. Runs by item ids are scoring's."""

from dataclasses import asdict
from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from config.api import LARGEST_ID, read
from curation import choosing
from scoring.api import RunShape
from scoring.runs import QUEUES
from workers import tasks


class ChosenShape(serializers.Serializer[Any]):
    items = serializers.CharField(help_text="What a run over it names: all, import:<id>, sample:<id> or question:<slug>.")
    words = serializers.CharField()

    class Meta:
        ref_name = "ItemsToScore"


class RunOverShape(serializers.Serializer[Any]):
    scorer = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="The id of a scorer version.")
    items = serializers.CharField(help_text="all, import:<id>, sample:<id> or question:<slug>.")
    queue = serializers.ChoiceField(QUEUES, default="cpu")

    class Meta:
        ref_name = "RunOver"


class CoveredShape(serializers.Serializer[choosing.Covered]):
    items = serializers.IntegerField()
    scored = serializers.IntegerField(help_text="With this version's scores already.")
    left = serializers.IntegerField()

    class Meta:
        ref_name = "Covered"


class RunsOver(APIView):
    @extend_schema(operation_id="run_choices", tags=["runs"], responses=ChosenShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """What a run can cover in this project."""
        member = access.researcher(request.user, project)
        choices = [choice for group in choosing.groups(member.project) for choice in group.choices]
        return Response([{"items": items, "words": words} for items, words in choices])

    @extend_schema(operation_id="run_over", tags=["runs"], request=RunOverShape, responses={201: RunShape})
    def post(self, request: Request, project: str) -> Response:
        """Start a run over a sample, an import, a question's items, or all. Items that have these scores are left out."""
        member = access.researcher(request.user, project)
        given = read(RunOverShape, request)
        with transaction.atomic():
            scorer = choosing.scorer_of(member.project, str(given["scorer"]))
            run = choosing.start(scorer, given["items"], member.user, queue=given["queue"])
            transaction.on_commit(lambda: tasks.wake(run))
        return Response(RunShape(run).data, status=status.HTTP_201_CREATED)


class Coverage(APIView):
    @extend_schema(operation_id="run_coverage", tags=["runs"], request=RunOverShape, responses=CoveredShape)
    def post(self, request: Request, project: str) -> Response:
        """How many items such a run would cover. Nothing is started."""
        member = access.researcher(request.user, project)
        given = read(RunOverShape, request)
        covered = choosing.covered(choosing.scorer_of(member.project, str(given["scorer"])), given["items"])
        return Response(asdict(covered) | {"left": covered.left})
