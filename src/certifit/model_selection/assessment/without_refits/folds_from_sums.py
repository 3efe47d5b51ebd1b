"""Folds of models that follow from sums: what a fold leaves is all sums less the fold's, so that no fold is fitted.

- Least squares and ridge: the Gram matrix and X'y of the rows left, about their means. With one row left out, its
  prediction follows from the fit to all rows: y - e / (1 - h), with leverage h (Allen, The relationship between
  variable selection and data augmentation, 1974).
- Gaussian naive Bayes: counts, means and squares of the class that the row leaves (Chan, Golub & LeVeque, Algorithms
  for computing the sample variance, 1983).
- PCA: the scatter of the rows left, about their mean, and its leading eigenvectors.

A model is known by the name of its class. So that nothing rests on a name, one split of some of the rows is also
fitted: where it does not answer the same, or where a matrix is so near to singular that digits would be lost, every
split is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.model_selection.splits import Split
from certifit.model_selection.assessment.held_out import AnswersOfFold, AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.plans import FoldSplits, SingleRows
from certifit.model_selection.assessment.without_refits.fold_loops import (
    DeviationSums,
    RemovableMoments,
    fold_class_sums,
    fold_scores,
    normalise_scores,
    scores_without_self,
)
from certifit.rows import Array


@dataclass(frozen=True)
class SumsTuning:
    """When sums are trusted."""

    largest_condition: float = 1e6  # of columns of unit length; beyond, normal equations lose too many digits
    agreement: float = 1e-9  # of answers with those of a split that was fitted, relative
    rows_compared: int = 1_000  # of which a split is fitted, to see that both agree
    full_leverage: float = 1 - 1e-6  # a row that decides its own prediction
    smallest_gap: float = (
        1e-4  # between the variances kept and left, in the largest; below, a plane is not determined
    )
    scatters_at_once: int = 1024  # that are decomposed together


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
    if problem.weights is not None:
        return None
    found: list[UnseenAnswers] = []
    for part in _partitions(splits, len(problem.y)):
        if part is None or not _agrees(problem, part, answer, tuning):
            return None
        with np.errstate(all="ignore"):
            said = answer(problem, np.ascontiguousarray(X, dtype=np.float64), part, tuning)
        if said is None or not _are_numbers(said):
            return None
        found += said
    return found


def _partitions(splits: Sequence[Split], n: int) -> Sequence[SingleRows | FoldSplits | None]:
    """Return every draw of folds by itself; None stands for splits that are no folds."""
    if isinstance(splits, SingleRows):
        return [splits]
    folds = splits if isinstance(splits, FoldSplits) else FoldSplits.of(splits, n)
    return [None] if folds is None else folds.draws()


def _are_numbers(said: Sequence[UnseenAnswers]) -> bool:
    # Scored classes were looked at when they were made.
    tables = [one.answers for one in said if isinstance(one.answers, dict)]
    values = (values for table in tables for values in table.values())
    return all(bool(np.isfinite(part).all()) for part in values if part.dtype.kind == "f")


def _agrees(
    problem: AssessedProblem, splits: SingleRows | FoldSplits, answer: Callable[..., Any], tuning: SumsTuning
) -> bool:
    """Say whether a split of some of the rows answers the same when it is fitted: what a name promises."""
    rows = np.arange(min(len(problem.y), max(tuning.rows_compared, 4 * problem.X.shape[1])))
    if problem.classes is not None and len(np.unique(problem.y[rows])) < len(problem.classes):
        rows = np.arange(len(problem.y))
    small = problem.among(rows)
    part = SingleRows(len(rows)) if isinstance(splits, SingleRows) else splits.among(rows)
    if part is None:
        return False
    with np.errstate(all="ignore"):
        said = answer(small, np.ascontiguousarray(small.X, dtype=np.float64), part, tuning)
    if said is None:
        return False
    fitted = small.hold_out(part[:1])[0].answers
    for method, every in said[0].answers.items():
        values = every[: len(part[0][1])]
        if method not in fitted or fitted[method].shape != values.shape:
            return False
        if values.dtype.kind != "f":
            if not np.array_equal(values, fitted[method]):
                return False
        elif not np.allclose(values, fitted[method], rtol=tuning.agreement, atol=tuning.agreement):
            return False
    return True


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
    problem: AssessedProblem, X: Array, splits: SingleRows | FoldSplits, tuning: SumsTuning
) -> list[UnseenAnswers] | None:
    settings = problem.estimator.get_params()
    alpha: Any = settings.get("alpha", 0.0)
    if settings.get("positive") or not isinstance(alpha, int | float) or problem.classes is not None:
        return None
    centred = bool(settings["fit_intercept"])
    y = np.asarray(problem.y, dtype=np.float64)
    shift, level = (X.mean(axis=0), float(y.mean())) if centred else (np.zeros(X.shape[1]), 0.0)
    penalty = float(alpha) * np.eye(X.shape[1])
    if isinstance(splits, SingleRows):
        return _leave_one_out(X - shift, y - level, penalty, (centred, level), tuning)
    tests = splits.tests()
    parts = [(X[test] - shift, y[test] - level) for test in tests]
    sums = [SquaresSums.of(*part) for part in parts]
    everything = SquaresSums(*(sum(values) for values in zip(*sums, strict=True)))
    found = []
    for test, (Z, _), own in zip(tests, parts, sums, strict=True):
        rest = everything.without(own)
        mean, height = (rest.z / rest.n, rest.y / rest.n) if centred else (np.zeros_like(rest.z), 0.0)
        gram = rest.gram - rest.n * np.outer(mean, mean) + penalty
        if not _is_well_conditioned(gram, tuning):
            return None
        slopes = np.linalg.solve(gram, rest.cross - rest.n * mean * height)
        found.append(_one(test, Z @ slopes + (level + height - mean @ slopes), rest.n))
    return found


def _is_well_conditioned(gram: Array, tuning: SumsTuning) -> bool:
    lengths = np.sqrt(np.diag(gram))
    if not np.isfinite(gram).all() or not lengths.all():
        return False
    return bool(np.linalg.cond(gram / np.outer(lengths, lengths)) <= tuning.largest_condition)


def _leave_one_out(
    Z: Array, y: Array, penalty: Array, centre: tuple[bool, float], tuning: SumsTuning
) -> list[UnseenAnswers] | None:
    """Return the prediction of each row by the fit without it."""
    centred, level = centre
    gram = Z.T @ Z
    if not _is_well_conditioned(gram, tuning):
        return None
    inverse = np.linalg.inv(gram + penalty)
    leverage = np.einsum("ij,ij->i", Z @ inverse, Z) + (1 / len(y) if centred else 0.0)
    if leverage.max() > tuning.full_leverage:
        return None
    error = y - Z @ (inverse @ (Z.T @ y))
    return [_one(np.arange(len(y)), level + y - error / (1 - leverage), len(y) - 1)]


def _one(test: Array, said: Array, n_fitted: int) -> UnseenAnswers:
    return UnseenAnswers(test, n_fitted, {"predict": said})


# Gaussian naive Bayes ---------------------------------------------------------------------------------------------


def _gaussian_bayes(
    problem: AssessedProblem, X: Array, splits: SingleRows | FoldSplits, tuning: SumsTuning
) -> list[UnseenAnswers] | None:
    settings = problem.estimator.get_params()
    classes = problem.classes
    if settings.get("priors") is not None or "var_smoothing" not in settings or classes is None:
        return None
    smoothing = float(settings["var_smoothing"])
    codes = problem.codes
    folds = np.zeros(len(X), dtype=np.intp) if isinstance(splits, SingleRows) else splits.folds[0]
    parts, means = _sums_about_class_means(X, folds, codes, len(classes), tuning.rows_compared)
    least = 2 if isinstance(splits, SingleRows) else 1
    everything = DeviationSums(*(values.sum(axis=0) for values in parts))
    if everything.n.min() < least or not np.isfinite(everything.zz).all():
        return None
    if isinstance(splits, SingleRows):
        said = scores_without_self(X, codes, _class_moments(everything, means), smoothing)
        return _answers(said, classes, [np.arange(len(codes))])
    left = DeviationSums(*(whole - part for whole, part in zip(everything, parts, strict=True)))
    if left.n.min() < least:
        return None
    said = fold_scores(X, folds, *_parameters(left, means, smoothing))
    return _answers(said, classes, splits.tests())


def _sums_about_class_means(
    X: Array, folds: Array, codes: Array, k: int, some_rows: int
) -> tuple[DeviationSums, Array]:
    """Return sums by fold and class about centres near the means of classes, and these (k, d): nothing cancels.

    Some of the rows say where; where they are too far off, the sums themselves do.
    """
    some = slice(None, None, max(1, len(X) // some_rows))
    centres = _centres(X[some], codes[some], k)
    for _ in range(2):
        sums = fold_class_sums(X, folds, codes, centres, int(folds.max()) + 1)
        n = np.maximum(sums.n.sum(axis=0), 1)[:, None]
        apart, spread = sums.z.sum(axis=0) / n, sums.zz.sum(axis=0) / n
        # The variance is spread - apart², and loses no more than a bit.
        if (2 * apart**2 <= spread).all():
            break
        centres = centres + apart
    return sums, centres


def _centres(X: Array, codes: Array, k: int) -> Array:
    """Return the means of classes (k, d) among some rows, the first row for classes that they lack."""
    return np.stack([X[codes == c].mean(axis=0) if (codes == c).any() else X[0] for c in range(k)])


def _class_moments(sums: DeviationSums, centres: Array) -> RemovableMoments:
    """Return the moments of rows (..., k, d) from sums about centres near their means, and of all rows."""
    n = sums.n[..., None]
    apart = sums.z / n
    means, squares = centres + apart, np.maximum(sums.zz - sums.z * apart, 0.0)
    grand = (n * means).sum(axis=-2) / n.sum(axis=-2)
    spread = squares.sum(axis=-2) + (n * (means - grand[..., None, :]) ** 2).sum(axis=-2)
    return RemovableMoments(sums.n, means, squares, grand, spread, np.argsort(-spread, axis=-1))


def _parameters(left: DeviationSums, centres: Array, smoothing: float) -> tuple[Array, Array, Array]:
    """Return means, precisions (f, k, d) and constants (f, k) of the models that each leave out a fold."""
    found = _class_moments(left, centres)
    n, rows = found.n, found.n.sum(axis=1, keepdims=True)
    floor = smoothing * found.grand_squares.max(axis=1, keepdims=True) / rows
    variance = found.squares / n[:, :, None] + floor[:, :, None]
    constant = np.log(n / rows) - 0.5 * np.log(2 * np.pi * variance).sum(axis=2)
    return found.mean, 1 / variance, constant


class ScoredClasses(Mapping[str, Array]):
    """Classes of rows by their log scores (n, k), and probabilities, which are made when they are asked for."""

    def __init__(self, scores: Array, classes: Array) -> None:
        self._scores, self._classes = scores, classes

    @cached_property
    def _predicted(self) -> Array:
        first, second = self._scores[:, 0], self._scores[:, 1]
        return self._classes[
            (second > first).astype(np.intp) if self._scores.shape[1] == 2 else self._scores.argmax(axis=1)
        ]

    @cached_property
    def _shares(self) -> Array:
        shares = self._scores.copy()
        normalise_scores(shares)
        return shares

    def __getitem__(self, method: str) -> Array:
        if method not in self:
            raise KeyError(method)
        return self._predicted if method == "predict" else self._shares

    def __iter__(self) -> Iterator[str]:
        return iter(("predict", "predict_proba"))

    def __len__(self) -> int:
        return 2

    def __contains__(self, method: object) -> bool:
        return method in ("predict", "predict_proba")


def _answers(scores: Array, classes: Array, tests: Sequence[Array]) -> list[UnseenAnswers] | None:
    """Return classes and probabilities of the rows of folds from the scores of all (n, k); None without numbers."""
    if not np.isfinite(scores).all():
        return None
    answers = ScoredClasses(scores, classes)
    if len(tests) == 1:
        return [UnseenAnswers(tests[0], len(scores) - 1, answers)]
    return [UnseenAnswers(test, len(scores) - len(test), AnswersOfFold(answers, test)) for test in tests]


# PCA --------------------------------------------------------------------------------------------------------------


def _principal_axes(
    problem: AssessedProblem, X: Array, splits: SingleRows | FoldSplits, tuning: SumsTuning
) -> list[UnseenAnswers] | None:
    k = problem.estimator.get_params().get("n_components")
    n, d = X.shape
    if not problem.reconstructs or not isinstance(k, int) or not 1 <= k < min(n - 1, d) or not np.isfinite(X).all():
        return None
    Z = X - X.mean(axis=0)
    if isinstance(splits, SingleRows):
        return _planes_without_rows(Z, k, tuning)
    tests = splits.tests()
    sums = [SquaresSums.of(Z[test], np.zeros(len(test))) for test in tests]
    everything = SquaresSums(*(sum(values) for values in zip(*sums, strict=True)))
    found = []
    for test, own in zip(tests, sums, strict=True):
        rest = everything.without(own)
        if rest.n <= k + 1:
            return None
        mean = rest.z / rest.n
        axes = _leading_axes((rest.gram - rest.n * np.outer(mean, mean))[None], k, tuning)
        if axes is None:
            return None
        apart = Z[test] - mean
        errors = apart - (apart @ axes[0]) @ axes[0].T
        found.append(UnseenAnswers(test, rest.n, {"reconstruction_error": (errors**2).sum(axis=1)}))
    return found


def _planes_without_rows(Z: Array, k: int, tuning: SumsTuning) -> list[UnseenAnswers] | None:
    """Return the distance of each row z from the plane without it, whose mean is -z / (n - 1)."""
    n = len(Z)
    scatter, said, stretch = Z.T @ Z, np.empty(n), n / (n - 1)
    for start in range(0, n, tuning.scatters_at_once):
        rows = Z[start : start + tuning.scatters_at_once]
        axes = _leading_axes(scatter - stretch * rows[:, :, None] * rows[:, None, :], k, tuning)
        if axes is None:
            return None
        codes = np.einsum("bd,bdk->bk", rows, axes)
        errors = stretch * (rows - np.einsum("bdk,bk->bd", axes, codes))
        said[start : start + len(rows)] = (errors**2).sum(axis=1)
    return [UnseenAnswers(np.arange(n), n - 1, {"reconstruction_error": said})]


def _leading_axes(scatters: Array, k: int, tuning: SumsTuning) -> Array | None:
    """Return the k leading eigenvectors (b, d, k) of scatters (b, d, d), or None where some are not determined."""
    values, vectors = np.linalg.eigh(scatters)
    if (values[:, -k] - values[:, -k - 1] < tuning.smallest_gap * values[:, -1]).any():
        return None
    return vectors[:, :, -k:]


_MODELS: dict[str, Callable[..., list[UnseenAnswers] | None]] = {
    "LinearRegression": _squares,
    "Ridge": _squares,
    "GaussianNB": _gaussian_bayes,
    "PCA": _principal_axes,
}
