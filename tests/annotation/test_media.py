"""Pictures in the storage, and who is shown one: by page, whole and small, by role, by what one holds, and never otherwise."""

import io
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import default_storage, storages
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from PIL import Image

from annotation import disputes, media, pictures, queue
from annotation.models import Check, Consent, ContentWarning, Item, KnownAnswer, Lease, Media, Membership, Question, Role, Task
from config.media import storage
from tests import cast as make
from tests.annotation.api import Program
from tests.cast import Cast

SignIn = Callable[[Membership], Client]


@pytest.fixture
def harm(cast: Cast) -> Question:
    return make.make_question(cast.project, "image_harm", kind="image", votes=2, policy="majority")


def address(item: Item, name: str = "picture") -> str:
    return reverse(name, args=[item.project.slug, item.pk])


def asked(client: Client, item: Item, name: str = "picture") -> int:
    return client.get(address(item, name)).status_code


def held_item(member: Membership, question: Question) -> Item:
    return Item.objects.get(pk=queue.next_work(member, question)[0].item_id)


# ---------------------------------------------------------------- the storage
def test_a_picture_is_stored_once_however_often_it_comes(db: None) -> None:
    picture = pictures.clean(make.draw(1))
    first, second = media.keep(picture), media.keep(pictures.clean(make.draw(1)))
    assert first == second
    assert (first.pk, first.format, first.width, first.height, first.size) == (picture.hash, "png", 320, 240, len(picture.data))
    assert Media.objects.count() == 1
    with media.open_picture(first) as whole, media.open_thumbnail(first) as small:
        assert whole.read() == picture.data
        assert small.read() == picture.thumbnail
    assert media.keep(pictures.clean(make.draw(2))) != first


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    folder = media.Folder(location=tmp_path)

    class Broken:
        def chunks(self) -> Iterator[bytes]:
            yield b"half"
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        folder._save("pictures/aa/bb/x.png", Broken())  # type: ignore[arg-type]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_are_for_their_owner_only(db: None) -> None:
    kept = media.keep(pictures.clean(make.draw(3)))
    path = Path(default_storage.path(f"pictures/{kept.pk[:2]}/{kept.pk[2:4]}/{kept.pk}.png"))
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("place", ["ftp://bucket/x", "s3://", "s3://key:secret@bucket", "s3://bucket?acl=public"])
def test_a_setting_that_names_no_storage_is_an_error(place: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="ASSAY_MEDIA"):
        storage(place)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that speaks S3, on this machine, with an empty bucket; its address."""
    import boto3
    from moto.server import ThreadedMotoServer

    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}:{port}")
    try:
        boto3.client("s3").create_bucket(Bucket="study")
        with override_settings(STORAGES={**storages.backends, "default": storage("s3://study/pictures-of/assay")}):
            yield f"http://{host}:{port}/study"
    finally:
        server.stop()


def test_pictures_live_in_a_bucket_that_speaks_s3(cast: Cast, harm: Question, bucket: str, sign_in: SignIn) -> None:
    import boto3

    (item,) = make.make_pictures(harm, 1)
    media.keep(pictures.clean(make.draw(0)))
    kept = item.media
    assert kept is not None
    found = boto3.client("s3").list_objects_v2(Bucket="study")["Contents"]
    assert sorted(one["Key"] for one in found) == [
        f"pictures-of/assay/pictures/{kept.pk[:2]}/{kept.pk[2:4]}/{kept.pk}.png",
        f"pictures-of/assay/thumbnails/{kept.pk[:2]}/{kept.pk[2:4]}/{kept.pk}.jpeg",
    ]
    answer = sign_in(cast.bob).get(address(item))
    assert answer.getvalue() == pictures.clean(make.draw(0)).data
    assert sign_in(cast.bob).get(address(item, "thumbnail")).status_code == 200
    boto3.client("s3").delete_object(Bucket="study", Key=found[0]["Key"])
    assert b"missing from the storage" in sign_in(cast.bob).get(address(item)).content


# ---------------------------------------------------------------- how it is served
def test_a_picture_is_served_as_a_picture_and_as_nothing_else(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    (item,) = make.make_pictures(harm, 1)
    client = sign_in(cast.bob)
    answer = client.get(address(item))
    assert answer.status_code == 200
    assert Image.open(io.BytesIO(answer.getvalue())).size == (320, 240)
    wanted = {
        "Content-Type": "image/png",
        "Content-Length": str(item.media.size),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Content-Disposition": 'inline; filename="picture.png"',
    }
    assert {name: answer[name] for name in wanted} == wanted
    small = client.get(address(item, "thumbnail"))
    assert (small["Content-Type"], small["Content-Disposition"]) == ("image/jpeg", 'inline; filename="picture.jpeg"')
    head = client.head(address(item))
    assert (head.status_code, head.content, head["Content-Type"], head["Content-Length"]) == (200, b"", "image/png", str(item.media.size))
    assert client.post(address(item)).status_code == 405


def test_a_file_that_the_storage_lost_is_said_and_no_error(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    (item,) = make.make_pictures(harm, 1)
    digest = item.media_id
    name = f"pictures/{digest[:2]}/{digest[2:4]}/{digest}.png"
    kept = default_storage.open(name).read()
    default_storage.delete(name)
    try:
        for answer in (sign_in(cast.bob).get(address(item)), sign_in(cast.bob).head(address(item))):
            assert answer.status_code == 404
        assert "The file of this picture is missing from the storage." in sign_in(cast.bob).get(address(item)).content.decode()
    finally:
        default_storage.save(name, io.BytesIO(kept))


# ---------------------------------------------------------------- who sees it
def test_researchers_see_every_picture_of_their_own_project(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    (item,) = make.make_pictures(harm, 1)
    assert asked(sign_in(cast.bob), item) == 200
    assert asked(sign_in(cast.mallory), item) == 404
    elsewhere = reverse("picture", args=[cast.mallory.project.slug, item.pk])
    assert sign_in(cast.mallory).get(elsewhere).status_code == 404
    assert asked(Client(), item) == 302


def test_texts_and_images_without_their_file_have_none(cast: Cast, sign_in: SignIn) -> None:
    (text,) = make.make_items(cast.project, 1)
    bare = Item.objects.create(project=cast.project, kind="image", external_id="bare", content_hash=b"")
    assert [asked(sign_in(cast.bob), item) for item in (text, bare)] == [404, 404]


def test_an_annotator_sees_what_they_hold_and_what_they_answered(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    items = make.make_pictures(harm, 3)
    client = sign_in(cast.alice)
    assert [asked(client, item) for item in items] == [404, 404, 404]
    work = queue.next_work(cast.alice, harm)
    held = {one.item_id for one in work}
    assert {item.pk for item in items if asked(client, item) == 200} == held
    queue.cast_vote(cast.alice, work[0].token, choice="yes")
    assert asked(client, Item.objects.get(pk=work[0].item_id)) == 200
    queue.release(cast.alice)
    assert {item.pk for item in items if asked(client, item) == 200} == {work[0].item_id}
    assert [asked(client, item, "thumbnail") for item in items] == [403, 403, 403]
    assert {item.pk for item in items if asked(sign_in(cast.dave), item) == 200} == set()


def test_a_refusal_says_the_same_whatever_its_reason(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    item, sealed = make.make_pictures(harm, 2)
    Media.objects.filter(pk=sealed.media_id).update(sealed_at=timezone.now())
    client = sign_in(cast.alice)
    pages = {client.get(address(item)).content, client.get(address(sealed)).content}
    pages.add(client.get(reverse("picture", args=["study", 10**9])).content)
    assert len({page.replace(b"csrf", b"") for page in pages}) == 1


def test_a_hold_that_ran_out_shows_nothing(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    make.make_pictures(harm, 1)
    item = held_item(cast.alice, harm)
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert asked(sign_in(cast.alice), item) == 404


def test_who_abstained_from_a_picture_is_not_shown_it_again(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    make.make_pictures(harm, 1)
    work = queue.next_work(cast.alice, harm)[0]
    queue.abstain(cast.alice, work.token, "distressing")
    assert asked(sign_in(cast.alice), Item.objects.get(pk=work.item_id)) == 404


def test_an_adjudicator_sees_the_dispute_they_hold_and_what_they_ruled_on(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    (item,) = make.make_pictures(harm, 1)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no")):
        queue.cast_vote(member, queue.next_work(member, harm)[0].token, choice=choice)
    client = sign_in(cast.charlie)
    assert asked(client, item) == 404
    dispute = disputes.next_dispute(cast.charlie, harm)
    assert dispute is not None
    assert asked(client, item) == 200
    disputes.rule_blind(cast.charlie, dispute.token, choice="yes")
    disputes.rule(cast.charlie, dispute.token, choice="yes", reason="clear_error")
    assert asked(client, item) == 200


def test_a_check_is_served_like_a_task(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    (item,) = make.make_pictures(harm, 1)
    Task.objects.update(state="retired")  # as marking does
    known = KnownAnswer.objects.create(task=Task.objects.get(item=item), question=harm, choice=harm.choices.get(value="yes"))
    held = Check.objects.create(
        known=known, question=harm, member=cast.alice, practice=False, guideline=harm.guidelines.get(), token=uuid.uuid4(),
        expires_at=timezone.now() + timedelta(minutes=5),
    )  # fmt: skip
    client = sign_in(cast.alice)
    checked, other = client.get(address(item)), asked(sign_in(cast.dave), item)
    assert (checked.status_code, other) == (200, 404)
    Check.objects.filter(pk=held.pk).update(expires_at=timezone.now() - timedelta(minutes=5))
    assert asked(client, item) == 404
    Check.objects.filter(pk=held.pk).update(choice=known.choice, correct=True, number=1, answered_at=timezone.now())
    assert asked(client, item) == 200
    Check.objects.filter(pk=held.pk).update(choice=None, correct=None, abstained="broken")
    assert asked(client, item) == 404
    (task,) = make.make_pictures(harm, 1)
    assert held_item(cast.dave, harm) == task
    served = sign_in(cast.dave).get(address(task))
    assert {name for name, _ in served.items()} == {name for name, _ in checked.items()}


def test_without_a_consent_in_force_nothing_is_shown(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    (item,) = make.make_pictures(harm, 1)
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, harm)[0].token, choice="yes")
    client = sign_in(cast.alice)
    first = ContentWarning.objects.create(project=cast.project, version=1, body="You may see harm.")
    assert asked(client, item) == 404
    consent = Consent.objects.create(member=cast.alice, warning=first)
    assert asked(client, item) == 200
    second = ContentWarning.objects.create(project=cast.project, version=2, body="You may see more harm.")
    assert asked(client, item) == 404
    Consent.objects.filter(pk=consent.pk).update(ended_at=timezone.now())
    renewed = Consent.objects.create(member=cast.alice, warning=second)
    assert asked(client, item) == 200
    Consent.objects.filter(pk=renewed.pk).update(ended_at=timezone.now())
    assert asked(client, item) == 404
    assert asked(sign_in(cast.bob), item) == 200


def test_whoever_left_the_project_sees_nothing(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    make.make_pictures(harm, 1)
    item = held_item(cast.alice, harm)
    client = sign_in(cast.alice)
    Membership.objects.filter(pk=cast.alice.pk).update(active=False)
    assert asked(client, item) == 404


# ---------------------------------------------------------------- sealed
def test_possibly_illegal_seals_the_picture_in_every_project(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    """The same picture stands in two projects, twice in one of them."""
    item, other = make.make_pictures(harm, 2)
    copy = Item.objects.create(project=cast.project, kind="image", external_id="copy", media=item.media, content_hash=item.content_hash)
    far_question = make.make_question(cast.mallory.project, "image_harm", kind="image")
    far = Item.objects.create(
        project=cast.mallory.project, kind="image", external_id="far", media=item.media, content_hash=item.content_hash
    )
    erin = make.make_member(cast.mallory.project, "frank", Role.ANNOTATOR)
    make.create_tasks(far_question, [far.pk])
    queue.next_work(erin, far_question)
    work = next(one for one in queue.next_work(cast.alice, harm) if one.item_id == item.pk)
    queue.flag(cast.alice, work.task_id, "illegal")
    assert set(Item.objects.filter(quarantined=True)) == {item, copy, far}
    assert Media.objects.get(pk=item.media_id).sealed_at is not None
    assert set(Task.objects.filter(state="retired").values_list("item_id", flat=True)) == {item.pk, far.pk}
    assert [asked(sign_in(member), item) for member in (cast.alice, cast.bob, cast.charlie)] == [404, 404, 404]
    assert asked(sign_in(cast.bob), item, "thumbnail") == 404
    assert [asked(sign_in(member), far) for member in (erin, cast.mallory)] == [404, 404]
    assert asked(sign_in(cast.bob), other) == 200


def test_a_sealed_picture_is_shown_again_only_when_no_item_with_it_is_quarantined(cast: Cast, harm: Question) -> None:
    (item,) = make.make_pictures(harm, 1)
    queue.quarantine(item.pk)
    assert not media.unseal(item.media_id)
    Item.objects.update(quarantined=False)
    assert media.unseal(item.media_id)
    assert media.unseal(item.media_id)


def test_a_sealed_picture_is_shown_to_nobody_even_when_its_item_is_not_quarantined(cast: Cast, harm: Question, sign_in: SignIn) -> None:
    (item,) = make.make_pictures(harm, 1)
    Media.objects.update(sealed_at=timezone.now())
    assert asked(sign_in(cast.bob), item) == 404


def test_nothing_in_the_address_tells_what_is_behind_it(cast: Cast, harm: Question) -> None:
    (item,) = make.make_pictures(harm, 1, metadata={"prompt": "something"})
    assert address(item) == f"/p/study/items/{item.pk}/picture"


def test_the_settings_of_a_folder_and_a_bucket(tmp_path: Path) -> None:
    kept: dict[str, Any] = storage(str(tmp_path))
    assert kept["OPTIONS"]["location"] == tmp_path
    options: dict[str, Any] = storage("s3://bucket/a/b/")["OPTIONS"]  # type: ignore[assignment]
    assert (options["bucket_name"], options["location"], options["default_acl"]) == ("bucket", "a/b", None)


def test_a_program_gets_the_picture_that_its_person_holds_and_no_other(cast: make.Cast) -> None:
    question = make.make_question(cast.project, "harm", kind="image")
    make.make_pictures(question, 3)
    alice = Program(cast.alice)
    held = [work["item_id"] for work in alice.post("questions/harm/work/").json()["work"]]
    shown = alice.get(f"items/{held[0]}/picture/")
    assert (shown.status_code, shown.headers["Content-Type"]) == (200, "image/png")
    assert shown.headers["Cache-Control"] == "private, no-store"
    (other,) = cast.project.items.exclude(pk__in=held)
    refused = alice.get(f"items/{other.pk}/picture/")
    assert (refused.status_code, refused.json()["code"]) == (404, "missing")
