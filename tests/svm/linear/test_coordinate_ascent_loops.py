"""The compiled rounds of dual coordinate ascent against the same in plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

from certifit.svm.linear.coordinate_ascent import DualIterate, DualTerms
from certifit.svm.linear.coordinate_ascent_loops import ascend_dense, ascend_sparse


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_rounds(dtype, tau):
    """Each coordinate in turn, in plain NumPy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).astype(dtype)
    X[np.abs(X) < 0.5] = 0
    s, q, soft = np.resize([1.0, -1.0, -1.0], 30), rng.normal(size=30) + 1, rng.exponential(size=30)
    top, norms = rng.exponential(size=30), (X.astype(np.float64) ** 2).sum(axis=1)
    order = rng.permutation(30).astype(np.uint64)
    a, beta, b = np.zeros(30), np.zeros(4), 0.3
    for k in order:
        g = q[k] - s[k] * (X[k] @ beta + b) - soft[k] * a[k]
        new = np.clip(a[k] + g / (norms[k] + tau + soft[k]), 0, top[k])
        beta, b = beta + (new - a[k]) * s[k] * X[k], b + tau * (new - a[k]) * s[k]
        a[k] = new
    csr = sparse.csr_array(X)
    terms = DualTerms(np.arange(30, dtype=np.uint64), s, q, soft, top)
    tables = {ascend_dense: X, ascend_sparse: (csr.data, csr.indices.view(np.uint32), csr.indptr.view(np.uint32))}
    for ascend, table in tables.items():
        found = DualIterate(np.zeros(30), np.zeros(4), np.array([0.3]))
        ascend(table, terms, norms, order, tau, found)
        for mine, wanted in zip(found, (a, beta, b), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-5 if dtype == np.float32 else 1e-12)
