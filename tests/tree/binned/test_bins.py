"""Codes of columns: what borders must satisfy, and that no source changes them."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.rows.as_rows import as_rows
from certifit.rows.block import BlockTuning, block_tuning
from certifit.tree.binned.bins import MISSING_CODE, BinTuning, learn_bins, quantile_borders


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(0, 40, n)
    X[:, 2] = np.where(rng.random(n) < 0.9, 0.0, X[:, 2])
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 4] = 7.0
    return X


@pytest.mark.compiled
def test_a_code_counts_the_borders_below_a_value():
    X = table()
    bins = learn_bins(as_rows(X, missing=True))
    codes = bins.encode(X)
    assert codes.dtype == np.uint8
    assert codes.flags.c_contiguous
    for j in range(X.shape[1]):
        plain = np.where(np.isnan(X[:, j]), MISSING_CODE, np.searchsorted(bins.borders[j], X[:, j], side="left"))
        assert np.array_equal(codes[:, j], plain)
        for k, border in enumerate(bins.borders[j]):
            known = ~np.isnan(X[:, j])
            assert np.array_equal(codes[known, j] <= k, X[known, j] <= border)
    assert bins.n_bins.tolist()[4] == 1
    assert bins.has_missing.tolist() == [True, True, True, True, False]


def test_decoded_values_have_their_codes():
    X = table()
    bins = learn_bins(as_rows(X, missing=True), categorical=np.arange(5) == 1)
    codes = bins.encode(X)
    values = bins.decode(codes)
    assert np.array_equal(bins.encode(values), codes)
    assert np.array_equal(values[:, 1], X[:, 1], equal_nan=True)  # categories are what they were


def test_rows_of_any_source_are_coded_in_one_pass_and_kept_in_place():
    X, y = table(), np.arange(3000.0)
    rows = as_rows(X, y, target="numbers", missing=True)
    bins = learn_bins(rows)
    whole = bins.encode(X)
    with block_tuning(BlockTuning(fixed_rows=64)):
        for by_column in (False, True):
            coded = bins.coded_rows(as_rows(X, y, target="numbers", missing=True), by_column)
            assert np.array_equal(coded.codes, whole)
            assert coded.codes.T.flags.c_contiguous == by_column
        kept = np.random.default_rng(0).random(3000) < 0.7
        fewer = coded.moved_together(kept)
    assert np.array_equal(fewer.codes, whole[kept])
    assert np.array_equal(fewer.y, y[kept])
    assert np.shares_memory(fewer.codes, coded.codes)


def test_few_distinct_values_stay_apart_even_where_they_are_neighbouring_doubles():
    x = np.repeat(np.array([1.0, np.nextafter(1.0, 2.0), 5.0, 9.0]), 3)[:, None]
    bins = learn_bins(as_rows(x))
    assert len(np.unique(bins.encode(x))) == 4
    assert bins.borders[0].tolist() == [1.0, (np.nextafter(1.0, 2.0) + 5.0) / 2, 7.0]


def test_a_value_of_most_rows_leaves_the_other_bins_to_the_rest():
    bins = learn_bins(as_rows(table(), missing=True), most_bins=64)
    codes = bins.encode(table())[:, 2]
    assert len(np.unique(codes)) > 60
    assert bins.n_bins.max() <= 64


def test_bins_have_about_equal_weight():
    rng = np.random.default_rng(3)
    value, weight = np.arange(10_000.0), rng.random(10_000)
    borders = quantile_borders(value, weight, 100)
    assert len(borders) == 99
    held = np.diff(np.concatenate([[0], np.cumsum(weight)[borders.astype(int)], [weight.sum()]]))
    assert np.allclose(held, weight.sum() / 100, atol=2.0)


def test_a_weight_is_a_number_of_equal_rows():
    X = table(2000, 1)
    times = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = learn_bins(as_rows(X, sample_weight=times, missing=True), most_bins=50)
    repeated = learn_bins(as_rows(np.repeat(X, times, axis=0), missing=True), most_bins=50)
    for a, b in zip(weighted.borders, repeated.borders, strict=True):
        assert np.array_equal(a, b)


def test_a_sample_of_a_long_table_depends_on_row_numbers_alone(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = table(5000, 2)
    tuning = BinTuning(sample_rows=2000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(5)}), path, row_group_size=700)
    whole = learn_bins(as_rows(X, missing=True), 100, tuning=tuning)
    with block_tuning(BlockTuning(fixed_rows=512)):
        others = [learn_bins(as_rows(x, missing=True), 100, tuning=tuning) for x in (X, str(path))]
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(whole.borders, other.borders, strict=True))
    # The column with 40 values is known exactly, although only some rows are drawn.
    assert whole.borders[1].tolist() == [k + 0.5 for k in range(39)]
    assert whole.n_bins[0] == 100


@pytest.mark.compiled
def test_categories_are_coded_by_frequency_and_rare_or_new_ones_count_as_missing():
    x = np.array([5.0] * 4 + [-2.0] * 6 + [3.0] * 4 + [8.0] + [np.nan])[:, None]
    bins = learn_bins(as_rows(x, missing=True), most_bins=3, categorical=np.array([True]))
    assert bins.categories[0].tolist() == [-2.0, 3.0, 5.0]
    assert bins.encode(np.array([[-2.0], [3.0], [5.0], [8.0], [4.0], [99.0], [np.nan]])).ravel().tolist() == [
        0, 1, 2, 255, 255, 255, 255,
    ]  # fmt: skip
    assert bins.has_missing.tolist() == [True]


def test_a_column_without_any_value_has_one_bin():
    bins = learn_bins(as_rows(np.full((5, 1), np.nan), missing=True))
    assert bins.n_bins.tolist() == [1]
    assert bins.encode(np.full((5, 1), np.nan)).ravel().tolist() == [255] * 5
