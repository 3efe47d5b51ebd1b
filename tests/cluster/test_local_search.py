"""k-means beyond the first local optimum: swaps, starts until a ratio is proved, and other libraries' clusterings."""

import warnings

import numpy as np
import pytest
from sklearn import cluster
from sklearn.datasets import load_iris, make_blobs

from certifit.checkers.cluster import kmeans as certificates
from certifit.checkers.cluster.adapter import audit_clusters
from certifit.cluster.kmeans import KMeans
from certifit.cluster.local_search import swap_centre
from certifit.cluster.seeding import Starts
from certifit.exceptions import CertificateWarning, DataError
from certifit.rows import as_rows
from tests.common.tuning import tuned


def square():
    """No clusters at all: local optima everywhere."""
    return np.random.default_rng(0).random((200, 2))


# ------------------------------------------------------------------------------------------------ swaps
def test_a_swap_moves_one_centre_to_where_it_is_missed():
    """Two centres share one group and one serves two: a swap puts that right."""
    corners = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 8.0], [20.0, 8.0]])
    X, _ = make_blobs(200, centers=corners, cluster_std=0.5, random_state=0)
    C = np.array([[-0.5, 0.0], [0.5, 0.0], [20.0, 4.0], [0.0, 8.0]])
    moved = swap_centre(Starts("k-means++", 4, as_rows(X), np.random.RandomState(0)), C)
    changed = np.flatnonzero((moved != C).any(axis=1))
    assert len(changed) == 1
    assert changed[0] in (0, 1)
    assert np.abs(moved[changed[0]] - [20, 4])[0] < 3
    none = Starts("k-means++", 2, as_rows([[0.0, 1.0], [5.0, 5.0]]), np.random.RandomState(0))
    assert swap_centre(none, np.array([[0.0, 1.0], [5.0, 5.0]])) is None


def test_swaps_reach_what_many_starts_do_not():
    X = square()
    plain = [KMeans(20, swaps=0, random_state=s).fit(X).inertia_ for s in range(10)]
    by_swaps = [KMeans(20, random_state=s).fit(X).inertia_ for s in range(3)]
    assert all(b <= a * (1 + 1e-12) for a, b in zip(plain, by_swaps, strict=False))  # never worse from the same start
    assert np.mean(by_swaps) < min(plain)


def test_swaps_are_for_small_tables_unless_asked_for():
    X = square()
    auto, none = KMeans(20, random_state=0).fit(X), KMeans(20, swaps=0, random_state=0).fit(X)
    asked = KMeans(20, swaps=32, random_state=0).fit(X)
    assert auto.inertia_ == asked.inertia_ < none.inertia_
    assert tuned(KMeans(20, random_state=0), swapped_up_to=0).fit(X).inertia_ == none.inertia_
    again = tuned(KMeans(20, swaps=32, random_state=0), swapped_up_to=0).fit(X)
    np.testing.assert_array_equal(again.cluster_centers_, asked.cluster_centers_)  # the same every time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        cut = KMeans(20, swaps=32, max_iter=0, random_state=0).fit(X)  # no local optimum to leave
    assert cut.n_iter_ == 0


# ------------------------------------------------------------------------------------------------ a target
def test_starts_go_on_until_the_ratio_is_proved():
    X = make_blobs(100, 3, centers=6, cluster_std=0.3, random_state=3)[0]
    one = KMeans(6, init="random", n_init=1, swaps=0, random_state=0).fit(X)
    assert one.certificate_.ratio > 1.1
    model = KMeans(6, init="random", swaps=0, target_ratio=1.001, random_state=0).fit(X)
    assert model.certificate_.ratio <= 1.001
    assert model.certificate_.holds
    checked = audit_clusters(model, X, None, None, 1e-6)
    assert checked.holds
    assert "objective, relative to its lower bound" in [c.name for c in checked.checks]


@pytest.mark.usefixtures("ticking")
def test_a_target_out_of_reach_is_reported_with_the_number():
    X = load_iris().data
    with pytest.warns(CertificateWarning, match=r"objective, relative to its lower bound: 1\.0\d, allowed 1\.01"):
        model = tuned(KMeans(3, target_ratio=1.01, n_init=2, random_state=0), target_steps=10).fit(X)
    assert not model.certificate_.holds
    with pytest.warns(CertificateWarning, match="lower bound"):
        timed = tuned(KMeans(3, target_ratio=1.01, max_time=0.3, random_state=0), target_steps=10).fit(X)
    assert timed.history_[-1].gain <= 1e-6  # the best that converged, not what time cut off
    given = tuned(KMeans(3, init=model.cluster_centers_, target_ratio=1.2), target_steps=10).fit(X)
    assert given.certificate_.holds
    assert KMeans(3, target_ratio=1.01, random_state=0).fit(X).certificate_.ratio <= 1.01  # more work on the proof


# ------------------------------------------------------------------------------------------------ other libraries
def test_other_libraries_are_measured_alike():
    X = make_blobs(200, 4, centers=5, cluster_std=2.0, random_state=0)[0].astype(np.float32)
    best = KMeans(5, random_state=0).fit(X).inertia_
    exact = cluster.KMeans(5, n_init=5, tol=0, random_state=0).fit(X)
    assert audit_clusters(exact, X, None, None, 1e-4).holds
    batches = audit_clusters(cluster.MiniBatchKMeans(5, batch_size=32, random_state=0).fit(X), X, None, None, 1e-4)
    assert "gain from moving centres" in batches.failures()[0]
    halves = audit_clusters(cluster.BisectingKMeans(5, random_state=0).fit(X), X, None, None, 1e-4)
    assert "rows nearer to another centre" in halves.failures()[0]
    for found in (batches, halves):
        assert 0 < found.bound <= best * (1 + 1e-6)
        assert found.objective >= best * (1 - 1e-6)


def test_centroids_are_centres_too():
    """faiss.Kmeans keeps them in float32 under another name, and no labels."""

    class Kmeans:
        pass

    X = make_blobs(200, 4, centers=5, random_state=0)[0].astype(np.float32)
    model, ours = Kmeans(), KMeans(5, random_state=0).fit(X)
    model.centroids = None  # not trained yet
    with pytest.raises(DataError, match="a Kmeans without centroids"):
        audit_clusters(model, X, None, None, 1e-4)
    model.centroids = ours.cluster_centers_.astype(np.float32)
    found = audit_clusters(model, X, None, None, 1e-4)
    assert found.holds
    assert found.objective == pytest.approx(ours.inertia_, rel=1e-6)
    assert found.bound == certificates.certify(model.centroids, None, 1e-4, as_rows(X)).bound
    model.centroids[0] += 0.2
    assert not audit_clusters(model, X, None, None, 1e-4).holds
    with pytest.raises(DataError, match="effort=0"):
        audit_clusters(model, X, None, None, 1e-4, effort=0)
