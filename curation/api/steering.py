"""Progress of a question over the API: what is left and when it will be done; what comes first, and who works on it."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access, steering
from annotation.models import Question
from config.api import read
from curation import choosing, forecast, tasking
from curation.forecast import Standing
from curation.models import TaskBatch, TaskVerb
from workers.tasks import do_or_send


class PointShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField(help_text="The span's beginning.")
    left = serializers.IntegerField(help_text="Votes left at its end.")
    votes = serializers.IntegerField(help_text="Votes cast in it.")

    class Meta:
        ref_name = "ProgressPoint"


class ForecastShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField(allow_null=True, help_text="When the last vote will be in: the median. null: see `reason`.")
    low = serializers.DateTimeField(allow_null=True)
    high = serializers.DateTimeField(allow_null=True, help_text="The ends of a 95% interval; null: more than a year.")
    reason = serializers.CharField()
    votes = serializers.IntegerField(help_text="It rests on so many votes,")
    hours = serializers.IntegerField(help_text="in so many hours,")
    by = serializers.CharField(help_text="of which hours or days were drawn.")

    class Meta:
        ref_name = "Forecast"


class AtWorkShape(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    votes = serializers.IntegerField(help_text="In the last hour.")
    last = serializers.DateTimeField()

    class Meta:
        ref_name = "AtWork"


class StrandedShape(serializers.Serializer[Any]):
    votes = serializers.IntegerField(help_text="Votes left that nobody who may work on the question can cast.")
    tasks = serializers.IntegerField(help_text="On so many tasks.")
    able = serializers.IntegerField(help_text="How many people may work on the question.")

    class Meta:
        ref_name = "StrandedVotes"


class TaskBatchShape(serializers.ModelSerializer[TaskBatch]):
    class Meta:
        model = TaskBatch
        fields = ["id", "verb", "items", "metadata", "state", "total", "handled", "changed", "error", "created_at", "finished_at"]
        read_only_fields = fields
        ref_name = "TaskBatch"


class StandingShape(serializers.Serializer[Any]):
    question = serializers.SlugField()
    active = serializers.BooleanField()
    at = serializers.DateTimeField()
    tasks = serializers.DictField(child=serializers.IntegerField(), help_text="By state.")
    votes_left = serializers.IntegerField()
    votes_held = serializers.IntegerField(help_text="Of them, in someone's hands.")
    rulings_left = serializers.IntegerField()
    stranded = StrandedShape()
    put_first = serializers.IntegerField(help_text="Tasks at the front that nobody has begun.")
    span_minutes = serializers.IntegerField(help_text="Of each point: 1, 15, 60 or 1440.")
    points = PointShape(many=True)
    forecast = ForecastShape()
    at_work = AtWorkShape(many=True)
    held_up = serializers.DictField(child=serializers.IntegerField(), help_text="How many people each reason keeps from working now.")
    free = serializers.IntegerField(help_text="How many none keeps.")
    assigned = serializers.ListField(child=serializers.IntegerField(), help_text="Numbers of members; empty: everyone works on it.")
    batches = TaskBatchShape(many=True)

    class Meta:
        ref_name = "QuestionProgress"


class MoveShape(serializers.Serializer[Any]):
    verb = serializers.ChoiceField([TaskVerb.PUT_FIRST, TaskVerb.PUT_BACK])
    items = serializers.CharField(
        default=choosing.ALL, max_length=200, help_text="all, import:<id>, sample:<id>, question:<slug>, or prompts:<one of these>."
    )
    metadata = serializers.DictField(default=dict, help_text="Only tasks of items that have all of this.")
    tasks = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), default=list, max_length=tasking.MOST_LISTED,
        help_text="Single tasks instead.",
    )  # fmt: skip

    class Meta:
        ref_name = "MoveTasks"


class AssignedShape(serializers.Serializer[Any]):
    people = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**31 - 1), help_text="Numbers of members; empty: everyone who labels."
    )

    class Meta:
        ref_name = "Assigned"


def shown(question: Question, found: Standing) -> dict[str, Any]:
    """What StandingShape says, of a question as it stands."""
    needed = found.needed
    return {
        "question": question.slug, "active": question.active, "at": found.at, "tasks": needed.tasks, "votes_left": needed.open_votes,
        "votes_held": needed.held, "rulings_left": needed.rulings, "put_first": needed.first, "stranded": asdict(found.stranded),
        "span_minutes": int(found.span.total_seconds() // 60), "points": [asdict(point) for point in found.points],
        "forecast": asdict(found.forecast), "at_work": [asdict(person) for person in found.at_work], "held_up": found.held_up,
        "free": found.free, "assigned": sorted(steering.assigned(question)), "batches": tasking.latest(question),
    }  # fmt: skip


class Progress(APIView):
    @extend_schema(operation_id="steering", tags=["questions"], responses=StandingShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """What is left of a question, how that went down, when it will be done, and who is at work."""
        asked = access.question(access.researcher(request.user, project), question)
        return Response(StandingShape(shown(asked, forecast.standing(asked))).data)

    @extend_schema(operation_id="tasks_move", tags=["questions"], request=MoveShape, responses={200: TaskBatchShape, 202: TaskBatchShape})
    def post(self, request: Request, project: str, question: str) -> Response:
        """Put tasks first, or back in line. More than 20,000 are a worker's: 202."""
        member = access.researcher(request.user, project)
        asked = access.question(member, question)
        given = read(MoveShape, request)
        if given["tasks"]:
            return Response(TaskBatchShape(tasking.move_listed(asked, given["verb"], given["tasks"], member.user)).data)
        batch = tasking.start(asked, given["verb"], given["items"], metadata=given["metadata"], by=member.user)
        done = do_or_send(batch)
        return Response(TaskBatchShape(done or batch).data, status=status.HTTP_202_ACCEPTED if done is None else status.HTTP_200_OK)


class Assigned(APIView):
    @extend_schema(operation_id="assigned", tags=["questions"], responses=AssignedShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """Who works on a question. Empty: everyone who labels."""
        asked = access.question(access.researcher(request.user, project), question)
        return Response({"people": sorted(steering.assigned(asked))})

    @extend_schema(operation_id="assign", tags=["questions"], request=AssignedShape, responses=AssignedShape)
    def put(self, request: Request, project: str, question: str) -> Response:
        """Only these members are given work on the question from now on; with none, everyone who labels is."""
        asked = access.question(access.researcher(request.user, project), question)
        chosen = steering.assign(asked, set(read(AssignedShape, request)["people"]))
        return Response({"people": [member.number for member in chosen]})
