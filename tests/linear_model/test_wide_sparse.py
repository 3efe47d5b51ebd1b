"""L1 penalties on sparse rows with many more columns than rows: solved in working sets, proved by duality."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn import linear_model
from sklearn.base import clone

from certifit import ElasticNet, Lasso, LogisticRegression, audit, set_threads
from certifit.linear_model.glm import block_statistics as glm_statistics
from certifit.linear_model.linear_rows import SparseHessianTuning, sandwich, sandwich_of
from certifit.linear_model.logistic import block_statistics as logistic_statistics
from certifit.optimise.proximal_newton import ProximalTuning, minimise_penalised_quadratic
from certifit.optimise.sparse_curvature import SweepGoals
from certifit.rows.block import BlockTuning, block_tuning

N, D = 120, 5000


def wide_table(seed=0):
    """Few entries a row, two columns that lie far from 0 among them; ten columns matter."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((N, D), density=0.004, rng=rng, format="lil")
    X[:, :10] = rng.normal(size=(N, 10))
    X[:, 3] = 50.0 + 0.1 * rng.normal(size=(N, 1))
    X = sparse.csr_array(X)
    score = X[:, :10].toarray() @ np.array([2.0, -2, 1, 5, 0, 0, 1, -1, 1, 1]) - 250.0
    return X, score + 0.5 * rng.normal(size=N), (rng.random(N) < expit(score)).astype(int)


X, Y, LABELS = wide_table()


@pytest.mark.parametrize("intercept", [True, False])
def test_lasso_is_scikit_learns(intercept):
    alpha = 0.05
    ours = Lasso(alpha=alpha, fit_intercept=intercept, tol=1e-10).fit(X, Y)
    theirs = linear_model.Lasso(alpha=alpha, fit_intercept=intercept, tol=1e-12, max_iter=100_000).fit(X.tocsc(), Y)
    assert ours.certificate_.holds
    assert audit(ours, X, Y).holds
    assert 0 < np.count_nonzero(ours.coef_) < N
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


def test_elastic_net_is_proved_to_its_distance():
    close, rough = (ElasticNet(alpha=0.05, tol=tol).fit(X, Y) for tol in (1e-10, 1e-4))
    assert rough.certificate_.holds
    errors = np.array(rough.certificate_.parameter_error[0][:-1])
    assert (np.abs(rough.coef_ - close.coef_) <= errors).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_slopes_of_the_logistic_fit_are_those_of_a_minimum(intercept):
    C = 2.0
    model = LogisticRegression("l1", C=C, fit_intercept=intercept, tol=1e-10).fit(X, LABELS)
    assert model.certificate_.holds
    assert audit(model, X, LABELS).holds
    away = expit(model.decision_function(X)) - LABELS
    slopes, used = C * (X.T @ away), model.coef_[0] != 0
    assert used.any()
    np.testing.assert_allclose(slopes[used], -np.sign(model.coef_[0, used]), atol=1e-4)
    assert np.abs(slopes).max() <= 1 + 1e-4
    if intercept:
        assert abs(away.sum()) < 1e-6


@pytest.mark.parametrize(
    ("model", "y"), [(Lasso(alpha=0.05), Y), (ElasticNet(alpha=0.05), Y), (LogisticRegression("l1"), LABELS)]
)
def test_fit_and_audit_claim_the_same_and_sabotage_is_seen(model, y):
    model.fit(X, y)
    found = audit(model, X, y)
    assert found.holds
    assert (found.kind, found.claim) == (model.certificate_.kind, model.certificate_.claim)
    assert found.objective == pytest.approx(model.certificate_.objective, rel=1e-12)
    model.coef_ = model.coef_ * 1.01
    assert not audit(model, X, y).holds
    model.coef_ = model.coef_ / 1.01
    model.intercept_ = model.intercept_ + 0.05
    assert not audit(model, X, y).holds


def test_the_same_bits_for_any_number_of_threads():
    found = []
    for threads in (1, 2):
        set_threads(threads)
        with block_tuning(BlockTuning(fixed_rows=16)):
            found.append((Lasso(alpha=0.05).fit(X, Y).coef_, LogisticRegression("l1").fit(X, LABELS).coef_))
    set_threads(None)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_neither_fit_nor_audit_makes_the_rows_dense():
    wide = sparse.csr_array((X.data, X.indices, X.indptr), shape=(N, 100_000))  # dense: 96 MB
    tracemalloc.start()
    try:
        for model, y in ((Lasso(alpha=0.05), Y), (LogisticRegression("l1"), LABELS)):
            assert audit(model.fit(wide, y), wide, y).holds
        assert tracemalloc.get_traced_memory()[1] < 48e6
    finally:
        tracemalloc.stop()


