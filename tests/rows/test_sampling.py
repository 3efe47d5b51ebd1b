"""Rows drawn in proportion to their weight."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certifit.rows import as_rows
from certifit.rows.sampling import draw_rows, pick

N, DRAWN = 6000, 5000


def weights(kind):
    w = np.ones(N)
    if kind == "some":
        w[100:200] = 3.5
    if kind == "none at the ends":
        w[:300] = w[-300:] = 0.0
    if kind == "of halves":  # sums of them are exact
        w = np.random.default_rng(1).integers(0, 9, N) / 2
    return w


@pytest.mark.parametrize("kind", ["ones", "some", "none at the ends", "of halves"])
def test_rows_of_many_blocks_are_drawn_as_from_one_list_of_weights(kind, blocks_of):
    blocks_of(256)
    w = weights(kind)
    found = draw_rows(as_rows(np.zeros((N, 1)), sample_weight=w), DRAWN, np.random.default_rng(0))
    np.testing.assert_array_equal(found, pick(w, np.random.default_rng(0).random(DRAWN)))
    assert (w[found] > 0).all()


def test_of_a_file_nothing_is_kept_of_each_row(tmp_path):
    n = 1_000_000
    pq.write_table(pa.table({"x": np.zeros(n)}), tmp_path / "t.parquet")
    rows = as_rows(tmp_path / "t.parquet")
    draw_rows(rows, 100, np.random.default_rng(0))
    tracemalloc.start()
    try:
        draw_rows(rows, 100, np.random.default_rng(0))
        assert tracemalloc.get_traced_memory()[1] < 4 * n
    finally:
        tracemalloc.stop()
