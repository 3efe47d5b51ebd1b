"""Larger than memory: a directory of Parquet files fitted under a ceiling, beside the plain rate of reading it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Array, binary_labels
from benchmarks.harness import Options
from benchmarks.memory import peak_of
from benchmarks.reporting import Report, Table, as_number, as_seconds, say

FILES, ROWS, COLUMNS = 20, 250_000, 100  # 4 GB of float64
CEILING_MB = 400.0
AGREE = 1e-10  # relative; the blocks of the two need not be the same
MODELS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {  # parameters, attributes that must agree
    "PCA": ({"n_components": 10}, ("components_", "explained_variance_")),
    "KMeans": ({"n_clusters": 10, "n_init": 1, "max_iter": 20, "random_state": 0}, ("cluster_centers_",)),
    "LogisticRegression": ({}, ("coef_", "intercept_")),
}


def out_of_core(title: str, options: Options) -> Report:
    folder = Path(tempfile.mkdtemp(prefix="certifit-out-of-core-", dir=options.scratch))
    try:
        say(f"writing Parquet files to {folder}")
        write_table(folder / "large", FILES, options.rows(ROWS))
        write_table(folder / "small", 4, max(1000, options.rows(20_000)))
        size = sum(f.stat().st_size for f in (folder / "large").iterdir()) / 1e6
        reading = [child("read", folder / "large") for _ in range(2)][
            1
        ]  # the second finds the files cached, as fits do
        fits = {name: child("fit", folder / "large", name) for name in MODELS}
        equal = {name: child("compare", folder / "small", name) for name in MODELS}
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    values = FILES * options.rows(ROWS) * (COLUMNS + 1) * 8 / 1e6
    rows = [
        ["reading only (pyarrow)", as_seconds(reading["seconds"]), "1", f"{values / reading['seconds']:.0f} MB/s"]
    ]
    rows[0] += [f"{reading['peak_mb']:.0f} MB", ""]
    for name, fit in fits.items():
        if "problem" in fit:
            rows.append([name, fit["problem"], "", "", "", ""])
            continue
        passes = fit["read_mb"] / size
        rate = f"{values * passes / fit['seconds']:.0f} MB/s" if passes else ""
        word = "met" if fit["peak_mb"] <= CEILING_MB else "missed"
        same = equal[name].get("problem") or f"{as_number(equal[name]['difference'])}: " + (
            "same" if equal[name]["difference"] <= AGREE else "differs"
        )
        rows.append(
            [name, as_seconds(fit["seconds"]), as_number(passes), rate, f"{fit['peak_mb']:.0f} MB: {word}", same]
        )
    table = Table(
        f"{values / 1000:.2g} GB of float64 values in {FILES} Parquet files ({size:.0f} MB on disk): "
        f"{FILES * options.rows(ROWS)} x {COLUMNS} and a target",
        [
            "work",
            "time",
            "passes",
            "values read",
            f"peak over the import (ceiling {CEILING_MB:.0f} MB)",
            f"against memory, on a small copy (relative, limit {AGREE:.0e})",
        ],
        rows,
        "Each line is a process of its own. Passes: bytes read by the process over the size of the files.",
    )
    data = {"values_mb": values, "files_mb": size, "ceiling_mb": CEILING_MB, "reading": reading, "fits": fits}
    return Report(title, [table], {**data, "against_memory": equal}, ("pyarrow",))


def write_table(folder: Path, files: int, rows: int) -> None:
    """Correlated columns in a few clusters, and a target `y` (0.0 / 1.0) that depends on them."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    rng = np.random.default_rng(4)
    centres, mix = 2.0 * rng.normal(size=(10, COLUMNS)), rng.normal(size=(COLUMNS, COLUMNS)) / np.sqrt(COLUMNS)
    names = [f"x{j}" for j in range(COLUMNS)] + ["y"]
    for i in range(files):
        X = centres[rng.integers(0, len(centres), rows)] + rng.standard_normal((rows, COLUMNS)) @ mix
        columns = [*X.T, binary_labels(X).astype(np.float64)]
        parquet.write_table(pa.table(columns, names=names), folder / f"part-{i:03}.parquet", row_group_size=2**15)


def child(*arguments: object) -> dict[str, Any]:
    """Run `main` below in a fresh process; a failure becomes the answer's `problem`."""
    say("child: " + " ".join(str(a) for a in arguments))
    command = [sys.executable, "-m", "benchmarks.out_of_core", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    if done.returncode:
        return {"problem": "failed: " + (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def main(job: str, folder: str, name: str = "") -> dict[str, Any]:
    if job == "read":
        import pyarrow.parquet  # noqa: F401  (not part of what is measured)

        return measured(lambda: read_all(Path(folder)))
    import certifit

    params, attributes = MODELS[name]
    estimator = getattr(certifit, name)
    target = "y" if name == "LogisticRegression" else None
    if job == "fit":
        return measured(lambda: estimator(**params).fit(folder, target))
    from_files = estimator(**params).fit(folder, target)
    from_memory = estimator(**params).fit(*load(Path(folder), target))
    pairs = [(getattr(from_files, a), getattr(from_memory, a)) for a in attributes]
    return {"difference": max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)}


def measured(call: Any) -> dict[str, Any]:
    """Seconds, peak memory over what was resident before, and MB read from files."""
    start, before = time.perf_counter(), read_mb()
    _, peak = peak_of(call)
    return {"seconds": time.perf_counter() - start, "peak_mb": peak, "read_mb": read_mb() - before}


def read_mb() -> float:
    """MB this process has read so far, from the page cache or the disk."""
    return int(Path("/proc/self/io").read_text().split()[1]) / 1e6


def read_all(folder: Path) -> None:
    from pyarrow import parquet

    for path in sorted(folder.iterdir()):
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=2**15):
            del batch


def load(folder: Path, target: str | None) -> tuple[Array, Array | None]:
    from pyarrow import parquet

    table = parquet.read_table(folder)
    names = [n for n in table.column_names if n != target]
    X = np.column_stack([table[n].to_numpy() for n in names])
    return X, None if target is None else table[target].to_numpy()


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
