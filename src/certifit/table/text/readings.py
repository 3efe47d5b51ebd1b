"""Text that stands for something else is read so: numbers, dates, and yes or no.

A column of text is read in another way only where every entry that is not a hole can be, and in one way only:
01/02/2024 alone may be January or February, and stays text.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from certifit.table.text.dates import fitting_dates, is_date_reading, read_dates
from certifit.table.text.numbers import (
    FORMS,
    common_unit,
    fitting_forms,
    is_number_reading,
    number_reading,
    read_numbers,
    units_of,
)

YES_OR_NO = "yes or no"
_YES = ("yes", "y", "true", "t", "1", "ja", "oui", "si", "sí", "on", "wahr", "vrai")
_NO = ("no", "n", "false", "f", "0", "nein", "non", "off", "falsch", "faux")


def find_reading(text: pa.ChunkedArray) -> str:
    """The name of the one way to read all entries of some text (without holes); empty where it is text.

    >>> [find_reading(pa.chunked_array([column])) for column in (["$1,234", "$7"], ["1.234,5"], ["5 %", "7"], ["01"])]
    ['numbers, in $', 'numbers with decimal commas', '', '']
    >>> [find_reading(pa.chunked_array([column])) for column in (["31.01.2024"], ["01/31/2024"], ["01/02/2024"])]
    ['%d.%m.%Y', '%m/%d/%Y', '']
    """
    text = text.drop_null()
    return choose_reading(fitting_readings(text), units_of(text)) if len(text) else ""


def fitting_readings(text: Any) -> frozenset[str]:
    """All ways in which every entry of some text (without holes) can be read; of several texts, those of each.

    Whether numbers have one unit is seen when all texts are known (`choose_reading`).
    """
    found = [*fitting_forms(text), *fitting_dates(text)]
    if pc.all(pc.is_in(pc.utf8_lower(text), pa.array(_YES + _NO))).as_py():
        found.append(YES_OR_NO)
    return frozenset(found)


def choose_reading(fitting: Collection[str], units: Collection[str] = ("",)) -> str:
    """The one way of those in which every entry can be read; empty where the text stays text."""
    unit = common_unit(units)
    for name in FORMS if unit is not None else ():
        if name in fitting:
            return number_reading(name, unit or "")
    dates = [form for form in fitting if is_date_reading(form)]
    if len(dates) == 1:
        return dates[0]
    return YES_OR_NO if YES_OR_NO in fitting else ""


def read_text(text: pa.ChunkedArray, reading: str, any_unit: bool = False) -> pa.ChunkedArray:
    """Text (without holes) read in one of these ways; null where it cannot be. Numbers are whole where all are.

    >>> read_text(pa.chunked_array([["$1,234", "-7 ", "many"]]), "numbers").to_pylist()
    [1234, -7, None]
    """
    if not types.is_string(text.type):
        return text  # numbers or dates already
    if is_number_reading(reading):
        return read_numbers(text, reading, any_unit)
    if reading == YES_OR_NO:
        word = pc.utf8_lower(text)
        return pc.if_else(pc.is_in(word, pa.array(_YES + _NO)), pc.is_in(word, pa.array(_YES)), None)
    return read_dates(text, reading)
