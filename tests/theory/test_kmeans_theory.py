"""What is proved about k-means, seen on data."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2
from sklearn.datasets import load_digits, load_iris

from certifit import KMeans
from certifit.checkers.cluster.semidefinite_bound import SemidefiniteTuning, gram_bound, relax_clustering
from certifit.checkers.cluster.spectral_bound import scatter_bound
from certifit.cluster.seeding import Starts
from certifit.rows import as_rows


def within(X, labels):
    """Σ |x - mean of its cluster|²."""
    return sum(((X[labels == a] - X[labels == a].mean(axis=0)) ** 2).sum() for a in np.unique(labels))


def test_variance_splits_into_within_and_between():
    X = load_digits().data
    model = KMeans(10, tol=0.0, random_state=0).fit(X)
    sizes = np.bincount(model.labels_)
    between = sizes @ ((model.cluster_centers_ - X.mean(axis=0)) ** 2).sum(axis=1)
    total = ((X - X.mean(axis=0)) ** 2).sum()
    assert model.inertia_ + between == pytest.approx(total, rel=1e-12)


def test_the_promised_gain_is_the_gain_for_fixed_labels_and_a_lower_bound_on_the_fall():
    """Huygens: Σ |x - c|² = Σ |x - mean|² + n |mean - c|²; assigning rows anew can only add to the fall."""
    X = load_iris().data
    start = X[[0, 60, 61, 120]]
    trace = KMeans(4, init=start, tol=0.0).fit(X).history_
    labels = ((X[:, None] - start) ** 2).sum(axis=2).argmin(axis=1)
    assert trace[0].gain * trace[0].objective == pytest.approx(trace[0].objective - within(X, labels), rel=1e-9)
    for mark, after in pairwise(trace):
        assert mark.objective - after.objective >= mark.gain * mark.objective * (1 - 1e-9)


def test_spectral_bound_is_attained_where_clusters_lie_along_the_first_axis():
    """Corners of a rectangle 6 x 2: two clusters of two, each 2 · 1², are the best, and the bound says so."""
    X = np.array([[-3.0, -1.0], [-3.0, 1.0], [3.0, -1.0], [3.0, 1.0]])
    assert scatter_bound(as_rows(X), np.zeros(2), 4.0, 2, 2) == pytest.approx(4.0, rel=1e-12)
    assert KMeans(2, random_state=0).fit(X).certificate_.ratio == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_no_partition_is_below_the_spectral_bound(k):
    """Ding & He 2004, against partitions by another implementation and at random."""
    X = load_iris().data
    bound = scatter_bound(as_rows(X), X.mean(axis=0), len(X), k, 4)
    rng = np.random.default_rng(0)
    for seed in range(20):
        assert within(X, kmeans2(X, k, minit="points", rng=seed)[1]) >= bound
        assert within(X, rng.integers(k, size=len(X))) >= bound


def test_without_multipliers_the_relaxation_is_the_spectral_bound():
    """Peng & Wei's dual at B = 0 is Ding & He's bound: Gram and scatter matrix have the same eigenvalues."""
    X = load_iris().data
    model = KMeans(3, swaps=0, random_state=0).fit(X)
    problem = relax_clustering(X, np.ones(150), model.cluster_centers_)
    spectral = scatter_bound(as_rows(X), X.mean(axis=0), 150.0, 3, 4)
    assert problem.bound(np.zeros((150, 150))) == pytest.approx(spectral, rel=1e-6)
    tuning = SemidefiniteTuning(most_rows=150, steps=10)
    assert gram_bound(as_rows(X), model.cluster_centers_, tuning=tuning) > 1.05 * spectral


def test_on_a_line_each_further_cluster_gains_less():
    """The optimum is convex in the number of clusters, since scatters of intervals are Monge (Aggarwal, Schieber &
    Tokuyama, Finding a minimum-weight k-link path in graphs with the concave Monge property, 1994)."""
    x = np.sort(np.random.default_rng(0).normal(size=60) ** 3)
    scatter = np.array(
        [[((x[i:j] - x[i:j].mean()) ** 2).sum() if i < j else 0.0 for j in range(61)] for i in range(60)]
    )
    i, a, b, j = np.sort(np.random.default_rng(1).integers(0, 59, (500, 4)), axis=1).T
    assert (scatter[i, b + 1] + scatter[a, j + 1] <= scatter[i, j + 1] + scatter[a, b + 1] + 1e-9).all()
    gains = -np.diff([KMeans(k).fit(x[:, None]).inertia_ for k in range(1, 12)])
    assert (np.diff(gains) <= 1e-12).all()


@pytest.mark.parametrize(("k", "optimum"), [(3, 78.8514), (5, 46.4462)])
def test_seeds_are_as_good_as_proved(k, optimum):
    """Arthur & Vassilvitskii 2007: k-means++ seeds cost on average at most 8 (ln k + 2) times the optimum."""
    X = load_iris().data
    starts = Starts("k-means++", k, as_rows(X), np.random.RandomState(0))
    costs = [((X[:, None] - starts.draw()) ** 2).sum(axis=2).min(axis=1).sum() for _ in range(50)]
    assert optimum <= np.mean(costs) <= 8 * (np.log(k) + 2) * optimum
    assert np.mean(costs) <= 2.5 * optimum  # greedy seeds on these data are much better than that
