"""Pictures as they are kept: decoded under bounds, and written anew. Nothing of the file that was brought gets through but its pixels.

What came may be hostile, broken or only strange. `clean` answers with a plain JPEG or PNG (upright, in sRGB, without metadata,
no larger than LARGEST_SIDE), or with a reason in words. The same bytes give the same picture under one version of Pillow.
"""

import contextlib
import hashlib
import io
import threading
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# Each format that is read, by name: Pillow looks no further, and threads need not wait for it to look.
from PIL import (
    BmpImagePlugin,
    ExifTags,
    GifImagePlugin,
    Image,
    ImageCms,
    JpegImagePlugin,
    MpoImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

READERS = (BmpImagePlugin, GifImagePlugin, JpegImagePlugin, MpoImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin)
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")  # MPO is a JPEG with more pictures behind the first
KINDS_READ = "JPEG, PNG, GIF, WebP, BMP or TIFF"
MOST_BYTES = 64 * 1024**2  # of one file
MOST_PIXELS = 50_000_000  # as the header says, before anything is decoded
LARGE_PIXELS = 8_000_000  # one picture above this is decoded at a time, so that threads do not add up their memory
LARGEST_SIDE = 2048  # of what is kept
THUMBNAIL_SIDE = 320
LARGEST_PNG = 6 * 1024**2  # above it a JPEG is kept
JPEG_QUALITY = 92
THUMBNAIL_QUALITY = 80
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_one_large = threading.Lock()
# What it would warn of, a caller is told as a reason.
warnings.filterwarnings("ignore", module=r"PIL\.")


class BadPicture(Exception):
    """These bytes do not become a picture; `reason` is a sentence that says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Picture:
    """A clean picture. `format` is jpeg or png; `thumbnail` is a JPEG; `note` says what was changed, where a viewer should know."""

    data: bytes
    format: str
    width: int
    height: int
    thumbnail: bytes
    note: str = ""

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the data, as 64 hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()


def clean(data: bytes) -> Picture:
    """The picture in these bytes, whatever its name said. Raises BadPicture.

    Of an animation the first frame; alpha lies on white; 16 bits are scaled to 8; CMYK and colour profiles become sRGB.
    """
    if not data:
        raise BadPicture("The file is empty.")
    if len(data) > MOST_BYTES:
        raise BadPicture(f"The file has {len(data):,} bytes; the most is {MOST_BYTES:,}.")
    with _opened(data) as opened, _one_large if opened.width * opened.height > LARGE_PIXELS else contextlib.nullcontext():
        lossy = opened.format in ("JPEG", "MPO") or (opened.format == "WEBP" and data[12:16] != b"VP8L")
        came = opened.size
        notes = [_frames(opened)]
        try:
            if opened.format == "PNG":
                _check_sums(data)
            image, problem = _upright(opened)
        except MemoryError:
            raise BadPicture("There is not enough memory to decode it.") from None
        except BadPicture:
            raise
        except Exception as error:  # noqa: BLE001 - decoders of hostile bytes fail in any way
            raise BadPicture(_broken(opened, error)) from None
    notes.append(problem)
    if max(came) > LARGEST_SIDE:
        notes.append(f"Shrunk from {came[0]:,} x {came[1]:,} pixels.")
    form = "jpeg" if lossy else "png"
    written = _written(image, form)
    if form == "png" and len(written) > LARGEST_PNG:
        form = "jpeg"
        written = _written(image, form)
        notes.append("Kept as JPEG: as PNG it would be large.")
    return Picture(written, form, *image.size, _thumbnail(image), " ".join(note for note in notes if note))


# ---------------------------------------------------------------- reading
def _opened(data: bytes) -> Image.Image:
    """The header is read, and nothing is decoded."""
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BadPicture(f"It says that it has far more pixels than the {MOST_PIXELS:,} that are read.") from None
    except Exception:  # noqa: BLE001 - readers of hostile headers fail in any way
        raise BadPicture(_what_it_is(data)) from None
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise BadPicture(f"It says that it has {width:,} x {height:,} pixels; the most is {MOST_PIXELS:,} in all.")
    return image


def _check_sums(data: bytes) -> None:
    """Pillow decodes a PNG over wrong checksums; here a damaged one is refused."""
    with Image.open(io.BytesIO(data), formats=("PNG",)) as again:
        again.verify()


def _frames(image: Image.Image) -> str:
    """Whether there is more than the first frame. How many there are is not asked: a file can be made to take hours over it."""
    more = "The first of several frames."
    try:
        image.seek(1)
    except EOFError:
        more = ""
    except Exception:  # noqa: BLE001 - whatever stands behind the first frame is not needed
        return more
    image.seek(0)
    return more


def _upright(opened: Image.Image) -> tuple[Image.Image, str]:
    """The pixels as L or RGB, upright, within LARGEST_SIDE and in sRGB; and what could not be done about its colours."""
    opened.draft(None, _within(opened.size, LARGEST_SIDE))  # a large JPEG is decoded at a half, a quarter or an eighth
    opened.load()
    profile = opened.info.get("icc_profile")
    turn = _TURNS.get(_orientation(opened))
    image = _even(opened)
    if max(image.size) > LARGEST_SIDE:
        image = image.resize(_within(image.size, LARGEST_SIDE), Image.Resampling.LANCZOS, reducing_gap=2.0)
    if turn is not None:
        image = image.transpose(turn)
    image = _on_white(image)
    image, problem = _in_srgb(image, profile)
    image.info = {}  # what is written next must not find comments or profiles there
    return image, problem


def _orientation(image: Image.Image) -> int:
    """After loading: Pillow turns a TIFF by itself, and then says 1."""
    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # noqa: BLE001 - broken EXIF turns nothing
        return 1


def _even(image: Image.Image) -> Image.Image:
    """In a mode that can be resized: one number of 8 bits per channel, in L, LA, RGB, RGBA, CMYK or what else has three."""
    if image.mode.startswith("I;16"):
        return _scaled(image, 0, 65_535)
    if image.mode in ("I", "F"):
        return _scaled(image)
    if image.mode in ("1", "P", "PA", "L", "RGB"):
        grey = image.mode in ("1", "L")
        alpha = image.has_transparency_data and image.mode != "1"
        return image.convert(("LA" if alpha else "L") if grey else ("RGBA" if alpha else "RGB"))
    plain = {"La": "LA", "RGBa": "RGBA", "RGBX": "RGB", "HSV": "RGB", "YCbCr": "RGB"}
    return image.convert(plain[image.mode]) if image.mode in plain else image


def _scaled(image: Image.Image, low: float | None = None, high: float | None = None) -> Image.Image:
    """Numbers of 16 or 32 bits as 8, spread from `low` to `high`: by default their own smallest and largest. Nothing is clipped."""
    values = np.asarray(image)
    finite = values[np.isfinite(values)] if image.mode == "F" else values
    if low is None or high is None:
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    scale = 255 / (high - low) if high > low else 0.0
    with np.errstate(all="ignore"):
        spread = np.nan_to_num((values.astype(np.float32) - low) * scale, nan=0, posinf=255, neginf=0)
    return Image.fromarray(np.rint(np.clip(spread, 0, 255)).astype(np.uint8))


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode not in ("LA", "RGBA"):
        return image
    ground = Image.new(image.mode.removesuffix("A"), image.size, "white")
    ground.paste(image.convert(ground.mode), mask=image.getchannel("A"))
    return ground


def _in_srgb(image: Image.Image, profile: bytes | None) -> tuple[Image.Image, str]:
    """By its colour profile, where it has one that fits and can be read."""
    mode = "L" if image.mode == "L" else "RGB"
    if profile and image.mode in ("L", "RGB", "CMYK", "LAB"):
        try:
            of = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, of, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if converted is not None:  # which it is only when converting in place
                return converted.convert(mode), ""
        except Exception:  # noqa: BLE001 - a profile may be hostile too
            return image.convert(mode), "Its colour profile could not be used."
    return image.convert(mode), ""


# ---------------------------------------------------------------- writing
def _within(size: tuple[int, int], side: int) -> tuple[int, int]:
    """The size shrunk to fit a square, in its proportions, never below one pixel."""
    scale = min(1.0, side / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _written(image: Image.Image, form: str) -> bytes:
    file = io.BytesIO()
    if form == "jpeg":
        image.save(file, "JPEG", quality=JPEG_QUALITY)
    else:
        image.save(file, "PNG")
    return file.getvalue()


def _thumbnail(image: Image.Image) -> bytes:
    small = image.resize(_within(image.size, THUMBNAIL_SIDE), Image.Resampling.HAMMING)  # half of what LANCZOS costs
    file = io.BytesIO()
    small.save(file, "JPEG", quality=THUMBNAIL_QUALITY)
    return file.getvalue()


# ---------------------------------------------------------------- reasons
_BEGINNINGS = {
    b"\xff\xd8": "JPEG", b"\x89PNG": "PNG", b"GIF8": "GIF", b"RIFF": "WebP", b"BM": "BMP", b"II*\0": "TIFF", b"MM\0*": "TIFF",
    b"II+\0": "TIFF", b"MM\0+": "TIFF",
}  # fmt: skip
_OTHERS = {
    b"PK": "a ZIP archive", b"%PDF": "a PDF document", b"\x1f\x8b": "a gzip archive", b"\x7fELF": "a program", b"MZ": "a program",
    b"{": "JSON", b"#!": "a script",
}  # fmt: skip


def _what_it_is(data: bytes) -> str:
    """Why it could not be opened, as far as its first bytes tell."""
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if b"<svg" in start:
        return "It is an SVG drawing, which can carry scripts. Save it as PNG."
    if start.startswith(b"<"):
        page = any(tag in start for tag in (b"<html", b"<!doctype html", b"<script", b"<head", b"<body"))
        return f"It is {'a web page (HTML)' if page else 'XML'}, not a picture."
    if data[4:8] == b"ftyp":
        return f"It is a HEIC, AVIF or video file, which is not read here. Save it as {KINDS_READ}."
    for beginning, name in _BEGINNINGS.items():
        if data.startswith(beginning):
            return f"It begins like a {name} file, but is broken or of a variety that cannot be read."
    for beginning, name in _OTHERS.items():
        if data.startswith(beginning):
            return f"It is {name}, not a picture."
    return f"It is not a picture of a kind that is read here: {KINDS_READ}."


def _broken(image: Image.Image, error: Exception) -> str:
    if isinstance(error, EOFError) or "truncated" in str(error).lower():
        return f"The {image.format} file ends in the middle of the picture."
    return f"The {image.format} file is broken: its picture cannot be decoded."
