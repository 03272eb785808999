"""Agreement over the API."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from curation import agreement
from curation.api.shapes import EstimateShape


class SplitShape(serializers.Serializer[agreement.Split]):
    votes = serializers.ListField(child=serializers.IntegerField(), help_text="In the order of `choices`.")
    tasks = serializers.IntegerField()

    class Meta:
        ref_name = "Split"


class AgreementShape(serializers.Serializer[Any]):
    question = serializers.SlugField()
    policy = serializers.CharField()
    tasks = serializers.DictField(child=serializers.IntegerField(), help_text="By state.")
    choices = serializers.ListField(child=serializers.CharField())
    splits = SplitShape(many=True)
    items = serializers.IntegerField(help_text="With all their votes.")
    votes = serializers.IntegerField()
    unanimous = EstimateShape()
    disputed = EstimateShape()
    pairwise = EstimateShape()
    fleiss = EstimateShape()
    alpha = EstimateShape()
    alpha_ordinal = EstimateShape(allow_null=True, help_text="null where the choices have no order.")
    ac1 = EstimateShape()
    fleiss_votes = serializers.IntegerField(allow_null=True, help_text="The number of votes that Fleiss' kappa takes items with.")
    fleiss_left_out = serializers.IntegerField()
    ordinal_left_out = serializers.IntegerField()

    class Meta:
        ref_name = "Agreement"


class OfQuestion(APIView):
    @extend_schema(tags=["agreement"], operation_id="agreement", responses=AgreementShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """How far people agree on a question, over the tasks that have all their votes."""
        asked = access.question(access.researcher(request.user, project), question)
        return Response(agreement.as_json(asked, agreement.of_question(asked)))
