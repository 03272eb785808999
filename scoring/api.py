"""Scorers and runs under /api/v1/: the same services as the pages. For researchers."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from annotation.errors import Missing
from annotation.models import Membership
from config.api import LARGEST_ID, read
from scoring import progress, runs
from scoring.models import Failure, Scorer, ScoringRun
from scoring.scorers import kinds
from workers import health, tasks

ALL = "all"


# ---------------------------------------------------------------- shapes
class ScorerShape(serializers.ModelSerializer[Scorer]):
    class Meta:
        ref_name = "Scorer"
        model = Scorer
        fields = ["id", "name", "version", "kind", "item_kind", "config", "fingerprint", "score_names", "created_at"]


class NewScorerShape(serializers.Serializer[object]):
    name = serializers.SlugField(max_length=60)
    kind = serializers.CharField(max_length=60, help_text="See scorer-kinds/.")
    config = serializers.DictField(default=dict, help_text="The kind's settings by name.")

    class Meta:
        ref_name = "NewScorer"


class SettingShape(serializers.Serializer[object]):
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    help = serializers.CharField()
    type = serializers.CharField(help_text="text, number, choice, mapping or folder")
    default = serializers.JSONField()
    choices = serializers.ListField(child=serializers.ListField(child=serializers.CharField()))

    class Meta:
        ref_name = "ScorerSetting"


class KindShape(serializers.Serializer[object]):
    name = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    limits = serializers.CharField(help_text="What its users must know.")
    item_kind = serializers.CharField()
    settings = SettingShape(many=True)

    class Meta:
        ref_name = "ScorerKind"


class RunShape(serializers.ModelSerializer[ScoringRun]):
    scorer = ScorerShape()
    paused_by = serializers.SerializerMethodField(help_text="By name; by pseudonym once they have left.")

    class Meta:
        ref_name = "Run"
        model = ScoringRun
        fields = [
            "id", "scorer", "state", "queue", "total", "done", "failed", "already_scored", "error", "paused_by",
            "created_at", "started_at", "finished_at",
        ]  # fmt: skip

    def get_paused_by(self, run: ScoringRun) -> str | None:
        return run.project.name_of(run.paused_by) if run.paused_by else None


class RunStandingShape(serializers.Serializer[progress.Standing]):
    run = RunShape()
    chunks = serializers.IntegerField()
    chunks_done = serializers.IntegerField()
    items_per_second = serializers.FloatField(
        source="rate", allow_null=True, help_text="Of the last minute; null when nothing can be said."
    )
    seconds_left = serializers.FloatField(source="left.total_seconds", allow_null=True, default=None)

    class Meta:
        ref_name = "RunStanding"


@extend_schema_field({"oneOf": [{"type": "string", "enum": ["all"]}, {"type": "array", "items": {"type": "integer"}}]})
class ItemsField(serializers.Field):  # type: ignore[type-arg]
    """ "all", or a list of item ids."""

    def to_internal_value(self, data: object) -> list[int] | None:
        if data == ALL:
            return None
        if isinstance(data, list) and data and all(type(item) is int and 0 < item <= LARGEST_ID for item in data):
            return data
        raise serializers.ValidationError('Give "all" or a list of item ids.')

    def to_representation(self, value: object) -> object:
        return value


class NewRunShape(serializers.Serializer[object]):
    scorer = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="The id of a scorer version.")
    items = ItemsField(help_text='"all" items of the scorer\'s kind, or a list of item ids.')
    queue = serializers.ChoiceField(runs.QUEUES, default="cpu")

    class Meta:
        ref_name = "NewRun"


class FailureShape(serializers.ModelSerializer[Failure]):
    item = serializers.IntegerField(source="item_id")

    class Meta:
        ref_name = "Failure"
        model = Failure
        fields = ["item", "reason"]


class WorkerShape(serializers.Serializer[health.Health]):
    name = serializers.CharField()
    queues = serializers.ListField(child=serializers.CharField())
    device = serializers.CharField()
    doing = serializers.CharField()
    seen_at = serializers.DateTimeField()
    lost = serializers.BooleanField(help_text="Not heard of for 30 seconds.")

    class Meta:
        ref_name = "Worker"


class WorkersShape(serializers.Serializer[object]):
    workers = WorkerShape(many=True)
    problems = serializers.ListField(child=serializers.CharField(), help_text="Queues with work and nobody to do it, in words.")
    chunks_waiting = serializers.IntegerField()

    class Meta:
        ref_name = "Workers"


# ---------------------------------------------------------------- scorers
class Kinds(APIView):
    @extend_schema(operation_id="scorer_kinds", tags=["scorers"], responses=KindShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The kinds of scorers there are, with their settings and limits."""
        access.researcher(request.user, project)
        return Response(KindShape(list(kinds().values()), many=True).data)


