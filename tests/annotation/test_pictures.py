"""Files of every kind, good, strange and hostile: each ends as a clean picture, or with its reason."""

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from annotation import pictures
from annotation.pictures import BadPicture, Picture, clean

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def written(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def two_halves(mode: str = "RGB", size: tuple[int, int] = (60, 40)) -> Image.Image:
    """The left half red, the right half blue."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image.convert(mode)


def seen(picture: Picture) -> Image.Image:
    image = Image.open(io.BytesIO(picture.data))
    image.load()
    assert image.format == picture.format.upper()
    assert image.size == (picture.width, picture.height)
    return image


def close(colour: Any, wanted: tuple[int, ...], by: int = 12) -> bool:
    return all(abs(one - other) <= by for one, other in zip(colour, wanted, strict=True))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_header(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def reason(data: bytes) -> str:
    with pytest.raises(BadPicture) as refused:
        clean(data)
    return refused.value.reason


# ---------------------------------------------------------------- what comes through
@pytest.mark.parametrize(
    ("form", "kept"), [("JPEG", "jpeg"), ("PNG", "png"), ("GIF", "png"), ("WEBP", "jpeg"), ("BMP", "png"), ("TIFF", "png")]
)
def test_each_format_that_is_read_comes_out_as_jpeg_or_png(form: str, kept: str) -> None:
    picture = clean(written(two_halves(), form))
    image = seen(picture)
    assert (picture.format, image.size, image.mode, picture.note) == (kept, (60, 40), "RGB", "")
    assert close(image.getpixel((10, 20)), RED)
    assert close(image.getpixel((50, 20)), BLUE)


def test_a_lossless_webp_stays_lossless() -> None:
    assert clean(written(two_halves(), "WEBP", lossless=True)).format == "png"


def test_the_same_bytes_give_the_same_picture_and_its_hash_is_that_of_what_is_kept() -> None:
    data = written(two_halves(), "JPEG")
    first, second = clean(data), clean(data)
    assert (first.data, first.thumbnail, first.hash) == (second.data, second.thumbnail, second.hash)
    assert len(first.hash) == 64
    assert first.hash != clean(written(two_halves(size=(61, 40)), "JPEG")).hash


def test_nothing_of_the_file_gets_through_but_its_pixels() -> None:
    exif = Image.Exif()
    exif[0x010E] = "SECRET description"
    exif.get_ifd(0x8825)[1] = "N"  # GPS
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    jpeg = written(two_halves(), "JPEG", exif=exif, comment=b"SECRET comment", xmp=b"<x:xmpmeta>SECRET xmp</x:xmpmeta>")
    text = PngImagePlugin.PngInfo()
    text.add_text("Author", "SECRET author")
    text.add_itxt("Note", "SECRET note", zip=False)
    png = written(two_halves(), pnginfo=text, exif=exif)
    for data in (jpeg, png, jpeg + b"SECRET tail", png + b"SECRET tail"):
        assert b"SECRET" in data
        picture = clean(data)
        assert b"SECRET" not in picture.data + picture.thumbnail
        image = seen(picture)
        assert not image.getexif()
        assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_a_file_that_is_also_a_script_loses_the_script() -> None:
    polyglot = written(two_halves(), "GIF") + b"/*<script>alert(1)</script>*/=1;PK\x03\x04"
    picture = clean(polyglot)
    assert b"script" not in picture.data
    assert b"PK\x03\x04" not in picture.data


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied(form: str, orientation: int) -> None:
    """A camera held on its side writes the turn into the file; here the pixels are turned as the tag says."""
    upright = two_halves()
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # the transpose that a viewer has to undo
    stored = upright if orientation == 1 else upright.transpose(Image.Transpose(undo[orientation]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = seen(clean(written(stored, form, exif=exif)))
    assert image.size == (60, 40)
    assert close(image.getpixel((10, 20)), RED, 30)
    assert close(image.getpixel((50, 20)), BLUE, 30)


def test_broken_exif_turns_nothing() -> None:
    assert clean(written(two_halves(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff\x01")).width == 60


@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_an_animation_the_first_frame_is_kept_and_that_is_noted(form: str) -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in (RED, GREEN, BLUE)]
    picture = clean(written(frames[0], form, save_all=True, append_images=frames[1:]))
    assert close(seen(picture).getpixel((10, 10)), RED)
    assert picture.note == "The first of several frames."


def test_sixteen_bits_are_scaled_and_never_clipped() -> None:
    ramp = np.linspace(0, 65_535, 256).astype(np.uint16)
    image = Image.fromarray(np.tile(ramp, (8, 1)))
    for form in ("PNG", "TIFF"):
        out = np.asarray(seen(clean(written(image, form))))
        assert (out[0, 0], out[0, 128], out[0, 255]) == (0, 128, 255)
        assert np.all(np.diff(out[0].astype(int)) >= 0)


def test_numbers_of_32_bits_are_spread_over_what_can_be_shown() -> None:
    values = np.array([[-2.0, 0.0, 2.0, np.nan]], np.float32)
    out = np.asarray(seen(clean(written(Image.fromarray(values), "TIFF"))))
    assert out.tolist() == [[0, 128, 255, 0]]
    flat = Image.fromarray(np.full((3, 3), 7, np.int32))
    assert seen(clean(written(flat, "TIFF"))).getpixel((1, 1)) == 0


@pytest.mark.parametrize("mode", ["1", "L"])
def test_black_and_white_stays_so(mode: str) -> None:
    image = Image.new(mode, (16, 16), 255)
    image.paste(0, (0, 0, 8, 16))
    out = seen(clean(written(image)))
    assert (out.mode, out.getpixel((2, 2)), out.getpixel((12, 2))) == ("L", 0, 255)


def test_alpha_lies_on_white() -> None:
    clear = Image.new("RGBA", (20, 20), (255, 0, 0, 0))
    clear.paste((0, 0, 255, 255), (10, 0, 20, 20))
    half = Image.new("LA", (20, 20), (0, 128))
    palette = Image.new("P", (20, 20), 1)
    palette.putpalette([*WHITE, *RED, *BLUE])
    palette.paste(2, (10, 0, 20, 20))
    keyed = two_halves(size=(20, 20))
    for data in (
        written(clear),
        written(clear, "WEBP", lossless=True),
        written(palette, transparency=1),
        written(palette, "GIF", transparency=1),
        written(keyed, transparency=RED),
    ):
        out = seen(clean(data))
        assert out.mode == "RGB"
        assert out.getpixel((3, 3)) == WHITE
        assert out.getpixel((16, 3)) == BLUE
    grey = seen(clean(written(half)))
    assert (grey.mode, grey.getpixel((5, 5))) == ("L", 127)


def test_cmyk_comes_out_in_its_colours() -> None:
    """Red is no cyan, all magenta, all yellow. Adobe writes it inverted and says so; Pillow writes it so too."""
    image = Image.new("CMYK", (32, 32), (0, 255, 255, 0))
    for form in ("JPEG", "TIFF"):
        out = seen(clean(written(image, form)))
        assert (out.mode, close(out.getpixel((16, 16)), RED)) == ("RGB", True)


def swapped_profile() -> bytes:
    """An ICC profile by hand, in which the file's red is what sRGB calls green, and the other way about."""
    space = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    count = struct.unpack(">I", space[128:132])[0]
    table = bytearray(space)
    for index in range(count):
        at = 132 + 12 * index
        name = bytes(table[at : at + 4])
        table[at : at + 4] = {b"rXYZ": b"gXYZ", b"gXYZ": b"rXYZ"}.get(name, name)
    return bytes(table)


def test_a_colour_profile_is_converted_to_srgb_and_dropped() -> None:
    for form in ("PNG", "JPEG"):
        out = seen(clean(written(Image.new("RGB", (32, 32), RED), form, icc_profile=swapped_profile())))
        assert close(out.getpixel((16, 16)), GREEN)
        assert "icc_profile" not in out.info


def test_a_profile_that_is_nonsense_is_noted_and_the_colours_stay() -> None:
    picture = clean(written(Image.new("RGB", (32, 32), RED), icc_profile=b"nonsense" * 40))
    assert picture.note == "Its colour profile could not be used."
    assert seen(picture).getpixel((16, 16)) == RED


def test_large_pictures_are_shrunk_and_that_is_noted() -> None:
    for form in ("JPEG", "PNG"):
        picture = clean(written(two_halves(size=(5000, 2500)), form))
        assert (picture.width, picture.height) == (2048, 1024)
        assert picture.note == "Shrunk from 5,000 x 2,500 pixels."
    line = clean(written(Image.new("L", (9000, 1), 7)))
    assert (line.width, line.height) == (2048, 1)


def test_a_png_that_would_be_large_is_kept_as_jpeg() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (1500, 1500, 3), np.uint8)
    picture = clean(written(Image.fromarray(noise)))
    assert (picture.format, picture.note) == ("jpeg", "Kept as JPEG: as PNG it would be large.")


