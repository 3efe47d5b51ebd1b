"""The scikit-learn face of every model: `fit` is written once, here; a model writes `_fit(rows)`."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from certifit.core.as_rows import as_rows
from certifit.core.certificate import Certificate
from certifit.core.checks import Target
from certifit.core.loop import Step
from certifit.core.rows import Rows
from certifit.core.threads import single_threaded_blas

Attributes = Mapping[str, Any]  # fitted attributes by name


class Objective(NamedTuple):
    """What a fit minimises, in parts."""

    total: float
    data: float
    penalty: float


class CertificateWarning(ConvergenceWarning):
    """A fit's certificate does not hold; the message states the gap that is proved."""


class Estimator(CallbackSupportMixin, BaseEstimator, ABC):
    """`fit` turns any table into rows, calls `_fit`, and installs what it returns all at once.

    A fit that fails or is interrupted leaves the estimator unfitted, never half-fitted.
    """

    target: ClassVar[Target] = "none"  # what `fit` needs as y
    sparse: ClassVar[bool] = False  # takes CSR
    holes: ClassVar[bool] = False  # takes NaN in X as missing
    finite: ClassVar[bool] = True  # has arrays searched for infinities first; else it refuses them itself, as it goes

    certificate_: Certificate
    _depth: ClassVar[int] = 3  # stack frames from a warning in `fit` up to whoever called it

    @property
    def _targets(self) -> int:
        """How many columns of y this fit needs."""
        return 1

    @abstractmethod
    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        """Fitted attributes, `certificate_` among them. `previous` holds those of an earlier fit (warm starts)."""

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets, or the name of the target column in X; ignored by unsupervised models
        sample_weight : array of non-negative row weights, or the name of a column in X

        Returns
        -------
        self : the fitted estimator; `certificate_` says what is proved about it
        """
        previous = {name: self.__dict__.pop(name) for name in [*self.__dict__] if name.endswith("_")}
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        with self._all_or_nothing():
            rows = self._rows_to_fit(X, y, sample_weight)
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=metadata)
            self._watch = Watch(self, context, X, y, metadata)
            try:
                attributes = self._fit(rows, previous)
            finally:
                self.__dict__.pop("_watch", None)
            context.call_on_fit_task_end(
                estimator=self, X=X, y=y, metadata=metadata, reconstruction_attributes=dict(attributes)
            )
            certificate: Certificate = attributes["certificate_"]
            if not certificate.holds:
                message = f"{type(self).__name__}: " + "; ".join(certificate.failures())
                warnings.warn(message, CertificateWarning, stacklevel=self._depth)
        self.__dict__.update(attributes)
        return self

    @contextmanager
    def _all_or_nothing(self, first: bool = True) -> Iterator[None]:
        """While rows are learnt from, BLAS on one thread; where that fails the `first` time, no features noted."""
        try:
            with single_threaded_blas():
                yield
        except BaseException:
            for name in ("n_features_in_", "feature_names_in_") if first else ():
                self.__dict__.pop(name, None)
            raise

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Rows:
        return as_rows(
            X,
            y,
            sample_weight,
            estimator=self,
            target=self.target,
            targets=self._targets,
            sparse=self.sparse,
            holes=self.holes,
            finite=self.finite,
            reset=reset,
        )

    def _rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, target: Target = "none", targets: int = 1
    ) -> Rows:
        """Rows for a fitted model's use: same columns as in `fit`."""
        check_is_fitted(self)
        return as_rows(
            X,
            y,
            sample_weight,
            estimator=self,
            target=target,
            targets=targets,
            sparse=self.sparse,
            holes=self.holes,
            finite=self.finite,
            reset=False,
        )

    @abstractmethod
    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The fitted model's objective on these rows: total, data term and penalty."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.sparse
        tags.input_tags.allow_nan = self.holes
        tags.target_tags.required = self.target != "none"
        return tags


class Watch:
    """Tells scikit-learn callbacks about each pass of a loop; hands out sub-watches for nested loops."""

    def __init__(self, estimator: Estimator, context: Any, X: Any, y: Any, metadata: dict[str, Any]) -> None:
        self.estimator, self.context = estimator, context
        self.data = {"X": X, "y": y, "metadata": metadata}
        self.attributes: Callable[[Any], Attributes] | None = None
        self._pass: Any = None

    @contextmanager
    def loop(self, name: str, max_iter: int, attributes: Callable[[Any], Attributes]) -> Iterator[Watch]:
        """A watch for one loop of the fit; `attributes(params)` are the fitted attributes at `params`."""
        context = self.context.subcontext(task_name=name, max_subtasks=max_iter + 1)
        watch = Watch(self.estimator, context, **self.data)
        watch.attributes = attributes
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        yield watch
        context.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def begin(self) -> None:
        self._pass = self.context.subcontext(task_name="pass")
        self._pass.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        # what our own progress display reads; contexts live as long as the fit, parameters need not
        self._pass.step, self._pass.tol = step._replace(params=None), tol
        attributes = self.attributes
        return bool(
            self._pass.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=None if attributes is None else lambda: dict(attributes(params)),
                **self.data,
            )
        )
