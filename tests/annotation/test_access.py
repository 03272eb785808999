"""The helpers that every view begins with."""

import pytest
from django.contrib.auth.models import AnonymousUser

from annotation import access
from annotation.errors import Forbidden, Missing
from annotation.models import User
from tests import cast as make


def test_an_unknown_project_and_one_that_is_not_yours_look_the_same(cast: make.Cast) -> None:
    words = set()
    for project in ("study", "no-such-project"):
        with pytest.raises(Missing) as refused:
            access.member(cast.mallory.user, project)
        words.add(refused.value.message)
    assert len(words) == 1


def test_nobody_signed_in_is_in_no_project(cast: make.Cast) -> None:
    with pytest.raises(Missing):
        access.member(AnonymousUser(), "study")
    assert list(access.projects(AnonymousUser())) == []
    with pytest.raises(Forbidden):
        access.person(AnonymousUser())


@pytest.mark.parametrize(
    ("helper", "let_in"),
    [
        (access.member, {"alice", "bob", "charlie"}),
        (access.voter, {"alice", "charlie"}),
        (access.adjudicator, {"bob", "charlie"}),
        (access.researcher, {"bob"}),
    ],
)
def test_each_helper_lets_in_its_roles_and_names_them_to_the_others(cast: make.Cast, helper: object, let_in: set[str]) -> None:
    for name in ("alice", "bob", "charlie"):
        user = getattr(cast, name).user
        if name in let_in:
            assert helper(user, "study").user == user
        else:
            with pytest.raises(Forbidden, match="needs the role"):
                helper(user, "study")


def test_an_archived_project_is_out_of_reach(cast: make.Cast) -> None:
    cast.project.archived_at = cast.project.created_at or "2026-01-01T00:00:00Z"
    cast.project.save()
    with pytest.raises(Missing):
        access.researcher(cast.bob.user, "study")
    assert list(access.projects(cast.bob.user)) == []


def test_a_question_of_another_project_does_not_exist(cast: make.Cast) -> None:
    make.make_question(cast.mallory.project, "theirs")
    with pytest.raises(Missing):
        access.question(cast.bob, "theirs")


def test_projects_are_begun_by_those_who_may(cast: make.Cast) -> None:
    with pytest.raises(Forbidden, match=r"manage\.py project add"):
        access.maker(cast.bob.user)
    staff = User.objects.create_user("stan", is_staff=True)
    assert access.maker(staff) == staff
