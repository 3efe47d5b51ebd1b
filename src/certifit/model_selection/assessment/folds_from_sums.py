"""Folds of models that follow from sums: what a fold leaves is all sums less the fold's, so that no fold is fitted.

- Least squares and ridge: the Gram matrix and X'y of the rows left, about their means. With one row left out, its
  prediction follows from the fit to all rows: y - e / (1 - h), with leverage h (Allen, The relationship between
  variable selection and data augmentation, 1974).
- Gaussian naive Bayes: counts, means and squares of the class that the row leaves (Chan, Golub & LeVeque, Algorithms
  for computing the sample variance, 1983).

A model is known by the name of its class. So that nothing rests on a name, one split is also fitted: where it does
not answer the same, or where a matrix is so near to singular that digits would be lost, every split is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.model_selection.splits import Split
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.plans import SingleRows
from certifit.rows import Array


@dataclass(frozen=True)
class SumsTuning:
    """When sums are trusted."""

    largest_condition: float = 1e6  # of columns of unit length; beyond, normal equations lose too many digits
    agreement: float = 1e-9  # of answers with those of a split that was fitted, relative
    full_leverage: float = 1 - 1e-6  # a row that decides its own prediction


def hold_out_by_sums(
    problem: AssessedProblem, splits: Sequence[Split], tuning: SumsTuning = SumsTuning()
) -> list[UnseenAnswers] | None:
    """Return what every split's model answers for its tested rows, or None where they have to be fitted.

    Of splits that leave out one row each, the answers come as one.
    """
    answer = _MODELS.get(type(problem.estimator).__name__)
    X = problem.X
    if answer is None or len(splits) < 2 or not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "iuf":
        return None
    n = len(problem.y)
    if not np.isfinite(X).all() or not (isinstance(splits, SingleRows) or _are_complements(splits, n)):
        return None
    tests = None if isinstance(splits, SingleRows) else [test for _, test in splits]
    with np.errstate(all="ignore"):
        found = answer(problem, X.astype(np.float64), tests, tuning)
    if found is None or not _agrees(problem, splits, found, tuning):
        return None
    return found


def _are_complements(splits: Sequence[Split], n: int) -> bool:
    """Say whether every split fits all rows that it does not test, each once."""
    for train, test in splits:
        roles = np.bincount(np.concatenate([train, test]), minlength=n)
        if len(roles) != n or roles.min() != 1 or roles.max() != 1:
            return False
    return True


def _agrees(
    problem: AssessedProblem, splits: Sequence[Split], found: Sequence[UnseenAnswers], tuning: SumsTuning
) -> bool:
    """Say whether a split that is fitted answers the same."""
    fitted = problem.hold_out(splits[:1])[0].answers
    for method, every in found[0].answers.items():
        values = every[: len(splits[0][1])]
        if method not in fitted or fitted[method].shape != values.shape:
            return False
        if values.dtype.kind != "f":
            if not np.array_equal(values, fitted[method]):
                return False
        elif not np.allclose(values, fitted[method], rtol=tuning.agreement, atol=tuning.agreement):
            return False
    return all(np.isfinite(v).all() for one in found for v in one.answers.values() if v.dtype.kind == "f")


# Least squares and ridge ------------------------------------------------------------------------------------------


class SquaresSums(NamedTuple):
    """Sums over rows about one point, which is near their mean."""

    n: int
    z: Array  # (d,)
    y: float
    gram: Array  # (d, d)
    cross: Array  # (d,)

    @classmethod
    def of(cls, Z: Array, y: Array) -> SquaresSums:
        return cls(len(y), Z.sum(axis=0), float(y.sum()), Z.T @ Z, Z.T @ y)

    def without(self, other: SquaresSums) -> SquaresSums:
        gram, cross = self.gram - other.gram, self.cross - other.cross
        return SquaresSums(self.n - other.n, self.z - other.z, self.y - other.y, gram, cross)


def _squares(
    problem: AssessedProblem, X: Array, tests: Sequence[Array] | None, tuning: SumsTuning
) -> list[UnseenAnswers] | None:
    settings = problem.estimator.get_params()
    alpha: Any = settings.get("alpha", 0.0)
    if settings.get("positive") or not isinstance(alpha, int | float) or problem.classes is not None:
        return None
    centred = bool(settings["fit_intercept"])
    y = np.asarray(problem.y, dtype=np.float64)
    shift, level = (X.mean(axis=0), float(y.mean())) if centred else (np.zeros(X.shape[1]), 0.0)
    Z, y = X - shift, y - level
    sums = SquaresSums.of(Z, y)
    lengths = np.sqrt(np.diag(sums.gram))
    if not lengths.all() or np.linalg.cond(sums.gram / np.outer(lengths, lengths)) > tuning.largest_condition:
        return None
    penalty = float(alpha) * np.eye(X.shape[1])
    if tests is None:
        said = _leave_one_out(Z, y, sums.gram + penalty, centred, tuning)
        return None if said is None else [_one(np.arange(len(y)), said + level, len(y) - 1)]
    found = []
    for test in tests:
        rest = sums.without(SquaresSums.of(Z[test], y[test]))
        mean, height = (rest.z / rest.n, rest.y / rest.n) if centred else (np.zeros_like(rest.z), 0.0)
        gram = rest.gram - rest.n * np.outer(mean, mean) + penalty
        lengths = np.sqrt(np.diag(gram))
        if not lengths.all() or np.linalg.cond(gram / np.outer(lengths, lengths)) > tuning.largest_condition:
            return None
        slopes = np.linalg.solve(gram, rest.cross - rest.n * mean * height)
        found.append(_one(test, level + height + (Z[test] - mean) @ slopes, rest.n))
    return found


def _leave_one_out(Z: Array, y: Array, gram: Array, centred: bool, tuning: SumsTuning) -> Array | None:
    """Return the prediction of each row by the fit without it (n,)."""
    inverse = np.linalg.inv(gram)
    leverage = np.einsum("ij,jk,ik->i", Z, inverse, Z, optimize=True) + (1 / len(y) if centred else 0.0)
    if leverage.max() > tuning.full_leverage:
        return None
    error = y - Z @ (inverse @ (Z.T @ y))
    return y - error / (1 - leverage)


def _one(test: Array, said: Array, n_fitted: int) -> UnseenAnswers:
    return UnseenAnswers(test, n_fitted, {"predict": said})


# Gaussian naive Bayes ---------------------------------------------------------------------------------------------


class RemovableMoments(NamedTuple):
    """Rows of some kind: how many, their mean and their squared deviations; a line for each of several kinds."""

    n: Any  # () or (m,)
    mean: Array  # (d,) or (m, d)
    squares: Array  # (d,) or (m, d)

    @classmethod
    def of(cls, Z: Array) -> RemovableMoments:
        mean = Z.mean(axis=0) if len(Z) else np.zeros(Z.shape[1])
        return cls(len(Z), mean, ((Z - mean) ** 2).sum(axis=0))

    def without(self, other: RemovableMoments) -> RemovableMoments:
        """Return the moments of the rows that are left when others are taken out."""
        n = self.n - other.n
        left = np.maximum(n, 1)[..., None] if np.ndim(n) else max(n, 1)
        taken = other.n[..., None] if np.ndim(other.n) else other.n
        apart = other.mean - self.mean
        squares = self.squares - other.squares - apart**2 * (self.n * taken / left)
        return RemovableMoments(n, self.mean - apart * taken / left, np.maximum(squares, 0.0))


def _gaussian_bayes(
    problem: AssessedProblem, X: Array, tests: Sequence[Array] | None, _tuning: SumsTuning
) -> list[UnseenAnswers] | None:
    settings = problem.estimator.get_params()
    classes = problem.classes
    if settings.get("priors") is not None or "var_smoothing" not in settings or classes is None:
        return None
    codes = np.searchsorted(classes, problem.y)
    Z = X - X.mean(axis=0)
    everything, kinds = RemovableMoments.of(Z), [RemovableMoments.of(Z[codes == c]) for c in range(len(classes))]
    smoothing = float(settings["var_smoothing"])
    if tests is None:
        if min(int(kind.n) for kind in kinds) < 2:
            return None
        said = _scores_without_self(Z, codes, everything, kinds, smoothing)
        return [_classes(np.arange(len(codes)), said, classes, len(codes) - 1)]
    found = []
    for test in tests:
        part, own = Z[test], codes[test]
        left = [kind.without(RemovableMoments.of(part[own == c])) for c, kind in enumerate(kinds)]
        if min(int(kind.n) for kind in left) < 1:
            return None
        rest = everything.without(RemovableMoments.of(part))
        floor = smoothing * float((rest.squares / rest.n).max())
        scores = np.column_stack([_log_joint(part, kind, floor, int(rest.n)) for kind in left])
        found.append(_classes(test, scores, classes, int(rest.n)))
    return found


def _scores_without_self(
    Z: Array, codes: Array, everything: RemovableMoments, kinds: Sequence[RemovableMoments], smoothing: float
) -> Array:
    """Return the log of class times density of each row by the fit without it (n, k)."""
    alone = RemovableMoments(np.ones(len(Z)), Z, np.zeros_like(Z))
    rest = everything.without(alone)
    floor = smoothing * (rest.squares / (len(Z) - 1)).max(axis=1, keepdims=True)
    scores = np.empty((len(Z), len(kinds)))
    for c, kind in enumerate(kinds):
        own = codes == c
        scores[~own, c] = _log_joint(Z[~own], kind, floor[~own], len(Z) - 1)
        mine = RemovableMoments(np.ones(np.count_nonzero(own)), Z[own], np.zeros_like(Z[own]))
        scores[own, c] = _log_joint(Z[own], kind.without(mine), floor[own], len(Z) - 1)
    return scores


def _log_joint(Z: Array, kind: RemovableMoments, floor: Any, n: int) -> Array:
    """Return log p(class) + log p(row | class) of rows (m,)."""
    count = kind.n[..., None] if np.ndim(kind.n) else kind.n
    variance = kind.squares / count + floor
    density = -0.5 * (np.log(2 * np.pi * variance) + (Z - kind.mean) ** 2 / variance).sum(axis=1)
    return np.log(kind.n / n) + density


def _classes(test: Array, scores: Array, classes: Array, n_fitted: int) -> UnseenAnswers:
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return UnseenAnswers(test, n_fitted, {"predict": classes[scores.argmax(axis=1)], "predict_proba": p})


_MODELS: dict[str, Callable[..., list[UnseenAnswers] | None]] = {
    "LinearRegression": _squares,
    "Ridge": _squares,
    "GaussianNB": _gaussian_bayes,
}
