"""`python -m benchmarks.streams`: what fits, answers and audits hold of a table that is read from a file.

Every estimator of the common tests is fitted to a Parquet file of few rows and of many, in blocks of 256 rows. What
the most memory grows by for each further row, as a share of the row's own bytes, says whether rows are held: 1 is all
of them once, 0.125 a byte for each value, 0 nothing. `--write` rewrites docs/streams.md.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import certifit
from benchmarks.reporting import Table, say
from certifit.rows.block import BlockTuning, block_tuning
from tests.common.catalogue import ONCE, Entry

PAGE = Path(__file__).parents[1] / "docs" / "streams.md"
FEW, MANY, COPIES = 2_000, 6_000, 5  # rows, and how often the columns are there
ROW = 8 * 4 * COPIES  # bytes
HEAD = """# What streams

`python -m benchmarks.streams --write` writes this page. A table is read from a Parquet file in blocks, once with few
rows and once with many. The numbers say by how much the most memory grew with each row more, as a share of the bytes
of that row: 1 is the table once, 0.125 one byte for each value, 0 nothing at all. Targets, weights and labels are
a few bytes for each row: shares below 0.3 are called *streams*, others *holds rows*.

"""


class HeldShares(NamedTuple):
    """Bytes held for each row, as a share of the row's own; NaN where there is no such step."""

    fit: float
    answer: float
    audit: float


def main(arguments: list[str]) -> None:
    found: dict[str, HeldShares | str] = {}
    with tempfile.TemporaryDirectory() as folder, block_tuning(BlockTuning(fixed_rows=256)):
        for entry in ONCE:
            name = entry.cls.__name__
            try:
                found[name] = held_shares(entry, Path(folder))
            except ValueError as error:
                found[name] = str(error).partition("\n")[0][:100]
            say(f"{name}: {found[name]}")
    table = streams_table(found)
    print(table.markdown())
    if "--write" in arguments:
        PAGE.write_text(HEAD + table.markdown(), encoding="utf-8")


def held_shares(entry: Entry, folder: Path) -> HeldShares:
    """Measure fit, predict or transform, and audit with few rows and with many."""
    loads = _loads_rows(entry, folder)
    peaks = [] if loads else [_peaks(entry, folder / f"{n}.parquet", n) for n in (FEW, FEW, MANY)][1:]
    if loads:
        return HeldShares(1.0, np.nan, np.nan)
    few, many = peaks
    return HeldShares(*((b - a) / (MANY - FEW) / ROW for a, b in zip(few, many, strict=True)))


def _loads_rows(entry: Entry, folder: Path) -> bool:
    """Whether a fit of few rows loads all of them into memory."""
    from certifit.rows.sources.streamed import FileRows

    loads: list[bool] = []
    load = FileRows.load

    def noted(self: Any) -> Any:
        loads.append(True)
        return load(self)

    path, target = _write(entry, folder / "few.parquet", 300)
    FileRows.load = noted  # type: ignore[method-assign]
    try:
        with _quiet():
            entry.make().fit(path, **target)
    finally:
        FileRows.load = load  # type: ignore[method-assign]
    return bool(loads)


def _peaks(entry: Entry, path: Path, n: int) -> tuple[float, float, float]:
    path, target = _write(entry, path, n)
    model = entry.make()
    method = next((m for m in ("predict", "transform") if hasattr(model, m)), None)
    with _quiet():
        fit = _peak(lambda: model.fit(path, **target))
        method = next((m for m in ("predict", "transform") if hasattr(model, m)), method)
        size = 0.0
        if method is not None:
            size = np.asarray(getattr(model, method)(path)).nbytes
        answer = np.nan if method is None else _peak(lambda: getattr(model, method)(path)) - size
        audit = _peak(lambda: certifit.audit(model, path, **target))
    return fit, answer, audit


def _peak(action: Callable[[], Any]) -> float:
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most - before


def _write(entry: Entry, path: Path, n: int) -> tuple[Path, dict[str, str]]:
    """A table of the entry's own kind with more columns: the same ones, their rows in other orders."""
    X, y = entry.data(n)
    rng = np.random.default_rng(0)
    X = np.hstack([X, *(rng.permuted(X, axis=0) for _ in range(COPIES - 1))])
    columns = {f"x{j}": X[:, j].astype(np.float64) for j in range(X.shape[1])}
    pq.write_table(pa.table(columns if y is None else {**columns, "y": y}), path)
    return path, {} if y is None else {"y": "y"}


def _quiet() -> warnings.catch_warnings[Any]:
    return warnings.catch_warnings(action="ignore")


def streams_table(found: dict[str, HeldShares | str]) -> Table:
    rows = []
    for name, shares in found.items():
        if isinstance(shares, str):
            rows.append([f"`{name}`", shares, "", ""])
        else:
            rows.append([f"`{name}`", *(_words(share) for share in shares)])
    return Table("Held of each row", ("estimator", "fit", "predict or transform", "audit"), rows)


def _words(share: float) -> str:
    if np.isnan(share):
        return ""
    return f"{'streams' if share < 0.3 else 'holds rows'}, {max(share, 0.0):.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
