"""Results that print within 80 columns, show as HTML in a notebook, plot and turn into data frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from certifit.core.text_table import html_table, html_text, text_table, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TabledResult(ABC):
    """A result that is shown as its `table`, followed by its certificate where it has one.

    A subclass says which table, and names the function of `model_selection.plots` that draws it.
    """

    picture: ClassVar[str]

    @abstractmethod
    def table(self) -> ResultTable:
        """Return what is printed."""

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        certificate = getattr(self, "certificate", None)
        if certificate is None:
            return self.table()._repr_html_()
        verdict = f"{certificate.kind}, {'holds' if certificate.holds else 'does NOT hold'}"
        # Its many lines are folded away where it holds: the result itself is what a notebook is to show.
        opened = "" if certificate.holds else " open"
        unfolded = f"<summary>Certificate: {verdict}</summary>{certificate._repr_html_()}"
        return f"{self.table()._repr_html_()}<details{opened}>{unfolded}</details>"

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame."""
        return self.table().to_frame()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result; returns the axes.

        Parameters
        ----------
        ax : axes of matplotlib's to draw on, or None for new ones
        """
        from certifit.model_selection import plots

        return getattr(plots, self.picture)(self, ax)


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
    width: ClassVar[int] = 80  # columns of a terminal

    def lines(self) -> list[tuple[str, ...]]:
        """Return the headings, then a line of words for each row."""
        return [(*self.columns,), *(tuple(map(_words, row)) for row in zip(*self.columns.values(), strict=True))]

    def _align(self) -> str:
        return "".join("r" if _are_numbers(values) else "l" for values in self.columns.values())

    def __str__(self) -> str:
        notes = [wrapped(note, self.width) for note in self.notes]
        return "\n\n".join([wrapped(self.title, self.width), *self._parts(), *notes])

    def _parts(self) -> list[str]:
        """Return the table as text, in several parts that each begin with the first column where it is too wide."""
        lines, align = [tuple(map(_shorten, line)) for line in self.lines()], self._align()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        parts, taken, used = [], [0], widths[0]
        for place in range(1, len(widths)):
            if used + 2 + widths[place] > self.width and len(taken) > 1:
                parts.append(taken)
                taken, used = [0], widths[0]
            taken.append(place)
            used += 2 + widths[place]
        return [
            text_table([[line[i] for i in part] for line in lines], "".join(align[i] for i in part))
            for part in [*parts, taken]
        ]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html_text(note)}</p>" for note in self.notes)
        return html_table(self.lines(), self._align(), self.title) + notes

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame({name: [*values] for name, values in self.columns.items()})


def _shorten(cell: str, most: int = 34) -> str:
    """Return a cell of at most so many characters: its beginning and its end."""
    return cell if len(cell) <= most else f"{cell[: most // 2 - 1]}…{cell[-(most // 2) :]}"


def _words(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
