"""A table of results that prints, shows as HTML in a notebook and turns into a data frame."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.core.text_table import html_table, text_table


@dataclass(frozen=True, repr=False)
class ResultTable:
    """Columns of names and numbers below a title, with notes that say what they rest on.

    >>> ResultTable("Two rows", {"name": ["a", "b"], "score": [0.5, float("nan")]}, ("pointwise",))
    Two rows
    <BLANKLINE>
    name  score
    a       0.5
    b
    <BLANKLINE>
    pointwise
    """

    title: str
    columns: Mapping[str, Sequence[Any]]
    notes: tuple[str, ...] = ()

    def lines(self) -> list[tuple[str, ...]]:
        """Return the headings, then a line of words for each row."""
        return [(*self.columns,), *(tuple(map(_words, row)) for row in zip(*self.columns.values(), strict=True))]

    def _align(self) -> str:
        return "".join("r" if _are_numbers(values) else "l" for values in self.columns.values())

    def __str__(self) -> str:
        notes = [textwrap.fill(note, 80) for note in self.notes]
        return "\n\n".join([self.title, text_table(self.lines(), self._align()), *notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return html_table(self.lines(), self._align(), self.title) + notes

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame({name: [*values] for name, values in self.columns.items()})


def _words(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