def test_the_thumbnail_is_a_small_jpeg() -> None:
    for image, size in ((two_halves(size=(1000, 500)), (320, 160)), (Image.new("1", (10, 10)), (10, 10))):
        small = Image.open(io.BytesIO(clean(written(image)).thumbnail))
        assert (small.format, small.size) == ("JPEG", size)


# ---------------------------------------------------------------- what is refused, and why
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "The file is empty."),
        (b"<!DOCTYPE html><html><script>alert(1)</script></html>", "It is a web page (HTML), not a picture."),
        (b"\xef\xbb\xbf  <HTML>hello", "It is a web page (HTML), not a picture."),
        (b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="x()"/>', "It is an SVG drawing, which can carry scripts."),
        (b"<?xml version='1.0'?><note/>", "It is XML, not a picture."),
        (b"PK\x03\x04" + b"\0" * 40, "It is a ZIP archive, not a picture."),
        (b"%PDF-1.7 ...", "It is a PDF document, not a picture."),
        (b"\x00\x00\x00\x18ftypheic" + b"\0" * 40, "It is a HEIC, AVIF or video file"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "It begins like a PNG file, but is broken"),
        (b"\xff\xd8\xff\xe0 no more", "It begins like a JPEG file, but is broken"),
        (b"just some words", "It is not a picture of a kind that is read here: JPEG, PNG, GIF, WebP, BMP or TIFF."),
        (bytes(range(256)) * 40, "It is not a picture of a kind that is read here"),
    ],
)
def test_what_is_no_picture_is_told_in_words(data: bytes, why: str) -> None:
    assert reason(data).startswith(why)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_half_a_picture_is_none(form: str, share: float) -> None:
    noise = Image.fromarray(np.random.default_rng(2).integers(0, 256, (90, 120, 3), np.uint8))
    whole = written(noise, form)
    assert f"{'WebP' if form == 'WEBP' else form} file" in reason(whole[: int(len(whole) * share)]).replace("WEBP", "WebP")


