"""Brute force: tiny problems solved by trying everything, against fits, bounds and proofs of impossibility.

| problem | how it is solved here |
|---|---|
| k-means | every assignment of rows to clusters |
| lasso, elastic net | every pattern of signs; of the stationary points the least |
| kernel and linear machines with a hinge | every face of the box of the dual problem, in rational numbers |
| largest margin | every set of support vectors; a linear program where there is none |
| maximum likelihood of two classes | a linear program says whether they can be separated |
| PCA | Jacobi's rotations in long double |
| best trees of depth 1 to 3 | every threshold of every column below every other, in rational numbers |
| additive models of squares | a lasso of the steps at all thresholds: every pattern of signs |
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import certifit
from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.honest_fits import riddle
from benchmarks.hunts.random_tables import decades, pick, random_columns, random_target, random_weights
from benchmarks.hunts.separation import separable
from certifit import NoSolutionError, audit
from certifit.core import Certificate

Rng = np.random.Generator


def tiny(rng: Rng, n: int, d: int) -> tuple[Any, Any, Any]:
    """Rows, their weights (or None) and the weights as numbers."""
    X, _ = random_columns(rng, n, d)
    w, _ = random_weights(rng, n)
    return X, w, np.ones(n) if w is None else w


def check(case: HuntCase, model: Any, words: str, found: Certificate, optimum: float, slack: float) -> None:
    """Hold a certificate against the optimum, which brute force knows to about 1e-9 of its size and `slack`."""
    case.count("certificates compared")
    case.note(f"{words}: optimum {optimum!r}\n{found}")
    allowed = 1e-9 * max(abs(optimum), 1e-6 * found.scale) + slack
    if np.isfinite(found.bound) and found.bound > optimum + allowed:
        case.find("bound above the optimum", model, f"{words}: bound {found.bound!r}, optimum {optimum!r}")
    if found.holds and found.kind == "optimal" and found.objective - optimum > found.limit + allowed:
        case.find("holds, and is no optimum", model, f"{words}: {found.objective!r}, optimum {optimum!r}")
    if found.objective < optimum - allowed:
        case.find("objective below the optimum", model, f"{words}: {found.objective!r}, optimum {optimum!r}")


def audited(case: HuntCase, model: Any, optimum: float, slack: float, *data: Any) -> None:
    """Audit a fit, and the same with its numbers scaled."""
    for words, tried in (("as fitted", model), ("scaled", _scaled(case.rng, model))):
        try:
            found = audit(tried, *data)
        except ValueError as error:
            case.note(error)
            if words == "as fitted":
                case.find("audit refuses an own fit", model, str(error))
            continue
        check(case, tried, words, found, optimum, slack)


def _scaled(rng: Rng, model: Any) -> Any:
    wrong = copy.deepcopy(model)
    for name in ("coef_", "dual_coef_", "cluster_centers_", "intercept_"):
        if name in vars(wrong) and (name != "intercept_" or rng.random() < 0.3):
            value = getattr(wrong, name) * 10.0 ** rng.uniform(-0.5, 0.5)
            setattr(wrong, name, float(value) if isinstance(getattr(wrong, name), float) else value)
    return wrong


def try_brute_force(case: HuntCase) -> None:
    problem = pick(case.rng, *PROBLEMS)
    try:
        problem(case)
    except NoSolutionError as error:
        case.note(error)
    except Exception as error:
        case.count("refused")
        case.note(f"{type(error).__name__}: {error}")
        if riddle(error):
            case.find(riddle(error), problem.__name__, f"{error}; {' '.join(case.notes)[:300]}")


# ---------------------------------------------------------------------------------------------------------- k-means
def kmeans(case: HuntCase) -> None:
    rng = case.rng
    n, k = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    X, w, W = tiny(rng, n, 1 if rng.random() < 0.4 else int(rng.integers(2, 4)))
    X = X - X.mean(axis=0)  # brute force takes squares of coordinates: far from 0 it would lose its digits
    model = certifit.KMeans(min(k, n), random_state=0).fit(X, None, w)
    case.note(f"{model} on {X.tolist()}, {w}")
    audited(case, model, best_clustering(X, W, k), 1e-24 * float(W @ (X**2).sum(axis=1)), X, None, w)


def best_clustering(X: Any, w: Any, k: int) -> float:
    """The least Σ w |x - centre|² over all assignments to k clusters."""
    best = np.inf
    for labels in _assignments(len(X), k):
        total = 0.0
        for c in range(k):
            mine = labels == c
            weight = w[mine]
            if weight.sum() > 0:
                centre = weight @ X[mine] / weight.sum()
                total += float(weight @ ((X[mine] - centre) ** 2).sum(axis=1))
        best = min(best, total)
    return best


def _assignments(n: int, k: int) -> Iterator[Any]:
    """Every partition of n rows into at most k clusters, once."""

    def grow(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n:
            yield labels
            return
        for c in range(min(used + 1, k)):
            yield from grow([*labels, c], max(used, c + 1))

    return (np.array(labels) for labels in grow([], 0))


# ------------------------------------------------------------------------------------------------- L1-penalised lines
def lasso(case: HuntCase) -> None:
    rng = case.rng
    n, d = int(rng.integers(5, 12)), int(rng.integers(1, 4))
    X, w, W = tiny(rng, n, d)
    y = random_target(rng, "numbers", X)
    free, ratio = bool(rng.random() < 0.7), float(pick(rng, 1.0, 0.5, 0.9))
    size = np.abs(X).mean() * np.abs(y - y.mean() if free else y).mean()
    model = certifit.ElasticNet(float(f"{size * decades(rng, -4, 0.5):.3g}"), l1_ratio=ratio, fit_intercept=free)
    case.note(f"{model} on {X.tolist()}, {y.tolist()}, {w}")
    model.fit(X, y, w)
    slack = 1e-12 * float(W @ (y - y.mean() if free else y) ** 2)
    audited(case, model, best_line(X, y, W, model.alpha, ratio, free), slack, X, y, w)


def best_line(X: Any, y: Any, w: Any, alpha: float, ratio: float, free: bool) -> float:
    """The least Σ w (y - Xβ - b)²/2 + alpha Σw (ratio |β|₁ + (1 - ratio) |β|²/2) over all patterns of signs.

    In fractions: of an optimum far below the targets' squares float64 has few digits.
    """
    weights = [Fraction(float(v)) for v in w]
    total = sum(weights, Fraction())
    columns = [_centred([Fraction(float(v)) for v in column], weights, free) for column in (*X.T, y)]
    y, X = columns.pop(), columns
    l1, l2 = Fraction(alpha) * Fraction(ratio) * total, Fraction(alpha) * (1 - Fraction(ratio)) * total

    def product(a: list[Fraction], b: list[Fraction]) -> Fraction:
        return sum((u * v * x for u, v, x in zip(weights, a, b, strict=True)), Fraction())

    G = [[product(a, b) + (l2 if a is b else 0) for b in X] for a in X]
    c, yy = [product(a, y) for a in X], product(y, y)
    best = yy / 2
    for signs in itertools.product((-1, 0, 1), repeat=len(X)):
        on = [j for j, sign in enumerate(signs) if sign]
        beta = solve([[*(G[i][j] for j in on), c[i] - l1 * signs[i]] for i in on])
        if beta is not None:  # every point counts: its value is reached, whatever its signs
            square = sum((b * _dot([G[i][j] for j in on], beta) for i, b in zip(on, beta, strict=True)), Fraction())
            best = min(best, (yy + square) / 2 - _dot([c[j] for j in on], beta) + l1 * sum(map(abs, beta)))
    return float(best)


def _centred(a: list[Fraction], weights: list[Fraction], free: bool) -> list[Fraction]:
    """A column less its mean, where there is an intercept."""
    mean = _dot(a, weights) / sum(weights, Fraction()) if free else Fraction()
    return [v - mean for v in a]


# --------------------------------------------------------------------------------------------------- hinge machines
def machine(case: HuntCase) -> None:
    rng = case.rng
    n, d = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    X, w, W = tiny(rng, n, d)
    y = random_target(rng, "two", X)
    if min(W[y == 0].sum(), W[y == 1].sum()) <= 0:
        return
    kernel, C = pick(rng, "rbf", "linear", "straight"), decades(rng, -3, 3)
    model: Any = certifit.SVC(C=C, kernel=kernel, tol=1e-8)
    if kernel == "straight":
        model = certifit.LinearSVC(C=C, loss="hinge", penalize_intercept=False, tol=1e-8)
    case.note(f"{model} on {X.tolist()}, {y.tolist()}, {w}")
    model.fit(X, y, w)
    K: Any = [[sum(map(_product, x, z), Fraction()) for z in X.tolist()] for x in X.tolist()]
    if kernel == "rbf":
        Z = X.astype(np.longdouble)
        K = np.exp(-model.gamma_ * ((Z[:, None] - Z[None]) ** 2).sum(axis=2)).astype(float).tolist()
    optimum = best_machine(K, np.where(y == 1, 1, -1).tolist(), (C * W).tolist())
    # A radial kernel's values are rounded; of a linear one nothing is, but for the checker's objective.
    slack = (1e-7 if kernel == "rbf" else 1e-12) * C * float(W.max())
    audited(case, model, optimum, slack, X, y, w)


def _product(a: float, b: float) -> Fraction:
    return Fraction(a) * Fraction(b)


def best_machine(K: list[list[Any]], s: list[int], top: list[float]) -> float:
    """The largest Σ a - ½ aᵀ(ssᵀ∘K)a over 0 <= a <= top with s·a = 0: on each face its stationary point.

    All in rational numbers: the row s·a = 0 of a face's equations is lost to rounding beside kernel values of 1e9.
    """
    n, best = len(s), Fraction()
    s = [int(sign) for sign in s]
    Q = [[s[i] * s[j] * Fraction(K[i][j]) for j in range(n)] for i in range(n)]
    limits = [Fraction(t) for t in top]
    for face in itertools.product((0, 1, 2), repeat=n):  # at 0, at the top, between
        a = [limits[i] if where == 1 else Fraction() for i, where in enumerate(face)]
        inner = [i for i, where in enumerate(face) if where == 2]
        pull = [sum((Q[i][j] * a[j] for j in range(n) if a[j]), Fraction()) for i in inner]
        table = [[*(Q[i][j] for j in inner), Fraction(s[i]), 1 - p] for i, p in zip(inner, pull, strict=True)]
        found = solve([*table, [*(Fraction(s[i]) for i in inner), Fraction(), -_dot(s, a)]])
        if found is None:
            continue
        for i, value in zip(inner, found[:-1], strict=True):
            a[i] = value
        if all(0 <= v <= t for v, t in zip(a, limits, strict=True)):
            best = max(best, sum(a) - sum((a[i] * _dot(Q[i], a) for i in range(n) if a[i]), Fraction()) / 2)
    return float(best)


def _dot(a: list[Any], b: list[Any]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if y), Fraction())


def solve(table: list[list[Fraction]]) -> list[Fraction] | None:
    """A solution of the m equations in m unknowns (m, m + 1), by elimination; None where there is none."""
    m = len(table)
    pivots: list[int] = []
    for column in range(m):
        top = len(pivots)
        row = next((i for i in range(top, m) if table[i][column]), None)
        if row is None:
            continue
        table[top], table[row] = table[row], table[top]
        table[top] = [v / table[top][column] for v in table[top]]
        for i in range(m):
            if i != top and table[i][column]:
                share = table[i][column]
                table[i] = [v - share * p for v, p in zip(table[i], table[top], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in table[len(pivots) :]):
        return None
    found = [Fraction()] * m
    for row, column in enumerate(pivots):
        found[column] = table[row][-1]
    return found


# ---------------------------------------------------------------------------------------- largest margins, separation
def margin(case: HuntCase) -> None:
    rng = case.rng
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X, words = random_columns(rng, n, d)
    y = np.arange(n) % 2
    if rng.random() < 0.6:
        X = X + np.outer(y, rng.normal(size=d)) * np.abs(X).max() * 3
    model = certifit.HardMarginSVC(ridge=0.0)
    case.note(f"{model} on {X.tolist()}, {y.tolist()} {words}")
    best = best_margin(X, np.where(y == 1, 1.0, -1.0))
    try:
        model.fit(X, y)
    except NoSolutionError as error:
        case.count("proved impossible")
        if error.certificate.proved and separable(X, y, strictly=True):
            case.find("impossible, and possible", model, f"{X.tolist()}: {error}")
        return
    if np.isfinite(best):
        check(case, model, "as fitted", audit(model, X, y), best, 1e-7 * best)
    elif not separable(X, y, strictly=True) and model.certificate_.holds:
        case.find("separated, and inseparable", model, str(X.tolist()))


def best_margin(X: Any, s: Any) -> float:
    """The least ½ |β|² with s (Xβ + b) >= 1, over all sets of rows on the margin; inf where none will do.

    In fractions: columns of different sizes make Gram matrices whose inverses float64 has no digits of.
    """
    n, d = X.shape
    Z, sign = [[Fraction(float(v)) for v in row] for row in X], [Fraction(int(v)) for v in s]
    best = np.inf
    for m in range(2, min(n, d + 1) + 1):
        for rows in itertools.combinations(range(n), m):
            table = [[*(sign[i] * sign[j] * _dot(Z[i], Z[j]) for j in rows), sign[i], Fraction(1)] for i in rows]
            found = solve([*table, [*(sign[i] for i in rows), Fraction(), Fraction()]])
            if found is None:
                continue
            beta = [
                sum((a * sign[i] * Z[i][j] for a, i in zip(found, rows, strict=False)), Fraction()) for j in range(d)
            ]
            if all(t * (_dot(z, beta) + found[m]) >= 1 for z, t in zip(Z, sign, strict=True)):
                best = min(best, float(_dot(beta, beta) / 2))
    return best


def likelihood(case: HuntCase) -> None:
    rng = case.rng
    n, d = int(rng.integers(3, 14)), int(rng.integers(1, 4))
    X, words = random_columns(rng, n, d)
    y, free = random_target(rng, "two", X), bool(rng.random() < 0.8)
    model = certifit.LogisticRegression(penalty=None, fit_intercept=free)
    case.note(f"{model} on {X.tolist()}, {y.tolist()} {words}")
    case.count("likelihoods")
    try:
        model.fit(X, y)
    except NoSolutionError as error:
        case.count("proved impossible")
        if error.certificate.proved and not separable(X, y, False, free):
            case.find("impossible, and possible", model, f"{X.tolist()} {y.tolist()}: {error}")
        return
    if model.certificate_.holds and separable(X, y, True, free):
        case.find("a maximum, and separable", model, f"{X.tolist()} {y.tolist()}")


# ------------------------------------------------------------------------------------------------------------- PCA
def axes(case: HuntCase) -> None:
    rng = case.rng
    n, d = int(rng.integers(3, 30)), int(rng.integers(1, 6))
    X, w, W = tiny(rng, n, d)
    if (W > 0).sum() < 2 or W.sum() <= 1:
        return
    k = int(rng.integers(1, min(n, d) + 1))
    model = certifit.PCA(k).fit(X, None, w)
    case.note(f"{model} on {X.tolist()}, {w}")
    Z, V = X.astype(np.longdouble), W.astype(np.longdouble)
    Z = Z - V @ Z / V.sum()
    S = (Z * V[:, None]).T @ Z / V.sum()
    values = eigenvalues(S)
    total = float(values.sum())
    check_spectrum(case, model, values, W.sum() / (W.sum() - 1), total, X)
    found = audit(model, X, None, w)
    size = float(np.abs(values).max()) or 1.0
    allowed = 1e-9 * total + 100 * np.finfo(float).eps * np.abs(X).max() * size**0.5
    left = float(values[k:].sum())
    case.count("certificates compared")
    if found.bound > left + allowed:
        case.find("bound above the optimum", model, f"bound {found.bound!r}, discarded {left!r}")
    if found.holds and found.objective > left + found.limit + allowed:
        case.find("holds, and is no optimum", model, f"{found.objective!r}, discarded {left!r}")


def check_spectrum(case: HuntCase, model: Any, values: Any, factor: float, total: float, X: Any) -> None:
    stated, exact = (
        model.explained_variance_,
        np.asarray(values[: len(model.explained_variance_)], dtype=float) * factor,
    )
    allowed = 1e-8 * total * factor + 1e-13 * np.abs(X).max() * (total * factor) ** 0.5
    if model.certificate_.holds and np.abs(stated - exact).max() > allowed:
        case.find("variances off", model, f"{stated.tolist()}, exact {exact.tolist()}")


def eigenvalues(S: Any) -> Any:
    """Of a symmetric matrix in long double, largest first, by Jacobi's rotations."""
    A, m = S.copy(), len(S)
    for _ in range(60):
        for p, q in itertools.combinations(range(m), 2):
            if A[p, q] != 0:
                theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
                t = (1 if theta >= 0 else -1) / (abs(theta) + np.sqrt(theta**2 + 1))
                c = 1 / np.sqrt(t**2 + 1)
                R = np.eye(m, dtype=A.dtype)
                R[p, p] = R[q, q] = c
                R[p, q], R[q, p] = t * c, -t * c
                A = R.T @ A @ R
        if np.abs(A - np.diag(np.diag(A))).max(initial=0) <= 1e-20 * np.abs(A).max(initial=0):
            break
    return np.sort(np.diag(A))[::-1]


