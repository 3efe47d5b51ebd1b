"""Words that stand for a missing entry."""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

HOLES = ("", "?", "-", "--", "n/a", "n.a.", "#n/a", "na", "nan", "null")
_PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")


def is_hole(word: str) -> bool:
    """Whether a word stands for a missing entry, or would be another one without spaces at its ends."""
    return word.strip().lower() in HOLES or word != word.strip()


def with_holes(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same text without spaces at its ends, and null where a word stands for a missing entry.

    >>> with_holes(pa.chunked_array([[" a", "?", "N/A", None]])).to_pylist()
    ['a', None, None, None]
    """
    text = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.is_in(pc.utf8_lower(text), pa.array(HOLES)), None, text)


def without_words(table: pa.Table, words: Collection[str]) -> pa.Table:
    """A table with null in place of these words, and of the numbers that they stand for.

    >>> without_words(pa.table({"a": ["x", "none"], "b": [-9, 3]}), ["none", "-9"]).to_pylist()
    [{'a': 'x', 'b': None}, {'a': None, 'b': 3}]
    """
    numbers = [float(word) for word in words if _PLAIN_NUMBER.fullmatch(word.strip())]
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True) if words else ()):
        if types.is_string(column.type) or types.is_large_string(column.type):
            found = pc.is_in(pc.utf8_trim_whitespace(column), pa.array(list(words), column.type))
        elif numbers and (types.is_integer(column.type) or types.is_floating(column.type)):
            found = pc.is_in(column.cast(pa.float64(), safe=False), pa.array(numbers))
        else:
            continue
        table = table.set_column(place, name, pc.if_else(found, None, column))
    return table
