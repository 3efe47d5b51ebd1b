"""Check any fitted model, ours or another library's, from its fitted attributes and the data alone.

>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> import certifit
>>> X, y = load_iris(return_X_y=True)
>>> certifit.audit(LogisticRegression(max_iter=1000, tol=1e-8).fit(X, y), X, y).holds
True
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.checkers.fitted import AuditTuning
from certifit.checkers.plain_attributes import check_plain_attributes
from certifit.checkers.registry import AuditedModel, audited_models, find_audited
from certifit.core import Certificate, Check, Estimator, Setting
from certifit.exceptions import DataError


def audit(
    model: Any,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    tol: float | None = None,
    like: str | type | None = None,
    **beside: Any,
) -> Certificate:
    """Recompute a fitted model's certificate from the data. The checker uses no code of the solver.

    Parameters
    ----------
    model : any fitted estimator of certifit; a class of scikit-learn, celer, glum, skglm or faiss of the same name
        with the same fitted attributes (also SelectKBest, MiniBatchKMeans, BisectingKMeans, LogisticRegressionCV); a
        booster or estimator of LightGBM or XGBoost; interpret's EBM without interactions; or results of a statsmodels
        GLM, OLS, WLS, Logit, Probit or Poisson fit (they carry their data: X and y may be left out). Of a Pipeline
        the last step is audited on what the steps before it produce, and so is every step that is known; of a
        GridSearchCV the best estimator, of a TransformedTargetRegressor its regressor, of a
        CalibratedClassifierCV(ensemble=False) its classifier
    X, y, sample_weight : the data it was fitted on, in any form that `fit` takes
    tol : relative gap to ask for; by default 1e-4 or, for certifit's models, what the fit asked for (at most 1e-2)
    like : a known class, or its name, whose problem the model solved, for classes that are not known by their name
        and for subclasses of certifit's
    **beside : offset, exposure or trials of a generalised linear model that was fitted with them; effort of a
        clustering's lower bound (1 by default; 10 takes up to a thousand times as long and proves more)

    Returns
    -------
    Certificate : what is proved; `holds` says whether it is enough

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X, y = [[0.0], [1.0], [2.0], [4.0]], [1.0, 0.0, 3.0, 4.0]
    >>> model = Ridge(alpha=1.0).fit(X, y)
    >>> audit(model, X, y).holds
    True
    >>> model.coef_ = model.coef_ + 0.1
    >>> audit(model, X, y).holds
    False
    """
    if tol is not None:
        Setting(float, least=0, below=1).check("tol", tol)
    like = like.__name__ if isinstance(like, type) else like
    if like is not None and not isinstance(like, str):
        raise DataError(
            got=f"like={like!r}", wanted="a class or its name", fix="like=LogisticRegression or its name, say."
        )
    unwrapped = None if like or isinstance(model, Estimator) else unwrap(model, X, y)
    if unwrapped is not None:
        found = audit(unwrapped.model, unwrapped.X, unwrapped.y, sample_weight, tol=tol, **beside)
        return replace(found, checks=(*found.checks, *unwrapped.checks), facts={**found.facts, **unwrapped.facts})
    if hasattr(model, "encode_labelled"):
        return _audit_table_model(model, X, y, sample_weight, tol)
    known = find_audited(model, like)
    _check_arguments(model, X, beside, known)
    if isinstance(model, Estimator):
        model._check_settings()
    ours = type(model).__module__.startswith("certifit.") and hasattr(model, "get_params")
    if ours or isinstance(model, Estimator):
        check_plain_attributes(model)
    with _without_riddles(model):
        return known.auditor(model, X, y, sample_weight, _tolerance(model, tol), **beside)


def _audit_table_model(model: Any, X: Any, y: Any, sample_weight: Any, tol: float | None) -> Certificate:
    """Audit the model inside a model of a table on the encoded rows; the encoding is learnt again and compared."""
    if not hasattr(model, "model_"):
        raise DataError(
            got=f"a {type(model).__name__} without model_", wanted="a fitted model", fix="Call fit first."
        )
    model._check_settings()
    check_plain_attributes(model)
    with _without_riddles(model):  # a column of no spread divides by 0, and then nothing holds
        rows = model.encode_labelled(X, y, sample_weight)
        checks = tuple(Check(f"{words} (1: yes)", 1.0, 0.0) for words in model.disagreements(rows.data))
    found = audit(model.model_, rows, tol=tol)
    # What columns of numbers become is part of the problem: a bound for others says nothing about these rows.
    bound = np.nan if checks else found.bound
    return replace(found, bound=bound, checks=(*found.checks, *checks))


def _tolerance(model: Any, tol: float | None, tuning: AuditTuning = AuditTuning()) -> float:
    if tol is not None:
        return float(tol)
    own = getattr(model, "tol", None) if isinstance(model, Estimator) else None
    return tuning.foreign if own is None else min(float(own), tuning.loosest)


def _check_arguments(model: Any, X: Any, beside: dict[str, Any], known: AuditedModel) -> None:
    """Refuse what `audit` cannot use, before anything is computed."""
    name = type(model).__name__
    strange = [word for word in beside if word not in known.beside]
    if strange:
        wanted = f"one of {', '.join(known.beside)}" if known.beside else "X, y, sample_weight, tol and like only"
        raise DataError(got=f"{strange[0]}= for a {name}", wanted=wanted)
    if X is None and not hasattr(model, "params"):  # statsmodels' results carry their data
        raise DataError(got="no X", wanted=f"the data that the {name} was fitted on", fix="audit(model, X, y)")


@contextmanager
def _without_riddles(model: Any) -> Iterator[None]:
    """Refuse attributes that do not fit together, as no fit leaves them, in words."""
    try:
        with np.errstate(all="ignore"):  # numbers that are not finite never hold, and need no second warning
            yield
    except DataError:
        raise
    except Exception as error:
        # Compiled loops that predict refuse shapes that they were not compiled for.
        if not isinstance(error, _MISFITS) and not type(error).__module__.startswith("numba."):
            raise
        raise DataError(
            got=f"a {type(model).__name__} whose attributes do not fit together ({type(error).__name__}: {error})",
            wanted="the settings and fitted attributes as its fit left them",
            fix="Fit it again, on the data given here.",
        ) from error


_MISFITS = (
    LookupError, AttributeError, ArithmeticError, TypeError, np.linalg.LinAlgError, AssertionError,
    NotImplementedError,
)  # fmt: skip


# Wrappers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unwrapped:
    """What a wrapper holds: the model to audit, the data it was fitted on, and what is to be said of the wrapper."""

    model: Any
    X: Any
    y: Any
    facts: dict[str, str]
    checks: tuple[Check, ...] = ()
    rows: str = "as given"  # what was done to them before, in words


def unwrap(model: Any, X: Any, y: Any) -> Unwrapped | None:
    """The model inside a pipeline, a search, a transformed target or a calibration; None where this is none."""
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        return _unwrap_pipeline(model, X, y)
    if hasattr(model, "best_params_") and hasattr(model, "estimator"):
        return _unwrap_search(model, X, y)
    if hasattr(model, "regressor_") and hasattr(model, "transformer_"):
        return _unwrap_transformed_target(model, X, y)
    if hasattr(model, "calibrated_classifiers_"):
        return _unwrap_calibrated(model, X, y)
    return None


def _unwrap_pipeline(model: Any, X: Any, y: Any) -> Unwrapped:
    """The last step, on what the steps before it produce; those that are known are audited on the way."""
    if X is None:
        raise DataError(got="no X", wanted="the data that the pipeline was fitted on", fix="audit(model, X, y)")
    checks, taken = [], []
    for name, step in model.steps[:-1]:
        if step in (None, "passthrough"):
            continue
        if type(step).__name__ in audited_models():
            found = audit(step, X, y)
            checks.append(Check(f"step {name} fails its own audit (1: yes)", float(not found.holds), 0.0))
        else:
            taken.append(name)
        X = step.transform(X)
    facts = {"audited": f"the last step, {model.steps[-1][0]}, on what the steps before it produce"}
    if taken:
        facts["taken as they are"] = ", ".join(taken)
    steps = [type(step).__name__ for _, step in model.steps[:-1] if step not in (None, "passthrough")]
    return Unwrapped(model.steps[-1][1], X, y, facts, tuple(checks), f"after {', '.join(steps)}")


def _unwrap_transformed_target(model: Any, X: Any, y: Any) -> Unwrapped:
    if y is None:
        raise DataError(
            got=f"no y for a {type(model).__name__}",
            wanted="the target that it was fitted on, before it is transformed",
            fix="audit(model, X, y)",
        )
    target = np.asarray(y)
    moved = model.transformer_.transform(target.reshape(len(target), -1))
    moved = moved[:, 0] if target.ndim == 1 and moved.ndim == 2 else moved
    facts = {
        "audited": "the regressor, on the transformed target",
        "taken as it is": "the target's transformer; its inverse, by which predictions are made, is not looked at",
    }
    return Unwrapped(model.regressor_, X, moved, facts, rows="with a transformed target")


def _unwrap_search(model: Any, X: Any, y: Any) -> Unwrapped:
    if not hasattr(model, "best_estimator_"):
        raise DataError(
            got=f"a {type(model).__name__} with refit=False",
            wanted="one whose best estimator was fitted on all rows",
            fix="Set refit=True, or fit its best_params_ yourself and audit that.",
        )
    facts = {"audited": "best_estimator_, fitted on all rows; the choice among candidates is not"}
    settings = model.best_estimator_.get_params()
    other = [name for name, value in model.best_params_.items() if repr(settings.get(name)) != repr(value)]
    check = Check("settings of best_estimator_ that are not best_params_", float(len(other)), 0.0)
    return Unwrapped(model.best_estimator_, X, y, facts, (check,))


def _unwrap_calibrated(model: Any, X: Any, y: Any) -> Unwrapped:
    if len(model.calibrated_classifiers_) != 1 or getattr(model, "ensemble", True) is True:
        raise DataError(
            got=f"a {type(model).__name__} whose classifiers were each fitted on a part of the rows",
            wanted="one classifier fitted on all rows (ensemble=False)",
            fix="Audit each: audit(c.estimator, X[train], y[train]) for c in calibrated_classifiers_.",
        )
    facts = {"audited": "the classifier, fitted on all rows; its calibration is not"}
    return Unwrapped(model.calibrated_classifiers_[0].estimator, X, y, facts)
