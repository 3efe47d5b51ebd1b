"""Choices for all fits inside a context: when proofs are made, and how much work they are worth.

    with certifit.config(certify="audit"):      # a search that throws most fits away
        search.fit(X, y)
    certifit.audit(search.best_estimator_, X, y)

    with certifit.config(proof="best"):         # k-means: that no clustering is better, on many small tables
        model.fit(X)

They are no settings of an estimator: clones, model files and scikit-learn's searches know nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

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

    Both are as before where they are not given, outside of all contexts 'fit' and 'quick'. They hold in this thread;
    worker processes (`n_jobs` of scikit-learn's searches) have to choose for themselves.

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
