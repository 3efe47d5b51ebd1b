"""Dual points: any candidate becomes feasible, and no bound exceeds the minimum, whatever rounding does."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from certifit.checkers.plain.dual_points import (
    DualPenalty,
    DualSums,
    bound_below,
    is_feasible,
    lower_bound,
    make_feasible,
    summation_error,
)

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.booleans())
@example(1, True)  # sums that differ by a factor whose inverse is 0 in floating point
@example(18, True)
def test_any_candidate_becomes_feasible(seed, balance):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    a = rng.normal(size=m) * 10.0 ** rng.uniform(-300, 300, m)
    a[rng.random(m) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    limit = np.where(rng.random(m) < 0.3, 0.0, rng.choice([1.0, 1e-9, 1e9, np.inf], m))
    sign = rng.choice([-1.0, 1.0], m) if balance else None
    point = make_feasible(a, limit, sign)
    assert is_feasible(point, limit)
    assert (point[limit == 0] == 0).all()
    if sign is not None:
        assert abs((sign * point).sum()) <= 1e-13 * m * point.sum()


@pytest.mark.parametrize("small", [1e-300, 1e-320])
def test_a_side_that_vanishes_beside_the_other_leaves_nothing(small):
    """Scaling 1e300 down to it would underflow, and leave one side alone."""
    a, sign = np.array([small, 1e300, 1.0]), np.array([1.0, -1.0, -1.0])
    np.testing.assert_array_equal(make_feasible(a, np.full(3, np.inf), sign), 0.0)
    a = np.array([1.0, 3.0, 1.0])
    np.testing.assert_allclose(make_feasible(a, np.full(3, np.inf), sign), [1.0, 0.75, 0.25])


@pytest.mark.parametrize(("a", "limit"), [(-1e-9, 1.0), (1.1, 1.0), (np.nan, 1.0), (np.inf, np.inf), (1e-300, 0.0)])
def test_infeasible_points_are_noticed(a, limit):
    assert not is_feasible(np.array([0.5, a]), np.array([1.0, limit]))


def ridge_sums(X, y, u):
    """The dual sums of least squares: φ(η) = ½ (η - y)², φ*(u) = ½ u² + u y, at a = u."""
    gain = -(0.5 * u**2 + u * y)
    return DualSums(
        float(gain.sum()), float(np.abs(0.5 * u**2).sum() + np.abs(u * y).sum()), u @ X, np.abs(u) @ np.abs(X),
        np.asarray(u.sum()), np.asarray(np.abs(u).sum()),
    )  # fmt: skip


def exact_ridge(X, y, lam):
    """The minimum of ½ |Xβ - y|² + λ/2 |β|² for one column, in rational arithmetic."""
    x, t = [Fraction(v) for v in X[:, 0].tolist()], [Fraction(v) for v in y.tolist()]
    beta = sum(a * b for a, b in zip(x, t, strict=True)) / (sum(a * a for a in x) + Fraction(lam))
    return sum((beta * a - b) ** 2 for a, b in zip(x, t, strict=True)) / 2 + Fraction(lam) * beta**2 / 2


@given(SEEDS, st.sampled_from([1e-6, 1.0, 1e6]), st.floats(-8, 8), st.booleans())
def test_no_bound_exceeds_the_minimum(seed, lam, size, near):
    """Against exact rational arithmetic, at the best dual point and far from it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    X, y = 10.0**size * rng.normal(size=(n, 1)), rng.normal(size=n)
    beta = float(X[:, 0] @ y / (X[:, 0] @ X[:, 0] + lam))
    u = X[:, 0] * beta - y
    u = u if near else u + 10.0 ** rng.uniform(-12, 6) * rng.normal(size=n)
    bound = lower_bound(ridge_sums(X, y, u), DualPenalty(0.0, lam, None), n)
    assert Fraction(bound) <= exact_ridge(X, y, lam)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_proves_nothing(bad):
    one = np.ones(())
    sums = DualSums(bad, 1.0, np.ones(2), np.ones(2), 0 * one, one)
    assert lower_bound(sums, DualPenalty(0.0, 1.0, None), 10) == -np.inf
    assert bound_below(bad, 1.0, 1.0, 10) == -np.inf
    assert bound_below(1.0, bad, 1.0, 10) == -np.inf


def test_an_imbalance_is_paid_for():
    sums = DualSums(10.0, 10.0, np.zeros(2), np.ones(2), np.asarray(0.01), np.asarray(1.0))
    free, held, none = (lower_bound(sums, DualPenalty(0.0, 1.0, rho), 10) for rho in (0.0, 1.0, None))
    assert free <= 10 - 0.02 * 10  # both sides scaled until they balance
    assert held == pytest.approx(10 - 0.01**2 / 2)
    assert none == pytest.approx(10)
    lost = DualSums(10.0, 10.0, np.zeros(2), np.ones(2), np.asarray(1.0), np.asarray(1.0))
    assert lower_bound(lost, DualPenalty(0.0, 1.0, 0.0), 10) == -np.inf


def test_a_large_objective_hides_a_small_optimum():
    """1e20 - 1e20 is no lower bound: its digits are gone."""
    assert bound_below(1e20, 1e20 * (1 - 2**-53), 1e20, 8) < 0
    assert bound_below(10.0, 1e-9, 10.0, 8) == pytest.approx(10 - 1e-9, abs=1e-12)
    assert summation_error(10**9) < 1e-11