class Scorers(ListAPIView[Scorer]):
    serializer_class = ScorerShape

    def get_queryset(self) -> QuerySet[Scorer]:
        if getattr(self, "swagger_fake_view", False):
            return Scorer.objects.none()
        return Scorer.objects.filter(project=access.researcher(self.request.user, self.kwargs["project"]).project)

    @extend_schema(operation_id="scorers", tags=["scorers"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The project's scorers, each version for itself."""
        return super().get(request, *args, **kwargs)

    @extend_schema(operation_id="scorer_add", tags=["scorers"], request=NewScorerShape, responses={200: ScorerShape, 201: ScorerShape})
    def post(self, request: Request, project: str) -> Response:
        """Add a scorer or its next version; 200 with the version that is there when nothing that changes scores is new."""
        member = access.researcher(request.user, project)
        given = read(NewScorerShape, request)
        scorer, new = runs.create_scorer(member.project, given["name"], given["kind"], given["config"], member.user)
        return Response(ScorerShape(scorer).data, status=status.HTTP_201_CREATED if new else status.HTTP_200_OK)


class ScorerDetail(APIView):
    @extend_schema(operation_id="scorer", tags=["scorers"], responses=ScorerShape)
    def get(self, request: Request, project: str, scorer: int) -> Response:
        """One version of a scorer."""
        return Response(ScorerShape(_scorer(access.researcher(request.user, project), scorer)).data)


# ---------------------------------------------------------------- runs
class Runs(ListAPIView[ScoringRun]):
    serializer_class = RunShape

    def get_queryset(self) -> QuerySet[ScoringRun]:
        if getattr(self, "swagger_fake_view", False):
            return ScoringRun.objects.none()
        return progress.runs_of(access.researcher(self.request.user, self.kwargs["project"]).project)

    @extend_schema(operation_id="runs", tags=["runs"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The project's runs."""
        return super().get(request, *args, **kwargs)

    @extend_schema(operation_id="run_start", tags=["runs"], request=NewRunShape, responses={201: RunShape})
    def post(self, request: Request, project: str) -> Response:
        """Start a run. Items that have this version's scores are left out and counted."""
        member = access.researcher(request.user, project)
        given = read(NewRunShape, request)
        with transaction.atomic():
            run = runs.start_run(_scorer(member, given["scorer"]), given["items"], member.user, queue=given["queue"])
            transaction.on_commit(lambda: tasks.wake(run))
        return Response(RunShape(run).data, status=status.HTTP_201_CREATED)


class RunDetail(APIView):
    @extend_schema(operation_id="run", tags=["runs"], responses=RunStandingShape)
    def get(self, request: Request, project: str, run: int) -> Response:
        """One run as it stands."""
        member = access.researcher(request.user, project)
        return Response(RunStandingShape(progress.standing(_run(member, run))).data)


class Pause(APIView):
    @extend_schema(operation_id="run_pause", tags=["runs"], request=None, responses=RunShape)
    def post(self, request: Request, project: str, run: int) -> Response:
        """No further chunk is begun; those in hand are finished and kept."""
        member = access.researcher(request.user, project)
        return Response(RunShape(runs.pause(_run(member, run), member.user)).data)


class Resume(APIView):
    @extend_schema(operation_id="run_resume", tags=["runs"], request=None, responses=RunShape)
    def post(self, request: Request, project: str, run: int) -> Response:
        """Go on with a paused run, or with a failed one once its cause is mended."""
        member = access.researcher(request.user, project)
        with transaction.atomic():
            resumed = runs.resume(_run(member, run), member.user)
            transaction.on_commit(lambda: tasks.wake(resumed))
        return Response(RunShape(resumed).data)


class Cancel(APIView):
    @extend_schema(operation_id="run_cancel", tags=["runs"], request=None, responses=RunShape)
    def post(self, request: Request, project: str, run: int) -> Response:
        """End a run for good; scores already stored stay."""
        member = access.researcher(request.user, project)
        return Response(RunShape(runs.cancel(_run(member, run), member.user)).data)


class Failures(ListAPIView[Failure]):
    serializer_class = FailureShape

    def get_queryset(self) -> QuerySet[Failure]:
        if getattr(self, "swagger_fake_view", False):
            return Failure.objects.none()
        member = access.researcher(self.request.user, self.kwargs["project"])
        return Failure.objects.filter(run=_run(member, self.kwargs["run"]))

    @extend_schema(operation_id="run_failures", tags=["runs"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The items that a run could not score, and why."""
        return super().get(request, *args, **kwargs)


class Workers(APIView):
    @extend_schema(operation_id="workers", tags=["runs"], responses=WorkersShape)
    def get(self, request: Request, project: str) -> Response:
        """Which workers live, and which of the project's work waits with nobody to do it."""
        member = access.researcher(request.user, project)
        panel = {
            "workers": health.workers(),
            "problems": health.queue_health(member.project),
            "chunks_waiting": health.chunks_waiting(member.project),
        }
        return Response(WorkersShape(panel).data)


def _scorer(member: Membership, pk: int) -> Scorer:
    found = Scorer.objects.filter(project_id=member.project_id, pk=pk).first()
    if found is None:
        raise Missing(f"There is no scorer {pk} in {member.project.name}.")
    return found


def _run(member: Membership, pk: int) -> ScoringRun:
    found = progress.runs_of(member.project).filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no run {pk} in {member.project.name}.")
    return found
