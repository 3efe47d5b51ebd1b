"""Trimmed PCA: the fixed point recomputed in plain NumPy, brute force, breakdown, sources and corners."""

from itertools import combinations

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_wine

from certifit import PCA, DataError
from certifit.checkers.decomposition.robust_adapter import audit_trimmed_pca
from certifit.decomposition.robust.concentration_steps import nearest_weights
from certifit.decomposition.robust.trimmed_pca import TrimmedPCA
from certifit.rows import as_rows
from certifit.rows.reweighted import ReweightedRows


def plane(X, k, w=None):
    """Mean and k principal axes by NumPy's singular value decomposition."""
    w = np.ones(len(X)) if w is None else w
    m = w @ X / w.sum()
    return m, np.linalg.svd(np.sqrt(w)[:, None] * (X - m), full_matrices=False)[2][:k]


def errors(X, m, B):
    Z = X - m
    return ((Z - Z @ B.T @ B) ** 2).sum(axis=1)


def angle(A, B):
    """The largest angle between two subspaces, in degrees."""
    return np.degrees(np.arccos(np.clip(np.linalg.svd(A @ B.T, compute_uv=False).min(), 0, 1)))


def audit(model, X, w=None):
    return audit_trimmed_pca(model, X, None, w, model.tol)


def gaussian(n=300, seed=0):
    """Rows about a plane in five dimensions."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) * [6.0, 4.0, 1.0, 0.5, 0.2] + np.arange(5)


# --------------------------------------------------------------------------------------- known solutions
def test_keeping_every_row_is_pca():
    X = load_wine().data
    model, whole = TrimmedPCA(3, keep=1.0).fit(X), PCA(3).fit(X)
    for name in ("components_", "mean_", "explained_variance_", "explained_variance_ratio_", "noise_variance_"):
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(model.singular_values_, whole.singular_values_, rtol=1e-9)
    assert model.support_.all()
    np.testing.assert_allclose(model.certificate_.objective, whole.certificate_.objective, rtol=1e-9)


@pytest.mark.parametrize("keep", [0.5, 0.75, 0.9])
def test_the_fixed_point_recomputed(keep):
    """The rows kept are those with the smallest errors, and the plane is their PCA."""
    X = load_wine().data / load_wine().data.std(axis=0)
    model = TrimmedPCA(2, keep=keep, random_state=0).fit(X)
    m, B = plane(X, 2, model.weights_)
    np.testing.assert_allclose(model.mean_, m, rtol=1e-10)
    assert angle(model.components_, B) < 1e-5
    e = errors(X, m, B)
    np.testing.assert_allclose(model.errors_, e, rtol=1e-8)
    assert e[model.support_].max() <= e[~model.support_].min()
    assert model.threshold_ == pytest.approx(e[model.support_].max(), rel=1e-8)
    assert model.weights_.sum() == pytest.approx(keep * len(X), rel=1e-12)
    assert ((model.weights_ > 0) & (model.weights_ < 1)).sum() <= 1  # only the row at the border counts in part
    assert model.certificate_.objective == pytest.approx(model.weights_ @ e / model.weights_.sum(), rel=1e-8)
    np.testing.assert_allclose(model.outlier_scores(X), model.errors_, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_subsets(seed):
    """Nine rows, of which six are kept: every subset tried."""
    X = np.random.default_rng(seed).normal(size=(9, 3))
    subsets = [X[list(rows)] for rows in combinations(range(9), 6)]
    best = min(errors(part, *plane(part, 1)).mean() for part in subsets)
    model = TrimmedPCA(1, keep=6 / 9, n_init=100, random_state=0).fit(X)
    assert model.certificate_.objective == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [[0, 0, 0, 0, 100.0], [0, 0, 10.0, 0, 5.0], [20.0, 0, 0, 80.0, 0]])
def test_a_third_of_gross_outliers_does_not_move_the_plane(shift, seed):
    X = gaussian(seed=seed)
    clean = plane(X[100:], 2)[1]
    X[:100] = X[:100] * 0.3 + shift
    assert angle(plane(X, 2)[1], clean) > 20  # it moves that of PCA
    model = TrimmedPCA(2, keep=0.6, random_state=0).fit(X)
    assert angle(model.components_, clean) < 3
    assert not model.support_[:100].any()


@given(st.integers(1, 15), st.sampled_from([0.3, 0.5, 0.75, 1.0]), st.integers(0, 2**32 - 1))
def test_the_rows_nearest_are_the_solution_of_a_linear_programme(n, keep, seed):
    rng = np.random.default_rng(seed)
    e, w = rng.integers(0, 5, n).astype(float), rng.integers(1, 4, n).astype(float)
    v = nearest_weights(e, w, keep)
    found = linprog(e, A_eq=np.ones((1, n)), b_eq=[keep * w.sum()], bounds=[(0, top) for top in w])
    assert v.sum() == pytest.approx(keep * w.sum(), rel=1e-12)
    assert np.all((v >= 0) & (v <= w))
    assert v @ e == pytest.approx(found.fun, abs=1e-9)
    for value in np.unique(e):  # rows of equal errors count alike
        assert np.ptp((v / w)[e == value]) < 1e-12


def test_the_objective_never_rises():
    steps = 0
    for seed in range(5):
        history = TrimmedPCA(1, keep=0.5, n_init=0).fit(gaussian(1000, seed) / [6.0, 4.0, 1.0, 0.5, 0.2]).history_
        trace = np.array([mark.objective for mark in history])
        assert np.all(np.diff(trace) <= 1e-12 * trace[0])
        steps += len(trace) - 1
    assert steps > 5


# ------------------------------------------------------------------------------------------------ sources
def test_every_source_gives_the_same_bits(tmp_path):
    X = np.tile(gaussian(1000), (80, 1)) + np.random.default_rng(1).normal(size=(80_000, 5))
    X[::5] += [0, 0, 0, 0, 30.0]
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(5)}), tmp_path / "t.parquet", row_group_size=9000)
    here = TrimmedPCA(2, random_state=0).fit(X)
    for source in (tmp_path / "t.parquet", da.from_array(X, chunks=(32_768, 5))):
        there = TrimmedPCA(2, random_state=0).fit(source)
        for name in ("components_", "mean_", "weights_", "errors_", "threshold_"):
            np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
        assert audit(there, source).holds


@pytest.mark.parametrize("shape", [(200, 30), (40, 60)])
def test_sparse_rows(shape):
    X = sparse.random_array(shape, density=0.2, rng=np.random.default_rng(0), format="csr")
    thin, full = TrimmedPCA(2, random_state=0).fit(X), TrimmedPCA(2, random_state=0).fit(X.toarray())
    np.testing.assert_array_equal(thin.support_, full.support_)
    np.testing.assert_allclose(thin.components_, full.components_, atol=1e-8)
    np.testing.assert_allclose(thin.transform(X), full.transform(X.toarray()), atol=1e-8)
    assert thin.certificate_.holds
    assert audit(thin, X).holds


def test_reweighted_rows():
    X, y, w, filler = gaussian(50), np.arange(50.0), np.linspace(0, 2, 50), np.arange(5.0)
    rows = ReweightedRows(as_rows(X, y, target="numbers"), w, filler)
    np.testing.assert_allclose(rows.sum(lambda b: b.w @ b.X), w @ X, rtol=1e-13)
    X[0] = filler  # the only row without weight
    np.testing.assert_array_equal(rows.map(lambda b: b.w), w)
    assert (rows.n_rows, rows.n_features) == X.shape
    halved = rows.relabel(lambda y, w: (-y, w / 2))
    for found, index in ((halved.load(), slice(50)), (halved.take(np.array([0, 7])), [0, 7])):
        np.testing.assert_array_equal(found.X, X[index])
        np.testing.assert_array_equal(found.y, -y[index])
        np.testing.assert_array_equal(found.w, w[index] / 2)
    np.testing.assert_array_equal(np.concatenate([b.w for b in halved]), w / 2)


# ----------------------------------------------------------------------------------------------- sabotage
def negate(a):
    a.flat[np.abs(a).argmax()] *= -1
    return a


def enlarge(a):
    return 1.01 * a


def swap(a):
    low, high = a.argmin(), a.argmax()
    a.flat[low], a.flat[high] = a.flat[high], a.flat[low]
    return a


@pytest.mark.parametrize("damage", [negate, enlarge, swap])
@pytest.mark.parametrize("name", ["components_", "mean_", "explained_variance_", "weights_", "errors_"])
def test_sabotage_is_noticed(name, damage):
    X = gaussian()
    model = TrimmedPCA(2, random_state=0).fit(X)
    assert audit(model, X).holds
    setattr(model, name, damage(np.array(getattr(model, name))))
    checked = audit(model, X)
    assert not checked.holds
    assert checked.failures()


def test_the_pca_of_other_rows_is_noticed():
    """A plane that is right for the rows kept, which are not the nearest."""
    X = gaussian()
    X[:50] += [0, 0, 0, 0, 30.0]
    model = TrimmedPCA(2, random_state=0).fit(X)
    wrong = PCA(2).fit(X[:225])
    repeated = ("explained_variance_ratio_", "singular_values_", "noise_variance_")
    for name in ("components_", "mean_", "explained_variance_", *repeated):
        setattr(model, name, getattr(wrong, name))
    model.weights_ = (np.arange(300) < 225).astype(float)
    model.errors_ = errors(X, wrong.mean_, wrong.components_)
    assert [check.name for check in audit(model, X).checks if not check.passed] == ["gain from keeping other rows"]


# ------------------------------------------------------------------------------------------------ corners
def proved(X, k=1, w=None, **params):
    model = TrimmedPCA(k, **{"random_state": 0, **params}).fit(X, sample_weight=w)
    assert model.certificate_.holds, model.certificate_
    assert audit(model, X, w).holds
    return model


def test_most_rows_exactly_on_a_line():
    t = np.linspace(-1, 1, 100)
    X = np.array([5.0, 0.0, 1.0]) + np.outer(t, [1.0, 2.0, -1.0])
    X[:20] = np.random.default_rng(0).normal(size=(20, 3)) * 10
    model = proved(X)
    assert angle(model.components_, np.array([[1.0, 2.0, -1.0]]) / np.sqrt(6)) < 1e-6
    assert model.threshold_ < 1e-25
    assert not model.support_[:20].any()
    assert model.support_[20:].all()


@pytest.mark.parametrize("seed", range(5))
def test_a_plane_that_is_found_step_by_step_and_fits_exactly(seed):
    """What is left then is rounding, which may rise from step to step."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=6)
    X[:150] += rng.normal(size=(150, 6))
    model = proved(X, 2, keep=0.6, n_init=0)
    assert model.threshold_ < 1e-25


