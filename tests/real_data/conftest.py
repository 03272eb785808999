"""Public data beside the repository, which is not part of it: these tests skip where it is absent."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    if not FOLDER.is_dir():
        pytest.skip("the public data sets are not here")
    return FOLDER


@pytest.fixture(scope="session")
def facts(data: Path) -> dict[str, Any]:
    """What must come out, computed elsewhere."""
    loaded: dict[str, Any] = json.loads((data / "facts.json").read_text())
    return loaded
