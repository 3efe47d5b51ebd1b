"""Sparse factors of M - τ I against LAPACK: dense blocks and SuperLU count eigenvalues, and solve."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import LinAlgError

from certifit.numerics.sparse_cholesky.multifrontal import SparseCholeskyTuning
from certifit.numerics.sparse_cholesky.shifted_factor import prepare_factor
from tests.manifold.embeddings import SWISS, TABLES, each_method, each_table, matrix


@pytest.mark.parametrize("work", [0.0, np.inf], ids=["fronts", "SuperLU"])
@each_table
@each_method
def test_factors_count_and_solve(name, method, work):
    """Against LAPACK's eigenvalues, at several places in the spectrum."""
    M, F = matrix(TABLES[name], method)
    values = np.linalg.eigvalsh(M)
    factor = prepare_factor((F.T @ F).tocsc(), SparseCholeskyTuning(dense_work=work))
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


def test_fronts_do_not_solve_with_what_is_not_positive_definite():
    _, F = matrix(SWISS)
    with pytest.raises(LinAlgError, match="not positive definite"):
        prepare_factor((F.T @ F).tocsc(), SparseCholeskyTuning(dense_work=0.0))(1.0, keep=True)
