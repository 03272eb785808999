"""A value that does not parse is an error with the variable's name, never a silent default."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


def test_a_missing_text_without_a_default_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_X", raising=False)
    with pytest.raises(ImproperlyConfigured, match="ASSAY_X is not set"):
        env.text("ASSAY_X")
    assert env.text("ASSAY_X", "other") == "other"
    assert env.text("ASSAY_X", "") == ""


def test_blank_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_X", "  ")
    with pytest.raises(ImproperlyConfigured):
        env.text("ASSAY_X")


@pytest.mark.parametrize(
    ("value", "meant"), [("1", True), ("True", True), ("yes", True), ("on", True), ("0", False), ("no", False), ("OFF", False)]
)
def test_a_flag_is_on_or_off(monkeypatch: pytest.MonkeyPatch, value: str, meant: bool) -> None:
    monkeypatch.setenv("ASSAY_X", value)
    assert env.flag("ASSAY_X", not meant) is meant


def test_a_flag_that_is_neither_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_X", "maybe")
    with pytest.raises(ImproperlyConfigured, match="ASSAY_X is 'maybe'"):
        env.flag("ASSAY_X", True)


@pytest.mark.parametrize("value", ["ten", "1.5", "-1"])
def test_a_number_is_whole_and_within_bounds(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ASSAY_X", value)
    with pytest.raises(ImproperlyConfigured, match="ASSAY_X"):
        env.number("ASSAY_X", 3)


def test_a_choice_is_one_of_those_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_X", "LOUD")
    with pytest.raises(ImproperlyConfigured, match="Use one of INFO, ERROR"):
        env.one_of("ASSAY_X", "INFO", ["INFO", "ERROR"])
    monkeypatch.delenv("ASSAY_X")
    assert env.one_of("ASSAY_X", "INFO", ["INFO", "ERROR"]) == "INFO"


def test_words_drop_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_X", "a, b ,,")
    assert env.words("ASSAY_X") == ["a", "b"]


def test_a_folder_is_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_X", "here")
    assert env.folder("ASSAY_X", Path("/")) == Path.cwd() / "here"
