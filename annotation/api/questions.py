"""Questions: what is asked, changed, and under which guideline."""

from dataclasses import asdict, replace
from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, presets, questions
from annotation.api.fields import View
from annotation.models import Guideline, Kind, Policy, Question, TagUse, TaskState
from annotation.questions import ChoiceSpec, Example, GuidelineText, Settings, Spec, TagSpec
from config.api import read

# What the service itself checks comes back by field in the same shape, so these only say the types.


# ---------------------------------------------------------------- shapes
class _Row(serializers.Serializer[Any]):
    """A row is given whole, also in a change that leaves other things of the question out."""

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if missing := [name for name, known in self.fields.items() if known.required and name not in given]:
            raise serializers.ValidationError(dict.fromkeys(missing, "This field is required."))
        return given


class ChoiceShape(_Row):
    value = serializers.CharField(help_text="What votes, files and exports say. It cannot change once it was voted for.")
    label = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the field's label
    hotkey = serializers.CharField(help_text="One letter or digit; not Z A F C G P S U B.")
    tag_use = serializers.ChoiceField(TagUse.choices, default=TagUse.NONE)
    is_unsure = serializers.BooleanField(default=False, help_text="An answer that ratios and matrices count beside.")

    class Meta:
        ref_name = "Choice"


class TagShape(_Row):
    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    hotkey = serializers.CharField()

    class Meta:
        ref_name = "Tag"


class ExampleShape(serializers.Serializer[Example]):
    title = serializers.CharField()
    text = serializers.CharField()
    choice = serializers.CharField(help_text="The value of the right answer.")
    why = serializers.CharField()

    class Meta:
        ref_name = "WorkedExample"


class SettingsShape(serializers.Serializer[Any]):
    title = serializers.CharField()
    prompt = serializers.CharField(help_text="The question as annotators read it.")
    policy = serializers.ChoiceField(Policy.choices, default=Policy.UNANIMOUS)
    votes_required = serializers.IntegerField(default=3, help_text="1 to 1,000; holds for tasks made from then on.")
    shows_origin = serializers.BooleanField(default=False, help_text="The seed can be seen on request.")
    blind_ruling = serializers.BooleanField(default=True, help_text="Adjudicators rule before they see the votes.")
    sensitive = serializers.BooleanField(default=False)
    ordered = serializers.BooleanField(default=False)
    lease_minutes = serializers.IntegerField(default=15)
    check_share = serializers.FloatField(default=0, help_text="Share of known answers mixed in unseen, 0 to 0.5.")
    accuracy_floor = serializers.FloatField(
        default=None, allow_null=True,
        help_text="Below this share of right answers, after 20, an annotator is paused: above 0, to 1; null: nobody is.",
    )  # fmt: skip
    repeat_share = serializers.FloatField(default=0, help_text="Share of an adjudicator's own rulings put to them again, blind, 0 to 0.5.")
    choices = ChoiceShape(many=True)
    tags = TagShape(many=True, default=list)


class GuidelineTextShape(serializers.Serializer[GuidelineText]):
    body = serializers.CharField(help_text="Markdown.")
    examples = ExampleShape(many=True, default=list)

    class Meta:
        ref_name = "GuidelineText"


class NewQuestionShape(SettingsShape):
    slug = serializers.CharField(help_text="Part of the question's address; it cannot change.")
    kind = serializers.ChoiceField(Kind.choices, default=Kind.TEXT)
    guideline = GuidelineTextShape()

    class Meta:
        ref_name = "NewQuestion"


class ChangeShape(SettingsShape):
    active = serializers.BooleanField(help_text="Whether it is on offer to annotators.")

    class Meta:
        ref_name = "QuestionChange"


class QuestionShape(SettingsShape):
    slug = serializers.CharField()
    kind = serializers.CharField()
    active = serializers.BooleanField()
    guideline_version = serializers.IntegerField()
    tasks = serializers.DictField(child=serializers.IntegerField(), help_text=f"Counts by state: {', '.join(TaskState.values)}.")

    class Meta:
        ref_name = "Question"


class GuidelineShape(serializers.ModelSerializer[Guideline]):
    author = serializers.SerializerMethodField(help_text="By name; by pseudonym once they have left; null for a command.")
    examples = ExampleShape(many=True)

    class Meta:
        ref_name = "Guideline"
        model = Guideline
        fields = ["version", "body", "examples", "author", "created_at"]

    def get_author(self, guideline: Guideline) -> str | None:
        return self.context["project"].name_of(guideline.author) if guideline.author else None


