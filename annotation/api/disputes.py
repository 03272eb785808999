"""The adjudicator's side of the API: take a dispute, rule blind, then with the votes open."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, disputes
from annotation.api.fields import View
from annotation.models import RulingReason
from config.api import read


class AnonymousVoteShape(serializers.Serializer[disputes.AnonymousVote]):
    letter = serializers.CharField()
    choice = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the label of one
    tags = serializers.ListField(child=serializers.CharField())
    comment = serializers.CharField(allow_blank=True)

    class Meta:
        ref_name = "AnonymousVote"


class DisputeShape(serializers.Serializer[disputes.Dispute]):
    """A dispute that you hold. `votes`, and why people abstained, are null until you have ruled blind."""

    task_id = serializers.IntegerField()
    token = serializers.UUIDField()
    item_id = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField(allow_null=True)
    origin_text = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField()
    guideline_version = serializers.IntegerField()
    vote_count = serializers.IntegerField()
    abstention_count = serializers.IntegerField()
    blind_choice = serializers.CharField(allow_null=True)
    blind_tags = serializers.ListField(child=serializers.CharField())
    blind_at = serializers.DateTimeField(allow_null=True)
    votes = AnonymousVoteShape(many=True, allow_null=True)
    abstentions = serializers.DictField(child=serializers.IntegerField(), allow_null=True, help_text="Reason -> how many abstained for it.")
    covered = serializers.BooleanField(help_text="A picture to show covered until you ask for it.")
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "Dispute"


class NextDisputeShape(serializers.Serializer[object]):
    dispute = DisputeShape(allow_null=True, help_text="null when none waits that you may rule on.")

    class Meta:
        ref_name = "NextDispute"


class DisputeCountsShape(serializers.Serializer[object]):
    waiting = serializers.IntegerField()
    ruled = serializers.IntegerField()

    class Meta:
        ref_name = "DisputeCounts"


class BlindRulingShape(serializers.Serializer[object]):
    token = serializers.UUIDField()
    choice = serializers.CharField(max_length=40)
    tags = serializers.ListField(child=serializers.CharField(max_length=40), default=list, max_length=100)

    class Meta:
        ref_name = "BlindRuling"


class RulingShape(BlindRulingShape):
    reason = serializers.ChoiceField(RulingReason.choices)
    note = serializers.CharField(default="", allow_blank=True, max_length=2000)

    class Meta:
        ref_name = "Ruling"


class HeldDisputeShape(serializers.Serializer[object]):
    token = serializers.UUIDField()

    class Meta:
        ref_name = "HeldDispute"


class Disputes(View):
    @extend_schema(operation_id="disputes", tags=["disputes"], responses=DisputeCountsShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """How many disputes of a question wait, and how many are ruled on."""
        member = access.adjudicator(request.user, project)
        waiting, ruled = disputes.dispute_counts(access.question(member, question))
        return Response({"waiting": waiting, "ruled": ruled})

    @extend_schema(operation_id="dispute_lease", tags=["disputes"], request=None, responses=NextDisputeShape)
    def post(self, request: Request, project: str, question: str) -> Response:
        """The dispute that you hold, else the oldest that you may rule on, now held by you."""
        member = access.adjudicator(request.user, project)
        return Response(NextDisputeShape({"dispute": disputes.next_dispute(member, access.question(member, question))}).data)


class BlindRulings(View):
    @extend_schema(operation_id="rule_blind", tags=["disputes"], request=BlindRulingShape, responses=DisputeShape)
    def post(self, request: Request, project: str) -> Response:
        """Your ruling before you see the votes. The answer opens them. A second one changes nothing."""
        member = access.adjudicator(request.user, project)
        return Response(DisputeShape(disputes.rule_blind(member, **read(BlindRulingShape, request))).data)


class Rulings(View):
    @extend_schema(operation_id="rule", tags=["disputes"], request=RulingShape, responses={204: None})
    def post(self, request: Request, project: str) -> Response:
        """The ruling: it becomes the ground truth. The same token again changes nothing."""
        member = access.adjudicator(request.user, project)
        disputes.rule(member, **read(RulingShape, request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class GiveBack(View):
    @extend_schema(operation_id="dispute_give_back", tags=["disputes"], request=HeldDisputeShape, responses={204: None})
    def post(self, request: Request, project: str) -> Response:
        """Return a dispute to the queue. A blind ruling already made stays on record."""
        member = access.adjudicator(request.user, project)
        disputes.give_back(member, **read(HeldDisputeShape, request))
        return Response(status=status.HTTP_204_NO_CONTENT)
