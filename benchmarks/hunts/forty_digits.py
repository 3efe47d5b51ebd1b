"""Convex optima against 40-digit arithmetic: Newton's method in Python's decimal numbers says where the optimum is.

A case fits (or spoils a little) a smooth convex model on a small table, finds the optimum of the same objective in
40 digits, and compares: the certificate's objective with the exact one at these coefficients, its bound with the
optimum, its gap with the true distance, and the error it allows each coefficient with the true one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, Decimal, InvalidOperation, Overflow, localcontext
from typing import Any

import numpy as np

import certifit
from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.random_tables import decades, pick, random_columns, random_target, random_weights
from certifit import audit

DIGITS = 50  # ten more than are used
Vector = list[Decimal]
ZERO, ONE, HALF = Decimal(0), Decimal(1), Decimal("0.5")
RowLoss = Callable[[Decimal, Decimal], tuple[Decimal, Decimal, Decimal]]  # (y, score) -> value, slope, curvature


# -------------------------------------------------------------------------------------------------- losses of a row
def squares(y: Decimal, s: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    return HALF * (s - y) ** 2, s - y, ONE


def logistic(y: Decimal, s: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """log(1 + exp(s)) - y s of a class 0 or 1, without losing digits in either tail."""
    t = (-abs(s)).exp()
    p = ONE / (ONE + t) if s >= 0 else t / (ONE + t)
    return max(s, ZERO) + (ONE + t).ln() - y * s, p - y, p * (ONE - p)


def poisson(y: Decimal, s: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """Half the deviance."""
    mean = s.exp()
    return (y * (y.ln() - s) if y else ZERO) - y + mean, mean - y, mean


def gamma(y: Decimal, s: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    ratio = y * (-s).exp()
    return ratio - ONE - ratio.ln(), ONE - ratio, ratio


def squared_hinge(y: Decimal, s: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """max(0, 1 - y s)² of a class -1 or 1."""
    slack = ONE - y * s
    return (slack**2, -2 * y * slack, Decimal(2)) if slack > 0 else (ZERO, ZERO, ZERO)


@dataclass(frozen=True)
class SmoothProblem:
    """Σ w φ(y, β·x + b) + λ/2 |β|², with a free intercept as a last column of ones that is not penalised."""

    loss: RowLoss
    rows: list[Vector]  # with the ones
    y: Vector
    w: Vector
    penalty: Vector  # λ for each column, 0 for the ones

    def value(self, beta: Vector) -> Decimal:
        scores = [_dot(row, beta) for row in self.rows]
        terms = (w * self.loss(y, s)[0] for w, y, s in zip(self.w, self.y, scores, strict=True))
        return sum(terms, ZERO) + HALF * sum((p * b * b for p, b in zip(self.penalty, beta, strict=True)), ZERO)

    def slope(self, beta: Vector) -> tuple[Vector, list[Vector]]:
        """Gradient and Hessian."""
        m = len(beta)
        g = [p * b for p, b in zip(self.penalty, beta, strict=True)]
        H = [[self.penalty[i] if i == j else ZERO for j in range(m)] for i in range(m)]
        for row, y, w in zip(self.rows, self.y, self.w, strict=True):
            _, u, h = self.loss(y, _dot(row, beta))
            for i in range(m):
                g[i] += w * u * row[i]
                for j in range(i + 1):
                    H[i][j] += w * h * row[i] * row[j]
        return g, [[H[max(i, j)][min(i, j)] for j in range(m)] for i in range(m)]


def _dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def solve(A: list[Vector], b: Vector) -> Vector | None:
    """Gaussian elimination with pivoting; None where a pivot is nothing but rounding."""
    m = len(b)
    M = [[*row, b[i]] for i, row in enumerate(A)]
    for i in range(m):
        p = max(range(i, m), key=lambda r: abs(M[r][i]))
        size = max((abs(v) for v in A[p]), default=ZERO)
        if abs(M[p][i]) <= size * Decimal(10) ** (10 - DIGITS):
            return None
        M[i], M[p] = M[p], M[i]
        for r in range(i + 1, m):
            f = M[r][i] / M[i][i]
            if f:
                M[r] = [x - f * y for x, y in zip(M[r], M[i], strict=True)]
    out = [ZERO] * m
    for i in reversed(range(m)):
        out[i] = (M[i][m] - sum((M[i][j] * out[j] for j in range(i + 1, m)), ZERO)) / M[i][i]
    return out


def minimise(problem: SmoothProblem, start: Vector, steps: int = 60) -> tuple[Vector, Decimal] | None:
    """Newton's method with halved steps; the minimiser and the minimum, or None where it does not get there."""
    beta, value = start, problem.value(start)
    for _ in range(steps):
        g, H = problem.slope(beta)
        step = solve(H, g)
        if step is None:
            return None
        gain, length = _dot(g, step), ONE
        if gain <= abs(value) * Decimal(10) ** -44 + Decimal(10) ** -60:
            return beta, value
        for _ in range(30):
            trial = [b - length * s for b, s in zip(beta, step, strict=True)]
            new = problem.value(trial)
            if new < value:
                break
            length *= HALF
        else:
            return (beta, value) if gain <= abs(value) * Decimal(10) ** -38 else None
        beta, value = trial, new
    return None


