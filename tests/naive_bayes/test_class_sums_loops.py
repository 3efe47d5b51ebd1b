"""The compiled loops of naive Bayes against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certifit.naive_bayes import class_sums_loops as loops


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]), st.booleans())
@pytest.mark.compiled
def test_loops_and_their_plain_twins(seed, dtype, missing):
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(1, 14), rng.integers(1, 9), rng.integers(1, 4)
    X = rng.integers(0, 3, (n, d)).astype(dtype)
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    y, w = rng.integers(0, k, n).astype(np.int32), rng.integers(0, 3, n).astype(float)
    groups = loops.group_rows_by_class(y, w, k)
    assert groups.order.tolist() == [i for c in range(k) for i in range(n) if y[i] == c and w[i] > 0]
    mine = np.where((y == np.arange(k)[:, None]), w, 0.0)  # (k, n)
    there = ~np.isnan(X)
    Z = X.astype(np.float64)[None] - 0.5
    twin = [np.einsum("kn,nd->kd", mine, there.astype(float)),
            np.einsum("kn,knd->kd", mine, np.where(there, Z, 0.0).repeat(k, axis=0)),
            np.einsum("kn,knd->kd", mine, np.where(there, Z**2, 0.0).repeat(k, axis=0))]  # fmt: skip
    weight, z, zz = np.zeros((3, k, d))
    loops.add_moments_of_entries(X, w, groups, np.full((k, d), 0.5), weight, z, zz)
    np.testing.assert_allclose([weight, z, zz], twin, atol=1e-13)
    z, zz = np.zeros((2, k, d))
    loops.add_moments(X, w, groups, np.full((k, d), 0.5), z, zz)
    seen = ~np.isnan(np.where(mine[:, :, None] > 0, X[None], 0)).any(
        axis=1
    )  # columns of a class without a missing entry
    np.testing.assert_allclose(z[seen], twin[1][seen], atol=1e-13)
    np.testing.assert_allclose(zz[seen], twin[2][seen], atol=1e-13)
    assert np.isnan(z[~seen]).all()
    above, below = np.zeros((2, k, d))
    odd = np.zeros(d)
    loops.add_threshold_counts(X, w, groups, 0.5, above, below, odd)
    np.testing.assert_array_equal(np.isnan(odd), np.isnan(X[w > 0]).any(axis=0))
    np.testing.assert_array_equal([above, below], [mine @ (X > 0.5), mine @ (X <= 0.5)])
    up, down = np.log(rng.random((2, k, d)))
    up[0, 0] = -np.inf
    out = np.empty((n, k))
    loops.threshold_scores_of_entries(X, 0.5, up, down, out)
    yes, no = (X > 0.5)[:, None, :], (X <= 0.5)[:, None, :]
    np.testing.assert_allclose(out, np.where(yes, up, np.where(no, down, 0.0)).sum(axis=2), rtol=1e-12)
    D = rng.normal(size=(k, d))
    loops.threshold_products(X, 0.5, D, out)
    expected = np.where(there.all(axis=1), ((X > 0.5) @ D.T).T, np.nan).T
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)
    mean, root = rng.normal(size=(k, d)), rng.random((k, d))
    loops.squared_distances(X, mean, root, out)
    np.testing.assert_allclose(out, (((X[:, None, :] - mean) * root) ** 2).sum(axis=2), rtol=1e-12)
    loops.squared_distances_of_entries(X, mean, root, np.full((k, d), 2.0), out)
    np.testing.assert_allclose(out, np.nansum(((X[:, None, :] - mean) * root) ** 2 + 2.0, axis=2), rtol=1e-12)
