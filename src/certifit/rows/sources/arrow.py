"""Arrow tables in memory, and Arrow datasets, with the formats, partitions and filters that Arrow knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from certifit.exceptions import DataError
from certifit.rows.sources.table import Batches, FileStamp, ReadTuning, Table, Types, explain_read_errors


class ArrowTable(Table):
    """A table that is already in memory."""

    in_memory = True

    def __init__(self, table: Any) -> None:
        self.table, self.schema, self.n_rows = table, table.schema, table.num_rows

    def _read(self, types: Types, rows: int) -> Batches:
        yield from self.table.select(list(types)).to_batches(max_chunksize=rows)


class ArrowDataset(Table):
    """An Arrow dataset; local files must not change while it is in use."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.schema = dataset, dataset.schema
        if isinstance(getattr(dataset, "filesystem", None), pa.fs.LocalFileSystem):
            self.stamps = [FileStamp.of(Path(file)) for file in dataset.files]
        with explain_read_errors(self.stamps, self._explain):
            self.n_rows = dataset.count_rows()

    def _read(self, types: Types, rows: int) -> Batches:
        tuning, options = ReadTuning(), {}
        if isinstance(getattr(self.dataset, "format", None), pa.dataset.ParquetFileFormat):
            options["fragment_scan_options"] = pa.dataset.ParquetFragmentScanOptions(
                use_buffered_stream=True,
                buffer_size=tuning.buffer_bytes,
                pre_buffer=False,
                page_checksum_verification=True,
            )
        with explain_read_errors(self.stamps, self._explain):
            yield from self.dataset.to_batches(
                columns=list(types),
                batch_size=tuning.rows_at_a_time(len(types), rows),
                batch_readahead=1,
                fragment_readahead=1,
                **options,
            )

    def _explain(self, reason: str) -> DataError:
        return DataError(
            got=f"an Arrow dataset that cannot be read ({reason})",
            wanted="complete files of one schema",
            fix="Pass the path of a file or directory instead to learn which file is damaged.",
        )
