"""Folders and ZIPs of pictures, good and hostile, through the real service: each file becomes an item, or a row with its reason."""

import io
import json
import stat
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from PIL import Image

from annotation import media, pictures, queue
from annotation.errors import Invalid
from annotation.models import Item, Media, Membership
from annotation.tasks import create_tasks
from curation.importing import archives, service
from curation.importing.mapping import Mapping
from curation.models import ImportBatch
from tests.cast import Cast, draw, make_pictures, make_question

Files = dict[str, bytes]
Bring = Callable[..., ImportBatch]
SignIn = Callable[[Membership], Client]
MANIFEST = "file,prompt,prompt_id,model\na.png,A calm river.,p1,m1\nsub/b.png,A calm river.,p1,m2\nc.jpg,A red barn.,p2,m1\n"


@pytest.fixture(autouse=True)
def _own_uploads(settings: Any, tmp_path: Path) -> None:
    settings.DATA = tmp_path / "data"


def pack(files: Files, **options: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def spread(files: Files, folder: Path) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.fixture
def bring(cast: Cast, tmp_path: Path) -> Bring:
    """bring(files or bytes of a ZIP, mapping=…, skip=…, as_folder=…): the import as it ended."""

    def bring(content: Files | bytes, mapping: Mapping | None = None, *, skip: bool = False, as_folder: bool = False) -> ImportBatch:
        path = tmp_path / "pictures.zip"
        if as_folder and isinstance(content, dict):
            path = spread(content, tmp_path / "pictures")
        else:
            path.write_bytes(pack(content) if isinstance(content, dict) else content)
        batch = service.take(cast.project, path, cast.bob.user)
        source = service.source_of(batch)
        mapping = mapping or service.guess(batch, service.columns(batch, source), source)
        service.start(batch, mapping, source=source, skip_bad_rows=skip)
        return service.run(batch.pk)

    return bring


@pytest.fixture
def three() -> Files:
    return {"manifest.csv": MANIFEST.encode(), "a.png": draw(1), "sub/b.png": draw(2), "c.jpg": draw(3, form="JPEG")}


def images() -> list[Item]:
    return list(Item.objects.filter(kind="image").select_related("origin", "media").order_by("pk"))


def refused(batch: ImportBatch) -> list[tuple[int, str, str]]:
    return [(problem["row"], problem["field"], problem["message"]) for problem in batch.problems]


def why(batch: ImportBatch) -> list[str]:
    return [problem["message"] for problem in batch.problems]


# ---------------------------------------------------------------- what comes in
@pytest.mark.parametrize("as_folder", [False, True])
def test_a_manifest_names_pictures_prompts_and_metadata(bring: Bring, three: Files, as_folder: bool) -> None:
    batch = bring(three, as_folder=as_folder)
    assert (batch.state, batch.rows, batch.created, batch.bad, batch.kind) == ("done", 3, 3, 0, "image")
    assert batch.format == ("folder" if as_folder else "zip")
    first, second, third = images()
    assert first.metadata == {"file": "a.png", "prompt_id": "p1", "model": "m1"}
    assert first.origin == second.origin != third.origin
    assert (first.origin.text, first.origin.kind, third.origin.text) == ("A calm river.", "text", "A red barn.")
    wanted = pictures.clean(three["a.png"])
    assert (first.media.pk, first.media.width, first.media.height, first.media.format) == (wanted.hash, 320, 240, "png")
    assert bytes(first.content_hash).hex() == first.media.pk
    assert third.media.format == "jpeg"
    assert media.open_picture(first.media).read() == wanted.data
    assert list(service.folder().iterdir()) == []


def test_a_prompt_carries_what_its_pictures_say_alike_and_may_be_benign(bring: Bring, cast: Cast) -> None:
    table = (
        "file,prompt,prompt_id,model,category,sensitive,serial\n"
        "a.png,A calm river.,p1,m1,nature,no,s1\nb.png,A calm river.,p1,m2,nature,,s2\n"
        "c.png,A fight.,p2,m1,people,yes,s3\nd.png,A fight.,p2,m1,people,no,s4\n"
        "e.png,A barn.,p3,m1,nature,TRUE,s5\nf.png,A barn.,p3,m1,nature,yes,s6\n"
    )
    files = {f"{name}.png": draw(number) for number, name in enumerate("abcdef")}
    assert bring({"manifest.csv": table.encode(), **files}).created == 6
    prompts = Item.objects.filter(kind="text").order_by("external_id")
    assert [item.metadata for item in prompts] == [
        {"prompt_id": "p1", "category": "nature", "sensitive": "no"},
        {"prompt_id": "p2", "category": "people", "model": "m1"},
        {"prompt_id": "p3", "category": "nature", "model": "m1", "sensitive": "TRUE"},
    ], "neither a file nor a number of one picture, and nothing on which they differ"
    for slug, otherwise in (("rough", True), ("mild", False)):
        question = make_question(cast.project, slug, sensitive=otherwise)
        create_tasks(question)
        by_prompt = dict(question.tasks.values_list("item__external_id", "sensitive"))
        assert by_prompt == {"origin:p1": False, "origin:p2": otherwise, "origin:p3": True}


def test_bringing_it_in_again_changes_nothing_also_packed_anew(bring: Bring, three: Files) -> None:
    bring(three)
    again = bring(pack(dict(reversed(three.items())), compression=zipfile.ZIP_DEFLATED))
    assert (again.state, again.created, again.unchanged) == ("done", 0, 3)
    assert (Item.objects.count(), Media.objects.count()) == (5, 3)


def test_an_id_column_keeps_items_known_whatever_the_archive(bring: Bring) -> None:
    bring({"manifest.csv": b"id,file\nx,a.png\n", "a.png": draw(1)})
    changed = bring({"manifest.csv": b"id,file\nx,a.png\n", "a.png": draw(2)})
    assert changed.state == "failed"
    assert why(changed) == ["The project already has an item 'x', with another picture. Nothing was overwritten."]


def test_equal_pictures_in_different_rows_are_items_of_their_own_and_one_file(bring: Bring) -> None:
    batch = bring({"manifest.csv": b"file\na.png\nb.png\na.png\n", "a.png": draw(1), "b.png": draw(1)})
    assert (batch.state, batch.created) == ("done", 3)
    assert len({item.media_id for item in images()}) == 1
    assert Media.objects.count() == 1


def test_without_a_manifest_each_picture_is_an_item_by_its_path(bring: Bring) -> None:
    batch = bring(
        {"a.png": draw(1), "dog/b.jpg": draw(2, form="JPEG"), "README.txt": b"hello", "__MACOSX/._a.png": b"x", ".DS_Store": b"x"}
    )
    assert (batch.state, batch.rows, batch.created) == ("done", 2, 2)
    assert [(item.external_id, item.metadata) for item in images()] == [("a.png", {}), ("dog/b.jpg", {"folder": "dog"})]


@pytest.mark.parametrize("name", ["manifest.jsonl", "metadata.jsonl"])
def test_json_lines_name_pictures_too(bring: Bring, name: str) -> None:
    rows = [{"file_name": "a.png", "text": "A calm river.", "nested": {"seed": 7}}, {"file_name": None, "text": "No picture here."}]
    batch = bring({name: "\n".join(json.dumps(row) for row in rows).encode(), "a.png": draw(1)})
    assert (batch.state, batch.created) == ("done", 2)
    with_file, without = images()
    assert (with_file.origin.text, with_file.metadata["nested"]) == ("A calm river.", {"seed": 7})
    assert (without.media, bytes(without.content_hash)) == (None, b"")


def test_a_hugging_face_folder_with_splits(bring: Bring) -> None:
    """imagefolder writes one metadata.csv a split, and names files from there."""
    batch = bring(
        {
            "train/metadata.csv": b"file_name,caption\na.png,A river.\n", "train/a.png": draw(1),
            "test/metadata.csv": b"file_name,caption\na.png,A barn.\n", "test/a.png": draw(2),
        },
        as_folder=True,
    )  # fmt: skip
    assert (batch.state, batch.created) == ("done", 2)
    assert {(item.metadata["split"], item.origin.text) for item in images()} == {("train", "A river."), ("test", "A barn.")}
    assert len({item.media_id for item in images()}) == 2


def test_the_only_table_is_the_manifest_and_a_bare_name_finds_its_file(bring: Bring) -> None:
    batch = bring({"labels.tsv": b"image\tlabel\na.png\tdog\n./pics/b.png\tcat\n", "pics/a.png": draw(1), "pics/b.png": draw(2)})
    assert (batch.state, [item.metadata["label"] for item in images()]) == ("done", ["dog", "cat"])


def test_a_manifest_that_lies_deeper_names_files_from_where_it_lies(bring: Bring) -> None:
    batch = bring({"set/manifest.csv": b"file\na.png\n", "set/a.png": draw(1), "a.png": draw(2)})
    (item,) = images()
    assert (batch.state, item.media_id) == ("done", pictures.clean(draw(1)).hash)


def test_two_tables_and_no_manifest_is_a_question(bring: Bring) -> None:
    with pytest.raises(Invalid, match=r"Which table names the pictures\? Call it manifest.csv. There are a.csv, b.csv."):
        bring({"a.csv": b"file\n", "b.csv": b"file\n", "x.png": draw(1)})


def test_what_was_changed_about_a_picture_stands_in_its_metadata(bring: Bring) -> None:
    bring({"big.png": draw(1, (2600, 1300))})
    assert images()[0].metadata == {"picture_note": "Shrunk from 2,600 x 1,300 pixels."}


def test_names_of_other_alphabets_are_found(bring: Bring) -> None:
    batch = bring({"manifest.csv": "file\nмост.png\nPont-d'été.png\n".encode(), "мост.png": draw(1), "Pont-d'e\u0301te\u0301.png": draw(2)})
    assert (batch.state, batch.created) == ("done", 2)


def test_images_can_be_asked_about_once_they_are_here(bring: Bring, cast: Cast, three: Files) -> None:
    bring({**three, "manifest.csv": (MANIFEST + ",A lost one.,p3,m1\n").encode()})
    harm = make_question(cast.project, "harm", kind="image")
    assert len(images()) == 4
    create_tasks(harm, [item.pk for item in images()])
    assert harm.tasks.count() == 3


# ---------------------------------------------------------------- bad rows
@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.png", b"<!DOCTYPE html><html></html>", "It is a web page (HTML), not a picture."),
        ("a.png", b"", "The file is empty."),
        ("a.svg", b"<svg onload='x()'/>", "It is an SVG drawing, which can carry scripts. Save it as PNG."),
        ("a.png", draw(1)[:700], "The PNG file ends in the middle of the picture."),
        ("a.zip", pack({"inner.png": draw(1)}), "It is a ZIP archive, not a picture."),
    ],
)
def test_a_bad_file_is_a_row_with_its_reason(bring: Bring, name: str, data: bytes, reason: str) -> None:
    files = {name: data, "good.png": draw(5)}
    batch = bring(files)
    assert (batch.state, batch.bad, refused(batch)) == ("failed", 1, [(1, "path", reason)])
    assert Item.objects.count() == 0
    assert Media.objects.count() == 0
    skipped = bring(files, skip=True)
    assert (skipped.state, skipped.created, skipped.bad, refused(skipped)) == ("done", 1, 1, [(1, "path", reason)])


