"""What docs/tables/streams.md says of some estimators is so, and it has a line for each."""

import re

import pytest

from tests.common.catalogue import ONCE
from tests.common.test_house import load_tool

PAGE = load_tool("streams").PAGE


def test_every_estimator_has_a_line():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == sorted(entry.cls.__name__ for entry in ONCE)


def test_an_audit_reads_the_rows_at_most_twice_as_often_as_the_fit():
    passes = {
        cells[1].strip(" `"): [
            int(found[1]) if (found := re.match(r" (\d+) pass", cell)) else 0 for cell in cells[2:5]
        ]
        for cells in (line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `"))
    }
    assert len(passes) > 70
    assert {name for name, (fit, _, audit) in passes.items() if audit > 2 * fit} == set()


@pytest.mark.parametrize("name", ["PCA", "GaussianNB", "KernelPCA"])
def test_a_line_is_what_the_tool_finds(name):
    (found,) = load_tool("streams").lines([name])
    assert found in PAGE.read_text().splitlines()
