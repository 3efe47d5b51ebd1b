"""Tables as text and as HTML, everywhere in the same way."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from itertools import zip_longest


def text_table(lines: Sequence[Sequence[str]], align: str = "l", rule: bool = False) -> str:
    """Return lines of cells as text, in aligned columns two blanks apart.

    Parameters
    ----------
    lines : the heading first, all of the same length
    align : 'l' or 'r' for each column; the last letter counts for all further columns
    rule : whether a line of dashes goes below the heading

    >>> print(text_table([("model", "gap"), ("ours", "0.5"), ("theirs", "12")], "lr", rule=True))
    model   gap
    -----------
    ours    0.5
    theirs   12
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    align += align[-1] * (len(widths) - len(align))
    out = [
        "  ".join(
            cell.rjust(w) if side == "r" else cell.ljust(w) for cell, w, side in zip(line, widths, align, strict=True)
        ).rstrip()
        for line in lines
    ]
    if rule:
        out.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(out)


def html_table(lines: Sequence[Sequence[str]], align: str = "l", caption: str = "") -> str:
    """Return the same table as HTML, as notebooks show it.

    >>> html_table([("model", "gap"), ("a & b", "0.5")], "lr").split("<tr>")[-1]
    "<td style='text-align:left'>a &amp; b</td><td style='text-align:right'>0.5</td></tr></table>"
    """
    sides = [{"l": "left", "r": "right"}[side] for side in align + align[-1] * (len(lines[0]) - len(align))]
    rows = [
        "".join(
            f"<{tag} style='text-align:{side}'>{html.escape(cell)}</{tag}>"
            for cell, side in zip(line, sides, strict=True)
        )
        for tag, line in zip(["th"] + ["td"] * (len(lines) - 1), lines, strict=True)
    ]
    above = f"<caption style='text-align:left'>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{above}{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def wrapped(text: str, width: int = 80, indent: int = 0) -> str:
    """Return text with its lines broken between words; further lines are indented, and a longer word stays whole."""
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, width, subsequent_indent=" " * indent, **options)  # type: ignore[arg-type]


def text_pairs(pairs: Sequence[tuple[str, str]], width: int = 80, widest_label: int = 38) -> str:
    """Return labels and values as two columns, indented by two blanks and broken between words.

    >>> print(text_pairs([("gap", "0.5"), ("holds", "yes, and this is a value that goes on")], width=30))
      gap    0.5
      holds  yes, and this is a
             value that goes on
    """
    first = min(widest_label, max(len(label) for label, _ in pairs))
    lines = []
    for label, value in pairs:
        sides = (wrapped(label, first, indent=2), wrapped(value, max(20, width - first - 4)))
        for left, right in zip_longest(*(side.split("\n") for side in sides), fillvalue=""):
            lines.append(f"  {left:<{first}}  {right}".rstrip())
    return "\n".join(lines)
