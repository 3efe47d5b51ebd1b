"""Support vector classification with kernels, with its duality gap; more than two classes by several machines.

    min over f, b of   ½ |f|² + C Σᵢ wᵢ max(0, 1 - yᵢ (f(xᵢ) + b)),     y = ±1,  f in the space of the kernel

Solved in the dual, a working set of rows at a time (`smo`), until the gap between the two problems is small: that gap
is the certificate. Kernel values are not sums over rows, so the rows are taken into memory, whatever their source.
References: Cortes & Vapnik, Support-vector networks (1995); Schölkopf & Smola, Learning with Kernels (2002).
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.svm.calibration import CLAIM as CALIBRATED
from certifit.checkers.svm.calibration import slope_checks
from certifit.checkers.svm.kernel import price
from certifit.core import Attributes, Check, Objective
from certifit.core.settings import Setting, Settings
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, class_weight_vector, encode_labels
from certifit.rows.labels import Labels
from certifit.svm.joint_kernel.joint_machine import JOINT_SCHEMES
from certifit.svm.kernel import calibration
from certifit.svm.kernel.kernel_machine import KernelMachine, refuse_losses
from certifit.svm.kernel.recheck import recheck
from certifit.svm.kernel.schemes import MulticlassScheme, OneVsOne, OneVsRest, SvmRows, TwoSidedScheme
from certifit.svm.kernel.training import ToAttributes, TrainedMachines

SCHEMES: dict[str, MulticlassScheme] = {"ovo": OneVsOne(), "ovr": OneVsRest(), **JOINT_SCHEMES}


def _with_probability(model: SVC) -> bool:
    if not model.probability:
        raise AttributeError("probabilities are there for probability=True only; set it before fit")
    return True


class SVC(ClassifierMixin, KernelMachine):
    """Support vector classifier with a kernel; more than two classes vote pair by pair unless told otherwise.

    Parameters
    ----------
    C : float, default=1.0
        Price of a row's slack; the box of its coefficient is C times its weight. C=inf allows no slack at all, and is
        refused where the classes cannot be separated; `HardMarginSVC` says why they cannot.
    kernel : 'rbf', 'linear', 'poly', 'sigmoid', 'precomputed' or callable(A, B), default='rbf'
        A callable gives k(x, z) for all rows of A and B, for instance a sum or product of `certifit.RBF`, `Linear`,
        `Polynomial` and numbers; it is asked for a part of the rows at a time. One that is not proved positive
        semidefinite is tried on up to 1500 rows; `indefinite` says what to do where these show that it is not.
    degree, coef0 : of 'poly' and 'sigmoid', default=3 and 0.0
    gamma : 'scale', 'auto' or float, default='scale'
        'scale' is 1 / (columns · variance of all entries), rows counted by their weights; 'auto' is 1 / columns.
    tol : float, default=1e-3
        Relative duality gap at which to stop: objective - minimum <= tol * objective is then proved, up to what the
        certificate says of rounding. (Up to 512 rows cost so little that machines go on to 1e-13, unless a larger tol
        than this asks for less.)
    class_weight : dict, 'balanced' or None
    cache_size : float, default=200
        Megabytes of kernel values kept; an RBF's of narrow tables that do not fit are computed again instead.
    shrinking : ignored
        Rounds only ever touch the rows of a working set; accepted so that scikit-learn code runs unchanged.
    max_iter : int, default=-1
        Most rounds (working sets of up to 1024 rows) for each machine; -1 is no limit. A fit that gets nowhere in
        300 rounds (huge C, columns of very different scales) ends by itself and says what it has proved.
    max_time : float or None, default=None
        Seconds after which the best machines so far are returned, with what is proved about them.
    multi_class : 'ovo', 'ovr', 'weston-watkins' or 'crammer-singer', default='ovo'
        'ovo' is a machine for each pair of classes and a vote; 'ovr' one for each class against all others, the
        largest value wins. All are certified together; two classes have one machine either way. The others train
        one machine for all classes at once: see `certifit.svm.joint_kernel.joint_machine` for their losses.
    probability : bool, default=False
        Also learn probabilities, by five more fits on parts of the rows. See `predict_proba`.
    indefinite : 'warn', 'refuse' or 'project', default='warn'
        What to do with a kernel matrix that is not positive semidefinite. 'warn' trains machines whose certificate
        is `stationary`: no small change makes them better, but others may be (machines for all classes at once
        refuse). 'refuse' is an error that carries the vector which shows it. 'project' takes (up to 3000 rows) the
        nearest matrix that is: then new rows are projected alike, the certificate speaks of the projected problem,
        and predictions need all rows of the fit, not support vectors only.
    decision_function_shape : 'ovr' or 'ovo'
        Of multi_class='ovo': votes for each class, or the values of the pairs.
    break_ties : bool, default=False
        Decide between classes of equally many votes by the values of `decision_function`, not by their order.
    random_state, verbose : ignored
        The fit is deterministic; accepted so that scikit-learn code runs unchanged.

    Attributes
    ----------
    support_ : (s,) row numbers of the support vectors, class after class
    support_vectors_ : (s, d); empty for a precomputed kernel
    n_support_ : (k,) how many in each class
    dual_coef_ : (k-1, s) coefficients y α, in scikit-learn's layout; (k, s) unless multi_class='ovo';
        sparse, like support_vectors_ and coef_, where X was
    intercept_ : (machines,); where several are best, the middle of them
    classes_ : (k,)
    class_weight_ : (k,)
    gamma_ : float
    support_kinds_ : (n,) or (n, machines) words: 'margin' (0 < α < C), 'non-margin' (α = C) or 'none' (α = 0)
    slacks_, kkt_residuals_ : (n,) or (n, machines), losses and by how much each row misses its optimality condition
    support_codes_ : `support_kinds_` as small numbers
    shape_fit_ : (n, d) of the table
    n_iter_ : (machines,) rounds
    history_ : for each machine its objective, relative gap and seconds at every round
    probability_slopes_ : (pairs,) or (1,), with probability=True
    held_out_values_ : (n, machines) values of each row by machines that have not seen it, which the slopes fit best
    held_out_part_ : (n,) the part of the rows that each is in; -1 for rows that are never left out
    held_out_support_, held_out_dual_coef_, held_out_intercept_ : for each part the machines trained on all others, by
        row numbers (s,), coefficients (k-1, s) or (k, s) as in dual_coef_, and intercepts (machines,)
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC().fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    >>> round(model.score(X, y), 3)
    0.973
    >>> likely = SVC(probability=True, multi_class="ovr").fit(X, y)
    >>> bool((likely.predict_proba(X).argmax(axis=1) == likely.predict(X)).all())
    True
    """

    target = "classes"
    _one_class: ClassVar[str] = "Invalid input - all samples with positive weights belong to the same class"
    settings: ClassVar[Settings] = {
        "C": Setting(float, above=0),
        **KernelMachine.settings,
        "decision_function_shape": Setting(choices=("ovr", "ovo")),
        "multi_class": Setting(choices=tuple(SCHEMES)),
        "probability": Setting(bool),
    }
    ignored: ClassVar[tuple[str, ...]] = (*KernelMachine.ignored, "random_state")
    differences: ClassVar[dict[str, str]] = {
        **KernelMachine.differences,
        "probability": "False by default: probabilities are a part of this class, and not deprecated.",
    }

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        max_iter=-1,
        max_time=None,
        multi_class="ovo",
        probability=False,
        indefinite="warn",
        decision_function_shape="ovr",
        break_ties=False,
        verbose=False,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_time = max_time
        self.multi_class = multi_class
        self.probability = probability
        self.indefinite = indefinite
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.verbose = verbose
        self.random_state = random_state

    @property
    def _takes_indefinite(self) -> bool:
        return self.indefinite == "warn" and self.multi_class not in JOINT_SCHEMES

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.decision_function_shape == "ovo" != self.multi_class:
            raise DataError(
                got=f"decision_function_shape='ovo' with multi_class={self.multi_class!r}",
                wanted="'ovr': values of pairs are there for multi_class='ovo' only",
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began = time.perf_counter()
        self._check_square(rows)
        labels = self._labels(rows)
        classes, factor = labels.classes, class_weight_vector(labels.classes, labels.weight, self.class_weight)
        data = self._training_rows(labels.rows.load())
        known = {**data.known, "classes_": classes, "class_weight_": factor}
        code, k = data.y, len(classes)
        labelled = SvmRows(replace(data, known=known), code, price(float(self.C)) * data.w * factor[code], k)
        attributes = partial(_attributes, self, self._scheme(k), labelled)
        found = attributes(self._trained(labelled, "rounds", began, attributes))
        return {**found, **self._calibrated(labelled, found, began)} if self.probability else found

    def _labels(self, rows: Rows) -> Labels:
        """Numbered classes; a single one is refused in scikit-learn's words too: weights may be to blame."""
        try:
            return encode_labels(rows)
        except DataError as error:
            raise DataError(got=error.got, wanted=error.wanted, fix=f"{error.fix} ({self._one_class})") from None

    def _trained(self, rows: SvmRows, name: str, began: float, attributes: ToAttributes) -> TrainedMachines:
        """All machines trained on these rows, with what the checker finds true of them."""
        scheme = self._scheme(rows.k)
        found = scheme.train(self._task(name, began, attributes), rows)
        refuse_losses(float(self.C), found.beta, rows.C)
        return recheck(rows.data, scheme.machines(rows, found), found, float(self.tol), self._tuning)

    def _calibrated(self, labelled: SvmRows, found: Attributes, began: float) -> Attributes:
        """Slopes of probabilities, from the values of rows left out by machines trained on the others."""
        scheme, data, k = self._scheme(labelled.k), labelled.data, labelled.k
        part = calibration.folds(data.rows, labelled.code, k)
        values, failed = np.zeros((len(part), len(found["intercept_"]))), 0
        supports, coefs, intercepts = [], [], []
        for fold in np.unique(part[part >= 0]):
            seen, held = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
            name = f"without part {fold + 1} of {calibration.FOLDS}"
            trained = self._trained(labelled.take(seen), name, began, lambda _: found)
            values[held] = data.values(held, seen, trained.beta) + trained.intercept
            failed += not trained.certificate.holds
            kept = np.flatnonzero(trained.beta.any(axis=1))
            supports.append(data.used[seen[kept]])
            coefs.append(scheme.pack(trained.beta[kept], labelled.code[seen[kept]], k))
            intercepts.append(trained.intercept)
        weight = labelled.C / price(float(self.C))
        slopes = scheme.slopes(values, labelled.code, weight, k)
        total = data.known["shape_fit_"][0]
        spread, parts = np.zeros((total, values.shape[1])), np.full(total, -1, np.int8)
        spread[data.used], parts[data.used] = values, part
        checks = slope_checks(values, labelled.code, weight, slopes, k, scheme.pairs)
        behind = Check("parts left out whose machines are not within tolerance", float(failed), 0.0)
        certificate = found["certificate_"]
        return {
            "probability_slopes_": slopes,
            "held_out_values_": spread,
            "held_out_part_": parts,
            "held_out_support_": tuple(supports),
            "held_out_dual_coef_": tuple(coefs),
            "held_out_intercept_": np.array(intercepts).reshape(len(intercepts), values.shape[1]),
            "certificate_": replace(
                certificate, claim=f"{certificate.claim}; {CALIBRATED}", checks=(*certificate.checks, *checks, behind)
            ),
        }

    def _scheme(self, k: int) -> MulticlassScheme:
        """The scheme for k classes; two classes need a single machine, one-vs-rest or not."""
        scheme = SCHEMES[self.multi_class]
        return SCHEMES["ovo"] if k == 2 and isinstance(scheme, TwoSidedScheme) else scheme

    def _beta(self) -> Array:
        """Coefficients of the support vectors (s, machines)."""
        k = len(self.classes_)
        return self._scheme(k).unpack(self._dense_dual_coef, np.repeat(np.arange(k), self.n_support_), k)

    def decision_function(self, X: Any) -> Array:
        """Values (n,) for two classes, above 0 for the second; else (n, k), or (n, pairs) of shape 'ovo'."""
        values, k = self._values(self._rows(X)), len(self.classes_)
        if k == 2:
            return values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]
        pairs = self.decision_function_shape == "ovo"
        return values if pairs else self._scheme(k).scores(values, k)

    def predict(self, X: Any) -> Array:
        """The class of each row (n,)."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise DataError(
                got="break_ties=True with decision_function_shape='ovo'",
                wanted="'ovr' to break ties",
                fix="With 'ovo', break_ties must be False.",
            )
        return self.classes_[self._winners(self._values(self._rows(X)))]

    def _winners(self, values: Array) -> Array:
        k = len(self.classes_)
        return self._scheme(k).winners(values, k, self.break_ties)

    @available_if(_with_probability)
    def predict_proba(self, X: Any) -> Array:
        """The probability of every class (n, k); the largest is that of `predict`'s class, always.

        Two classes: 1 / (1 + exp(-a f)) of the decision value f, which is ½ on the boundary and nowhere else. Pairs:
        the same for each of them, joined as Wu, Lin & Weng (2004) do. One-vs-rest: softmax(a f). The slopes a > 0
        are likeliest for rows that the machines had not seen, each row counted by its weight and its class's; equal
        rows of a class are left out together (and not at all if they are all there is of it). Nothing is claimed
        about other rows: in particular a boundary moved by class_weight or by a skewed sample is where the
        probabilities are even, because `predict` has it there.
        """
        if hasattr(self, "certificate_") and not hasattr(self, "probability_slopes_"):
            raise NotFittedError("predict_proba is not available when fitted with probability=False; fit again.")
        values, k = self._values(self._rows(X)), len(self.classes_)
        p = self._scheme(k).probabilities(values, self.probability_slopes_, k)
        return calibration.with_winner(p, self._winners(values))

    @property
    def probA_(self) -> Array:
        """Minus the slopes of the probabilities, in LIBSVM's sign; empty without probabilities."""
        check_is_fitted(self)
        return -np.asarray(getattr(self, "probability_slopes_", np.empty(0)))

    @property
    def probB_(self) -> Array:
        """Zeros beside `probA_`: probabilities are even where decision values are 0."""
        return np.zeros_like(self.probA_)

    @available_if(_with_probability)
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared norms of all machines, and C times their losses on these rows."""
        rows = self._rows(X, y, sample_weight, "classes")
        labelled = encode_labels(rows, self.classes_).rows
        code = np.concatenate([np.asarray(block.y) for block in labelled])
        w = np.concatenate([block.w for block in labelled])
        k, C = len(self.classes_), price(float(self.C)) * w * self.class_weight_[code]
        loss, penalty = self._scheme(k).loss(self._values(rows), code, C, k), self._penalty()
        return Objective(loss + penalty, loss, penalty)


def _attributes(model: SVC, scheme: MulticlassScheme, labelled: SvmRows, trained: TrainedMachines) -> Attributes:
    """Fitted attributes, support vectors class after class."""
    code, k = labelled.code, labelled.k
    support = np.flatnonzero(trained.beta.any(axis=1))
    support = support[np.argsort(code[support], kind="stable")]
    packed = scheme.pack(trained.beta[support], code[support], k)
    return {
        **model.fitted_attributes(labelled.data, trained, support),
        "n_support_": np.bincount(code[support], minlength=k).astype(np.int32),
        "dual_coef_": model.as_given(packed, labelled.data),
    }
