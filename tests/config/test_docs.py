"""The docs say what is true: every variable, command, target, file and link they name is there, and none is left out."""

import ast
import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = ("config", "annotation", "scoring", "curation", "workers", "tests/browser.py")
READERS = ("text", "flag", "number", "words", "folder", "one_of", "get")


def variables_in_code() -> set[str]:
    """The names that config.env's readers and os.environ are asked for."""
    found = set()
    for place in CODE:
        paths = (ROOT / place).rglob("*.py") if (ROOT / place).is_dir() else [ROOT / place]
        for path in paths:
            for node in ast.walk(ast.parse(path.read_text())):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS and node.args):
                    continue
                if isinstance(node.args[0], ast.Constant) and re.search(r"\b(env|environ)$", ast.unparse(node.func.value)):
                    found.add(str(node.args[0].value))
    return found


def test_operators_find_every_variable_and_no_other() -> None:
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "docs" / "operators.md").read_text(), re.MULTILINE))
    assert listed == variables_in_code()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    for command in re.findall(r"manage\.py ([a-z_]+)", text):
        assert command in get_commands(), f"manage.py {command}"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"make {target}"
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_pictures_stay_small() -> None:
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < 200_000, picture.name
