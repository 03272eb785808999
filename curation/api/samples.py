"""Samples and tasks over the API."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from annotation.errors import Missing
from annotation.models import Kind
from config.api import read
from curation import choosing, sampling, tasking
from curation.models import Sample, SampleItem, TaskVerb
from workers.tasks import do_or_send

ITEMS = "all, import:<id>, sample:<id>, question:<slug>, or prompts:<one of these>."


class SampleShape(serializers.ModelSerializer[Sample]):
    class Meta:
        model = Sample
        fields = ["id", "name", "seed", "size", "population", "query", "created_at"]
        read_only_fields = fields
        ref_name = "Sample"


class NewSample(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    size = serializers.IntegerField(min_value=1, max_value=10_000_000)
    seed = serializers.IntegerField(
        default=None, allow_null=True, min_value=-(2**63), max_value=2**63 - 1, help_text="The project's own when left out."
    )
    kind = serializers.ChoiceField(Kind.choices, default=Kind.TEXT)
    items = serializers.CharField(default=choosing.ALL, max_length=200, help_text=ITEMS)
    metadata = serializers.DictField(default=dict, help_text="Only items that have all of this.")
    seeds = serializers.BooleanField(default=False, help_text="Also items that others of the same kind were derived from.")
    strata = serializers.CharField(default="", allow_blank=True, max_length=200, help_text="A metadata key.")
    allocation = serializers.ChoiceField(list(sampling.ALLOCATIONS.items()), default="proportional")


class SampleItemShape(serializers.ModelSerializer[SampleItem]):
    external_id = serializers.CharField(source="item.external_id")

    class Meta:
        model = SampleItem
        fields = ["item", "external_id", "stratum", "probability"]
        read_only_fields = fields
        ref_name = "SampleItem"


class TasksOverShape(serializers.Serializer[Any]):
    question = serializers.SlugField()
    items = serializers.CharField(default=choosing.ALL, max_length=200, help_text=ITEMS)
    seeds = serializers.BooleanField(default=False, help_text="Also items that others of the same kind were derived from.")


class MadeTasks(serializers.Serializer[Any]):
    question = serializers.CharField()
    made = serializers.IntegerField(allow_null=True, help_text="How many are new; null while a worker is at it.")
    batch = serializers.IntegerField(help_text="Its id among the question's task batches.")

    class Meta:
        ref_name = "MadeTasks"


class Samples(generics.ListAPIView[Sample]):
    serializer_class = SampleShape

    @extend_schema(operation_id="samples", tags=["samples"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Every sample of the project."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> Any:
        if getattr(self, "swagger_fake_view", False):  # the schema asks without a project
            return self.serializer_class.Meta.model.objects.none()
        member = access.researcher(self.request.user, self.kwargs["project"])
        return Sample.objects.filter(project=member.project)

    @extend_schema(operation_id="sample_draw", tags=["samples"], request=NewSample, responses={201: SampleShape})
    def post(self, request: Request, project: str) -> Response:
        """Draw a sample. The same seed draws the same items from the same population, anywhere."""
        member = access.researcher(request.user, project)
        sample = sampling.draw(member.project, **read(NewSample, request), by=member.user)
        return Response(SampleShape(sample).data, status=status.HTTP_201_CREATED)


class OneSample(generics.ListAPIView[SampleItem]):
    serializer_class = SampleItemShape

    @extend_schema(operation_id="sample_items", tags=["samples"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The items of a sample, each with its stratum and its probability of being in."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> Any:
        if getattr(self, "swagger_fake_view", False):  # the schema asks without a project
            return self.serializer_class.Meta.model.objects.none()
        member = access.researcher(self.request.user, self.kwargs["project"])
        if not Sample.objects.filter(project=member.project, pk=self.kwargs["sample"]).exists():
            raise Missing("There is no such sample in this project.")
        return SampleItem.objects.filter(sample=self.kwargs["sample"]).select_related("item")


class TasksOver(APIView):
    @extend_schema(operation_id="tasks_over", tags=["samples"], request=TasksOverShape, responses={201: MadeTasks, 202: MadeTasks})
    def post(self, request: Request, project: str) -> Response:
        """Make tasks of a question for all items of its kind, an import, a sample, or the prompts of pictures. Items that have one keep it.

        More than 20,000 are made by a worker: 202, and `steering` of the question says how far it is.
        """
        member = access.researcher(request.user, project)
        given = read(TasksOverShape, request)
        question = access.question(member, given["question"])
        batch = tasking.start(question, TaskVerb.MAKE, given["items"], seeds=given["seeds"], by=member.user)
        done = do_or_send(batch)
        body = {"question": question.slug, "made": None if done is None else done.changed, "batch": batch.pk}
        return Response(body, status=status.HTTP_202_ACCEPTED if done is None else status.HTTP_201_CREATED)
