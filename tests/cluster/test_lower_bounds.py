"""Lower bounds on the k-means objective: never above the optimum, close on small tables, at it for clusters apart."""

import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import cluster
from sklearn.datasets import load_digits, load_iris, make_blobs

from certifit import CertificateWarning, audit, config
from certifit.checkers.cluster import eigenvalue_sums
from certifit.checkers.cluster import kmeans as certificates
from certifit.checkers.cluster.kmeans import ClusterCheckTuning
from certifit.checkers.cluster.one_column import smallest_of_few
from certifit.checkers.cluster.semidefinite_bound import (
    SemidefiniteTuning,
    gram_bound,
    project_to_fantope,
    split_along,
)
from certifit.checkers.cluster.spectral_bound import scatter_bound
from certifit.checkers.cluster.triangle_cuts import TriangleCuts
from certifit.cluster.kmeans import KMeans
from certifit.rows import as_rows
from tests.common.tuning import tuned


def iris():
    return load_iris().data


def digits():
    return load_digits().data[:200]


def bounded(rows, C, most_rows, steps, until=np.inf, **more):
    """gram_bound with so much work."""
    tuning = SemidefiniteTuning(most_rows=most_rows, steps=steps, **more)
    return gram_bound(rows, C, until, tuning=tuning)


def wide(n=300, d=200, k=3):
    """Clusters in a few directions, noise in many."""
    rng = np.random.default_rng(1)
    return 4.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d)) * 0.8 ** np.arange(d)


def apart(n, d=10, k=6, std=1.0):
    return make_blobs(n, d, centers=k, cluster_std=std, random_state=1)[0]


def few():
    return apart(40, 60, 3)


@pytest.mark.parametrize("data", [iris, digits, wide, few])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_bound_is_honest(data, k):
    """No lower bound may exceed what scikit-learn reaches from many starts."""
    X = data()
    best = cluster.KMeans(k, n_init=10, random_state=0).fit(X)
    with config(proof="best"):
        fitted = KMeans(k, random_state=0).fit(X).certificate_
    checked = certificates.certify(best.cluster_centers_, best.labels_, 1e-4, as_rows(X))
    assert 0 < fitted.bound <= best.inertia_ * (1 + 1e-12)
    assert 0 < checked.bound <= best.inertia_ * (1 + 1e-12)
    assert checked.objective == pytest.approx(best.inertia_, rel=1e-9)


def optimum(X, w, k):
    """The smallest objective of all clusterings, one by one."""
    least = np.inf
    for labels in product(range(k), repeat=len(X)):
        cost = 0.0
        for a in set(labels):
            here = np.array(labels) == a
            cost += w[here] @ ((X[here] - w[here] @ X[here] / w[here].sum()) ** 2).sum(axis=1)
        least = min(least, cost)
    return least


@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(1, 4), st.integers(1, 3), st.integers(-6, 6))
def test_bounds_never_exceed_the_optimum(seed, n, d, k, power):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, d)) * 10.0**power + rng.normal(size=(n, d))
    k, w = min(k, n), rng.integers(1, 4, n).astype(float)
    rows, best = as_rows(X, sample_weight=w), optimum(X, w, k) * (1 + 1e-9) + 1e-9
    assert scatter_bound(rows, w @ X / w.sum(), w.sum(), k, d) <= best
    for centres in (X[:k], rng.normal(size=(k, d))):  # any centres may guide the search for a bound
        for group in (256, 3):
            assert bounded(rows, centres, 100, 70, group_rows=group) <= best


# ------------------------------------------------------------------------------------------------ proofs
@pytest.mark.parametrize("direct", [512, 100])
@pytest.mark.parametrize("n", [120, 600])
def test_clusters_far_apart_are_proved_optimal(n, direct):
    """Iguchi et al. 2017: the relaxation is tight where clusters are apart; eigenvalues dense or by Lanczos."""
    X = apart(n)
    model = KMeans(6, random_state=0)
    with config(proof="best"):
        tuned(model, proof=replace(model._tuning.proof, dense_order=direct)).fit(X)
    assert model.certificate_.kind == "optimal"
    assert model.certificate_.relative_gap < 1e-6
    tuning = ClusterCheckTuning(gram=SemidefiniteTuning(dense_order=direct))
    checked = certificates.certify(model.cluster_centers_, model.labels_, 1e-6, as_rows(X), tuning=tuning)
    assert checked.kind == "optimal"
    assert checked.holds
    best = min(cluster.KMeans(6, n_init=1, random_state=s, tol=0).fit(X).inertia_ for s in range(5))
    assert checked.bound <= best * (1 + 1e-12)


