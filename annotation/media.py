"""Pictures in the storage, once per content, and who may see one. The queue seals what is flagged as possibly illegal.

A file's name is its hash, so writing it again changes nothing, and one that no row names does no harm. Files are
written before their row: a row never names a file that was not there.
"""

import os
import uuid
from pathlib import Path
from typing import IO, Any

from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, default_storage

from annotation import sql
from annotation.errors import Missing
from annotation.models import Media, Membership, Role
from annotation.pictures import Picture

CONTENT_TYPES = {"jpeg": "image/jpeg", "png": "image/png"}


class Folder(FileSystemStorage):
    """A folder in which a file is whole or not there, however the process ends. Names are never made up: they are contents."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:  # noqa: ARG002 - Django's signature
        return name

    def _save(self, name: str, content: "File[Any]") -> str:
        path = Path(self.path(name))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        making = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.making")
        try:
            with making.open("wb") as file:
                making.chmod(0o600)
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            making.replace(path)
        finally:
            making.unlink(missing_ok=True)
        return name


# ---------------------------------------------------------------- keeping
def store(picture: Picture) -> None:
    """Write its files, unless they are there. Any number of threads and processes may do so at once; the database is not asked."""
    for name, data in ((_name(picture.hash, picture.format), picture.data), (_thumbnail_name(picture.hash), picture.thumbnail)):
        if not default_storage.exists(name):
            default_storage.save(name, ContentFile(data))


def keep(picture: Picture) -> Media:
    """The stored picture; the same content is stored once."""
    store(picture)
    media, _ = Media.objects.get_or_create(
        hash=picture.hash,
        defaults={"format": picture.format, "width": picture.width, "height": picture.height, "size": len(picture.data)},
    )
    return media


def open_picture(media: Media) -> IO[bytes]:
    """Its bytes. Raises Missing when the storage has lost them."""
    return _open(_name(media.pk, media.format))


def open_thumbnail(media: Media) -> IO[bytes]:
    """A small JPEG of it. Raises Missing when the storage has lost it."""
    return _open(_thumbnail_name(media.pk))


def _open(name: str) -> IO[bytes]:
    try:
        return default_storage.open(name)
    except FileNotFoundError:
        raise Missing("The file of this picture is missing from the storage.", code="file_missing") from None


def _name(digest: str, form: str) -> str:
    return f"pictures/{digest[:2]}/{digest[2:4]}/{digest}.{form}"


def _thumbnail_name(digest: str) -> str:
    return f"thumbnails/{digest[:2]}/{digest[2:4]}/{digest}.jpeg"


# ---------------------------------------------------------------- seeing
def visible(member: Membership, item_id: int) -> Media:
    """The picture of an item that this member may see now. Raises Missing, in the same words whatever the reason.

    Researchers may see every picture of their project that is neither quarantined nor sealed. Who labels or rules may see
    what they hold or have answered, under a consent that is in force.
    """
    found = sql.one(
        _FOR_RESEARCHERS if member.role == Role.RESEARCHER else _FOR_VOTERS, item=item_id, member=member.pk, project=member.project_id
    )
    if found is None:
        raise Missing("There is no such picture, or you may not see it now.")
    return Media(**found)


def unseal(digest: str) -> bool:
    """Let a sealed picture be shown again, unless an item with it is quarantined somewhere. Returns whether it can be shown."""
    sql.rows(_UNSEAL, hash=digest)
    return sql.one("SELECT hash FROM annotation_media WHERE hash = %(hash)s AND sealed_at IS NULL", hash=digest) is not None


_UNSEAL = """
    UPDATE annotation_media SET sealed_at = NULL
    WHERE hash = %(hash)s AND NOT EXISTS (SELECT FROM annotation_item AS item WHERE item.media_hash = %(hash)s AND item.quarantined)
    RETURNING hash
"""
_FOR_RESEARCHERS = """
    SELECT media.hash, media.format, media.width, media.height, media.size
    FROM annotation_item AS item JOIN annotation_media AS media ON media.hash = item.media_hash AND media.sealed_at IS NULL
    WHERE item.id = %(item)s AND item.project_id = %(project)s AND NOT item.quarantined
"""
# All is counted, and none found first: what a member holds looks the same from outside, be it a task, a check or a repeat.
_FOR_VOTERS = f"""
    {_FOR_RESEARCHERS}
      AND (
        NOT EXISTS (SELECT FROM annotation_contentwarning AS warning WHERE warning.project_id = item.project_id)
        OR EXISTS (
            SELECT FROM annotation_consent AS consent
            JOIN annotation_contentwarning AS warning ON warning.id = consent.warning_id
            WHERE consent.member_id = %(member)s AND consent.ended_at IS NULL
              AND warning.version = (SELECT max(version) FROM annotation_contentwarning AS latest WHERE latest.project_id = item.project_id)
        )
      )
      AND 0 < (
        SELECT sum(
            (SELECT count(*) FROM annotation_lease AS lease
             WHERE lease.task_id = task.id AND lease.member_id = %(member)s AND NOT lease.lapsed AND lease.expires_at > now())
          + (SELECT count(*) FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = %(member)s)
          + (SELECT count(*) FROM annotation_adjudication AS ruling
             WHERE ruling.task_id = task.id AND ruling.member_id = %(member)s AND ruling.ruled_at IS NOT NULL)
          + (SELECT count(*) FROM annotation_knownanswer AS known JOIN annotation_check AS given ON given.known_id = known.id
             WHERE known.task_id = task.id AND given.member_id = %(member)s
               AND (given.choice_id IS NOT NULL OR given.answered_at IS NULL AND given.expires_at > now()))
        ) FROM annotation_task AS task WHERE task.item_id = item.id
      )
"""  # noqa: S608 - our own words
