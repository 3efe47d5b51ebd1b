"""Tables printed as text, everywhere in the same way."""

from __future__ import annotations

from collections.abc import Sequence


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