# ------------------------------------------------------------------------------------------------- trees, and steps
def best_tree(case: HuntCase) -> None:
    rng = case.rng
    depth, amounts = int(rng.integers(1, 4)), bool(rng.random() < 0.5)
    n, d = int(rng.integers(3, (0, 16, 10, 7)[depth])), int(rng.integers(1, 4))
    X, w, W = tiny(rng, n, d)
    if rng.random() < 0.5:
        X = np.round(X / (np.abs(X).max() or 1.0), 1)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.2] = np.nan
    y = random_target(rng, "numbers", np.nan_to_num(X)) if amounts else rng.integers(0, int(rng.integers(2, 4)), n)
    kind = certifit.OptimalTreeRegressor if amounts else certifit.OptimalTreeClassifier
    model = kind(max_depth=depth, max_bins=pick(rng, None, 2, 3), time_limit=pick(rng, 0.0, 5.0))
    case.note(f"{model} on {X.tolist()}, {y.tolist()}, {w}")
    model.fit(X, y, w)
    kept = np.flatnonzero(W > 0)
    total = Fraction(0) + sum(Fraction(float(v)) for v in W)
    leaf = LeafCost([Fraction(float(v)) for v in W], [Fraction(float(v)) for v in y], amounts)
    optimum = float(leaf.cheapest(X, kept, depth) / total)
    away = y - np.average(y, weights=W) if amounts else np.ones(n)
    slack = 1e-12 * float(W @ away**2) / float(total)
    wrong = copy.deepcopy(model)
    wrong.borders_ = [np.unique(rng.choice(np.append(x[~np.isnan(x)], 0.0), 3)) for x in X.T]
    for words, tried in (("as fitted", model), ("with other bins", wrong)):
        check(case, tried, words, audit(tried, X, y, w), optimum, slack)


