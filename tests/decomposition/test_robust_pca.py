"""Robust PCA: closed forms, exact recovery, bounds that nobody beats, and the corners."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.optimize import brentq, minimize
from sklearn.datasets import load_digits, load_wine

from benchmarks.robust_pca import Objective, inexact
from benchmarks.robust_pca import corrupted as planted
from certifit import PCA, CertificateWarning, DataError
from certifit.checkers.decomposition.robust_adapter import audit_robust_pca
from certifit.decomposition.robust import principal_component_pursuit
from certifit.decomposition.robust.plots import plot_first_axes, plot_split
from certifit.decomposition.robust.principal_component_pursuit import shrink
from certifit.decomposition.robust.robust_pca import RobustPCA
from certifit.decomposition.robust.trimmed_pca import TrimmedPCA
from certifit.decomposition.robust.weighted_median import weighted_medians


def corrupted(n, d, rank, share, size=5.0, seed=0):
    """A table of low rank, and the errors added to some of its entries."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    return L, (rng.random((n, d)) < share) * rng.uniform(-size, size, (n, d))


def objective(L, X, lam, w=None):
    """|diag(√w) L|_* + lam Σ w |X - L| in plain NumPy."""
    w = np.ones(len(X)) if w is None else w
    nuclear = np.linalg.svd(np.sqrt(w)[:, None] * L, compute_uv=False).sum()
    return nuclear + lam * (w @ np.abs(X - L).sum(axis=1))


def audit(model, X, w=None, tol=None):
    return audit_robust_pca(model, X, None, w, model.tol if tol is None else tol)


