"""Histogram boosting of a Parquet file under a ceiling of memory: a byte a value, and a few numbers a row."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.boosting import interactions
from benchmarks.harness import Options
from benchmarks.memory import status_mb
from benchmarks.out_of_core import measured
from benchmarks.reporting import Report, Table, as_seconds, say

ROWS, COLUMNS, TREES = 10_000_000, 28, 10
CEILING_MB = 1500.0
PIECE = 100_000  # rows that are written at a time
SETTINGS: dict[str, dict[str, Any]] = {
    "all rows": {"early_stopping": False},
    "a tenth kept for early stopping": {"early_stopping": True},
}


def boosting_memory(title: str, options: Options) -> Report:
    n = options.rows(ROWS)
    folder = Path(tempfile.mkdtemp(prefix="certifit-boosting-memory-", dir=options.scratch))
    try:
        say(f"writing {n} x {COLUMNS} to {folder}")
        write_rows(folder / "rows.parquet", n)
        fits = {name: child(folder / "rows.parquet", name) for name in SETTINGS}
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    rows = []
    for name, fit in fits.items():
        if "problem" in fit:
            rows.append([name, fit["problem"], "", "", ""])
            continue
        word = "met" if fit["whole_mb"] <= CEILING_MB else "missed"
        each = f"{fit['peak_mb'] * 1e6 / n:.0f}"
        peak = f"{fit['peak_mb']:.0f} MB"
        rows.append([name, as_seconds(fit["seconds"]), peak, each, f"{fit['whole_mb']:.0f} MB: {word}"])
    table = Table(
        f"{TREES} trees of 31 leaves on {n} x {COLUMNS} from Parquet: {n * COLUMNS * 8 / 1e9:.1f} GB of float64",
        [
            "fit", "time", "peak over the import", "bytes a row",
            f"whole process at its peak (ceiling {CEILING_MB:.0f} MB)",
        ],
        rows,
        "Each line is a process of its own. Of a row: 28 codes, target, weight, score, slope and curvature, both "
        "packed, and its places in the tree.",
    )  # fmt: skip
    return Report(title, [table], {"ceiling_mb": CEILING_MB, "fits": fits}, ("pyarrow",))


def write_rows(path: Path, n: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    for start in range(0, n, PIECE):
        X, y = interactions(min(PIECE, n - start), COLUMNS, seed=start)
        table = pa.table([*X.T, y], names=[*(f"x{j}" for j in range(COLUMNS)), "y"])
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=2**15)
    assert writer is not None
    writer.close()


def child(path: Path, name: str) -> dict[str, Any]:
    """Run `main` below in a fresh process; a failure becomes the answer's `problem`."""
    say(f"child: {name}")
    command = [sys.executable, "-m", "benchmarks.boosting_memory", str(path), name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    if done.returncode:
        return {"problem": "failed: " + (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def main(path: str, name: str) -> dict[str, Any]:
    import certifit

    model = certifit.HistGradientBoostingClassifier(max_iter=TREES, random_state=0, **SETTINGS[name])
    found = measured(lambda: model.fit(path, "y"))
    return {**found, "whole_mb": status_mb("VmHWM"), "holds": model.certificate_.holds}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
