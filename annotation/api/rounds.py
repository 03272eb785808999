"""What researchers do afterwards, by API: histories, new rounds, voided votes, flags and quarantine, guideline gaps."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, consistency, flags, gaps, history, people, questions, rounds
from annotation.api import work
from annotation.api.fields import View, question_or_none
from annotation.errors import Missing
from annotation.models import Adjudication, Flag, Item, Membership, Role, Task
from config.api import LARGEST_ID, Pages, read, read_query


# ---------------------------------------------------------------- tasks
class StepShape(serializers.Serializer[history.Step]):
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="made, known, vote, changed, voided, abstained, blind, ruling, truth, superseded, retired ...")
    round = serializers.IntegerField()
    what = serializers.CharField()
    who = serializers.CharField(allow_blank=True, help_text="A pseudonym; empty where nobody in particular did it.")
    choice = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField())
    words = serializers.CharField(allow_blank=True, help_text="A comment, note or reason that somebody typed.")
    version = serializers.IntegerField(allow_null=True, help_text="Of the guideline.")
    vote_id = serializers.IntegerField(allow_null=True, help_text="Of a vote that still counts.")

    class Meta:
        ref_name = "Step"


class HistoryShape(serializers.ModelSerializer[Task]):
    question = serializers.SlugField(source="question.slug")
    item_id = serializers.IntegerField()
    barred = serializers.SerializerMethodField(help_text="Who ruled or saw the votes, and is never asked to vote, by pseudonym.")
    history = serializers.SerializerMethodField()

    class Meta:
        ref_name = "TaskHistory"
        model = Task
        fields = [
            "id", "question", "item_id", "state", "round", "votes_required", "vote_count", "abstention_count", "settled_at", "created_at",
            "barred", "history",
        ]  # fmt: skip

    def get_barred(self, task: Task) -> list[str]:
        return history.seen_by(task)

    @extend_schema(responses=StepShape(many=True))
    def get_history(self, task: Task) -> list[dict[str, Any]]:
        return [dict(StepShape(step).data) for step in history.of_task(task)]


class TaskIdsShape(serializers.Serializer[object]):
    task_ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID), min_length=1, max_length=100_000,
        help_text="Tasks of this question; if one is not, nothing is changed.",
    )  # fmt: skip

    class Meta:
        ref_name = "TaskIds"


class RetiredShape(serializers.Serializer[object]):
    retired = serializers.IntegerField(help_text="Those that were not retired before.")

    class Meta:
        ref_name = "RetiredTasks"


class ReopenedShape(serializers.Serializer[object]):
    reopened = serializers.IntegerField(help_text="Those that were not open before.")

    class Meta:
        ref_name = "ReopenedTasks"


class AffectedShape(serializers.Serializer[rounds.Affected]):
    """Tasks that may be asked anew, settled or disputed under a version before the latest; `gaps` are among `settled`."""

    version = serializers.IntegerField()
    gaps = serializers.IntegerField()
    disputed = serializers.IntegerField()
    settled = serializers.IntegerField()

    class Meta:
        ref_name = "AffectedByGuideline"


class ReopenGroupShape(serializers.Serializer[object]):
    group = serializers.ChoiceField([(group, group) for group in rounds.GROUPS])
    version = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="The latest, as the counts were read under.")

    class Meta:
        ref_name = "ReopenGroup"


class OneTask(View):
    @extend_schema(operation_id="task", tags=["tasks"], responses=HistoryShape)
    def get(self, request: Request, project: str, task: int) -> Response:
        """One task with everything that people did to it, oldest first."""
        member = access.researcher(request.user, project)
        found = Task.objects.select_related("question").filter(pk=min(task, LARGEST_ID), question__project=member.project).first()
        if found is None:
            raise Missing("There is no such task in this project.")
        return Response(HistoryShape(found).data)


class Retire(View):
    @extend_schema(operation_id="tasks_retire", tags=["tasks"], request=TaskIdsShape, responses=RetiredShape)
    def post(self, request: Request, project: str, question: str) -> Response:
        """Ask nobody any more about these tasks. Ground truth is superseded; votes stay on record."""
        member = access.researcher(request.user, project)
        asked = access.question(member, question)
        return Response({"retired": rounds.retire(asked, read(TaskIdsShape, request)["task_ids"])})


class Reopen(View):
    @extend_schema(operation_id="tasks_reopen", tags=["tasks"], request=TaskIdsShape, responses=ReopenedShape)
    def post(self, request: Request, project: str, question: str) -> Response:
        """Ask anew about these tasks, in a new round. Open ones stay as they are."""
        member = access.researcher(request.user, project)
        asked = access.question(member, question)
        return Response({"reopened": rounds.reopen(asked, read(TaskIdsShape, request)["task_ids"])})


class Affected(View):
    @extend_schema(operation_id="tasks_affected", tags=["tasks"], responses=AffectedShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """What the latest guideline version may concern."""
        member = access.researcher(request.user, project)
        return Response(AffectedShape(rounds.affected_by_guideline(access.question(member, question))).data)

    @extend_schema(operation_id="tasks_reopen_affected", tags=["tasks"], request=ReopenGroupShape, responses=ReopenedShape)
    def post(self, request: Request, project: str, question: str) -> Response:
        """Re-open one group of them, in a new round."""
        member = access.researcher(request.user, project)
        asked = access.question(member, question)
        given = read(ReopenGroupShape, request)
        return Response({"reopened": rounds.reopen_affected(asked, given["group"], version=given["version"])})


# ---------------------------------------------------------------- votes
class WhyShape(serializers.Serializer[object]):
    why = serializers.CharField(max_length=rounds.LONGEST_WHY, help_text="Kept on record.")

    class Meta:
        ref_name = "Why"


class VoidShape(WhyShape):
    question = serializers.SlugField(default="", allow_blank=True, help_text="Only on this question; empty for all.")

    class Meta:
        ref_name = "Void"


class VoidedShape(serializers.Serializer[rounds.Voided]):
    votes = serializers.IntegerField(help_text="0 when there was none to strike out, or it was done before.")
    reopened = serializers.IntegerField(help_text="Tasks that were settled or disputed and are open again.")
    kept_by_ruling = serializers.IntegerField(help_text="Tasks that keep an adjudicator's ruling.")

    class Meta:
        ref_name = "Voided"


class VoidVote(View):
    @extend_schema(operation_id="vote_void", tags=["votes"], request=WhyShape, responses=VoidedShape)
    def post(self, request: Request, project: str, vote: int) -> Response:
        """Strike out one vote: its slot is open again, and what it settled is superseded."""
        member = access.researcher(request.user, project)
        return Response(VoidedShape(rounds.void_vote(min(vote, LARGEST_ID), by=member, **read(WhyShape, request))).data)


class VoidVotes(View):
    @extend_schema(operation_id="votes_void", tags=["votes"], request=VoidShape, responses=VoidedShape)
    def post(self, request: Request, project: str, number: int) -> Response:
        """Strike out all votes of a member, on one question or on all."""
        member = access.researcher(request.user, project)
        given = read(VoidShape, request)
        person, asked = people.find(member.project, number), question_or_none(member, given["question"])
        return Response(VoidedShape(rounds.void_votes(person, asked, by=member, why=given["why"])).data)


# ---------------------------------------------------------------- flags
class RaisedFlagShape(serializers.ModelSerializer[Flag]):
    task_id = serializers.IntegerField()
    item_id = serializers.IntegerField(source="task.item_id")
    question = serializers.SlugField(source="task.question.slug")
    by = serializers.CharField(source="member.pseudonym")
    quarantined = serializers.BooleanField(source="task.item.quarantined")
    handled_by = serializers.CharField(source="handled_by.pseudonym", allow_null=True, default=None)

    class Meta:
        ref_name = "RaisedFlag"
        model = Flag
        fields = [
            "id", "task_id", "item_id", "question", "reason", "note", "by", "created_at", "quarantined", "handled_by", "handled_at",
            "handled_note",
        ]  # fmt: skip


class FlagsQuery(serializers.Serializer[object]):
    handled = serializers.BooleanField(default=False)


class HandledShape(serializers.Serializer[object]):
    note = serializers.CharField(default="", allow_blank=True, max_length=flags.LONGEST_NOTE, help_text="What was done.")

    class Meta:
        ref_name = "Handled"


class Flags(ListAPIView[Flag], work.Flags):
    """Everyone raises flags, researchers read them."""

    serializer_class = RaisedFlagShape
    pagination_class = Pages

    def get_queryset(self) -> QuerySet[Flag]:
        if getattr(self, "swagger_fake_view", False):
            return Flag.objects.none()
        member = access.researcher(self.request.user, self.kwargs["project"])
        return flags.of_project(member.project, handled=read_query(FlagsQuery, self.request)["handled"])

    @extend_schema(operation_id="flags", tags=["flags"], parameters=[FlagsQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The flags of all questions that wait, or were handled, by id."""
        return super().get(request, *args, **kwargs)


