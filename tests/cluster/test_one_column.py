"""k-means of a single column: exact, by a compiled way and a plain one, and an independent search that agrees."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import cluster
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from certifit import config
from certifit.checkers.cluster import kmeans as certificates
from certifit.checkers.cluster import one_column as checker
from certifit.checkers.cluster.one_column import LineTuning
from certifit.cluster import one_column
from certifit.cluster.kmeans import KMeans
from certifit.cluster.one_column_loops import _scatter, next_layer, running_sums
from certifit.cluster.tuning import KMeansTuning
from certifit.exceptions import DataError
from certifit.rows import as_rows
from tests.common.tuning import tuned


def cost(x, w):
    """Σ w (x - mean)² in rational numbers."""
    x, w = [Fraction(float(v)) for v in x], [Fraction(float(v)) for v in w]
    mean = sum(a * b for a, b in zip(x, w, strict=True)) / sum(w)
    return sum(b * (a - mean) ** 2 for a, b in zip(x, w, strict=True))


def optimum(x, w, k):
    """Of all ways to cut the numbers in order into k runs."""
    order = np.argsort(x, kind="stable")
    x, w, n = x[order], w[order], len(x)
    cuts = ((0, *c, n) for c in combinations(range(1, n), k - 1))
    return float(min(sum(cost(x[a:b], w[a:b]) for a, b in pairwise(c)) for c in cuts))


@pytest.mark.parametrize("plain_up_to", [0, 512])
def test_published(plain_up_to):
    """From the documentation and tests of the R package Ckmeans.1d.dp (Wang & Song 2011)."""
    x = np.array([-1.0, 2, -1, 2, 4, 5, 6, -1, 2, -1])
    model = tuned(KMeans(3), compiled_numbers=plain_up_to).fit(x[:, None])
    np.testing.assert_array_equal(model.labels_, np.array([1, 2, 1, 2, 3, 3, 3, 1, 2, 1]) - 1)
    np.testing.assert_array_equal(model.cluster_centers_.ravel(), [-1.0, 2.0, 5.0])
    assert model.inertia_ == 2.0
    assert model.certificate_.kind == "optimal"
    assert model.certificate_.holds


@given(st.integers(0, 2**31), st.integers(3, 9), st.integers(1, 3), st.sampled_from([0.0, 1e8, -1e13]))
def test_exact(seed, n, k, offset):
    """Both ways and the checker against every way to cut, in rational numbers; far from zero too."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=n) * 4, 1) * 10.0 ** rng.integers(-3, 4) + offset
    w = rng.integers(0, 3, n) + rng.random(n).round(2) * (seed % 2)
    k = min(k, len(np.unique(x[w > 0])) - 1)
    if k < 1:
        return
    best = optimum(x[w > 0], w[w > 0], k)
    rows = as_rows(x[:, None], sample_weight=w)
    found = [one_column.best_intervals(rows, k, KMeansTuning(compiled_numbers=limit)) for limit in (512, 0)]
    digits = 1e-9 * best + 1e-14 * np.abs(x).max() ** 2 * np.finfo(float).eps * n
    doubt = k * (np.log2(n) + 2) * n * np.finfo(float).eps ** 2 * (w @ x**2)  # that halving subtracts for rounding
    for exact, allowed in zip(found, (digits, digits + doubt), strict=True):
        assert best - digits <= exact.bound * (1 + 1e-9) + allowed
        assert exact.bound <= best + digits
        reached = w @ ((x[:, None] - exact.centres.ravel()) ** 2).min(axis=1)
        assert reached <= best * (1 + 1e-9) + n * (4 * np.finfo(float).eps * np.abs(x).max()) ** 2
    checked = checker.line_bound(rows, k)
    assert checked <= best * (1 + 1e-12)
    assert checked == pytest.approx(best, rel=1e-9, abs=1e-25 * np.abs(x).max() ** 2)


def test_narrow_clusters_far_apart():
    """Spread 0.01 at 1e8: one running sum of squares in float64 would lose every digit of the scatter."""
    rng = np.random.default_rng(0)
    near = [0.01 * rng.normal(size=40) for _ in range(3)]
    x = np.concatenate([near[0], 1e8 + near[1], 1e8 + 1 + near[2]])
    model = KMeans(3).fit(x[:, None])
    assert model.inertia_ == pytest.approx(
        float(sum(cost(x[i : i + 40], np.ones(40)) for i in (0, 40, 80))), rel=1e-9
    )
    assert model.certificate_.kind == "optimal"
    checked = certificates.certify(model.cluster_centers_, model.labels_, 1e-6, as_rows(x[:, None]))
    assert checked.kind == "optimal"
    assert checked.holds


@pytest.mark.parametrize("way", [one_column._try_every_start, one_column._halve])
def test_light_numbers_do_not_vanish(way):
    """Of weight 1e-12, far from heavy ones: a difference of sums of squares would lose them."""
    x, w = np.array([-1.0, 0.5, 0.5 + 1e-7, 1.0]), np.array([1e-12, 1.0, 1.0, 1e-12])
    for k in (1, 2, 3):
        assert way(x, w, k)[1] == pytest.approx(optimum(x, w, k), rel=1e-9)


def test_the_time_for_many_clusters_is_bounded():
    """Intervals take time in proportion to numbers x clusters: these are limited, which leaves Lloyd's algorithm."""
    x = np.random.default_rng(0).normal(size=(60, 1))
    best = KMeans(4).fit(x)
    with config(proof="best"):
        left = tuned(KMeans(4, random_state=0), most_intervals=3).fit(x)
    assert left.inertia_ >= best.inertia_ * (1 - 1e-12)
    tuning = certificates.ClusterCheckTuning(line=LineTuning(most_cells=4 * 50))
    checked = certificates.certify(best.cluster_centers_, best.labels_, 1e-6, as_rows(x), tuning=tuning)
    assert (left.certificate_.kind, checked.kind) == ("bounded", "bounded")
    assert checker.line_bound(as_rows(x), 4, tuning=LineTuning(most_cells=15)) == 0.0


