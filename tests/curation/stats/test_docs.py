import doctest

import pytest

from curation.stats import agreement, dawid_skene, detection, intervals, raters


@pytest.mark.parametrize("module", [agreement, dawid_skene, detection, intervals, raters])
def test_the_examples_in_the_docs_are_true(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