# ------------------------------------------------------------------------------------------------------- the cases
@dataclass(frozen=True)
class SmoothModel:
    """An estimator whose objective is written here again."""

    name: str
    target: str
    loss: RowLoss
    settings: Callable[[np.random.Generator], dict[str, Any]]
    penalty: Callable[[Any, float], float]  # λ, of the model and the total weight
    factor: Callable[[Any], float] = lambda _: 1.0  # of the losses


def _c(rng: np.random.Generator) -> dict[str, Any]:
    return {"C": decades(rng, -4, 4)}


def _free_c(rng: np.random.Generator) -> dict[str, Any]:
    return {**_c(rng), "penalize_intercept": False}


def _alpha(rng: np.random.Generator) -> dict[str, Any]:
    return {"alpha": decades(rng, -6, 3)}


def _none(_rng: np.random.Generator) -> dict[str, Any]:
    return {}


SMOOTH = (
    SmoothModel("LogisticRegression", "two", logistic, _c, lambda m, W: 1.0 / m.C),
    SmoothModel("LogisticRegression", "two", logistic, lambda r: {"penalty": None}, lambda m, W: 0.0),
    SmoothModel("LinearRegression", "numbers", squares, _none, lambda m, W: 0.0),
    SmoothModel("Ridge", "numbers", squares, _alpha, lambda m, W: m.alpha),
    SmoothModel("PoissonRegressor", "counts", poisson, _alpha, lambda m, W: m.alpha * W),
    SmoothModel("GeneralizedLinearRegressor", "counts", poisson, lambda r: {"family": "poisson"}, lambda m, W: 0.0),
    SmoothModel("GammaRegressor", "positive", gamma, _alpha, lambda m, W: m.alpha * W),
    SmoothModel("GeneralizedLinearRegressor", "positive", gamma, lambda r: {"family": "gamma"}, lambda m, W: 0.0),
    SmoothModel("LinearSVC", "two", squared_hinge, _free_c, lambda m, W: 1.0, lambda m: m.C),
)


def try_forty_digits(case: HuntCase) -> None:
    with localcontext() as context:
        context.prec, context.Emax = DIGITS, MAX_EMAX
        context.traps[Overflow] = context.traps[InvalidOperation] = False  # infinity and NaN are never smaller
        if case.rng.random() < 0.15:
            _try_softmax(case)
        else:
            _try_smooth(case)


def _try_smooth(case: HuntCase) -> None:
    rng = case.rng
    entry = SMOOTH[int(rng.integers(len(SMOOTH)))]
    n, d = int(rng.integers(4, 16)), int(rng.integers(1, 4))
    X, words = random_columns(rng, n, d)
    y, (w, word) = random_target(rng, entry.target, X), random_weights(rng, n)
    free = bool(rng.random() < 0.8)
    tol = {"tol": decades(rng, -12, -2)} if rng.random() < 0.7 else {}
    model = getattr(certifit, entry.name)(**entry.settings(rng), **tol, fit_intercept=free)
    case.note(f"{model} on {n} x {d} {words} {word}")
    try:
        model.fit(X, y, w)
    except ValueError as error:
        case.note(error)
        return
    W = np.ones(n) if w is None else w
    lam = Decimal(entry.penalty(model, float(W.sum())))
    factor = Decimal(entry.factor(model))
    targets = np.where(y == y.max(), 1.0, -1.0) if entry.loss is squared_hinge else y
    problem = SmoothProblem(
        entry.loss,
        [[*map(Decimal, map(float, row)), *([ONE] if free else [])] for row in X],
        [Decimal(float(v)) for v in targets],
        [factor * Decimal(float(v)) for v in W],
        [lam] * d + ([ZERO] if free else []),
    )
    best = minimise(problem, _point(model, free))
    if best is None:
        case.count("optimum not found in 40 digits")
        return
    case.count("optima in 40 digits")
    for words, tried in _variants(rng, model):
        _compare(case, words, tried, problem, best, (X, y, w), free)


