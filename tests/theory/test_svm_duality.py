"""Duality of support vector machines on data: weak and strong, what the dual variables say of each row."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from certifit.losses import Hinge, HuberisedHinge
from certifit.losses.hinges import HINGES, rounded_hinge
from certifit.rows import as_rows
from certifit.svm.linear.interior_point import InteriorPointTuning, WorkingSetProblem, solve_working_set
from certifit.svm.linear.primal_sums import PrimalQuery, SvmObjective, SvmWorkingSet, dual_bound, measure_block
from certifit.svm.linear.slacks import OneAgainstRest
from tests.svm.linear.linear_cases import free_svc

SEEDS = st.integers(0, 2**32 - 1)
HINGE = Hinge().shape


def problem(seed, n=40, d=3):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, d)) + 1, rng.exponential(size=n)
    y = np.where(X[:, 0] + rng.normal(size=n) > 1, 1, -1)
    y[:2] = 1, -1
    return rng, X, y, w


def primal(beta, b, C, loss, X, y, w):
    return 0.5 * beta @ beta + C * w @ loss.value(y * (X @ beta + b))


def dual(u, C, loss, X, y, w):
    """At slopes u of the loss, one for each row; C w u y must sum to 0."""
    v = X.T @ (C * w * u * y)
    return -C * w @ loss.conjugate(u) - 0.5 * v @ v


def balanced(u, y, w):
    """The heavier class scaled down, so that Σ w u y = 0."""
    plus, minus = -w @ np.where(y > 0, u, 0), -w @ np.where(y < 0, u, 0)
    less = min(plus, minus)
    return u * np.where(y > 0, less / plus if plus else 0.0, less / minus if minus else 0.0)


@given(SEEDS, st.sampled_from(sorted(HINGES)), st.sampled_from([0.01, 1.0, 100.0]))
def test_weak_duality(seed, name, C):
    """Every feasible dual point lies below every primal point."""
    rng, X, y, w = problem(seed)
    loss = HINGES[name]
    u = balanced(-rng.uniform(size=len(y)), y, w)
    beta, b = rng.normal(size=3), rng.normal()
    bound = dual(u, C, loss, X, y, w)
    assert bound <= primal(beta, b, C, loss, X, y, w)
    assert bound <= free_svc(C, loss=name).fit(X, y, sample_weight=w).certificate_.objective * (1 + 1e-12)


@given(SEEDS, st.sampled_from(sorted(HINGES)), st.sampled_from([0.1, 1.0]), st.sampled_from([0.0, None, 0.25]))
def test_a_pass_bounds_the_minimum_from_below(seed, name, width, rho):
    """At any point, with the kink rounded over any width, however the intercept is treated."""
    rng, X, y, w = problem(seed)
    hinge = HINGES[name].shape
    minimised = rounded_hinge(width) if np.isfinite(hinge.top) and width > hinge.e else hinge
    rows = as_rows(X, (y > 0).astype(int), w, target="classes")
    query = PrimalQuery(OneAgainstRest(1), rng.normal(size=3 + (rho is not None)), minimised)
    (block,) = rows
    (sums,) = measure_block((query,), SvmObjective(hinge, 1.0, rho, None), block).each
    intercept = {"fit_intercept": rho is not None, "penalize_intercept": bool(rho), "intercept_scaling": 2.0}
    best = free_svc(loss=name, tol=1e-9, **intercept).fit(X, y, sample_weight=w)
    assert dual_bound(sums, hinge, rho) <= best.certificate_.objective * (1 + 1e-9)


@pytest.mark.parametrize("name", HINGES)
def test_strong_duality(name):
    """The slopes at the solution are a dual point of the same value: -φ'(m) where the loss is smooth."""
    _, X, y, w = problem(0, n=200)
    loss = HINGES[name]
    model = free_svc(loss=name, tol=1e-12).fit(X, y, sample_weight=w)
    value = primal(model.coef_[0], model.intercept_[0], 1.0, loss, X, y, w)
    if loss.kinks:  # any slope at the kink: those with β = -Σ w u y x and Σ w u y = 0 are found by a linear program
        m, Z = y * model.decision_function(X), np.column_stack([X, np.ones(len(X))])
        at = np.abs(m - 1) < 1e-7
        u = np.where(m < 1, -1.0, 0.0)
        rest = -np.append(model.coef_[0], 0.0) - Z[~at].T @ (w * u * y)[~at]
        u[at] = linprog(np.zeros(at.sum()), A_eq=Z[at].T * (w * y)[at], b_eq=rest, bounds=(-1, 0)).x
    else:
        u = loss.derivative(y * model.decision_function(X))
    np.testing.assert_allclose(w @ (u * y), 0, atol=1e-7)
    np.testing.assert_allclose(-X.T @ (w * u * y), model.coef_[0], atol=1e-6)
    np.testing.assert_allclose(dual(u, 1.0, loss, X, y, w), value, rtol=1e-6)