def test_a_damaged_png_is_refused() -> None:
    data = bytearray(written(two_halves(size=(300, 300))))
    at = data.index(b"IDAT") + 40
    data[at] ^= 0xFF
    assert reason(bytes(data)) == "The PNG file is broken: its picture cannot be decoded."


def test_a_decompression_bomb_is_refused_by_what_its_header_says() -> None:
    """A hundred bytes that say they are a picture of ten thousand million pixels; and one that is just too large."""
    end = chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    assert reason(png_header(100_000, 100_000) + end).startswith("It says that it has far more pixels than the 50,000,000")
    assert reason(png_header(8_000, 8_000) + end) == "It says that it has 8,000 x 8,000 pixels; the most is 50,000,000 in all."


def test_a_text_chunk_that_unpacks_to_a_gigabyte_is_refused() -> None:
    bomb = b"Comment\0\0" + zlib.compress(b"\0" * (64 * 1024 * 1024), 9)
    data = png_header(1, 1) + chunk(b"zTXt", bomb) + chunk(b"IDAT", zlib.compress(b"\0\0\0\0")) + chunk(b"IEND", b"")
    try:
        picture = clean(data)
    except BadPicture:
        return
    assert len(picture.data) < 1000


def test_too_many_bytes_are_refused_before_anything_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_BYTES", 1000)
    assert reason(written(two_halves(size=(400, 400)), "BMP")) == "The file has 480,054 bytes; the most is 1,000."


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_bytes_it_is_a_picture_or_a_reason(seed: int) -> None:
    """Good files with bytes changed at random."""
    random = np.random.default_rng(seed)
    form = ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"][seed % 6]
    data = bytearray(written(two_halves(), form))
    for _ in range(int(random.integers(1, 30))):
        data[int(random.integers(len(data)))] = int(random.integers(256))
    try:
        picture = clean(bytes(data))
    except BadPicture:
        return
    assert max(seen(picture).size) <= pictures.LARGEST_SIDE


def test_a_file_of_very_many_directories_costs_no_more_than_its_first() -> None:
    """Counting the frames of a TIFF reads every directory, over and over: some megabytes would take a worker for hours."""
    first = bytearray(written(Image.new("RGB", (8, 8), RED), "TIFF"))
    count = 20_000
    start = len(first) + len(first) % 2
    first += bytes(start - len(first))
    directory = int.from_bytes(first[4:8], "little")
    entries = int.from_bytes(first[directory : directory + 2], "little")
    first[directory + 2 + 12 * entries : directory + 6 + 12 * entries] = start.to_bytes(4, "little")
    for number in range(count):
        following = start + 18 * (number + 1) if number < count - 1 else 0
        first += (1).to_bytes(2, "little") + (256).to_bytes(2, "little") + (3).to_bytes(2, "little") + (1).to_bytes(4, "little")
        first += (8).to_bytes(4, "little") + following.to_bytes(4, "little")
    image = Image.open(io.BytesIO(bytes(first)))
    read = 0
    seek = image._seek  # type: ignore[attr-defined]

    def counted(frame: int) -> None:
        nonlocal read
        read += 1
        seek(frame)

    image._seek = counted  # type: ignore[attr-defined]
    assert pictures._frames(image) == "The first of several frames."
    assert read <= 2
