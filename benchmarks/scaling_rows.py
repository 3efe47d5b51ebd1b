"""Cost against rows and columns for every estimator that reads a file block by block: fit, answers and audit.

    python -m benchmarks.scaling_rows [--only NAME] [--missing] [--seconds 300] [--minutes M] [--write]

Every estimator of tests/common/catalogue.py that streams (docs/tables/streams.md) gets Parquet files of 10⁴ to 10⁷
rows and four columns, and of 10⁵ rows and 4 to 64 columns. A process of its own first does all three with 20,000
rows: libraries and loops are loaded then. Two iterations at most: more of them read the same blocks again. Written
down are processor time, passes over the file, the peak of memory of the process itself beyond what it held then
(RssAnon, looked at 200 times a second; pages of mapped files are given back when others need them), and the bytes of
the largest sum over rows of a fit, which is what a client of a cluster receives. 10⁷ rows come after everything else,
and are left out where twelve times the time of 10⁶ exceeds `--seconds`. Results are added to
benchmarks/results/scaling_rows.json, one estimator after the other; `--write` also writes docs/evidence/scaling.md
and its picture.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import pickle
import re
import resource
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.memory import status_mb
from benchmarks.reporting import RESULTS, machine
from benchmarks.scaling_page import ROWS_AT_ONCE, SIZES, WIDTHS, write_page
from certifit import audit, write_predictions
from certifit.rows.rows import Rows
from certifit.rows.sources.streamed import FileRows
from tests.common.catalogue import ONCE, Entry

RECORD = RESULTS / "scaling_rows.json"
STREAMS = Path(__file__).parents[1] / "docs" / "tables" / "streams.md"
FIRST = 20_000  # rows with which everything is loaded
ITERATIONS = 2
# (rows, columns): those of the first process, and of the second
STAGES = ([*((rows, 4) for rows in SIZES[:3]), *((ROWS_AT_ONCE, 4 * k) for k in WIDTHS[1:])], [(SIZES[3], 4)])


class MemoryWatch(threading.Thread):
    """Looks at the memory of this process until it is told to stop."""

    def __init__(self, seconds: float = 0.005) -> None:
        super().__init__(daemon=True)
        self.peak, self.seconds, self.over = 0.0, seconds, threading.Event()

    def run(self) -> None:
        while not self.over.wait(self.seconds):
            self.peak = max(self.peak, status_mb("RssAnon"))


def streaming() -> list[Entry]:
    """Estimators whose fit does not hold the rows."""
    held = set(re.findall(r"^\| `(\w+)` \| holds the rows", STREAMS.read_text(), re.MULTILINE))
    return sorted((entry for entry in ONCE if entry.cls.__name__ not in held), key=lambda entry: entry.cls.__name__)


def write_table(entry: Entry, path: Path, rows: int, width: int = 4) -> bool:
    """Write a table of so many rows, whose columns repeat beyond four; says whether there is a target."""
    X, y = entry.data(min(rows, ROWS_AT_ONCE))
    X = np.concatenate([np.roll(X, 7 * k, axis=0) for k in range(width // 4)], axis=1)
    columns = {f"x{j}": np.asarray(column, np.float64) for j, column in enumerate(X.T)}
    table = pa.table(columns | ({} if y is None else {"y": y}))
    with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(max(1, rows // len(X))):
            writer.write_table(table, row_group_size=1 << 15)
    return y is not None


def few_iterations(entry: Entry) -> Any:
    """The estimator at the settings of its tests, with few iterations."""
    model = entry.make()
    return model.set_params(**{name: ITERATIONS for name in ("max_iter",) if name in model.get_params()})


def cost(task: Callable[[], Any], held: float) -> tuple[Any, dict[str, float]]:
    """What a task gives, and what it takes; memory is counted from `held` MB on."""
    counts = {"passes": 0, "sum_bytes": 0}
    read, add = FileRows._read_ahead, Rows.sum

    def counted(rows: FileRows) -> Any:
        counts["passes"] += 1
        return read(rows)

    def weighed(rows: Rows, f: Any) -> Any:
        found = add(rows, f)
        with suppress(Exception):
            counts["sum_bytes"] = max(counts["sum_bytes"], len(pickle.dumps(found)))
        return found

    watch, begin = MemoryWatch(), time.process_time()
    watch.start()
    try:
        with patch.object(FileRows, "_read_ahead", counted), patch.object(Rows, "sum", weighed):
            given = task()
    finally:
        watch.over.set()
        watch.join()
    return given, {**counts, "seconds": time.process_time() - begin, "mb": max(0.0, watch.peak - held)}


def costs(entry: Entry, folder: Path, rows: int, width: int, held: float) -> dict[str, Any]:
    """What fit, answers and audit take with a table of this size."""
    path, out = folder / "table.parquet", folder / "out.parquet"
    target = "y" if write_table(entry, path, rows, width) else None
    tasks: dict[str, Callable[[Any], Any]] = {
        "fit": lambda _: few_iterations(entry).fit(path, target),
        "answer": lambda model: write_predictions(model, path, out),
        "audit": lambda model: audit(model, path, target),
    }
    model, found = None, {}
    for task, work in tasks.items():
        ctypes.CDLL(None).malloc_trim(0)  # what was freed is given back
        try:
            given, found[task] = cost(lambda: work(model), held)  # noqa: B023  (called at once)
        except Exception as error:
            found[task] = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
            given = None
        model = given if task == "fit" else model
        if model is None:
            break
    return found


def measure(name: str, folder: str, sizes: Sequence[tuple[int, int]], most_seconds: int, sender: Any) -> None:
    """Send what each size costs; in a process of its own."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (most_seconds, most_seconds))
    entry = next(entry for entry in ONCE if entry.cls.__name__ == name)
    costs(entry, Path(folder), FIRST, 4, 0.0)
    held = status_mb("RssAnon")
    for rows, width in sizes:
        sender.send((f"{rows} x {width}", costs(entry, Path(folder), rows, width, held)))
    sender.send(None)


