"""Tables as text and as HTML, everywhere in the same way, and numbers with the digits that are proved."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

# control characters, which a terminal obeys, and overrides of the direction of text, but for ends of lines and tabs
_OBEYED = (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_REPLACED = {code: "\ufffd" for code in _OBEYED if chr(code) not in "\t\n\r"}


def printable(text: str) -> str:
    """Text without characters from data that a terminal would obey, or that turn other text round on the screen."""
    return text.translate(_REPLACED)


def html_text(text: str) -> str:
    """Text from data as HTML shows it.

    >>> html_text("a & b")
    'a &amp; b'
    """
    return html.escape(printable(text))


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
            f"<{tag} style='text-align:{side}'>{html_text(cell)}</{tag}>"
            for cell, side in zip(line, sides, strict=True)
        )
        for tag, line in zip(["th"] + ["td"] * (len(lines) - 1), lines, strict=True)
    ]
    above = f"<caption style='text-align:left'>{html_text(caption)}</caption>" if caption else ""
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


def proved_digits(value: float, error: float, most: int = 5) -> str:
    """Return `value` with at most so many significant digits, fewer where an error of up to `error` leaves fewer.

    The last digit printed is right to within one unit.

    >>> proved_digits(6.030912, 1e-9), proved_digits(6.030912, 2e-3), proved_digits(60309.12, 30.0)
    ('6.0309', '6.03', '6.03e+04')
    >>> proved_digits(0.0012, 0.5), proved_digits(6.0, math.inf), proved_digits(41.0, 3.0)
    ('0 ± 0.6', 'unproved', '4e+01')
    """
    if not math.isfinite(value) or not math.isfinite(error):
        return "unproved"
    if value == 0:
        return "0" if error == 0 else f"0 ± {_round_up(error)}"
    first = math.floor(math.log10(abs(value)))  # place of the first digit: 10**first
    last = math.ceil(math.log10(2 * error)) if error > 0 else first - most  # the smallest place that is proved
    digits = min(most, first - last + 1)
    if digits < 1:
        return f"0 ± {_round_up(abs(value) + error)}"
    return f"{value:#.{digits}g}".rstrip(".").replace(".e", "e")


def _round_up(size: float) -> str:
    """One digit, rounded up."""
    unit = 10.0 ** math.floor(math.log10(size))
    return f"{math.ceil(size / unit) * unit:.0g}"
