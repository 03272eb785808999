import doctest

import pytest

from curation.stats import agreement, detection, intervals


@pytest.mark.parametrize("module", [agreement, detection, intervals])
def test_the_examples_in_the_docs_are_true(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
