"""The base class of every estimator, with scikit-learn's interface: `fit` is written here, once.

`fit` checks the settings, turns any table into rows, calls the model's own `_fit(rows, previous)` and keeps the
fitted attributes that it returns, or none where it fails.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from certifit.core.answers import wrap_methods, wrap_output
from certifit.core.certificate import Certificate
from certifit.core.compiling import notice
from certifit.core.config import carry_choice
from certifit.core.cure import cure
from certifit.core.settings import Settings, refusing_unknown, unknown_parameter, usual_settings
from certifit.core.text_table import printable
from certifit.core.watch import Attributes, Watch
from certifit.exceptions import CertificateWarning, DataError, NoSolutionError, NotANumberError, warn_caller
from certifit.files.known_fits import fit_in_words, fresh_seed
from certifit.files.pass_log import PassLog
from certifit.rows.as_rows import as_rows
from certifit.rows.checks import Target
from certifit.rows.kept_passes import keeping
from certifit.rows.rows import Rows
from certifit.rows.threads import single_threaded_blas

if TYPE_CHECKING:
    Method = TypeVar("Method")

    def with_callbacks(method: Method) -> Method:
        """Keep the type of a method, which scikit-learn's decorator would lose."""
else:
    from sklearn.callback import with_callbacks


class Objective(NamedTuple):
    """The number that a fit minimises, and its two parts."""

    total: float
    data: float
    penalty: float


@dataclass(frozen=True)
class FittedBox:
    """What scikit-learn's box of a fitted estimator unfolds: the certificate, and the table of attributes."""

    attributes: Any  # scikit-learn's table
    certificate: Certificate

    def __len__(self) -> int:
        return 1 + len(self.attributes)

    def _repr_html_inner(self) -> str:
        verdict = f"{self.certificate.kind}, {'holds' if self.certificate.holds else 'does NOT hold'}"
        unfolded = f"<summary>Certificate: {verdict}</summary>{self.certificate._repr_html_()}"
        return f'<div class="estimator-table"><details>{unfolded}</details></div>{self.attributes._repr_html_inner()}'


@contextmanager
def _overflow_in_words() -> Iterator[None]:
    """Say in our own words what LAPACK and SciPy say of numbers that overflowed or vanished on the way."""
    try:
        yield
    except ValueError as error:
        told = str(error)
        if isinstance(error, DataError | NoSolutionError) or not any(words in told for words in _OVERFLOWED):
            raise
        raise NotANumberError(
            got=f"numbers that are not finite on the way ({told})",
            wanted="columns whose squares neither overflow nor vanish",
            fix="Rescale the columns, for instance to unit variance.",
        ) from error


_OVERFLOWED = ("infs or NaNs", "must be finite", "did not converge", "Singular matrix")