@dataclass(frozen=True)
class LeafCost:
    """What the leaves of trees cost: the weight beside the largest class, or the squares about the mean."""

    w: list[Fraction]
    y: list[Fraction]
    amounts: bool

    def of(self, rows: Any) -> Fraction:
        sums: dict[Fraction, Fraction] = {}
        for i in rows:
            sums[self.y[i]] = sums.get(self.y[i], Fraction()) + self.w[i]
        total = sum(sums.values(), Fraction())
        if not self.amounts:
            return total - max(sums.values(), default=Fraction())
        first = sum((value * weight for value, weight in sums.items()), Fraction())
        second = sum((value * value * weight for value, weight in sums.items()), Fraction())
        return second - first * first / total if total else Fraction()

    def cheapest(self, X: Any, rows: Any, depth: int) -> Fraction:
        """The least cost of any tree of a depth over these rows; missing values go to either side."""
        best, tried = self.of(rows), set()
        if not depth:
            return best
        for x in X[rows].T:
            known = ~np.isnan(x)
            for t in np.unique(x[known]):
                for left in (known & (x <= t), ~known | (x <= t)):
                    if left.tobytes() not in tried and not left.all():
                        tried.add(left.tobytes())
                        sides = (self.cheapest(X, rows[side], depth - 1) for side in (left, ~left))
                        best = min(best, sum(sides, Fraction()))
        return best


