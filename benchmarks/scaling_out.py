"""Fits on local Dask workers, and what a pass over the rows costs beside its arithmetic.

    python -m benchmarks.scaling_out [--rows 2000000] [--columns 30] [--workers 1 2 4] [--held] [--write]

Prints, for each number of workers, the time of fits of Parquet files (with `--held`, of partitions that workers
hold), the passes they took, their bits against those of a pandas frame, the time there with as many threads, the
bytes that the client receives for each pass, and what a pass of tasks with nothing to do costs: see
docs/start/scaling_out.md. `--write` puts fits on docs/evidence/scaling.md. Workers of one machine share its cores and
its memory's bandwidth: beyond that many, nothing can become faster.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import certifit
from benchmarks.reporting import RESULTS, machine
from benchmarks.scaling_page import write_page
from certifit.rows import ArrayRows, Rows, set_threads
from certifit.rows.sources.dask import DaskRows
from certifit.rows.sources.dask_partitions import PartitionStore, PartitionTuning

PARTITIONS = 32


def write_table(folder: Path, rows: int, width: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    beta = rng.normal(size=width) / width**0.5
    for number in range(PARTITIONS):
        X = rng.normal(size=(rows // PARTITIONS, width))
        target = (X @ beta + rng.logistic(size=len(X)) > 0).astype(float)
        columns = {f"x{j}": X[:, j] for j in range(width)} | {"target": target}
        pq.write_table(pa.table(columns), folder / f"part-{number:02}.parquet", compression="none")


class TimedFit(NamedTuple):
    """What a fit cost."""

    seconds: float
    opening: float  # of them, until the first pass had its sum: rows are counted, cut and checked
    passes: int
    bits: bytes
    received: float  # bytes of a pass's sum, on average


def models(X: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Fits, by the name of their model, that give an array."""
    return {
        "PCA": lambda: certifit.PCA(3).fit(X).components_,
        "LogisticRegression": lambda: certifit.LogisticRegression().fit(X, y).coef_,
        "KMeans": lambda: certifit.KMeans(3, random_state=0, max_iter=3, tol=0.1).fit(X).cluster_centers_,
    }


def timed_fits(X: Any, y: Any, n_rows: int, best_of: int = 1) -> dict[str, TimedFit]:
    """What each model costs on so many rows; the fastest of some fits."""
    found = {}
    for name, call in models(X, y).items():
        tries = []
        for _ in range(best_of):
            sums: list[tuple[float, int]] = []  # when each was there, and its bytes
            begin = time.perf_counter()
            noted = _noting(sums, n_rows, DaskRows._sum), _noting(sums, n_rows, ArrayRows._sum)
            with patch.object(DaskRows, "_sum", noted[0]), patch.object(ArrayRows, "_sum", noted[1]):
                answer = np.asarray(call())
            seconds = time.perf_counter() - begin
            received = float(np.mean([size for _, size in sums]))
            tries.append(TimedFit(seconds, sums[0][0] - begin, len(sums), answer.tobytes(), received))
        found[name] = min(tries)
    return found


def _noting(sums: list[tuple[float, int]], n_rows: int, add: Any) -> Any:
    def noted(rows: Rows, f: Any) -> Any:
        total = add(rows, f)
        if rows.n_rows == n_rows:  # no sample of them
            sums.append((time.perf_counter(), len(pickle.dumps(total))))
        return total

    return noted


def in_memory(folder: Path, threads: list[int], best_of: int) -> dict[int, dict[str, TimedFit]]:
    """The same fits to a pandas frame, whose columns are cut into rows as those of partitions are."""
    import pandas as pd

    frame = pd.read_parquet(folder)
    X, y = frame.drop(columns="target"), frame["target"]
    found = {}
    for count in threads:
        set_threads(count)
        found[count] = timed_fits(X, y, len(frame), best_of)
    set_threads(None)
    return found


def empty_pass(partitions: int) -> tuple[float, float]:
    """Seconds, and processor time of client and scheduler, of a pass with a task a partition: the best of five."""
    import dask.array as da

    X = da.zeros((32_768 * partitions, 1), chunks=(32_768, 1))
    seconds = []
    with patch.object(PartitionStore, "tuning", PartitionTuning(runs_per_thread=partitions)):
        rows = certifit.as_rows(X)
        for _ in range(7):
            begin = time.perf_counter(), time.process_time()
            rows.sum(count_rows)
            seconds.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    # in the second pass rows are made and held
    return min(wall for wall, _ in seconds[2:]), min(processor for _, processor in seconds[2:])


def count_rows(block: Any) -> Any:
    return float(len(block.X))


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--partitions", type=int, nargs="*", default=[32, 256, 1024])
    parser.add_argument("--held", action="store_true", help="read the files once, before the fits")
    parser.add_argument("--best-of", type=int, default=1)
    parser.add_argument("--scratch", metavar="DIR")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    record: dict[str, Any] = {"rows": asked.rows, "columns": asked.columns, "held": asked.held, "fits": []}
    with tempfile.TemporaryDirectory(dir=asked.scratch) as name:
        write_table(Path(name), asked.rows, asked.columns)
        plain = in_memory(Path(name), asked.workers, asked.best_of)
        for workers in asked.workers:
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50)
            with cluster, Client(cluster):
                print(f"{workers} workers", flush=True)
                for partitions in asked.partitions:
                    wall, processor = empty_pass(partitions)
                    told = f"{wall:.3f} s, of client and scheduler {processor:.3f} s"
                    print(f"  a pass of {partitions} tasks with nothing to do: {told}", flush=True)
                record["fits"] += fits_on_workers(Path(name), workers, asked.held, asked.best_of, plain[workers])
            if asked.write:
                record["machine"] = machine()
                (RESULTS / "scaling_out.json").write_text(json.dumps(record, indent=1) + "\n")
                write_page(json.loads((RESULTS / "scaling_rows.json").read_text()))


def fits_on_workers(
    folder: Path, workers: int, held: bool, best_of: int, plain: dict[str, TimedFit]
) -> list[dict[str, Any]]:
    """Lines of the record, which are printed as well."""
    import dask.dataframe as dd
    from distributed import wait

    frame = dd.read_parquet(folder)
    if held:
        frame = frame.persist()
        wait(frame)
    lines = []
    n_rows = sum(frame.map_partitions(len).compute())
    for model, found in timed_fits(frame.drop(columns="target"), frame["target"], n_rows, best_of).items():
        same = "same bits" if found.bits == plain[model].bits else "OTHER BITS"
        more = found.seconds / plain[model].seconds - 1
        told = (
            f"{found.seconds:.2f} s ({more:+.0%} over memory), the first pass {found.opening:.2f} s (memory "
            f"{plain[model].opening:.2f} of {plain[model].seconds:.2f}), {found.passes} passes, "
            f"{found.received:.0f} bytes each"
        )
        print(f"  {model}: {told}, {same}", flush=True)
        lines.append({"model": model, "workers": workers, "memory_seconds": plain[model].seconds, "same": same,
                      "memory_opening": plain[model].opening,
                      **{name: value for name, value in found._asdict().items() if name != "bits"}})  # fmt: skip
    return lines


if __name__ == "__main__":
    main()