class EstimatorType(ABCMeta):
    """The type of estimators' classes, by which something is done after every base class did its own to methods."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any) -> None:
        super().__init__(name, bases, namespace, **keywords)
        wrap_output(cls)


class Estimator(CallbackSupportMixin, BaseEstimator, metaclass=EstimatorType):
    """An estimator whose fit carries a certificate; where a fit fails or is interrupted, it is left unfitted.

    Networks alone keep what an interrupted fit has learnt, with a certificate that proves nothing.
    """

    target: ClassVar[Target] = "none"  # what `fit` needs as y
    sparse: ClassVar[bool] = False  # whether X may be a sparse (CSR) matrix
    missing: ClassVar[bool] = False  # whether X may have missing entries (NaN)
    settings: ClassVar[Settings] = {}  # the values that its parameters may have
    # fitted attributes that tell how the fit went: no method computes with them, and no audit looks at them
    diagnostics: ClassVar[tuple[str, ...]] = ("history_", "n_iter_")
    finite: ClassVar[bool] = True  # whether `fit` looks for infinities first; else `_fit` refuses them itself
    # parameters of scikit-learn's class that only steer its solver: accepted so that its calls run, and not used
    ignored: ClassVar[tuple[str, ...]] = ()
    # why a parameter, a default, an attribute or a method of scikit-learn's class is missing or different here
    differences: ClassVar[dict[str, str]] = {}

    # Names of columns are no metadata of rows, which scikit-learn would route.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"columns": UNUSED, "checkpoint": UNUSED}
    __metadata_request__partial_fit: ClassVar[dict[str, str]] = {"columns": UNUSED}

    _param_names: ClassVar[list[str]]  # of this very class, once they were asked for
    _known_settings: ClassVar[Settings]  # the same: what all of its parameters may be

    certificate_: Certificate

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Give methods lazy answers, and refuse unknown parameters in words that name the class, not its parent."""
        wrap_methods(cls)
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            cls.__init__ = refusing_unknown(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        unknown = [name for name in params if "__" not in name and name not in self._get_param_names()]
        if unknown:
            raise DataError(**unknown_parameter(type(self), unknown[0]))
        return super().set_params(**params)

    def __sklearn_is_fitted__(self) -> bool:
        """Say whether there are fitted attributes; scikit-learn would look at all of them before every answer."""
        known = vars(self)
        return "certificate_" in known or any(name[-1:] == "_" and name[:2] != "__" for name in known)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters, which scikit-learn would read from the signature at every fit."""
        if "_param_names" not in vars(cls):
            cls._param_names = super()._get_param_names()
        return list(cls._param_names)

    def __sklearn_clone__(self) -> Self:
        fresh = super().__sklearn_clone__()
        carry_choice(self, fresh)
        return fresh

    @abstractmethod
    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        """Return fitted attributes, with `certificate_`; `previous` are those of an earlier fit, for a warm start."""

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets, or the name of the target column in X; ignored by unsupervised models
        sample_weight : array of non-negative row weights, or the name of a column in X
        columns : names of the columns of X to learn from; by default all but y and sample_weight
        checkpoint : path of a file that keeps every pass over the rows; after the program was killed, the same call
            goes on from there, and ends with the same bits. A complete fit deletes it.

        Returns
        -------
        self : the fitted estimator; `certificate_` says what is proved about it
        """
        return self._fit_rows(X, y, sample_weight)

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, targets: int = 1, **more: Any) -> Self:
        """Fit to rows with this many columns of y; `more` is passed on to `_fit`."""
        previous = {name: self.__dict__.pop(name) for name in [*self.__dict__] if name.endswith("_")}
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        with self._all_or_nothing():
            self._check_settings()
            notice.install()
            rows = self._rows_to_fit(X, y, sample_weight, targets=targets)
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=metadata)
            self._watch = Watch(self, context, X, y, metadata)
            try:
                with _overflow_in_words(), self._passes_kept(rows):
                    attributes = self._fit(rows, previous, **more)
            finally:
                self.__dict__.pop("_watch", None)
            context.call_on_fit_task_end(
                estimator=self, X=X, y=y, metadata=metadata, reconstruction_attributes=dict(attributes)
            )
            certificate: Certificate = attributes["certificate_"]
            if not certificate.holds and certificate.kind != "unproved":
                stopped = cure(self.get_params(deep=False), attributes, self._usual_passes())
                rest = self._familiar_words() if stopped else self._unlimited_words()
                words = [*certificate.failures(), stopped, rest]
                message = f"{type(self).__name__}: " + "; ".join(part for part in words if part)
                warn_caller(message, CertificateWarning)
        self.__dict__.update(attributes)
        return self

    @contextmanager
    def _passes_kept(self, rows: Rows) -> Iterator[None]:
        """Write every pass to the file that `fit(checkpoint=...)` names, and take those of a killed fit from it."""
        path = vars(self).get("_pass_file")  # set by `fit` while it runs
        if path is None:
            yield
            return
        if hasattr(self, "checkpoint"):  # networks learn in minibatches, and write down where they stand themselves
            own, self.__dict__["checkpoint"] = vars(self)["checkpoint"], path
            try:
                yield
            finally:
                self.__dict__["checkpoint"] = own
            return
        asked = getattr(self, "random_state", 0)
        with PassLog(path, fit_in_words(self, rows), fresh_seed()) as log, keeping(log):
            if asked is None:
                self.__dict__["random_state"] = log.seed  # a run that goes on must draw what the first one drew
            try:
                yield
            finally:
                if asked is None:
                    self.__dict__["random_state"] = None

    def _familiar_words(self) -> str:
        """Return how scikit-learn's class says that a limit was reached: filters of warnings look for such words."""
        return ""

    def _unlimited_words(self) -> str:
        """Return why a fit that no limit stopped may be short of its tolerance, and what to do."""
        return ""

    def _usual_passes(self) -> int | None:
        """Return the default of max_iter; None where there is none."""
        parameter = signature(type(self)).parameters.get("max_iter")
        return parameter.default if parameter is not None and isinstance(parameter.default, int) else None

    def _check_settings(self) -> None:
        """Refuse settings that are wrong by themselves or together, before any row is read."""
        for name, setting in self._all_settings().items():
            setting.check(name, getattr(self, name))

    @classmethod
    def _all_settings(cls) -> Settings:
        """Return the values that parameters may have: as declared, else the usual ones of those that are used."""
        if "_known_settings" not in vars(cls):
            usual = usual_settings(cls.__init__)
            cls._known_settings = {**{k: s for k, s in usual.items() if k not in cls.ignored}, **cls.settings}
        return cls._known_settings

    @contextmanager
    def _all_or_nothing(self, first: bool = True) -> Iterator[None]:
        """Hold BLAS to one thread during a fit; where the `first` fit fails, forget the features it had noted."""
        try:
            with single_threaded_blas():
                yield
        except BaseException:
            for name in ("n_features_in_", "feature_names_in_") if first else ():
                self.__dict__.pop(name, None)
            raise

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> Rows:
        """Return rows to learn from, with the target that this estimator needs."""
        return self._as_rows(X, y, sample_weight, self.target, targets, reset)

    def _rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, target: Target = "none", targets: int = 1
    ) -> Rows:
        """Return rows for a fitted model, with the columns that `fit` had."""
        if "certificate_" not in vars(self):  # else it is fitted: scikit-learn's question takes a while
            check_is_fitted(self)
        return self._as_rows(X, y, sample_weight, target, targets, reset=False)

    def _as_rows(self, X: Any, y: Any, sample_weight: Any, target: Target, targets: int, reset: bool) -> Rows:
        return as_rows(
            X,
            y,
            sample_weight,
            estimator=self,
            target=target,
            targets=targets,
            sparse=self.sparse,
            missing=self.missing,
            finite=self.finite,
            reset=reset,
            columns=vars(self).get("_columns") if reset else None,
        )

    @abstractmethod
    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the fitted model's objective on these rows: total, data term and penalty."""

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """scikit-learn's table of fitted attributes for its box in notebooks, below a line with the certificate."""
        attributes = super()._get_fitted_attr_html(doc_link)
        # What a fitted model was made from is shown within it as if it were fitted, and is not.
        return FittedBox(attributes, self.certificate_) if hasattr(self, "certificate_") else attributes

    def _html_repr(self) -> str:
        # Settings and attributes may be words from data.
        return printable(super()._html_repr())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.sparse
        tags.input_tags.allow_nan = self.missing
        tags.target_tags.required = self.target != "none"
        return tags
