"""One table of three kinds of rows, the forms it can come in, and what is summed over it."""

from dataclasses import dataclass
from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from certifit.rows import Sums

BLOCK = 128  # rows in a block, here
N, D = 11 * BLOCK + 37, 5
FEATURES = [f"petal.{j}" for j in range(D)]  # dots in names are common in files written by R
KINDS = np.array(["setosa", "versicolor", "virginica"])


@dataclass(frozen=True)
class Scatter(Sums):
    weight: float
    total: np.ndarray  # (d,)
    scatter: np.ndarray  # (d, d)


def scatter(centre, block):
    """Centred scatter: nothing cancels, whatever the offset of the data. The total hands the block itself to BLAS."""
    Z = block.X - centre
    return Scatter(block.w.sum(), block.w @ block.X, (Z * block.w[:, None]).T @ Z)


def row_sums(block):
    return block.X.sum(axis=1)


def bits(sums):
    return np.float64(sums.weight).tobytes() + sums.total.tobytes() + sums.scatter.tobytes()


def frame(dtype=np.float64):
    rng = np.random.default_rng(3)
    X = (1e4 + rng.standard_normal((N, D))).astype(dtype)
    table = pd.DataFrame(X, columns=FEATURES)
    table.insert(2, "kind", KINDS[rng.integers(0, 3, N)])
    table["count"] = rng.integers(0, 5, N).astype(np.float64)
    return table


FRAME = frame()
X, KIND, COUNT = FRAME[FEATURES].to_numpy(), FRAME["kind"].to_numpy(dtype="U"), FRAME["count"].to_numpy()
CENTRE = X.mean(axis=0)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


def parquet_file(path, table=TABLE, **options):
    pq.write_table(table, path, **options)
    return path


def parquet_directory(path):
    """Files of uneven sizes (one without rows) and odd row groups."""
    path.mkdir()
    cuts = [0, 1, 200, 200, 701, 1300, N]
    for i, (a, b) in enumerate(pairwise(cuts)):
        pq.write_table(
            TABLE.slice(a, b - a), path / f"part-{i}.parquet", row_group_size=[1, 7, 500, 77, 10_000, 3][i]
        )
    (path / "_SUCCESS").touch()
    return path


def csv_file(path):
    pa.csv.write_csv(TABLE, path)
    return path


def csv_parts(folder):
    folder.mkdir()
    for i, (a, b) in enumerate(pairwise([0, 300, 301, N])):
        pa.csv.write_csv(TABLE.slice(a, b - a), folder / f"{i}.csv")
    return folder


def gzipped(path):
    with pa.CompressedOutputStream(str(path), "gzip") as out:
        pa.csv.write_csv(TABLE, out)
    return path


class Exporter:
    """Something that offers its rows by Arrow's C interface, and nothing else."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


def dask_frame(rows, table=FRAME):
    cuts = range(0, len(table), rows)
    return dd.from_map(lambda a: table.iloc[a : a + rows], list(cuts), meta=table.iloc[:0])


def arrow(table):
    return pa.Table.from_pandas(table, preserve_index=False)


def csv_of(table, path):
    table.to_csv(path, index=False)
    return path


FORMS = {  # a pandas frame in every form that has named columns
    "pandas": lambda table, _: table,
    "polars": lambda table, _: pl.from_pandas(table),
    "polars lazy": lambda table, _: pl.from_pandas(table).lazy(),
    "arrow": lambda table, _: arrow(table),
    "arrow reader": lambda table, _: arrow(table).to_reader(max_chunksize=100),
    "parquet": lambda table, folder: parquet_file(folder / "t.parquet", arrow(table), row_group_size=100),
    "csv": lambda table, folder: csv_of(table, folder / "t.csv"),
    "dask frame": lambda table, _: dask_frame(2 * BLOCK, table),
}
each_form = pytest.mark.parametrize("form", FORMS)


NAMED = {
    "pandas": lambda _: FRAME,
    "polars": lambda _: pl.from_pandas(FRAME),
    "polars lazy": lambda _: pl.from_pandas(FRAME).lazy(),
    "arrow": lambda _: TABLE,
    "arrow batch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "arrow reader": lambda _: TABLE.to_reader(max_chunksize=100),
    "arrow stream": lambda _: Exporter(),
    "arrow dataset": lambda folder: pa.dataset.dataset(parquet_directory(folder / "d")),
    "dataset in memory": lambda _: pa.dataset.dataset(TABLE),
    "parquet": lambda folder: str(parquet_file(folder / "t.parquet")),
    "parquet path": lambda folder: parquet_file(folder / "t.pq", row_group_size=100),
    "directory": lambda folder: parquet_directory(folder / "d"),
    "csv": lambda folder: csv_file(folder / "t.csv"),
    "csv.gz": lambda folder: gzipped(folder / "t.csv.gz"),
    "list of files": lambda folder: sorted(parquet_directory(folder / "d").glob("*.parquet")),
    "pattern": lambda folder: str(parquet_directory(folder / "d") / "part-*.parquet"),
    "pattern of csv": lambda folder: csv_parts(folder / "c") / "*.csv",
    "address": lambda folder: parquet_file(folder / "t.parquet").as_uri(),
    "address for fsspec": lambda folder: f"local://{parquet_file(folder / 't.parquet')}",
    "dask frame": lambda _: dask_frame(2 * BLOCK),
}


def dask_unknown(rows):
    return dask_frame(rows)[FEATURES].to_dask_array()


UNNAMED = {
    "array": lambda _: (X, KIND, COUNT),
    "list": lambda _: (X.tolist(), KIND.tolist(), COUNT.tolist()),
    "Fortran order": lambda _: (np.asfortranarray(X), KIND, COUNT),
    "memory map": lambda folder: (memory_map(folder, X), KIND, COUNT),
    "dask array": lambda _: (da.from_array(X, chunks=(BLOCK, 2)), KIND, COUNT),
    "dask throughout": lambda _: (
        da.from_array(X, chunks=(4 * BLOCK, D)),
        da.from_array(KIND, chunks=100),
        da.from_array(COUNT, chunks=4 * BLOCK),
    ),
    "dask of unknown lengths": lambda _: (
        dask_unknown(BLOCK),
        dask_frame(BLOCK)["kind"],
        dask_frame(BLOCK)["count"],
    ),
}


def memory_map(folder, values, order="C"):
    file = np.memmap(folder / "x.dat", values.dtype, "w+", shape=values.shape, order=order)
    file[:] = values
    file.flush()
    return np.memmap(folder / "x.dat", values.dtype, "r", shape=values.shape, order=order)


def half_weight(y, w):
    return y, w / 2
