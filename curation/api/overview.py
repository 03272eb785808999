"""The overview's figures over the API."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from curation.overview import Overview, overview
from workers import health


class ItemsShape(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    kinds = serializers.DictField(child=serializers.IntegerField())
    imports = serializers.IntegerField()
    importing = serializers.IntegerField()
    last_import = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "OverviewItems"


class LabelShape(serializers.Serializer[Any]):
    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the field's label
    is_unsure = serializers.BooleanField()
    count = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True, help_text="Among labels that are not unsure; null for unsure itself.")
    low = serializers.FloatField(allow_null=True, help_text="Wilson's 95% interval.")
    high = serializers.FloatField(allow_null=True)

    class Meta:
        ref_name = "LabelCount"


class PositivesShape(serializers.Serializer[Any]):
    choice = serializers.CharField(help_text="The one that says harm: it takes tags, or is called unsafe, harmful or yes; else the first.")
    k = serializers.IntegerField()
    n = serializers.IntegerField(help_text="Labels that are not unsure.")
    unsure = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True, help_text="null while n is 0.")
    low = serializers.FloatField(allow_null=True, help_text="Wilson's 95% interval.")
    high = serializers.FloatField(allow_null=True)

    class Meta:
        ref_name = "Positives"


class AskedShape(serializers.Serializer[Any]):
    slug = serializers.CharField()
    title = serializers.CharField()
    active = serializers.BooleanField()
    votes_required = serializers.IntegerField(help_text="Of tasks that are made now.")
    least_votes = serializers.IntegerField(help_text="Of what its tasks require.")
    most_votes = serializers.IntegerField()
    policy = serializers.CharField()
    guideline_version = serializers.IntegerField()
    tasks = serializers.IntegerField(help_text="Without retired ones.")
    states = serializers.DictField(child=serializers.IntegerField())
    votes = serializers.IntegerField()
    votes_wanted = serializers.IntegerField()
    votes_retired = serializers.IntegerField(help_text="On retired tasks, quarantined ones among them; not in votes.")
    votes_earlier = serializers.IntegerField(help_text="Of earlier rounds; not in votes.")
    abstentions = serializers.IntegerField()
    labels = LabelShape(many=True)
    sources = serializers.DictField(child=serializers.IntegerField())
    unsettled = serializers.IntegerField(help_text="Labels without a tag: one was required, and none had a majority.")
    positives = PositivesShape()
    provisional = serializers.BooleanField(help_text="Some tasks are still to be settled.")
    oldest_dispute = serializers.DateTimeField(allow_null=True)
    guideline_gaps = serializers.IntegerField()
    flags = serializers.IntegerField()

    class Meta:
        ref_name = "QuestionStanding"


class HourShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    votes = serializers.IntegerField()

    class Meta:
        ref_name = "Hour"


class AnnotatorShape(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    pseudonym = serializers.CharField()
    active = serializers.BooleanField()
    votes = serializers.IntegerField(help_text="That stand.")
    voided = serializers.IntegerField(help_text="Struck out, beside them.")
    votes_today = serializers.IntegerField()
    median_s = serializers.FloatField(allow_null=True)

    class Meta:
        ref_name = "AnnotatorStanding"


class PeopleShape(serializers.Serializer[Any]):
    roles = serializers.DictField(child=serializers.IntegerField())
    annotators = AnnotatorShape(many=True)
    voters = serializers.IntegerField()
    raters = serializers.IntegerField(help_text="Named in imported files.")
    nameless = serializers.BooleanField(help_text="Votes came as counts or without names too.")

    class Meta:
        ref_name = "PeopleStanding"


class NeedShape(serializers.Serializer[Any]):
    kind = serializers.CharField()
    what = serializers.CharField()
    why = serializers.CharField()
    question = serializers.CharField()
    count = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Need"


class OverviewShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    items = ItemsShape()
    questions = AskedShape(many=True)
    hours = HourShape(many=True)
    people = PeopleShape()
    runs = serializers.DictField(child=serializers.IntegerField(), help_text="Runs by state.")
    needs = NeedShape(many=True)
    unheard_queues = serializers.ListField(child=serializers.CharField(), help_text="Queues with work and nobody to do it, in words.")

    class Meta:
        ref_name = "Overview"


def shown(found: Overview, unheard: list[str]) -> dict[str, Any]:
    """The overview as the API and the command print it."""
    return dict(OverviewShape(asdict(found) | {"unheard_queues": unheard}).data)


class OverviewView(APIView):
    @extend_schema(operation_id="overview", tags=["projects"], responses=OverviewShape)
    def get(self, request: Request, project: str) -> Response:
        """How the project stands. Figures that are slow to count may be a minute old."""
        member = access.researcher(request.user, project)
        return Response(shown(overview(member.project), health.queue_health(member.project)))
