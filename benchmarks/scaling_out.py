"""Fits on local Dask workers, and what a pass over the rows costs beside its arithmetic.

    python -m benchmarks.scaling_out [--rows 2000000] [--columns 30] [--workers 1 2 4] [--held] [--write]

Prints, for each number of workers, the time of fits of Parquet files (with `--held`, of partitions that workers
hold), the passes they took, their bits against those of a pandas frame, the time there with as many threads, the
bytes that the client receives for each pass, and what a pass over partitions with nothing in them costs: see
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
from certifit.rows import set_threads
from certifit.rows.sources.dask import DaskRows

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


def timed_fits(X: Any, y: Any, best_of: int = 1) -> dict[str, TimedFit]:
    """What each model costs; the fastest of some fits."""
    found = {}
    for name, call in models(X, y).items():
        tries = []
        for _ in range(best_of):
            sizes: list[int] = []
            with patch.object(DaskRows, "_sum", _weighing(sizes)):
                begin = time.perf_counter()
                answer = np.asarray(call())
                seconds = time.perf_counter() - begin
            tries.append(TimedFit(seconds, len(sizes), answer.tobytes(), float(np.mean(sizes or [0]))))
        found[name] = min(tries)
    return found


def _weighing(sizes: list[int], add: Any = DaskRows._sum) -> Any:
    def weighed(rows: DaskRows, f: Any) -> Any:
        total = add(rows, f)
        sizes.append(len(pickle.dumps(total)))
        return total

    return weighed


def in_memory(folder: Path, threads: list[int], best_of: int) -> dict[int, dict[str, TimedFit]]:
    """The same fits to a pandas frame, whose columns are cut into rows as those of partitions are."""
    import pandas as pd

    frame = pd.read_parquet(folder)
    X, y = frame.drop(columns="target"), frame["target"]
    found = {}
    for count in threads:
        set_threads(count)
        found[count] = timed_fits(X, y, best_of)
    set_threads(None)
    return found


def empty_pass(partitions: int) -> tuple[float, float]:
    """Seconds, and processor time of client and scheduler, of a pass over partitions of one row: the best of five."""
    import dask.array as da

    X = da.from_array(np.arange(2.0 * partitions).reshape(partitions, 2), chunks=(1, 2))
    rows = certifit.as_rows(X)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter(), time.process_time()
        rows.sum(count_rows)
        seconds.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return min(wall for wall, _ in seconds), min(processor for _, processor in seconds)


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
                    print(f"  a pass over {partitions} partitions of one row: {told}", flush=True)
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
    for model, found in timed_fits(frame.drop(columns="target"), frame["target"], best_of).items():
        same = "same bits" if found.bits == plain[model].bits else "OTHER BITS"
        more = found.seconds / plain[model].seconds - 1
        told = (
            f"{found.seconds:.2f} s ({more:+.0%} over memory), {found.passes} passes, {found.received:.0f} bytes each"
        )
        print(f"  {model}: {told}, {same}", flush=True)
        lines.append({"model": model, "workers": workers, "memory_seconds": plain[model].seconds, "same": same,
                      **{name: value for name, value in found._asdict().items() if name != "bits"}})  # fmt: skip
    return lines


if __name__ == "__main__":
    main()
