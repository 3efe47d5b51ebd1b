"""Paired tests of two models' scores on the same splits, and Holm's correction for several pairs.

References: Nadeau & Bengio, Inference for the generalization error (2003); Alpaydin, Combined 5x2 cv F test (1999);
McNemar (1947); Holm (1979); Corani & Benavoli, A Bayesian approach for comparing cross-validated algorithms on
multiple data sets (2015); Benavoli, Corani, Demšar & Zaffalon, Time for a change (2017).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest
from scipy.stats import f as fisher
from scipy.stats import t as student
from sklearn.utils import check_random_state

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array


class Posterior(NamedTuple):
    """The chances that the first model is worse, practically the same, or better."""

    worse: float
    same: float
    better: float


def corrected_t_test(differences: Array, ratio: float, freedom: float | None = None) -> float:
    """Return the two-sided p-value of J differences of splits (J,), `ratio` rows tested for each one fitted.

    Nadeau & Bengio's degrees of freedom are J - 1. Where splits share rows, fewer are honest: see `separate_tests`.

    >>> round(corrected_t_test(np.array([0.1, 0.2, 0.3]), ratio=0.5), 4)
    0.1598
    """
    reach = _scale(differences, ratio)
    mean = float(np.mean(differences))
    if reach == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * student.sf(abs(mean) / reach, _freedom(differences, freedom)))


def _scale(differences: Array, ratio: float) -> float:
    return float(np.sqrt(1 / len(differences) + ratio) * np.std(differences, ddof=1))


def _freedom(differences: Array, freedom: float | None) -> float:
    return len(differences) - 1 if freedom is None else freedom


def difference_interval(
    differences: Array, ratio: float, confidence: float, freedom: float | None = None
) -> tuple[float, float]:
    """Return the interval of the mean difference that goes with the corrected t."""
    reach = float(student.ppf((1 + confidence) / 2, _freedom(differences, freedom))) * _scale(differences, ratio)
    mean = float(np.mean(differences))
    return mean - reach, mean + reach


def combined_f_test(differences: Array) -> float:
    """Return the p-value of the differences of five times two halves (10,), in this order.

    >>> d = np.array([0.02, 0.03, 0.01, 0.04, 0.03, 0.02, 0.02, 0.05, 0.01, 0.03])
    >>> round(combined_f_test(d), 4)
    0.0937
    """
    halves = np.asarray(differences).reshape(5, 2)
    spread = float(np.sum((halves - halves.mean(axis=1, keepdims=True)) ** 2))
    top = float(np.sum(halves**2))
    if spread == 0:
        return 1.0 if top == 0 else 0.0
    return float(fisher.sf(top / (2 * spread), 10, 5))


def mcnemar_test(differences: Array) -> float:
    """Return the exact p-value from rows that only one of two models gets right: 1, or -1 (m,); 0 for all others.

    >>> round(mcnemar_test(np.array([1] * 9 + [-1] * 2 + [0] * 80)), 4)
    0.0654
    """
    wins, losses = int(np.count_nonzero(differences > 0)), int(np.count_nonzero(differences < 0))
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def holm(p: Array) -> Array:
    """Return p-values (m,) corrected so that the chance of any false verdict is what one test's would be.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    out = np.empty(len(p))
    out[order] = np.minimum(stepped, 1.0)
    return out


def correlated_posterior(differences: Array, ratio: float, rope: float, freedom: float | None = None) -> Posterior:
    """Return what is to be believed of the mean difference of two models on one table, seen J splits (J,).

    The posterior of Corani & Benavoli: Student's t about the mean, with the variance of the corrected t.
    """
    reach = _scale(differences, ratio)
    mean = float(np.mean(differences))
    if reach == 0:
        return Posterior(float(mean < -rope), float(abs(mean) <= rope), float(mean > rope))
    law = student(_freedom(differences, freedom), mean, reach)
    return Posterior(float(law.cdf(-rope)), float(law.cdf(rope) - law.cdf(-rope)), float(law.sf(rope)))


def bayesian_signed_rank(
    first: Any, second: Any, *, rope: float = 0.01, draws: int = 20_000, random_state: Any = 0
) -> Posterior:
    """Return the chances that one learner is worse, the same or better than another, from scores on several tables.

    A Dirichlet process with one prior observation of weight 1/2 at no difference; each draw weighs the tables, and
    the region that holds most of the pairs' means wins it.

    Parameters
    ----------
    first, second : (m,) a score for each table, in the same order
    rope : differences up to this are practically none
    draws : of the posterior
    random_state : int, RandomState or None

    Returns
    -------
    Posterior : worse, same, better: of the first

    Examples
    --------
    >>> found = bayesian_signed_rank([0.91, 0.85, 0.78, 0.99, 0.83], [0.86, 0.81, 0.75, 0.94, 0.80])
    >>> [round(chance, 2) for chance in found]
    [0.0, 0.0, 1.0]
    """
    Setting(float, least=0).check("rope", rope)
    Setting(int, least=100).check("draws", draws)
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not len(a) or not np.isfinite(a - b).all():
        raise DataError(
            got=f"scores of shape {a.shape} and {b.shape}", wanted="a finite score of both learners for every table"
        )
    z = np.concatenate([[0.0], a - b])
    rng = check_random_state(random_state)
    w = rng.gamma(np.concatenate([[0.5], np.ones(len(a))]), size=(draws, len(z)))
    w /= w.sum(axis=1, keepdims=True)
    means = (z[:, None] + z) / 2
    # A pair whose mean is at a border counts half on both sides of it (Benavoli, Mangili & Ruggeri 2014).
    below, above = (np.heaviside(side - rope, 0.5) for side in (-means, means))
    left, right = (np.einsum("bi,ij,bj->b", w, side, w, optimize=True) for side in (below, above))
    winner = np.argmax(np.column_stack([left, 1 - left - right, right]), axis=1)
    return Posterior(*(float(np.mean(winner == k)) for k in range(3)))