def off(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


# --------------------------------------------------------------------------------------- known solutions
@pytest.mark.parametrize(("n", "d"), [(200, 80), (80, 200), (120, 120)])
@pytest.mark.parametrize(("rank", "share", "size"), [(3, 0.05, 5.0), (6, 0.1, 5.0), (2, 0.1, 1e4)])
def test_recovers_the_low_rank_table_exactly(n, d, rank, share, size):
    """Candès et al. (2011), theorem 1.1: the solution is the truth, whatever the size of the errors."""
    L, S = corrupted(n, d, rank, share, size)
    model = RobustPCA(center=False, tol=1e-10).fit(L + S)
    assert off(model.low_rank_, L) < 1e-6
    assert off(model.sparse_, S) < 1e-6
    assert model.n_components_ == rank
    assert model.certificate_.holds
    _, sigma, axes = np.linalg.svd(L, full_matrices=False)
    np.testing.assert_allclose(model.singular_values_, sigma[:rank], rtol=1e-6)
    np.testing.assert_allclose(np.abs((model.components_ * axes[:rank]).sum(axis=1)), 1, rtol=1e-6)


def test_recovers_about_the_medians_too():
    """A constant row added to a table of low rank leaves it of low rank."""
    L, S = corrupted(150, 60, 3, 0.05)
    L += 10.0 * np.arange(60)
    model = RobustPCA(tol=1e-10).fit(L + S)
    np.testing.assert_array_equal(model.mean_, np.median(L + S, axis=0))
    assert off(model.low_rank_, L) < 1e-6
    np.testing.assert_allclose(model.inverse_transform(model.transform(L)), L, atol=1e-4)


@pytest.mark.parametrize("lam", [1.0, 100.0])
def test_high_price_leaves_everything_to_the_low_rank_part(lam):
    """From lam = 1 the polar factor of X is a dual point: the optimum is |X|_*."""
    X = np.random.default_rng(0).normal(size=(30, 12))
    model = RobustPCA(lam, center=False).fit(X)
    assert model.certificate_.objective == pytest.approx(np.linalg.norm(X, "nuc"), rel=1e-6)
    np.testing.assert_allclose(model.sparse_, 0, atol=1e-4)


def test_low_price_leaves_everything_to_the_sparse_part():
    """At lam = 1 / √(nd), lam sign(X) is a dual point: the optimum is lam |X|_1."""
    X = np.random.default_rng(0).normal(size=(30, 12))
    model = RobustPCA(1 / np.sqrt(X.size), center=False).fit(X)
    assert model.n_components_ == 0
    assert model.transform(X).shape == (30, 0)
    np.testing.assert_array_equal(model.low_rank_, 0)
    assert model.certificate_.objective == pytest.approx(model.lam_ * np.abs(X).sum(), rel=1e-12)


@pytest.mark.parametrize("lam", [0.1, 0.2, 0.3, 0.6])
def test_one_column(lam):
    """The dual of min |l|_2 + lam |x - l|_1 is solved by y = clip(c x, ±lam) with |y|_2 = 1."""
    x = np.random.default_rng(1).exponential(size=100) * np.where(np.arange(100) % 2, 1, -1)
    y = lam * np.sign(x)
    if np.linalg.norm(y) > 1:
        c = brentq(lambda c: np.linalg.norm(np.clip(c * x, -lam, lam)) - 1, 0, 1e3, xtol=1e-14)
        y = np.clip(c * x, -lam, lam)
    model = RobustPCA(lam, center=False, tol=1e-9).fit(x[:, None])
    assert model.certificate_.objective == pytest.approx(y @ x, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_small_tables_by_brute_force(seed):
    """SciPy's simplex search over all entries of L, from several starts, finds nothing better than the bound."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 2))
    model = RobustPCA(0.5, center=False, tol=1e-9).fit(X)
    tight = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000, "adaptive": True}
    starts = [np.zeros(6), X.ravel(), X.ravel() / 2, model.low_rank_.ravel() + 0.1 * rng.normal(size=6)]
    cost = lambda L: objective(L.reshape(3, 2), X, 0.5)  # noqa: E731
    best = min(minimize(cost, start, method="Nelder-Mead", options=tight).fun for start in starts)
    assert model.certificate_.bound <= best * (1 + 1e-12)
    assert best == pytest.approx(model.certificate_.objective, rel=1e-3)
    assert model.certificate_.objective <= best * (1 + 1e-9)


def test_shrinking_is_that_of_the_singular_values():
    for shape in ((9, 5), (5, 9)):
        A = np.random.default_rng(0).normal(size=shape)
        U, sigma, V = np.linalg.svd(A, full_matrices=False)
        L, nuclear = shrink(A, 1.5)
        np.testing.assert_allclose(L.left @ L.axes.T, (U * np.maximum(sigma - 1.5, 0)) @ V, atol=1e-12)
        assert nuclear == pytest.approx(np.maximum(sigma - 1.5, 0).sum(), rel=1e-12)


def test_one_column_is_not_given_to_a_selective_driver(monkeypatch):
    """For order 1 it writes past an array that SciPy leaves empty: memory of the process is overwritten."""
    orders = []

    def selective(G, **options):
        if options["driver"] == "evr":
            orders.append(len(G))
        return eigh(G, **options)

    monkeypatch.setattr(principal_component_pursuit, "eigh", selective)
    X = np.random.default_rng(0).normal(size=(9, 2))
    for table in (X[:, :1], X[:1], X):
        L, nuclear = shrink(table, 0.5)
        sigma = np.linalg.svd(table, compute_uv=False)
        assert nuclear == pytest.approx(np.maximum(sigma - 0.5, 0).sum(), rel=1e-12)
        assert np.linalg.matrix_rank(L.left @ L.axes.T) == (sigma > 0.5).sum()
    assert orders == [2]


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_weighted_medians_are_those_of_repeated_rows(n, seed):
    rng = np.random.default_rng(seed)
    X, w = rng.integers(-3, 4, (n, 3)).astype(float), rng.integers(1, 4, n)
    np.testing.assert_allclose(
        weighted_medians(X, w.astype(float)), np.median(np.repeat(X, w, axis=0), axis=0), atol=1e-15
    )


# ------------------------------------------------------------------------------------------------ honesty
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 25),
    d=st.integers(1, 12),
    lam=st.sampled_from([None, 0.05, 0.3, 2.0]),
    center=st.booleans(),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_low_rank_part_beats_the_bound(n, d, lam, center, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) * rng.normal(size=d) + rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    w = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    model = RobustPCA(lam, center=center).fit(X, sample_weight=w)
    proof, Z, best = model.certificate_, X - model.mean_, model.low_rank_ - model.mean_
    assert proof.holds
    assert proof.objective == pytest.approx(objective(best, Z, model.lam_, w), rel=1e-10, abs=1e-12)
    low_ranks = [np.zeros_like(Z), Z] + [np.clip(Z, -c, c) for c in (0.1, 0.5)]
    low_ranks += [best + size * rng.normal(size=Z.shape) for size in (1e-6, 1e-3, 0.1)] + [0.999 * best]
    rounding = 1e-12 * (1 + np.abs(Z).sum())
    assert all(proof.bound <= objective(L, Z, model.lam_, w) + rounding for L in low_ranks)


@pytest.mark.parametrize(("rank", "share"), [(3, 0.05), (15, 0.3)])
def test_agrees_with_the_inexact_method(rank, share):
    """Lin, Chen & Ma (2010), in plain NumPy: neither is below the other's bound; both reach the same objective."""
    X = planted(120, 60, rank, share)
    judge, model = Objective(X), RobustPCA(center=False).fit(X)
    theirs = judge(inexact(X, judge.lam, 1e-7))
    assert model.certificate_.bound <= theirs
    assert judge(model) == pytest.approx(model.certificate_.objective, rel=1e-12)
    assert model.certificate_.objective <= theirs * (1 + 1e-6)


def test_out_of_steps_and_time_give_the_best_so_far_with_its_bound():
    L, S = corrupted(60, 40, 3, 0.05)
    best = RobustPCA(tol=1e-9).fit(L + S).certificate_
    for stop in ({"max_iter": 0}, {"max_iter": 15}, {"max_time": 0.0}):
        with pytest.warns(CertificateWarning, match=r"of the optimum; asked for 1e-06"):
            early = RobustPCA(**stop).fit(L + S)
        assert early.certificate_.bound <= best.objective
        assert early.certificate_.objective >= best.bound
        assert audit(early, L + S).objective == pytest.approx(early.certificate_.objective, rel=1e-10)
    objectives = [mark.objective for mark in RobustPCA().fit(L + S).history_]
    assert np.all(np.diff(objectives) <= 0)


# ----------------------------------------------------------------------------------------------- sabotage
def negate(a):
    a.flat[np.abs(a).argmax()] *= -1


def enlarge(a):
    a *= 1.01


def disturb(a):
    a += 0.01 * np.abs(a).max() * np.random.default_rng(0).normal(size=a.shape)


@pytest.mark.parametrize("damage", [negate, enlarge, disturb])
@pytest.mark.parametrize("name", ["low_rank_", "sparse_", "dual_", "components_", "singular_values_", "mean_"])
def test_sabotage_is_noticed(name, damage):
    L, S = corrupted(60, 40, 3, 0.05)
    X = L + S + 3.0
    model = RobustPCA().fit(X)
    assert audit(model, X).holds
    best = model.certificate_.objective
    damage(getattr(model, name))
    checked = audit(model, X)
    assert not checked.holds
    assert checked.failures()
    assert checked.bound <= best


@pytest.mark.parametrize(("rank", "share", "within"), [(3, 0.05, 1e-3), (8, 0.2, 0.2)])
def test_a_model_without_a_dual_point_is_given_one(rank, share, within):
    L, S = corrupted(100, 60, rank, share)
    model = RobustPCA(center=False, tol=1e-9).fit(L + S)
    best = model.certificate_.objective
    del model.dual_
    checked = audit(model, L + S, tol=within)
    assert checked.bound <= best
    assert checked.holds


# ------------------------------------------------------------------------------------------------ corners
def proved(X, **params):
    model = RobustPCA(**params).fit(X)
    assert model.certificate_.holds
    assert audit(model, X).holds
    np.testing.assert_allclose(model.low_rank_ + model.sparse_, X, rtol=1e-14, atol=1e-14 * np.abs(X).max())
    return model


@pytest.mark.parametrize("center", [True, False])
def test_nothing_to_split(center):
    model = proved(np.zeros((5, 3)), center=center)
    assert model.n_components_ == 0
    assert model.certificate_.objective == 0
    assert model.score(np.zeros((2, 3))) == 0


def test_equal_rows():
    model = proved(np.tile([1.0, -2.0, 1e6], (6, 1)))
    assert model.n_components_ == 0
    np.testing.assert_array_equal(model.mean_, [1.0, -2.0, 1e6])


def test_constant_columns_stay_constant():
    L, S = corrupted(60, 20, 2, 0.05)
    X = L + S
    X[:, [0, 7]] = [4.0, -1.0]
    model = proved(X)
    np.testing.assert_allclose(model.low_rank_[:, [0, 7]], X[:, [0, 7]], atol=1e-4)


def test_repeated_rows_are_split_alike():
    L, S = corrupted(30, 20, 2, 0.05)
    model = proved(np.repeat(L + S, 2, axis=0))
    np.testing.assert_allclose(model.low_rank_[::2], model.low_rank_[1::2], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e150])
def test_any_scale(scale):
    """The problem is homogeneous: the same split, scaled."""
    L, S = corrupted(60, 30, 3, 0.05)
    plain, scaled = RobustPCA().fit(L + S), proved(scale * (L + S))
    np.testing.assert_allclose(scaled.low_rank_ / scale, plain.low_rank_, atol=1e-3)
    assert scaled.certificate_.objective / scale == pytest.approx(plain.certificate_.objective, rel=2e-6)


def test_far_from_zero():
    L, S = corrupted(80, 30, 3, 0.05)
    plain, moved = RobustPCA().fit(L + S), proved(L + S + 1e8)
    np.testing.assert_allclose(moved.low_rank_ - 1e8, plain.low_rank_, atol=1e-3)
    np.testing.assert_allclose(moved.sparse_, plain.sparse_, atol=1e-3)


def test_rows_without_weight_are_projected():
    L, S = corrupted(60, 30, 3, 0.05)
    w = np.ones(60)
    w[::7] = 0
    X = L + S
    model = RobustPCA().fit(X, sample_weight=w)
    assert audit(model, X, w).holds
    absent = w == 0
    np.testing.assert_allclose(model.low_rank_[absent], model.inverse_transform(model.transform(X[absent])))
    np.testing.assert_array_equal(model.dual_[absent], 0)


def test_nan_and_infinity_are_refused():
    X = np.ones((4, 3))
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        X[2, 1] = value
        with pytest.raises(DataError, match=f"{word} in row 2, column 1"):
            RobustPCA().fit(X)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_values_too_large_to_square_are_refused(size, center):
    with pytest.raises(DataError, match="overflow"):
        RobustPCA(2.0, center=center).fit([[size], [-size], [-size]])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"lam": 0}, "lam=0; wanted a finite number above 0 or None"),
        ({"lam": np.nan}, "lam=nan; wanted a finite number above 0 or None"),
        ({"lam": "a"}, "lam='a'; wanted a finite number above 0 or None"),
        ({"tol": -1}, "tol=-1; wanted a number of at least 0"),
        ({"max_iter": 1.5}, "max_iter=1.5; wanted a whole number"),
        ({"max_time": -1.0}, "max_time=-1.0; wanted a number"),
    ],
)
def test_settings_that_make_no_sense(params, words):
    with pytest.raises(DataError, match=words):
        RobustPCA(**params).fit(np.eye(3))


