"""Feature scores recomputed plainly: two passes in extended precision for moments, value by value for tables.

The checker uses no code of the solver, only the same definitions: a spread of less than 8 units in the last place of
a mean is rounding, as are counts so close to the expected ones, measurements are cut at the 14 inner normal quantiles
of their mean and variance, and columns with no values but 0 and 1 are Bernoulli.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block, Rows, Sums

TINY = (8 * np.finfo(np.float64).eps) ** 2  # relative to a squared mean: a smaller variance is rounding

Recomputed = tuple[Array, Array | None]  # scores and p-values (d,)


def target_of(name: str) -> Literal["none", "classes", "numbers"]:
    """Return the kind of y that a score by this name needs."""
    match name:
        case "variance":
            return "none"
        case "correlation" | "regression_information" | "f_regression" | "r_regression":
            return "numbers"
    return "classes"


def recompute(name: str, rows: Rows, k: int) -> Recomputed:
    """Return scores by this name and their p-values; y are class numbers 0 … k-1, or numbers."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scores, p = PLAIN_SCORES[name](rows, k)
    return np.asarray(scores, np.float64), None if p is None else np.asarray(p, np.float64)


def pvalues(name: str, scores: Array, n: float, k: int) -> Array | None:
    """Return the p-values that follow from scores on rows of total weight n, None where the score alone has none."""
    if name == "anova":
        return np.asarray(stats.f.sf(scores, k - 1, n - k))
    if name in ("correlation", "f_regression"):
        return np.asarray(stats.f.sf(scores, 1, n - 2))
    return np.asarray(stats.chi2.sf(scores, k - 1)) if name == "chi2" else None


# ------------------------------------------------------------------------------------------------ moments
@dataclass(frozen=True)
class _SumsAbout(Sums):
    """The sums about given points, by class."""

    weight: Array  # (k,)
    z: Array  # Σ w (x - c)  (k, d)
    zz: Array  # Σ w (x - c)²  (k, d)
    others: Array  # number of values that are neither 0 nor 1  (d,)


@dataclass(frozen=True)
class _LongMoments:
    """The moments of every class and column, in extended precision."""

    weight: Array  # (k,)
    offset: Array  # class means less `origin`  (k, d)
    variance: Array  # (k, d)
    origin: Array  # a row of the table  (d,)
    others: Array  # number of values that are neither 0 nor 1  (d,)


def _positive_rows(block: Block) -> tuple[Array, Array, Array]:
    """Return the rows with a positive weight in extended precision, their targets (0 without any) and weights."""
    used = block.w > 0
    y = np.zeros(int(used.sum()), int) if block.y is None else np.asarray(block.y)[used]
    return dense(block.X)[used].astype(np.longdouble), y, block.w[used].astype(np.longdouble)


def _sums_about(origin: Array, offset: Array, block: Block) -> _SumsAbout:
    X, y, w = _positive_rows(block)
    k, d = offset.shape
    weight, z, zz = np.zeros(k, np.longdouble), np.zeros((k, d), np.longdouble), np.zeros((k, d), np.longdouble)
    for c in range(k):
        Z, v = (X[y == c] - origin) - offset[c], w[y == c]
        weight[c], z[c], zz[c] = v.sum(), v @ Z, v @ Z**2
    return _SumsAbout(weight, z, zz, ((X != 0) & (X != 1)).sum(axis=0))


def _one_class(_y: Array | None, w: Array) -> tuple[Array | None, Array]:
    return np.zeros(len(w), int), w


def _moments(rows: Rows, k: int) -> _LongMoments:
    first = next(iter(rows))
    origin = dense(first.X[:1])[0].astype(np.longdouble) if not first.w[:1].any() else _positive_rows(first)[0][0]
    s = rows.sum(partial(_sums_about, origin, np.zeros((k, rows.n_features), np.longdouble)))
    offset = s.z / s.weight[:, None]
    s = rows.sum(partial(_sums_about, origin, offset))
    rest = s.z / s.weight[:, None]  # the rounding error of the means
    variance = np.maximum(s.zz / s.weight[:, None] - rest**2, 0)
    return _LongMoments(s.weight, offset + rest, variance, origin, s.others)


def _variance(rows: Rows, _k: int) -> Recomputed:
    return _moments(rows.relabel(_one_class), 1).variance[0], None


