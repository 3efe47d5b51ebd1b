"""Arrow tables in memory, and Arrow datasets, with the formats, partitions and filters that Arrow knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from certifit.exceptions import DataError
from certifit.rows.sources.table import (
    Batches,
    FileStamp,
    ReadTuning,
    Table,
    Types,
    explain_read_errors,
    refuse_changed,
)


class ArrowTable(Table):
    """A table that is already in memory."""

    in_memory = True

    def __init__(self, table: Any) -> None:
        self.table, self.schema, self.n_rows = table, table.schema, table.num_rows

    def _read(self, types: Types, rows: int) -> Batches:
        yield from self.table.select(list(types)).to_batches(max_chunksize=rows)


class ArrowDataset(Table):
    """An Arrow dataset, whose files must not change while it is in use."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.schema = dataset, dataset.schema
        files = getattr(dataset, "filesystem", None)
        if isinstance(files, pa.fs.LocalFileSystem):
            self.stamps = [FileStamp.of(Path(file)) for file in dataset.files]
        self.elsewhere = None if self.stamps or files is None else RemoteFiles(files, list(dataset.files))
        with explain_read_errors(self.stamps, self._explain):
            self.n_rows = dataset.count_rows()

    def check_unchanged(self) -> None:
        """Refuse what changed or vanished since it was first read."""
        super().check_unchanged()
        if self.elsewhere is not None:
            self.elsewhere.check_unchanged()

    def _read(self, types: Types, rows: int) -> Batches:
        with explain_read_errors(self.stamps, self._explain):
            yield from self.dataset.to_batches(
                columns=list(types),
                batch_size=ReadTuning().rows_at_a_time(len(types), rows),
                batch_readahead=1,
                fragment_readahead=1,
                **self._scan_options(),
            )

    def _scan_options(self) -> dict[str, Any]:
        """How Parquet files are read: in bounded memory, and with their checksums verified."""
        if not isinstance(getattr(self.dataset, "format", None), pa.dataset.ParquetFileFormat):
            return {}
        options = pa.dataset.ParquetFragmentScanOptions(
            use_buffered_stream=True,
            buffer_size=ReadTuning().buffer_bytes,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        return {"fragment_scan_options": options}

    def _explain(self, reason: str) -> DataError:
        self.check_unchanged()
        place = self._damaged_place()
        return DataError(
            got=f"{place or 'an Arrow dataset'} that cannot be read ({reason})",
            wanted="complete files of one schema",
            fix="Write the file again: it is cut off or damaged."
            if place
            else "Pass the path of a file or directory instead to learn which file is damaged.",
        )

    def _damaged_place(self) -> str:
        """The first file that cannot be read, and the row group of a Parquet file; nothing where none is found."""
        for fragment in self.dataset.get_fragments():
            place = f"{getattr(fragment, 'path', 'a part of an Arrow dataset')!r}"
            try:
                for part in getattr(fragment, "split_by_row_group", lambda: [fragment])():  # noqa: B023  (called at once)
                    groups = getattr(part, "row_groups", None)
                    place = f"{fragment.path!r}, in row group {groups[0].id} (the first is 0)," if groups else place
                    for _ in part.to_batches(schema=self.schema, batch_size=2**12, **self._scan_options()):
                        pass
            except (pa.ArrowException, OSError):
                return place
        return ""


class RemoteFiles:
    """Files of another file system, and what it said of them when they were first read: size, and time or version."""

    def __init__(self, files: Any, paths: list[str]) -> None:
        self.files, self.paths = files, paths
        self.states = self._states()

    def check_unchanged(self) -> None:
        """Refuse files that changed or vanished since they were first read."""
        for path, state, before in zip(self.paths, self._states(), self.states, strict=True):
            if state != before:
                refuse_changed(path)

    def _states(self) -> list[Any]:
        theirs = getattr(getattr(self.files, "handler", None), "fs", None)
        if theirs is None:
            return [(info.type, info.size, info.mtime_ns) for info in self.files.get_file_info(self.paths)]
        theirs.invalidate_cache()  # fsspec remembers what it has listed
        return [_fsspec_state(theirs, path) for path in self.paths]


def _fsspec_state(files: Any, path: str) -> Any:
    """What tells one version of a file from another, by fsspec; None where the file is not there."""
    try:
        return files.ukey(path)
    except FileNotFoundError:
        return None
