"""The annotator's side of the API. The same calls as the labelling page; nothing here knows other votes or scores."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, checks, gate, queue
from annotation.api.fields import View, question_or_none
from annotation.models import AbstainReason, Choice, FlagReason, Guideline, Question, Tag
from config.api import LARGEST_ID, read, read_query


class AskedChoiceShape(serializers.ModelSerializer[Choice]):
    class Meta:
        ref_name = "AskedChoice"
        model = Choice
        fields = ["value", "label", "hotkey", "tag_use", "is_unsure"]


class AskedTagShape(serializers.ModelSerializer[Tag]):
    class Meta:
        ref_name = "AskedTag"
        model = Tag
        fields = ["value", "label", "hotkey"]


class AskedGuidelineShape(serializers.ModelSerializer[Guideline]):
    class Meta:
        ref_name = "AskedGuideline"
        model = Guideline
        fields = ["version", "body", "examples"]


class AskedShape(serializers.ModelSerializer[Question]):
    choices = AskedChoiceShape(many=True)
    tags = AskedTagShape(many=True)
    guideline = serializers.SerializerMethodField(help_text="The version in force.")

    class Meta:
        ref_name = "Asked"
        model = Question
        fields = ["slug", "title", "prompt", "kind", "sensitive", "choices", "tags", "guideline"]

    @extend_schema_field(AskedGuidelineShape)
    def get_guideline(self, question: Question) -> dict[str, Any]:
        return dict(AskedGuidelineShape(question.guidelines.all()[0]).data)  # newest first


class WorkShape(serializers.Serializer[queue.Work]):
    """A task that you hold until `expires_at`. `origin_text` only where the question shows it."""

    task_id = serializers.IntegerField()
    token = serializers.UUIDField(help_text="Send it with the vote. The same token again gives the same answer.")
    item_id = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField(allow_null=True)
    origin_text = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField()
    guideline_version = serializers.IntegerField()
    practice = serializers.BooleanField(help_text="Feedback follows your answer.")
    covered = serializers.BooleanField(help_text="A picture to show covered until you ask for it.")
    width = serializers.IntegerField(allow_null=True, help_text="Of a picture, in pixels.")
    height = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "Work"


class StopShape(serializers.Serializer[gate.Stop]):
    """Why there is no work for you now."""

    code = serializers.CharField(help_text="consent, break, hour_limit, day_limit, paused, unassigned or inactive")
    message = serializers.CharField()
    until = serializers.DateTimeField(allow_null=True, help_text="When it goes on by itself; null when something must be done first.")

    class Meta:
        ref_name = "Stop"


class CareShape(serializers.Serializer[gate.Care]):
    """Sensitive items handed to you in the last hour and 24 hours, in all your projects, and your breaks. null: no limit."""

    hour = serializers.IntegerField()
    hour_limit = serializers.IntegerField(allow_null=True)
    day = serializers.IntegerField()
    day_limit = serializers.IntegerField(allow_null=True)
    break_at = serializers.DateTimeField(allow_null=True, help_text="When the next break is due.")
    break_until = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "CareNow"


class FeedbackShape(serializers.Serializer[checks.Feedback]):
    """What is said after a practice answer."""

    correct = serializers.BooleanField()
    choice = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the label of one
    tags = serializers.ListField(child=serializers.CharField())
    why = serializers.CharField(allow_blank=True)

    class Meta:
        ref_name = "Feedback"


class HeldShape(serializers.Serializer[object]):
    work = WorkShape(many=True, help_text="The current task and the one after it; empty when nothing waits for you.")

    class Meta:
        ref_name = "Held"


class HandShape(HeldShape):
    stop = StopShape(allow_null=True, help_text="Why there is no work; null when there is, or when simply nothing waits.")
    care = CareShape()

    class Meta:
        ref_name = "Hand"


class ReleasedShape(serializers.Serializer[object]):
    released = serializers.IntegerField(help_text="How many tasks were given back.")

    class Meta:
        ref_name = "Released"


class AnswerFields(serializers.Serializer[object]):
    choice = serializers.CharField(max_length=40, help_text="The choice's value.")
    tags = serializers.ListField(child=serializers.CharField(max_length=40), default=list, max_length=100)
    comment = serializers.CharField(default="", allow_blank=True, max_length=2000)


class VoteShape(AnswerFields):
    token = serializers.UUIDField()
    elapsed_ms = serializers.IntegerField(
        default=None, allow_null=True, min_value=0, max_value=2**31 - 1, help_text="From the item on screen to the answer."
    )

    class Meta:
        ref_name = "Vote"


class ReceiptShape(serializers.Serializer[queue.Receipt]):
    vote_id = serializers.IntegerField()
    choice = serializers.CharField()
    work = WorkShape(many=True, help_text="What you hold now.")
    care = CareShape()
    feedback = FeedbackShape(allow_null=True, help_text="After practice only.")

    class Meta:
        ref_name = "Receipt"


class RevisionShape(AnswerFields):
    class Meta:
        ref_name = "Revision"


class OwnVoteShape(serializers.Serializer[queue.OwnVote]):
    vote_id = serializers.IntegerField()
    task_id = serializers.IntegerField()
    item_id = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField(allow_null=True)
    origin_text = serializers.CharField(allow_null=True)
    covered = serializers.BooleanField()
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)
    choice = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    comment = serializers.CharField(allow_blank=True)

    class Meta:
        ref_name = "OwnVote"


class AbstentionShape(serializers.Serializer[object]):
    token = serializers.UUIDField()
    reason = serializers.ChoiceField(AbstainReason.choices)

    class Meta:
        ref_name = "Abstention"


class FlagShape(serializers.Serializer[object]):
    task_id = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    reason = serializers.ChoiceField(FlagReason.choices)
    note = serializers.CharField(default="", allow_blank=True, max_length=500)

    class Meta:
        ref_name = "Flag"


class AnswerShape(serializers.Serializer[queue.Answer]):
    kind = serializers.CharField(help_text="vote or abstention")
    id = serializers.IntegerField()
    task_id = serializers.IntegerField()
    item_id = serializers.IntegerField()
    question = serializers.CharField(source="question_slug")
    choice = serializers.CharField(allow_blank=True)
    label = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the label of one
    tags = serializers.ListField(child=serializers.CharField())
    comment = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()
    changeable = serializers.BooleanField()

    class Meta:
        ref_name = "Answer"


class AnswersQuery(serializers.Serializer[object]):
    question = serializers.SlugField(default="", allow_blank=True, help_text="Only of this question.")
    limit = serializers.IntegerField(default=10, min_value=1, max_value=100)


class ProgressShape(serializers.Serializer[object]):
    votes = serializers.IntegerField(help_text="Yours, on this question.")
    votes_today = serializers.IntegerField()
    settled_share = serializers.FloatField(allow_null=True, help_text="Of the tasks, in [0, 1]; null without any. A minute old.")

    class Meta:
        ref_name = "Progress"


class Asked(View):
    @extend_schema(operation_id="asked", tags=["work"], responses=AskedShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """What is asked of voters now: the questions on offer, with choices, tags and guidelines."""
        member = access.member(request.user, project)
        offered = Question.objects.filter(project=member.project, active=True, guidelines__isnull=False).distinct().order_by("slug")
        return Response(AskedShape(offered.prefetch_related("choices", "tags", "guidelines"), many=True).data)


class Work(View):
    @extend_schema(operation_id="work_lease", tags=["work"], request=None, responses=HandShape)
    def post(self, request: Request, project: str, question: str) -> Response:
        """Lease the next work of a question: what you hold, topped up to two tasks; and why there is none."""
        member = access.voter(request.user, project)
        asked = access.question(member, question)
        work = queue.next_work(member, asked)
        stop = None if work else gate.stop_of(member, asked)
        return Response(HandShape({"work": work, "stop": stop, "care": gate.care_of(member)}).data)

    @extend_schema(operation_id="work_release", tags=["work"], responses=ReleasedShape)
    def delete(self, request: Request, project: str, question: str) -> Response:
        """Give back every task of the question that you hold."""
        member = access.voter(request.user, project)
        return Response({"released": queue.release(member, access.question(member, question))})


class Votes(View):
    @extend_schema(operation_id="vote", tags=["work"], request=VoteShape, responses=ReceiptShape)
    def post(self, request: Request, project: str) -> Response:
        """Vote. Sending the same token again gives the same answer and changes nothing."""
        member = access.voter(request.user, project)
        return Response(ReceiptShape(queue.cast_vote(member, **read(VoteShape, request))).data)


class OwnVote(View):
    @extend_schema(operation_id="vote_read", tags=["work"], responses=OwnVoteShape)
    def get(self, request: Request, project: str, vote: int) -> Response:
        """One of your own votes with its item."""
        member = access.voter(request.user, project)
        return Response(OwnVoteShape(queue.own_vote(member, vote)).data)

    @extend_schema(operation_id="vote_revise", tags=["work"], request=RevisionShape, responses=OwnVoteShape)
    def put(self, request: Request, project: str, vote: int) -> Response:
        """Change your vote: while its task is open, or for 60 seconds after it settled it. Each version is kept."""
        member = access.voter(request.user, project)
        queue.revise_vote(member, vote, **read(RevisionShape, request))
        return Response(OwnVoteShape(queue.own_vote(member, vote)).data)


class Abstentions(View):
    @extend_schema(operation_id="abstain", tags=["work"], request=AbstentionShape, responses=HeldShape)
    def post(self, request: Request, project: str) -> Response:
        """Give a task back with a reason; you do not get it again in this round."""
        member = access.voter(request.user, project)
        return Response(HeldShape({"work": queue.abstain(member, **read(AbstentionShape, request))}).data)


class Flags(View):
    @extend_schema(operation_id="flag", tags=["work"], request=FlagShape, responses={204: None})
    def post(self, request: Request, project: str) -> Response:
        """Mark a task for the researchers to look at. "illegal" takes its item out of sight at once."""
        member = access.member(request.user, project)
        queue.flag(member, **read(FlagShape, request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Answers(View):
    @extend_schema(operation_id="answers", tags=["work"], parameters=[AnswersQuery], responses=AnswerShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """Your own last votes and abstentions, newest first."""
        member = access.voter(request.user, project)
        asked = read_query(AnswersQuery, request)
        found = queue.last_answers(member, question_or_none(member, asked["question"]), asked["limit"])
        return Response([AnswerShape(answer).data for answer in found])


class Progress(View):
    @extend_schema(operation_id="progress", tags=["work"], responses=ProgressShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """How far you are with a question."""
        member = access.voter(request.user, project)
        asked = access.question(member, question)
        votes, today = queue.progress_of(member, asked)
        return Response({"votes": votes, "votes_today": today, "settled_share": queue.settled_share(asked)})
