"""Consent, limits, exposure and what researchers are told: the services, their pages and their API."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation import presets, queue, wellbeing
from annotation.errors import Conflict, Invalid
from annotation.models import Abstention, Consent, ContentWarning, Exposure, Lease, Membership, Question, Task
from annotation.questions import change_question, create_question, settings_of
from tests.annotation.api import Program
from tests.cast import Cast, make_member, make_project, make_question, make_tasks


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    question = create_question(cast.project, presets.TOXICITY, cast.bob.user)
    make_tasks(question, 6)
    return question


def expose(member: Membership, *hours_ago: float) -> None:
    task = Task.objects.filter(question__project=member.project)[0]
    Exposure.objects.bulk_create(Exposure(member=member, task=task, at=timezone.now() - timedelta(hours=hours)) for hours in hours_ago)


# ---------------------------------------------------------------- the warning
def test_the_first_sensitive_question_brings_the_projects_first_content_warning(cast: Cast) -> None:
    plain = make_question(cast.project)
    assert wellbeing.warning_of(cast.project) is None
    change_question(plain, settings_of(plain))
    assert wellbeing.warning_of(cast.project) is None
    create_question(cast.project, presets.IMAGE_HARM, cast.bob.user)
    create_question(cast.project, presets.PROMPT_SAFETY, cast.bob.user)
    made = ContentWarning.objects.get()
    assert (made.version, made.body, made.author) == (1, wellbeing.READY_WARNING, cast.bob.user)


def test_a_question_that_becomes_sensitive_brings_it_too(cast: Cast) -> None:
    question = make_question(cast.project, sensitive=True)
    change_question(question, settings_of(question))
    assert wellbeing.warning_of(cast.project).version == 1


def test_a_warning_that_says_the_same_asks_nobody_again(cast: Cast, toxicity: Question) -> None:
    with pytest.raises(Invalid, match="word for word"):
        wellbeing.new_warning(cast.project, f"  {wellbeing.READY_WARNING}\r\n")
    for body in ("", "x" * 5001, "a\x00b"):
        with pytest.raises(Invalid):
            wellbeing.new_warning(cast.project, body)
    assert ContentWarning.objects.count() == 1


# ---------------------------------------------------------------- consent
def test_nobody_gets_work_before_they_agreed_and_a_new_version_asks_again(cast: Cast, toxicity: Question) -> None:
    assert queue.next_work(cast.alice, toxicity) == []
    given = wellbeing.give_consent(cast.alice, 1)
    assert wellbeing.give_consent(cast.alice, 1) == given
    assert len(queue.next_work(cast.alice, toxicity)) == 2
    wellbeing.new_warning(cast.project, "It got worse.", cast.bob.user)
    assert wellbeing.consent_of(cast.alice) is None
    assert queue.next_work(cast.alice, toxicity) == []
    with pytest.raises(Conflict, match="read it again"):
        wellbeing.give_consent(cast.alice, 1)
    wellbeing.give_consent(cast.alice, 2)
    assert len(queue.next_work(cast.alice, toxicity)) == 2
    assert [(one.warning.version, one.ended_at is None) for one in Consent.objects.order_by("id")] == [(1, False), (2, True)]


def test_withdrawing_gives_back_what_is_held_and_answers_stay(cast: Cast, toxicity: Question) -> None:
    wellbeing.give_consent(cast.alice, 1)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, choice="yes")
    assert wellbeing.withdraw_consent(cast.alice) == 2
    assert not Lease.objects.exists()
    assert cast.alice.votes.count() == 1
    assert queue.next_work(cast.alice, toxicity) == []
    assert wellbeing.withdraw_consent(cast.alice) == 0


def test_the_consent_page_needs_both_boxes_and_the_version_that_was_read(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    page = alice.get("/p/study/consent/?next=/p/study/label/toxicity/").content.decode()
    assert "At most 200 sensitive items an hour and 800 in 24 hours" in page
    assert "A break of 10 minutes after every 50." in page
    assert "Some of the items have a known answer." in page
    assert alice.post("/p/study/consent/", {"do": "agree", "read": "on", "version": "1"}).status_code == 422
    for version in ("2", "x", "", "9" * 30):
        assert alice.post("/p/study/consent/", {"do": "agree", "read": "on", "free": "on", "version": version}).status_code == 409
    assert not Consent.objects.exists()
    done = alice.post("/p/study/consent/", {"do": "agree", "read": "on", "free": "on", "version": "1", "next": "/p/study/label/toxicity/"})
    assert done["Location"] == "/p/study/label/toxicity/"
    page = alice.get("/p/study/consent/").content.decode()
    assert "What you agreed to" in page
    assert alice.post("/p/study/consent/", {"do": "withdraw"})["Location"] == "/"
    assert wellbeing.consent_of(cast.alice) is None
    assert "You withdrew your consent." in alice.get("/p/study/consent/").content.decode()


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "evil"])
def test_agreeing_leads_nowhere_outside(cast: Cast, toxicity: Question, sign_in, elsewhere: str) -> None:
    given = {"do": "agree", "read": "on", "free": "on", "version": "1", "next": elsewhere}
    assert sign_in(cast.alice).post("/p/study/consent/", given)["Location"] == "/"


def test_limits_that_are_none_are_said_to_be_none(cast: Cast, toxicity: Question, sign_in) -> None:
    cast.project.hourly_limit = cast.project.daily_limit = cast.project.break_after_minutes = None
    cast.project.save()
    page = sign_in(cast.alice).get("/p/study/consent/").content.decode()
    assert "How many sensitive ones you see is not limited." in page
    assert "A break of" not in page


def test_home_asks_to_read_first_and_lets_one_withdraw(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    page = alice.get("/").content.decode()
    assert "Read the content warning first." in page
    assert "Read and decide" in page
    wellbeing.give_consent(cast.alice, 1)
    page = alice.get("/").content.decode()
    assert "Read and decide" not in page
    assert "What you agreed to" in page


def test_the_labelling_page_stops_with_the_reason_and_shows_nothing_of_the_item(cast: Cast, toxicity: Question, sign_in) -> None:
    alice = sign_in(cast.alice)
    page = alice.get("/p/study/label/toxicity/")
    assert page.context["stop"]["code"] == "consent"
    assert "mild text" not in page.content.decode()
    assert toxicity.guidelines.get().examples[0]["text"] not in page.content.decode()
    assert "/p/study/consent/?next=%2Fp%2Fstudy%2Flabel%2Ftoxicity%2F" in page.content.decode()
    answer = alice.get("/p/study/label/toxicity/next/").json()
    assert (answer["work"], answer["stop"]["code"], answer["stop"]["until"]) == ([], "consent", None)


def test_a_limit_stops_with_when_it_goes_on_and_the_gauge_says_how_far(cast: Cast, toxicity: Question, sign_in) -> None:
    wellbeing.give_consent(cast.alice, 1)
    wellbeing.change_care(cast.project, wellbeing.CareSettings(3, 800, 50, 10, 0.0, ""))
    alice = sign_in(cast.alice)
    answer = alice.get("/p/study/label/toxicity/next/").json()
    for _ in range(3):
        token = answer["work"][0]["token"]
        answer = alice.post(
            "/p/study/vote/", {"question": "toxicity", "token": token, "choice": "no"}, content_type="application/json"
        ).json()
    assert answer["work"] == []
    assert answer["care"]["hour"] == answer["care"]["hour_limit"] == 3
    assert answer["stop"]["code"] == "hour_limit"
    assert datetime.fromisoformat(answer["stop"]["until"]) > timezone.now()
    page = alice.get("/").content.decode()
    assert "Limit until" in page
    assert "<b>3</b> of 3" in page


# ---------------------------------------------------------------- one's own exposure
def test_exposure_is_counted_by_clock_hour_over_all_projects_and_is_ones_own(cast: Cast, toxicity: Question, sign_in) -> None:
    other = make_project("second")
    again = make_member(other, "alice", "annotator")
    make_tasks(make_question(other), 1)
    expose(cast.alice, 0, 0, 26)
    expose(again, 0)
    expose(cast.dave, 0)
    hours = wellbeing.last_hours(cast.alice.user, 8)
    assert len(hours) == 8
    assert [hour.items for hour in hours][-1] == 3
    assert hours[-1].hour == timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    days = wellbeing.last_days(cast.alice.user, 30)
    assert len(days) == 30
    assert sum(day.items for day in days) == 4
    page = sign_in(cast.alice).get("/exposure/").content.decode()
    assert "4 in all." in page
    assert 'role="img"' in page
    assert "1 in all." in sign_in(cast.dave).get("/exposure/").content.decode()
    assert "Nothing yet." in sign_in(cast.erin).get("/exposure/").content.decode()


# ---------------------------------------------------------------- the researcher's page
FORM = {
    "do": "settings", "hourly_limit": "40", "daily_limit": "160", "break_after_minutes": "30", "break_minutes": "5",
    "benign_percent": "12.5", "support_note": "Ask Ada, room 3.",
}  # fmt: skip


def test_a_researcher_sets_limits_breaks_and_the_support_note(cast: Cast, toxicity: Question, sign_in) -> None:
    bob = sign_in(cast.bob)
    assert bob.post("/p/study/care/", FORM).status_code == 302
    cast.project.refresh_from_db()
    assert wellbeing.care_settings(cast.project) == wellbeing.CareSettings(40, 160, 30, 5, 0.125, "Ask Ada, room 3.")
    assert "Ask Ada, room 3." in sign_in(cast.alice).get("/support/").content.decode()
    assert "Ask Ada, room 3." not in sign_in(cast.mallory).get("/support/").content.decode()
    assert bob.post("/p/study/care/", FORM | {"hourly_limit": "", "daily_limit": "", "break_after_minutes": ""}).status_code == 302
    cast.project.refresh_from_db()
    assert wellbeing.care_settings(cast.project) == wellbeing.CareSettings(None, None, None, 5, 0.125, "Ask Ada, room 3.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"hourly_limit": "0"}, {"hourly_limit": "many"}, {"hourly_limit": "9" * 40}, {"daily_limit": "-1"}, {"daily_limit": "39"},
        {"break_minutes": ""}, {"break_minutes": "0"}, {"break_after_minutes": "1.5"}, {"benign_percent": "101"},
        {"benign_percent": "nan"}, {"benign_percent": "inf"}, {"benign_percent": ""}, {"support_note": "x" * 4001},
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_told_by_field_and_kept_as_typed(cast: Cast, sign_in, wrong: dict[str, str]) -> None:
    before = wellbeing.care_settings(cast.project)
    page = sign_in(cast.bob).post("/p/study/care/", FORM | wrong)
    assert page.status_code == 422
    assert page.context["errors"]
    assert page.context["form"]["break_after_minutes"] == wrong.get("break_after_minutes", "30")
    cast.project.refresh_from_db()
    assert wellbeing.care_settings(cast.project) == before


def test_a_new_warning_is_written_on_the_care_page(cast: Cast, toxicity: Question, sign_in) -> None:
    bob = sign_in(cast.bob)
    assert bob.post("/p/study/care/", {"do": "warning", "body": "Insults, about one in three."}).status_code == 302
    assert wellbeing.warning_of(cast.project).version == 2
    assert bob.post("/p/study/care/", {"do": "warning", "body": "Insults, about one in three."}).status_code == 422
    page = sign_in(cast.alice).get("/p/study/consent/").content.decode()
    assert "Insults, about one in three." in page


def test_totals_count_people_and_never_name_one(cast: Cast, toxicity: Question, sign_in) -> None:
    project = wellbeing.change_care(cast.project, wellbeing.CareSettings(3, 5, 50, 10, 0.2, ""))
    expose(cast.alice, 0.1, 0.2, 0.3)  # reaches the hour's limit
    expose(cast.dave, 1, 3, 5, 7, 9)  # reaches the day's
    expose(cast.erin, 0.1, 2)
    expose(cast.erin, 24 * 40)  # long ago
    wellbeing.give_consent(cast.alice, 1)
    told = wellbeing.totals(project)
    assert (told.exposed, told.people, told.reached_limit) == (10, 3, 2)
    assert (told.consented, told.must_consent) == (1, 4)  # alice, charlie, dave, erin
    assert len(told.days) == 30
    page = sign_in(cast.bob).get("/p/study/care/").content.decode()
    for name in ("alice", "dave", "erin"):
        assert name not in page
    assert sign_in(cast.alice).get("/p/study/care/").status_code == 403


def test_a_handful_of_distressed_answers_is_not_counted_out(cast: Cast, toxicity: Question, sign_in) -> None:
    tasks = list(toxicity.tasks.order_by("id"))
    bob = sign_in(cast.bob)
    assert wellbeing.totals(cast.project).distressed == 0
    cache.clear()  # a minute later
    for number, task in enumerate(tasks[:5]):
        Abstention.objects.create(
            task=task, question=toxicity, member=cast.alice, round=1, reason="distressing", token=uuid.UUID(int=number)
        )
        if number == 0:
            assert wellbeing.totals(cast.project).distressed is None
            assert "fewer than 5" in bob.get("/p/study/care/").content.decode()
    cache.clear()
    assert wellbeing.totals(cast.project).distressed == 5


def test_the_care_page_warns_when_there_are_too_few_benign_tasks(cast: Cast, toxicity: Question, sign_in) -> None:
    """A share of 0.2 beside 6 sensitive tasks asks for 0.2 / 0.8 x 6 = 1.5, so 2."""
    (mix,) = wellbeing.mixes(cast.project)
    assert (mix.sensitive, mix.benign, mix.needed, mix.missing) == (6, 0, 2, 2)
    assert "has too few benign tasks" in sign_in(cast.bob).get("/p/study/care/").content.decode()
    for task in make_tasks(toxicity, 2):
        Task.objects.filter(pk=task.pk).update(sensitive=False)
    assert wellbeing.mixes(cast.project)[0].missing == 0
    assert "has too few benign tasks" not in sign_in(cast.bob).get("/p/study/care/").content.decode()


# ---------------------------------------------------------------- the API
def test_a_program_agrees_and_withdraws_for_its_person(cast: Cast, toxicity: Question) -> None:
    alice = Program(cast.alice)
    assert alice.get("consent/").json()["agreed_at"] is None
    assert alice.post("consent/", version=1, read=True, free=False).status_code == 400
    assert alice.post("consent/", version=7, read=True, free=True).status_code == 409
    assert alice.post("consent/", version=1, read=True, free=True).json()["agreed_at"]
    queue.next_work(cast.alice, toxicity)
    shown = alice.get("exposure/").json()
    assert shown["care"]["hour"] == shown["days"][-1]["items"] == 2
    assert alice.send("DELETE", "consent/").json() == {"released": 2}
    assert Program(cast.bob).get("exposure/").status_code == 403


def test_a_program_sets_care_and_reads_totals(cast: Cast, toxicity: Question) -> None:
    bob = Program(cast.bob)
    assert bob.send("PATCH", "care/", {"hourly_limit": 40, "benign_share": 0.5}).json()["settings"]["hourly_limit"] == 40
    assert bob.send("PATCH", "care/", {"hourly_limit": None}).json()["settings"]["hourly_limit"] is None
    for wrong in ({"hourly_limit": 0}, {"hourly_limit": 10**30}, {"benign_share": 2}, {"break_minutes": None}, {"support_note": "a\x00b"}):
        assert bob.send("PATCH", "care/", wrong).status_code == 400, wrong
    assert bob.post("care/warnings/", body="Other words.").json()["version"] == 2
    assert [one["version"] for one in bob.get("care/warnings/").json()] == [2, 1]
    assert bob.get("care/").json()["mixes"][0]["missing"] == 6
    assert Program(cast.alice).get("care/").status_code == 403
