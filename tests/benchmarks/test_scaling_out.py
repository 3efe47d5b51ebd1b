"""The benchmark of Dask workers times the sums of fits, wherever rows are."""

import dask.dataframe as dd
import pandas as pd
import pytest

from benchmarks.scaling_out import PARTITIONS, timed_fits, write_table


@pytest.fixture
def table(tmp_path):
    write_table(tmp_path, 100 * PARTITIONS, 3)
    return pd.read_parquet(tmp_path)


@pytest.mark.parametrize("lazy", [False, True])
def test_passes_are_those_over_all_rows(table, lazy):
    rows = dd.from_pandas(table, npartitions=4) if lazy else table
    fits = timed_fits(rows.drop(columns="target"), rows["target"], len(table))
    assert fits["PCA"].passes == 1
    assert all(0 < fit.opening <= fit.seconds and fit.received > 0 for fit in fits.values())
    assert fits["LogisticRegression"].opening < fits["LogisticRegression"].seconds


def test_lazy_rows_have_the_bits_of_those_in_memory(table):
    lazy = dd.from_pandas(table, npartitions=7)
    there = timed_fits(lazy.drop(columns="target"), lazy["target"], len(table))
    here = timed_fits(table.drop(columns="target"), table["target"], len(table))
    assert [fit.bits for fit in there.values()] == [fit.bits for fit in here.values()]
