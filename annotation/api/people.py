"""Projects and their people."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, people
from annotation.api.fields import View
from annotation.models import Membership, Project
from config.api import Pages, read

ROLES = [(role.value, role.label) for role in people.PEOPLE]


class ProjectShape(serializers.ModelSerializer[Project]):
    slug = serializers.CharField(max_length=60, help_text="Small letters, digits and hyphens; part of every address.")
    name = serializers.CharField(max_length=120)
    your_role = serializers.SerializerMethodField(help_text="annotator, adjudicator or researcher")
    your_number = serializers.SerializerMethodField(help_text="Your pseudonym there.")

    class Meta:
        ref_name = "Project"
        model = Project
        fields = ["slug", "name", "description", "created_at", "your_role", "your_number"]
        read_only_fields = ["description", "created_at"]

    def get_your_role(self, project: Project) -> str:
        return self._yours(project).role

    def get_your_number(self, project: Project) -> int:
        return self._yours(project).number

    def _yours(self, project: Project) -> Membership:
        mine: dict[int, Membership] = self.context["memberships"]
        return mine[project.pk]


def _mine(request: Request) -> dict[str, dict[int, Membership]]:
    return {"memberships": {found.project_id: found for found in Membership.objects.filter(user=access.person(request.user))}}


class Projects(ListAPIView[Project]):
    serializer_class = ProjectShape

    def get_queryset(self) -> QuerySet[Project]:
        return access.projects(self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **(_mine(self.request) if hasattr(self.request, "user") else {})}

    @extend_schema(operation_id="projects", tags=["projects"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The projects that you are in."""
        return super().get(request, *args, **kwargs)

    @extend_schema(operation_id="project_add", tags=["projects"], request=ProjectShape, responses={201: ProjectShape})
    def post(self, request: Request) -> Response:
        """Begin a project, as its first researcher. For accounts that may."""
        founder = access.maker(request.user)
        project = people.add_project(**read(ProjectShape, request), founder=founder)
        return Response(ProjectShape(project, context=_mine(request)).data, status=status.HTTP_201_CREATED)


class ProjectDetail(View):
    @extend_schema(operation_id="project", tags=["projects"], responses=ProjectShape)
    def get(self, request: Request, project: str) -> Response:
        """One of your projects."""
        member = access.member(request.user, project)
        return Response(ProjectShape(member.project, context=_mine(request)).data)


class MemberShape(serializers.Serializer[Membership]):
    number = serializers.IntegerField(help_text="The pseudonym: Annotator 7.")
    username = serializers.SerializerMethodField(help_text="null once they have left: their name is gone.")
    role = serializers.CharField()
    active = serializers.BooleanField()
    votes_cast = serializers.IntegerField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Member"

    def get_username(self, member: Membership) -> str | None:
        return member.name if member.active else None


class NewMemberShape(serializers.Serializer[object]):
    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(ROLES)
    new_account = serializers.BooleanField(default=False, help_text="Make an account of this name; the answer holds its password, once.")

    class Meta:
        ref_name = "NewMember"


class AddedShape(serializers.Serializer[object]):
    number = serializers.IntegerField()
    password = serializers.CharField(allow_null=True, help_text="Of the new account; shown this once. null for an account that was there.")

    class Meta:
        ref_name = "AddedMember"


class ChangeShape(serializers.Serializer[object]):
    role = serializers.ChoiceField(ROLES, required=False)
    active = serializers.BooleanField(required=False, help_text="false ends their part in the project; votes and pseudonym stay.")

    class Meta:
        ref_name = "MemberChange"


class ByNumber(Pages):
    ordering = "number"


class Members(ListAPIView[Membership]):
    serializer_class = MemberShape
    pagination_class = ByNumber

    def get_queryset(self) -> QuerySet[Membership]:
        if getattr(self, "swagger_fake_view", False):  # the schema asks without a project
            return Membership.objects.none()
        return people.members(access.researcher(self.request.user, self.kwargs["project"]).project)

    @extend_schema(operation_id="members", tags=["people"])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The people of a project."""
        return super().get(request, *args, **kwargs)

    @extend_schema(operation_id="member_add", tags=["people"], request=NewMemberShape, responses={201: AddedShape})
    def post(self, request: Request, project: str) -> Response:
        """Give someone a part in the project."""
        member = access.researcher(request.user, project)
        added = people.add_member(member.project, **read(NewMemberShape, request))
        answer = Response({"number": added.member.number, "password": added.password}, status=status.HTTP_201_CREATED)
        answer.headers["Cache-Control"] = "no-store"
        return answer


class Member(View):
    @extend_schema(operation_id="member", tags=["people"], responses=MemberShape)
    def get(self, request: Request, project: str, number: int) -> Response:
        """One person of a project."""
        member = access.researcher(request.user, project)
        return Response(_shown(member.project, number))

    @extend_schema(operation_id="member_change", tags=["people"], request=ChangeShape, responses=MemberShape)
    def patch(self, request: Request, project: str, number: int) -> Response:
        """Another role, or in or out. The work they hold goes back; nobody is deleted."""
        member = access.researcher(request.user, project)
        people.change(member.project, number, **read(ChangeShape, request))
        return Response(_shown(member.project, number))


class Forget(View):
    @extend_schema(operation_id="member_forget", tags=["people"], request=None, responses={204: None})
    def post(self, request: Request, project: str, number: int) -> Response:
        """Have the account of someone who left forgotten: name, e-mail, password and tokens go; votes and pseudonym stay."""
        member = access.researcher(request.user, project)
        people.forget_member(member.project, number)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _shown(project: Project, number: int) -> dict[str, Any]:
    people.find(project, number)
    return dict(MemberShape(people.members(project).get(number=number)).data)
