"""Care over the API: consent, one's own exposure, and how a project looks after its people."""

from dataclasses import asdict, replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, gate, wellbeing
from annotation.api.fields import View
from annotation.models import ContentWarning, Membership
from config.api import read

MOST_DAYS = 30


class WarningShape(serializers.ModelSerializer[ContentWarning]):
    class Meta:
        ref_name = "ContentWarning"
        model = ContentWarning
        fields = ["version", "body", "created_at"]


class NewWarningShape(serializers.Serializer[object]):
    body = serializers.CharField(max_length=wellbeing.LONGEST_BODY, help_text="Plain sentences: what may be seen, and how often.")

    class Meta:
        ref_name = "NewContentWarning"


class ConsentShape(serializers.Serializer[object]):
    warning = WarningShape(allow_null=True, help_text="In force. null: nothing needs to be agreed to.")
    agreed_at = serializers.DateTimeField(allow_null=True, help_text="null: not agreed to this version, and so no work.")

    class Meta:
        ref_name = "Consent"


class AgreementShape(serializers.Serializer[object]):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1, help_text="The version that you read.")
    read = serializers.BooleanField(help_text="I have read what I may see, and I am 18 or older.")
    free = serializers.BooleanField(help_text="I take part freely, and I know that I can stop.")

    class Meta:
        ref_name = "Agreement"

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if missing := [name for name in ("read", "free") if not given[name]]:
            raise serializers.ValidationError(dict.fromkeys(missing, "Without this there is no consent."))
        return given


class WithdrawnShape(serializers.Serializer[object]):
    released = serializers.IntegerField(help_text="How many tasks went back to the queue.")

    class Meta:
        ref_name = "Withdrawn"


class DayShape(serializers.Serializer[wellbeing.Day]):
    date = serializers.DateField(help_text="UTC.")
    items = serializers.IntegerField()
    hours = serializers.DictField(child=serializers.IntegerField(), help_text="Hour of the day (UTC) to sensitive items.")

    class Meta:
        ref_name = "ExposureDay"


class CareShape(serializers.Serializer[gate.Care]):
    """Sensitive items handed to you in all your projects, beside this project's limits, and your break."""

    hour = serializers.IntegerField()
    hour_limit = serializers.IntegerField(allow_null=True)
    day = serializers.IntegerField()
    day_limit = serializers.IntegerField(allow_null=True)
    break_at = serializers.DateTimeField(allow_null=True)
    break_until = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "OwnCare"


class OwnExposureShape(serializers.Serializer[object]):
    care = CareShape()
    days = DayShape(many=True, help_text=f"The last {MOST_DAYS} days, oldest first.")

    class Meta:
        ref_name = "OwnExposure"


class SettingsShape(serializers.Serializer[wellbeing.CareSettings]):
    hourly_limit = serializers.IntegerField(allow_null=True, required=False, help_text="Sensitive items in any hour; null for no limit.")
    daily_limit = serializers.IntegerField(allow_null=True, required=False, help_text="The same in any 24 hours.")
    break_after_minutes = serializers.IntegerField(allow_null=True, required=False, help_text="null for no breaks.")
    break_minutes = serializers.IntegerField(required=False)
    benign_share = serializers.FloatField(required=False, help_text="In [0, 1].")
    support_note = serializers.CharField(required=False, allow_blank=True)

    class Meta:
        ref_name = "CareSettings"


class CareDayShape(serializers.Serializer[wellbeing.DayCount]):
    day = serializers.DateField(help_text="UTC.")
    items = serializers.IntegerField()

    class Meta:
        ref_name = "CareDay"


class TotalsShape(serializers.Serializer[wellbeing.Totals]):
    """Totals of the project's last 30 days; never of one person."""

    days = CareDayShape(many=True)
    exposed = serializers.IntegerField()
    people = serializers.IntegerField()
    reached_limit = serializers.IntegerField(help_text="People, by what this project handed out.")
    distressed = serializers.IntegerField(allow_null=True, help_text="Abstentions, too distressing; null for fewer than 5.")
    consented = serializers.IntegerField()
    must_consent = serializers.IntegerField()

    class Meta:
        ref_name = "CareTotals"