def _anova(rows: Rows, k: int) -> Recomputed:
    m = _moments(rows, k)
    n = m.weight.sum()
    effect = m.offset - (m.weight @ m.offset) / n
    rounding = TINY * np.abs(m.origin + m.offset).max(axis=0) ** 2
    F = _f_ratio((m.weight @ effect**2) / (k - 1), (m.weight @ m.variance) / (n - k), rounding)
    return F, pvalues("anova", F, float(n), k)


def _f_ratio(above: Array, below: Array, rounding: Array) -> Array:
    """Return above / below, 0 where the first is only rounding, infinite where the second alone is."""
    F = np.where(above > rounding, above / np.where(below > rounding, below, 0), 0)
    return np.asarray(F, np.float64)


def _jeffreys(rows: Rows, k: int) -> Recomputed:
    m = _moments(rows, k)
    total, mass = np.zeros(rows.n_features), 0.0
    for a in range(k):
        for b in range(k):
            if a != b:
                share = float(m.weight[a] * m.weight[b])
                each = np.where(m.others == 0, _kl_bernoulli(m, a, b), _kl_gaussian(m, a, b)).astype(np.float64)
                total, mass = total + share * each, mass + share / 2
    return total / mass, None


def _kl_gaussian(m: _LongMoments, a: int, b: int) -> Array:
    rounding = TINY * np.abs(m.origin + m.offset).max(axis=0) ** 2
    va, vb = (np.where(m.variance[c] > rounding, m.variance[c], 0) for c in (a, b))
    gap2 = np.where((m.offset[a] - m.offset[b]) ** 2 > rounding, (m.offset[a] - m.offset[b]) ** 2, 0)
    r = va / vb - 1
    value = np.where(vb > 0, 0.5 * (r - np.log1p(r) + gap2 / vb), np.inf)  # infinite against a point mass
    return np.where((va == vb) & (gap2 == 0), 0, value)


def _kl_bernoulli(m: _LongMoments, a: int, b: int) -> Array:
    p, q = m.origin + m.offset[a], m.origin + m.offset[b]

    def term(x: Array, y: Array) -> Array:
        return np.where(x > 0, x * np.log(x / y), 0)

    return term(p, q) + term(1 - p, 1 - q)


# -------------------------------------------------------------------------------------------- correlation
@dataclass(frozen=True)
class _CrossProducts(Sums):
    """The sums of products with the target about given points, in extended precision."""

    weight: Any  # Σ w
    y: Any  # Σ w (y - y₀)
    yy: Any  # Σ w (y - y₀)²
    xy: Array  # Σ w (x - c) (y - y₀)  (d,)


def _products_about(origin: Array, offset: Array, y0: Any, block: Block) -> _CrossProducts:
    X, y, w = _positive_rows(block)
    t = y - y0
    return _CrossProducts(w.sum(), w @ t, w @ t**2, (w * t) @ ((X - origin) - offset))


def _with_target(rows: Rows) -> tuple[_LongMoments, _CrossProducts, Any]:
    """Return moments of the columns, products with y about its mean, and that mean, by two passes each."""
    m, mean = _moments(rows.relabel(_one_class), 1), np.longdouble(0)
    s = rows.sum(partial(_products_about, m.origin, m.offset[0], mean))
    mean = s.y / s.weight
    s = rows.sum(partial(_products_about, m.origin, m.offset[0], mean))
    return m, s, mean


def _correlation(rows: Rows, _k: int) -> Recomputed:
    m, s, mean = _with_target(rows)
    n, sxx, syy = s.weight, m.variance[0] * s.weight, s.yy - s.y**2 / s.weight
    explained = np.where(m.variance[0] > TINY * (m.origin + m.offset[0]) ** 2, s.xy**2 / sxx, 0)
    rounding = max(n * TINY * mean**2, 4 * np.finfo(float).eps * syy / (n - 2))
    F = _f_ratio(explained, (syy - explained) / (n - 2), np.full(len(sxx), rounding))
    return F, pvalues("correlation", F, float(n), 1)


def _finite_correlation(rows: Rows, k: int) -> Recomputed:
    F, p = _correlation(rows, k)
    return np.minimum(F, np.finfo(np.float64).max), p


