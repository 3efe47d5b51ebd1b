"""CSV files in which no text is a formula: a spreadsheet that opens them would run it."""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from certifit.exceptions import warn_caller

BEGINS = r"^[=+\-@\t\r]"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


class SpreadsheetCsvWriter:
    """Writes Arrow tables as CSV, with an apostrophe before text and names that a spreadsheet takes for a formula."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._changed = 0
        names = self._as_text(pa.chunked_array([pa.array(schema.names, pa.string())])).to_pylist()
        types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema]
        self._schema = pa.schema(list(zip(names, types, strict=True)))
        options = pa.csv.WriteOptions(quoting_style="needed", quoting_header="needed")
        self._writer = pa.csv.CSVWriter(file, self._schema, write_options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._writer.close()
        if self._changed and kind is None:
            warn_caller(
                f"{self._changed} names or text cells begin as formulas do; they were written with an apostrophe, so "
                "that no spreadsheet runs them. A Parquet file has them as they are.",
                UserWarning,
            )

    def write_table(self, table: Any) -> None:
        columns = [column.cast(kind) for column, kind in zip(table.columns, self._schema.types, strict=True)]
        self._writer.write_table(pa.Table.from_arrays([self._as_text(one) for one in columns], schema=self._schema))

    def _as_text(self, column: Any) -> Any:
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        odd = pc.and_not(pc.match_substring_regex(column, BEGINS), pc.match_substring_regex(column, NUMBER))
        count = pc.sum(odd).as_py() or 0
        self._changed += count
        quoted = pc.binary_join_element_wise(pa.scalar("'", column.type), column, pa.scalar("", column.type))
        return pc.if_else(odd, quoted, column) if count else column
