"""KMeans: known solutions, numbers of any size, degenerate data, and a certificate that cannot be fooled."""

import copy
import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn import cluster
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning

from certifit import audit, config
from certifit.checkers.cluster import kmeans as certificates
from certifit.cluster import seeding
from certifit.cluster.kmeans import KMeans
from certifit.cluster.mini_batch_kmeans import MiniBatchKMeans
from certifit.exceptions import CertificateWarning, DataError
from certifit.rows import as_rows
from tests.cluster.tables import Streamed, assert_same_fit, blobs, digits, iris, sized, ties, wide
from tests.cluster.test_lower_bounds import optimum
from tests.common.tuning import tuned


# ------------------------------------------------------------------------------------------------ known solutions
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("data", "k"), [(iris, 3), (digits, 10), (blobs, 8), (blobs, 20)])
def test_same_as_scikit_learn_from_the_same_start(data, k, compiled):
    X = data()
    start = X[np.random.default_rng(0).choice(len(X), k, replace=False)]
    ours = sized(k, compiled, init=start, tol=0.0).fit(X)
    theirs = cluster.KMeans(k, init=start, n_init=1, tol=0.0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=0, atol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)


@pytest.mark.parametrize(("k", "optimum"), [(2, 152.348), (3, 78.8514), (5, 46.4462), (6, 39.0400)])
def test_iris_optima(k, optimum):
    """Proved by du Merle, Hansen, Jaumard & Mladenovic, An interior point algorithm for minimum sum-of-squares
    clustering, SIAM J. Sci. Comput. 21 (2000)."""
    model = KMeans(k, n_init=10, random_state=0).fit(iris())
    assert model.inertia_ == pytest.approx(optimum, abs=1e-3)
    assert model.certificate_.holds


