"""Fits on local Dask workers, and what a pass over the rows costs beside its arithmetic.

    python -m benchmarks.scaling_out [--rows 2000000] [--workers 1 2 4]

Prints, for each number of workers, the time of fits of Parquet files, the passes they took and their bits against one
worker's, and what a pass over partitions with nothing in them costs: see docs/start/scaling_out.md. Workers of one
machine share its cores and its memory's bandwidth: beyond that many, nothing can become faster.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import certifit
from certifit.rows.sources.dask import DaskRows

COLUMNS, PARTITIONS = 30, 32


def write_table(folder: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    beta = rng.normal(size=COLUMNS) / COLUMNS**0.5
    for number in range(PARTITIONS):
        X = rng.normal(size=(rows // PARTITIONS, COLUMNS))
        target = (X @ beta + rng.logistic(size=len(X)) > 0).astype(float)
        columns = {f"x{j}": X[:, j] for j in range(COLUMNS)} | {"target": target}
        pq.write_table(pa.table(columns), folder / f"part-{number:02}.parquet", compression="none")


def fits(folder: Path) -> dict[str, tuple[float, int, bytes]]:
    """Seconds, passes and fitted bits of each model."""
    import dask.dataframe as dd

    frame = dd.read_parquet(folder)
    X = frame.drop(columns="target")
    calls = {
        "PCA": lambda: certifit.PCA(5).fit(X).components_,
        "LogisticRegression": lambda: certifit.LogisticRegression().fit(X, frame["target"]).coef_,
        "KMeans": lambda: certifit.KMeans(8, random_state=0, max_iter=10, tol=0.01).fit(X).cluster_centers_,
    }
    found = {}
    for name, call in calls.items():
        with patch.object(DaskRows, "_sum", autospec=True, side_effect=DaskRows._sum) as passes:
            begin = time.perf_counter()
            answer = call()
            found[name] = time.perf_counter() - begin, passes.call_count, np.asarray(answer).tobytes()
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
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--partitions", type=int, nargs="+", default=[32, 256, 1024])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_table(Path(name), asked.rows)
        first: dict[str, bytes] = {}
        for workers in asked.workers:
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50)
            with cluster, Client(cluster):
                print(f"{workers} workers", flush=True)
                for partitions in asked.partitions:
                    wall, processor = empty_pass(partitions)
                    told = f"{wall:.3f} s, of client and scheduler {processor:.3f} s"
                    print(f"  a pass over {partitions} partitions of one row: {told}", flush=True)
                for model, (seconds, passes, bits) in fits(Path(name)).items():
                    same = bits == first.setdefault(model, bits)
                    told = "same bits" if same else "OTHER BITS"
                    print(f"  {model}: {seconds:.1f} s, {passes} passes, {told}", flush=True)


if __name__ == "__main__":
    main()
