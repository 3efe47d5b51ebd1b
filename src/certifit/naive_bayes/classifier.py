"""What every naive Bayes estimator shares: fitting from sums by class, updating them, and the posterior of a row.

A subclass names its column model, its prior and scikit-learn's names for its parameters; the rest is here. One pass
over the rows sums statistics by class, the parameters follow in closed form, and the certificate checks their moment
equations. The sums are kept as `sums_`, so that `partial_fit` is an addition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.naive_bayes import moment_equations as checker
from certifit.core import Attributes, Estimator, Objective
from certifit.exceptions import DataError
from certifit.naive_bayes.column_model import ColumnModel, NaiveBayesTuning, dense_pieces, measure, naming_infinities
from certifit.naive_bayes.smoothing import safe_log
from certifit.rows import Array, Block, Rows, encode_labels


@dataclass(frozen=True)
class ClassPosterior:
    """Joint scores log p(x, c) of rows, and what follows from them. Immutable: it is sent to workers."""

    columns: ColumnModel
    params: Any  # of the column model
    added: Array  # what each class's joint score adds to the score of its columns, (k,)
    log_prior: Array  # (k,)
    dense_entries: int  # entries of a sparse block that are made dense at a time

    def joint(self, block: Block) -> Array:
        """log p(x, c), (rows, k); -inf where a class cannot have produced a row."""
        if self.columns.sparse or not sparse.issparse(block.X):
            scores = self.columns.scores(self.params, block.X)
        else:
            pieces = dense_pieces(block.X, self.dense_entries)
            scores = np.concatenate([self.columns.scores(self.params, X) for _, X in pieces])
        scores += self.added
        return scores

    def _joint_or_prior(self, block: Block) -> Array:
        """The joint scores; for a row that no class can have produced, the log-prior."""
        joint = self.joint(block)
        impossible = np.ascontiguousarray(joint.T).max(axis=0) == -np.inf
        if impossible.any():
            joint[impossible] = self.log_prior
        return joint

    def class_numbers(self, block: Block) -> Array:
        """The number of the most probable class of each row, (rows,)."""
        return self._joint_or_prior(block).argmax(axis=1)

    def log_probabilities(self, block: Block) -> Array:
        """log p(c | x), (rows, k); the likeliest class's is log1p of the others', hence accurate next to 0."""
        # Classes come first in memory: NumPy is several times as quick along many rows as along few classes.
        log_p = np.ascontiguousarray(self._joint_or_prior(block).T)
        log_p -= log_p.max(axis=0)
        others = np.exp(log_p)
        top = log_p == 0.0
        others[top] = 0.0
        log_p -= np.log1p(others.sum(axis=0) + (top.sum(axis=0) - 1))  # of equally likely classes all but one count
        return np.ascontiguousarray(log_p.T)

    def loss(self, block: Block) -> float:
        """- Σ w log p(x, y) over the rows with a positive weight; y are class numbers."""
        some = block.w > 0
        assert block.y is not None
        own = self.joint(block)[some, block.y[some]]
        return float(-(block.w[some] @ own))


class NaiveBayesClassifier(ClassifierMixin, Estimator):
    """Base of the naive Bayes estimators: a subclass names its column model, its prior and its attributes."""

    target = "classes"
    sparse = True
    missing = True
    tol: ClassVar[float] = 1e-10  # what `exact` means: residual of the moment equations
    _tuning: ClassVar[NaiveBayesTuning] = NaiveBayesTuning()

    classes_: Array
    class_count_: Array
    class_prior_: Array
    sums_: Any

    @abstractmethod
    def _column_model(self) -> ColumnModel:
        """How columns are distributed within a class, from the settings."""

    @abstractmethod
    def _publish(self, params: Any, state: Any, prior: Array) -> Attributes:
        """Parameters and prior by scikit-learn's names."""

    @abstractmethod
    def _params(self) -> Any:
        """The column model's parameters, from the fitted attributes."""

    @abstractmethod
    def _given_prior(self, k: int) -> Array | None:
        """The class prior (k,) that the settings ask for; None for the share of each class."""

    def _log_prior(self) -> Array:
        return safe_log(self.class_prior_)

    def _joint_prior(self) -> Array:
        """What the joint score adds to the columns' scores, (k,)."""
        return self._log_prior()

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows, fewest=1)
        columns = self._column_model()
        state = measure(columns, labels.rows, len(labels.classes), self._tuning)
        return self._learn(columns, labels.classes, labels.weight, state)

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
            self._check_settings()
            rows = self._rows_to_fit(X, y, sample_weight, reset=first)
            columns = self._column_model()
            labels = encode_labels(rows, known)
            count, state = labels.weight, measure(columns, labels.rows, len(known), self._tuning)
            if not first:
                count, state = self.class_count_ + count, columns.restore(self.sums_) + state
            attributes = self._learn(columns, known, count, state)
        self.__dict__.update(attributes)
        return self

    def _known_classes(self, classes: Any, first: bool) -> Array:
        if classes is None:
            if first:
                raise DataError(
                    got="no classes in the first call to partial_fit",
                    wanted="every label there will be",
                    fix="classes must be passed on the first call to partial_fit; later calls do not need it.",
                )
            return self.classes_
        known = np.unique(np.asarray(classes))
        if not first and not np.array_equal(known, self.classes_):
            raise DataError(
                got=f"classes={known.tolist()}",
                wanted=f"those of the first call to partial_fit, {self.classes_.tolist()}, or none",
                fix="What is given is not the same as on last call to partial_fit.",
            )
        return known

    def _learn(self, columns: ColumnModel, classes: Array, count: Array, state: Any) -> Attributes:
        """Fitted attributes from the sums: parameters, prior and certificate."""
        params = columns.params(state)
        given = self._given_prior(len(classes))
        prior = count / count.sum() if given is None else given
        evidence = [
            checker.prior_evidence(safe_log(prior), count, given, self.tol),
            *columns.evidence(params, state, self.tol),
        ]
        return {
            "classes_": classes,
            "class_count_": count,
            **self._publish(params, state, prior),
            "sums_": columns.keep(state),
            "certificate_": checker.assemble(evidence, self.tol),
        }

    def _posterior(self) -> ClassPosterior:
        check_is_fitted(self)
        added, log_prior = self._joint_prior(), self._log_prior()
        return ClassPosterior(self._column_model(), self._params(), added, log_prior, self._tuning.dense_entries)

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, class), (n, k); -inf where a class cannot have produced a row."""
        return self._map(X, self._posterior().joint)

    def predict_log_proba(self, X: Any) -> Array:
        """Log-probability of each class, (n, k); a row that no class can have produced gets the prior."""
        return self._map(X, self._posterior().log_probabilities)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, k)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        numbers = self._map(X, self._posterior().class_numbers)
        return self.classes_[numbers]

    def _map(self, X: Any, f: Callable[[Block], Array]) -> Array:
        rows = self._rows(X)
        with naming_infinities(rows):
            return rows.map(f)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Negative joint log-likelihood of these rows (data term) plus that of the fit's pseudo-observations."""
        rows = self._rows(X, y, sample_weight, target="classes")
        rows = encode_labels(rows, self.classes_).rows
        posterior = self._posterior()
        with naming_infinities(rows):
            data = float(rows.sum(posterior.loss))
        columns = posterior.columns
        penalty = columns.penalty(posterior.params, columns.restore(self.sums_))
        return Objective(data + penalty, data, penalty)


def check_prior(prior: Any, k: int, name: str) -> Array | None:
    """A given prior as an array (k,); None where the classes' shares are to be used."""
    if prior is None:
        return None
    p = np.array(prior, dtype=np.float64)  # of its own: the caller's may change
    fixes = {
        "Number of priors must match number of classes.": p.shape != (k,),
        "Priors must be non-negative.": not (p >= 0).all(),
        "The sum of the priors should be 1.": not np.isclose(p.sum(), 1.0),
    }
    wrong = [words for words, is_wrong in fixes.items() if is_wrong]
    if wrong:
        raise DataError(
            got=f"{name}={np.array2string(p, threshold=10)}",
            wanted=f"{k} probabilities, one for each class in sorted order, that sum to 1",
            fix=wrong[0],
        )
    return p