def test_a_named_file_that_is_not_there_is_a_bad_row(bring: Bring) -> None:
    batch = bring({"manifest.csv": b"file\na.png\nlost.png\n../../etc/passwd\nC:\\x.png\n/a.png\n", "a.png": draw(1)}, skip=True)
    assert refused(batch) == [
        (2, "file", "There is no file 'lost.png' in the archive."),
        (3, "file", "Its path leads out of the archive."),
        (4, "file", "Its path leads out of the archive."),
        (5, "file", "Its path leads out of the archive."),
    ]
    assert batch.created == 1


def test_an_archive_whose_names_lead_out_of_it_writes_nowhere(bring: Bring, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    batch = bring({"../outside.png": draw(1), "/rooted.png": draw(2), "sub/../../up.png": draw(3), "good.png": draw(4)}, skip=True)
    assert (batch.created, batch.bad, set(why(batch))) == (1, 3, {"Its path leads out of the archive."})
    after = {path for path in tmp_path.rglob("*") if "data" not in path.parts}
    assert after - before == {tmp_path / "pictures.zip"}
    assert not (tmp_path.parent / "outside.png").exists()


def test_links_are_not_followed(bring: Bring, cast: Cast, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("good.png", draw(1))
    batch = bring(file.getvalue(), skip=True)
    assert (batch.created, why(batch)) == (1, ["It is a link or a device, not a file."])
    (tmp_path / "secret.png").write_bytes(draw(2))
    folder = spread({"b.png": draw(3)}, tmp_path / "linked")
    (folder / "a.png").symlink_to(tmp_path / "secret.png")
    (folder / "sub").symlink_to(tmp_path)
    taken = service.take(cast.project, folder, None)
    source = service.source_of(taken)
    service.start(taken, service.guess(taken, service.columns(taken, source), source), skip_bad_rows=True)
    done = service.run(taken.pk)
    assert (done.rows, done.created, why(done)) == (2, 1, ["It is a link or a device, not a file."])


def test_encrypted_files_say_so(bring: Bring) -> None:
    data = bytearray(pack({"a.png": draw(1)}))
    for at in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[at] |= 1
    batch = bring(bytes(data))
    assert why(batch) == ["It is encrypted. Bring it without a password."]


def test_two_files_of_one_name_are_neither(bring: Bring) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.png", draw(1))
        archive.writestr("b.png", draw(2))
    assert why(bring(file.getvalue().replace(b"b.png", b"a.png"))) == ["The archive has two files of this name."]


def test_a_member_that_is_damaged_is_a_bad_row(bring: Bring) -> None:
    data = bytearray(pack({"a.png": draw(1), "b.png": draw(2)}))
    data[200] ^= 0xFF
    batch = bring(bytes(data), skip=True)
    assert (batch.created, why(batch)) == (1, ["It cannot be read: the file is broken or is not there."])


def test_packed_in_a_way_that_is_not_read(bring: Bring) -> None:
    batch = bring(pack({"a.png": draw(1)}, compression=zipfile.ZIP_LZMA))
    assert why(batch) == ["It is packed in a way that is not read here. Pack it as an ordinary ZIP (deflate)."]


def test_a_picture_that_was_sealed_does_not_come_back(bring: Bring, cast: Cast, three: Files) -> None:
    (item,) = make_pictures(make_question(cast.project, "harm", kind="image"), 1)
    queue.quarantine(item.pk)
    batch = bring({"seen-before.png": draw(0), "new.png": draw(77)}, skip=True)
    assert (batch.created, refused(batch)) == (1, [(2, "path", "The picture was flagged as possibly illegal, and is shown to nobody.")])


# ---------------------------------------------------------------- bad archives
@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04 and no more",
        pack({"a.png": draw(1)})[:-30],
        pack({"a.png": draw(1)})[:300],
        b"PK\x05\x06" + b"\0" * 18,
        pack({"notes.txt": b"nothing to see"}),
        pack({"manifest.csv": b""}),
        pack({"manifest.csv": b"file\n"}),
        pack({"manifest.parquet": b"PAR1 not really"}),
        pack({"manifest.jsonl": b"\xff\xfe\x00"}),
    ],
)
def test_an_archive_that_is_none_is_refused_in_a_sentence(bring: Bring, content: bytes) -> None:
    try:
        batch = bring(content)
    except Invalid as error:
        assert error.message.endswith(".")  # noqa: PT017 - either way is a clean refusal
    else:
        assert batch.state == "failed"
        assert batch.error.endswith(".")
    assert Item.objects.count() == 0


