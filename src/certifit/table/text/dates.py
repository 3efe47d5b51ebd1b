"""Dates as people write them, and which of their parts comes first.

31.01.2024   01/31/24   5 Jan 2024   Jan 5, 2024 03:04 PM   Mar 2023

Where a column fits several orders, as 01/02/2024 alone does, it stays text until somebody says which is meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import pyarrow.compute as pc

# What strptime calls them, and what they look like: it would take 23 for a year, and numbers of one digit anywhere.
_PARTS = {
    "%Y": "[0-9]{4}", "%y": "[0-9]{2}", "%m": "[0-9]{1,2}", "%d": "[0-9]{1,2}", "%b": "[A-Za-z]{3,9}",
    "%H": "[0-9]{1,2}", "%M": "[0-9]{2}", "%S": "[0-9]{2}", "%I": "[0-9]{1,2}", "%p": "(AM|PM|am|pm)",
}  # fmt: skip
DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%Y", "%m/%d/%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d. %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y",
    "%b %d, %Y", "%b %d %Y", "%d %b, %Y",
    "%b %Y", "%b-%Y", "%b-%y", "%Y-%m", "%Y/%m", "%m/%Y", "%m.%Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", ", %H:%M", " %I:%M %p", " %I:%M:%S %p")
_SHAPES = {
    day + time: "^" + re.sub("%[A-Za-z]", lambda part: _PARTS[part[0]], re.sub(r"([.])", r"[\1]", day + time)) + "$"
    for day in DAYS
    for time in TIMES
}


def fitting_dates(text: Any) -> list[str]:
    """All formats in which every entry of some text (without holes) is a date."""
    first = text[0].as_py()
    able = [form for form, shape in _SHAPES.items() if len(first) <= 40 and re.search(shape, first)]
    alike = [form for form in able if pc.all(pc.match_substring_regex(text, _SHAPES[form])).as_py()]
    return [form for form in alike if read_dates(text, form).null_count == 0]


def is_date_reading(reading: str) -> bool:
    """Whether a way to read text gives dates."""
    return reading.startswith("%")


def choose_date(fitting: Collection[str]) -> str:
    """Of the formats that fit all dates of a column, the one that is taken: the day before the month."""
    dates = sorted(filter(is_date_reading, fitting))
    return next((form for form in dates if form.startswith("%d")), dates[0] if dates else "")


def date_formats(words: Collection[str]) -> dict[str, str]:
    """Columns to read as dates, with their formats; an empty one is to be found.

    >>> date_formats(["born", "seen=%d/%m/%Y"])
    {'born': '', 'seen': '%d/%m/%Y'}
    """
    parts = [word.partition("=%") for word in words]
    return {name: mark[1:] + form for name, mark, form in parts}


def read_dates(text: Any, form: str) -> Any:
    """Text (without holes) as dates; null where it is none."""
    return pc.strptime(text, format=form, unit="s", error_is_null=True)
