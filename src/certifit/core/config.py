"""Choices for all fits inside a context: when proofs are made, and how much work they are worth.

    with certifit.config(certify="audit"):      # a search that throws most fits away
        search.fit(X, y)
    certifit.audit(search.best_estimator_, X, y)

    with certifit.config(proof="best"):         # k-means: that no clustering is better, on many small tables
        model.fit(X)

They are no settings of an estimator: `get_params` and model files know nothing of them. A clone that is made inside
the context takes them along to the thread or process that fits it, so that they reach the workers of joblib and Dask.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from certifit.core.certificate import Certificate
from certifit.core.settings import Setting


@dataclass(frozen=True)
class ProofChoice:
    """When a fit is proved, and how much of its own time the proof may take."""

    certify: str = "fit"  # or "audit": later, by `audit(model, X, y)`
    proof: str = "quick"  # a small part of the fit's time; or "best": whatever helps


_USUAL = ProofChoice()
_chosen: ContextVar[ProofChoice] = ContextVar("proof_choice", default=_USUAL)
_ALLOWED = {"certify": Setting(choices=("fit", "audit")), "proof": Setting(choices=("quick", "best"))}


@contextmanager
def config(*, certify: str | None = None, proof: str | None = None) -> Iterator[None]:
    """Choose for all fits inside this context when they are proved, and how much work that is worth.

    Parameters
    ----------
    certify : 'fit' or 'audit'
        'audit' leaves out proofs that take time of their own: `certificate_` then has the kind 'unproved', until
        `audit(model, X, y)` proves the model. For searches that throw most fits away.
    proof : 'quick' or 'best'
        'best' spends more time than the fit itself where that proves more: the semidefinite bound of k-means.

    Both are as before where they are not given, outside of all contexts 'fit' and 'quick'. They hold in this thread,
    and for clones made in it wherever they are fitted: scikit-learn's searches with `n_jobs`, joblib's and Dask's
    workers. A model that is sent to a worker without `sklearn.base.clone` is proved as usual there.

    Examples
    --------
    >>> import certifit
    >>> from certifit import PCA
    >>> X = [[1.0, 2.0], [3.0, 5.0], [5.0, 9.0]]
    >>> with certifit.config(certify="audit"):
    ...     model = PCA(n_components=1).fit(X)
    >>> model.certificate_.kind, certifit.audit(model, X).holds
    ('unproved', True)
    """
    asked = {name: value for name, value in (("certify", certify), ("proof", proof)) if value is not None}
    for name, value in asked.items():
        _ALLOWED[name].check(name, value)
    token = _chosen.set(replace(_chosen.get(), **asked))
    try:
        yield
    finally:
        _chosen.reset(token)


class CarriedChoice(NamedTuple):
    """What was chosen where a clone was made."""

    choice: ProofChoice
    process: int
    thread: int

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was made in another thread or process: here the context itself says what to do."""
        return (self.process, self.thread) != (os.getpid(), threading.get_ident())


def carry_choice(estimator: Any, clone: Any) -> None:
    """Note on a clone what is chosen here, or was where the estimator was cloned."""
    before: CarriedChoice | None = vars(estimator).get(_CARRIED)
    if _chosen.get() != _USUAL:
        before = CarriedChoice(_chosen.get(), os.getpid(), threading.get_ident())
    if before is not None:
        vars(clone)[_CARRIED] = before


@contextmanager
def choice_of_clone(estimator: Any) -> Iterator[None]:
    """Fit a clone under what was chosen where it was made, if that is another thread or process; once only."""
    carried: CarriedChoice | None = vars(estimator).pop(_CARRIED, None)
    token = _chosen.set(carried.choice) if carried is not None and carried.is_elsewhere else None
    try:
        yield
    finally:
        if token is not None:
            _chosen.reset(token)


_CARRIED = "_carried_choice"


def carrying_choice(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs under what is chosen here, in whatever thread or process it is called."""
    return function if _chosen.get() == _USUAL else partial(_call_under, _chosen.get(), function)


def _call_under(choice: ProofChoice, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    token = _chosen.set(choice)
    try:
        return function(*args, **kwargs)
    finally:
        _chosen.reset(token)


def wants_best_proof() -> bool:
    """Whether a proof may take longer than the fit."""
    return _chosen.get().proof == "best"


def proves_later() -> bool:
    """Whether the proof is left to an audit."""
    return _chosen.get().certify == "audit"


def certified(certify: Callable[..., Certificate], *args: Any, **kwargs: Any) -> Certificate:
    """Return the certificate `certify(*args, **kwargs)`, or one that says that its proof is left to an audit."""
    return unproved() if proves_later() else certify(*args, **kwargs)


def unproved() -> Certificate:
    """Return the certificate of a fit whose proof is left to an audit."""
    return Certificate("unproved", "nothing is proved yet; audit(model, X, y) proves it")