class MixShape(serializers.Serializer[wellbeing.Mix]):
    question = serializers.CharField(source="slug")
    sensitive = serializers.IntegerField()
    benign = serializers.IntegerField()
    needed = serializers.IntegerField(help_text="Benign tasks that the share asks for.")
    missing = serializers.IntegerField()

    class Meta:
        ref_name = "CareMix"


class ProjectCareShape(serializers.Serializer[object]):
    settings = SettingsShape()
    warning = WarningShape(allow_null=True)
    totals = TotalsShape()
    mixes = MixShape(many=True)

    class Meta:
        ref_name = "ProjectCare"


class Consents(View):
    @extend_schema(operation_id="consent", tags=["care"], responses=ConsentShape)
    def get(self, request: Request, project: str) -> Response:
        """What you may see in this project, and whether you agreed to it."""
        return Response(self._shown(access.voter(request.user, project)))

    @extend_schema(operation_id="consent_give", tags=["care"], request=AgreementShape, responses=ConsentShape)
    def post(self, request: Request, project: str) -> Response:
        """Agree to the version that you read. 409 when another is in force by now."""
        member = access.voter(request.user, project)
        wellbeing.give_consent(member, read(AgreementShape, request)["version"])
        return Response(self._shown(member))

    @extend_schema(operation_id="consent_withdraw", tags=["care"], responses=WithdrawnShape)
    def delete(self, request: Request, project: str) -> Response:
        """Withdraw: you get no more work here, what you hold goes back, your answers stay."""
        return Response({"released": wellbeing.withdraw_consent(access.voter(request.user, project))})

    @staticmethod
    def _shown(member: Membership) -> Any:
        given = wellbeing.consent_of(member)
        return ConsentShape({"warning": wellbeing.warning_of(member.project), "agreed_at": given and given.given_at}).data


class Exposure(View):
    @extend_schema(operation_id="exposure", tags=["care"], responses=OwnExposureShape)
    def get(self, request: Request, project: str) -> Response:
        """Your own exposure, by day and hour. Nobody else can ask for it."""
        member = access.voter(request.user, project)
        days = wellbeing.last_days(access.person(request.user), MOST_DAYS)
        return Response(OwnExposureShape({"care": gate.care_of(member), "days": days}).data)


class ProjectCare(View):
    @extend_schema(operation_id="care", tags=["care"], responses=ProjectCareShape)
    def get(self, request: Request, project: str) -> Response:
        """Limits, breaks, the content warning in force, and totals."""
        return Response(self._shown(access.researcher(request.user, project)))

    @extend_schema(operation_id="care_change", tags=["care"], request=SettingsShape, responses=ProjectCareShape)
    def patch(self, request: Request, project: str) -> Response:
        """Change some of the settings; they hold from the next task on."""
        member = access.researcher(request.user, project)
        given = read(SettingsShape, request)
        member.project = wellbeing.change_care(member.project, replace(wellbeing.care_settings(member.project), **given))
        return Response(self._shown(member))

    @staticmethod
    def _shown(member: Membership) -> Any:
        project = member.project
        shown = {
            "settings": asdict(wellbeing.care_settings(project)), "warning": wellbeing.warning_of(project),
            "totals": wellbeing.totals(project), "mixes": wellbeing.mixes(project),
        }  # fmt: skip
        return ProjectCareShape(shown).data


class Warnings(View):
    @extend_schema(operation_id="warnings", tags=["care"], responses=WarningShape(many=True))
    def get(self, request: Request, project: str) -> Response:
        """Every version of the content warning, newest first."""
        member = access.researcher(request.user, project)
        return Response(WarningShape(member.project.warnings.all(), many=True).data)

    @extend_schema(operation_id="warning_new", tags=["care"], request=NewWarningShape, responses={201: WarningShape})
    def post(self, request: Request, project: str) -> Response:
        """Put a new version in force: nobody gets work before they have agreed to it."""
        member = access.researcher(request.user, project)
        made = wellbeing.new_warning(member.project, read(NewWarningShape, request)["body"], access.person(request.user))
        return Response(WarningShape(made).data, status=status.HTTP_201_CREATED)
