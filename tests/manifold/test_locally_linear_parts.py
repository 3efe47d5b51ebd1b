"""What locally linear embedding is made of: neighbours against all distances, factorisations against LAPACK."""

import sys
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import LinAlgError
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from certifit import DataError
from certifit.manifold.neighbours import framed, nearest, nearest_to
from certifit.numerics.sparse_cholesky import loops as kernels
from certifit.numerics.sparse_cholesky import shifted_factor as lle_factor
from certifit.numerics.sparse_cholesky.shifted_factor import factoring
from tests.manifold.test_locally_linear import (
    CLOUD,
    SWISS,
    TABLES,
    N,
    audited,
    each_method,
    each_table,
    embed,
    matrix,
)


# ---------------------------------------------------------------------------------------------- neighbours
@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
@each_table
def test_neighbours_are_the_nearest(name, algorithm):
    """Against all distances, by differences."""
    X = framed(TABLES[name])
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    assert_array_equal(nearest(X, 9, algorithm), np.argsort(D, axis=1)[:, :9])
    new = X[:50] + 0.01
    assert_array_equal(nearest_to(new, X, 9, algorithm), np.argsort(cdist(new, X), axis=1)[:, :9])


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
def test_copies_of_a_row_are_neighbours_but_not_itself(algorithm):
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 15)), 8, axis=0)
    found = nearest(X, 5, algorithm)
    assert (found // 8 == np.arange(80)[:, None] // 8).all()
    assert (found != np.arange(80)[:, None]).all()
    assert all(len(set(row)) == 5 for row in found.tolist())


def test_products_that_lose_digits_are_done_again():
    """Two tight clouds far apart: float32 products cannot tell neighbours, and the bound knows."""
    rng = np.random.default_rng(0)
    X = framed(1e-6 * rng.normal(size=(300, 20)) + 1e3 * (np.arange(300) % 2)[:, None])
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    assert_array_equal(nearest(X, 6, "brute"), np.argsort(D, axis=1)[:, :6])


def test_a_disconnected_graph_is_refused_and_its_parts_are_named():
    X = np.concatenate([SWISS[:40], SWISS[:30] + 500, SWISS[:25] - 500])[np.r_[90:95, 0:90]]
    with pytest.raises(DataError) as caught:
        embed(X, n_neighbors=5)
    words = str(caught.value)
    assert "in 3 parts" in words
    assert "40 rows (row 5 is one), 30 rows (row 45 is one), 25 rows (row 0 is one)" in words
    assert "more than n_neighbors=5" in words


def test_parts_can_be_joined():
    """Three parts: two links more, each the nearest pair; the first coordinates tell the parts apart."""
    part = np.repeat([0, 1, 2], [40, 30, 25])
    X = np.concatenate([SWISS[:40], SWISS[:30] + 500, SWISS[:25] - 500])
    model = embed(X, n_neighbors=5, disconnected="join", reg=0.1)
    assert (part[model.neighbors_] != part[:, None]).sum() == 2
    assert model.certificate_.holds
    assert audited(model, X).holds
    assert "need not be the nearest" in model.certificate_.facts["neighbours"]
    centres = np.array([model.embedding_[part == p].mean(axis=0) for p in range(3)])
    assert (cdist(model.embedding_, centres).argmin(axis=1) == part).all()
    assert_array_equal(embed(SWISS, disconnected="join").embedding_, embed(SWISS).embedding_)


def test_pynndescent_is_asked_for_by_name(monkeypatch):
    with pytest.raises(DataError, match="without the package pynndescent"):
        embed(SWISS, neighbors_algorithm="pynndescent")

    class NNDescent:
        """Stands in for the package: same interface, exact, but for one row."""

        def __init__(self, X, n_neighbors, random_state):
            self.search = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
            graph = self.search.kneighbors(X, return_distance=False)
            graph[3, -1] = N - 1 - graph[3, -1]
            self.neighbor_graph = graph, None

        def query(self, Q, k):
            return self.search.kneighbors(Q, k, return_distance=False), None

    monkeypatch.setitem(sys.modules, "pynndescent", types.SimpleNamespace(NNDescent=NNDescent))
    model = embed(SWISS, neighbors_algorithm="pynndescent")
    assert "need not be the nearest" in model.certificate_.facts["neighbours"]
    assert model.certificate_.holds
    assert audited(model, SWISS).holds
    assert model.transform(SWISS[:5]).shape == (5, 2)
    model.neighbors_algorithm = "auto"  # the same neighbours, claimed to be exact
    assert not audited(model, SWISS).holds


# ------------------------------------------------------------------------------------------ factorisations
@pytest.mark.parametrize("work", [0.0, np.inf], ids=["fronts", "SuperLU"])
@each_table
@each_method
def test_factors_count_and_solve(name, method, work, monkeypatch):
    """Against LAPACK's eigenvalues, at several places in the spectrum."""
    monkeypatch.setattr(lle_factor, "DENSE_WORK", work)
    M, F = matrix(TABLES[name], method)
    values = np.linalg.eigvalsh(M)
    factor = factoring((F.T @ F).tocsc())
    for j in (1, 2, 3, 8, 40, 200, len(M) - 1):
        gap = values[j] - values[j - 1]
        if gap > 1e-12:
            counted = factor((values[j - 1] + values[j]) / 2, keep=False)
            assert counted.negative == j
            assert counted.rounding > 0
            if j <= 3:  # where it is used; far from definite, pivots grow
                assert counted.rounding < 0.1 * gap
    V = np.random.default_rng(0).normal(size=(len(M), 3))
    shift = 1e-3
    solved = factor(-shift, keep=True).solve(V)
    assert_allclose(solved, np.linalg.solve(M + shift * np.eye(len(M)), V), rtol=1e-7, atol=1e-8)


def test_fronts_do_not_solve_with_what_is_not_positive_definite(monkeypatch):
    monkeypatch.setattr(lle_factor, "DENSE_WORK", 0.0)
    _, F = matrix(SWISS)
    with pytest.raises(LinAlgError, match="not positive definite"):
        factoring((F.T @ F).tocsc())(1.0, keep=True)


def test_fit_by_fronts_is_the_fit_by_superlu(monkeypatch):
    plain = embed(CLOUD, eigen_solver="arpack")
    monkeypatch.setattr(lle_factor, "DENSE_WORK", 0.0)
    fronts = embed(CLOUD, eigen_solver="arpack")
    assert_allclose(fronts.embedding_, plain.embedding_, atol=1e-8)
    assert fronts.certificate_.holds


def twins(name):
    kernel = getattr(kernels, name)
    return [kernel, getattr(kernel, "py_func", kernel)]


@pytest.mark.parametrize("kernel", twins("smallest"))
@pytest.mark.compiled
def test_smallest(kernel):
    rng = np.random.default_rng(0)
    P, c = rng.normal(size=(7, 40)).astype(np.float32), rng.normal(size=40).astype(np.float32)
    index, value = np.empty((7, 6), np.int64), np.empty((7, 6), np.float32)
    kernel(P, c, index, value)
    assert_array_equal(index, np.argsort(P + c, axis=1)[:, :6])
    assert_array_equal(value, np.sort(P + c, axis=1)[:, :6])


@pytest.mark.parametrize("kernel", twins("square_distances"))
@pytest.mark.compiled
def test_square_distances(kernel):
    rng = np.random.default_rng(0)
    Q, X, index = rng.normal(size=(4, 9)), rng.normal(size=(20, 9)), rng.integers(0, 20, (4, 5))
    out = np.empty((4, 5))
    kernel(Q, X, index, out)
    assert_allclose(out, np.take_along_axis(cdist(Q, X, "sqeuclidean"), index, axis=1), rtol=1e-13)


@pytest.mark.parametrize("kernel", twins("elimination_tree"))
@pytest.mark.compiled
def test_elimination_tree(kernel):
    """Against the pattern of a dense Cholesky factor, whose entries do not cancel for random values."""
    rng = np.random.default_rng(0)
    A = np.where(rng.random((30, 30)) < 0.06, rng.random((30, 30)), 0.0)
    A = A + A.T + 10 * np.eye(30)
    L = np.linalg.cholesky(A) != 0
    M = sparse.csc_array(A)
    parent, count = np.empty(30, np.int64), np.empty(30, np.int64)
    kernel(M.indptr, M.indices, parent, count)
    assert_array_equal(count, L.sum(axis=0))
    below = np.tril(L, -1)
    assert_array_equal(parent, np.where(below.any(axis=0), below.argmax(axis=0), -1))


@pytest.mark.parametrize("kernel", twins("extend_add"))
@pytest.mark.compiled
def test_extend_add(kernel):
    rng = np.random.default_rng(0)
    front, update, place = np.tril(rng.normal(size=(6, 6))), rng.normal(size=(3, 3)), np.array([1, 2, 5])
    panel, corner = front[:, :2].copy(), front[2:, 2:].copy()
    front[np.ix_(place, place)] += np.tril(update)
    kernel(panel, corner, update, place)
    assert_allclose(panel, front[:, :2], rtol=1e-15)
    assert_allclose(corner, front[2:, 2:], rtol=1e-15)
