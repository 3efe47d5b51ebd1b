"""Peak memory of fit, answers and audit at 10⁶ and 10⁷ rows, for every estimator that reads files block by block.

    python -m benchmarks.scaling_memory [--only NAME] [--missing] [--seconds 300] [--write]

Every estimator of tests/common/catalogue.py that streams (docs/tables/streams.md) gets Parquet files of four columns,
each size in a process of its own, which first does all three with 20,000 rows: libraries and loops are loaded then.
Two iterations at most: more of them read the same blocks again. What is counted is memory of the process itself
(RssAnon, looked at 200 times a second); pages of temporary files that are mapped are given back when others need
them. Results are added to benchmarks/results/scaling_memory.json, one estimator after the other.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.memory import status_mb
from benchmarks.reporting import RESULTS, machine
from benchmarks.scaling_page import write_page
from benchmarks.scaling_rows import streaming, write_table
from certifit import audit, write_predictions
from certifit.rows.sources.streamed import FileRows
from tests.common.catalogue import ONCE, Entry

RECORD = RESULTS / "scaling_memory.json"
SIZES = (1_000_000, 10_000_000)
FIRST = 20_000  # rows with which everything is loaded
ITERATIONS = 2


class MemoryWatch(threading.Thread):
    """Looks at the memory of this process until it is told to stop."""

    def __init__(self, seconds: float = 0.005) -> None:
        super().__init__(daemon=True)
        self.peak, self.seconds, self.over = 0.0, seconds, threading.Event()

    def run(self) -> None:
        while not self.over.wait(self.seconds):
            self.peak = max(self.peak, status_mb("RssAnon"))


def peak_and_passes(task: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What a task gives; its peak of memory beyond what there was (MB), passes over files and processor time."""
    passes, read = [0], FileRows._read_ahead

    def counted(rows: FileRows) -> Any:
        passes[0] += 1
        return read(rows)

    watch, before, begin = MemoryWatch(), status_mb("RssAnon"), time.process_time()
    watch.start()
    try:
        with patch.object(FileRows, "_read_ahead", counted):
            given = task()
    finally:
        watch.over.set()
        watch.join()
    seconds = time.process_time() - begin
    return given, {"mb": max(0.0, watch.peak - before), "passes": passes[0], "seconds": seconds}


def few_iterations(entry: Entry) -> Any:
    """The estimator at the settings of its tests, with few iterations."""
    model = entry.make()
    few = {name: ITERATIONS for name in ("max_iter",) if name in model.get_params()}
    return model.set_params(**few)


def measure(name: str, folder: str, rows: int, most_seconds: int, sender: Any) -> None:
    """Send what fit, answers and audit take with so many rows; in a process of its own."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (most_seconds, most_seconds))
    entry = next(entry for entry in ONCE if entry.cls.__name__ == name)
    small, large, out = (Path(folder) / part for part in ("small.parquet", "large.parquet", "out.parquet"))
    write_table(entry, small, FIRST)
    target = "y" if write_table(entry, large, rows) else None
    for path in (small, large):
        tasks: dict[str, Callable[[Any], Any]] = {
            "fit": lambda _: few_iterations(entry).fit(path, target),  # noqa: B023  (called at once)
            "answer": lambda model: write_predictions(model, path, out),  # noqa: B023
            "audit": lambda model: audit(model, path, target),  # noqa: B023
        }
        model = None
        for task, work in tasks.items():
            try:
                given, found = peak_and_passes(lambda: work(model))  # noqa: B023
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
                given = None
            model = given if task == "fit" else model
            if path is large:
                sender.send((task, found))
            if model is None:
                break
    sender.send(None)


def measure_apart(name: str, rows: int, seconds: int, scratch: str | None) -> dict[str, Any]:
    """What `measure` sends within so many seconds of processor time."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        process = context.Process(target=measure, args=(name, folder, rows, seconds, sender))
        process.start()
        sender.close()
        try:
            while (sent := receiver.recv()) is not None:
                found[sent[0]] = sent[1]
        except EOFError:
            found["ended"] = "out of time or of memory"
        process.kill()
        process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--missing", action="store_true", help="only those that are not on record with all sizes")
    parser.add_argument(
        "--seconds", type=int, default=300, metavar="S", help="of processor time for one estimator and size"
    )
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="in all")
    parser.add_argument("--scratch", metavar="DIR")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/scaling.md")
    asked = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"peaks": {}}
    end = time.monotonic() + 60 * asked.minutes
    for entry in streaming():
        name = entry.cls.__name__
        for rows in SIZES:
            there = str(rows) in record["peaks"].get(name, {})
            before = record["peaks"].get(name, {}).get(str(rows // 10), {})
            too_long = 12 * sum(one.get("seconds", 0.0) for one in before.values()) > asked.seconds
            if (asked.missing and there) or (asked.only and name not in asked.only) or time.monotonic() > end:
                continue
            if too_long or "ended" in before:
                continue
            found = measure_apart(name, rows, asked.seconds, asked.scratch)
            record["peaks"].setdefault(name, {})[str(rows)] = found
            record["machine"] = machine()
            RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
            print(name, rows, found, flush=True)
    if asked.write:
        write_page(json.loads((RESULTS / "scaling_rows.json").read_text()))


if __name__ == "__main__":
    main()
