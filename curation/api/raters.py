"""Raters of a question over the API."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from annotation.errors import Missing
from config.api import read_query
from curation import raters
from curation.api.shapes import EstimateShape, FigureShape
from curation.figures import raters as figures


class RatersQuery(serializers.Serializer[Any]):
    sort = serializers.ChoiceField(
        choices=[sign + name for name in raters.SORTS for sign in ("", "-")], default="-votes", help_text="Downwards with a minus."
    )


class PairsQuery(serializers.Serializer[Any]):
    number = serializers.IntegerField(default=None, min_value=1, max_value=2_147_483_647, help_text="Only the pairs of this rater.")
    page = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)


class RaterShape(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    pseudonym = serializers.CharField()
    votes = serializers.IntegerField()
    median_s = serializers.FloatField(allow_null=True, help_text="Seconds; null when none of their votes was timed.")
    agreement = EstimateShape(help_text="With what the other votes settle, or a ruling says.")
    checks = EstimateShape(help_text="On known answers, practice not counted.")
    reliability = EstimateShape(help_text="Mean probability of their answers by Dawid and Skene's model.")
    unsure = EstimateShape()
    abstentions = serializers.IntegerField()
    paused = serializers.BooleanField()
    confusion = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()), allow_null=True,
        help_text="Row: the true label by Dawid and Skene's model; column: the answer. null without a vote on a complete task.",
    )  # fmt: skip

    class Meta:
        ref_name = "Rater"


class RatersShape(serializers.Serializer[Any]):
    question = serializers.SlugField()
    choices = serializers.ListField(child=serializers.CharField())
    at = serializers.DateTimeField(help_text="When the votes were counted.")
    votes_without_names = serializers.IntegerField(help_text="Came as counts or without names. Nothing is known of who cast them.")
    raters = RaterShape(many=True)
    abstentions_by_reason = serializers.DictField(
        child=serializers.IntegerField(), allow_null=True, help_text="Of all together; null while fewer than three people have abstained."
    )

    class Meta:
        ref_name = "Raters"


class PairShape(serializers.Serializer[raters.Pair]):
    first = serializers.IntegerField(help_text="A rater's number.")
    second = serializers.IntegerField()
    observed = EstimateShape()
    kappa = EstimateShape(help_text="Cohen's.")

    class Meta:
        ref_name = "RaterPair"


class PairsShape(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    page = serializers.IntegerField()
    pairs = PairShape(many=True)

    class Meta:
        ref_name = "RaterPairs"


class OfQuestion(APIView):
    @extend_schema(tags=["agreement"], operation_id="raters", parameters=[RatersQuery], responses=RatersShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """Everyone who answered a question: volume, time, agreement with the others, known answers, confusion matrix."""
        asked = access.question(access.researcher(request.user, project), question)
        return Response(raters.as_json(asked, read_query(RatersQuery, request)["sort"]))


class PairsView(APIView):
    @extend_schema(tags=["agreement"], operation_id="rater_pairs", parameters=[PairsQuery], responses=PairsShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """A thousand pairs of raters at a time, those who share most items first."""
        asked = access.question(access.researcher(request.user, project), question)
        query = read_query(PairsQuery, request)
        count, pairs = raters.pair_page(raters.of_question(asked), query["page"], of=query["number"])
        return Response(PairsShape({"count": count, "page": query["page"], "pairs": pairs}).data)


class FigureView(APIView):
    @extend_schema(tags=["agreement"], operation_id="raters_figure", responses=FigureShape)
    def get(self, request: Request, project: str, question: str, name: str) -> Response:
        """One figure of the raters: what it shows, its definition and its data. Names: pairs, raters."""
        asked = access.question(access.researcher(request.user, project), question)
        standing = raters.of_question(asked)
        for figure in figures.of_standing(standing, raters.people(asked, standing)):
            if figure.name == name:
                return Response(FigureShape(figure).data)
        raise Missing("There is no such figure, or nothing to draw in it yet.")