class Handled(View):
    @extend_schema(operation_id="flag_handled", tags=["flags"], request=HandledShape, responses=RaisedFlagShape)
    def post(self, request: Request, project: str, flag: int) -> Response:
        """This flag was looked at. A quarantine goes on until it is lifted."""
        member = access.researcher(request.user, project)
        flags.handle(min(flag, LARGEST_ID), by=member, **read(HandledShape, request))
        return Response(
            RaisedFlagShape(Flag.objects.select_related("task__question", "task__item", "member", "handled_by").get(pk=flag)).data
        )


class LiftedShape(serializers.Serializer[object]):
    shown = serializers.BooleanField(help_text="False while another project has the same picture in quarantine.")

    class Meta:
        ref_name = "Lifted"


class LiftQuarantine(View):
    @extend_schema(operation_id="quarantine_lift", tags=["flags"], request=WhyShape, responses=LiftedShape)
    def post(self, request: Request, project: str, item: int) -> Response:
        """Show a quarantined item again, and unseal its picture. Its tasks stay retired."""
        member = access.researcher(request.user, project)
        found = Item.objects.filter(project=member.project, pk=min(item, LARGEST_ID)).first()
        if found is None:
            raise Missing("There is no such item in this project.")
        return Response({"shown": rounds.lift_quarantine(found, by=member, **read(WhyShape, request))})


