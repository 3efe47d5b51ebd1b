"""Write docs/tables/streams.md: which estimators fit, answer and audit a table without holding its rows, by source.

    python tools/streams.py            # writes the page
    python tools/streams.py KMeans     # writes the lines of some estimators anew

Every estimator of tests/common/catalogue.py gets a table of more rows than any sample that is held by the way, as a
Parquet file, a memory map, a CSV file and a Dask frame. Whoever asks for all rows at once is stopped there; for the
others passes over the table are counted, and how much they keep for each row (labels, scores, codes of a byte). A
small table in every form, frames and Arrow tables among them, says whether a fit has the bits of an array's fit.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from dask import dataframe as dd

sys.path.insert(0, str(Path(__file__).parents[1]))

from certifit import audit
from certifit.rows.block import BlockTuning, block_rows, block_tuning
from certifit.rows.rows import ArrayRows, Rows
from certifit.rows.sources.dask import DaskRows
from certifit.rows.sources.streamed import FileRows
from tests.common.catalogue import ONCE, Entry

PAGE = Path(__file__).parents[1] / "docs" / "tables" / "streams.md"
ROWS, CHUNK = 300_000, 2**16  # more than any sample of rows that is held; rows of a Dask partition
FEW, BLOCK = 150, 32  # rows of the small table, and of its blocks
READ = ("Parquet", "memory map", "CSV", "Dask")  # sources that are not in memory
ANSWERS = ("predict", "transform")
SCORES = ("predict_proba", "decision_function", "score_samples", *ANSWERS)
HEAD = f"""# What streams

`python tools/streams.py` writes this page: every estimator, at the settings of its tests, is given a table of
{ROWS:,} rows and four columns (32 bytes a row). *Holds the rows* means that all rows are asked for at once: the table
must fit in memory. Otherwise they are read block by block: so many passes, and what one of them keeps of each row has
so many bytes a row: memory of such lines grows with the rows, at the peak by more than one pass keeps, up to about
150 bytes a row for forests ([peaks of memory](../evidence/scaling.md)). Answers are as long as the table, unless
`write_predictions` writes them to a file.
`DecisionTreeClassifier` and `DecisionTreeRegressor` stream with `max_bins`.

## Parquet

| estimator | fit | predict or transform | audit |
| --- | --- | --- | --- |
"""
MORE = """
## Other sources

Passes of *fit, answers, audit* over a memory map, a CSV file and a Dask frame of partitions; *holds* where all rows
are asked for at once. Answers to a Dask collection are lazy: no pass is made before they are computed, and then each
partition is asked where it is. The last column says of which sources a fit, asked about the same rows, has the bits
that it has of an array, for a small table of several blocks; *all* are the memory map, pandas, polars, Arrow,
Parquet, CSV and Dask partitions of odd lengths. Where a source has other bits, answers agree to ten digits. An array
is used as it is; frames and Arrow tables in memory are copied into rows once.

| estimator | memory map | CSV | Dask | same bits as an array |
| --- | --- | --- | --- | --- |
"""


class HoldsRows(Exception):
    """All rows were asked for at once."""


@dataclass
class Reading:
    """What was read of a table, and kept of it."""

    passes: int = 0
    kept: float = 0.0  # bytes for each row, of the largest array
    held: bool = False  # all rows at once

    def __str__(self) -> str:
        kept = f", {self.kept:.0f} bytes a row" if self.kept >= 0.5 else ""
        return "holds the rows" if self.held else f"{self.passes} pass{'es' if self.passes != 1 else ''}{kept}"

    @property
    def short(self) -> str:
        return "holds" if self.held else str(self.passes)


class TableReadings(NamedTuple):
    """What fit, answers and audit read of one source."""

    fit: Reading
    answer: Reading | None  # None where there is no method to ask
    audit: Reading

    @property
    def short(self) -> str:
        return ", ".join("–" if reading is None else reading.short for reading in self)


class TableForm(NamedTuple):
    """A table in one of its forms."""

    X: Any
    y: Any  # the name of a column, or an array where X has no names

    @property
    def features(self) -> Any:
        lazy = isinstance(self.y, str) and hasattr(self.X, "__dask_graph__")
        return self.X.drop(columns=self.y) if lazy else self.X


def arrays_in(found: Any) -> Iterator[Any]:
    """Every array in lists and tuples."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, (list, tuple)):
        for part in found:
            yield from arrays_in(part)


