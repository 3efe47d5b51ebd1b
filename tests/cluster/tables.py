"""Tables that tests of k-means share, and ways to send them through one code or the other."""

import numpy as np
from sklearn.datasets import load_digits, load_iris, make_blobs

from certifit.cluster.kmeans import KMeans
from certifit.rows import ArrayRows
from tests.common.tuning import tuned


def sized(k, compiled, **params):
    """KMeans(k) whose passes are compiled, or not, whatever the table's size."""
    return tuned(KMeans(k, **params), compiled_above=0 if compiled else 2**62)


class Streamed(ArrayRows):
    """Rows that may not be remembered from pass to pass, as those of a file."""

    def __init__(self, X, w=None):
        super().__init__(X, w=w)
        self.in_memory = False


def iris():
    return load_iris().data


def digits():
    return load_digits().data


def blobs(n=2000, d=6, k=8):
    return make_blobs(n, d, centers=k, random_state=0)[0]


def wide(n=1200, d=200, k=3):
    """Clusters in a few directions, noise in many: the kind of rows that are sketched."""
    rng = np.random.default_rng(1)
    return 4.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d)) * 0.8 ** np.arange(d)


def ties(n=600, d=3):
    """Whole numbers: many equal rows, many rows halfway between centres."""
    return np.random.default_rng(2).integers(-2, 3, size=(n, d)).astype(float)


def assert_same_fit(a, b):
    """Equal to the last bit."""
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_array_equal(a.cluster_centers_, b.cluster_centers_)
    assert a.inertia_ == b.inertia_
    assert [m.objective for m in a.history_] == [m.objective for m in b.history_]
    assert str(a.certificate_) == str(b.certificate_)
