"""A question's tasks as researchers see them: state, votes by pseudonym, ground truth."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access
from annotation.models import GroundTruth, Task, TaskState, Vote
from annotation.tasks import create_tasks
from config.api import LARGEST_ID, Pages, read, read_query


class TaskVoteShape(serializers.ModelSerializer[Vote]):
    annotator = serializers.IntegerField(source="member.number", help_text="The pseudonym.")
    choice = serializers.CharField(source="choice.value")
    guideline_version = serializers.IntegerField(source="guideline.version", allow_null=True, default=None)

    class Meta:
        ref_name = "TaskVote"
        model = Vote
        fields = ["annotator", "round", "choice", "tags", "comment", "guideline_version", "created_at", "revised_at"]


class TruthShape(serializers.ModelSerializer[GroundTruth]):
    choice = serializers.CharField(source="choice.value")
    guideline_version = serializers.IntegerField(source="guideline.version", allow_null=True, default=None)

    class Meta:
        ref_name = "GroundTruth"
        model = GroundTruth
        fields = ["choice", "tags", "tags_unsettled", "source", "round", "guideline_version", "created_at"]


class TaskShape(serializers.ModelSerializer[Task]):
    item_id = serializers.IntegerField()
    external_id = serializers.CharField(source="item.external_id")
    votes = TaskVoteShape(many=True)
    ground_truth = serializers.SerializerMethodField(help_text="null while the task is not settled.")

    class Meta:
        ref_name = "Task"
        model = Task
        fields = [
            "id", "item_id", "external_id", "state", "round", "votes_required", "abstention_count", "settled_at", "votes", "ground_truth",
        ]  # fmt: skip

    @extend_schema_field(TruthShape(allow_null=True))
    def get_ground_truth(self, task: Task) -> dict[str, Any] | None:
        current = list(task.truths.all())  # the view fetches only the one in force
        return dict(TruthShape(current[0]).data) if current else None


class TasksQuery(serializers.Serializer[object]):
    state = serializers.ChoiceField(TaskState.choices, required=False)


class NewTasksShape(serializers.Serializer[object]):
    item_ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        min_length=1, max_length=100_000, help_text="For all items, an import or a sample there is tasks/ of the project.",
    )  # fmt: skip

    class Meta:
        ref_name = "NewTasks"


class CreatedShape(serializers.Serializer[object]):
    created = serializers.IntegerField(help_text="How many are new; items that had a task keep it.")

    class Meta:
        ref_name = "CreatedTasks"


class ByItem(Pages):
    """In the order of an index: by ids, a question would be looked for among the tasks of all others."""

    ordering = "item_id"


class Tasks(ListAPIView[Task]):
    serializer_class = TaskShape
    pagination_class = ByItem

    def get_queryset(self) -> QuerySet[Task]:
        if getattr(self, "swagger_fake_view", False):  # the schema asks without a project
            return Task.objects.none()
        member = access.researcher(self.request.user, self.kwargs["project"])
        tasks = Task.objects.filter(question=access.question(member, self.kwargs["question"]))
        asked = read_query(TasksQuery, self.request)
        if "state" in asked:
            tasks = tasks.filter(state=asked["state"])
        votes = Vote.objects.select_related("member", "choice", "guideline").order_by("round", "member__number")
        truths = GroundTruth.objects.filter(superseded_at=None).select_related("choice", "guideline")
        return tasks.select_related("item").prefetch_related(Prefetch("votes", votes), Prefetch("truths", truths))

    @extend_schema(operation_id="tasks", tags=["tasks"], parameters=[TasksQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The tasks of a question, with votes by pseudonym and ground truth."""
        return super().get(request, *args, **kwargs)

    @extend_schema(operation_id="tasks_add", tags=["tasks"], request=NewTasksShape, responses={201: CreatedShape})
    def post(self, request: Request, project: str, question: str) -> Response:
        """Open tasks for items."""
        member = access.researcher(request.user, project)
        created = create_tasks(access.question(member, question), read(NewTasksShape, request)["item_ids"])
        return Response({"created": created}, status=status.HTTP_201_CREATED)
