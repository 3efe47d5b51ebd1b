"""What is proved about PCA, seen on data: most variance, least error, the best linear code, and what it does not
depend on. Eigenvalues come from NumPy's singular value decomposition of the centred rows."""

from dataclasses import replace

import dask.array as dask_array
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine

from certifit import PCA, DataError
from certifit.decomposition.pca.both_views import compare_views, deflate, two_views
from certifit.numerics.moments import scatter
from certifit.rows import as_rows

TABLES = {"iris": load_iris().data, "wine": load_wine().data, "digits": load_digits().data}


def eigenvalues(X, w=None):
    """Of the weighted covariance (Σ w below), descending, one for each column."""
    w = np.ones(len(X)) if w is None else w
    Z = np.sqrt(w)[:, None] * (X - w @ X / w.sum())
    sigma = np.linalg.svd(Z, compute_uv=False)
    return np.append(sigma**2, np.zeros(max(0, X.shape[1] - len(sigma)))) / w.sum()


def tails(values):
    """Sums of all values but the first 0, 1, …"""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def agrees(views, X, w=None, rtol=1e-12):
    values = eigenvalues(X, w)
    k, total = len(views.variances), values.sum()
    np.testing.assert_allclose(views.variances, values[:k], atol=rtol * total)
    np.testing.assert_allclose(views.errors, tails(values)[: k + 1], atol=rtol * total)
    np.testing.assert_allclose(views.eigenvalues, values, atol=rtol * total)
    np.testing.assert_allclose(views.directions @ views.directions.T, np.eye(k), atol=1e-13)
    assert views.holds
    return True


def rotation(d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


# ------------------------------------------------------------------------------------- the two views are one
@pytest.mark.parametrize("name", TABLES)
def test_most_variance_and_least_error_are_one(name):
    X = TABLES[name]
    views = two_views(X)
    assert agrees(views, X)
    model = PCA().fit(X)
    n = len(X)
    total = views.eigenvalues.sum()
    np.testing.assert_allclose(views.variances, model.explained_variance_ * (n - 1) / n, atol=1e-12 * total)
    distinct = views.variances[:-1] - views.variances[1:] > 1e-3 * total
    distinct = np.append(distinct, False) & np.append(True, distinct)  # apart from both neighbours
    assert distinct.sum() >= 1
    along = np.abs((views.directions * model.components_).sum(axis=1))
    np.testing.assert_allclose(along[distinct], 1, atol=1e-9)


numbers = st.floats(-100, 100, width=32)
tables = st.tuples(st.integers(2, 12), st.integers(1, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=numbers)
)


@given(tables, st.integers(0, 2**32 - 1))
def test_they_are_one_on_any_table_with_any_weights(X, seed):
    w = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    views = two_views(X, sample_weight=w)
    assert views.holds
    assert agrees(views, X, w, rtol=1e-11)
    twice = two_views(np.repeat(X, w.astype(int), axis=0))  # a row of weight 2 is a row twice
    np.testing.assert_allclose(views.errors, twice.errors, atol=1e-11 * views.errors[0])


@pytest.mark.parametrize("name", TABLES)
def test_errors_are_those_of_the_code(name):
    """J_M against rows decoded one by one."""
    X = TABLES[name]
    views = two_views(X, 3)
    for M in range(4):
        back = views.decode(views.encode(X, M))
        assert views.errors[M] == pytest.approx(((X - back) ** 2).sum() / len(X), rel=1e-12)
    np.testing.assert_allclose(views.encode(X).mean(axis=0), 0, atol=1e-12 * np.abs(X).max())
    np.testing.assert_allclose(views.encode(X).var(axis=0), views.variances, rtol=1e-10)


def parquet(X, folder):
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])}), folder / "x.parquet", row_group_size=500)
    return folder / "x.parquet"


