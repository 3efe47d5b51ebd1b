"""Columns kept because a fitted model's importances reach a threshold: the threshold and the choice worked out again.

The importance of a column is the norm of its coefficients over all scores, or what the model says of it. The model
itself is audited where `audit` knows it; else it is fitted again, and its importances are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from certifit.core import Certificate, Check, Estimator
from certifit.core.scoring import fit_copy
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block
from certifit.rows.checks import check_finite


@dataclass(frozen=True)
class FromModelTuning:
    """The threshold beside an L1 penalty, below which a coefficient is 0; how near equal importances are."""

    zero: float = 1e-5
    close: float = 1e-7


def importances_of(fitted: Any, getter: Any, order: Any) -> Array:
    """How much each column matters to a fitted model: the norm of its coefficients over all scores."""
    if callable(getter):
        found = getter(fitted)
    elif getter != "auto":
        found = attrgetter(getter)(fitted)
    else:
        found = getattr(fitted, "coef_", None)
        found = getattr(fitted, "feature_importances_", None) if found is None else found
    if found is None:
        raise DataError(
            got=f"a {type(fitted).__name__} with neither coef_ nor feature_importances_",
            wanted="an estimator that says how much each column matters",
            fix="Give importance_getter, the path of an attribute or a function of the fitted estimator.",
        )
    found = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
    return np.abs(found) if found.ndim == 1 else np.asarray(np.linalg.norm(found, axis=0, ord=order))


def threshold_of(
    model: Any, importances: Array, threshold: Any, tuning: FromModelTuning = FromModelTuning()
) -> float:
    """The importance that columns must reach, by the setting and, where that is None, by the model's penalty."""
    if threshold is None:
        threshold = tuning.zero if _is_sparse(model) else "mean"
    if not isinstance(threshold, str):
        return float(threshold)
    scale, _, reference = threshold.rpartition("*")
    middle = {"mean": np.mean, "median": np.median}.get(reference.strip())
    try:
        return (float(scale) if scale else 1.0) * float(middle(importances))  # type: ignore[misc, operator]
    except (TypeError, ValueError) as error:
        raise DataError(
            got=f"threshold={threshold!r}", wanted="a number, 'mean', 'median' or such as '1.25*mean'"
        ) from error


def _is_sparse(model: Any) -> bool:
    """Whether a model's penalty is L1 alone, which makes coefficients exactly 0."""
    name = type(model).__name__
    ratio = getattr(model, "l1_ratio_" if name in ("ElasticNetCV", "LogisticRegressionCV") else "l1_ratio", None)
    shares = name in ("ElasticNet", "ElasticNetCV", "LogisticRegression", "LogisticRegressionCV")
    all_l1 = shares and ratio is not None and bool(np.isclose(np.asarray(ratio, dtype=np.float64), 1.0).all())
    return "Lasso" in name or getattr(model, "penalty", None) == "l1" or all_l1


def columns_kept(importances: Array, threshold: float, most: int | None) -> Array:
    """The columns (d,) whose importance reaches the threshold, at most so many of the most important."""
    kept = importances >= threshold
    if most is not None:
        first = np.argsort(-importances, kind="stable")[:most]
        kept &= np.isin(np.arange(len(kept)), first)
    return kept


class FromModelChoice(NamedTuple):
    """What a selector says."""

    estimator: Any  # fitted
    support: Array  # (d,) bool
    threshold: Any  # the setting
    most: int | None
    getter: Any
    order: Any


def certify_choice(choice: FromModelChoice, inner: tuple[Check, ...], facts: dict[str, str]) -> Certificate:
    """The certificate of a choice; `inner` are the checks of the model by which it was made."""
    importances = importances_of(choice.estimator, choice.getter, choice.order)
    if importances.shape != choice.support.shape:
        raise DataError(
            got=f"importances of {len(importances)} columns", wanted=f"one for each of {len(choice.support)}"
        )
    threshold = threshold_of(choice.estimator, importances, choice.threshold)
    wrong = float((columns_kept(importances, threshold, choice.most) != choice.support).sum())
    unknown = float((~np.isfinite(importances)).sum())
    return Certificate(
        "exact",
        "the columns kept are those whose importance in the fitted model reaches the threshold",
        checks=(
            *inner,
            Check("importances that are not finite", unknown, 0.0),
            Check("columns kept that the threshold leaves out, or the reverse", wrong, 0.0),
        ),
        facts={"threshold": threshold, **facts},
    )