def measure_apart(
    name: str, sizes: Sequence[tuple[int, int]], seconds: int, scratch: str | None
) -> dict[str, dict[str, Any]]:
    """What `measure` sends within so many seconds of processor time, by size."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        process = context.Process(target=measure, args=(name, folder, sizes, seconds, sender))
        process.start()
        sender.close()
        with suppress(EOFError):  # out of time, or of memory
            while (sent := receiver.recv()) is not None:
                found[sent[0]] = sent[1]
        process.kill()
        process.join()
    return found


def total_seconds(found: Mapping[str, Mapping[str, float]]) -> float:
    """Processor time of fit, answers and audit; infinite where these were not all measured."""
    return sum(one.get("seconds", np.inf) for one in found.values()) if len(found) == 3 else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--missing", action="store_true", help="only sizes that are not on record")
    parser.add_argument("--seconds", type=int, default=300, help="of processor time for one estimator and process")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="in all")
    parser.add_argument("--scratch", metavar="DIR")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/scaling.md")
    asked = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"costs": {}}
    end = time.monotonic() + 60 * asked.minutes
    names = [entry.cls.__name__ for entry in streaming()]
    for stage, sizes in enumerate(STAGES):
        wanted = [name for name in names if not asked.only or name in asked.only]
        million = {name: total_seconds(record["costs"].get(name, {}).get(f"{SIZES[2]} x 4", {})) for name in names}
        if stage == 1:  # the cheapest first
            wanted = [name for name in sorted(wanted, key=million.__getitem__) if 12 * million[name] < asked.seconds]
        for name in wanted:
            there = record["costs"].setdefault(name, {})
            left = [size for size in sizes if not asked.missing or f"{size[0]} x {size[1]}" not in there]
            if not left or time.monotonic() > end:
                continue
            there.update(found := measure_apart(name, left, asked.seconds, asked.scratch))
            record["machine"] = machine()
            RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
            print(name, found, flush=True)
    if asked.write:
        write_page(record)


if __name__ == "__main__":
    main()