@pytest.mark.parametrize("k", [1, 2])
def test_as_many_components_as_columns(k):
    """Every row lies in the plane: all tie, and all count alike."""
    X = gaussian(40)[:, :k]
    model = proved(X, k)
    np.testing.assert_allclose(model.weights_, 0.75, rtol=1e-12)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-12)


def test_equal_rows():
    model = proved(np.tile([1.0, 2.0, 1e6], (8, 1)))
    np.testing.assert_allclose(model.mean_, [1.0, 2.0, 1e6], rtol=1e-14)
    assert model.certificate_.objective < 1e-15
    assert model.explained_variance_[0] == 0


def test_constant_columns_and_repeated_rows():
    X = np.repeat(gaussian(60), 3, axis=0)
    X[:, 2] = 7.0
    model = proved(X, 2)
    assert model.mean_[2] == pytest.approx(7.0, rel=1e-14)
    np.testing.assert_array_equal(model.components_[:, 2], 0)
    np.testing.assert_allclose(model.weights_[::3], model.weights_[1::3])


@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1e9, 1e100])
def test_any_scale(scale):
    X = gaussian()
    plain, scaled = TrimmedPCA(2, random_state=0).fit(X), proved(scale * X, 2)
    np.testing.assert_array_equal(scaled.support_, plain.support_)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-9)


