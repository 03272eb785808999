"""Agreement over the API."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from config.api import read_query
from curation import agreement, raters
from curation.api.shapes import EstimateShape


class PartsQuery(serializers.Serializer[Any]):
    group = serializers.CharField(default="", max_length=200, help_text="An attribute of raters: figures for each group too.")
    by = serializers.CharField(default="", max_length=200, help_text="A metadata key of items: figures for each of its values too.")


class DifferencesQuery(serializers.Serializer[Any]):
    between = serializers.ChoiceField(choices=["-".join(pair) for pair in raters.COMPARED], default="policy-dawid_skene")
    page = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)
    contents = serializers.BooleanField(default=False, help_text="With the items' texts.")


class SplitShape(serializers.Serializer[agreement.Split]):
    votes = serializers.ListField(child=serializers.IntegerField(), help_text="In the order of `choices`.")
    tasks = serializers.IntegerField()

    class Meta:
        ref_name = "Split"


class FiguresShape(serializers.Serializer[Any]):
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
        ref_name = "AgreementFigures"


class TagShape(FiguresShape):
    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the label of one
    given = EstimateShape(help_text="Of the votes for choices that take tags, the share with this one.")

    class Meta:
        ref_name = "TagAgreement"


class PartShape(FiguresShape):
    value = serializers.CharField(allow_null=True)
    raters = serializers.IntegerField(allow_null=True, help_text="null for items' metadata.")
    shares = EstimateShape(many=True, help_text="Of the votes, by choice.")

    class Meta:
        ref_name = "AgreementPart"


class PartsShape(serializers.Serializer[Any]):
    key = serializers.CharField()
    parts = PartShape(many=True)
    not_shown = serializers.IntegerField()
    both = serializers.IntegerField(allow_null=True, help_text="Items that two groups voted on; null for items' metadata.")
    differ = serializers.IntegerField(allow_null=True, help_text="Of these, majorities of two groups name different choices.")
    lacking = serializers.IntegerField(allow_null=True, help_text="Of the others, a group has no majority.")

    class Meta:
        ref_name = "AgreementParts"


class LabelsShape(serializers.Serializer[Any]):
    by_choice = serializers.ListField(child=serializers.IntegerField(), help_text="Tasks, in the order of `choices`.")
    unsettled = serializers.IntegerField()

    class Meta:
        ref_name = "MethodLabels"


class DifferenceShape(serializers.Serializer[Any]):
    between = serializers.ListField(child=serializers.CharField())
    other_label = serializers.IntegerField(help_text="Tasks to which both give a label, and not the same.")
    settled_by_one_only = serializers.IntegerField()

    class Meta:
        ref_name = "MethodDifference"


class FitShape(serializers.Serializer[Any]):
    iterations = serializers.IntegerField()
    converged = serializers.BooleanField()
    log_likelihood = serializers.FloatField()
    priors = serializers.ListField(child=serializers.FloatField(), help_text="Shares of the labels, in the order of `choices`.")
    unsure = serializers.IntegerField(help_text="Tasks without a label of probability 0.99 or more.")
    tolerance = serializers.FloatField(help_text="It has converged when the log-likelihood changes by less than this share of itself.")
    smoothing = serializers.FloatField(help_text="Added to every count of a confusion matrix.")
    most_iterations = serializers.IntegerField()

    class Meta:
        ref_name = "DawidSkeneFit"


class MethodsShape(serializers.Serializer[Any]):
    tasks = serializers.IntegerField()
    labels = serializers.DictField(child=LabelsShape(), help_text="By method: policy (the ground truth), majority, dawid_skene.")
    differences = DifferenceShape(many=True)
    dawid_skene = FitShape()

    class Meta:
        ref_name = "Methods"


class AgreementShape(FiguresShape):
    question = serializers.SlugField()
    policy = serializers.CharField()
    tasks = serializers.DictField(child=serializers.IntegerField(), help_text="By state.")
    choices = serializers.ListField(child=serializers.CharField())
    splits = SplitShape(many=True)
    tags = TagShape(many=True, help_text="Each tag as a yes or no, among those who cast a choice that takes tags.")
    methods = MethodsShape(allow_null=True, help_text="The same votes, settled in three ways; null while no task has all its votes.")
    groups = PartsShape(required=False)
    slices = PartsShape(required=False)

    class Meta:
        ref_name = "QuestionAgreement"


class ListedShape(serializers.Serializer[raters.Listed]):
    task_id = serializers.IntegerField()
    item_id = serializers.IntegerField()
    external_id = serializers.CharField()
    kind = serializers.CharField()
    quarantined = serializers.BooleanField()
    votes = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField(allow_null=True), help_text="By method; null where it settles nothing.")
    probability = serializers.FloatField(help_text="Of the Dawid-Skene label.")
    text = serializers.CharField(allow_null=True, help_text="null unless contents were asked for.")

    class Meta:
        ref_name = "DifferentlyLabelled"


class ListedPage(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    listed = serializers.IntegerField(help_text="At most 10,000, where Dawid-Skene is surest.")
    page = serializers.IntegerField()
    tasks = ListedShape(many=True)

    class Meta:
        ref_name = "DifferentlyLabelledPage"


class OfQuestion(APIView):
    @extend_schema(tags=["agreement"], operation_id="agreement", parameters=[PartsQuery], responses=AgreementShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """How far people agree on a question, over the tasks that have all their votes; and the labels of other ways to settle them."""
        asked = access.question(access.researcher(request.user, project), question)
        return Response(raters.agreement_as_json(asked, **read_query(PartsQuery, request)))


class Differences(APIView):
    @extend_schema(tags=["agreement"], operation_id="agreement_differences", parameters=[DifferencesQuery], responses=ListedPage)
    def get(self, request: Request, project: str, question: str) -> Response:
        """A hundred of the tasks that two ways of settling label differently, where Dawid-Skene is surest first."""
        asked = access.question(access.researcher(request.user, project), question)
        query = read_query(DifferencesQuery, request)
        standing = raters.of_question(asked)
        found = raters.difference(standing, query["between"])
        rows = raters.differing(standing, found, page=query["page"], contents=query["contents"])
        return Response(ListedPage({"count": found.tasks, "listed": found.task_ids.size, "page": query["page"], "tasks": rows}).data)
