"""Compiled loops of sparse Cholesky factors against dense ones; each is run without compiling too."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from certifit.numerics.sparse_cholesky import loops


def twins(name):
    loop = getattr(loops, name)
    return [loop, getattr(loop, "py_func", loop)]


@pytest.mark.parametrize("loop", twins("elimination_tree"))
@pytest.mark.compiled
def test_elimination_tree(loop):
    """Against the pattern of a dense Cholesky factor, whose entries do not cancel for random values."""
    rng = np.random.default_rng(0)
    A = np.where(rng.random((30, 30)) < 0.06, rng.random((30, 30)), 0.0)
    A = A + A.T + 10 * np.eye(30)
    L = np.linalg.cholesky(A) != 0
    M = sparse.csc_array(A)
    parent, count = np.empty(30, np.int64), np.empty(30, np.int64)
    loop(M.indptr, M.indices, parent, count)
    assert_array_equal(count, L.sum(axis=0))
    below = np.tril(L, -1)
    assert_array_equal(parent, np.where(below.any(axis=0), below.argmax(axis=0), -1))


@pytest.mark.parametrize("loop", twins("extend_add"))
@pytest.mark.compiled
def test_extend_add(loop):
    rng = np.random.default_rng(0)
    front, update, place = np.tril(rng.normal(size=(6, 6))), rng.normal(size=(3, 3)), np.array([1, 2, 5])
    panel, corner = front[:, :2].copy(), front[2:, 2:].copy()
    front[np.ix_(place, place)] += np.tril(update)
    loop(panel, corner, update, place)
    assert_allclose(panel, front[:, :2], rtol=1e-15)
    assert_allclose(corner, front[2:, 2:], rtol=1e-15)
