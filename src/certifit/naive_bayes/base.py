"""What every naive Bayes shares: one pass that sums statistics by class, closed-form parameters, scores, posterior.

    p(c | x) ∝ π_c Πⱼ p(xⱼ | θ_cj),    θ from  min - Σᵢ wᵢ [log π_{yᵢ} + Σⱼ log p(xᵢⱼ | θ_{yᵢ,j})] + smoothing

A `Part` says how columns are distributed within a class: which sums it needs, which parameters follow from them and
how a row scores. The estimators declare a part and scikit-learn's names for its parameters; the rest is here.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 4.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.naive_bayes import moments as checker
from certifit.core import Attributes, Estimator, Objective
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Matrix, Rows, encode_labels, tree_sum
from certifit.rows.checks import check_finite

PIECE = 2**21  # entries of a sparse block that are made dense at a time


class Part(ABC):
    """How columns are distributed within a class. Immutable; goes to workers with every task."""

    State: ClassVar[Any]  # class of the sums that are kept: a dataclass of arrays with `+`
    Params: ClassVar[Any]  # class of the parameters, a NamedTuple
    sparse: ClassVar[bool] = False  # takes CSR; else it is given dense pieces

    columns: tuple[int, ...] = ()  # their numbers in the whole table, for messages; empty: all of them

    def place(self, j: int) -> int:
        """The number of a column in the whole table."""
        return self.columns[j] if self.columns else j

    def prepare(self, block: Block, k: int) -> Part:
        """The part with what its sums are measured about, from the first block."""
        return self

    @abstractmethod
    def sums(self, block: Block, k: int) -> Any:
        """The statistics of a block by class; y are class numbers."""

    def again(self, total: Any) -> Part | None:
        """A part that measures better, if these sums lost digits."""
        return None

    def state(self, total: Any) -> Any:
        """What is kept of the sums."""
        return total

    @abstractmethod
    def params(self, state: Any) -> Any:
        """The parameters of every class, a NamedTuple of arrays."""

    @abstractmethod
    def scores(self, params: Any, X: Matrix) -> Array:
        """Σⱼ log p(xⱼ | θ_c), (rows, k), over the columns that a row has."""

    @abstractmethod
    def penalty(self, params: Any, state: Any) -> float:
        """What the smoothing's pseudo-observations add to the objective."""

    @abstractmethod
    def evidence(self, params: Any, state: Any, tol: float) -> list[checker.Evidence]:
        """The moment equations at these parameters, from the sums."""

    def keep(self, state: Any) -> Any:
        """A state as plain arrays, to be stored with the model."""
        return {field.name: getattr(state, field.name) for field in fields(state)}

    def restore(self, kept: Any) -> Any:
        return self.State(**kept)


class NotFinite(Exception):
    """A block has an infinity; says where only once it is looked for."""


@contextmanager
def _naming_infinities(rows: Rows) -> Iterator[None]:
    try:
        yield
    except NotFinite:
        rows.each(partial(check_finite, names=rows.names, missing=True))  # raises, with the place
        raise


def refuse_infinities(X: Matrix) -> None:
    if np.isinf(X.data if sparse.issparse(X) else X).any():
        raise NotFinite


def measure(part: Part, rows: Rows, k: int) -> Any:
    """One pass; a second only where the first block was not like the rest."""
    with _naming_infinities(rows):
        return _measure(part, rows, k)


def _measure(part: Part, rows: Rows, k: int) -> Any:
    part = part.prepare(next(iter(rows)), k)
    total = rows.sum(partial(_sums, part, k))
    better = part.again(total)
    if better is not None:
        part = better
        total = rows.sum(partial(_sums, part, k))
    return part.state(total)


def _sums(part: Part, k: int, block: Block) -> Any:
    if part.sparse or not sparse.issparse(block.X):
        return part.sums(block, k)
    assert block.y is not None
    return tree_sum(
        part.sums(Block(X, block.y[here], block.w[here], block.start + here.start), k)
        for here, X in _dense_pieces(block.X)
    )