@contextmanager
def watched(reading: Reading) -> Iterator[None]:
    """Count passes over a table that is not in memory, and stop who loads one whole."""

    def counted(plain: Callable[..., Any]) -> Callable[..., Any]:
        def begin(rows: Rows) -> Any:
            reading.passes += not rows.in_memory
            return plain(rows)

        return begin

    def keep(rows: Rows, arrays: Sequence[Any]) -> None:
        reading.kept = max(reading.kept, sum(array.nbytes for array in arrays) / rows.n_rows)

    def mapped(plain: Callable[..., Any]) -> Callable[..., Any]:
        def collect(rows: Rows, f: Callable[..., Any]) -> Any:
            found = plain(rows, f)
            keep(rows, [found])
            return found

        return collect

    def listed(plain: Callable[..., Any]) -> Callable[..., Any]:
        def collect(rows: Rows, f: Callable[..., Any]) -> Any:
            found = plain(rows, f)
            size = block_rows(rows.n_features)
            of_rows = {size, rows.n_rows % size} - {0}  # how many a block has
            keep(rows, [array for array in arrays_in(found) if of_rows & {*array.shape}])
            return found

        return collect

    def filled(plain: Callable[..., Any]) -> Callable[..., Any]:
        def fill(rows: Rows, f: Callable[..., Any], outs: tuple[Any, ...]) -> None:
            keep(rows, outs)
            plain(rows, f, outs)

        return fill

    def refused(_plain: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(_rows: Rows) -> Any:
            raise HoldsRows

        return refuse

    changes = [
        (FileRows, "_read_ahead", counted),
        (DaskRows, "_begin_pass", counted),
        (ArrayRows, "__iter__", counted),
    ]
    changes += [(kind, "map", mapped) for kind in (Rows, ArrayRows, FileRows)]
    changes += [(kind, "fill", filled) for kind in (Rows, ArrayRows, FileRows)]
    changes += [(kind, "each", listed) for kind in (ArrayRows, FileRows, DaskRows)]
    with ExitStack() as patches:
        for kind, name, change in [*changes, (Rows, "load", refused)]:
            patches.enter_context(patch.object(kind, name, change(vars(kind)[name])))
        yield


def reads(task: Callable[[], Any]) -> Reading:
    """What a task reads and keeps."""
    reading = Reading()
    try:
        with watched(reading), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task()
    except HoldsRows:
        reading.held = True
    return reading


# ------------------------------------------------------------------------------------------------ a table's forms
def in_form(source: str, X: Any, y: Any, folder: Path, chunk: int) -> TableForm:
    """A table as a source of this name; files are written to a folder, Dask partitions have so many rows."""
    X = np.ascontiguousarray(X, np.float64)
    if source == "array":
        return TableForm(X, y)
    if source == "memory map":
        X.tofile(folder / "t.dat")
        return TableForm(np.memmap(folder / "t.dat", np.float64, "r", shape=X.shape), y)
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)} | ({} if y is None else {"y": y}))
    frame = table.to_pandas()
    path = folder / f"t.{source.lower()}"
    if source == "Parquet":
        pq.write_table(table, path, row_group_size=4096)
    elif source == "CSV":
        pa.csv.write_csv(table, path)
    made: dict[str, Callable[[], Any]] = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_arrow(table),
        "Arrow": lambda: table,
        "Parquet": lambda: path,
        "CSV": lambda: path,
        "Dask": lambda: dd.from_map(
            lambda first: frame.iloc[first : first + chunk], list(range(0, len(frame), chunk)), meta=frame.iloc[:0]
        ),
    }
    return TableForm(made[source](), None if y is None else "y")


