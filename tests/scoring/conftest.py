from pathlib import Path

import pytest

from scoring.runs import hub_cache
from scoring.scorers.base import Machine
from scoring.working import Bench
from tests.scoring.models_on_disk import write_model


@pytest.fixture(scope="session")
def _model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def model(_model: Path, tmp_path: Path) -> Path:
    """A folder with a small classifier of the labels harmless and toxic; each test has its own."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    for file in _model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.fixture
def bench() -> Bench:
    """A worker in this process."""
    return Bench(name="worker-1", machine=Machine("cpu", hub_cache()))
