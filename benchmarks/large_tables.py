"""`python -m benchmarks.large_tables`: `certifit fit` of tables with many rows: seconds and the most memory resident.

    python -m benchmarks.large_tables classes --rows 1000000 --budget 120s    # 30 columns of every kind, two classes
    python -m benchmarks.large_tables amounts --rows 1000000 --budget 120s    # the same columns, an amount
    python -m benchmarks.large_tables numbers --gigabytes 20 --stream --model linear --scratch /tmp

The table is written to a folder of its own under --scratch, deleted at the end. Other options go to `certifit fit`.
`classes` and `amounts` have 20 columns of numbers (one in fifty missing), 7 of words with 2 to 60 categories, 2 of
dates, and row numbers; the target depends on numbers in curves and products, and on words. `numbers` has 50 columns
of float64.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

GROUP_ROWS = 100_000
CATEGORIES = (2, 3, 5, 8, 20, 40, 60)


def mixed_columns(rng: np.random.Generator, start: int, rows: int, classes: bool) -> pa.Table:
    """A run of rows of 30 columns and a target."""
    X, noise = rng.normal(size=(rows, 20)), rng.normal(size=rows)
    codes = [rng.integers(0, k, rows) for k in CATEGORIES]
    effect = (
        X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) - 0.5 * X[:, 4] + 0.05 * (codes[6] % 7) + 0.3 * (codes[2] == 1)
    )
    target = np.where(effect + noise > 0.5, "yes", "no") if classes else 10 + effect + noise
    X[rng.random(X.shape) < 0.02] = np.nan
    days = [rng.integers(15_000, 20_000, rows).astype("datetime64[D]") for _ in range(2)]
    words = [np.array([f"c{k}" for k in range(n)], dtype=object)[c] for n, c in zip(CATEGORIES, codes, strict=True)]
    columns = {f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(20)}
    columns |= {f"word{j}": pa.array(values) for j, values in enumerate(words)}
    columns |= {
        "opened": pa.array(days[0]),
        "closed": pa.array(days[1]),
        "row": pa.array(np.arange(start, start + rows)),
    }
    return pa.table({**columns, "target": pa.array(target)})


def numbers(rng: np.random.Generator, rows: int, columns: int = 50) -> pa.Table:
    """A run of rows of numbers and a target."""
    X = rng.random((rows, columns))
    y = X @ np.linspace(-1, 1, columns) + rng.normal(size=rows)
    return pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"target": y})


def write_mixed(folder: Path, rows: int, classes: bool) -> None:
    """One file."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, GROUP_ROWS):
        part = mixed_columns(rng, start, min(GROUP_ROWS, rows - start), classes)
        writer = writer or pa.parquet.ParquetWriter(folder / "table.parquet", part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def write_numbers(folder: Path, gigabytes: float) -> None:
    """Files of about half a gigabyte, not packed; each has other rows."""
    rng, rows = np.random.default_rng(0), 10 * GROUP_ROWS
    for number in range(max(1, round(gigabytes / 0.408))):
        with pa.parquet.ParquetWriter(
            folder / f"part{number:03}.parquet", numbers(rng, 1).schema, compression="none", use_dictionary=False
        ) as writer:
            for _ in range(rows // GROUP_ROWS):
                writer.write_table(numbers(rng, GROUP_ROWS))


def main() -> None:
    """Write the table, fit it by the command, and say how long that took and how much memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("classes", "amounts", "numbers"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--scratch", default=None)
    asked, options = parser.parse_known_args()
    folder = Path(tempfile.mkdtemp(prefix="certifit-large-", dir=asked.scratch))
    try:
        if asked.table == "numbers":
            write_numbers(folder, asked.gigabytes)
            source = folder
        else:
            write_mixed(folder, asked.rows, asked.table == "classes")
            source = folder / "table.parquet"
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{asked.table}: {size / 1e9:.2f} GB in {len([*folder.iterdir()])} file(s)", flush=True)
        out = folder / "out"
        out.mkdir()
        command = [sys.executable, "-m", "certifit", "fit", str(source), "--target", "target", *options]
        began = time.monotonic()
        code = subprocess.run(
            [*command, "--out", str(out / "m.certifit"), "--report", str(out / "p.html")]
        ).returncode
        seconds, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        print(f"exit code {code}; {seconds:.0f} s, {cpu:.0f} s of CPU; at most {peak:,.0f} MB resident")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