def test_a_local_optimum_is_not_proved_optimal():
    """Two centres in one of four far clusters and one between two others: Lloyd's algorithm is stuck there."""
    corners = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 8.0], [20.0, 8.0]])
    X, y = make_blobs(200, centers=corners, cluster_std=0.5, random_state=0)
    with config(proof="best"):
        stuck = KMeans(4, init=[[-0.5, 0.0], [0.5, 0.0], [20.0, 4.0], [0.0, 8.0]]).fit(X)
        good = KMeans(4, init=corners).fit(X)
    assert good.certificate_.kind == "optimal"
    np.testing.assert_array_equal(good.labels_, y)
    assert stuck.inertia_ > 2 * good.inertia_
    assert stuck.certificate_.kind == "bounded"
    assert stuck.certificate_.bound <= good.inertia_


def test_equal_rows_count_as_one_with_their_weight():
    X = apart(60, 3, 4)
    w = np.arange(60) % 3
    model = KMeans(4, random_state=0).fit(X, sample_weight=w)
    bounds = [
        bounded(rows, model.cluster_centers_, 50, 20)
        for rows in (as_rows(X, sample_weight=w), as_rows(np.repeat(X, w, axis=0)))
    ]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)
    assert bounds[0] == pytest.approx(model.inertia_, rel=1e-6)
    assert bounded(as_rows(X), model.cluster_centers_, 50, 20) == 0.0  # too many


def test_steps_and_larger_groups_improve_the_bound():
    X = iris()
    model = KMeans(3, n_init=5, random_state=0).fit(X)
    few, more = (bounded(as_rows(X), model.cluster_centers_, 200, steps) for steps in (0, 60))
    parts = bounded(as_rows(X), model.cluster_centers_, 200, 60, group_rows=75)
    assert few < 0.9 * model.inertia_
    assert 0.9 * model.inertia_ < parts < more < model.inertia_
    tuning = ClusterCheckTuning().with_effort(4)
    harder = certificates.certify(model.cluster_centers_, None, 1e-4, as_rows(X), tuning=tuning)
    assert certificates.certify(model.cluster_centers_, None, 1e-4, as_rows(X)).ratio > 1.03 > harder.ratio > 1.0


@pytest.mark.parametrize(("k", "optimum"), [(2, 152.348), (5, 46.4462)])
def test_triangle_inequalities_prove_published_optima(k, optimum):
    """Those of du Merle et al. (2000), found by branch and bound: here a lower bound meets them."""
    model = KMeans(k, n_init=10, random_state=0).fit(iris())
    tuning = ClusterCheckTuning().with_effort(16)
    found = certificates.certify(model.cluster_centers_, model.labels_, 1e-4, as_rows(iris()), tuning=tuning)
    assert found.kind == "optimal"
    assert found.objective == pytest.approx(optimum, abs=1e-3)
    assert found.bound == pytest.approx(optimum, rel=1e-4)


@given(st.integers(0, 2**31), st.integers(4, 12), st.integers(1, 4))
def test_every_clustering_satisfies_the_triangle_inequalities(seed, n, k):
    rng = np.random.default_rng(seed)
    labels, w = rng.integers(k, size=n), rng.random(n) + 0.1
    V = (labels[:, None] == np.arange(k)) * np.sqrt(w)[:, None]
    Z = V @ np.diag(1 / np.maximum((V**2).sum(axis=0), 1e-9)) @ V.T
    cuts = TriangleCuts.none(w).renew(rng.random((n, n)))  # whatever these violate
    assert len(cuts.rows) > 0
    assert (cuts.A @ Z.ravel()).max() <= 1e-12
    assert len(TriangleCuts.none(w).renew(Z).rows) == 0
    cuts.multipliers = rng.random(len(cuts.rows))
    N, U = cuts.project(rng.normal(size=(n, n)))
    assert N.min() >= 0
    assert (cuts.weighted_sum() - U).min() >= -1e-12  # the multiplier of N >= 0, without those of the inequalities
    assert (U * Z).sum() <= 1e-12  # so that -U only adds to <G, Z>


def test_more_clusters_than_columns_are_bounded():
    model = KMeans(6, n_init=5, random_state=0)
    assert model.fit(iris()).certificate_.kind == "stationary"  # Ding & He's bound is 0
    with config(proof="best"):
        found = model.fit(iris()).certificate_
    assert found.kind == "bounded"
    assert found.ratio < 1.1


@given(st.integers(0, 2**31), st.integers(5, 30), st.integers(1, 4))
def test_sum_of_the_largest_eigenvalues_is_never_too_small(seed, n, m):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-3, 3)
    M = A + A.T
    Q = np.linalg.qr(rng.normal(size=(n, m)))[0]
    largest = np.linalg.eigvalsh(M)[-m:].sum()
    for V in (np.linalg.eigh(M)[1][:, -m:], Q):  # a good guess and a bad one
        found = eigenvalue_sums.bound_largest_eigenvalues(M, m, V)
        assert largest <= found <= largest + 1e-6 * np.abs(M).sum()


