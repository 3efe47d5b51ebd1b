"""A single exact decision tree, fully grown: growing, judged by the error on held-out rows, and predicting."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.datasets import make_classification

from benchmarks.datasets import shape
from benchmarks.forest import HeldOutError, WrongShare, predictor
from benchmarks.harness import Case, Options
from benchmarks.peers import estimator

OURS, THEIRS = "certifit:DecisionTreeClassifier", "sklearn.tree:DecisionTreeClassifier"
QUALITY = 0.02  # of the error on held-out rows, relative: ties are broken in other ways
FIT, PREDICT = 0.8, 0.7  # wanted: our time / scikit-learn's


def tree_tall(options: Options) -> Iterator[Case]:
    n = options.rows(100_000)
    X, y = make_classification(2 * n, 30, n_informative=10, flip_y=0.05, random_state=0)
    X, y, new, labels = X[:n], y[:n], X[n:], y[n:]
    what = f"2 classes {shape(X)}, exact splits, objective: error on held-out rows"
    fits = [estimator("certifit", OURS, X, y), estimator("scikit-learn", THEIRS, X, y, random_state=0)]
    yield Case("fit", what, fits, HeldOutError(new, labels), QUALITY, FIT, patience=120.0)
    predicts = [
        predictor("certifit", OURS, (X, y, new), {}),
        predictor("scikit-learn", THEIRS, (X, y, new), {"random_state": 0}),
    ]
    yield Case("predict_proba", what, predicts, WrongShare(labels), QUALITY, PREDICT, patience=120.0)