@given(SEEDS, st.floats(0.01, 1.0))
def test_the_rounded_hinge_is_nowhere_far_from_the_hinge(seed, width):
    z = np.random.default_rng(seed).normal(size=100) * 2
    above = HuberisedHinge(width).value(1 - z) - Hinge().value(1 - z)
    assert (above >= -1e-14).all()
    assert (above <= width / 4 + 1e-14).all()


def test_the_gap_of_the_rounded_problem_falls_with_the_square_of_the_width():
    """At the rounded solution, measured for the hinge: a tenth of the width, about a hundredth of the gap."""
    _, X, y, _ = problem(1, n=20_000)
    rows, theta, G = as_rows(X, (y > 0).astype(int), target="classes"), np.zeros(4), np.array([1.0, 1, 1, 0])
    svm = SvmObjective(HINGE, 1.0, 0.0, None)
    gaps = {}
    for width in (1.0, 0.5, 0.2, 0.1, 0.05):  # each from the solution before
        for _ in range(20):
            query = PrimalQuery(OneAgainstRest(1), theta, rounded_hinge(width))
            (sums,) = rows.sum(partial(measure_block, (query,), svm)).each
            theta = theta - np.linalg.solve(np.diag(G) + sums.H, G * theta - sums.v.sum(axis=0))
        gaps[width] = sums.loss + 0.5 * theta[:3] @ theta[:3] - dual_bound(sums, HINGE, 0.0)
    assert 30 < gaps[0.5] / gaps[0.05] < 300


@pytest.mark.parametrize("name", HINGES)
def test_the_interior_point_method_solves_the_whole_problem(name):
    """With every row in the working set: α are dual variables, θ the solution, and complementary slackness holds."""
    _, X, y, w = problem(2)
    loss, hinge = HINGES[name], HINGES[name].shape
    A = y[:, None] * np.column_stack([X, np.ones(len(X))])
    rows = SvmWorkingSet(A, y.astype(float), np.ones(len(y)), w)
    whole = WorkingSetProblem(rows, hinge, np.array([1.0, 1, 1, 0]), np.zeros(4))
    theta, alpha = solve_working_set(whole, np.zeros(4), 0.0, InteriorPointTuning())
    value = primal(theta[:3], theta[3], 1.0, loss, X, y, w)
    np.testing.assert_allclose(dual(-alpha / w, 1.0, loss, X, y, w), value, rtol=1e-9)
    np.testing.assert_allclose(alpha @ y, 0, atol=1e-9)
    m = A @ theta
    assert (alpha[m > 1 + hinge.e + 1e-6] <= 1e-9).all()
    if np.isfinite(hinge.top):
        np.testing.assert_allclose(alpha[m < 1 - hinge.e - 1e-6], w[m < 1 - hinge.e - 1e-6], rtol=1e-9)
    best = free_svc(loss=name, tol=1e-10).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(value, best.certificate_.objective, rtol=1e-9)


def test_rows_that_cannot_hold_the_intercept_have_no_minimum():
    rows = SvmWorkingSet(np.array([[1.0, 1.0]]), np.ones(1), np.ones(1), np.ones(1))
    endless = WorkingSetProblem(rows, HINGE, np.array([1.0, 0.0]), np.array([0.0, 5.0]))
    assert solve_working_set(endless, np.zeros(2), 0.0, InteriorPointTuning()) is None