class NewGuidelineShape(GuidelineTextShape):
    after = serializers.IntegerField(
        min_value=1, help_text="The version that this one was written from; refused when another came meanwhile."
    )

    class Meta:
        ref_name = "NewGuideline"


# ---------------------------------------------------------------- to and from the service
def _settings(given: dict[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    if "choices" in given:
        rows["choices"] = tuple(ChoiceSpec(**row) for row in given["choices"])
    if "tags" in given:
        rows["tags"] = tuple(TagSpec(**row) for row in given["tags"])
    return {name: value for name, value in given.items() if name in SettingsShape().fields} | rows


def _guideline(given: dict[str, Any]) -> GuidelineText:
    return GuidelineText(given["body"], tuple(Example(**row) for row in given["examples"]))


def _shown(standing: questions.Standing) -> dict[str, Any]:
    question = standing.question
    return asdict(questions.settings_of(question)) | {
        "slug": question.slug,
        "kind": question.kind,
        "active": question.active,
        "guideline_version": standing.version,
        "tasks": standing.states,
    }


def _one(question: Question) -> dict[str, Any]:
    return _shown(next(found for found in questions.standings(question.project) if found.question == question))


# ---------------------------------------------------------------- views
class Presets(View):
    @extend_schema(operation_id="question_presets", tags=["questions"], responses=NewQuestionShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """Ready-made questions, in the shape that makes a question."""
        access.researcher(request.user, project)
        return Response([_posted(spec) for spec in presets.PRESETS.values()])


def _posted(spec: Spec) -> dict[str, Any]:
    return {"slug": spec.slug, "kind": spec.kind, **asdict(spec.settings), "guideline": asdict(spec.guideline)}


class Questions(View):
    @extend_schema(operation_id="questions", tags=["questions"], responses=QuestionShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The project's questions with their tasks by state."""
        member = access.researcher(request.user, project)
        return Response([_shown(standing) for standing in questions.standings(member.project)])

    @extend_schema(operation_id="question_add", tags=["questions"], request=NewQuestionShape, responses={201: QuestionShape})
    def post(self, request: Request, project: str) -> Response:
        """Make a question with version 1 of its guideline."""
        member = access.researcher(request.user, project)
        given = read(NewQuestionShape, request)
        spec = Spec(given["slug"], Settings(**_settings(given)), _guideline(given["guideline"]), given["kind"])
        return Response(_one(questions.create_question(member.project, spec, member.user)), status=status.HTTP_201_CREATED)


class QuestionDetail(View):
    @extend_schema(operation_id="question", tags=["questions"], responses=QuestionShape)
    def get(self, request: Request, project: str, question: str) -> Response:
        """One question."""
        return Response(_one(access.question(access.researcher(request.user, project), question)))

    @extend_schema(operation_id="question_change", tags=["questions"], request=ChangeShape, responses=QuestionShape)
    def patch(self, request: Request, project: str, question: str) -> Response:
        """Change what is given; the rest stays. Choices and tags are known by their value, and are given all at once."""
        member = access.researcher(request.user, project)
        shape = ChangeShape(data=request.data, partial=True)
        shape.is_valid(raise_exception=True)
        given = dict(shape.validated_data)
        with transaction.atomic():
            asked = access.question(member, question)
            if changes := _settings(given):
                asked = questions.change_question(asked, replace(questions.settings_of(asked), **changes))
            if "active" in given:
                asked = questions.set_active(asked, given["active"])
        return Response(_one(asked))


class Guidelines(View):
    @extend_schema(operation_id="guidelines", tags=["questions"], responses=GuidelineShape(many=True))
    def get(self, request: Request, project: str, question: str) -> Response:
        """Every version of the question's guideline, newest first."""
        asked = access.question(access.researcher(request.user, project), question)
        return Response(GuidelineShape(asked.guidelines.select_related("author"), many=True, context={"project": asked.project}).data)

    @extend_schema(operation_id="guideline_add", tags=["questions"], request=NewGuidelineShape, responses={201: GuidelineShape})
    def post(self, request: Request, project: str, question: str) -> Response:
        """Write the next version. Votes from then on are cast under it."""
        member = access.researcher(request.user, project)
        given = read(NewGuidelineShape, request)
        asked = access.question(member, question)
        made = questions.new_guideline_version(asked, _guideline(given), after=given["after"], author=member.user)
        return Response(GuidelineShape(made, context={"project": asked.project}).data, status=status.HTTP_201_CREATED)
