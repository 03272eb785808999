"""Real pictures: 200 of CIFAR-10 with the votes on them, and 25 photos in many modes."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from annotation import media
from annotation.models import Item, Media, Project, Vote
from curation.importing import service
from tests import cast as make
from tests.real_data.test_image_votes import MAPPING
from tests.real_data.votes import bring, labels


@pytest.fixture
def project(db: None, data: Path) -> Project:
    return make.make_project("images")


def test_cifar_comes_in_with_its_pictures_and_their_votes_at_once(project: Project, data: Path, facts: dict[str, Any]) -> None:
    """The folder as it lies there: one table, which names files by their bare names; they lie a folder deeper."""
    said = facts["images_a"]
    taken = service.take(project, data / "images", None)
    source = service.source_of(taken)
    guessed = service.guess(taken, service.columns(taken, source), source)
    assert (guessed.kind, guessed.file, guessed.external_id) == ("image", "file", "id")
    service.discard(taken)

    mapping = type(MAPPING)(**{**vars(MAPPING), "file": "file"})
    done = bring(project, data / "images", mapping)
    assert (done.format, done.rows, done.created, done.bad) == ("folder", said["images"], said["images"], 0)
    items = list(Item.objects.filter(project=project).select_related("media"))
    assert {(item.media.width, item.media.height, item.media.format) for item in items if item.media} == {(32, 32, "jpeg")}
    assert sum(item.media is not None for item in items) == said["images"]
    assert Vote.objects.filter(question__slug="class").count() == said["votes"]
    assert labels(project, "animal")["animal"] == said["majority_animal"]
    assert labels(project, "dog")["dog"] == said["proxy_harm_dog"]["harmful"]
    again = bring(project, data / "images", mapping)
    assert (again.created, again.unchanged) == (0, said["images"])


def test_photos_in_many_modes_come_in_and_the_one_that_cannot_be_read_says_why(project: Project, data: Path) -> None:
    """RGB, grey, alpha, a palette, an animation; and a TIFF of a kind that Pillow does not open."""
    taken = service.take(project, data / "images" / "photos", None)
    source = service.source_of(taken)
    mapping = service.guess(taken, service.columns(taken, source), source)
    service.start(taken, mapping, source=source, skip_bad_rows=True)
    done = service.run(taken.pk)
    assert (done.state, done.rows, done.created, done.bad) == ("done", 25, 24, 1)
    assert done.problems == [
        {"row": 18, "field": "path", "message": "It begins like a TIFF file, but is broken or of a variety that cannot be read."}
    ]
    kept = {item.external_id: item for item in Item.objects.filter(project=project).select_related("media")}
    assert "multipage_rgb.tif" not in kept
    assert kept["no_time_for_that_tiny.gif"].metadata == {"picture_note": "The first of several frames."}
    with Image.open(data / "images" / "photos" / "astronaut.png") as came, media.open_picture(_media(kept["astronaut.png"])) as file:
        stored = Image.open(io.BytesIO(file.read()))
        assert stored.tobytes() == came.convert("RGB").tobytes()
    for item in kept.values():
        shown = _media(item)
        with media.open_thumbnail(shown) as file:
            small = Image.open(io.BytesIO(file.read()))
        assert max(small.size) == min(320, max(shown.width, shown.height))
        assert not small.getexif()


def _media(item: Item) -> Media:
    assert item.media is not None
    return item.media