def additive(case: HuntCase) -> None:
    rng = case.rng
    n, d = int(rng.integers(3, 7)), int(rng.integers(1, 3))
    X, w, W = tiny(rng, n, d)
    X = np.round(X / (np.abs(X).max() or 1.0), pick(rng, 0, 0, 8))[:, : 1 if n > 4 else 2]
    y = random_target(rng, "numbers", X)
    alpha = float(f"{np.abs(y - y.mean()).mean() * decades(rng, -3, 0):.3g}") or 1.0
    model = certifit.AdditiveRegressor(alpha=alpha)
    case.note(f"{model} on {X.tolist()}, {y.tolist()}, {w}")
    model.fit(X, y, w)
    kept = X[W > 0]
    steps = [X[:, j] > t for j in range(X.shape[1]) for t in np.unique(kept[:, j])[:-1]]
    table = np.array(steps, float).T if steps else np.zeros((n, 1))
    optimum = best_line(table, y, W, alpha, 1.0, True) / float(W.sum())
    mean = np.average(y, weights=W)
    slack = 1e-12 * float(W @ (y - mean) ** 2) / float(W.sum())
    wrong = copy.deepcopy(model)
    wrong.shape_functions_ = [replace(f, values=f.values * rng.uniform(0.5, 1.5)) for f in wrong.shape_functions_]
    for words, tried in (("as fitted", model), ("scaled", wrong)):
        check(case, tried, words, audit(tried, X, y, w), optimum, slack)


PROBLEMS = (kmeans, lasso, machine, margin, likelihood, axes, best_tree, additive)
BRUTE_FORCE = Hunt(
    "brute_force",
    "Brute force",
    "tiny problems solved by enumeration, a linear program or long double arithmetic, against certificates",
    try_brute_force,
    20.0,
)