@pytest.mark.compiled
def test_pairs_of_sparse_entries_make_the_gram_matrix():
    rng = np.random.default_rng(1)
    Z, h = X[:, :300].tocsr(), rng.random(N)
    backwards = sparse.csr_array(Z[:, ::-1])[:, ::-1]  # entries of a row in another order
    for intercept in (True, False):
        columns = np.array([1, 4, 7, 200] + [300] * intercept)
        whole = sandwich(Z.toarray(), h, intercept)[np.ix_(columns, columns)]
        for rows in (Z, backwards):
            np.testing.assert_allclose(
                sandwich_of(rows, h, intercept, columns, tuning=SparseHessianTuning(compiled_entries=0)),
                whole,
                rtol=1e-12,
            )


FACTORED = SparseHessianTuning(factored_columns=0)


@pytest.mark.compiled
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_stand_for_their_hessian(intercept, ridge):
    """The same minimum from the entries of the rows as from the square matrix, rows in two blocks."""
    rng = np.random.default_rng(2)
    Z, h = X[:, 10:40].tocsr(), rng.random(N) + 0.1
    columns, strengths = np.arange(30 + intercept), np.append(np.full(30, ridge), np.zeros(int(intercept)))
    g, x = 3 * rng.normal(size=len(columns)), rng.normal(size=len(columns))
    lam = np.append(np.full(30, 0.5), np.zeros(int(intercept)))
    H = sandwich(Z.toarray(), h, intercept) + np.diag(strengths) + 1e-3 * np.diag(lam)
    parts = [
        sandwich_of(Z[rows], h[rows], intercept, columns, tuning=FACTORED) for rows in (slice(0, 50), slice(50, None))
    ]
    factored = (parts[0] + parts[1]).with_ridge(strengths + 1e-3 * lam)
    arguments = g, lam, x, SweepGoals(1e-24, sweeps=100_000), ProximalTuning(creeping=100_000)
    want, found = minimise_penalised_quadratic(H, *arguments), minimise_penalised_quadratic(factored, *arguments)
    assert 0 < np.count_nonzero(want == 0) < 30
    np.testing.assert_allclose(found, want, atol=1e-8)


@pytest.mark.parametrize("model", [Lasso(alpha=0.05, tol=1e-9), ElasticNet(alpha=0.05, tol=1e-9),
                                   LogisticRegression("l1", C=2.0, tol=1e-9)])  # fmt: skip
def test_fits_by_rows_in_place_of_hessians_reach_the_same_minimum(model, monkeypatch):
    y = LABELS if isinstance(model, LogisticRegression) else Y
    want = clone(model).fit(X, y)
    calls = []

    def factored(Z, h, intercept, columns, at_hand=False):
        calls.append(len(h))
        return sandwich_of(Z, h, intercept, columns, at_hand, FACTORED)

    for module in (glm_statistics, logistic_statistics):
        monkeypatch.setattr(module, "sandwich_of", factored)
    with block_tuning(BlockTuning(fixed_rows=50)):
        found = clone(model).fit(X, y)
    assert 50 in calls
    assert audit(found, X, y).holds
    np.testing.assert_allclose(found.coef_, want.coef_, atol=1e-5)


def test_columns_of_rows_in_memory_are_taken_out_of_one_table(monkeypatch):
    """No column lies far from 0, so that the table's own columns stand for their Hessian, in blocks or not."""
    near, held = X[:, 10:].tocsr(), []

    def factored(Z, h, intercept, columns, at_hand):
        found = sandwich_of(Z, h, intercept, columns, at_hand, FACTORED)
        held.append(found.parts[0][0])
        return found

    def fit():
        return LogisticRegression("l1", C=20.0, tol=1e-9).fit(near, LABELS)

    want = fit()
    monkeypatch.setattr(logistic_statistics, "sandwich_of", factored)
    with block_tuning(BlockTuning(fixed_rows=50)):
        found = fit()
    assert held == [None] * len(held)
    assert len(held) >= 3
    assert np.count_nonzero(found.coef_) > 1
    assert audit(found, near, LABELS).holds
    np.testing.assert_allclose(found.coef_, want.coef_, atol=1e-5)