def _pearson(rows: Rows, _k: int) -> Recomputed:
    m, s, mean = _with_target(rows)
    syy = s.yy - s.y**2 / s.weight
    varies = (m.variance[0] > TINY * (m.origin + m.offset[0]) ** 2) & (syy > s.weight * TINY * mean**2)
    r = s.xy / np.sqrt(m.variance[0] * s.weight * syy)
    return np.asarray(np.where(varies, np.clip(r, -1, 1), 0)), None


# ---------------------------------------------------------------------------------------- missing entries
def _variance_of_entries(centre: Array, block: Block) -> Array:
    """Return weight, sum and sum of squares about a centre of the entries that are there  (3, d)."""
    used = block.w > 0
    X, w = dense(block.X)[used].astype(np.longdouble), block.w[used].astype(np.longdouble)
    there = ~np.isnan(X)
    Z = np.where(there, X - centre, 0)
    return np.array([w @ there, w @ Z, w @ Z**2])


class _Extremes(NamedTuple):
    """The smallest and largest entry of each column  (d,)."""

    low: Array
    high: Array

    def __add__(self, other: Any) -> _Extremes:
        return _Extremes(np.fmin(self.low, other.low), np.fmax(self.high, other.high))


def _extremes(block: Block) -> _Extremes:
    X = dense(block.X)[block.w > 0].astype(np.float64)
    empty = np.full((1, X.shape[1]), np.nan)
    X = np.vstack([X, empty])
    return _Extremes(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))


