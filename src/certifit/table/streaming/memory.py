"""When a table is read block by block: where holding it would take a large share of the memory that is there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from certifit.rows.sources.memory import available_bytes
from certifit.rows.sources.open_source import is_paths, open_source
from certifit.rows.sources.table import Table


@dataclass(frozen=True)
class StreamTuning:
    """How much memory a table may take before it is read block by block."""

    share: float = 0.25  # of the memory available
    entry_bytes: int = 24  # of each entry: as Arrow holds it, as an encoded number, and a copy
    text_factor: float = 6.0  # of the bytes of text of a CSV file, in memory
    piece: int = 2**20  # bytes unpacked at a time, to count them


def is_large(X: Any, tuning: StreamTuning = StreamTuning()) -> bool:
    """Whether X is files whose table would take too much of the memory available."""
    if not isinstance(X, (str, os.PathLike)) and not is_paths(X):
        return False
    source = open_source(X)
    if not isinstance(source, Table):
        return False
    room = tuning.share * available_bytes()
    return bytes_in_memory(source, tuning, room) > room


def bytes_in_memory(table: Table, tuning: StreamTuning = StreamTuning(), most: float = float("inf")) -> float:
    """About how many bytes a fit to a table in memory takes; beyond `most` nothing more is counted.

    Compressed files are unpacked to count their text: a few kilobytes may stand for any number of rows.
    """
    if hasattr(table, "n_rows"):
        return float(table.n_rows) * len(table.schema) * tuning.entry_bytes
    taken = 0.0
    for stamp in table.stamps:
        packed = stamp.path.suffix.lower() in (".gz", ".zst")
        left = (most - taken) / tuning.text_factor
        taken += tuning.text_factor * (_unpacked_bytes(stamp.path, left, tuning.piece) if packed else stamp.state[0])
        if taken > most:
            break
    return taken


def _unpacked_bytes(path: Path, most: float, piece: int) -> int:
    """How many bytes a compressed file holds, counted up to `most`; of a damaged one up to the damage."""
    unpacked = 0
    try:
        with pa.input_stream(path) as file:
            while unpacked <= most and (content := file.read(piece)):
                unpacked += len(content)
    except (OSError, pa.ArrowException):
        pass  # whoever reads it says so, with the name of the file
    return unpacked