def test_a_zip_bomb_ends_quickly_with_a_sentence(bring: Bring) -> None:
    """Two gigabytes of zeros in two megabytes; and the same with headers that lie about it."""
    zeros = b"\0" * (32 * 1024 * 1024)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number in range(40):
            archive.writestr(f"{number}.png", zeros)
    bomb = file.getvalue()
    began = time.monotonic()
    with pytest.raises(Invalid, match=r"says that it unpacks to 1,342,177,280\. It is not unpacked"):
        bring(bomb)
    lying = bytearray(bomb)
    for signature, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = 0
        while (start := lying.find(signature, start)) >= 0:
            lying[start + at : start + at + 4] = struct.pack("<I", 1000)
            start += 4
    batch = bring(bytes(lying))
    assert (batch.state, batch.bad) == ("failed", 40)
    assert time.monotonic() - began < 60


def test_what_an_archive_unpacks_to_is_counted_while_it_is_read(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 1)
    monkeypatch.setattr(archives, "MOST_RATIO", 1)
    loose = {f"{number}.bmp": draw(number, (64, 64), "BMP") for number in range(20)}
    folder_batch = bring(loose, as_folder=True)
    assert folder_batch.state == "done"
    with pytest.raises(Invalid, match="It is not unpacked"):
        bring(pack(loose, compression=zipfile.ZIP_DEFLATED))