def test_other_rows_have_no_objective():
    model = RobustPCA().fit(np.random.default_rng(0).normal(size=(10, 3)))
    with pytest.raises(DataError, match="Got 4 rows; wanted the 10 rows"):
        model.objective(np.ones((4, 3)))
    with pytest.raises(DataError, match="the rows that the model was fitted on"):
        audit(model, np.ones((4, 3)))


# ----------------------------------------------------------------------------------------------- pictures
def test_a_picture_of_what_outliers_do_to_wine():
    """One column in another unit in a tenth of the rows turns PCA's first axis, not the others'."""
    X = load_wine().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    wrong = np.arange(len(X)) % 10 == 0
    X[wrong, 4] += 25.0
    models = {"PCA": PCA(1).fit(X), "robust": RobustPCA().fit(X), "trimmed": TrimmedPCA(2, random_state=0).fit(X)}
    ax = plot_first_axes(models, X, wrong)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    turned = {word.split(":")[0]: int(word.split(": ")[1].split("°")[0]) for word in words if "°" in word}
    assert turned["PCA"] > 60
    assert max(turned["robust"], turned["trimmed"]) < 15
    assert len(ax.lines) == 5


def test_a_picture_of_the_two_parts():
    X = load_digits().data[:60]
    model = RobustPCA().fit(X)
    ax = plot_split(model, X, (8, 8), [3, 5])
    images = [image.get_array() for image in ax.get_images()]
    assert [image.shape for image in images] == [(9, 18)] * 3
    np.testing.assert_array_equal(images[0][:8, 9:17], X[5].reshape(8, 8))
    np.testing.assert_array_equal(images[2][:8, :8], model.sparse_[3].reshape(8, 8))
    with pytest.raises(DataError, match=r"shape=\(8, 7\); wanted a height times a width of 64"):
        plot_split(model, X, (8, 7))
