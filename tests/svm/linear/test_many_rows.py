"""The checker of linear machines on very many rows: dual points that are sums over blocks."""

import numpy as np
import pytest

import certifit
from certifit.checkers.svm.linear_machines.linear import LinearSvmCheckTuning, certify
from certifit.rows import as_rows

BY_SUMS = LinearSvmCheckTuning(most_slacks=0)
BY_ROWS = LinearSvmCheckTuning(most_slacks=10**9)

MACHINES = [
    certifit.LinearSVR(epsilon=0.3),
    certifit.LinearSVR(epsilon=0.3, penalize_intercept=False),
    certifit.LinearSVR(epsilon=0.3, loss="squared_epsilon_insensitive"),
    certifit.LinearSVC(loss="hinge"),
    certifit.LinearSVC(loss="hinge", penalize_intercept=False),
    certifit.LinearSVC(loss="hinge", fit_intercept=False),
    certifit.LinearSVC(loss="huberised_hinge"),
    certifit.LinearSVC(),
]


def problem(model, seed=0, n=3000, offset=0.0):
    """Noisy rows of three columns, a tenth of them without weight."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 3.0, 0.2] + offset
    score = (X - offset) @ [1.0, 0.3, 0.0] + rng.normal(size=n)
    w = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.5, 2.0, n))
    return X, (score if model.target == "numbers" else 1 * (score > 0.3)), w


def checked(model, X, y, w, tuning, tol=1e-4):
    rows = as_rows(X, y, w, target="numbers")
    with np.errstate(all="ignore"):  # as in an audit
        return certify(np.atleast_2d(model.coef_), model.intercept_, model._claimed(), tol, rows, tuning=tuning)


# A free intercept makes up for columns that are far from 0.
@pytest.mark.parametrize(
    ("model", "offset"),
    [*((m, 0.0) for m in MACHINES), *((m, 1e6) for m in MACHINES if not m.penalize_intercept)],
    ids=str,
)
def test_honest_fits_are_proved_and_bounds_stay_below_the_optimum(model, offset):
    model = type(model)(**model.get_params())
    X, y, w = problem(model, offset=offset)
    best = type(model)(**{**model.get_params(), "tol": 1e-9}).fit(X, y, sample_weight=w).certificate_
    proof = checked(model.fit(X, y, sample_weight=w), X, y, w, BY_SUMS)
    assert best.holds
    assert proof.holds
    assert proof.bound <= best.objective
    assert proof.objective == pytest.approx(checked(model, X, y, w, BY_ROWS).objective, rel=1e-9)


@pytest.mark.parametrize("model", MACHINES, ids=str)
def test_wrong_machines_fail(model):
    X, y, w = problem(model, seed=1)
    model = type(model)(**model.get_params()).fit(X, y, sample_weight=w)
    best, right = model.certificate_.objective, (model.coef_, model.intercept_)
    for factor in (0.0, -1.0, 1.1, 1e6, 1e300):
        model.coef_, model.intercept_ = factor * right[0], right[1]
        proof = checked(model, X, y, w, BY_SUMS)
        assert not proof.holds, factor
        assert not proof.bound > best, factor


def test_several_classes_and_blocks(blocks_of):
    """Three machines in common passes; the size of blocks changes nothing but rounding."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 4))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=2000), [-0.5, 0.5])
    model = certifit.LinearSVC(loss="hinge").fit(X, y)
    whole = checked(model, X, y, None, BY_SUMS)
    blocks_of(300)
    parts = checked(model, X, y, None, BY_SUMS)
    assert whole.holds
    assert parts.holds
    assert parts.bound == pytest.approx(whole.bound, rel=1e-9)


def test_a_model_of_scikit_learn_is_judged_alike():
    from sklearn.svm import LinearSVR

    model = certifit.LinearSVR(C=0.1)
    X, y, _ = problem(model, seed=3)
    foreign = LinearSVR(C=0.1, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
    ours = checked(model.fit(X, y), X, y, None, BY_SUMS)
    model.coef_, model.intercept_ = foreign.coef_, foreign.intercept_
    theirs = checked(model, X, y, None, BY_SUMS)
    assert ours.bound <= theirs.objective
    assert theirs.bound <= ours.objective
    assert theirs.holds