def _other_settings(fitted: Any, estimator: Any) -> int:
    """How many plain settings of a fitted estimator are not those of the one that it is a copy of."""
    if type(fitted) is not type(estimator):
        return 1
    asked, plain = estimator.get_params(deep=False), (bool, int, float, str, type(None))
    return sum(
        value != asked[name] and not (value != value and asked[name] != asked[name])
        for name, value in fitted.get_params(deep=False).items()
        if isinstance(value, plain) or isinstance(asked[name], plain)
    )


def check_unseen_rows(data: ArrayRows, names: Array | None, missing: bool) -> None:
    """Refuse infinities, and NaN unless `missing`, in rows of weight 0, which the estimator does not see."""
    unseen = np.flatnonzero(data.w == 0)
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = unseen[~np.isfinite(np.asarray(data.X[unseen].sum(axis=1)).ravel())]
    for row in suspects:
        check_finite(Block(data.X[row : row + 1], None, data.w[row : row + 1], int(row)), names, missing)


def check_model(model: Any, data: ArrayRows, tol: float | None) -> tuple[tuple[Check, ...], dict[str, str]]:
    """Checks of the model by which a selector chose, and what is to be said of it."""
    from certifit.checkers.auditing import audit, unwrap
    from certifit.checkers.registry import audited_models

    fitted, name = model.estimator_, type(model.estimator_).__name__
    weights = None if (data.w == 1).all() else data.w
    other = 0 if model.prefit else _other_settings(fitted, model.estimator)
    settings = Check("settings of estimator_ that are not those of estimator", float(other), 0.0)
    if isinstance(model, Estimator) and not model.prefit and not data.w.all():  # it saw the rows that count
        used = np.flatnonzero(data.w)
        data = ArrayRows(data.X[used], None if data.y is None else data.y[used], data.w[used])
        weights = data.w if weights is not None and not (data.w == 1).all() else None
    if name in audited_models() or unwrap(fitted, data.X, data.y) is not None:
        found = audit(fitted, data.X, data.y, weights, tol=tol)
        words = f"{found.kind}: {found.claim}"
        check = Check("estimator_ fails its own audit (1: yes)", float(not found.holds), 0.0)
        return (settings, check), {"estimator_": words}
    if model.prefit:
        return (), {"estimator_": f"a {name}, fitted elsewhere: taken as it is"}
    again = fit_copy(model.estimator, data.X, data.y, weights)
    pair = [importances_of(one, model.importance_getter, model.norm_order) for one in (fitted, again)]
    off = float(np.abs(pair[0] - pair[1]).max(initial=0.0)) if pair[0].shape == pair[1].shape else np.inf
    limit = FromModelTuning().close * float(np.abs(pair[1]).max(initial=0.0))
    check = Check("importances of estimator_, fitted again, differ by", off, limit)
    return (settings, check), {"estimator_": f"a {name}, which audit does not know: fitted again"}


def audit_from_model(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a SelectFromModel, ours or scikit-learn's."""
    if not isinstance(model, Estimator):
        return _audit_foreign(model, X, y, sample_weight, tol)
    given: Any = model
    support = np.asarray(given.support_)
    if support.dtype != bool or support.shape != (given.n_features_in_,):
        raise DataError(
            got=f"support_ of shape {support.shape}",
            wanted=f"True or False for each of {given.n_features_in_} columns",
        )
    most = given.max_features(X) if callable(given.max_features) else given.max_features
    if getattr(given, "max_features_", None) != most:
        raise DataError(got=f"max_features_={getattr(given, 'max_features_', None)!r}", wanted=f"{most!r}")
    inner, facts = check_model(given, given._rows_of_fit(X, y, sample_weight), None)
    order, getter = given.norm_order, given.importance_getter
    return certify_choice(
        FromModelChoice(given.estimator_, support, given.threshold, most, getter, order), inner, facts
    )


def _audit_foreign(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check scikit-learn's: it keeps no columns, but works them out when it is asked for them."""
    from certifit.checkers.fitted import fitted_rows

    rows = fitted_rows(None, int(model.n_features_in_), X, None, sample_weight).load()
    data = ArrayRows(rows.X, None if y is None else np.asarray(y), rows.w)
    inner, facts = check_model(model, data, tol)
    most = getattr(model, "max_features_", None)
    choice = FromModelChoice(
        model.estimator_, model.get_support(), model.threshold, most, model.importance_getter, model.norm_order
    )
    return certify_choice(choice, inner, facts)
