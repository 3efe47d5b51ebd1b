"""Time the same fits in two checkouts, in turn, on one machine: has a change made anything slower?

    python tools/side_by_side.py OTHER_CHECKOUT [NAME …] [--runs 7] [--audit]

With --audit the audits of these fits are timed in place of the fits. Each checkout is a process of its own that holds
the data and fits when told to, one at a time, so that both meet the same machine. The first fit of each (which may
compile) is printed apart; then medians of warm fits and their ratio.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def workloads() -> dict[str, Callable[[], Callable[[], Any]]]:
    """By name: what makes the data and returns the fit."""
    import numpy as np
    from scipy import sparse

    import certifit as cf

    def tall(n: int = 500_000, d: int = 20, dtype: Any = np.float64) -> Any:
        rng = np.random.default_rng(0)
        X = (rng.normal(size=(n, d)) + rng.integers(8, size=(n, 1))).astype(dtype)
        return X, X @ rng.normal(size=d) * 0.2, rng

    def classes(k: int, n: int = 300_000, d: int = 20) -> Any:
        X, score, rng = tall(n, d)
        return X, np.digitize(score - score.mean() + rng.normal(size=n), np.linspace(-1, 1, k - 1))

    def fit(make: Callable[[], Any], *data: Any) -> Callable[[], Any]:
        if "--audit" not in sys.argv:
            return lambda: make().fit(*data)
        model = make().fit(*data)
        return lambda: cf.audit(model, *data)

    def kmeans(dtype: Any, n: int, d: int, k: int) -> Callable[[], Any]:
        X = tall(n, d, dtype)[0]
        return fit(lambda: cf.KMeans(k, n_init=1, random_state=0, max_iter=30), X)

    def mixture(shape: str) -> Callable[[], Any]:
        X = tall(100_000, 16)[0]
        return fit(lambda: cf.GaussianMixture(5, covariance_type=shape, random_state=0, max_iter=20), X)

    def missing() -> Callable[[], Any]:
        X, _, rng = tall(30_000, 12)
        X[rng.random(X.shape) < 0.1] = np.nan
        return fit(lambda: cf.GaussianMixture(3, random_state=0, max_iter=10), X)

    def counts(n: int = 300_000) -> Any:
        X, score, rng = tall(n)
        return X, rng.poisson(np.exp(np.clip(score - score.mean(), -5, 3))).astype(float)

    def rings(n: int) -> Any:
        X, score, rng = tall(n, 10)
        return X, (score + 0.5 * rng.normal(size=n) > np.median(score)).astype(int)

    def sparse_rows() -> Any:
        rng = np.random.default_rng(0)
        X = sparse.random_array((50_000, 2000), density=0.01, rng=rng, format="csr")
        return X, (X @ rng.normal(size=2000) > 0).astype(int)

    def patches() -> Any:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 8)) @ rng.normal(size=(8, 200))
        X[rng.random(X.shape) < 0.05] += 20
        return X

    def roll(n: int = 3000) -> Any:
        t = np.random.default_rng(0).uniform(4, 14, n)
        return np.column_stack([t * np.cos(t), np.random.default_rng(1).uniform(0, 20, n), t * np.sin(t)])

    return {
        "kmeans tall float64": lambda: kmeans(np.float64, 500_000, 16, 20),
        "kmeans tall float32": lambda: kmeans(np.float32, 500_000, 16, 20),
        "kmeans wide": lambda: kmeans(np.float64, 20_000, 784, 10),
        "kmeans many": lambda: kmeans(np.float64, 100_000, 16, 200),
        "mixture full": lambda: mixture("full"),
        "mixture diag": lambda: mixture("diag"),
        "mixture missing": missing,
        "pca tall": lambda: fit(lambda: cf.PCA(5), tall()[0]),
        "pca wide": lambda: fit(lambda: cf.PCA(50), tall(20_000, 784)[0]),
        "truncated svd sparse": lambda: fit(lambda: cf.TruncatedSVD(10), sparse_rows()[0]),
        "probabilistic pca": lambda: fit(lambda: cf.ProbabilisticPCA(5), tall()[0]),
        "robust pca": lambda: fit(lambda: cf.RobustPCA(), patches()),
        "logistic two": lambda: fit(lambda: cf.LogisticRegression(), *classes(2)),
        "logistic three": lambda: fit(lambda: cf.LogisticRegression(), *classes(3)),
        "logistic lbfgs": lambda: fit(lambda: cf.LogisticRegression(solver="lbfgs"), *classes(5)),
        "logistic likelihood": lambda: fit(lambda: cf.LogisticRegression(penalty=None), *classes(2)),
        "poisson": lambda: fit(lambda: cf.PoissonRegressor(alpha=1e-3), *counts()),
        "glm with errors": lambda: fit(lambda: cf.GeneralizedLinearRegressor("poisson"), *counts()),
        "lasso": lambda: fit(lambda: cf.Lasso(alpha=0.1), *tall()[:2]),
        "linear svc": lambda: fit(lambda: cf.LinearSVC(), *classes(2)),
        "linear svc hinge": lambda: fit(lambda: cf.LinearSVC(loss="hinge"), *classes(2, 100_000)),
        "linear svc sparse": lambda: fit(lambda: cf.LinearSVC(loss="hinge"), *sparse_rows()),
        "linear svc joint": lambda: fit(lambda: cf.LinearSVC(multi_class="crammer-singer"), *classes(3, 20_000)),
        "svc": lambda: fit(lambda: cf.SVC(), *rings(5000)),
        "svc float32": lambda: fit(lambda: cf.SVC(), rings(5000)[0].astype(np.float32), rings(5000)[1]),
        "svc joint": lambda: fit(lambda: cf.SVC(multi_class="weston-watkins"), *classes(3, 2000)),
        "svr": lambda: fit(lambda: cf.SVR(), *tall(3000, 10)[:2]),
        "nystroem": lambda: fit(lambda: cf.Nystroem(n_components=100, random_state=0), tall(50_000, 10)[0]),
        "approximate svc": lambda: fit(lambda: cf.ApproximateSVC(n_components=100, random_state=0), *rings(50_000)),
        "embedding": lambda: fit(lambda: cf.LocallyLinearEmbedding(n_neighbors=12), roll()),
        "gaussian naive bayes": lambda: fit(lambda: cf.GaussianNB(), *classes(5, 500_000)),
        "mixed naive bayes": lambda: fit(lambda: cf.NaiveBayes(), np.abs(np.round(classes(3)[0])), classes(3)[1]),
        "anova": lambda: fit(lambda: cf.SelectFeatures(), *classes(3)),
        "iris-sized k-means": lambda: fit(lambda: cf.KMeans(3, random_state=0), tall(150, 4)[0]),
        "iris-sized logistic": lambda: fit(lambda: cf.LogisticRegression(), *classes(3, 150, 4)),
    }


def serve() -> None:
    """The process of one checkout: told a name it makes the data, told `run` it fits and prints the seconds."""
    import warnings

    warnings.simplefilter("ignore")
    known, job = workloads(), None
    for line in sys.stdin:
        order = line.strip()
        if order == "run":
            assert job is not None
            start = time.perf_counter()
            job()
            print(time.perf_counter() - start, flush=True)
        else:
            job = known[order]()
            print("ready", flush=True)


class Checkout:
    """A process that fits with the source of one checkout."""

    def __init__(self, folder: Path) -> None:
        environment = {**__import__("os").environ, "PYTHONPATH": str(folder / "src")}
        command = [sys.executable, __file__, "--serve", *(["--audit"] if "--audit" in sys.argv else [])]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
        )

    def tell(self, order: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


def main(arguments: list[str]) -> None:
    runs, arguments = 7, [word for word in arguments if word != "--audit"]
    if "--runs" in arguments:
        place = arguments.index("--runs")
        runs = int(arguments[place + 1])
        del arguments[place : place + 2]
    here, there = Checkout(ROOT), Checkout(Path(arguments[0]).resolve())
    names = [*workloads()]
    asked = [name for name in names if not arguments[1:] or any(word in name for word in arguments[1:])]
    print(f"{'fit':24} {'first here':>11} {'first there':>12} {'here':>9} {'there':>9} {'here / there':>13}")
    for name in asked:
        for checkout in (here, there):
            checkout.tell(name)
        first = [float(checkout.tell("run")) for checkout in (here, there)]
        times: list[tuple[float, float]] = []
        for i in range(runs):
            pair = [(side, float((here, there)[side].tell("run"))) for side in ((0, 1) if i % 2 else (1, 0))]
            times.append((dict(pair)[0], dict(pair)[1]))
        a, b = (statistics.median(side) for side in zip(*times, strict=True))
        print(f"{name:24} {first[0]:10.2f}s {first[1]:11.2f}s {a:8.4f}s {b:8.4f}s {a / b:13.3f}", flush=True)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve()
    else:
        main(sys.argv[1:])