def test_far_from_zero():
    X = gaussian()
    plain, moved = TrimmedPCA(2, random_state=0).fit(X), proved(X + 1e8, 2)
    np.testing.assert_array_equal(moved.support_, plain.support_)
    np.testing.assert_allclose(moved.components_, plain.components_, atol=1e-6)


def test_fewer_rows_than_columns():
    X = np.random.default_rng(0).normal(size=(20, 50))
    X[:4] *= 100.0  # in four directions: two axes cannot follow them all
    model = proved(X, 2)
    assert model.support_[:4].sum() <= 2


@pytest.mark.parametrize("far", [1e20, 1e160, 1e300])
def test_rows_too_far_away_to_square(far):
    X = gaussian(100)
    X[::10] = far
    model = proved(X, 2)
    assert not model.support_[::10].any()
    assert np.isfinite(model.objective(X).total)


def test_rows_without_weight_are_not_kept():
    X, w = gaussian(), np.arange(300) % 3 / 1.0
    model = proved(X, 2, w)
    assert not model.support_[w == 0].any()
    assert model.weights_.sum() == pytest.approx(0.75 * w.sum(), rel=1e-12)


def test_nan_and_infinity_are_refused():
    X = gaussian(10)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        X[2, 1] = value
        with pytest.raises(DataError, match=f"{word} in row 2, column 1"):
            TrimmedPCA().fit(X)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_components": 0}, "n_components=0; wanted a whole number of at least 1"),
        ({"n_components": 6}, r"n_components=6; wanted at most .*n_samples=10, n_features=5"),
        ({"keep": 0}, "keep=0; wanted a number above 0 and of at most 1.*share of the rows"),
        ({"keep": 1.5}, "keep=1.5; wanted a number above 0 and of at most 1"),
        ({"keep": 0.1}, "a weight of 1 to keep"),
        ({"n_init": -1}, "n_init=-1; wanted a whole number of at least 0"),
        ({"max_iter": 2.5}, "max_iter=2.5; wanted a whole number"),
        ({"tol": np.nan}, "tol=nan; wanted a number of at least 0"),
    ],
)
def test_settings_that_make_no_sense(params, words):
    with pytest.raises(DataError, match=words):
        TrimmedPCA(**params).fit(gaussian(10))


def test_audit_wants_the_same_rows():
    model = TrimmedPCA(random_state=0).fit(gaussian(50))
    with pytest.raises(DataError, match="the rows that the model was fitted on"):
        audit(model, gaussian(40))