def _dense_pieces(X: Matrix) -> Iterator[tuple[slice, Array]]:
    step = max(1, PIECE // X.shape[1])
    for first in range(0, X.shape[0], step):
        here = slice(first, min(first + step, X.shape[0]))
        yield here, X[here].toarray()


def _joint(part: Part, params: Any, log_prior: Array, block: Block) -> Array:
    if part.sparse or not sparse.issparse(block.X):
        scores = part.scores(params, block.X)
    else:
        scores = np.concatenate([part.scores(params, X) for _, X in _dense_pieces(block.X)])
    scores += log_prior
    return scores


def _possible(joint: Array, log_prior: Array) -> Array:
    """Rows that no class can have produced say nothing of the class: the prior is left."""
    nowhere = joint.max(axis=1) == -np.inf
    if nowhere.any():
        joint[nowhere] = log_prior
    return joint


def _winner(part: Part, params: Any, log_prior: Array, fallback: Array, block: Block) -> Array:
    return _possible(_joint(part, params, log_prior, block), fallback).argmax(axis=1)


def _posterior(part: Part, params: Any, log_prior: Array, fallback: Array, block: Block) -> Array:
    """Log-probabilities (rows, k); the likeliest class's is log1p of the others', accurate next to 0."""
    log_p = _possible(_joint(part, params, log_prior, block), fallback)
    rows, top = np.arange(len(log_p)), log_p.argmax(axis=1)
    log_p -= log_p[rows, top][:, None]
    others = np.exp(log_p)
    others[rows, top] = 0.0
    log_p -= np.log1p(others.sum(axis=1))[:, None]
    return log_p


def _loss(part: Part, params: Any, log_prior: Array, block: Block) -> float:
    some = block.w > 0
    assert block.y is not None
    own = _joint(part, params, log_prior, block)[some, block.y[some]]
    return float(-(block.w[some] @ own))


class NaiveBayesClassifier(ClassifierMixin, Estimator):
    """Base of the naive Bayes estimators: a subclass names its part, its prior and its attributes."""

    target = "classes"
    sparse = True
    missing = True
    tol: ClassVar[float] = 1e-10  # what `exact` means: residual of the moment equations

    classes_: Array
    class_count_: Array
    sums_: Any

    @abstractmethod
    def _part(self) -> Part:
        """The part, from the settings."""

    @abstractmethod
    def _publish(self, params: Any, state: Any, prior: Array) -> Attributes:
        """Parameters and prior by scikit-learn's names."""

    @abstractmethod
    def _params(self) -> Any:
        """The part's parameters, from the fitted attributes."""

    @abstractmethod
    def _given_prior(self, k: int) -> Array | None:
        """The prior that was asked for; None: the share of each class."""

    def _log_prior(self) -> Array:
        return log(self.class_prior_)

    def _joint_prior(self) -> Array:
        """What the joint score adds to the columns' scores."""
        return self._log_prior()

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows, fewest=1)
        part = self._part()
        return self._learn(part, labels.classes, labels.weight, measure(part, labels.rows, len(labels.classes)))

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add these rows to those seen: the same model as one `fit` on all of them.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : array of every class there will be; needed in the first call only
        """
        first = not hasattr(self, "classes_")
        known = self._known_classes(classes, first)
        with self._all_or_nothing(first):
            rows = self._rows_to_fit(X, y, sample_weight, reset=first)
            part = self._part()
            labels = encode_labels(rows, known)
            count, state = labels.weight, measure(part, labels.rows, len(known))
            if not first:
                count, state = self.class_count_ + count, part.restore(self.sums_) + state
            attributes = self._learn(part, known, count, state)
        self.__dict__.update(attributes)
        return self

    def _known_classes(self, classes: Any, first: bool) -> Array:
        if classes is None:
            if first:
                raise DataError(
                    got="no classes in the first call to partial_fit",
                    wanted="classes=, every label there will be",
                    fix="Later calls do not need it.",
                )
            return self.classes_
        known = np.unique(np.asarray(classes))
        if not first and not np.array_equal(known, self.classes_):
            raise DataError(
                got=f"classes={known.tolist()}",
                wanted=f"those of the first call to partial_fit, {self.classes_.tolist()}, or none",
            )
        return known

    def _learn(self, part: Part, classes: Array, count: Array, state: Any) -> Attributes:
        params = part.params(state)
        given = self._given_prior(len(classes))
        prior = count / count.sum() if given is None else given
        evidence = [checker.priors(log(prior), count, given, self.tol), *part.evidence(params, state, self.tol)]
        return {
            "classes_": classes,
            "class_count_": count,
            **self._publish(params, state, prior),
            "sums_": part.keep(state),
            "certificate_": checker.assemble(evidence, self.tol),
        }

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, class), (n, k); -inf where a class cannot have produced a row."""
        check_is_fitted(self)
        return self._map(X, partial(_joint, self._part(), self._params(), self._joint_prior()))

    def predict_log_proba(self, X: Any) -> Array:
        """Log-probability of each class, (n, k); a row that no class can have produced gets the prior."""
        check_is_fitted(self)
        return self._map(X, partial(_posterior, self._part(), self._params(), self._joint_prior(), self._log_prior()))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, k)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        check_is_fitted(self)
        find = partial(_winner, self._part(), self._params(), self._joint_prior(), self._log_prior())
        return self.classes_[self._map(X, find)]

    def _map(self, X: Any, f: Callable[[Block], Array]) -> Array:
        rows = self._rows(X)
        with _naming_infinities(rows):
            return rows.map(f)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Negative joint log-likelihood of these rows (data term) plus that of the fit's pseudo-observations."""
        rows = self._rows(X, y, sample_weight, target="classes")
        rows = encode_labels(rows, self.classes_).rows
        part, params = self._part(), self._params()
        with _naming_infinities(rows):
            data = float(rows.sum(partial(_loss, part, params, self._joint_prior())))
        penalty = part.penalty(params, part.restore(self.sums_))
        return Objective(data + penalty, data, penalty)


def log(p: Array) -> Array:
    """log p with log 0 = -inf."""
    with np.errstate(divide="ignore"):
        return np.log(p)


def check_amount(value: Any, name: str) -> float:
    """A setting that is a finite number of at least 0."""
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise DataError(got=f"{name}={value!r}", wanted="a finite number of at least 0")
    return float(value)


def check_prior(prior: Any, k: int, name: str) -> Array | None:
    """A given prior as an array (k,)."""
    if prior is None:
        return None
    p = np.asarray(prior, dtype=np.float64)
    if p.shape != (k,) or not (p >= 0).all() or not np.isclose(p.sum(), 1.0):
        raise DataError(
            got=f"{name}={np.array2string(p, threshold=10)}",
            wanted=f"{k} probabilities, one for each class in sorted order, that sum to 1",
        )
    return p