def test_nearest_matrix_of_a_given_spectrum():
    """Against the same projection found by a general solver: eigenvalues of it minimise the distance."""
    rng = np.random.default_rng(0)
    u = np.full(6, 6**-0.5)
    M = rng.normal(size=(6, 6))
    M, _ = split_along(M + M.T, u)
    Y = project_to_fantope(M, u, 2)
    values = np.linalg.eigvalsh(Y)
    assert values.min() > -1e-12
    assert values.max() < 1 + 1e-12
    assert np.trace(Y) == pytest.approx(2.0)
    np.testing.assert_allclose(Y @ u, 0.0, atol=1e-12)
    for _ in range(50):  # no other such matrix is nearer: the variational inequality <M - Y, Z - Y> <= 0
        Q = np.linalg.qr(np.column_stack([u, rng.normal(size=(6, 2))]))[0][:, 1:]
        assert ((M - Y) * (Q @ Q.T - Y)).sum() <= 1e-9


def test_bound_from_fewer_directions_is_lower():
    X = wide(500, 60, 4)
    m = X.mean(axis=0)
    full, some = (scatter_bound(as_rows(X), m, len(X), 4, width) for width in (60, 20))
    assert 0.5 * full < some < full
    eigenvalues = np.linalg.svd(X - m, compute_uv=False) ** 2
    assert full == pytest.approx(eigenvalues[3:].sum(), rel=1e-9)
    csr = scatter_bound(as_rows(sparse.csr_array(X), sparse=True), m, len(X), 4, 20)
    assert csr == pytest.approx(some, rel=1e-6)
    tuning = ClusterCheckTuning(full_columns=20, directions=10, gram=SemidefiniteTuning(most_rows=0))
    assert 0 < certificates.certify(X[:4], None, 1.0, as_rows(X), tuning=tuning).bound < some


def test_improvement_stops_in_time():
    rows, C = as_rows(iris()[::3]), KMeans(3, random_state=0).fit(iris()[::3]).cluster_centers_
    closed, stopped, improved = (
        bounded(rows, C, 100, steps, until) for steps, until in ((0, np.inf), (20, 0.0), (20, np.inf))
    )
    assert stopped == closed < improved


def test_where_lapack_fails_another_routine_serves(monkeypatch):
    """LAPACK's routine for some eigenvalues fails now and then where many are equal."""
    rows, C = as_rows(few()), KMeans(3, random_state=0).fit(few()).cluster_centers_
    expected = bounded(rows, C, 100, 5)

    def fail(*_, **__):
        raise np.linalg.LinAlgError("Internal Error.")

    monkeypatch.setattr(eigenvalue_sums, "eigh", fail)
    assert bounded(rows, C, 100, 5) == pytest.approx(expected, rel=1e-9)


def test_fit_and_audit_prove_the_same():
    """They do the same work for the bound, with any start, few rows and many, with and without a target."""
    rng = np.random.default_rng(0)
    for trial in range(12):
        n, d, k = int(rng.integers(6, 40)), int(rng.integers(1, 8)), int(rng.integers(2, 4))
        X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.choice([0.0, 1e6])
        w = 10.0 ** rng.uniform(-4, 4, size=n) if trial % 3 == 0 else None
        model = KMeans(
            k,
            init=str(rng.choice(["k-means++", "random"])),
            target_ratio=1.05 if trial % 4 == 0 else None,
            tol=float(rng.choice([1e-6, 3e-7])),
            random_state=0,
        )
        with warnings.catch_warnings(), config(proof="best"):
            warnings.simplefilter("ignore", CertificateWarning)
            model.fit(X, sample_weight=w)
        found = audit(model, X, sample_weight=w)
        assert (found.kind, found.holds) == (model.certificate_.kind, model.certificate_.holds)
        np.testing.assert_allclose(found.bound, model.certificate_.bound, rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_few_numbers_on_a_line_against_all_intervals(seed):
    """The smallest objective of narrow groups far from zero, beside an outlier, in fractions."""
    rng = np.random.default_rng(seed)
    x = np.unique(np.append(1.0 - 1e-9 * rng.uniform(size=7), [-1.0, 0.5][: seed % 3]))
    w = 10.0 ** rng.uniform(-4, 4, size=len(x))
    exact = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(x, w, strict=True)]

    def scatter(part):
        mean = sum(b * a for a, b in part) / sum(b for _, b in part)
        return sum(b * (a - mean) ** 2 for a, b in part)

    cuts = combinations(range(1, len(x)), 2)
    best = float(min(scatter(exact[:i]) + scatter(exact[i:j]) + scatter(exact[j:]) for i, j in cuts))
    assert best * (1 - 1e-4) <= smallest_of_few(x, w, 3) <= best
