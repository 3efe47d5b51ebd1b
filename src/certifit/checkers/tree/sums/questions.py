"""Questions that people ask of ensembles of trees, answered by proof: of ours, scikit-learn's, LightGBM's, XGBoost's.

They are about all rows that there could be, not about those that are at hand; no data are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from certifit.checkers.tree.sums.certify_sum import scores_check
from certifit.checkers.tree.sums.crossing import find_crossing
from certifit.checkers.tree.sums.monotone import MonotoneTuning, find_fall
from certifit.checkers.tree.sums.ranges import score_bounds
from certifit.checkers.tree.sums.read_model import own_scores, read_tree_sum
from certifit.checkers.tree.sums.tree_sum import TreeSum
from certifit.core import Certificate, Check, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, as_rows

Verdict = Literal["yes", "no", "not decided"]


@dataclass(frozen=True)
class ProvedAnswer:
    """The answer, true only where it is proved; `verdict` also tells whether a no is proved."""

    verdict: Verdict
    certificate: Certificate
    rows: Array | None = None  # (2, d) between which a score goes the other way; (1, d) where two models cross
    scores: tuple[float, float] | None = None  # of these rows, or of the two models

    def __bool__(self) -> bool:
        return self.verdict == "yes"

    def __str__(self) -> str:
        return f"{self.verdict}\n{self.certificate}"


def prove_monotone(
    model: Any, column: int | str, direction: int = 1, *, score: int = 0, max_boxes: int = 200_000
) -> ProvedAnswer:
    """Decide whether a model's answer never falls as one column grows, whatever the other columns are.

    Parameters
    ----------
    model : a fitted decision tree, forest, gradient boosting or additive model of certifit or scikit-learn (but for
        its HistGradientBoosting…, whose trees are not public), a LightGBM or XGBoost booster or estimator, or an EBM
        without interactions
    column : number of the column, or its name where the model knows names
    direction : 1: the answer must not fall; -1: it must not rise
    score : which class, of a model of more than two; its score, before probabilities are made to add up to 1
    max_boxes : after so many the question is left open

    Returns
    -------
    ProvedAnswer : true if proved; where the verdict is 'no', `rows` (2, d) differ in that column alone and the model
        goes the other way between them

    Missing entries of the column have no place in its order, and are left out.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = [[0.0], [1.0], [2.0]]
    >>> bool(prove_monotone(DecisionTreeRegressor().fit(X, [1.0, 2.0, 3.0]), 0))
    True
    >>> answer = prove_monotone(DecisionTreeRegressor().fit(X, [1.0, 3.0, 2.0]), 0)
    >>> answer.verdict, answer.scores
    ('no', (3.0, 2.0))
    """
    if direction not in (-1, 1):
        raise DataError(got=f"direction={direction!r}", wanted="1 or -1", fix="1: never falls, -1: never rises.")
    Setting(int, least=1).check("max_boxes", max_boxes)
    plain = read_tree_sum(model)
    Setting(int, least=0, most=len(plain.baseline) - 1).check("score", score)
    j = _column_number(model, column, plain.columns)
    if plain.categorical[j]:
        raise DataError(got=f"column {column!r} of categories", wanted="a column of numbers")
    found = find_fall(plain, j, direction, score, MonotoneTuning(max_boxes))
    way = "rises" if direction > 0 else "falls"
    facts: dict[str, float | str] = {"column": str(column), "thresholds": float(found.thresholds)}
    checks = [*_reading_check(model, plain, found.rows)]
    if found.rises is not False:
        checks.append(Check("boxes left to look at (1: yes)", float(found.rises is None), 0.0))
        words = f"the answer never {'falls' if direction > 0 else 'rises'} as the column grows, for all rows"
        proof = Certificate("exact", words, checks=tuple(checks), facts=facts)
        return ProvedAnswer("yes" if proof.holds else "not decided", proof)
    words = f"that the answer {way} with the column is refuted by two rows that are equal but for it"
    rows = tuple(tuple(map(float, row)) for row in found.rows) if found.rows is not None else ()
    refusal = Certificate("impossible", words, checks=tuple(checks), facts=facts, witness=rows)
    return ProvedAnswer("no" if refusal.proved else "not decided", refusal, found.rows, found.scores)


def prove_order(lower: Any, upper: Any, *, max_boxes: int = 200_000) -> ProvedAnswer:
    """Decide whether one model's answer is never above another's, for all rows: quantiles that do not cross.

    Parameters
    ----------
    lower, upper : fitted models of amounts, as `prove_monotone` takes them, of the same columns
    max_boxes : after so many the question is left open

    Returns
    -------
    ProvedAnswer : true if proved; where the verdict is 'no', `rows` (1, d) is a row where they cross

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = [[0.0], [1.0], [2.0]]
    >>> low, high = (DecisionTreeRegressor().fit(X, y) for y in ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0]))
    >>> prove_order(low, high).scores
    (2.0, 1.0)
    """
    Setting(int, least=1).check("max_boxes", max_boxes)
    one, other = read_tree_sum(lower), read_tree_sum(upper)
    if one.columns != other.columns or len(one.baseline) != 1 or len(other.baseline) != 1:
        raise DataError(
            got=f"models of {one.columns} and {other.columns} columns, with {len(one.baseline)} and "
            f"{len(other.baseline)} scores", wanted="the same columns, and one score each",
        )  # fmt: skip
    found = find_crossing(one, other, MonotoneTuning(max_boxes))
    checks = [*_reading_check(lower, one, found.rows), *_reading_check(upper, other, found.rows)]
    facts = {"trees": float(len(one.trees) + len(other.trees))}
    if found.rises is not False:
        checks.append(Check("boxes left to look at (1: yes)", float(found.rises is None), 0.0))
        proof = Certificate(
            "exact", "no row has a lower answer above the upper one", checks=tuple(checks), facts=facts
        )
        return ProvedAnswer("yes" if proof.holds else "not decided", proof)
    words = "that the answers keep their order is refuted by a row where they cross"
    rows = tuple(tuple(map(float, row)) for row in found.rows) if found.rows is not None else ()
    refusal = Certificate("impossible", words, checks=tuple(checks), facts=facts, witness=rows)
    return ProvedAnswer("no" if refusal.proved else "not decided", refusal, found.rows, found.scores)


@dataclass(frozen=True)
class ScoreRange:
    """The least and the largest scores within ε of rows; `exact`: they are reached, else they are bounds."""

    low: Array  # (n, k), or (n,) where there is one score
    high: Array
    exact: bool
    boundary: float = 0.0  # of two classes: log-odds of 0, or half of the votes

    @property
    def settled(self) -> Array:
        """Of a model of two classes, which rows keep their class wherever they move (n,)."""
        return np.asarray((self.low > self.boundary) | (self.high <= self.boundary))


def score_range(model: Any, X: Any, epsilon: float) -> ScoreRange:
    """The least and the largest score of a model where every number of a row may move by up to `epsilon`.

    Parameters
    ----------
    model : a fitted model, as `prove_monotone` takes it
    X : rows
    epsilon : how far numbers may move; missing entries and categories stay as they are

    Returns
    -------
    ScoreRange : exact for stumps and additive models; for other trees, bounds of single trees added up. Scores are
        what a model adds up: log-odds of boosted classes, logarithms of means, shares of votes of a forest

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
    >>> found = score_range(model, [[0.4], [2.0]], 0.2)
    >>> found.low.tolist(), found.high.tolist(), found.exact
    ([1.0, 3.0], [2.0, 3.0], True)
    """
    Setting(float, least=0, below=np.inf).check("epsilon", epsilon)
    plain = read_tree_sum(model)
    rows = as_rows(X, missing=True).load()
    if rows.n_features != plain.columns:
        raise DataError(got=f"rows of {rows.n_features} features", wanted=f"the model's {plain.columns}")
    low, high = score_bounds(plain, np.asarray(rows.X, np.float64), float(epsilon))
    exact = (plain.additive and not plain.categorical.any()) or len(plain.trees) == 1
    ends = (low, high) if low.shape[1] > 1 else (low[:, 0], high[:, 0])
    return ScoreRange(*ends, exact, 0.5 if plain.link == "share" else 0.0)


def _column_number(model: Any, column: int | str, d: int) -> int:
    if isinstance(column, str):
        names = [str(name) for name in getattr(model, "feature_names_in_", ())]
        if column not in names:
            raise DataError(got=f"column {column!r}", wanted=f"one of {names[:8]}" if names else "its number")
        return names.index(column)
    Setting(int, least=0, most=d - 1).check("column", column)
    return int(column)


def _reading_check(model: Any, plain: TreeSum, rows: Array | None) -> list[Check]:
    """Whether the trees that were read add up to what the model says, on rows about its thresholds."""
    probes = _probes(plain) if rows is None else np.concatenate([_probes(plain), rows])
    probes = probes[~np.isnan(probes).any(axis=1)]
    return scores_check(plain(probes), own_scores(model, probes), plain)


def _probes(plain: TreeSum, n: int = 64, seed: int = 0) -> Array:
    """Rows whose numbers lie near thresholds (n, d)."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, plain.columns))
    for j in np.flatnonzero(~plain.categorical):
        asked = [t.tree.threshold[t.tree.inner[t.tree.column[t.tree.inner] == j]] for t in plain.trees]
        values = np.unique(np.concatenate([np.zeros(0), *asked]))
        values = values[np.isfinite(values)]
        if len(values):
            rows[:, j] = rng.choice(values, n) + rng.choice([-1.0, 0.0, 1.0], n) * (np.ptp(values) / 50 + 1e-3)
    return rows
