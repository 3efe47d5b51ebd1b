"""What stays on disk, how many blocks are in memory, and what is left behind."""

import gc
import tempfile
import threading
import weakref
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certifit.rows import ArrayRows, as_rows, set_threads
from certifit.rows.checks import TableTerms
from certifit.rows.named_columns import ColumnRoles
from certifit.rows.sources.arrow import ArrowTable
from certifit.rows.sources.streamed import FileRows
from tests.rows.sources.one_table import (
    BLOCK,
    CENTRE,
    FEATURES,
    NAMED,
    TABLE,
    N,
    X,
    bits,
    half_weight,
    memory_map,
    scatter,
)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, ">f8"])
def test_a_memory_map_stays_on_disk(order, dtype, tmp_path):
    values = X.astype(dtype)
    given = memory_map(tmp_path, values, order)
    rows = as_rows(given)
    assert rows.X is given
    assert not rows.in_memory
    assert rows.dtype == (np.float32 if dtype == np.float32 else np.float64)
    expected = ArrayRows(values.astype(rows.dtype))
    assert bits(rows.sum(partial(scatter, CENTRE))) == bits(expected.sum(partial(scatter, CENTRE)))


class Counted(ArrowTable):
    """Hands out fresh batches and remembers which are still in use."""

    def __init__(self):
        super().__init__(TABLE)
        self.given = []  # a weak reference to one column's memory in each batch
        self.most = 0
        self.open = 0

    def _read(self, types, rows):
        self.open += 1
        try:
            for batch in super()._read(types, rows):
                memory = batch["count"].to_numpy().copy()
                self.given.append(weakref.ref(memory))
                self.most = max(self.most, sum(given() is not None for given in self.given))
                yield batch.set_column(batch.schema.get_field_index("count"), "count", pa.array(memory))
                del memory
        finally:
            self.open -= 1


def counted():
    return FileRows(Counted(), ColumnRoles(tuple(FEATURES), ("kind",), "count"), TableTerms("classes"))


@pytest.mark.parametrize("threads", [1, 3])
def test_few_blocks_are_in_memory_at_a_time(threads, in_memory):
    set_threads(threads)
    rows = counted()
    assert bits(rows.sum(partial(scatter, CENTRE))) == bits(in_memory.sum(partial(scatter, CENTRE)))
    # one in each thread's hands, one read ahead, one the reader cuts, one being handed over
    assert rows.source.most <= threads + 3


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_pass_that_stops_early_closes_its_files_and_thread(error):
    set_threads(2)
    rows, before = counted(), threading.active_count()

    def fail(block):
        if block.start >= 3 * BLOCK:
            raise error
        return 1.0

    with pytest.raises(error):
        rows.sum(fail)
    with pytest.raises(error):
        rows.map(lambda block: fail(block) * block.w)
    for _ in rows:
        break
    gc.collect()
    assert rows.source.open == 0
    assert threading.active_count() == before


@pytest.mark.parametrize("name", ["polars lazy", "arrow reader", "arrow stream"])
def test_what_can_be_read_only_once_is_kept_in_a_file_while_in_use(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = as_rows(NAMED[name](tmp_path), "kind", target="classes")
    (file,) = tmp_path.glob("certifit-*/*.parquet")
    assert pq.ParquetFile(file).schema_arrow.names == [*FEATURES, "count", "kind"]
    shared = rows.relabel(half_weight)
    del rows
    gc.collect()
    assert shared.sum(row_count) == N
    del shared
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def row_count(block):
    return len(block.w)
