"""Cost against rows and columns for every estimator that reads a file block by block, in one picture.

    python -m benchmarks.scaling_rows [--only NAME] [--seconds 20] [--write]

Every estimator of tests/common/catalogue.py that streams (docs/tables/streams.md) is fitted to Parquet files of 10⁴
to 10⁷ rows and four columns, and of 10⁵ rows and 4 to 64 columns, each in a process of its own: processor time,
passes over the file, the peak of memory beyond what was there before, and the bytes of the largest sum over rows;
that is what a client of a cluster receives. A size is left out where ten times
the time of the last one exceeds `--seconds`.
Results are added to benchmarks/results/scaling_rows.json; `--write` also writes docs/evidence/scaling.md and its
picture.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pickle
import re
import tempfile
import time
import warnings
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
from certifit.rows.rows import Rows
from certifit.rows.sources.streamed import FileRows
from tests.common.catalogue import ONCE, Entry

RECORD = RESULTS / "scaling_rows.json"
STREAMS = Path(__file__).parents[1] / "docs" / "tables" / "streams.md"


def streaming() -> list[Entry]:
    """Estimators whose fit does not hold the rows."""
    held = set(re.findall(r"^\| `(\w+)` \| holds the rows", STREAMS.read_text(), re.MULTILINE))
    return sorted((entry for entry in ONCE if entry.cls.__name__ not in held), key=lambda entry: entry.cls.__name__)


def write_table(entry: Entry, path: Path, rows: int, copies: int = 1) -> bool:
    """Write a table of so many rows, with columns as often as asked for; says whether there is a target."""
    X, y = entry.data(min(rows, ROWS_AT_ONCE))
    X = np.concatenate([np.roll(X, 7 * k, axis=0) for k in range(copies)], axis=1)
    columns = {f"x{j}": np.asarray(column, np.float64) for j, column in enumerate(X.T)}
    table = pa.table(columns | ({} if y is None else {"y": y}))
    with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(max(1, rows // len(X))):
            writer.write_table(table, row_group_size=1 << 15)
    return y is not None


def measured(entry: Entry, path: Path, has_target: bool, before: float) -> dict[str, float]:
    """Processor time, passes, peak of memory beyond `before` (MB) and the largest sum of one fit."""
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

    with patch.object(FileRows, "_read_ahead", counted), patch.object(Rows, "sum", weighed):
        begin = time.process_time()
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
        entry.make().fit(path, "y" if has_target else None)
        return {**counts, "seconds": time.process_time() - begin, "peak_mb": status_mb("VmHWM") - before}


def measure_sizes(name: str, folder: str, most_seconds: float, sender: Any) -> None:
    """Send what fits of one estimator cost, size after size; in a process of its own."""
    warnings.simplefilter("ignore")
    entry = next(entry for entry in ONCE if entry.cls.__name__ == name)
    path, last, before = Path(folder) / "t.parquet", 0.0, status_mb("VmRSS")
    has_target = write_table(entry, path, ROWS_AT_ONCE)
    with suppress(Exception):
        measured(entry, path, has_target, before)  # compiles, and fills what is kept from fit to fit
    for rows, copies in [*((rows, 1) for rows in SIZES), *((ROWS_AT_ONCE, k) for k in WIDTHS[1:])]:
        growth = 10 if copies == 1 else 1
        if last * growth > most_seconds:
            continue
        write_table(entry, path, rows, copies)
        try:
            found = measured(entry, path, has_target, before)
        except Exception as error:
            sender.send((rows, copies, {"error": f"{type(error).__name__}: {str(error)[:100]}"}))
            continue
        last = found["seconds"] if copies == 1 else last
        sender.send((rows, copies, found))
    sender.send(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="of processor time for one fit")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="in all")
    parser.add_argument("--missing", action="store_true", help="only those that are not on record")
    parser.add_argument("--scratch", metavar="DIR")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"fits": {}}
    context, end = multiprocessing.get_context("fork"), time.monotonic() + 60 * asked.minutes
    for entry in streaming():
        name = entry.cls.__name__
        there = asked.missing and name in record["fits"]
        if there or (asked.only and name not in asked.only) or time.monotonic() > end:
            continue
        receiver, sender = context.Pipe(duplex=False)
        with tempfile.TemporaryDirectory(dir=asked.scratch) as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process = context.Process(target=measure_sizes, args=(name, folder, asked.seconds, sender))
            process.start()
            sender.close()
            with suppress(EOFError):
                while time.monotonic() < end and receiver.poll(max(0.0, end - time.monotonic())):
                    if (found := receiver.recv()) is None:
                        break
                    record["fits"].setdefault(name, {})[f"{found[0]} x {4 * found[1]}"] = found[2]
                    print(name, *found, flush=True)
            process.kill()
            process.join()
        record["machine"] = machine()
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    if asked.write:
        write_page(record)


if __name__ == "__main__":
    main()