# ---------------------------------------------------------------- gaps and consistency
class GapShape(serializers.ModelSerializer[Adjudication]):
    task_id = serializers.IntegerField()
    choice = serializers.CharField(source="choice.value")
    by = serializers.CharField(source="member.pseudonym")

    class Meta:
        ref_name = "GuidelineGap"
        model = Adjudication
        fields = ["task_id", "choice", "tags", "note", "by", "ruled_at"]


class GapsShape(serializers.Serializer[object]):
    version = serializers.IntegerField(help_text="The guideline in force.")
    gaps = GapShape(many=True)

    class Meta:
        ref_name = "GuidelineGaps"


class Gaps(View):
    @extend_schema(operation_id="guideline_gaps", tags=["questions"], responses=GapsShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """Rulings under the guideline in force that name a gap in it, by choice."""
        guideline = questions.current_guideline(access.question(access.researcher(request.user, project), question))
        found = [ruling for group in gaps.under(guideline) for ruling in group.rulings]
        return Response({"version": guideline.version, "gaps": GapShape(found, many=True).data})


class ConsistencyShape(serializers.Serializer[consistency.Consistency]):
    number = serializers.IntegerField()
    pseudonym = serializers.CharField()
    repeats = serializers.IntegerField()
    same_choice = serializers.IntegerField()
    same = serializers.IntegerField(help_text="Same choice and same tags.")

    class Meta:
        ref_name = "Consistency"


class OfAdjudicators(View):
    @extend_schema(operation_id="consistency", tags=["disputes"], responses=ConsistencyShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """How many rulings that came back were ruled the same: of every adjudicator for a researcher, else your own."""
        member = access.adjudicator(request.user, project)
        return Response([ConsistencyShape(row).data for row in _consistency(member)])


def _consistency(member: Membership) -> list[consistency.Consistency]:
    if member.role == Role.RESEARCHER:
        return consistency.of_project(member.project)
    own = consistency.of_member(member)
    return [own] if own else []