FORMS = ("memory map", "pandas", "polars", "Arrow", "Parquet", "CSV", "Dask")


def ask(model: Any, methods: Sequence[str], X: Any) -> Any:
    """What the first of these methods that a model has says of X; None where it has none."""
    method = next((method for method in methods if hasattr(model, method)), None)
    return None if method is None else getattr(model, method)(X)


def table_readings(entry: Entry, source: str, folder: Path) -> TableReadings:
    """What fit, answers and audit read of a large table."""
    table = in_form(source, *entry.data(ROWS), folder, CHUNK)
    model = entry.make()
    fit = reads(partial(model.fit, table.X, table.y))
    if fit.held:  # a smaller table, so that the rest can be asked
        small = in_form("array" if source == "memory map" else "Arrow", *entry.data(FEW), folder, CHUNK)
        model = entry.make().fit(small.X, small.y)
    answers = any(hasattr(model, method) for method in ANSWERS)
    answer = reads(partial(ask, model, ANSWERS, table.features)) if answers else None
    checked = Reading(held=True) if fit.held else reads(partial(audit, model, table.X, table.y))
    return TableReadings(fit, answer, checked)


def same_bits(entry: Entry, folder: Path) -> list[str]:
    """The forms of a small table whose fits answer with the bits of an array's; others agree to ten digits."""
    X, y = entry.data(FEW)
    found = []
    with block_tuning(BlockTuning(fixed_rows=BLOCK)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = entry.make().fit(X, y)
        for source in FORMS:
            table = in_form(source, X, y, folder, BLOCK + 15)
            model = entry.make().fit(table.X, table.y)
            answers = np.asarray(ask(model, SCORES, table.features)), np.asarray(ask(expected, SCORES, X))
            if answers[0].tobytes() == answers[1].tobytes():
                found.append(source)
            else:
                np.testing.assert_allclose(*answers, rtol=1e-10, atol=1e-10 * np.abs(answers[1]).max())
    return found


# ------------------------------------------------------------------------------------------------ the page
def lines(names: list[str]) -> tuple[list[str], list[str]]:
    """The lines of both tables, of all estimators or of these."""
    chosen = [entry for entry in ONCE if not names or entry.cls.__name__ in names]
    first, second = [], []
    for entry in sorted(chosen, key=lambda entry: entry.cls.__name__):
        with tempfile.TemporaryDirectory() as name:
            found = {source: table_readings(entry, source, Path(name)) for source in READ}
            same = same_bits(entry, Path(name))
        of_file = found.pop("Parquet")
        answer = "" if of_file.answer is None else of_file.answer
        first.append(f"| `{entry.cls.__name__}` | {of_file.fit} | {answer} | {of_file.audit} |")
        bits = "all" if same == list(FORMS) else ", ".join(same)
        second.append(f"| `{entry.cls.__name__}` | {' | '.join(one.short for one in found.values())} | {bits} |")
        print(first[-1], second[-1], sep="\n", file=sys.stderr, flush=True)
    return first, second


def with_lines(text: str, found: Sequence[str]) -> str:
    """The page with lines that were found anew in the places of the old ones."""
    of_names = {(line.split("`")[1], line.count("|")): line for line in found}
    told = text.split("\n")
    places = {(line.split("`")[1], line.count("|")): k for k, line in enumerate(told) if line.startswith("| `")}
    for name, line in of_names.items():
        told[places[name]] = line
    return "\n".join(told)


if __name__ == "__main__":
    of_files, of_others = lines(sys.argv[1:])
    page = HEAD + "\n".join(of_files) + "\n" + MORE + "\n".join(of_others) + "\n"
    if sys.argv[1:]:
        before = PAGE.read_text(encoding="utf-8")
        page = with_lines(HEAD + before[before.index("| --- |") :].split("\n", 1)[1], [*of_files, *of_others])
    PAGE.write_text(page, encoding="utf-8")
