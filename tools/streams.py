"""Write docs/tables/streams.md: which estimators fit, answer and audit a file without holding its rows.

    python tools/streams.py            # writes the page
    python tools/streams.py KMeans     # prints the lines of some estimators

Every estimator of tests/common/catalogue.py gets a Parquet file of more rows than any sample that is held by the way.
Whoever asks for all rows at once is stopped there; for the others passes over the file are counted, and how much they
keep for each row (labels, scores, codes of a byte).
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from certifit import audit
from certifit.rows.rows import Rows
from certifit.rows.sources.streamed import FileRows
from tests.common.catalogue import ONCE, Entry

PAGE = Path(__file__).parents[1] / "docs" / "tables" / "streams.md"
ROWS = 300_000  # more than any sample of rows that is held
HEAD = f"""# What streams

`python tools/streams.py` writes this page: every estimator, at the settings of its tests, is given a Parquet file of
{ROWS:,} rows and four columns (32 bytes a row). *Holds the rows* means that all rows are asked for at once: the table
must fit in memory. Otherwise rows are read block by block: so many passes, and the largest array that is kept beside
them has so many bytes a row. Answers are as long as the table, unless `write_predictions` writes them to a file.
`DecisionTreeClassifier` and `DecisionTreeRegressor` stream with `max_bins`.

| estimator | fit | predict or transform | audit |
| --- | --- | --- | --- |
"""


class HoldsRows(Exception):
    """All rows were asked for at once."""


@dataclass
class Reading:
    """What was read from a file, and kept of it."""

    passes: int = 0
    kept: float = 0.0  # bytes for each row, of the largest array

    def __str__(self) -> str:
        kept = f", {self.kept:.0f} bytes a row" if self.kept >= 0.5 else ""
        return f"{self.passes} pass{'es' if self.passes != 1 else ''}{kept}"


@contextmanager
def watched(reading: Reading) -> Iterator[None]:
    """Count what is read from files meanwhile, and stop who loads one whole."""
    read, collect, fill = FileRows._read_ahead, Rows.map, FileRows.fill

    def counted(rows: FileRows) -> Any:
        reading.passes += 1
        return read(rows)

    def keep(rows: Rows, arrays: Any) -> None:
        reading.kept = max(reading.kept, sum(array.nbytes for array in arrays) / rows.n_rows)

    def mapped(rows: Rows, f: Callable[..., Any]) -> Any:
        found = collect(rows, f)
        keep(rows, [found])
        return found

    def filled(rows: FileRows, f: Callable[..., Any], outs: tuple[Any, ...]) -> None:
        keep(rows, outs)
        fill(rows, f, outs)

    def refuse(_rows: Rows) -> Any:
        raise HoldsRows

    with (
        patch.object(FileRows, "_read_ahead", counted),
        patch.object(Rows, "map", mapped),
        patch.object(FileRows, "fill", filled),
        patch.object(FileRows, "load", refuse),
    ):
        yield


def reads(task: Callable[[], Any]) -> str:
    """What a task reads and keeps, in words."""
    reading = Reading()
    try:
        with watched(reading), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task()
    except HoldsRows:
        return "holds the rows"
    return str(reading)


def line(entry: Entry, folder: Path) -> str:
    """One estimator's line of the page."""
    X, y = entry.data(ROWS)
    columns = {f"x{j}": np.asarray(column, np.float64) for j, column in enumerate(X.T)}
    target = None if y is None else "y"
    path = folder / "t.parquet"
    pq.write_table(pa.table(columns | ({} if y is None else {"y": y})), path, row_group_size=4096)
    name = entry.cls.__name__
    model = entry.make()
    fit = reads(partial(model.fit, path, target))
    if fit == "holds the rows":  # a smaller table, so that the rest can be asked
        model = entry.make().fit(pa.table(columns).slice(0, 150), None if y is None else y[:150])
    ask = next((method for method in ("predict", "transform") if hasattr(model, method)), None)
    answer = "" if ask is None else reads(partial(getattr(model, ask), path))
    checked = "" if fit == "holds the rows" else reads(partial(audit, model, path, target))
    return f"| `{name}` | {fit} | {answer} | {checked or 'holds the rows'} |"


def lines(names: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        chosen = [entry for entry in ONCE if not names or entry.cls.__name__ in names]
        return [line(entry, Path(folder)) for entry in sorted(chosen, key=lambda entry: entry.cls.__name__)]


if __name__ == "__main__":
    if sys.argv[1:]:
        print("\n".join(lines(sys.argv[1:])))
    else:
        PAGE.write_text(HEAD + "\n".join(lines([])) + "\n", encoding="utf-8")
