"""Known answers: marked, drawn, changed, taken out; who gets how many right, and who is paused."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, known
from annotation.api.fields import View
from annotation.models import Question
from config.api import LARGEST_ID, read, read_query


class KnownShape(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="known.pk")
    item = serializers.IntegerField(source="known.task.item_id")
    external_id = serializers.CharField(source="known.task.item.external_id")
    choice = serializers.CharField(source="known.choice.value")
    tags = serializers.ListField(source="known.tags", child=serializers.CharField())
    why = serializers.CharField(source="known.why")
    practice = serializers.BooleanField(source="known.practice")
    shown = serializers.BooleanField(help_text="false while its item is quarantined: it is put to nobody.")
    asked = serializers.IntegerField(help_text="Answers with a choice.")
    missed = serializers.IntegerField(help_text="How many of them were wrong.")
    abstained = serializers.IntegerField()
    suspicious = serializers.BooleanField(help_text="Of three answers or more, more than half missed it.")

    class Meta:
        ref_name = "KnownAnswer"


class AnswerShape(serializers.Serializer[known.Answer]):
    item_id = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    choice = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField(), default=list)
    why = serializers.CharField(default="", allow_blank=True, max_length=known.LONGEST_WHY, help_text="Said after a practice answer.")

    class Meta:
        ref_name = "AnswerOfItem"


class MarkShape(serializers.Serializer[object]):
    answers = AnswerShape(many=True)
    practice = serializers.BooleanField(default=False, help_text="For practice, with feedback; else as checks, mixed in unseen.")

    class Meta:
        ref_name = "NewKnownAnswers"


class DrawShape(serializers.Serializer[object]):
    count = serializers.IntegerField(min_value=1, max_value=known.MOST_AT_ONCE)
    seed = serializers.IntegerField(default=None, allow_null=True, help_text="The project's own unless given.")
    practice = serializers.BooleanField(default=False)
    item_ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID), default=None, allow_null=True,
        help_text="Only from these items, for example those of a sample.",
    )  # fmt: skip

    class Meta:
        ref_name = "DrawKnownAnswers"


class ChangeShape(serializers.Serializer[object]):
    choice = serializers.CharField(required=False)
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    why = serializers.CharField(required=False, allow_blank=True)
    practice = serializers.BooleanField(required=False)

    class Meta:
        ref_name = "KnownAnswerChange"


class MarkedShape(serializers.Serializer[object]):
    ids = serializers.ListField(child=serializers.IntegerField())

    class Meta:
        ref_name = "MarkedKnownAnswers"


class WhichShape(serializers.Serializer[object]):
    practice = serializers.BooleanField(default=False)
    after = serializers.IntegerField(default=0, min_value=0, max_value=LARGEST_ID, help_text="The last id of the page before.")

    class Meta:
        ref_name = "WhichKnownAnswers"


class PauseShape(serializers.Serializer[Any]):
    question = serializers.CharField(source="question.slug")
    number = serializers.IntegerField(source="member.number", help_text="The pseudonym of who is paused.")
    answers = serializers.IntegerField()
    correct = serializers.IntegerField()
    floor = serializers.FloatField()
    paused_at = serializers.DateTimeField()
    lifted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Pause"


class TallyShape(serializers.Serializer[known.Tally]):
    number = serializers.IntegerField(source="member.number", help_text="The pseudonym.")
    answers = serializers.IntegerField(help_text="To checks; practice and abstentions are not counted.")
    correct = serializers.IntegerField()
    counted = serializers.IntegerField(help_text="Answers since their last pause was lifted: from 20 on, the floor applies.")
    counted_correct = serializers.IntegerField()
    left = serializers.IntegerField(help_text="Checks they have not met.")
    paused_at = serializers.DateTimeField(source="pause.paused_at", allow_null=True, default=None)

    class Meta:
        ref_name = "CheckTally"


class OutlookShape(serializers.Serializer[Any]):
    practice = serializers.IntegerField()
    checks = serializers.IntegerField()
    share = serializers.FloatField()
    tasks = serializers.IntegerField()
    met = serializers.IntegerField(help_text="Checks that someone meets who answers all tasks.")
    missing = serializers.IntegerField(help_text="How many more checks that takes.")
    tallies = TallyShape(many=True)

    class Meta:
        ref_name = "CheckOutlook"


def _asked(request: Request, project: str, question: str) -> Question:
    return access.question(access.researcher(request.user, project), question)


class KnownAnswers(View):
    @extend_schema(operation_id="known_answers", tags=["known answers"], parameters=[WhichShape], responses=KnownShape(many=True))
    def get(self, request: Request, project: str, question: str) -> Response:
        """Known answers in use, for practice or as checks, 200 at a time."""
        asked = _asked(request, project, question)
        return Response(KnownShape(known.active(asked, **read_query(WhichShape, request)), many=True).data)

    @extend_schema(operation_id="known_answers_mark", tags=["known answers"], request=MarkShape, responses={201: MarkedShape})
    def post(self, request: Request, project: str, question: str) -> Response:
        """Mark items as known answers: all of them, or none. The same again changes nothing."""
        member = access.researcher(request.user, project)
        given = read(MarkShape, request)
        answers = [known.Answer(**answer) for answer in given["answers"]]
        made = known.mark_many(access.question(member, question), answers, practice=given["practice"], by=member)
        return Response({"ids": [one.pk for one in made]}, status=status.HTTP_201_CREATED)


class Draw(View):
    @extend_schema(operation_id="known_answers_draw", tags=["known answers"], request=DrawShape, responses={201: MarkedShape})
    def post(self, request: Request, project: str, question: str) -> Response:
        """Make settled tasks known answers: a seeded draw, as many of each answer as of any other."""
        member = access.researcher(request.user, project)
        made = known.mark_settled(access.question(member, question), by=member, **read(DrawShape, request))
        return Response({"ids": [one.pk for one in made]}, status=status.HTTP_201_CREATED)


class KnownAnswer(View):
    @extend_schema(operation_id="known_answer", tags=["known answers"], responses=KnownShape)
    def get(self, request: Request, project: str, question: str, known_answer: int) -> Response:
        """One known answer in use."""
        return Response(KnownShape(known.find(_asked(request, project, question), known_answer)).data)

    @extend_schema(operation_id="known_answer_change", tags=["known answers"], request=ChangeShape, responses=KnownShape)
    def patch(self, request: Request, project: str, question: str, known_answer: int) -> Response:
        """Change what is given. What people said before is held against a changed answer, too."""
        asked = _asked(request, project, question)
        known.change(asked, known_answer, **read(ChangeShape, request))
        return Response(KnownShape(known.find(asked, known_answer)).data)

    @extend_schema(operation_id="known_answer_remove", tags=["known answers"], responses={204: None})
    def delete(self, request: Request, project: str, question: str, known_answer: int) -> Response:
        """Take it out. What was said to it stays on record; its task stays as it is."""
        known.unmark(_asked(request, project, question), known_answer)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Accuracy(View):
    @extend_schema(operation_id="known_answers_accuracy", tags=["known answers"], responses=OutlookShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """How far the checks go, and how many each annotator got right."""
        asked = _asked(request, project, question)
        found = known.outlook(asked)
        return Response(OutlookShape({**asdict(found), "missing": found.missing, "tallies": known.tallies(asked)}).data)


class Pauses(View):
    @extend_schema(operation_id="pauses", tags=["known answers"], responses=PauseShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """Who is paused now, on which question."""
        member = access.researcher(request.user, project)
        return Response(PauseShape(known.paused(member.project), many=True).data)


class LiftPause(View):
    @extend_schema(operation_id="pause_lift", tags=["known answers"], request=None, responses=PauseShape)
    def post(self, request: Request, project: str, question: str, number: int) -> Response:
        """Let a paused member go on; their answers are counted anew."""
        member = access.researcher(request.user, project)
        return Response(PauseShape(known.lift_pause(access.question(member, question), number, member)).data)
