"""The statements of docs/atlas/09_clusters on data; each with a broken variant that must fail."""

import warnings
from itertools import product
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from certifit import KMeans, config, load_penguins
from certifit.plots import plot_silhouettes

PETALS = load_iris().data[:, 2:]
STARTS = ([0, 60, 80, 120], [0, 1, 2, 120])


def objective(X, C):
    return ((X[:, None] - C) ** 2).sum(axis=2).min(axis=1).sum()


def stopped(start, passes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
        return KMeans(4, init=PETALS[start], tol=0.0, max_iter=passes).fit(PETALS)


# ------------------------------------------------------------------------------------------------- Lloyd's algorithm
def never_rises(X, steps):
    """The sum of squares at these centres, one step after the other, by hand."""
    values = [objective(X, C) for C in steps]
    return bool(np.diff(values).max() <= 1e-10 * values[0])


@pytest.mark.parametrize("start", STARTS, ids=str)
def test_kmeans_never_rises(start):
    steps = [PETALS[start], *(stopped(start, passes).cluster_centers_ for passes in (1, 2, 4, 8))]
    assert never_rises(PETALS, steps)
    assert objective(PETALS, steps[-1]) < 0.5 * objective(PETALS, steps[0])


def test_control_medians_in_place_of_means_rise():
    steps = [PETALS[STARTS[0]]]
    for _ in range(8):
        nearest = ((PETALS[:, None] - steps[-1]) ** 2).sum(axis=2).argmin(axis=1)
        steps.append(np.stack([np.median(PETALS[nearest == j], axis=0) for j in range(4)]))
    assert not never_rises(PETALS, steps)


def is_local_minimum(X, C):
    """Centres are the means of their nearest rows, and no small move of all of them lowers the sum of squares.

    Small means that no row changes its centre; the nearest rows to a border would else decide.
    """
    nearest = ((X[:, None] - C) ** 2).sum(axis=2).argmin(axis=1)
    means = np.stack([X[nearest == j].mean(axis=0) for j in range(len(C))])
    rng, here = np.random.default_rng(0), objective(X, C)
    moved = [objective(X, C + 1e-5 * rng.normal(size=C.shape)) for _ in range(100)]
    return bool(np.abs(means - C).max() < 1e-9 and min(moved) > here)


@pytest.mark.parametrize("start", STARTS, ids=str)
def test_kmeans_ends_in_a_local_minimum(start):
    assert is_local_minimum(PETALS, stopped(start, 300).cluster_centers_)


def test_control_one_pass_is_not_the_end():
    assert not is_local_minimum(PETALS, stopped(STARTS[0], 1).cluster_centers_)


def test_other_starts_end_elsewhere():
    first, second = (objective(PETALS, stopped(start, 300).cluster_centers_) for start in STARTS)
    assert second > 1.5 * first


# ------------------------------------------------------------------------------------------------- the best of all
BIRDS = load_penguins().dropna().groupby("species").head(4)[["bill_length_mm", "flipper_length_mm"]].to_numpy(float)
BIRDS = (BIRDS - BIRDS.mean(axis=0)) / BIRDS.std(axis=0)


def best_of_all_partitions(X, k):
    """The least sum of squares about means over all k^(n-1) labellings with the first row in group 0."""
    labels = np.array(list(product(range(k), repeat=len(X) - 1)), dtype=np.int8)
    values = np.full(len(labels), (X**2).sum())
    for j in range(k):
        member = np.column_stack([np.full(len(labels), j == 0), labels == j]).astype(float)
        values -= ((member @ X) ** 2).sum(axis=1) / np.maximum(1.0, member.sum(axis=1))
    return values.min()


BEST = best_of_all_partitions(BIRDS, 3)


def is_proved_best(model):
    """What was reached is, by hand, the best of all partitions, and the bound meets it from below."""
    reached, bound = objective(BIRDS, model.cluster_centers_), model.certificate_.bound
    return bool(bound <= BEST * (1 + 1e-12) and reached <= BEST * (1 + 1e-9) and reached <= bound * (1 + 1e-6))


def test_the_proved_best_is_the_best_of_all_partitions():
    with config(proof="best"):
        assert is_proved_best(KMeans(3, random_state=0).fit(BIRDS))


def test_control_a_worse_end_is_not_proved():
    with config(proof="best"):
        worse = KMeans(3, init=BIRDS[[0, 4, 5]], tol=0.0, swaps=0).fit(BIRDS)
    assert is_local_minimum(BIRDS, worse.cluster_centers_)
    assert not is_proved_best(worse)
    # Its bound is true all the same: it lies below the best, and so does what the ratio leaves.
    assert worse.certificate_.bound <= BEST * (1 + 1e-12)
    assert worse.inertia_ / worse.certificate_.ratio <= BEST * (1 + 1e-12)


# -------------------------------------------------------------------------------------------------------- silhouettes
BILLS = load_penguins().dropna()[["bill_length_mm", "bill_depth_mm"]].to_numpy(float)
BILLS = (BILLS - BILLS.mean(axis=0)) / BILLS.std(axis=0, ddof=1)


@pytest.fixture(scope="module")
def clusterings():
    return {k: KMeans(k, random_state=0).fit(BILLS) for k in range(2, 7)}


def silhouettes_by_hand(X, labels):
    """(b - a) / max(a, b), row by row, as the definition says; clusters have two rows or more."""
    found = []
    for x, own in zip(X, labels, strict=True):
        far = np.sqrt(((X - x) ** 2).sum(axis=1))
        means = {j: far[labels == j].sum() / ((labels == j).sum() - (j == own)) for j in set(labels)}
        a, b = means.pop(own), min(means.values())
        found.append((b - a) / max(a, b))
    return np.array(found)


def drawn_bars(model, X):
    """The lengths of a picture's bars, ascending."""
    ax = plot_silhouettes(model, X)
    bars = np.sort([bar.get_width() for bar in ax.patches])
    plt.close(ax.figure)
    return bars


def test_bars_are_silhouettes(clusterings):
    few = BILLS[::3]
    expected = silhouettes_by_hand(few, clusterings[3].labels_[::3])
    np.testing.assert_allclose(drawn_bars(clusterings[3], few), np.sort(expected), atol=1e-12)
    assert -1 <= expected.min() < expected.max() <= 1


def same_silhouettes(move):
    """Whether rows that were moved have the bars of the rows where they were, in the same clusters."""
    few = BILLS[::6]
    labels = (few[:, 0] > 0).astype(int) + (few[:, 1] > 0)
    here, there = (SimpleNamespace(labels_=labels, X=X) for X in (few, move(few)))
    return np.allclose(drawn_bars(here, here.X), drawn_bars(there, there.X), atol=1e-9)


def test_silhouettes_know_no_units():
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert same_silhouettes(lambda X: 25.4 * X @ turn + [3.0, -7.0])


def test_control_one_column_stretched():
    assert not same_silhouettes(lambda X: X * [1.0, 25.4])


def peaks_at(values, k):
    """Whether k has the largest value, and not as the largest k that was tried."""
    return max(values, key=values.get) == k < max(values)


def test_silhouettes_peak_at_the_species(clusterings):
    mean = {k: silhouettes_by_hand(BILLS, model.labels_).mean() for k, model in clusterings.items()}
    assert peaks_at(mean, 3)


def test_control_the_sum_of_squares_never_peaks(clusterings):
    fit = {k: -objective(BILLS, model.cluster_centers_) for k, model in clusterings.items()}
    assert not any(peaks_at(fit, k) for k in fit)
    assert np.all(np.diff(list(fit.values())) > 0)
