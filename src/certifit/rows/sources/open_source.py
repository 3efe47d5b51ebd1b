"""The source for a path, a table or a query; a new kind of source needs a new branch here."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from certifit.exceptions import DataError
from certifit.rows.sources.arrow import ArrowDataset, ArrowTable
from certifit.rows.sources.csv import CsvFile
from certifit.rows.sources.one_pass_stream import OnePassStream, PolarsQuery
from certifit.rows.sources.parquet import ParquetFiles
from certifit.rows.sources.table import JoinedTables, Source, Table
from certifit.rows.sources.text_encoding import EncodedPath

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst")


def open_source(X: Any) -> Source | None:
    """Return X as a source of named columns, or None where it is an array."""
    library = type(X).__module__.partition(".")[0]
    if isinstance(X, str) and "://" in X:
        return open_address(X)
    if isinstance(X, (str, os.PathLike)):
        return open_path(X)
    if is_paths(X):
        return join_files(X)
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
        return OnePassStream(X)
    return None


def is_paths(X: Any) -> bool:
    """Say whether X is a list of paths."""
    return isinstance(X, (list, tuple)) and bool(X) and all(isinstance(path, (str, os.PathLike)) for path in X)


def open_address(address: str) -> Table:
    """Open Parquet or CSV files at an address such as s3://bucket/folder, by Arrow's file systems or by fsspec's."""
    try:
        try:
            files, path = pa.fs.FileSystem.from_uri(address)
        except pa.ArrowInvalid:  # a protocol that Arrow does not know
            from fsspec.core import url_to_fs

            theirs, path = url_to_fs(address)
            files = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(theirs))
        kind = "csv" if path.lower().endswith(CSV) else "parquet"
        return ArrowDataset(pa.dataset.dataset(path, filesystem=files, format=kind))
    except (ImportError, OSError, ValueError) as error:
        raise DataError(
            got=f"address {address!r}, which cannot be opened ({error})",
            wanted="the address of Parquet or CSV files that this computer can reach",
            fix="For protocols that Arrow does not know, install fsspec and the package for that protocol.",
        ) from error


def join_files(paths: Sequence[str | os.PathLike[str]]) -> Table:
    """Open several Parquet or CSV files with the same columns as one table, in the order given."""
    plain = [Path(path) for path in paths]
    if all(path.suffix.lower() in PARQUET and path.is_file() for path in plain):
        return ParquetFiles(plain)
    tables = [open_path(path) for path in paths]
    return tables[0] if len(tables) == 1 else JoinedTables(tables, [str(path) for path in plain])


def refuse_overwriting(place: str | os.PathLike[str], *sources: str | os.PathLike[str]) -> None:
    """Refuse to write to a file that is read from too: by its name, a link, a pattern, or the directory it is in."""
    if not os.path.exists(place):
        return
    for source in sources:
        if any(os.path.samefile(place, file) for file in _named_files(Path(source)) if file.is_file()):
            raise DataError(got=f"{os.fspath(place)!r} as input and output", wanted="another file to write to")


def _named_files(path: Path) -> Iterator[Path]:
    """Every file that a path or pattern may stand for."""
    if not path.exists() and glob.has_magic(str(path)):
        return map(Path, glob.iglob(str(path), recursive=True))
    return path.rglob("*") if path.is_dir() else iter([path])


def _refuse_long_names(path: Path) -> None:
    """Refuse what is too long for a path, which the system does in words of its own: text of a table, say."""
    try:
        path.exists()
    except OSError as error:
        name = str(path)
        raise DataError(
            got=f"path {name[:60] + '…' if len(name) > 60 else name!r} ({error.strerror})",
            wanted="an existing Parquet or CSV file, or a directory of Parquet files",
        ) from error


def open_path(named: str | os.PathLike[str]) -> Table:
    """Open a Parquet file, a directory of them, a CSV file, or all that a pattern like data/*.parquet names."""
    path, encoding = Path(named), named.encoding if isinstance(named, EncodedPath) else None
    _refuse_long_names(path)
    if not path.exists() and glob.has_magic(str(path)):
        names = sorted(glob.glob(str(path), recursive=True))
        if not names:
            raise DataError(got=f"pattern {str(path)!r}, which names no file", wanted="at least one file")
        return join_files(names if encoding is None else [EncodedPath(name, encoding) for name in names])
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
    if path.is_symlink() and not path.exists():
        raise DataError(
            got=f"path {str(path)!r}, a link that leads nowhere", wanted="a link to an existing file or directory"
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
        return CsvFile(path, encoding)
    raise DataError(
        got=f"file {str(path)!r} of unknown kind {path.suffix!r}",
        wanted=f"a name that ends in {', '.join((*PARQUET, *CSV))}",
        fix="Other formats: pass a data frame, or a pyarrow.dataset.Dataset.",
    )
