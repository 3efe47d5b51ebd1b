"""How often intervals of `assess` hold the truth: simulated tables whose error rate is known.

    python -m benchmarks.coverage [REPETITIONS [METHOD ...]]

Rows of two classes are Gaussian with a shift in some of the columns; the truth is the accuracy on 20,000 new rows of
the model fitted to all rows (of a holdout: of the model that was tested). Intervals claim 90 %.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from certifit.core.text_table import text_table
from certifit.model_selection import assess

METHODS = {
    "holdout": {},
    "subsampling": {},
    "k-fold": {},
    "repeated": {},
    "nested": {"n_splits": 5, "n_repeats": 4},
    "leave-one-out": {},
    "bootstrap": {"n_splits": 50},
    ".632": {"n_splits": 50},
    ".632+": {"n_splits": 50},
}


def draw(n: int, rng: np.random.Generator, shift: float, width: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of two classes that differ by `shift` in the first three columns."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, width))
    X[:, :3] += shift * y[:, None]
    return X, y


def coverage(method: str, options: dict, model, n: int, shift: float, repetitions: int) -> tuple[float, float]:
    """Return how often the interval held the truth, and its mean width."""
    rng, hits, widths = np.random.default_rng(0), 0, []
    for seed in range(repetitions):
        X, y = draw(n, rng, shift)
        found = assess(model, X, y, method=method, random_state=seed, **options)
        claim = found["accuracy"]
        train = found.plan.splits[0][0] if method == "holdout" else np.arange(n)
        new, truth = draw(20_000, rng, shift)
        score = float(np.mean(clone(model).fit(X[train], y[train]).predict(new) == truth))
        hits += claim.low <= score <= claim.high
        widths.append(claim.high - claim.low)
    return hits / repetitions, float(np.mean(widths))


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    lines = [("method", "model", "rows", "covered", "width", "seconds")]
    for method in sys.argv[2:] or METHODS:
        for model, n in ((LinearDiscriminantAnalysis(), 100), (KNeighborsClassifier(5), 100)):
            start = time.process_time()
            share, width = coverage(method, METHODS[method], model, n, 0.7, repetitions)
            spent = f"{time.process_time() - start:.0f}"
            lines.append((method, type(model).__name__, str(n), f"{share:.3f}", f"{width:.3f}", spent))
            print(lines[-1], flush=True)
    print(text_table(lines, "llrrrr"))


if __name__ == "__main__":
    main()