@pytest.mark.parametrize("k", [2, 5, 9])
def test_no_start_of_scikit_learn_is_better(k):
    x = load_iris().data[:, 2:3] + 0.01 * np.random.default_rng(0).normal(size=(150, 1))
    theirs = cluster.KMeans(k, n_init=20, random_state=0, tol=0).fit(x)
    ours = KMeans(k).fit(x)
    assert ours.inertia_ <= theirs.inertia_ * (1 + 1e-12)
    assert ours.certificate_.bound <= ours.inertia_
    assert ours.certificate_.ratio == pytest.approx(1.0, abs=1e-9)
    checked = certificates.certify(theirs.cluster_centers_, theirs.labels_, 1e-6, as_rows(x))
    assert checked.bound == pytest.approx(ours.inertia_, rel=1e-9)


def test_many_numbers_are_merged():
    """The root of the objective moves by no more than the numbers do: bounds hold, and are close."""
    x = np.random.default_rng(0).normal(size=(4000, 1)) ** 3
    exact = KMeans(6).fit(x)
    assert exact.certificate_.kind == "optimal"
    rounded = tuned(KMeans(6), most_cells=6 * 700).fit(x)
    tuning = certificates.ClusterCheckTuning(line=LineTuning(most_numbers=700))
    checked = certificates.certify(rounded.cluster_centers_, rounded.labels_, 1e-6, as_rows(x), tuning=tuning)
    for certificate in (rounded.certificate_, checked):
        assert certificate.kind == "bounded"
        assert certificate.holds
        assert 0.97 * exact.inertia_ < certificate.bound <= exact.inertia_
    assert rounded.inertia_ == pytest.approx(exact.inertia_, rel=1e-3)


def test_forms_weights_and_settings():
    x = np.round(np.random.default_rng(0).normal(size=(60, 1)), 1)
    w = np.arange(60) % 3
    model = KMeans(4).fit(x, sample_weight=w)
    for other in (
        KMeans(4).fit(np.repeat(x, w, axis=0)),
        KMeans(4).fit(sparse.csr_array(x), sample_weight=w),
        KMeans(4).fit(x.astype(np.float32), sample_weight=w),
        KMeans(4, random_state=1, n_init=3, swaps=2).fit(x, sample_weight=w),
    ):
        np.testing.assert_allclose(other.cluster_centers_, model.cluster_centers_, rtol=1e-6)
    started = KMeans(4, init=x[:4]).fit(x)  # as asked: from there
    assert started.inertia_ >= KMeans(4).fit(x).inertia_
    assert started.certificate_.kind == "bounded"
    with pytest.raises(DataError, match="squared distances overflow"):
        KMeans(2).fit(x * 1e200)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\)"):
        assert KMeans(3).fit([[1.0], [1.0], [2.0]]).inertia_ == 0.0


def test_sabotage_is_found():
    x = np.random.default_rng(0).normal(size=(80, 1))
    model = KMeans(5).fit(x)
    C, labels, rows = model.cluster_centers_, model.labels_, as_rows(x)
    assert certificates.certify(C, labels, 1e-6, rows).holds
    for bad in (1.01 * C, C + 0.01 * (np.arange(5) == 2)[:, None], C[::-1], C[:-1]):
        assert not certificates.certify(bad, labels, 1e-6, rows).holds
    assert not certificates.certify(C, np.roll(labels, 1), 1e-6, rows).holds
    local = KMeans(5, init=np.sort(x[:5], axis=0), tol=0.0).fit(x)  # a fixed point, not the best one
    assert local.inertia_ > 1.001 * model.inertia_
    assert certificates.certify(local.cluster_centers_, local.labels_, 1e-6, rows).kind == "bounded"


# ------------------------------------------------------------------------------------------------ compiled loops
@pytest.mark.compiled
def test_compiled_scatters_are_exact_to_rounding():
    rng = np.random.default_rng(0)
    x, w = np.sort(1e6 + rng.normal(size=12)), rng.random(12)
    S = np.empty((6, 13))
    running_sums(x, w, S)
    for i, j in combinations(range(13), 2):
        want = float(cost(x[i:j], w[i:j]))
        assert _scatter(S, i, j) == pytest.approx(want, rel=1e-12, abs=1e-18)


@pytest.mark.compiled
def test_compiled_layer_is_the_best_of_every_start():
    rng = np.random.default_rng(1)
    x, w = np.sort(rng.normal(size=25)), rng.random(25)
    S, new, start = np.empty((6, 26)), np.empty(26), np.empty(26, np.int32)
    running_sums(x, w, S)
    D = np.append(0.0, np.full(25, np.inf))
    for m in range(1, 4):
        next_layer(S, m, D, new, start)
        for j in range(m, 26):
            every = [D[i] + _scatter(S, i, j) for i in range(m - 1, j)]
            assert new[j] == min(every)
            assert every[start[j] - (m - 1)] == new[j]
        assert np.isinf(new[:m]).all()
        D = new.copy()


def test_numbers_whose_squares_vanish_are_refused_in_words():
    X = 1e-320 * np.random.default_rng(0).normal(size=(20, 1))
    with pytest.raises(DataError, match="squared distances underflow"):
        KMeans(3, random_state=0).fit(X)