def _point(model: Any, free: bool) -> Vector:
    numbers = [*np.ravel(model.coef_), *(np.ravel(model.intercept_) if free else [])]
    return [Decimal(float(v)) for v in numbers]


def _variants(rng: np.random.Generator, model: Any) -> list[tuple[str, Any]]:
    """The fit as it is, and with its coefficients a little and far off."""
    near, far = copy.deepcopy(model), copy.deepcopy(model)
    near.coef_ = model.coef_ * (1 + 10.0 ** rng.uniform(-15, -4) * rng.normal(size=model.coef_.shape))
    far.coef_ = model.coef_ * 10.0 ** rng.uniform(-1, 1)
    if rng.random() < 0.5 and model.fit_intercept:
        far.intercept_ = model.intercept_ + pick(rng, 1.0, 1e3, 1e6) * rng.normal()
    return [("as fitted", model), ("nearly", near), ("far off", far)]


def _compare(
    case: HuntCase,
    words: str,
    model: Any,
    problem: SmoothProblem,
    best: tuple[Vector, Decimal],
    data: Any,
    free: bool,
) -> None:
    try:
        found = audit(model, *data)
    except ValueError as error:
        case.note(error)
        if words == "as fitted":
            case.find("audit refuses an own fit", model, str(error))
        return
    case.note(f"{words}: optimum {float(best[1])!r}\n{found}")
    if found.kind != "optimal" or not math.isfinite(found.objective):  # which never holds
        return
    case.count("certificates compared")
    point = _point(model, free)
    exact, optimum = problem.value(point), best[1]
    # The rounding of one evaluation in float64: eps times the terms that a score sums, through the slope of the loss.
    rounding = float(_rounding(problem, point))
    where = (
        f"{words}: {found.objective!r} stated, {float(exact)!r} exact, bound {found.bound!r}, optimum {optimum:.20}"
    )
    if abs(Decimal(found.objective) - exact) > Decimal(rounding) + abs(exact) * Decimal("1e-12"):
        case.find("objective misstated", model, where)
    _check_bound(case, model, found, optimum, where, rounding)
    allowed = max(Decimal(found.tol) * abs(exact) + Decimal(rounding), Decimal(1.01 * found.limit))
    if found.holds and exact - optimum > allowed:
        case.find("holds, and is no optimum", model, where)
    if found.holds and found.parameter_error:
        _compare_parameters(case, words, model, found.parameter_error, point, best[0])


def _check_bound(case: HuntCase, model: Any, found: Any, optimum: Decimal, where: str, rounding: float) -> None:
    """A bound is to be true by itself: nothing is allowed but the last digits of the optimum."""
    if not math.isfinite(found.bound):
        return
    over = Decimal(found.bound) - optimum
    if over > abs(optimum) * Decimal("4e-16") + Decimal(10) ** -40:  # where it is 0, its own rounding
        small = over <= abs(optimum) * Decimal("1e-12") or over <= Decimal(rounding)
        kind = "bound above the optimum by rounding" if small else "bound above the optimum"
        case.find(kind, model, f"{where}, over by {float(over):.2g}")


def _rounding(problem: SmoothProblem, beta: Vector) -> Decimal:
    total = ZERO
    for row, y, w in zip(problem.rows, problem.y, problem.w, strict=True):
        _, u, h = problem.loss(y, _dot(row, beta))
        size = sum((abs(x * b) for x, b in zip(row, beta, strict=True)), abs(y))
        total += w * (abs(u) * size + h * size * size * Decimal("1e-13"))
    return total * Decimal("1e-14")


def _compare_parameters(case: HuntCase, words: str, model: Any, allowed: Any, at: Vector, best: Vector) -> None:
    case.count("parameter errors compared")
    limits = [float(v) for row in allowed for v in row]
    off = [abs(float(a - b)) for a, b in zip(at, best, strict=True)]
    if len(limits) < len(off):
        case.find("parameter errors of the wrong shape", model, f"{words}: {allowed}")
        return
    known = 1e-40 * max(abs(float(b)) for b in best)  # digits that the optimum itself has
    limits = [limit * (1 + 1e-9) + known for limit in limits]
    if any(o > limit + 1e-15 * abs(float(b)) for o, limit, b in zip(off, limits, best, strict=False)):
        case.find("parameter error too small", model, f"{words}: off by {off}, allowed {limits}")


