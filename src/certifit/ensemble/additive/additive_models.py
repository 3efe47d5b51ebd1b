"""Additive models with a total-variation penalty, certified.

    min  Σ s φ(y, b + Σ_j f_j(x_j)) / Σ s + α Σ_j TV(f_j)

Each f_j is constant between thresholds of its column, so that a model is read off one picture per column. The problem
is convex, and the duality gap says how far from its minimum a fit is. Pairs of columns may have terms of their own,
sums of boxes whose coefficients' sizes the penalty adds up (`pair_terms`). References: Rudin, Osher & Fatemi (1992)
for the penalty; Petersen, Witten & Simon, Fused lasso additive model, J. Comp. Graph. Stat. 25 (2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Bunch

from certifit.checkers.ensemble.additive.adapter import additive_claim, joint_of_classes
from certifit.checkers.ensemble.additive.dual_point import certify_additive
from certifit.checkers.ensemble.additive.pair_boxes import asked_pairs
from certifit.checkers.plain.blocks import dense
from certifit.core import Attributes, Estimator, Objective, ResumableUpdate, Setting, Step, fixed_point
from certifit.core.settings import LOOP, Settings
from certifit.ensemble.adaboost.stumps import BinnedColumn, binned_column
from certifit.ensemble.additive.block_descent import BlockDescent, BlockDescentTuning
from certifit.ensemble.additive.pair_choice import (
    CoarseColumns,
    choose_pairs,
    coarse_columns,
    pair_problem,
    without_boxes,
)
from certifit.ensemble.additive.pair_descent import PairDescent, PairPoint, PairProblem, measure_pairs
from certifit.ensemble.additive.pair_terms import PairTerm, box_values
from certifit.ensemble.additive.problem import (
    AdditiveMeasures,
    AdditivePoint,
    AdditiveProblem,
    level_table,
    measure,
    row_losses,
)
from certifit.ensemble.additive.shape_functions import ShapeFunction
from certifit.ensemble.additive.strength import choose_strength
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows, apply_class_weight, encode_labels
from certifit.rows.threads import parallel_map


def _are_pairs(value: Any) -> bool:
    """Whether a setting is a list of pairs; which columns these are is looked at later."""
    return isinstance(value, (list, tuple)) and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in value)


class AdditiveModel(Estimator):
    """What additive models of classes and of amounts share."""

    sparse = True
    missing = True
    settings: ClassVar[Settings] = {
        **LOOP,
        "alpha": Setting(float, above=0, below=np.inf, choices=("auto",)),
        "max_bins": Setting(int, least=2, most=255),
        "interactions": Setting(int, least=0, other=_are_pairs, other_words="a list of pairs of columns"),
    }
    _tuning: ClassVar[BlockDescentTuning] = BlockDescentTuning()
    _pair_start: ClassVar[float] = 1e-3  # relative gap at which pairs are chosen

    shape_functions_: list[Any]
    intercept_: Any
    alpha_: Any

    def _solved(self, rows: Rows, loss: str, whole: Callable[[Attributes], Attributes] = dict) -> Attributes:
        """All fitted attributes, from rows whose y are amounts, or 0 and 1.

        `whole` makes the attributes of a model, as callbacks see it, of those of this problem.
        """
        data = rows.load()
        kept = data.w > 0
        X, y, w = dense(data.X[kept]), np.asarray(data.y, np.float64)[kept], data.w[kept]
        directions = _directions(self.monotonic_cst, rows.n_features)
        weight = None if (w == w[0]).all() else w
        columns = parallel_map(partial(binned_column, int(self.max_bins), weight), [*X.T])
        s = w / w.sum()
        mean = float(s @ y)
        # Squared errors do not change when targets are moved to their mean, where nothing cancels.
        shift = mean if loss == "squared_error" else 0.0
        asked = self._asked_pairs(rows, directions)
        alpha = 0.0 if self.alpha == "auto" else float(self.alpha)
        problem = AdditiveProblem(level_table(columns, directions), y - shift, s, loss, alpha)
        start = AdditivePoint(np.zeros((len(columns), 256)), _null_score(loss, mean) - shift)
        if self.alpha == "auto":
            problem = AdditiveProblem(problem.table, problem.y, s, loss, choose_strength(problem, start, X))
        descent = BlockDescent(problem, self._tuning)
        attributes = partial(_attributes, problem, columns, shift)
        # Pairs are chosen by a model that need not be solved to the last digit.
        goal = max(float(self.tol), self._pair_start) if asked else float(self.tol)
        shown = _composed(whole, attributes)
        best = self._descended("block descent", partial(measure, problem), descent, start, goal, shown)
        passes = best.n_iter
        found: Attributes = attributes(best.params)
        if asked:
            best, found = self._solved_pairs(problem, columns, asked, best.params, attributes, whole)
            passes += best.n_iter
        claimed = Bunch(
            **{**self.get_params(deep=False), "loss": loss}, **found, n_features_in_=rows.n_features,
            feature_names_in_=rows.names,
        )  # fmt: skip
        trained = ArrayRows(data.X, data.y, data.w)
        certificate = certify_additive(additive_claim(claimed), trained, float(self.tol))
        return {**found, "n_iter_": passes, "history_": best.history, "certificate_": certificate}

    def _descended(self, name: str, measure: Any, descent: Any, start: Any, goal: float, shown: Any) -> Any:
        """The solution that passes lead to from a point; `shown` makes of a point what callbacks see."""
        with self._watch.loop(name, self.max_iter, shown) as watch:
            return fixed_point(
                measure, ResumableUpdate(partial(_relative, descent, goal), descent), start, tol=goal,
                max_iter=self.max_iter, max_time=self.max_time, watcher=watch,
            )  # fmt: skip

    def _asked_pairs(self, rows: Rows, directions: Array) -> list[tuple[int, int]] | int:
        """The pairs that are asked for, or how many."""
        asked = asked_pairs(self.interactions, rows.n_features, rows.names)
        if not isinstance(asked, int) and any(directions[[*pair]].any() for pair in asked):
            raise DataError(
                got=f"interactions={self.interactions!r} with a column that monotonic_cst gives a direction",
                wanted="pairs of columns without one",
                fix="Leave the column out of one of them: what a pair adds may rise and fall.",
            )
        return asked

    def _solved_pairs(
        self, problem: AdditiveProblem, columns: list[BinnedColumn], asked: list[tuple[int, int]] | int,
        start: AdditivePoint, attributes: Any, whole: Any,
    ) -> tuple[Any, Attributes]:  # fmt: skip
        """The solution with terms of pairs, and the attributes that it stands for."""
        coarse = coarse_columns(problem, [column.missing for column in columns])
        if isinstance(asked, int):
            pairs, point = choose_pairs(problem, coarse, start, asked)
        else:
            pairs = pair_problem(problem, coarse, asked)
            point = without_boxes(pairs, start)

        def with_pairs(at: PairPoint) -> Attributes:
            found = attributes(AdditivePoint(at.values, at.intercept))
            terms = _pair_functions(pairs, columns, coarse, at)
            moved = sum(term.centre for term in terms)
            return {**found, "intercept_": found["intercept_"] + moved, "pair_functions_": terms}

        descent, shown = PairDescent(pairs, self._tuning), _composed(whole, with_pairs)
        best = self._descended("pairs", partial(measure_pairs, pairs), descent, point, float(self.tol), shown)
        return best, with_pairs(best.params)

    def _machines(self) -> list[tuple[float, list[ShapeFunction], float, list[PairTerm]]]:
        """Intercept, functions, strength and terms of pairs: of one score, or of one for each of several classes."""
        pairs = self.__dict__.get("pair_functions_")
        if np.ndim(self.intercept_) == 0:
            return [(float(self.intercept_), self.shape_functions_, float(self.alpha_), pairs or [])]
        pairs = [[] for _ in self.alpha_] if pairs is None else pairs
        return [*zip(self.intercept_, self.shape_functions_, self.alpha_, pairs, strict=True)]

    def _scores(self, block: Block) -> Array:
        """Scores (n,), or (n, k) of several classes."""
        X, found = dense(block.X), []
        for intercept, shapes, _, pairs in self._machines():
            total = np.full(len(X), float(intercept))
            for j, shape in enumerate(shapes):
                total += shape(X[:, j])
            for pair in pairs:
                total += pair(X)
            found.append(total)
        return np.stack(found, axis=1) if np.ndim(self.intercept_) else found[0]

    def _score_range(self, epsilon: float, block: Block) -> Array:
        """The least and the largest score within epsilon of each row (n, 2)."""
        X = dense(block.X)
        total = np.full((len(X), 2), float(self.intercept_))
        for j, shape in enumerate(self.shape_functions_):
            low, high = shape.extremes(X[:, j], epsilon)
            total[:, 0] += low
            total[:, 1] += high
        return total

    @property
    def feature_importances_(self) -> Array:
        """The mean size of each column's function over the rows of the fit, as shares of 1 (d,).

        The size of a pair's term is shared by its columns.
        """
        size = np.zeros(self.n_features_in_)
        for _, shapes, _, pairs in self._machines():
            size += [_mean_size(shape) for shape in shapes]
            for pair in pairs:
                size[pair.columns] += float(pair.counts.ravel() @ np.abs(pair.values).ravel() / pair.counts.sum()) / 2
        return size / size.sum() if size.sum() > 0 else size

    def _penalty(self) -> float:
        total = 0.0
        for _, shapes, alpha, pairs in self._machines():
            paths = [np.append(s.missing, s.values) if s.missing_count else s.values for s in shapes]
            size = sum(float(np.abs(np.diff(path)).sum()) for path in paths) + sum(pair.size for pair in pairs)
            total += float(alpha) * size
        return total

    def _loss_sums(self, loss: str, block: Block) -> Array:
        y, score = np.asarray(block.y, np.float64), self._scores(block)
        if score.ndim == 1:
            return np.array([block.w.sum(), block.w @ row_losses(loss, y, score)])
        own = (y[:, None] == np.arange(score.shape[1])).astype(np.float64)
        return np.array([block.w.sum(), block.w @ row_losses(loss, own, score).sum(axis=1)])

    def _objective(self, rows: Rows, loss: str) -> Objective:
        weight, total = rows.sum(partial(self._loss_sums, loss))
        data, penalty = float(total / weight), self._penalty()
        return Objective(data + penalty, data, penalty)

    def _worst_losses(self, loss: str, epsilon: float, block: Block) -> Array:
        y, ends = np.asarray(block.y, np.float64), self._score_range(epsilon, block)
        # A convex loss is largest at an end.
        return np.maximum(row_losses(loss, y, ends[:, 0]), row_losses(loss, y, ends[:, 1]))

    def _check_epsilon(self, epsilon: float) -> None:
        Setting(float, least=0, below=np.inf).check("epsilon", epsilon)
        if any(pairs for *_, pairs in self._machines()):
            raise DataError(
                got="the worst case of a model with terms of pairs of columns",
                wanted="a model whose columns can be looked at one by one",
                fix="Fit it with interactions=0.",
            )


def _composed(whole: Callable[[Attributes], Attributes], attributes: Callable[[Any], Attributes]) -> Any:
    return lambda point: whole(attributes(point))


def _relative(
    descent: BlockDescent, tol: float, point: AdditivePoint, found: AdditiveMeasures
) -> Step[AdditivePoint]:
    """An update whose gain is the gap as a share of the objective."""
    step = descent.update(point, found)
    gain = step.gain / step.objective if step.objective > 0 else 0.0
    # Newton's method doubles the digits with every step: two more are nearly free, and equal problems then have
    # equal answers.
    if 1e-13 < gain <= tol and descent.polished < descent.tuning.polishing:
        descent.polished += 1
        gain = max(gain, tol * (1 + 1e-9))
    return step._replace(gain=gain)


def _null_score(loss: str, mean: float) -> float:
    """The best score without any function."""
    if loss == "log_loss":
        return float(np.log(mean / (1 - mean)))
    return float(np.log(mean)) if loss == "poisson" else mean


def _attributes(
    problem: AdditiveProblem, columns: list[BinnedColumn], shift: float, point: AdditivePoint
) -> dict[str, Any]:
    """Functions about their means, and the intercept."""
    intercept, shapes = point.intercept + shift, []
    for j, column in enumerate(columns):
        k = int(problem.table.levels[j])
        mass = np.bincount(problem.table.codes[j], problem.s, k)
        rows = np.bincount(problem.table.codes[j], minlength=k)
        found = point.values[j, :k]
        centre = float(found[0] + mass @ (found - found[0]))  # of a constant function: that very constant
        values = found - centre
        intercept += centre
        first = int(column.missing)
        shapes.append(
            ShapeFunction(
                column.thresholds, values[first:], float(values[0]) if first else 0.0, rows[first:],
                int(rows[0]) if first else 0,
            )
        )  # fmt: skip
    return {"shape_functions_": shapes, "intercept_": float(intercept), "alpha_": float(problem.alpha)}


def _pair_functions(
    problem: PairProblem, columns: list[BinnedColumn], coarse: CoarseColumns, point: PairPoint
) -> list[PairTerm]:
    """The terms of all pairs, each about its mean."""
    found = []
    for pair, cells, boxes in zip(problem.pairs, problem.cells, point.boxes, strict=True):
        centre = float(problem.mains.s @ box_values(boxes).ravel()[cells])
        counts = np.bincount(cells, minlength=pair.shape[0] * pair.shape[1]).reshape(pair.shape)
        cuts = []
        for j in pair.columns:
            own = coarse.belongs[j][int(columns[j].missing) :]
            cuts.append(columns[j].thresholds[np.diff(own) > 0])
        missing = np.array([columns[j].missing for j in pair.columns])
        found.append(PairTerm(np.array(pair.columns), cuts[0], cuts[1], missing, boxes, centre, counts))
    return found


def _mean_size(shape: ShapeFunction) -> float:
    total = shape.counts.sum() + shape.missing_count
    return float((shape.counts @ np.abs(shape.values) + shape.missing_count * abs(shape.missing)) / total)


def _directions(monotonic_cst: Any, d: int) -> Array:
    if monotonic_cst is None:
        return np.zeros(d, np.int8)
    found = np.asarray(monotonic_cst)
    if found.shape != (d,) or not np.isin(found, (-1, 0, 1)).all():
        raise DataError(
            got=f"monotonic_cst={monotonic_cst!r}", wanted=f"-1, 0 or 1 for each of the {d} columns",
            fix="1: predictions rise with the column, -1: they fall, 0: anything.",
        )  # fmt: skip
    return found.astype(np.int8)


def _joined(parts: list[Attributes]) -> Attributes:
    """The attributes of several classes, from those of each against the others."""
    with_pairs = any("pair_functions_" in part for part in parts)
    return {
        "shape_functions_": [part["shape_functions_"] for part in parts],
        "intercept_": np.array([part["intercept_"] for part in parts]),
        "alpha_": np.array([part["alpha_"] for part in parts]),
        **({"pair_functions_": [part.get("pair_functions_", []) for part in parts]} if with_pairs else {}),
    }


def _without_functions(part: Attributes, share: float) -> Attributes:
    """A class that is still to be told from the others, with the levels of one that is: its log-odds alone."""
    flat = [replace(f, values=np.zeros(len(f.values)), missing=0.0) for f in part["shape_functions_"]]
    none: Attributes = {"pair_functions_": []} if "pair_functions_" in part else {}
    return {**part, "shape_functions_": flat, "intercept_": _null_score("log_loss", share), **none}


@dataclass(frozen=True)
class AgainstOthers:
    """Targets that are 1 for the rows of one class and 0 for all others."""

    label: int

    def __call__(self, y: Array | None, w: Array) -> tuple[Array | None, Array]:
        return np.asarray(y == self.label).astype(np.int32), w


class AdditiveClassifier(ClassifierMixin, AdditiveModel):
    """An additive model of classes: log-odds are a sum of one function for each column.

    Of several classes each is told from all others, by functions of its own: the sum of these convex problems is
    what is minimised, and probabilities are shares of theirs.

    Parameters
    ----------
    alpha : float or 'auto'
        Strength of the penalty on the functions' total variation. 'auto': of a sequence of strengths, the one whose
        model, fitted to three quarters of the rows, has the least log loss on the others.
    max_bins : int from 2 to 255
        Levels of each column, of about equal weight; columns with no more values have one for each.
    monotonic_cst : array (d,) of -1, 0, 1, or None
        1: the probability of the second of two classes rises with the column; -1: it falls.
    class_weight : dict, 'balanced' or None
    interactions : int or list of pairs of columns
        Pairs that have a term of their own, on a grid of at most 16 levels each: those named, by number or name; or
        so many, one after another the pair whose term the dual asks for most. Columns with a direction are in none.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most passes over all columns.
    max_time : float or None
        Seconds, of several classes for each.

    Attributes
    ----------
    classes_ : (k,)
    shape_functions_ : list of ShapeFunction, one for each column: thresholds, values, missing, counts; of several
        classes a list of such lists
    intercept_ : float, or (k,) of several classes
    alpha_ : float, the strength, or (k,) of several classes
    pair_functions_ : list of PairTerm: columns, values, counts; of several classes a list of such lists. There
        with interactions alone
    feature_importances_ : (d,) mean sizes of the functions, as shares of 1
    n_iter_ : int
    history_ : objective and gap of every pass
    certificate_ : Certificate

    Missing values (NaN) are a level of their own, next to the lowest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certifit import AdditiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdditiveClassifier(alpha=0.01).fit(X, y)
    >>> model.score(X, y) > 0.95, model.certificate_.kind, model.certificate_.holds
    (True, 'optimal', True)
    """

    target = "classes"

    classes_: Array

    def __init__(
        self, alpha="auto", *, max_bins=255, monotonic_cst=None, class_weight=None, tol=1e-6, max_iter=300,
        max_time=None, interactions=0,
    ):  # fmt: skip
        self.alpha = alpha
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.interactions = interactions

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows)
        weighted = apply_class_weight(labels, self.class_weight)
        known, k = {"classes_": labels.classes}, len(labels.classes)
        if k == 2:
            return {**known, **self._solved(weighted, "log_loss", lambda found: {**known, **found})}
        if self.monotonic_cst is not None:
            raise DataError(
                got=f"monotonic_cst with {k} classes", wanted="two classes",
                fix="sklearn.multiclass.OneVsRestClassifier(AdditiveClassifier(...)) has a direction for each class.",
            )  # fmt: skip
        share = labels.weight / labels.weight.sum()
        parts: list[Attributes] = []
        for c in range(k):

            def whole(found: Attributes) -> Attributes:
                later = [_without_functions(found, share[i]) for i in range(len(parts) + 1, k)]
                return {**known, **_joined([*parts, found, *later])}

            parts.append(self._solved(weighted.relabel(AgainstOthers(c)), "log_loss", whole))
        return {
            **known, **_joined(parts), "n_iter_": max(part["n_iter_"] for part in parts),
            "history_": tuple(mark for part in parts for mark in part["history_"]),
            "certificate_": joint_of_classes([part["certificate_"] for part in parts]),
        }  # fmt: skip

    def decision_function(self, X: Any) -> Array:
        """The log-odds of the second class (n,); of several, those of each class against the others (n, k)."""
        return self._rows(X).map(self._scores)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, k); of several classes, each one's against the others as shares of their sum."""
        score = self.decision_function(X)
        p = expit(score)
        return np.column_stack([1 - p, p]) if score.ndim == 1 else softmax(-np.logaddexp(0, -score), axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`, which do not underflow."""
        score = self.decision_function(X)
        if score.ndim == 1:
            return np.column_stack([-np.logaddexp(0, score), -np.logaddexp(0, -score)])
        return log_softmax(-np.logaddexp(0, -score), axis=1)

    def predict(self, X: Any) -> Array:
        """The likeliest class (n,)."""
        score = self.decision_function(X)
        likelier = (score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)
        return self.classes_[likelier]

    def worst_case(self, X: Any, y: Any, epsilon: float) -> Array:
        """The largest log loss of each row when every entry may move by up to `epsilon` (n,): exact, not a bound.

        The score is a sum over columns, so each column's worst entry can be found alone; missing ones stay missing.
        """
        self._check_epsilon(epsilon)
        rows = encode_labels(self._rows(X, y, None, "classes"), self.classes_).rows
        if len(self.classes_) > 2:
            raise DataError(got=f"the worst case of {len(self.classes_)} classes", wanted="two classes")
        return rows.map(partial(self._worst_losses, "log_loss", float(epsilon)))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean log loss on these rows plus the penalty; of several classes the sum of these."""
        labels = encode_labels(self._rows(X, y, sample_weight, "classes"), self.classes_)
        return self._objective(apply_class_weight(labels, self.class_weight), "log_loss")


class AdditiveRegressor(RegressorMixin, AdditiveModel):
    """An additive model of amounts or counts: a sum of one function for each column.

    Parameters
    ----------
    alpha : float or 'auto'
        Strength of the penalty on the functions' total variation. 'auto': of a sequence of strengths, the one whose
        model, fitted to three quarters of the rows, has the least loss on the others.
    loss : 'squared_error' or 'poisson'
        Half the squared error; or half the Poisson deviance, with the sum as the logarithm of the mean.
    max_bins, monotonic_cst, interactions, tol, max_iter, max_time : as in AdditiveClassifier

    Attributes
    ----------
    shape_functions_, pair_functions_, intercept_, alpha_ : as in AdditiveClassifier
    feature_importances_, n_iter_, history_ : as in AdditiveClassifier
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import AdditiveRegressor
    >>> X = np.arange(8.0)[:, None]
    >>> model = AdditiveRegressor(alpha=0.1).fit(X, X[:, 0] > 3)
    >>> model.predict([[0.0], [7.0]]).round(3)
    array([0.2, 0.8])
    """

    target = "numbers"
    settings: ClassVar[Settings] = {
        **AdditiveModel.settings,
        "loss": Setting(choices=("squared_error", "poisson")),
    }

    def __init__(
        self, alpha="auto", *, loss="squared_error", max_bins=255, monotonic_cst=None, tol=1e-6, max_iter=300,
        max_time=None, interactions=0,
    ):  # fmt: skip
        self.alpha = alpha
        self.loss = loss
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.interactions = interactions

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        if self.loss == "poisson":
            y = np.concatenate(rows.each(_counted))
            if not (len(y) and y.min() >= 0 and y.sum() > 0):
                raise DataError(
                    got=f"targets from {y.min():g} to {y.max():g}",
                    wanted="counts of at least 0, some of them above, for loss='poisson'",
                )
        return self._solved(rows, self.loss)

    def predict(self, X: Any) -> Array:
        """The predicted mean (n,)."""
        score = self._rows(X).map(self._scores)
        return np.exp(score) if self.loss == "poisson" else score

    def worst_case(self, X: Any, y: Any, epsilon: float) -> Array:
        """The largest loss of each row when every entry may move by up to `epsilon` (n,): exact, not a bound."""
        self._check_epsilon(epsilon)
        rows = self._rows(X, y, None, "numbers")
        return rows.map(partial(self._worst_losses, self.loss, float(epsilon)))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean loss on these rows plus the penalty."""
        return self._objective(self._rows(X, y, sample_weight, "numbers"), self.loss)


def _counted(block: Block) -> Array:
    return np.asarray(block.y)[block.w > 0]
