"""Arrays with an entry per row, and tables whose check for NaN waits for the first pass."""

from functools import partial

import numpy as np
import pytest

from certifit import KMeans, LinearRegression
from certifit.exceptions import DataError
from certifit.rows import ArrayRows, as_rows
from certifit.rows.block import BlockTuning, block_tuning
from certifit.rows.checks import check_finite

BLOCKS_OF_4 = BlockTuning(fixed_rows=4)


def test_parts_of_different_types_are_joined_as_numpy_joins_them():
    with block_tuning(BLOCKS_OF_4):
        rows = as_rows(np.arange(10.0)[:, None])

        def words(block):
            return np.array(["x" * (1 + block.start) for _ in block.w])

        assert rows.map(words).tolist() == ["x"] * 4 + ["x" * 5] * 4 + ["x" * 9] * 2
        assert rows.map(lambda block: 2 * block.X).ravel().tolist() == (2 * np.arange(10.0)).tolist()


def test_what_a_map_returns_is_no_view_of_the_table():
    X = np.arange(3.0)[:, None]
    as_rows(X).map(lambda block: block.X)[:] = 7
    assert X.ravel().tolist() == [0, 1, 2]


def unchecked():
    with block_tuning(BLOCKS_OF_4):
        rows = ArrayRows(np.where(np.arange(10) == 9, np.nan, 1.0)[:, None])
    rows.check_later(partial(check_finite))
    return rows


ASKED = {
    "map": lambda rows: rows.map(lambda block: block.X),
    "sum": lambda rows: rows.sum(lambda block: block.w.sum()),
    "iteration": list,
    "the table": lambda rows: rows.X,
    "load": lambda rows: rows.load().X,
    "take": lambda rows: rows.take(np.array([0])),
    "relabel": lambda rows: rows.relabel(lambda y, w: (y, 2 * w)),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_check_that_was_put_off_is_made_by_whoever_asks_first(ask):
    rows = unchecked()
    for _ in range(2):  # and again: an error does not make the rows good
        with pytest.raises(DataError, match="NaN in row 9"):
            ask(rows)


def test_answers_refuse_what_is_not_finite_wherever_it_is():
    X = np.random.default_rng(0).normal(size=(70_000, 3))
    linear, groups = LinearRegression().fit(X[:50], X[:50, 0]), KMeans(2, random_state=0).fit(X[:50])
    for row in (0, 69_999):
        bad = X.copy()
        bad[row, 1] = np.inf
        for model in (linear, groups):
            with pytest.raises(DataError, match=f"infinity in row {row}, column 1"):
                model.predict(bad)