def test_too_many_files_are_refused_before_they_are_listed(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_FILES", 2)
    with pytest.raises(Invalid, match="more than 2 files"):
        bring({f"{number}.png": draw(1) for number in range(3)})
    with pytest.raises(Invalid, match="more than 2 files"):
        bring({f"{number}.png": draw(1) for number in range(3)}, as_folder=True)
    monkeypatch.setattr(archives, "MOST_FILES", 250_000)
    end = bytearray(pack({"a.png": draw(1)}))
    at = end.rindex(b"PK\x05\x06")
    end[at + 12 : at + 16] = struct.pack("<I", 0xFFFFFF00)
    with pytest.raises(Invalid, match="more than 250,000 files"):
        bring(bytes(end))


def test_a_file_of_too_many_bytes_is_a_bad_row(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    batch = bring({"a.bmp": draw(1, (64, 64), "BMP")})
    assert why(batch) == ["The file has 12,342 bytes; the most is 1,000."]


def test_a_table_alone_brings_no_pictures(cast: Cast, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("file\na.png\n")
    with pytest.raises(Invalid, match="A table alone brings no pictures"):
        service.start(service.take(cast.project, path, None), Mapping(kind="image", file="file"))


def test_the_archive_that_vanished_is_said(bring: Bring, cast: Cast, tmp_path: Path, three: Files) -> None:
    path = tmp_path / "p.zip"
    path.write_bytes(pack(three))
    batch = service.take(cast.project, path, None)
    source = service.source_of(batch)
    service.start(batch, service.guess(batch, service.columns(batch, source), source))
    path.unlink()
    assert service.run(batch.pk).error == "The file is no longer there. Bring it in again."


def test_a_storage_that_fails_leaves_nothing_in_the_database(bring: Bring, three: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(picture: pictures.Picture) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(media, "store", full)
    with pytest.raises(OSError, match="No space"):
        bring(three)
    assert (Item.objects.count(), Media.objects.count()) == (0, 0)
    assert ImportBatch.objects.get().state == "failed"


# ---------------------------------------------------------------- page, API, command
def test_a_zip_is_uploaded_mapped_and_its_pictures_are_seen(
    cast: Cast, sign_in: SignIn, three: Files, django_capture_on_commit_callbacks: Any
) -> None:
    client = sign_in(cast.bob)
    upload = io.BytesIO(pack(three))
    upload.name = "set.zip"
    page = client.post("/p/study/imports/new/", {"file": upload}, follow=True).content.decode()
    assert 'name="file"' in page
    assert '<option value="file" selected>' in page
    assert '<option value="prompt" selected>' in page
    (batch,) = ImportBatch.objects.all()
    form = {
        "format": "csv", "encoding": "utf-8", "delimiter": ",", "quotes": "on", "kind": "image", "text": "-", "file": "file",
        "external_id": "-", "seed": "prompt", "prompt_id": "prompt_id", "origin": "-", "keep": "all",
    }  # fmt: skip
    client.post(f"/p/study/imports/{batch.pk}/", {**form, "do": "start"})
    assert service.run(batch.pk).state == "done"
    item = images()[0]
    shown = client.get(f"/p/study/items/{item.pk}/").content.decode()
    assert f'src="/p/study/items/{item.pk}/picture"' in shown
    assert "A calm river." in shown
    assert "is-covered" not in shown
    listed = client.get("/p/study/items/?contents=1").content.decode()
    assert f'src="/p/study/items/{item.pk}/thumbnail"' in listed
    assert "thumbnail" not in client.get("/p/study/items/").content.decode()
    answer = client.get(f"/api/v1/projects/study/items/{item.pk}/").json()
    assert answer["picture"] == {
        "hash": item.media_id, "format": "png", "width": 320, "height": 240, "bytes": item.media.size,
        "thumbnail": f"/api/v1/projects/study/items/{item.pk}/thumbnail/",
    }  # fmt: skip


def test_a_sensitive_picture_starts_covered_for_researchers_too(cast: Cast, sign_in: SignIn) -> None:
    (item,) = make_pictures(make_question(cast.project, "harm", kind="image", sensitive=True), 1)
    client = sign_in(cast.bob)
    assert "is-covered" in client.get(f"/p/study/items/{item.pk}/").content.decode()
    assert "thumb-cover is-covered" in client.get("/p/study/items/?contents=1").content.decode()
    Media.objects.update(sealed_at=timezone.now())
    assert "nobody sees it" in client.get(f"/p/study/items/{item.pk}/").content.decode()
    assert "/picture" not in client.get(f"/p/study/items/{item.pk}/").content.decode()
    assert client.get(f"/api/v1/projects/study/items/{item.pk}/").json()["picture"] is None


def test_the_api_takes_a_zip(cast: Cast, sign_in: SignIn, three: Files) -> None:
    client = sign_in(cast.bob)
    answer = client.post("/api/v1/projects/study/imports/?filename=set.zip", pack(three), content_type="application/octet-stream")
    assert answer.status_code == 202, answer.content
    assert (answer.json()["format"], answer.json()["kind"]) == ("zip", "image")
    assert service.run(answer.json()["id"]).created == 3
    broken = client.post("/api/v1/projects/study/imports/?filename=set.zip", b"PK\x03\x04", content_type="application/octet-stream")
    assert (broken.status_code, broken.json()["code"]) == (400, "invalid")


def test_the_command_takes_a_folder(cast: Cast, tmp_path: Path, three: Files, capsys: pytest.CaptureFixture[str]) -> None:
    folder = spread(three, tmp_path / "set")
    call_command("import_items", "study", str(folder))
    assert "3 rows: 3 new items, 0 unchanged, 0 bad." in capsys.readouterr().out
    assert (folder / "manifest.csv").exists()
    assert images()[0].origin.text == "A calm river."
    (folder / "a.png").write_bytes(b"<html>")
    with pytest.raises(CommandError, match="1 row is bad"):
        call_command("import_items", "study", str(folder), "--seed", "prompt", "--metadata")


def test_the_command_names_the_column_of_the_picture(cast: Cast, tmp_path: Path) -> None:
    spread({"manifest.csv": b"id,where,caption\nx,a.png,Sky\n", "a.png": draw(1)}, tmp_path / "set")
    with pytest.raises(CommandError, match="Say which column names the files"):
        call_command("import_items", "study", str(tmp_path / "set"))
    call_command("import_items", "study", str(tmp_path / "set"), "--picture", "where")
    (item,) = images()
    assert (item.external_id, item.origin.text, Image.open(media.open_picture(item.media)).size) == ("x", "Sky", (320, 240))