SOURCES = {
    "sparse": lambda X, _: sparse.csr_array(X),
    "float32": lambda X, _: X.astype(np.float32),
    "file": parquet,
    "dask": lambda X, _: dask_array.from_array(X, chunks=(500, X.shape[1])),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same(source, tmp_path):
    X = TABLES["digits"]  # whole numbers: exact in float32
    views = two_views(SOURCES[source](X, tmp_path), 8)
    assert views.holds
    np.testing.assert_allclose(views.errors, tails(eigenvalues(X))[:9], rtol=2e-6 if source == "float32" else 1e-12)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((5, 3)),
        np.arange(6.0)[:, None],
        np.array([[1.0, 2.0], [1.0, 5.0]]),
        1e8 + 1e-3 * TABLES["iris"],
        1e-150 * TABLES["iris"],
        np.random.default_rng(0).normal(size=(4, 9)),
        np.repeat(np.eye(5), 3, axis=0),  # four equal eigenvalues
    ],
    ids=["constant", "one column", "constant column", "far away", "tiny", "more columns than rows", "ties"],
)
def test_corners(X):
    assert agrees(two_views(X), X - X[0] if abs(X[0, 0]) > 1e7 else X, rtol=1e-9)


# ----------------------------------------------------------------------------------------------- deflation
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_each_direction_is_the_widest_of_what_is_left(d, seed):
    """No unit vector orthogonal to the earlier directions has more variance than the next one; V never rises."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d)) * rng.exponential(size=d)
    S = A @ A.T
    B, V = deflate(S, d)
    rounding = 1e-12 * np.trace(S)
    assert (np.diff(V) <= rounding).all()
    for j in range(d):
        b = rng.normal(size=(20, d))
        b -= b @ B[:j].T @ B[:j]
        b /= np.linalg.norm(b, axis=1, keepdims=True)
        assert ((b @ S * b).sum(axis=1) <= V[j] + rounding).all()
    np.testing.assert_allclose(B @ S @ B.T, np.diag(V), atol=rounding)  # codes are uncorrelated


def test_deflation_finds_any_spectrum():
    """Eigenvalues over twelve decades, equal ones, and ones that differ in the sixth digit."""
    rng = np.random.default_rng(0)
    spectra = (10.0 ** -np.linspace(0, 12, 40), np.repeat([3.0, 2.0, 1.0], 12), 1 + 1e-6 * rng.normal(size=90))
    for values in map(np.sort, spectra):
        Q = rotation(len(values))
        _, V = deflate((Q * values) @ Q.T, len(values))
        np.testing.assert_allclose(V, values[::-1], atol=1e-14 * values.sum())


# --------------------------------------------------------------------------------------- the best linear code
@pytest.mark.parametrize("name", TABLES)
def test_no_other_encoder_and_decoder_do_better(name):
    """Eckart & Young 1936, Baldi & Hornik 1989: any E (M, d) and D (d, M), with the offset that suits them best."""
    X = TABLES[name]
    m, M, rng = X.mean(axis=0), 2, np.random.default_rng(0)
    views = two_views(X, M)
    B, least = views.directions, views.errors[M]
    Z = X - m

    def error(E, D):
        return ((Z - Z @ E.T @ D.T) ** 2).sum() / len(X)

    assert error(B, B.T) == pytest.approx(least, rel=1e-12)
    T = rng.normal(size=(M, M)) + 3 * np.eye(M)
    assert error(T @ B, B.T @ np.linalg.inv(T)) == pytest.approx(least, rel=1e-10)  # the same plane, other axes
    for size in (1e-4, 1e-2, 1.0):
        E, D = (B + size * rng.normal(size=B.shape) for _ in range(2))
        assert error(E, D.T) > least
        best = np.linalg.lstsq(Z @ E.T, Z, rcond=None)[0].T  # the best decoder for this encoder
        assert error(E, best) > least
        moved = views.decode(views.encode(X)) + size * rng.normal(size=len(m))  # another offset
        assert ((X - moved) ** 2).sum() / len(X) > least


def test_variance_and_error_add_up():
    """Pythagoras: total variance = variance kept + error, for any orthonormal basis; hence the two views are one."""
    X = TABLES["wine"]
    Z = X - X.mean(axis=0)
    for seed in range(5):
        B = rotation(13, seed)[:4]
        kept = (Z @ B.T).var(axis=0).sum()
        error = ((Z - Z @ B.T @ B) ** 2).sum() / len(X)
        assert kept + error == pytest.approx(Z.var(axis=0).sum(), rel=1e-12)


# ----------------------------------------------------------------------------------------- other roads, same place
def test_fewer_rows_than_columns_through_the_gram_matrix():
    """u an eigenvector of ZZᵀ/n with eigenvalue λ: Zᵀu is one of ZᵀZ/n, with the same λ."""
    X = TABLES["digits"][:20]
    Z = X - X.mean(axis=0)
    values, U = np.linalg.eigh(Z @ Z.T / 20)
    values, U = values[::-1][:19], U.T[::-1][:19]
    views, model = two_views(X, 19), PCA(19).fit(X)
    np.testing.assert_allclose(views.variances, values, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ * 19 / 20, values, rtol=1e-9)
    lifted = U @ Z
    lifted /= np.linalg.norm(lifted, axis=1, keepdims=True)
    for B in (views.directions, model.components_):
        np.testing.assert_allclose(np.abs((lifted * B).sum(axis=1)), 1, atol=1e-8)


def test_rotation_shift_and_order_of_rows():
    """Rotated rows have rotated directions; variances and errors stay. A shift and a shuffle change nothing."""
    X = TABLES["wine"] / TABLES["wine"].std(axis=0)
    Q, rng = rotation(13), np.random.default_rng(1)
    views = two_views(X, 4)
    for moved, back in ((X @ Q, Q.T), (X + 10 * rng.normal(size=13), np.eye(13)), (rng.permutation(X), np.eye(13))):
        other = two_views(moved, 4)
        np.testing.assert_allclose(other.variances, views.variances, rtol=1e-11)
        np.testing.assert_allclose(other.errors, views.errors, rtol=1e-11)
        along = np.abs((other.directions @ back * views.directions).sum(axis=1))
        np.testing.assert_allclose(along, 1, atol=1e-10)


# ---------------------------------------------------------------------------------------------- what it refuses
def test_anything_changed_does_not_hold():
    views = two_views(TABLES["wine"])
    for name in ("variances", "eigenvalues", "errors"):
        for j in range(3):
            changed = getattr(views, name).copy()
            changed[j] *= 1 + 1e-8
            assert not replace(views, **{name: changed}).holds
            assert "NO" in str(replace(views, **{name: changed}))
    assert not replace(views, errors=np.full_like(views.errors, np.nan)).holds


def test_other_directions_do_not_hold():
    """Their variances may be claimed as they are, but the rows' errors give them away; and the other way round."""
    X = TABLES["wine"] / TABLES["wine"].std(axis=0)
    B, V = (getattr(two_views(X, 3), name) for name in ("directions", "variances"))
    turned, rows = B.copy(), as_rows(X)
    turned[2] = np.linalg.svd(B)[2][-1]  # orthogonal to all three
    assert compare_views(rows, scatter(rows), B, V).holds
    for directions, variances in ((turned, V), (B, V * [1, 1, 1 + 1e-9]), (B[::-1], V[::-1])):
        assert not compare_views(rows, scatter(rows), directions, variances).holds


def test_bad_input():
    X = TABLES["iris"]
    for wrong in (0, 5, 2.5, -1, "all"):
        with pytest.raises(DataError, match=r"wanted a whole number from 1 to the 4 columns"):
            two_views(X, wrong)
    views = two_views(X, 2)
    with pytest.raises(DataError, match="codes of 3 numbers; wanted at most 2"):
        views.encode(X, 3)
    with pytest.raises(DataError, match="codes of 4 numbers"):
        views.decode(X)
    with pytest.raises(DataError, match="rows of 3 columns; wanted 4"):
        views.encode(X[:, :3])
    with pytest.raises(ValueError, match=r"(?i)nan"):
        two_views(np.where(X > 7, np.nan, X))
