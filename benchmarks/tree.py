"""A single exact decision tree, fully grown, and the best trees of depth 2 and 3: no peer grows such ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sklearn.datasets import make_classification

from benchmarks.boosting import interactions
from benchmarks.datasets import shape
from benchmarks.forest import HeldOutError, WrongShare, predictor
from benchmarks.harness import Case, Options
from benchmarks.peers import estimator

OURS, THEIRS = "certifit:DecisionTreeClassifier", "sklearn.tree:DecisionTreeClassifier"
QUALITY = 0.02  # of the error on held-out rows, relative: ties are broken in other ways
FIT, PREDICT = 0.8, 0.7  # wanted: our time / scikit-learn's
# Depth, bins, seconds that are wanted of a million rows, and about how often a greedy tree would be grown meanwhile.
BEST_TREES = ((2, 32, 3, 0.44), (3, 16, 60, 6.0))


def tree_tall(options: Options) -> Iterator[Case]:
    n = options.rows(100_000)
    X, y = make_classification(11 * n, 30, n_informative=10, flip_y=0.05, random_state=0)
    # As many rows to answer as take both libraries longer than a resting core takes to wake: on 100,000 rows, 5
    # milliseconds of two threads, it was by chance 0.45 or 0.9 times scikit-learn's one.
    X, y, new, labels = X[:n], y[:n], X[n:], y[n:]
    what = f"2 classes {shape(X)}, exact splits, objective: error on {len(new)} other rows"
    fits = [estimator("certifit", OURS, X, y), estimator("scikit-learn", THEIRS, X, y, random_state=0)]
    yield Case("fit", what, fits, HeldOutError(new, labels), QUALITY, FIT, patience=120.0)
    predicts = [
        predictor("certifit", OURS, (X, y, new), {}),
        predictor("scikit-learn", THEIRS, (X, y, new), {"random_state": 0}),
    ]
    yield Case("predict_proba", what, predicts, WrongShare(labels), QUALITY, PREDICT, patience=120.0)


def best_tree(options: Options) -> Iterator[Case]:
    """The best trees over bins, with their bounds; greedy trees are there for the scale."""
    n = options.rows(1_000_000)
    X, y = interactions(n, 30)
    for depth, bins, seconds, target in BEST_TREES:
        what = f"2 classes {shape(X)}, {bins} bins, wanted within {seconds} s, objective: error on these rows"
        settings = {"max_depth": depth, "max_bins": bins, "time_limit": 1e-3}
        fits = [
            estimator("certifit", "certifit:OptimalTreeClassifier", X, y, **settings),
            estimator("scikit-learn, greedy", THEIRS, X, y, max_depth=depth),
        ]
        yield Case(f"depth {depth}", what, fits, HeldOutError(X, y), math.inf, target, patience=30.0)
