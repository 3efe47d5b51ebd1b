"""The source for a path, a table or a query; a new kind of source needs a new branch here."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from certifit.exceptions import DataError
from certifit.rows.sources.arrow import ArrowDataset, ArrowTable
from certifit.rows.sources.csv import CsvFile
from certifit.rows.sources.one_pass_stream import OnePassStream, PolarsQuery
from certifit.rows.sources.parquet import ParquetFiles
from certifit.rows.sources.table import Source, Table

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def open_source(X: Any) -> Source | None:
    """Return X as a source of named columns, or None where it is an array."""
    library = type(X).__module__.partition(".")[0]
    if isinstance(X, (str, os.PathLike)):
        return open_path(Path(X))
    if isinstance(X, pa.Table):
        return ArrowTable(X)
    if isinstance(X, pa.RecordBatch):
        return ArrowTable(pa.Table.from_batches([X]))
    if isinstance(X, pa.dataset.Dataset):
        return ArrowDataset(X)
    if library == "polars" and hasattr(X, "sink_parquet"):
        return PolarsQuery(X)
    if library == "polars" and hasattr(X, "columns"):
        return ArrowTable(X.to_arrow())
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array__"):
        return OnePassStream(pa.RecordBatchReader.from_stream(X))
    return None


def open_path(path: Path) -> Table:
    """Open a Parquet file, a directory of them, or a CSV file, by the ending of its name."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in PARQUET and not p.name.startswith((".", "_")))
        if files:
            return ParquetFiles(files)
        if any(p.suffix.lower() in PARQUET for p in path.rglob("*")):
            return ArrowDataset(pa.dataset.dataset(path, partitioning="hive"))
        raise DataError(
            got=f"directory {str(path)!r} without Parquet files",
            wanted=f"files that end in {' or '.join(PARQUET)}",
            fix="For other formats pass a pyarrow.dataset.Dataset.",
        )
    if not path.exists():
        siblings = os.listdir(path.parent) if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, siblings, n=3)
        raise DataError(
            got=f"path {str(path)!r}, which does not exist",
            wanted="an existing Parquet or CSV file, or a directory of Parquet files",
            fix=f"Did you mean {' or '.join(repr(name) for name in near)}?" if near else "",
        )
    if path.suffix.lower() in PARQUET:
        return ParquetFiles([path])
    if path.name.lower().endswith(CSV):
        return CsvFile(path)
    raise DataError(
        got=f"file {str(path)!r} of unknown kind {path.suffix!r}",
        wanted=f"a name that ends in {', '.join((*PARQUET, *CSV))}",
        fix="Other formats: pass a data frame, or a pyarrow.dataset.Dataset.",
    )
