"""Text that stands for something else: numbers with signs and separators, dates in other orders, words for holes.

    $1,234.50   37 %   1.234,5   31.01.2024   01/31/2024   ?   n/a

A column of text is read in another way only where every entry that is not a hole can be, and in one way only:
01/02/2024 alone may be January or February, and stays text. Numbers that begin with 0, such as postal codes, stay
text too.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

HOLES = ("", "?", "-", "--", "n/a", "n.a.", "#n/a", "na", "nan", "null")
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%m/%d/%Y", "%d/%m/%Y")
SHARES = ", in percent"  # follows the name of a form whose entries are all shares
_SIGN, _MONEY = "[-+]?", "[$€£¥]?"
_PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")


class NumberForm(NamedTuple):
    """How numbers are written: what parts thousands, and what parts decimals."""

    thousands: str
    decimal: str

    @property
    def pattern(self) -> str:
        """What all of an entry looks like: an amount of money, a share in percent or a plain number."""
        digits = rf"([0-9]{{1,3}}([{self.thousands}][0-9]{{3}})+|[0-9]+)([{self.decimal}][0-9]+)?([eE]{_SIGN}[0-9]+)?"
        return f"^{_SIGN} ?{_MONEY} ?{_SIGN}{digits} ?(%|{_MONEY})$"


FORMS = {"numbers": NumberForm(",", "."), "numbers with decimal commas": NumberForm(". ", ",")}


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


def find_reading(text: pa.ChunkedArray) -> str:
    """The name of the one way to read all entries of some text (without holes); empty where it is text.

    >>> [find_reading(pa.chunked_array([column])) for column in (["$1,234", "7"], ["1.234,5"], ["5 %", "7"], ["01"])]
    ['numbers', 'numbers with decimal commas', '', '']
    >>> [find_reading(pa.chunked_array([column])) for column in (["31.01.2024"], ["01/31/2024"], ["01/02/2024"])]
    ['%d.%m.%Y', '%m/%d/%Y', '']
    """
    text = text.drop_null()
    return choose_reading(fitting_readings(text)) if len(text) else ""


def fitting_readings(text: Any) -> frozenset[str]:
    """All ways in which every entry of some text (without holes) can be read; of several texts, those of each.

    Numbers that are all shares in percent are read in another way than numbers of which none is.
    """
    shares = pc.sum(pc.match_substring(text, "%")).as_py()
    coded = pc.any(pc.match_substring_regex(text, "^[-+]?0[0-9]")).as_py()
    found = []
    if shares in (0, len(text)) and not coded:
        ending = SHARES if shares else ""
        found = [name + ending for name, form in FORMS.items() if _all_match(text, form.pattern)]
    if _all_match(text, r"^[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}$"):
        found += [form for form in DATES if read_text(text, form).null_count == 0]
    return frozenset(found)


def choose_reading(fitting: Collection[str]) -> str:
    """The one way of those in which every entry can be read; empty where the text stays text."""
    for name in FORMS:
        if name in fitting or name + SHARES in fitting:
            return name
    dates = [form for form in DATES if form in fitting]
    return dates[0] if len(dates) == 1 else ""


def date_formats(words: Collection[str]) -> dict[str, str]:
    """Columns to read as dates, with their formats; an empty one is to be found.

    >>> date_formats(["born", "seen=%d/%m/%Y"])
    {'born': '', 'seen': '%d/%m/%Y'}
    """
    parts = [word.partition("=%") for word in words]
    return {name: mark[1:] + form for name, mark, form in parts}


def choose_date(fitting: Collection[str]) -> str:
    """Of the formats that fit all dates of a column, the one that is taken: the day before the month."""
    return next((form for form in reversed(DATES) if form in fitting), "")


def _all_match(text: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def read_text(text: pa.ChunkedArray, reading: str) -> pa.ChunkedArray:
    """Text (without holes) read in one of these ways; null where it cannot be. Numbers are whole where all are.

    >>> read_text(pa.chunked_array([["$1,234", "-7 ", "many"]]), "numbers").to_pylist()
    [1234, -7, None]
    """
    if not types.is_string(text.type):
        return text  # numbers or dates already
    if reading not in FORMS:
        return pc.strptime(text, format=reading, unit="s", error_is_null=True)
    form = FORMS[reading]
    plain = pc.if_else(pc.match_substring_regex(text, form.pattern), text, None)
    plain = pc.replace_substring_regex(plain, rf"[{form.thousands}$€£¥% +]", "")
    numbers = pc.replace_substring(plain, form.decimal, ".").cast(pa.float64())
    whole = pc.all(pc.and_(pc.equal(pc.round(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))).as_py()
    return numbers.cast(pa.int64()) if whole else numbers
