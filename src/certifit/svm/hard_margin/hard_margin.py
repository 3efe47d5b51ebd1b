"""The hyperplane of the largest margin, in the space of the columns or of a kernel, or the proof that there is none.

    min over f, b of   ½ |f|²      with   yᵢ (f(xᵢ) + b) >= 1 for every row,     y = ±1

The margin 1 / |f| is half the distance of the convex hulls of the two classes. Where the hulls meet there is no such
hyperplane, and the point where they meet is the witness. Such classes are refused, or separated by a machine that
lets rows miss their margin and pays for it.

| file | what it does |
|---|---|
| `nearest_points` | the nearest points of two hulls, in any space |
| `vector_spaces` | the spaces: of the columns, and of a kernel |
| `two_classes` | from the nearest points to a hyperplane, or to the error that shows where the hulls meet |

References: Vapnik, Estimation of Dependences Based on Empirical Data (1982); Bennett & Bredensteiner, Duality and
geometry in SVM classifiers (2000).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.svm import hard_margin as certificates
from certifit.core import Attributes, Objective
from certifit.core.settings import Setting, Settings
from certifit.exceptions import InseparableWarning, NotANumberError, warn_caller
from certifit.rows import Array, Block, Rows, encode_labels
from certifit.svm.hard_margin.nearest_points import find_nearest_points
from certifit.svm.hard_margin.two_classes import ClassPair, HardMarginTuning, SeparatedPair
from certifit.svm.kernel.kernel_machine import KernelMachine
from certifit.svm.kernel.schemes import OneVsOne, Side, two_sided
from certifit.svm.kernel.training import TrainedMachines, TrainingRows


class UnsetCoefficients:
    """Stands for `coef_` where a fit has not set it: before any fit, and for kernels that are not linear."""

    def __get__(self, model: Any, owner: Any) -> Any:
        raise AttributeError("coef_ is there for a fitted kernel='linear' only: other kernels have none per column")


class HardMarginSVC(ClassifierMixin, KernelMachine):
    """Largest-margin classifier for classes that can be separated; more than two vote pair by pair, as in SVC.

    Of two classes that no hyperplane separates, an InseparableWarning carries the witness: one convex combination of
    each class's rows, and the two are the same point. Their machine then has a ridge. With ridge=0.0 there is none,
    and a NoSolutionError carries the witness.

    Parameters
    ----------
    kernel : 'linear', 'rbf', 'poly', 'sigmoid', 'precomputed' or callable(A, B), default='linear'
        As for SVC. An RBF kernel separates any rows that differ, if their margin is not lost in rounding.
    degree, coef0 : of 'poly' and 'sigmoid', default=3 and 0.0
    gamma : 'scale', 'auto' or float, default='scale'
    ridge : float or 'auto', default='auto'
        Added to k(x, x) of every row with weight 1. Above 0 any rows can be separated: rows may then miss their
        margin by a slack ξ, for which the objective pays w ξ² / (2 ridge). 'auto' is 0 for classes that can be
        separated; for others, of up to 5,000 rows, a thousandth of the mean square of rows about their mean, or of
        the mean k(x, x) of a kernel that is not linear.
    tol : float, default=1e-6
        Relative duality gap at which to stop. The fit goes on to rounding where that takes few steps.
    cache_size : float, default=200
        Megabytes of kernel values kept.
    max_iter : int, default=-1
        Most steps for each pair of classes, each of which brings in some rows and solves for them; -1 is no limit.
    max_time : float or None, default=None
        Seconds after which the best machines so far are returned, with what is proved about them.
    decision_function_shape : 'ovr' or 'ovo'

    Attributes
    ----------
    coef_ : (machines, d), for a linear kernel
    intercept_ : (machines,)
    margin_ : (machines,) 1 / |f|: the distance from the hyperplane to the nearest rows
    ridge_ : (machines,) what was added to k(x, x)
    support_ : (s,) row numbers of the support vectors, class after class
    support_vectors_ : (s, d); empty for a precomputed kernel
    n_support_ : (k,) how many in each class
    dual_coef_ : (k-1, s) coefficients y α, in scikit-learn's layout
    classes_ : (k,)
    gamma_ : float
    slacks_, kkt_residuals_ : (n,) or (n, machines), as for SVC; slacks are rounding where ridge_ is 0
    support_kinds_ : (n,) or (n, machines) words: 'margin' (α > 0) or 'none'
    support_codes_ : `support_kinds_` as small numbers
    shape_fit_ : (n, d) of the table
    n_iter_ : (machines,) steps
    history_ : for each machine its objective, relative gap and seconds at every step
    certificate_ : Certificate

    Notes
    -----
    sample_weight: a row of weight zero is left out; without a ridge no other weight makes a difference, but for
    gamma='scale', which counts rows by it.

    Examples
    --------
    >>> from certifit import HardMarginSVC
    >>> model = HardMarginSVC().fit([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [0, 0, 1])
    >>> model.coef_.round(12).tolist(), model.intercept_.round(12).tolist(), model.margin_.round(12).tolist()
    ([[1.0, 0.0]], [-1.0], [1.0])
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    """

    target = "classes"
    indefinite = "refuse"
    coef_ = UnsetCoefficients()
    settings: ClassVar[Settings] = {
        **KernelMachine.settings,
        "ridge": Setting(float, least=0, below=np.inf, choices=("auto",)),
        "decision_function_shape": Setting(choices=("ovr", "ovo")),
    }
    ignored: ClassVar[tuple[str, ...]] = ()
    differences: ClassVar[dict[str, str]] = {}
    _hull_tuning: ClassVar[HardMarginTuning] = HardMarginTuning()
    _pairs: ClassVar[OneVsOne] = OneVsOne()

    def __init__(
        self,
        *,
        kernel="linear",
        degree=3,
        gamma="scale",
        coef0=0.0,
        ridge="auto",
        tol=1e-6,
        cache_size=200,
        max_iter=-1,
        max_time=None,
        decision_function_shape="ovr",
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.ridge = ridge
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.decision_function_shape = decision_function_shape

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began = time.perf_counter()
        self._check_square(rows)
        labels = encode_labels(rows)
        data = self._training_rows(labels.rows.load())
        data = replace(data, known={**data.known, "classes_": labels.classes})
        sides = self._pairs.sides(len(labels.classes))
        done: list[SeparatedPair] = []

        def so_far(last: SeparatedPair) -> Attributes:
            return self._attributes(data, [*done, last], len(sides))

        for i, side in enumerate(sides):
            name = f"machine {i + 1} of {len(sides)}" if len(sides) > 1 else "steps"
            done.append(self._separate(data, side, name, began, so_far))
        return self._attributes(data, done, len(sides))

    @property
    def _linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _separate(
        self,
        data: TrainingRows,
        side: Side,
        name: str,
        began: float,
        attributes: Callable[[SeparatedPair], Attributes],
    ) -> SeparatedPair:
        """Find the machine for two classes; `attributes` are the model's, if it were the last."""
        blank, auto = two_sided(data.y, data.w, side), isinstance(self.ridge, str)
        ridge = 0.0 if auto else float(self.ridge)
        pair = ClassPair(data, blank.rows, blank.y, ridge, self._linear, self._hull_tuning)
        found = self._largest_margin(pair, side, name, began, attributes)
        if isinstance(found, ValueError) and auto and len(pair.rows) <= self._hull_tuning.most_softened_rows:
            pair = replace(pair, softness=pair.small_ridge())
            words = f"{found} Rows may miss their margin here, by ridge={pair.softness:.3g}."
            warn_caller(InseparableWarning(words, getattr(found, "certificate", None)))
            found = self._largest_margin(pair, side, name, began, attributes)
        if isinstance(found, ValueError):
            raise found
        return found

    def _largest_margin(
        self,
        pair: ClassPair,
        side: Side,
        name: str,
        began: float,
        attributes: Callable[[SeparatedPair], Attributes],
    ) -> SeparatedPair | ValueError:
        """The machine, or the error that says that there is none."""
        tuning, space = self._hull_tuning, pair.space(float(self.cache_size))
        left = None if self.max_time is None else max(0.0, self.max_time - (time.perf_counter() - began))
        limit = self.max_iter if self.max_iter >= 0 else tuning.hulls.no_limit
        with self._watch.loop(name, limit, lambda at: attributes(pair.separate(space, at, None))) as watch:
            found = find_nearest_points(
                pair.y, space, watch, tuning.hulls, tol=self.tol, max_iter=limit, max_time=left
            )
        at = found.params
        square = space.values(at.rows, pair.y[at.rows] * at.share)[1]
        if square <= space.rounding(square):
            return pair.no_margin(space, at, *(pair.data.known["classes_"][[*side]].tolist()))
        if square < np.finfo(float).tiny:
            raise NotANumberError(
                got="rows so close to one another that the squares of their distances vanish",
                wanted="numbers whose squares neither overflow nor vanish",
                fix="Rescale the columns, for instance to unit variance.",
            )
        return pair.separate(space, at, found)

    def _attributes(self, data: TrainingRows, done: list[SeparatedPair], machines: int) -> Attributes:
        """Fitted attributes; of so many machines, those that are not done yet have no support vectors."""
        shape, k = (len(data.y), machines), len(data.known["classes_"])
        beta, slacks, residuals = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        kinds, intercept, margin = np.zeros(shape, np.int8), np.zeros(machines), np.zeros(machines)
        ridge = np.zeros(machines)
        coef = np.zeros((machines, data.X.shape[1]))
        for i, pair in enumerate(done):
            machine, found, rows = pair.machine, pair.findings, pair.machine.rows
            beta[rows, i], intercept[i], margin[i] = machine.beta, machine.intercept, found.margin
            slacks[rows, i], residuals[rows, i], kinds[rows, i] = found.slacks, found.residuals, found.kinds
            ridge[i] = pair.softness
            coef[i] = 0.0 if machine.coef is None else machine.coef
        proof = certificates.combined_certificate(
            [pair.findings for pair in done], float(self.tol), data.proved, data.why
        )
        loops = tuple(pair.loop for pair in done if pair.loop is not None)
        trained = TrainedMachines(beta, intercept, slacks, residuals, kinds, loops, proof)
        support = np.flatnonzero(beta.any(axis=1))
        support = support[np.argsort(data.y[support], kind="stable")]
        return {
            **self.fitted_attributes(data, trained, support),
            **({"coef_": coef} if self._linear else {}),
            "margin_": margin,
            "ridge_": ridge,
            "n_support_": np.bincount(data.y[support], minlength=k).astype(np.int32),
            "dual_coef_": self._pairs.pack(beta[support], data.y[support], k),
        }

    def _beta(self) -> Array:
        """Coefficients of the support vectors (s, machines)."""
        k = len(self.classes_)
        return self._pairs.unpack(self.dual_coef_, np.repeat(np.arange(k), self.n_support_), k)

    def _values(self, rows: Rows) -> Array:
        """Values (n, machines) at these rows."""
        return (
            rows.map(partial(_linear_scores, self.coef_, self.intercept_)) if self._linear else super()._values(rows)
        )

    def decision_function(self, X: Any) -> Array:
        """Values (n,) for two classes, above 0 for the second; else (n, k), or (n, pairs) of shape 'ovo'."""
        values, k = self._values(self._rows(X)), len(self.classes_)
        if k == 2:
            return values[:, 0]
        return values if self.decision_function_shape == "ovo" else self._pairs.scores(values, k)

    def predict(self, X: Any) -> Array:
        """The class of each row (n,)."""
        check_is_fitted(self)
        return self.classes_[self._pairs.winners(self._values(self._rows(X)), len(self.classes_), False)]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared norms of all machines, each scaled so that its nearest row has y f(x) = 1.

        Infinite where a row is on the wrong side. With a ridge nothing is scaled, and slacks are paid for instead.
        """
        labelled = encode_labels(self._rows(X, y, sample_weight, "classes"), self.classes_).rows.load()
        values, penalty, loss = self._values(labelled), 0.0, 0.0
        for column, side in enumerate(self._pairs.sides(len(self.classes_))):
            machine = two_sided(np.asarray(labelled.y), labelled.w, side)
            used, half = machine.C > 0, 0.5 / float(self.margin_[column]) / float(self.margin_[column])
            reach = (machine.y * values[machine.rows, column])[used]
            ridge = float(self.ridge_[column])
            if ridge > 0:
                loss += float(machine.C[used] @ np.maximum(0.0, 1.0 - reach) ** 2) / (2 * ridge)
            else:
                lowest = float(reach.min(initial=np.inf))
                half = half / lowest / lowest if lowest > 0 else np.inf
            penalty += half
        return Objective(penalty + loss, loss, penalty)


def _linear_scores(coef: Array, intercept: Array, block: Block) -> Array:
    return np.asarray(block.X @ coef.T) + intercept
