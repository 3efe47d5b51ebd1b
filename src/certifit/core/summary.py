"""A fitted model on one page, as text of at most 80 columns and as HTML."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import ClassVar

from certifit.core.text_table import html_table, html_text, text_table

Lines = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Summary:
    """Facts about a fit, a table of its coefficients, and notes; prints as a table, and notebooks show it as one.

    >>> page = Summary((("rows", "3"), ("proof", "optimal")), (("", "coef"), ("x0", "1.5")), ("no intercept",))
    >>> page
    rows   3
    proof  optimal
    <BLANKLINE>
        coef
    x0   1.5
    <BLANKLINE>
    no intercept
    >>> "optimal" in page
    True
    """

    facts: tuple[tuple[str, str], ...]  # (label, value)
    table: Lines = ()  # the heading first
    notes: tuple[str, ...] = ()
    width: ClassVar[int] = 80  # columns of a terminal

    def __str__(self) -> str:
        parts = [text_table(self._wrapped_facts())]
        if self.table:
            parts.append(text_table(self._narrow_table(), "lr"))
        parts += [textwrap.fill(note, self.width) for note in self.notes]
        return "\n\n".join(parts)

    __repr__ = __str__

    def __contains__(self, words: str) -> bool:
        """Whether the page says this, so that it can be asked as a text can."""
        return words in str(self)

    def _wrapped_facts(self) -> list[tuple[str, str]]:
        """The facts with long values on several lines."""
        room = self.width - 2 - max(len(label) for label, _ in self.facts)
        lines = []
        for label, value in self.facts:
            first, *rest = textwrap.wrap(value, room) or [""]
            lines += [(label, first), *(("", more) for more in rest)]
        return lines

    def _narrow_table(self) -> Lines:
        """The table with names shortened in the middle where they would make it too wide."""
        widths = [max(map(len, column)) for column in zip(*self.table, strict=True)]
        room = max(8, self.width - sum(widths[1:]) - 2 * (len(widths) - 1))
        return tuple((_shorten(line[0], room), *line[1:]) for line in self.table)

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><td style='text-align:left'>{html_text(label)}</td>"
            f"<td style='text-align:left'>{html_text(value)}</td></tr>"
            for label, value in self.facts
        )
        table = html_table(self.table, "lr") if self.table else ""
        return f"<table>{facts}</table>{table}" + "".join(f"<p>{html_text(note)}</p>" for note in self.notes)


def _shorten(name: str, room: int) -> str:
    """A name of at most so many characters: its beginning and its end."""
    return name if len(name) <= room else f"{name[: (room - 1) // 2]}…{name[len(name) - room // 2 :]}"


__all__ = ["Summary"]
