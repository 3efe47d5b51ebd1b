"""NIST's reference data for linear least squares: the certified digits follow from the data, and our fit has them.

The difficulty is in the columns: Filip's powers up to ten have a condition number of 1e15, Wampler's fits of degree
five have residuals up to 1e7 times the coefficients, Longley's columns are nearly collinear.
"""

import csv
import json
from fractions import Fraction

import numpy as np
import pytest

from certifit import LinearRegression
from tests.published.printed import DATA

CERTIFIED = json.loads((DATA / "nist" / "certified.json").read_text())
NAMES = [name for name in CERTIFIED if name != "source"]


def table(name):
    """Columns as the exact decimals in the file: those of X without the intercept (n, d), and y (n,)."""
    with (DATA / "nist" / f"{name}.csv").open(newline="") as file:
        rows = [[Fraction(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    y = [row[-1] for row in rows]
    degree = CERTIFIED[name]["degree"]
    if degree is None:
        return [row[:-1] for row in rows], y
    return [[row[0] ** k for k in range(1, degree + 1)] for row in rows], y


def exact_least_squares(X, y):
    """Solution of the normal equations, diagonal of (X'X)^-1 and residual sum of squares in rational arithmetic."""
    d = len(X[0])
    G = [[sum(row[i] * row[j] for row in X) for j in range(d)] for i in range(d)]
    b = [sum(row[i] * t for row, t in zip(X, y, strict=True)) for i in range(d)]
    A = [[*G[i], b[i], *(Fraction(i == j) for j in range(d))] for i in range(d)]  # (d, 2 d + 1): G, b, I
    for i in range(d):  # Gauss-Jordan; G is positive definite, so no pivot is zero
        A[i] = [a / A[i][i] for a in A[i]]
        for k in range(d):
            if k != i:
                A[k] = [a - A[k][i] * p for a, p in zip(A[k], A[i], strict=True)]
    beta = [row[d] for row in A]
    rss = sum((t - sum(x * c for x, c in zip(row, beta, strict=True))) ** 2 for row, t in zip(X, y, strict=True))
    return beta, [A[i][d + 1 + i] for i in range(d)], rss


def root(x):
    return float(x) ** 0.5


@pytest.mark.parametrize("name", NAMES)
def test_certified_values_follow_from_the_data(name):
    """No digit of data or certified values was lost in copying."""
    wanted = CERTIFIED[name]
    X, y = table(name)
    ones = [Fraction(1)] if wanted["intercept"] else []
    beta, inverse, rss = exact_least_squares([ones + row for row in X], y)
    variance = rss / (len(y) - len(beta))
    mean = sum(y) / len(y) if wanted["intercept"] else 0
    assert [float(b) for b in beta] == pytest.approx(wanted["coefficients"], rel=2e-14)
    assert [root(variance * v) for v in inverse] == pytest.approx(wanted["standard_deviations"], rel=2e-14)
    assert root(variance) == pytest.approx(wanted["residual_sd"], rel=2e-14)
    assert float(1 - rss / sum((t - mean) ** 2 for t in y)) == pytest.approx(wanted["r_squared"], rel=2e-14)


@pytest.mark.parametrize("name", NAMES)
def test_seven_digits(name):
    wanted = CERTIFIED[name]
    X, y = (np.array(part, dtype=float) for part in table(name))
    model = LinearRegression(fit_intercept=wanted["intercept"]).fit(X, y)
    coefficients = np.array(wanted["coefficients"])
    found = np.append(model.intercept_, model.coef_) if wanted["intercept"] else model.coef_
    np.testing.assert_allclose(found, coefficients, rtol=1e-7)
    assert model.certificate_.holds

    # where the certified deviation is zero, a ten-millionth of what it is the deviation of
    np.testing.assert_array_less(
        np.abs(model.standard_errors_ - wanted["standard_deviations"]),
        1e-7 * np.where(wanted["residual_sd"], wanted["standard_deviations"], np.abs(coefficients)),
    )
    assert np.sqrt(model.dispersion_) == pytest.approx(wanted["residual_sd"], rel=1e-7, abs=1e-7)
    assert model.score(X, y) == pytest.approx(r_squared(name), rel=1e-7)


def r_squared(name):
    """Against the mean of y, as scikit-learn's `score` has it; NIST takes the origin where there is no intercept."""
    wanted = CERTIFIED[name]
    if wanted["intercept"]:
        return wanted["r_squared"]
    y = np.array(table(name)[1], dtype=float)
    return 1.0 - (1.0 - wanted["r_squared"]) * (y @ y) / ((y - y.mean()) @ (y - y.mean()))