def plain_variances(rows: Rows, with_ranges: bool) -> tuple[Array, Array]:
    """Return the variance of each column over the entries that are there, or its range where wanted and smaller.

    The second array is what rounding alone may make of each.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = rows.sum(_extremes)
        centre = np.nan_to_num(ends.low / 2 + ends.high / 2).astype(np.longdouble)
        weight, z, _ = rows.sum(partial(_variance_of_entries, centre))
        centre = centre + np.where(weight > 0, z / weight, 0)
        weight, z, zz = rows.sum(partial(_variance_of_entries, centre))
        variance = np.where(weight > 0, np.maximum(zz / weight - (z / weight) ** 2, 0), np.nan)
        width = ends.high.astype(np.longdouble) - ends.low
        size = np.nan_to_num(np.fmax(np.abs(ends.low), np.abs(ends.high)))
        # A range is exact: with it, a column is constant or not.
        rounding = np.where((width == 0) & with_ranges, 0, TINY * size**2)
    return (
        np.asarray(np.fmin(variance, width) if with_ranges else variance, np.float64),
        np.asarray(rounding, np.float64),
    )


# -------------------------------------------------------------------------------------------------- tables
def _sum_by_class(k: int, block: Block) -> Array:
    X, y, w = _positive_rows(block)
    return np.array([np.append(w[y == c] @ X[y == c], w[y == c].sum()) for c in range(k)])


def _chi2(rows: Rows, k: int) -> Recomputed:
    s = rows.sum(partial(_sum_by_class, k))  # (k, d + 1); the last column holds the weights of the classes
    observed, share = s[:, :-1], s[:, -1] / s[:, -1].sum()
    scores = np.zeros(rows.n_features)
    for j in np.flatnonzero(observed.sum(axis=0) > 0):
        expected = share * observed[:, j].sum()
        apart = observed[:, j] - expected
        apart = np.where(np.abs(apart) > 8 * np.finfo(np.float64).eps * expected, apart, 0)
        scores[j] = (apart**2 / expected).sum()
    return scores, pvalues("chi2", scores, float(s[:, -1].sum()), k)


def chi2_rounding(scores: Array, rows: Rows) -> Array:
    """Return what scores by chi2 (d,) may be off by, if each O_c is off by δ E_c: 2 δ √(score Σ O) + δ² Σ O."""
    total = rows.sum(_column_totals)
    delta = 64 * float(np.finfo(np.float64).eps)
    return np.asarray(2 * delta * np.sqrt(scores) * np.sqrt(total) + delta**2 * total, np.float64)


def _column_totals(block: Block) -> Array:
    X, _, w = _positive_rows(block)
    return w @ X


def _unchanged(X: Array, y: Array) -> tuple[Array, Array]:
    return X, y


@dataclass(frozen=True)
class _CutIntoCells:
    """A function that turns entries, and y where it is a number, into the numbers of their cells."""

    m: _LongMoments
    y: tuple[Any, Any] | None  # mean and standard deviation

    def __call__(self, X: Array, y: Array) -> tuple[Array, Array]:
        sd = np.sqrt(self.m.variance[0])
        Z = np.where(sd > 0, ((X - self.m.origin) - self.m.offset[0]) / np.where(sd > 0, sd, 1), 0)
        cuts = stats.norm.ppf(np.arange(1, 15) / 15)
        cells = (Z[:, :, None] > cuts).sum(axis=2)
        if self.y is None:
            return cells, y
        mean, spread = self.y
        t = (y - mean) / spread if spread > 0 else 0 * y
        return cells, (t[:, None] > cuts).sum(axis=1)


class _PairWeights(dict[tuple[int, float, int], float]):
    """The weight of each (column, value, class); `+` adds two tables."""

    def __add__(self, other: _PairWeights) -> _PairWeights:
        total = _PairWeights(self)
        for key, mass in other.items():
            total[key] = total.get(key, 0.0) + mass
        return total


def _tabulate(cells: Callable[[Array, Array], tuple[Array, Array]], block: Block) -> _PairWeights:
    X, y, w = _positive_rows(block)
    X, y = cells(X, y)
    found = _PairWeights()
    for j in range(X.shape[1]):
        pairs, code = np.unique(np.column_stack([X[:, j], y]), axis=0, return_inverse=True)
        mass = np.bincount(code.ravel(), w.astype(np.float64))
        found.update({(j, float(v), int(c)): float(m) for (v, c), m in zip(pairs, mass, strict=True)})
    return found


def _information(rows: Rows, cells: Callable[[Array, Array], tuple[Array, Array]]) -> Recomputed:
    """Return the mutual information I = H(x) + H(y) - H(x, y) of every column, less its bias, and p-values."""
    columns: list[dict[tuple[float, int], float]] = [{} for _ in range(rows.n_features)]
    for (j, value, label), mass in rows.sum(partial(_tabulate, cells)).items():
        columns[j][value, label] = mass
    found = np.array([_table_information(table) for table in columns])
    return found[:, 0], found[:, 1]


def _table_information(table: dict[tuple[float, int], float]) -> tuple[float, float]:
    """Return the mutual information of weights by (value, class), less its bias, and its G-test p-value.

    It is the mean of (1 + t) log(1 + t) - t under independence, t being what a cell exceeds that by: a sum of terms
    none of which is negative, so that a table next to independence keeps its digits.
    """
    values, labels = sorted({value for value, _ in table}), sorted({label for _, label in table})
    cells = np.array([[table.get((v, c), 0.0) for c in labels] for v in values], np.longdouble)
    n, r, c = cells.sum(), len(values), len(labels)
    product = cells.sum(axis=1)[:, None] * cells.sum(axis=0)
    t = (cells * n - product) / product
    value = float((product / n**2 * (np.where(cells > 0, (1 + t) * np.log1p(t), 0) - t)).sum())
    freedom = (r - 1) * (c - 1)
    bias = (int((cells > 0).sum()) - r - c + 1) / (2 * float(n))
    return max(0.0, value - bias), stats.chi2.sf(2 * float(n) * value, freedom) if freedom else 1.0


def _discrete_information(rows: Rows, _k: int) -> Recomputed:
    return _information(rows, _unchanged)


def _binned_information(rows: Rows, _k: int) -> Recomputed:
    return _information(rows, _CutIntoCells(_moments(rows.relabel(_one_class), 1), None))


def _regression_information(rows: Rows, _k: int) -> Recomputed:
    m, s, mean = _with_target(rows)
    return _information(rows, _CutIntoCells(m, (mean, np.sqrt(s.yy / s.weight))))


PLAIN_SCORES: dict[str, Callable[[Rows, int], Recomputed]] = {
    "variance": _variance,
    "anova": _anova,
    "chi2": _chi2,
    "information": _discrete_information,
    "binned_information": _binned_information,
    "jeffreys": _jeffreys,
    "correlation": _correlation,
    "regression_information": _regression_information,
    "f_regression": _finite_correlation,
    "r_regression": _pearson,
}
