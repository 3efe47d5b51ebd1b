"""Compiled loops of mixtures against NumPy and SciPy, and batches of rows with missing entries."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import logsumexp, rel_entr, softmax

from certifit.mixture import em_loops
from certifit.mixture.gaussian import gaussian_loops
from certifit.mixture.gaussian.components import GaussianComponents
from certifit.mixture.gaussian.covariance_shapes import SHAPES
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.mixture.gaussian.missing_entries import by_pattern
from certifit.mixture.gaussian.tuning import GaussianMixtureTuning
from certifit.numerics.packed import pack
from certifit.numerics.packed.inverses_loops import invert_blocks
from tests.common.tuning import tuned
from tests.mixture.mixture_tables import every_shape, two_groups, with_missing


def logarithms(k, n, rng):
    """From -1e5 to 1e5, of 0, and NaN; and which columns are good."""
    A = rng.normal(size=(k, n)) * 10.0 ** rng.uniform(-3, 5, n)
    A[2, ::5], A[0, 3] = -np.inf, np.nan
    A[:, 4] = -np.inf
    good = np.isfinite(A.max(axis=0))
    assert good.sum() == n - 2
    return A, good


@pytest.mark.compiled
def test_softmax():
    """Against SciPy."""
    rng = np.random.default_rng(0)
    A, good = logarithms(7, 500, rng)
    c, w, R, log_p = rng.normal(size=7), rng.random(500), A.copy(), np.empty(500)
    with np.errstate(all="ignore"):  # where it runs as plain Python
        em_loops.softmax(R, c, w, log_p)
    A = A[:, good] + c[:, None]
    np.testing.assert_allclose(R[:, good], w[good] * softmax(A, axis=0), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(log_p[good], logsumexp(A, axis=0), rtol=1e-14, atol=1e-14)
    assert np.isnan(log_p[~good]).all()


@pytest.mark.compiled
def test_comparing_rows():
    """Against SciPy, by the definitions; where the second mixture says never, the bound does."""
    rng = np.random.default_rng(0)
    A, good = logarithms(7, 500, rng)
    first, second = A / 1e3, (A + rng.normal(size=A.shape)) / 1e3
    second[1, 7] = -np.inf
    c, c_second, out = rng.normal(size=7), rng.normal(size=7), np.empty((4, 500))
    c[6] = c_second[6] = -np.inf
    with np.errstate(all="ignore"):
        em_loops.compare_rows(first, second, c, c_second, out)
    good[7] = False
    a, b = first[:, good] + c[:, None], second[:, good] + c_second[:, None]
    q, posterior = softmax(a, axis=0), softmax(b, axis=0)
    log_p = logsumexp(b, axis=0)
    np.testing.assert_allclose(out[:2, good], [logsumexp(a, axis=0), log_p], rtol=1e-13, atol=1e-13)
    kl = rel_entr(q, posterior).sum(axis=0)
    np.testing.assert_allclose(out[3, good], kl, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(out[2, good], log_p - kl, rtol=1e-9, atol=1e-12)
    assert out[2, 7] < -1e290
    assert np.isnan(out[0, 3:5]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.compiled
def test_features(dtype):
    rng = np.random.default_rng(0)
    X, shift = rng.normal(size=(20, 4)).astype(dtype), rng.normal(size=4)
    Z, out = np.empty((4, 20)), np.empty((10, 20))
    gaussian_loops.shift_rows(X, shift, Z)
    np.testing.assert_array_equal(Z, (X - shift).T)
    gaussian_loops.pair_products(Z, out)
    i, j = np.tril_indices(4)
    np.testing.assert_array_equal(out, Z[i] * Z[j])


@pytest.mark.parametrize("q", [0, 1, 2, 3])
@pytest.mark.compiled
def test_missing_entries(q):
    """Conditional means and covariances by NumPy, pattern by pattern; more of them than go side by side."""
    rng = np.random.default_rng(0)
    d, k = 4, 30
    A = rng.normal(size=(k, d, d))
    C = A @ A.swapaxes(1, 2) + np.eye(d)
    columns = np.array(list(combinations(range(d), q)), dtype=np.intp)
    m, n = len(columns), 2 * len(columns) + 1
    rows = np.stack([2 * np.arange(m), 2 * np.arange(m) + 2], axis=1)
    rows[-1, 1] = n  # two rows each, the last three
    X = rng.normal(size=(n, d))
    for M, (a, b) in zip(columns, rows, strict=True):
        X[a:b, M] = np.nan
    P, mean, E = np.linalg.inv(C), rng.normal(size=(k, d)), np.empty((k, n, d))
    gaussian_loops.subtract_means(X, mean, E)
    np.testing.assert_array_equal(E, np.nan_to_num(X - mean[:, None]))
    inverses, log_det = np.empty((m, k, q * (q + 1) // 2)), np.empty((m, k))
    invert_blocks(P, columns, inverses.reshape(m * k, -1), log_det.reshape(-1))
    squares, R, second = np.empty((k, n)), rng.random((k, n)), np.zeros((k, d, d))
    gaussian_loops.complete_rows(columns, rows, inverses, log_det, E @ P, E, squares)
    gaussian_loops.add_conditional_covariances(columns, inverses, np.add.reduceat(R, rows[:, 0], axis=1), second)
    for j in range(k):
        spread = np.zeros((d, d))
        for M, (a, b) in zip(columns, rows, strict=True):
            seen = np.setdiff1d(np.arange(d), M)
            inner = C[j][np.ix_(seen, seen)]
            B = np.linalg.solve(inner, C[j][np.ix_(seen, M)])
            away = (X - mean[j])[a:b, seen]
            np.testing.assert_allclose(E[j, a:b][:, M], away @ B, rtol=1e-9, atol=1e-12)
            expected = np.einsum("ni,ni->n", away, np.linalg.solve(inner, away.T).T)
            # squares has log |P_MM| in it, and not the missing columns' share of log 2π
            constant = np.linalg.slogdet(inner)[1] - np.linalg.slogdet(C[j])[1] - q * np.log(2 * np.pi)
            np.testing.assert_allclose(squares[j, a:b], expected + constant, rtol=1e-10, atol=1e-10)
            spread[np.ix_(M, M)] += R[j, a:b].sum() * (C[j][np.ix_(M, M)] - C[j][np.ix_(M, seen)] @ B)
        np.testing.assert_allclose(second[j], np.tril(spread), rtol=1e-9, atol=1e-12)
    scaled, first = np.empty_like(E), np.empty((k, d))
    gaussian_loops.weigh_rows(E, R, scaled, first)
    np.testing.assert_array_equal(scaled, E * R[:, :, None])
    np.testing.assert_allclose(first, np.einsum("kn,knj->kj", R, E), rtol=1e-12)


def test_rows_by_pattern():
    """Complete rows first, then by the number of missing entries; rows of one pattern side by side."""
    rng = np.random.default_rng(0)
    X = with_missing(rng.normal(size=(300, 70)), 0.01)
    X[0] = np.nan
    counts = np.arange(300) % 7 > 0
    order, number = by_pattern(X, counts)
    assert sorted(order) == np.flatnonzero(counts).tolist()
    missing = np.isnan(X[order])
    assert ((number == 0) == ~missing.any(axis=1)).all()
    assert (np.diff(missing.sum(axis=1)) >= 0).all()
    same = (missing[1:] == missing[:-1]).all(axis=1)
    np.testing.assert_array_equal(np.diff(number), ~same)
    assert len(np.unique(missing, axis=0)) == len(np.unique(number))


@every_shape
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_densities_of_rows_that_others_read(kind, share):
    """They are those of rows read by the components themselves, near the shift or far from it."""
    rng = np.random.default_rng(0)
    X = with_missing(rng.normal(size=(50, 3)), share) if share else rng.normal(size=(50, 3))
    X = X[~np.isnan(X).all(axis=1)]
    shape = SHAPES[kind]
    C = shape.covariances(
        np.ones(2), np.zeros((2, 3)), shape.reduce(pack(np.eye(3))[None].repeat(2, 0), 3), np.ones((2, 3))
    )
    rest = C, np.ones(3), GaussianMixtureTuning()
    near, far = (GaussianComponents(kind, np.zeros(3), at + rng.normal(size=(2, 3)), *rest) for at in (0.0, 1e3))
    assert len(near.far) == 0
    assert len(far.far) > 0
    for first, second in [(near, near), (near, far), (far, near), (far, far)]:
        own, other, fresh = first.new_workspace(), second.new_workspace(), second.new_workspace()
        _, batch = first.log_densities(first.read_rows(X, own), own)
        again, expected = (
            second.log_densities(batch, other)[0],
            second.log_densities(second.read_rows(X, fresh), fresh)[0],
        )
        np.testing.assert_allclose(again, expected, rtol=1e-12)


def test_patterns_a_few_at_a_time():
    """Where their matrices would be too many to hold: the same answer."""
    X = with_missing(two_groups(), 0.3)
    expected = GaussianMixture(2, random_state=0).fit(X)
    found = tuned(GaussianMixture(2, random_state=0), pattern_numbers=1).fit(X)
    batches = [*found._at().components.batches(X, ~np.isnan(X).all(axis=1), True)]
    assert [len(np.unique(np.isnan(X[batch]), axis=0)) for batch in batches] == [1] * 3
    np.testing.assert_allclose(found.loglikelihood_, expected.loglikelihood_, rtol=1e-12)
