"""Which source of named columns a path, a table or a query is."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from certifit.exceptions import DataError
from certifit.rows.sources.one_pass_stream import Query, Stream
from certifit.rows.sources.tables import ArrowTable, CsvFile, Dataset, ParquetFiles, Source

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz")


def open_source(X: Any) -> Source | None:
    """X as a source of named columns, or None where it is an array."""
    library = type(X).__module__.partition(".")[0]
    if isinstance(X, (str, os.PathLike)):
        return _open_path(Path(X))
    if isinstance(X, pa.Table):
        return ArrowTable(X)
    if isinstance(X, pa.RecordBatch):
        return ArrowTable(pa.Table.from_batches([X]))
    if isinstance(X, pa.dataset.Dataset):
        return Dataset(X)
    if library == "polars" and hasattr(X, "sink_parquet"):
        return Query(X)
    if library == "polars" and hasattr(X, "columns"):
        return ArrowTable(X.to_arrow())
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array__"):
        return Stream(pa.RecordBatchReader.from_stream(X))
    return None


def _open_path(path: Path) -> Source:
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in PARQUET and not p.name.startswith((".", "_")))
        if not files:
            raise DataError(
                got=f"directory {str(path)!r} without Parquet files",
                wanted=f"files that end in {' or '.join(PARQUET)}",
                fix="For nested or partitioned directories pass pyarrow.dataset.dataset(path, partitioning='hive').",
            )
        return ParquetFiles(files)
    if not path.exists():
        siblings = os.listdir(path.parent) if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, siblings, n=3)
        raise DataError(
            got=f"path {str(path)!r}, where there is no file",
            wanted="an existing Parquet or CSV file, or a directory of Parquet files",
            fix=f"Did you mean {' or '.join(repr(name) for name in near)}?" if near else "",
        )
    if path.suffix in PARQUET:
        return ParquetFiles([path])
    if path.name.endswith(CSV):
        return CsvFile(path)
    raise DataError(
        got=f"file {str(path)!r} of unknown kind {path.suffix!r}",
        wanted=f"a name that ends in {', '.join((*PARQUET, *CSV))}",
        fix="Other formats: pass a data frame, or a pyarrow.dataset.Dataset.",
    )
