"""Where pictures are kept: a folder, or a bucket that speaks S3. One setting names it."""

from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def storage(place: str) -> dict[str, object]:
    """Django's storage for a folder's path or for `s3://bucket/prefix`.

    Key, secret, region and endpoint of a bucket are what boto3 finds in the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, or a role of the machine.
    """
    if "://" not in place:
        return {"BACKEND": "annotation.media.Folder", "OPTIONS": {"location": Path(place).expanduser().resolve(), "base_url": None}}
    parts = urlsplit(place)
    if parts.scheme != "s3" or not parts.hostname or parts.query or parts.username:
        raise ImproperlyConfigured(f"ASSAY_MEDIA is {place!r}. Use a folder's path or s3://bucket/prefix.")
    # Objects get no ACL of their own: they are as private as the bucket, and nobody is ever sent to their address.
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": parts.netloc, "location": parts.path.strip("/"), "default_acl": None, "file_overwrite": True,
            "object_parameters": {"CacheControl": "private, no-store"},
        },
    }  # fmt: skip
