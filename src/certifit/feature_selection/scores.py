"""Scores of how much each column by itself tells about the target, computed from sums over rows of any source.

    anova        F = [Σ_c n_c (m_c - m)² / (k - 1)] / [Σ_c Σᵢ wᵢ (xᵢ - m_c)² / (n - k)], rows i of class c
    chi2         Σ_c (O_c - E_c)² / E_c,  O_c = Σ w x of class c,  E_c = its share of the rows times Σ w x
    information  I(x; y) = KL(joint || product of the margins), in nats
    jeffreys     KL(p_c, p_c') + KL(p_c', p_c) between a column's distributions in two classes
    correlation  F = (n - 2) r² / (1 - r²)

Sums are taken about means, so that an offset of 1e8 costs no digits. A row of weight 2 counts as two rows. A constant
column scores 0, with p-value 1.
References: Miller, Note on the bias of information estimates (1955); Jeffreys, An invariant form for the prior
probability in estimation problems (1946).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, fdtrc, xlogy

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.feature_selection.score_sums import (
    as_dense,
    centred_products,
    class_moments,
    class_totals,
    column_in_words,
    column_moments,
    cut_pairs,
    cut_tables,
    total_weight,
    value_tables,
)
from certifit.naive_bayes.class_moments import ClassMoments, ratio
from certifit.rows import Array, Block, Rows, as_rows, encode_labels
from certifit.rows.checks import Target
from certifit.rows.threads import single_threaded_blas

EPS = float(np.finfo(np.float64).eps)


class FeatureScores(NamedTuple):
    """One score for each column, larger is better, and its p-value."""

    scores: Array  # (d,)
    pvalues: Array | None  # (d,); None where the score has no known distribution


class ScoreFunction(NamedTuple):
    """A score by name: the kind of y that it needs, and the function that computes it."""

    target: Target
    # (rows, number of classes); y are class numbers 0 … k-1, or numbers
    measure: Callable[[Rows, int], FeatureScores]


def _variance(rows: Rows, _k: int) -> FeatureScores:
    m = column_moments(rows)
    return FeatureScores((m.ssd / m.weight)[0], None)


def _anova(rows: Rows, k: int) -> FeatureScores:
    m = class_moments(rows, k)
    n = float(m.weight[:, 0].sum())
    _check_weight(n, k, "anova")
    means = (m.centre - m.centre[0]) + m.delta  # class means relative to one point, so that they keep their digits
    overall = (m.weight * means).sum(axis=0) / n
    between, within = (m.weight * (means - overall) ** 2).sum(axis=0), m.ssd.sum(axis=0)
    F = f_ratio(between / (k - 1), within / (n - k), rounding_of_squares(m))
    return FeatureScores(F, fdtrc(k - 1, n - k, F))


def rounding_of_squares(m: ClassMoments) -> Array:
    """Return how large rounding alone can make a variance or a squared difference of means (d,)."""
    return (8 * EPS * np.abs(m.mean).max(axis=0)) ** 2


def _check_weight(n: float, least: int, score: str) -> None:
    """Refuse rows of so little total weight that the F statistic has no degrees of freedom."""
    if not n > least:
        raise DataError(
            got=f"a total weight of {n:g} (n_samples={n:g}, rows with weight)",
            wanted=f"more than {least} for score_func={score!r}: nothing is left to tell the spread from",
        )


def f_ratio(between: Array, within: Array, rounding: Array) -> Array:
    """Return between / within, 0 where `between` is only rounding, infinite where `within` alone is."""
    between, within = np.where(between > rounding, between, 0.0), np.where(within > rounding, within, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(between > 0, between / within, 0.0)


def _chi2(rows: Rows, k: int) -> FeatureScores:
    observed, share = class_totals(rows, k)
    expected = np.outer(share, observed.sum(axis=0))
    apart = observed - expected
    apart = np.where(np.abs(apart) > 8 * np.finfo(np.float64).eps * expected, apart, 0.0)  # less is rounding
    # Divided before it is squared: squares of small counts would vanish.
    chi2 = (apart * ratio(apart, expected)).sum(axis=0)
    return FeatureScores(chi2, chdtrc(k - 1, chi2))


def information(table: Array) -> tuple[float, float]:
    """Return the mutual information (nats) of a table of weights, and the p-value of its G-test.

    The sample's value KL(joint || product) is too large by about (cells - rows - columns + 1) / 2n, counting those
    that occur; Miller and Madow subtract this. Without association, 2n times the value is nearly χ² distributed.

    >>> information(np.array([[25.0, 25.0], [25.0, 25.0]]))
    (0.0, 1.0)
    """
    n = float(table.sum())
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(rows, columns) / n
    value = float((expected * _entropy_excess(ratio(table - expected, expected))).sum()) / n
    r, c = int((rows > 0).sum()), int((columns > 0).sum())
    bias = (int((table > 0).sum()) - r - c + 1) / (2 * n)
    freedom = (r - 1) * (c - 1)
    p = float(chdtrc(freedom, max(0.0, 2 * n * value))) if freedom > 0 else 1.0
    return max(0.0, value - bias), p


def _entropy_excess(t: Array) -> Array:
    """Return (1 + t) log(1 + t) - t, of which KL is the mean at t = joint / product - 1, without cancelling.

    >>> _entropy_excess(np.array([-1.0, 0.0, 1e-20])).tolist()
    [1.0, 0.0, 5e-41]
    """
    near = np.abs(t) < 0.05
    small, far = np.where(near, t, 0.0), np.where(near, 1.0, t)
    # Σ (-t)ᵏ / (k (k - 1)) from k = 2 on, to the last digit where |t| < 0.05.
    series = np.polynomial.polynomial.polyval(-small, [0.0, 0.0, *(1 / (k * (k - 1)) for k in range(2, 14))])
    return np.where(near, series, xlogy(1 + far, 1 + far) - far)


def _from_tables(tables: list[Array]) -> FeatureScores:
    found = np.array([information(table) for table in tables])
    return FeatureScores(found[:, 0], found[:, 1])


def _information(rows: Rows, k: int) -> FeatureScores:
    return _from_tables(value_tables(rows, k))


def _binned_information(rows: Rows, k: int) -> FeatureScores:
    return _from_tables(cut_tables(rows, k))


def _regression_information(rows: Rows, _k: int) -> FeatureScores:
    return _from_tables(cut_pairs(rows))


def _jeffreys(rows: Rows, k: int) -> FeatureScores:
    m = class_moments(rows, k)
    binary = rows.sum(_count_other_values) == 0
    return FeatureScores(np.where(binary, _mean_over_pairs(m, _bernoulli), _mean_over_pairs(m, _gaussian)), None)


def _count_other_values(block: Block) -> Array:
    """Count the values of each column that are neither 0 nor 1 (d,)."""
    X = as_dense(block.X)[block.w > 0]
    return ((X != 0) & (X != 1)).sum(axis=0)


def _mean_over_pairs(m: ClassMoments, divergence: Callable[[ClassMoments, int, int], Array]) -> Array:
    """Return the mean divergence over pairs of classes, each pair weighted by the product of the class weights."""
    weight = m.weight[:, 0]
    pairs = [(a, b) for a in range(len(weight)) for b in range(a)]
    each = np.array([divergence(m, a, b) for a, b in pairs])
    return np.average(each, axis=0, weights=[weight[a] * weight[b] for a, b in pairs])


def _gaussian(m: ClassMoments, a: int, b: int) -> Array:
    gap = (m.centre[a] - m.centre[b]) + (m.delta[a] - m.delta[b])
    rounding = rounding_of_squares(m)
    gap = np.where(gap**2 > rounding, gap, 0.0)
    va, vb = (np.where(v > rounding, v, 0.0) for v in (m.ssd[a] / m.weight[a], m.ssd[b] / m.weight[b]))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(va == vb, 0.0, (va - vb) ** 2 / (2 * va * vb))  # ½ (va/vb + vb/va) - 1 without cancelling
        return spread + np.where(gap == 0, 0.0, 0.5 * gap**2 * (1 / va + 1 / vb))


def _bernoulli(m: ClassMoments, a: int, b: int) -> Array:
    p, q = m.mean[a], m.mean[b]
    with np.errstate(divide="ignore", invalid="ignore"):
        logits = np.log(p) - np.log1p(-p) - np.log(q) + np.log1p(-q)
        return np.where(p == q, 0.0, (p - q) * logits)


def _correlation(rows: Rows, _k: int) -> FeatureScores:
    s = centred_products(rows)
    _check_weight(s.weight, 2, "correlation")
    explained = ratio(s.xy**2, s.xx)
    rounding = s.weight * (8 * EPS * abs(s.y)) ** 2
    residual = s.yy - explained
    F = f_ratio(explained, residual / (s.weight - 2), np.maximum(rounding, 4 * EPS * s.yy / (s.weight - 2)))
    varies = s.xx > s.weight * (8 * EPS * np.abs(s.x)) ** 2
    F = np.where(varies, F, 0.0)
    return FeatureScores(F, fdtrc(1, s.weight - 2, F))


SCORES: dict[str, ScoreFunction] = {
    "variance": ScoreFunction("none", _variance),
    "anova": ScoreFunction("classes", _anova),
    "chi2": ScoreFunction("classes", _chi2),
    "information": ScoreFunction("classes", _information),
    "binned_information": ScoreFunction("classes", _binned_information),
    "jeffreys": ScoreFunction("classes", _jeffreys),
    "correlation": ScoreFunction("numbers", _correlation),
    "regression_information": ScoreFunction("numbers", _regression_information),
}


def _finite_correlation(rows: Rows, k: int) -> FeatureScores:
    """Return the F of the correlation, the largest number in place of infinity."""
    found = _correlation(rows, k)
    return found._replace(scores=np.minimum(found.scores, np.finfo(np.float64).max))


def _pearson(rows: Rows, _k: int) -> FeatureScores:
    """Return the correlation with the target, with its sign, 0 for a constant column."""
    s = centred_products(rows)
    varies = (s.xx > s.weight * (8 * EPS * np.abs(s.x)) ** 2) & (s.yy > s.weight * (8 * EPS * abs(s.y)) ** 2)
    r = ratio(s.xy, np.sqrt(s.xx) * np.sqrt(s.yy))
    return FeatureScores(np.clip(np.where(varies, r, 0.0), -1.0, 1.0), None)


# Those of `SelectFeatures`, and what scikit-learn's functions of these names return.
FUNCTION_SCORES: dict[str, ScoreFunction] = {
    **SCORES,
    "f_regression": ScoreFunction("numbers", _finite_correlation),
    "r_regression": ScoreFunction("numbers", _pearson),
}


class MeasuredScores(NamedTuple):
    """The scores of the columns, with the total weight and the number of classes of the rows."""

    scores: Array  # (d,)
    pvalues: Array | None  # (d,)
    weight: float  # Σ w
    k: int  # number of classes; 1 where there are none


def score_columns(score: ScoreFunction, rows: Rows) -> MeasuredScores:
    """Return the scores of the columns; y are labels of any kind, or numbers, as the score needs."""
    if score.target != "classes":
        return MeasuredScores(*_measure_finite(score, rows, 1), total_weight(rows), 1)
    labels = encode_labels(rows)
    k = len(labels.classes)
    return MeasuredScores(*_measure_finite(score, labels.rows, k), float(labels.weight.sum()), k)


def _measure_finite(score: ScoreFunction, rows: Rows, k: int) -> FeatureScores:
    """Compute a score of every column, and refuse one that is not a number."""
    with np.errstate(over="ignore"):
        found = score.measure(rows, k)
    if np.isnan(found.scores).any():
        column = int(np.isnan(found.scores).argmax())
        raise DataError(
            got=f"a score that is not a number for {column_in_words(column, rows.names)} of X",
            wanted="values whose squares, and products of these, neither overflow nor vanish",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return found


def score_setting() -> Setting:
    """Return the declaration of a setting that names a score."""
    return Setting(choices=tuple(SCORES), fix="Score functions of your own go into scikit-learn's SelectKBest.")


def find_score(name: Any) -> ScoreFunction:
    """Return the score with this name."""
    score_setting().check("score_func", name)
    return SCORES[name]


def feature_scores(X: Any, y: Any = None, score: str = "anova", sample_weight: Any = None) -> FeatureScores:
    """Score every column of a table of any kind.

    Parameters
    ----------
    X, y, sample_weight : the data, in any form that `fit` takes
    score : 'variance', 'anova', 'chi2', 'information', 'binned_information', 'jeffreys', 'correlation' or
        'regression_information'

    Returns
    -------
    FeatureScores : `scores` and `pvalues` (None for 'variance' and 'jeffreys')

    >>> from sklearn.datasets import load_iris
    >>> feature_scores(*load_iris(return_X_y=True)).scores.round(2)
    array([ 119.26,   49.16, 1180.16,  960.01])
    """
    rows = as_rows(X, y, sample_weight, target=find_score(score).target, sparse=True)
    with single_threaded_blas():
        return FeatureScores(*score_columns(find_score(score), rows)[:2])


# For scikit-learn's SelectKBest, SelectPercentile, SelectFdr, … as `score_func`.
def anova_f(X: Any, y: Any) -> tuple[Array, Array | None]:
    """Return F of the analysis of variance and its p-values, (d,) each, accurate at any offset.

    Parameters
    ----------
    X, y : as for `feature_scores`

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.feature_selection import SelectKBest
    >>> SelectKBest(anova_f, k=2).fit(*load_iris(return_X_y=True)).get_support()
    array([False, False,  True,  True])
    """
    return feature_scores(X, y, "anova")


def correlation_f(X: Any, y: Any) -> tuple[Array, Array | None]:
    """Return F of the correlation with a numeric target and its p-values, (d,) each, accurate at any offset.

    Parameters
    ----------
    X, y : as for `feature_scores`

    >>> correlation_f([[0.0], [1.0], [2.0], [4.0]], [0.0, 1.0, 2.0, 3.0])[0].round(4)
    array([56.3333])
    """
    return feature_scores(X, y, "correlation")


def mutual_information(X: Any, y: Any) -> tuple[Array, Array | None]:
    """Return the mutual information (nats, less its bias) of discrete columns with the class, and G-test p-values.

    Parameters
    ----------
    X, y : as for `feature_scores`

    For measurements by nearest neighbours use scikit-learn's `mutual_info_classif`, which needs all rows at once.

    >>> mutual_information([[0, 1], [0, 0], [1, 1], [1, 0]] * 100, [0, 0, 1, 1] * 100)[0].round(3)
    array([0.694, 0.   ])
    """
    return feature_scores(X, y, "information")


def jeffreys(X: Any, y: Any) -> Array:
    """Return the symmetric KL between the classes' distributions of each column, Bernoulli if 0 or 1, else Gaussian.

    Parameters
    ----------
    X, y : as for `feature_scores`

    >>> jeffreys([[0.0], [2.0], [3.0], [5.0]], [0, 0, 1, 1])
    array([9.])
    """
    return feature_scores(X, y, "jeffreys").scores
