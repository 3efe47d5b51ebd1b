"""What docs/tables/streams.md says of some estimators is so, and it has a line for each."""

import pytest

from tests.common.catalogue import ONCE
from tests.common.test_house import load_tool

PAGE = load_tool("streams").PAGE


def test_every_estimator_has_a_line():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == sorted(entry.cls.__name__ for entry in ONCE)


@pytest.mark.parametrize("name", ["PCA", "GaussianNB", "KernelPCA"])
def test_a_line_is_what_the_tool_finds(name):
    (found,) = load_tool("streams").lines([name])
    assert found in PAGE.read_text().splitlines()
