"""Numbers printed with the digits that are proved, and no others."""

from __future__ import annotations

import math


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