# ---------------------------------------------------------------------------------------------------------- softmax
@dataclass(frozen=True)
class SoftmaxProblem:
    """Σ w [log Σ exp(s) - s_y] + λ/2 |β|², class after class, each with its intercept last where there is one."""

    rows: list[Vector]
    y: list[int]
    w: Vector
    lam: Decimal
    k: int
    free: bool

    def value(self, beta: Vector) -> Decimal:
        m = len(self.rows[0])
        total = HALF * self.lam * sum((b * b for i, b in enumerate(beta) if not (self.free and i % m == m - 1)), ZERO)
        for row, y, w in zip(self.rows, self.y, self.w, strict=True):
            s = [_dot(row, beta[c * m : (c + 1) * m]) for c in range(self.k)]
            top = max(s)
            total += w * (top + sum(((v - top).exp() for v in s), ZERO).ln() - s[y])
        return total

    def slope(self, beta: Vector) -> tuple[Vector, list[Vector]]:
        """Gradient and Hessian; a common shift of the intercepts, which changes nothing, gets a curvature of 1."""
        m, k = len(self.rows[0]), self.k
        flat = [self.free and i % m == m - 1 for i in range(m * k)]
        g = [ZERO if f else self.lam * b for f, b in zip(flat, beta, strict=True)]
        H = [[ZERO] * (m * k) for _ in range(m * k)]
        for i in range(m * k):
            for j in range(m * k):
                H[i][j] = ONE if flat[i] and flat[j] else (self.lam if i == j else ZERO)
        for row, y, w in zip(self.rows, self.y, self.w, strict=True):
            s = [_dot(row, beta[c * m : (c + 1) * m]) for c in range(k)]
            top = max(s)
            e = [(v - top).exp() for v in s]
            p = [v / sum(e, ZERO) for v in e]
            for a in range(k):
                for i in range(m):
                    g[a * m + i] += w * (p[a] - (ONE if a == y else ZERO)) * row[i]
                    for b in range(k):
                        h = w * p[a] * ((ONE if a == b else ZERO) - p[b]) * row[i]
                        for j in range(m):
                            H[a * m + i][b * m + j] += h * row[j]
        return g, H


def _try_softmax(case: HuntCase) -> None:
    rng = case.rng
    n, d, k = int(rng.integers(6, 12)), int(rng.integers(1, 3)), 3
    X, words = random_columns(rng, n, d)
    y, (w, word) = np.arange(n) % k, random_weights(rng, n)
    free = bool(rng.random() < 0.8)
    model = certifit.LogisticRegression(C=decades(rng, -3, 3), fit_intercept=free, tol=decades(rng, -12, -3))
    case.note(f"{model} on {n} x {d} {words} {word}")
    try:
        model.fit(X, y, w)
    except ValueError as error:
        case.note(error)
        return
    W = np.ones(n) if w is None else w
    if any(W[y == c].sum() == 0 for c in range(k)):
        return
    rows = [[*map(Decimal, map(float, row)), *([ONE] if free else [])] for row in X]
    problem = SoftmaxProblem(rows, y.tolist(), [Decimal(float(v)) for v in W], Decimal(1.0 / model.C), k, free)
    best = minimise(problem, _stacked(model, free))  # type: ignore[arg-type]
    if best is None:
        case.count("optimum not found in 40 digits")
        return
    case.count("optima in 40 digits")
    for words, tried in _variants(rng, model):
        found = audit(tried, X, y, w)
        case.count("certificates compared")
        optimum, exact = best[1], problem.value(_stacked(tried, free))
        where = f"{words}: {found.objective!r} stated, {float(exact)!r}, bound {found.bound!r}, optimum {optimum:.20}"
        case.note(where)
        _check_bound(case, tried, found, optimum, where, 1e-12 * float(exact))
        if found.holds and exact - optimum > (Decimal(found.tol) + Decimal("1e-11")) * exact:
            case.find("holds, and is no optimum", tried, where)


def _stacked(model: Any, free: bool) -> Vector:
    table = np.column_stack([model.coef_, model.intercept_]) if free else model.coef_
    return [Decimal(float(v)) for v in table.ravel()]


FORTY_DIGITS = Hunt(
    "forty_digits",
    "Convex optima against 40-digit arithmetic",
    "objective, bound, gap and parameter errors of smooth convex fits against Newton's method in 40 digits",
    try_forty_digits,
    20.0,
)
