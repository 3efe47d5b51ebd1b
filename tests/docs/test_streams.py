"""What docs/tables/streams.md says of some estimators is so, it has lines for each, and no audit reads too often."""

import re

import numpy as np
import pytest

from certifit import audit
from certifit.rows import as_rows
from certifit.rows.block import BlockTuning, block_tuning
from tests.common.catalogue import ONCE
from tests.common.test_house import load_tool

TOOL = load_tool("streams")
CELLS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TOOL.PAGE.read_text().splitlines()]
FILES = {cells[0].strip("`"): cells[1:] for cells in CELLS if len(cells) == 4 and cells[0].startswith("`")}
SOURCES = {cells[0].strip("`"): cells[1:] for cells in CELLS if len(cells) == 5 and cells[0].startswith("`")}
NAMES = sorted(entry.cls.__name__ for entry in ONCE)


def test_every_estimator_has_its_lines():
    assert list(FILES) == list(SOURCES) == NAMES


def test_an_audit_reads_the_rows_at_most_twice_as_often_as_the_fit():
    """As the page says, of every source."""
    passes = {
        name: [tuple(int(f"0{re.sub('[^0-9].*', '', cell)}") for cell in cells)] for name, cells in FILES.items()
    }
    for name, cells in SOURCES.items():
        passes[name] += [tuple(int(p) if p.isdigit() else 0 for p in cell.split(", ")) for cell in cells[:3]]
    assert {name for name, all_of_it in passes.items() for fit, _, audit in all_of_it if audit > 2 * fit} == set()


def readings_of(entry, rows, folder):
    """What fit and audit read of a Parquet file of so many rows, in sixteen blocks."""
    with block_tuning(BlockTuning(fixed_rows=rows // 16)):
        table, model = TOOL.in_form("Parquet", *entry.data(rows), folder, 0), entry.make()
        fit = TOOL.reads(lambda: model.fit(table.X, table.y))
        return fit, None if fit.held else TOOL.reads(lambda: audit(model, table.X, table.y))


def test_passes_of_audits_that_are_counted_here(tmp_path):
    """Of all estimators that do not hold so small a table, and of some that hold no larger one."""
    larger = {"Mixture": 20_000, "LogisticRegression": 300_000, "Lasso": 300_000}
    counted = {
        entry.cls.__name__: readings_of(entry, larger.get(entry.cls.__name__, 1000), tmp_path)
        for entry in ONCE
        if not FILES[entry.cls.__name__][0].startswith("holds")
    }
    streamed = {name: (fit.passes, audit.passes) for name, (fit, audit) in counted.items() if audit is not None}
    assert len(streamed) > 30
    assert set(larger) <= set(streamed)
    assert {name: passes for name, passes in streamed.items() if not 0 < passes[1] <= 2 * passes[0]} == {}


def test_what_is_kept_for_each_row_is_counted_however_blocks_give_it(tmp_path):
    table = TOOL.in_form("Parquet", np.zeros((1000, 2)), None, tmp_path, 0)
    with block_tuning(BlockTuning(fixed_rows=300)):
        rows = as_rows(table.X)
        lists = TOOL.reads(lambda: rows.each(lambda block: (np.zeros((3, len(block.w))), [block.w], np.zeros(5))))
        joined = TOOL.reads(lambda: rows.map(lambda block: block.w))
    assert (lists.passes, lists.kept) == (1, 32.0)
    assert (joined.passes, joined.kept) == (1, 8.0)


def test_audits_of_mini_batches_keep_nothing_of_a_row(tmp_path):
    (entry,) = (entry for entry in ONCE if entry.cls.__name__ == "MiniBatchKMeans")
    fit, audit = readings_of(entry, 20_000, tmp_path)
    assert (fit.kept, audit.kept) == (4.0, 0.0)


def test_lines_that_are_written_anew_take_the_places_of_the_old_ones():
    page = "one\n| `A` | 1 | 2 | 3 |\n| `B` | 1 | 2 | 3 |\ntwo\n| `A` | 1 | 2 | 3 | all |\n"
    found = TOOL.with_lines(page, ["| `A` | 4 | 5 | 6 |", "| `A` | 7 | 8 | 9 | all |"])
    assert found == "one\n| `A` | 4 | 5 | 6 |\n| `B` | 1 | 2 | 3 |\ntwo\n| `A` | 7 | 8 | 9 | all |\n"


@pytest.mark.parametrize("name", ["GaussianNB"])
def test_a_line_is_what_the_tool_finds(name):
    (of_files,), (of_others,) = TOOL.lines([name])
    text = TOOL.PAGE.read_text().splitlines()
    assert of_files in text
    assert of_others in text
