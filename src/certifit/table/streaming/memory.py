"""When a table is read block by block: where holding it would take a large share of the memory that is there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from certifit.rows.sources.memory import available_bytes
from certifit.rows.sources.open_source import is_paths, open_source
from certifit.rows.sources.table import Table


@dataclass(frozen=True)
class StreamTuning:
    """How much memory a table may take before it is read block by block."""

    share: float = 0.25  # of the memory available
    entry_bytes: int = 24  # of each entry: as Arrow holds it, as an encoded number, and a copy
    text_factor: float = 6.0  # of the bytes of a CSV file, in memory; of a compressed one the threefold
    compressed_factor: float = 3.0


def is_large(X: Any, tuning: StreamTuning = StreamTuning()) -> bool:
    """Whether X is files whose table would take too much of the memory available."""
    if not isinstance(X, (str, os.PathLike)) and not is_paths(X):
        return False
    source = open_source(X)
    return isinstance(source, Table) and bytes_in_memory(source, tuning) > tuning.share * available_bytes()


def bytes_in_memory(table: Table, tuning: StreamTuning = StreamTuning()) -> float:
    """About how many bytes a fit to a table in memory takes."""
    if hasattr(table, "n_rows"):
        return float(table.n_rows) * len(table.schema) * tuning.entry_bytes
    packed = {stamp.path: stamp.path.suffix.lower() in (".gz", ".zst") for stamp in table.stamps}
    return sum(
        stamp.state[0] * tuning.text_factor * (tuning.compressed_factor if packed[stamp.path] else 1.0)
        for stamp in table.stamps
    )
