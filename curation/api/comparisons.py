"""Comparisons over the API: make, list, read at any threshold, and the items behind each number."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from annotation.errors import Invalid, Missing
from annotation.models import Choice, Project
from config.api import LARGEST_ID, read, read_query
from curation import comparing
from curation.api.shapes import EstimateShape, FigureShape
from curation.figures import detection as figures
from curation.models import Comparison, Sample
from scoring.models import Scorer


class ComparisonShape(serializers.ModelSerializer[Comparison]):
    question: Any = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    positive: Any = serializers.SlugRelatedField(slug_field="value", read_only=True)

    class Meta:
        model = Comparison
        fields = ["id", "name", "question", "positive", "scorer", "score_name", "threshold", "sample", "created_at"]
        ref_name = "Comparison"


class NewComparison(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    question = serializers.SlugField(help_text="The question's short name.")
    positive = serializers.SlugField(help_text="The choice, by its value, that the score speaks for.")
    scorer = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="The id of a scorer version.")
    score_name = serializers.CharField(max_length=60)
    threshold = serializers.FloatField(default=0.5)
    sample = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, allow_null=True, default=None)


class NewThreshold(serializers.Serializer[Any]):
    threshold = serializers.FloatField()


class ResultQuery(serializers.Serializer[Any]):
    threshold = serializers.FloatField(default=None, help_text="The comparison's own when left out.")
    by = serializers.CharField(default="", help_text="A metadata key: figures for each of its values too.")


class CellQuery(serializers.Serializer[Any]):
    cell = serializers.ChoiceField(choices=list(comparing.CELLS))
    threshold = serializers.FloatField(default=None)
    page = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)
    contents = serializers.BooleanField(default=False, help_text="With the items' texts.")


class DecisionsShape(serializers.Serializer[Any]):
    threshold = serializers.FloatField()
    tp = serializers.IntegerField()
    fp = serializers.IntegerField()
    fn = serializers.IntegerField()
    tn = serializers.IntegerField()
    precision = EstimateShape()
    recall = EstimateShape()
    f1 = EstimateShape()


class SliceShape(DecisionsShape):
    value = serializers.CharField(allow_null=True)
    items = serializers.IntegerField()

    class Meta:
        ref_name = "Slice"


class UnsureShape(serializers.Serializer[Any]):
    positive = serializers.IntegerField()
    negative = serializers.IntegerField()

    class Meta:
        ref_name = "Unsure"


class LeftOutShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    reason = serializers.CharField()
    items = serializers.IntegerField()

    class Meta:
        ref_name = "LeftOut"


class ResultShape(DecisionsShape):
    question = serializers.SlugField()
    positive = serializers.SlugField()
    scorer = serializers.CharField()
    score_name = serializers.CharField()
    sample = serializers.CharField(allow_null=True)
    total = serializers.IntegerField()
    compared = serializers.IntegerField()
    groups = serializers.IntegerField(help_text="Seeds with what was derived from them: what the bootstrap resamples.")
    weighted = serializers.BooleanField()
    average_precision = EstimateShape()
    unsure = UnsureShape()
    left_out = LeftOutShape(many=True)
    sources = serializers.DictField(child=serializers.IntegerField())
    read_at = serializers.DateTimeField()
    slices = SliceShape(many=True, required=False)
    slices_not_shown = serializers.IntegerField(required=False)

    class Meta:
        ref_name = "ComparisonResult"


class ListedShape(serializers.Serializer[comparing.Listed]):
    item_id = serializers.IntegerField()
    external_id = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # a field of ours, not the label of one
    source = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # the same
    task_id = serializers.IntegerField(allow_null=True)
    state = serializers.CharField(allow_null=True)
    text = serializers.CharField(allow_null=True, help_text="null unless contents were asked for.")

    class Meta:
        ref_name = "ComparedItem"


class CellShape(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    page = serializers.IntegerField()
    items = ListedShape(many=True)

    class Meta:
        ref_name = "ComparisonCell"


class Listing(generics.ListAPIView[Comparison]):
    serializer_class = ComparisonShape
    queryset = Comparison.objects.none()

    def get_queryset(self) -> Any:
        member = access.researcher(self.request.user, self.kwargs["project"])
        return Comparison.objects.filter(project=member.project).select_related("question", "positive")

    @extend_schema(tags=["comparisons"], operation_id="comparisons_list", responses=ComparisonShape(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """All comparisons of the project."""
        return super().get(request, *args, **kwargs)

    @extend_schema(tags=["comparisons"], operation_id="comparisons_create", request=NewComparison, responses={201: ComparisonShape})
    def post(self, request: Request, project: str) -> Response:
        """Make a comparison."""
        member = access.researcher(request.user, project)
        made = comparing.create(member, **_named(member.project, read(NewComparison, request)))
        return Response(ComparisonShape(made).data, status=status.HTTP_201_CREATED)


def _named(project: Project, given: dict[str, Any]) -> dict[str, Any]:
    """Names and ids made into what they stand for. Raises Invalid."""
    positive = Choice.objects.filter(question__project=project, question__slug=given.pop("question"), value=given["positive"]).first()
    scorer = Scorer.objects.filter(project=project, pk=given["scorer"]).first()
    sample = Sample.objects.filter(project=project, pk=given["sample"]).first() if given["sample"] else None
    wrong: dict[str, str] = {}
    if positive is None:
        wrong["positive"] = "The project has no such question, or the question no such choice."
    if scorer is None:
        wrong["scorer"] = "The project has no such scorer."
    if given["sample"] and sample is None:
        wrong["sample"] = "The project has no such sample."
    if wrong:
        raise Invalid("Some fields are wrong.", fields=wrong)
    return given | {"positive": positive, "scorer": scorer, "sample": sample}


class Single(APIView):
    @extend_schema(tags=["comparisons"], operation_id="comparison", responses=ComparisonShape)
    def get(self, request: Request, project: str, comparison: int) -> Response:
        """What a comparison holds against what."""
        return Response(ComparisonShape(comparing.find(access.researcher(request.user, project).project, comparison)).data)

    @extend_schema(tags=["comparisons"], operation_id="comparison_threshold", request=NewThreshold, responses=ComparisonShape)
    def patch(self, request: Request, project: str, comparison: int) -> Response:
        """Keep another threshold."""
        found = comparing.find(access.researcher(request.user, project).project, comparison)
        comparing.set_threshold(found, comparing.read_threshold(str(read(NewThreshold, request)["threshold"])))
        return Response(ComparisonShape(found).data)


class Outcome(APIView):
    @extend_schema(tags=["comparisons"], operation_id="comparison_result", parameters=[ResultQuery], responses=ResultShape)
    def get(self, request: Request, project: str, comparison: int) -> Response:
        """Confusion counts, precision, recall, F1 and average precision, each with its interval."""
        found = comparing.find(access.researcher(request.user, project).project, comparison)
        asked = read_query(ResultQuery, request)
        threshold = _finite(asked["threshold"])
        answer = comparing.as_json(found, comparing.result(found, threshold))
        if asked["by"]:
            slices, more = comparing.by_metadata(found, asked["by"], threshold)
            answer |= {"slices": comparing.slices_as_json(slices), "slices_not_shown": more}
        return Response(answer)


class Items(APIView):
    @extend_schema(tags=["comparisons"], operation_id="comparison_items", parameters=[CellQuery], responses=CellShape)
    def get(self, request: Request, project: str, comparison: int) -> Response:
        """A hundred of the items behind a cell, the furthest from the threshold first."""
        found = comparing.find(access.researcher(request.user, project).project, comparison)
        asked = read_query(CellQuery, request)
        rows, count = comparing.cell_items(
            found, asked["cell"], _finite(asked["threshold"]), page=asked["page"], contents=asked["contents"]
        )  # fmt: skip
        return Response(CellShape({"count": count, "page": asked["page"], "items": rows}).data)


class FigureView(APIView):
    @extend_schema(tags=["comparisons"], operation_id="comparison_figure", parameters=[ResultQuery], responses=FigureShape)
    def get(self, request: Request, project: str, comparison: int, name: str) -> Response:
        """One figure of the comparison: what it shows, its definition and its data."""
        found = comparing.find(access.researcher(request.user, project).project, comparison)
        result = comparing.result(found, _finite(read_query(ResultQuery, request)["threshold"]))
        for figure in figures.of_result(result, found.positive.label):
            if figure.name == name:
                return Response(FigureShape(figure).data)
        raise Missing("There is no such figure, or nothing to draw in it yet.")


def _finite(threshold: float | None) -> float | None:
    return None if threshold is None else comparing.read_threshold(str(threshold))