def test_attributes_and_methods_agree():
    X = blobs()
    model = KMeans(8, random_state=0).fit(X)
    D = np.sqrt(((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2))
    np.testing.assert_allclose(model.transform(X), D, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, D.argmin(axis=1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.inertia_ == pytest.approx((D.min(axis=1) ** 2).sum(), rel=1e-12)
    assert model.objective(X) == (model.objective(X).data, model.objective(X).total, 0.0)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    w = np.arange(len(X)) % 3
    assert model.objective(X, sample_weight=w).total == pytest.approx(w @ D.min(axis=1) ** 2, rel=1e-12)
    np.testing.assert_array_equal(KMeans(8, random_state=0).fit_predict(X), model.labels_)
    np.testing.assert_array_equal(KMeans(8, random_state=0).fit_transform(X), model.transform(X))
    assert list(model.get_feature_names_out()) == [f"kmeans{j}" for j in range(8)]
    assert model.transform(X.astype(np.float32)).dtype == np.float32


def test_history_falls_to_the_inertia():
    model = KMeans(10, random_state=0).fit(digits())
    trace = [mark.objective for mark in model.history_]
    assert trace == sorted(trace, reverse=True)
    assert trace[-1] == model.inertia_
    assert model.n_iter_ == len(trace)
    assert model.history_[-1].gain <= model.tol < model.history_[0].gain


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("X", [digits(), ties(), blobs() * (blobs() > 0)], ids=["digits", "ties", "zeros"])
def test_sparse_is_dense(X, dtype):
    X = X.astype(dtype)
    dense = KMeans(6, random_state=0).fit(X)
    csr = KMeans(6, random_state=0).fit(sparse.csr_matrix(X))
    np.testing.assert_array_equal(csr.labels_, dense.labels_)
    np.testing.assert_allclose(csr.cluster_centers_, dense.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert csr.inertia_ == pytest.approx(dense.inertia_, rel=1e-12)
    np.testing.assert_allclose(csr.transform(sparse.csr_array(X)), dense.transform(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(csr.predict(sparse.csr_array(X)), dense.labels_)


# ------------------------------------------------------------------------------------------------ numbers of any size
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_far_from_the_origin(form, compiled):
    far = 1e8 + 1e-2 * blobs()  # its own rounding is part of the data
    near = sized(8, compiled, init=(far - 1e8)[:8], tol=0.0).fit(far - 1e8)
    model = sized(8, compiled, init=far[:8], tol=0.0).fit(form(far))
    np.testing.assert_array_equal(model.labels_, near.labels_)
    np.testing.assert_allclose(model.cluster_centers_ - 1e8, near.cluster_centers_, atol=3e-8)
    assert model.inertia_ == pytest.approx(near.inertia_, rel=1e-9)
    assert model.certificate_.holds


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e9, 1e30])
def test_any_scale(scale, compiled):
    X = blobs()
    model, scaled = sized(8, compiled, random_state=0).fit(X), sized(8, compiled, random_state=0).fit(X * scale)
    np.testing.assert_array_equal(scaled.labels_, model.labels_)
    assert scaled.inertia_ == pytest.approx(model.inertia_ * scale**2, rel=1e-9)
    assert scaled.certificate_.ratio == pytest.approx(model.certificate_.ratio, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("compiled", [True, False])
def test_one_far_outlier(compiled, dtype):
    X = blobs(200, 3, 2).astype(dtype)
    alone = sized(2, compiled, random_state=0).fit(X)
    model = sized(3, compiled, random_state=0).fit(np.vstack([X, np.full((1, 3), 1e12, dtype)]))
    assert (model.labels_ == model.labels_[-1]).sum() == 1
    assert model.inertia_ == pytest.approx(alone.inertia_, rel=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_constant_column_and_rows_of_no_weight_change_nothing(compiled):
    X = blobs(300, 3, 4)
    more = np.vstack([np.column_stack([X, np.full(300, 7.0)]), np.full((2, 4), 1e12)])
    model = sized(4, compiled, init=X[:4]).fit(X)
    again = sized(4, compiled, init=more[:4]).fit(more, sample_weight=np.append(np.ones(300), [0.0, 0.0]))
    np.testing.assert_array_equal(again.labels_[:300], model.labels_)
    np.testing.assert_allclose(
        again.cluster_centers_, np.column_stack([model.cluster_centers_, [7.0] * 4]), rtol=1e-9
    )
    assert again.inertia_ == pytest.approx(model.inertia_, rel=1e-9)
    assert again.certificate_.holds
    assert again.certificate_.ratio == pytest.approx(model.certificate_.ratio, rel=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # fewer distinct rows than clusters
@pytest.mark.parametrize(("size", "distinct"), [(1e150, 3), (1e287, 1)])
def test_huge_rows_that_cost_nothing_are_clustered(size, distinct):
    """What the digits of the centres may cost overflows beside an inertia of 0, which is right all the same."""
    X = np.repeat(size * np.arange(1.0, distinct + 1), 4)[:, None] * [1.0, 1.0]
    for model in (KMeans(3, random_state=0), MiniBatchKMeans(3, random_state=0)):
        assert model.fit(X).inertia_ == 0
        assert model.certificate_.holds
        assert audit(model, X).holds
        model.inertia_ = 1e-300
        assert not audit(model, X).holds


def test_values_that_overflow_are_refused():
    with pytest.raises(DataError, match="squared distances overflow"):
        KMeans(2, random_state=0).fit(blobs() * 1e200)
    with pytest.raises(DataError, match="squared distances overflow"):
        certificates.certify(blobs()[:2] * 1e200, None, 1e-6, as_rows(blobs() * 1e200))


def test_values_that_underflow_are_refused():
    """At 1e-200 every squared distance is 0, which does not prove that rows lie on centres."""
    for X in (blobs(50) * 1e-200, blobs(50, 1) * 1e-200, sparse.csr_array(blobs(50) * 1e-160)):
        with pytest.raises(DataError, match="underflow"):
            KMeans(3, random_state=0).fit(X)
    with pytest.raises(DataError, match="underflow"):
        certificates.certify(blobs(2) * 1e-200, None, 1e-6, as_rows(blobs(50) * 1e-200))


# ------------------------------------------------------------------------------------------------ degenerate data
@pytest.mark.parametrize("compiled", [True, False])
def test_fewer_distinct_rows_than_clusters(compiled):
    X = np.repeat(blobs(3), 10, axis=0) * 0.1
    with pytest.warns(ConvergenceWarning, match=r"clusters \(3\) found smaller than n_clusters \(5\).*: 2 centres"):
        model = sized(5, compiled, random_state=0).fit(X)
    assert model.inertia_ == 0.0
    assert len(np.unique(model.labels_)) == 3
    assert np.isfinite(model.cluster_centers_).all()
    assert model.certificate_.kind == "optimal"
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
        assert sized(2, compiled).fit(np.full((20, 3), 0.1)).inertia_ == 0.0


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_one_cluster_and_one_for_each_row(init):
    X = blobs(60)
    one = KMeans(1, init=init).fit(X)
    np.testing.assert_allclose(one.cluster_centers_[0], X.mean(axis=0), rtol=1e-12)
    assert one.certificate_.ratio == pytest.approx(1.0, abs=1e-9)
    every = KMeans(60, init=init, n_init=1, random_state=0).fit(X)
    assert every.inertia_ == 0.0
    assert sorted(every.labels_) == list(range(60))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_empty_clusters_move_to_the_farthest_rows(form, compiled):
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    X, y = make_blobs(400, centers=corners, cluster_std=0.5, random_state=0)
    start = np.vstack([corners[:3], [[1e3, 1e3]]])  # nobody is near the last
    model = sized(4, compiled, init=start).fit(form(X))
    np.testing.assert_array_equal(model.labels_, y)
    for start in (np.full((4, 2), 5.0), np.repeat(X[:1], 4, axis=0)):
        model = sized(4, compiled, init=start).fit(form(X))
        assert len(np.unique(model.labels_)) == 4
        assert model.certificate_.holds
        trace = [mark.objective for mark in model.history_]
        assert trace == sorted(trace, reverse=True)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_cluster_loses_the_row_that_an_empty_one_takes(form):
    """By hand: (0, 0) or (1, 1) leaves the others' mean at thirds, whose next means are the two pairs."""
    X = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 1.0], [1.0, 1.0]])
    model = KMeans(2, init=np.array([[0.5, 0.5], [3.0, 3.0]])).fit(form(X))
    assert [mark.objective for mark in model.history_] == pytest.approx([1.5, 11 / 18, 0.25])
    assert sorted(model.cluster_centers_.tolist()) == [[0.25, 0.0], [0.75, 1.0]]
    heavy = KMeans(2, init=np.array([[0.5, 0.5], [3.0, 3.0]])).fit(form(X), sample_weight=[3, 1, 2, 3])
    again = KMeans(2, init=np.array([[0.5, 0.5], [3.0, 3.0]])).fit(form(np.repeat(X, [3, 1, 2, 3], axis=0)))
    assert [mark.objective for mark in heavy.history_] == pytest.approx([mark.objective for mark in again.history_])


# ------------------------------------------------------------------------------------------------ weights and starts
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_a_weight_is_a_number_of_rows(init, form):
    X = blobs(300)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    order = np.random.default_rng(1).permutation(w.sum())
    weighted = KMeans(5, init=init, n_init=2, random_state=0).fit(form(X), sample_weight=w)
    repeated = KMeans(5, init=init, n_init=2, random_state=0).fit(form(np.repeat(X, w, axis=0)[order]))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w)[order], repeated.labels_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-12)


def test_starts():
    X = blobs(200, 4, 6)
    seen = []

    def choose(X, k, random_state):
        seen.append((len(X), k, random_state))
        return X[random_state.choice(len(X), k, replace=False)]

    KMeans(6, init=choose, random_state=0).fit(X)
    assert len(seen) == 10
    assert seen[0][:2] == (200, 6)
    assert KMeans(6, init=X[:6], max_iter=1, tol=0.99).fit(X).n_iter_ == 1  # the start itself is good enough
    well_apart = make_blobs(600, 5, centers=6, cluster_std=0.01, random_state=1)
    start = KMeans(6, random_state=0, tol=0.99).fit(well_apart[0]).cluster_centers_
    assert len(np.unique(well_apart[1][((well_apart[0][:, None] - start) ** 2).sum(axis=2).argmin(axis=0)])) == 6


def test_large_tables_start_from_a_sample():
    X = make_blobs(3000, 3, centers=4, cluster_std=0.1, random_state=0)[0]
    whole = KMeans(4, random_state=0).fit(X)
    thinned, streamed, one_row = (tuned(KMeans(4, random_state=0), sample_rows=200) for _ in range(3))
    thinned.fit(X)
    assert thinned.inertia_ == pytest.approx(whole.inertia_, rel=1e-9)
    assert_same_fit(thinned, streamed.fit(Streamed(X)))
    with pytest.raises(DataError, match="no row with weight"):
        one_row.fit(X, sample_weight=(np.arange(3000) == 7).astype(float))


@pytest.mark.usefixtures("ticking")
def test_time_budget_keeps_the_best_so_far():
    X = np.random.default_rng(0).normal(size=(3000, 10))
    model = KMeans(20, n_init=10_000, random_state=0, max_time=0.5).fit(X)
    assert model.certificate_.objective == model.inertia_
    assert model.inertia_ < KMeans(20, n_init=1, random_state=0).fit(X).inertia_
    with pytest.warns(CertificateWarning, match="gain from moving centres"):
        cut = KMeans(20, random_state=0, max_time=0.0).fit(X)
    assert cut.n_iter_ == 1


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_time_runs_out_while_a_start_is_drawn(init, monkeypatch):
    X = blobs(500)
    whole = seeding.Starts(init, 40, as_rows(X), np.random.RandomState(0)).draw()
    clock = itertools.count()
    monkeypatch.setattr(seeding.time, "perf_counter", lambda: next(clock))
    cut = seeding.Starts(init, 40, as_rows(X), np.random.RandomState(0)).draw(until=9)
    np.testing.assert_array_equal(cut[:10], whole[:10])
    assert (cut[10:] != whole[10:]).any()
    assert {*map(tuple, cut)} <= {*map(tuple, X)}
    assert len(np.unique(cut, axis=0)) == 40


def test_stopping_early_is_said_with_the_number():
    with pytest.warns(CertificateWarning, match=r"gain .* relative: 0.0\d+, allowed 1e-06"):
        model = KMeans(8, max_iter=1, random_state=0).fit(digits())
    assert not model.certificate_.holds


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0"),
        ({"n_clusters": 2.5}, "n_clusters=2.5"),
        ({"n_init": 0}, "n_init=0"),
        ({"swaps": -1}, "swaps=-1; wanted 'auto' or a whole number of at least 0"),
        ({"swaps": 2, "init": np.eye(8, 4)}, "swaps=2 from given centres"),
        ({"target_ratio": 0.9}, "target_ratio=0.9"),
        ({"target_ratio": "close"}, "target_ratio='close'"),
        ({"max_iter": -1}, "max_iter=-1"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_time": "soon"}, "max_time='soon'"),
        ({"init": "kmeans"}, "init='kmeans'"),
        ({"init": np.zeros((2, 4))}, r"init of shape \(2, 4\); wanted .* = \(8, 4\)"),
        ({"init": np.full((8, 4), np.nan)}, "init with NaN"),
        ({"init": lambda X, k, random_state: X[: k - 1]}, r"centres from init of shape \(7, 4\)"),
        ({"n_clusters": 151}, "n_samples=150 should be >= n_clusters=151"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(DataError, match=message):
        KMeans(**params).fit(iris())


# ------------------------------------------------------------------------------------------------ the certificate
def perturbed(C, labels):
    yield "centres nudged", C + 0.05 * np.random.default_rng(0).normal(size=C.shape), labels
    yield "one centre nudged", C + 0.1 * (np.arange(len(C)) == 1)[:, None], labels
    yield "sign", -C, labels
    yield "scale", 1.05 * C, labels
    yield "centres swapped", C[[1, 0, *range(2, len(C))]], labels
    yield "coordinates swapped", C[:, [1, 0, *range(2, C.shape[1])]], labels
    yield "centre dropped", C[:-1], labels
    yield "centre repeated", np.vstack([C[:-1], C[:1]]), labels
    yield "one label", C, np.where(np.arange(len(labels)) == 5, (labels + 1) % len(C), labels)
    yield "label out of range", C, np.where(np.arange(len(labels)) == 5, len(C), labels)
    yield "labels shuffled", C, np.roll(labels, 1)


def test_sabotage_is_found():
    X = digits()[:80]
    model = KMeans(6, random_state=0).fit(X)
    C, labels = model.cluster_centers_, model.labels_
    assert certificates.certify(C, labels, 1e-6, as_rows(X)).holds
    for name, bad, given_labels in perturbed(C, labels):
        assert not certificates.certify(bad, given_labels, 1e-6, as_rows(X)).holds, name
    early = cluster.KMeans(6, max_iter=1, n_init=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early.fit(X)
    assert not certificates.certify(early.cluster_centers_, early.labels_, 1e-6, as_rows(X)).holds


@pytest.mark.parametrize(
    ("model", "dtype"),
    [
        (KMeans, np.float64),
        (cluster.KMeans, np.float32),
        (cluster.MiniBatchKMeans, np.float64),
        (cluster.BisectingKMeans, np.float64),  # whose labels are not the nearest centres
    ],
)
def test_what_labels_are_said_to_cost_is_checked(model, dtype):
    X, w = digits()[:24].astype(dtype), np.arange(24) % 4
    fitted = model(3, random_state=0).fit(X, sample_weight=w)
    C, labels, rows = fitted.cluster_centers_, fitted.labels_, as_rows(X, sample_weight=w)
    for inertia, right in ((fitted.inertia_, True), (1.01 * fitted.inertia_, False), (np.nan, False)):
        checks = certificates.certify(C, labels, 1e-4, rows, inertia=inertia).checks
        assert [check.passed for check in checks if "reported" in check.name] == [right]


def test_labels_of_no_weight_are_checked():
    X, w = digits()[:24], np.arange(24) % 4
    model = KMeans(3, random_state=0).fit(X, sample_weight=w)
    wrong = np.where(np.arange(24) == 4, (model.labels_ + 1) % 3, model.labels_)
    assert not certificates.certify(model.cluster_centers_, wrong, 1e-6, as_rows(X, sample_weight=w)).holds


def test_other_peoples_centres():
    X = digits()[:200]
    theirs = cluster.KMeans(7, n_init=1, tol=0.0, random_state=0).fit(X.astype(np.float32))
    for rows in (as_rows(X.astype(np.float32)), as_rows(sparse.csr_array(X.astype(np.float32)), sparse=True)):
        found = certificates.certify(theirs.cluster_centers_, theirs.labels_, 1e-4, rows)
        assert found.holds
        assert 0 < found.bound < found.objective
        assert found.objective == pytest.approx(theirs.inertia_, rel=1e-5)
    model = SimpleNamespace(cluster_centers_=[[0.0, 0.0], [4.0, 4.0]])  # any object; lists will do
    rows = as_rows([[-1.0, 0.0], [1.0, 0.0], [4.0, 3.0], [4.0, 5.0]])
    assert certificates.certify(model.cluster_centers_, None, 1e-6, rows).holds
    with pytest.raises(DataError, match="labels of 3 rows and a table of 4"):
        certificates.certify(model.cluster_centers_, np.zeros(3, int), 1e-6, rows)


def test_audit_agrees_with_the_fit():
    for X, w in ((digits()[:200], None), (iris(), np.arange(150) % 3), (wide(200), None)):
        model = KMeans(4, random_state=0).fit(X, sample_weight=w)
        checked = certificates.certify(model.cluster_centers_, model.labels_, 1e-6, as_rows(X, sample_weight=w))
        assert checked.holds
        assert model.certificate_.holds
        assert checked.objective == pytest.approx(model.inertia_, rel=1e-10)


def test_the_number_of_centres_is_the_number_of_clusters():
    X = digits()[:60]
    for model in (KMeans(4, random_state=0), cluster.KMeans(4, n_init=1, tol=0, random_state=0)):
        model.fit(X)
        assert audit(model, X).holds
        with pytest.raises(DataError, match="4 centres in a KMeans that was asked for 5"):
            audit(copy.deepcopy(model).set_params(n_clusters=5), X)


@pytest.mark.parametrize("kind", [KMeans, cluster.KMeans])
def test_centres_in_single_precision_are_judged_by_the_rows(kind):
    """Far from 0 they are not the means of rows in double precision; of rows in single precision they may be."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(3, 2))[np.arange(90) % 3] * 5 + rng.normal(size=(90, 2))
    X = 1e6 + near
    model = kind(3, random_state=0, n_init=1, tol=1e-6 if kind is KMeans else 0).fit(X)
    assert audit(model, X, tol=1e-6).holds
    model.cluster_centers_ = model.cluster_centers_.astype(np.float32)
    assert not audit(model, X, tol=1e-6).holds
    single = near.astype(np.float32)
    theirs = cluster.KMeans(3, random_state=0, n_init=1, tol=0).fit(single)
    assert theirs.cluster_centers_.dtype == np.float32
    assert audit(theirs, single).holds


@pytest.mark.parametrize("model", [cluster.MeanShift(), cluster.AffinityPropagation(random_state=0)])
def test_clusterings_that_minimise_something_else_are_not_taken_for_k_means(model):
    X = digits()[:40]
    with pytest.raises(DataError, match="KMeans is audited"):
        audit(model.fit(X), X)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_proved_optimal_is_the_best_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(4, 8), rng.integers(1, 4), rng.integers(1, 4)
    X = rng.integers(-2, 3, size=(n, d)) * 10.0 ** rng.integers(-3, 4) + rng.normal(size=(n, d)) * rng.choice([0, 1])
    w = rng.integers(1, 4, n).astype(float)
    best = optimum(X, w, k)
    with warnings.catch_warnings(), config(proof="best"):
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters, say
        model = KMeans(k, random_state=0).fit(X, sample_weight=w)
    for found in (model.certificate_, audit(model, X, sample_weight=w)):
        assert found.holds
        assert found.bound <= best * (1 + 1e-9) + 1e-12
        if found.kind == "optimal":
            assert found.objective <= best * (1 + 1e-5) + 1e-12


# ------------------------------------------------------------------------------------------ scikit-learn's calls
def test_arguments_that_steer_scikit_learns_solver_change_nothing():
    X = load_iris().data
    plain = KMeans(3, random_state=0).fit(X)
    theirs = KMeans(3, random_state=0, algorithm="elkan", copy_x=False).fit(X)
    np.testing.assert_array_equal(theirs.cluster_centers_, plain.cluster_centers_)


def test_mini_batches_are_all_rows():
    """The centres are those of KMeans, with its proof; scikit-learn's own mini-batches cost more."""
    X = load_digits().data
    model = MiniBatchKMeans(10, batch_size=100, reassignment_ratio=0.1, init_size=300, random_state=0).fit(X)
    plain = KMeans(10, random_state=0).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
    assert model.certificate_.holds
    assert audit(model, X).holds
    theirs = cluster.MiniBatchKMeans(10, batch_size=100, random_state=0).fit(X)
    assert model.inertia_ < -theirs.score(X)


def test_given_centres_are_tried_once():
    X = load_iris().data
    with pytest.warns(RuntimeWarning, match="only one init, not n_init=10"):
        model = KMeans(3, init=X[[0, 60, 120]], n_init=10).fit(X)
    np.testing.assert_array_equal(model.labels_, KMeans(3, init=X[[0, 60, 120]]).fit(X).labels_)


def test_batches_move_centres_by_their_share():
    """From the same centres, batch by batch, scikit-learn's centres and counts are the same."""
    X = load_digits().data
    model, theirs = (
        cls(10, init=X[:10], n_init=1, reassignment_ratio=0) for cls in (MiniBatchKMeans, cluster.MiniBatchKMeans)
    )
    for first in range(0, 1500, 100):
        w = np.random.default_rng(first).uniform(0.5, 2.0, size=100)
        for each in (model, theirs):
            each.partial_fit(X[first : first + 100], sample_weight=w)
    np.testing.assert_allclose(model.cluster_centers_, theirs.cluster_centers_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.counts_, theirs._counts, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, theirs.predict(X[1400:1500]))
    assert not model.certificate_.holds  # centres beside the means of the last batch's rows
    with pytest.raises(DataError, match="labels of 100 rows and a table of 1500"):
        audit(model, X[:1500])


def test_centres_go_on_from_a_fit_and_their_counts_are_checked():
    X, w = load_iris().data, np.random.default_rng(0).integers(0, 3, 150).astype(float)
    model = MiniBatchKMeans(3, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_allclose(model.counts_, np.bincount(model.labels_, w, 3))
    assert audit(model, X, sample_weight=w).holds
    before = model.cluster_centers_.copy()
    model.counts_ = 2 * model.counts_
    assert not audit(model, X, sample_weight=w).holds
    model.counts_ = model.counts_ / 2
    model.partial_fit(X[:1])
    moved = np.abs(model.cluster_centers_ - before).max(axis=1)
    j = model.labels_[0]
    assert (moved[np.arange(3) != j] == 0).all()
    np.testing.assert_allclose(model.cluster_centers_[j], before[j] + (X[0] - before[j]) / model.counts_[j])


@pytest.mark.parametrize(("tol", "end"), [(0, "strict convergence"), (0.01, "within tolerance 0.01")])
def test_verbose_prints_every_pass(capsys, tol, end):
    X = np.random.default_rng(0).random((300, 3))
    model = KMeans(5, init="random", n_init=1, swaps=0, tol=tol, random_state=0, verbose=1).fit(X)
    first, *passes, last = capsys.readouterr().out.splitlines()
    assert first == "Initialization complete (start 1)"
    assert passes == [f"Iteration {i}, inertia {mark.objective}." for i, mark in enumerate(model.history_)]
    assert last.startswith(f"Converged at iteration {len(passes) - 1}: ")
    assert end in last


def test_the_first_batch_starts_from_the_best_of_its_starts():
    """Three groups that single random starts miss: as many starts as n_init says find them, batch after batch."""
    X, y = make_blobs(60, centers=[[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], cluster_std=0.3, random_state=0)
    one, many = (MiniBatchKMeans(3, init="random", n_init=n, random_state=1) for n in (1, 30))
    for _ in range(3):
        one.partial_fit(X)
        many.partial_fit(X)
    assert len(np.unique(many.labels_[y == 0])) == len(np.unique(many.labels_[y == 1])) == 1
    assert many.inertia_ < 1.2 * 60 * 2 * 0.3**2 < one.inertia_


def test_batches_print_why_they_ended(capsys):
    X = np.random.default_rng(0).random((100, 2))
    MiniBatchKMeans(3, tol=0, random_state=0, verbose=1).fit(X)
    assert "Converged (lack of improvement in inertia) at step" in capsys.readouterr().out
    MiniBatchKMeans(3, tol=1e-3, random_state=0, verbose=1).fit(X)
    assert "Converged (small centers change) at step" in capsys.readouterr().out
