"""Tables from files, and comparison with numbers as a publication prints them: to half a unit of the last digit."""

import csv
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"


def columns(name):
    """The columns of data/<name>.csv by name: floats where every cell is a number, text otherwise."""
    with (DATA / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: _numbers_or_text([row[key] for row in rows]) for key in rows[0]}


def _numbers_or_text(cells):
    try:
        return np.array(cells, dtype=float)
    except ValueError:
        return np.array(cells)


def indicators(column, *levels):
    """A 0/1 column for each of the levels (R's treatment contrasts: leave the first level out)."""
    return np.column_stack([column == level for level in levels]).astype(float)


def half_a_unit(number):
    """Half a unit of the last digit of a number in print: 0.0005 for "1.250", 5e-8 for "1.25e-5"."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def assert_printed(got, text):
    """Every number equals the one in print, to all digits in print.

    Allowed besides: 1 % of half a unit for ties, and 16 eps, because what is printed was computed in float64 too.
    (The standard error 0.19030107482720 of the clotting times is 0.190301074827205082 in exact arithmetic.)
    """
    numbers = text.split()
    limits = np.array([1.01 * half_a_unit(number) for number in numbers])
    wanted = np.array(numbers, dtype=float)
    limits += 16 * np.finfo(float).eps * np.abs(wanted)
    got = np.atleast_1d(np.asarray(got, dtype=float))
    assert got.shape == wanted.shape
    wrong = ~(np.abs(got - wanted) <= limits)
    assert not wrong.any(), f"printed {wanted[wrong]}, got {got[wrong]}"
