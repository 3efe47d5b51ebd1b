"""Tampered attributes: damage to one fitted attribute after another; what changes an answer must not pass an audit.

As `tests/common/test_ledger.py`, over random tables and settings instead of one table for each estimator.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.random_models import random_model
from benchmarks.hunts.random_tables import decades, random_table
from benchmarks.hunts.tampering import (
    TAMPERS,
    TYPE_TAMPERS,
    damage,
    damages,
    differ,
    fitted_attributes,
    said,
)
from certifit import audit
from certifit.core import Certificate

# The checks that say how many digits of a number are known.
KNOWN_BY = {"noise_variance_": "noise variance off by", "deviance_": "deviance_ is off by"}


def try_tampering(case: HuntCase) -> None:
    rng = case.rng
    chosen = random_model(rng)
    table = random_table(rng, chosen.kind, min(chosen.most_rows, 80), 6, weights=False)
    X, y = table.X, table.y
    whole = moderate(rng, chosen.make(rng, *table.shape), X, y)
    words = f"{whole} on {table}, target {chosen.kind}"
    case.note(words)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole.fit(X, y)
            proved = audit(whole, X, y)
    except ValueError as error:
        case.note(error)
        return
    if not proved.holds:
        return
    case.count("models")
    before = said(whole, X, y)
    for name in fitted_attributes(whole):
        if name not in whole.diagnostics:
            for tamper, hurt in damages(getattr(whole, name), TAMPERS):
                _try_one(case, f"{words}: {name} {tamper.__name__}", (whole, proved), name, hurt, before, X, y)
            for tamper, hurt in damages(getattr(whole, name), TYPE_TAMPERS):
                _try_type(case, f"{words}: {name} {tamper.__name__}", whole, damage(whole, name, hurt), before, X, y)


def moderate(rng: np.random.Generator, model: Any, X: Any, y: Any) -> Any:
    """The model with a small tolerance, and a penalty of the size at which both it and the loss matter.

    Beside an extreme penalty neither intercept nor class order moves the objective by more than any tolerance.
    """
    settings, kind = model.get_params(), type(model).__name__
    variance = float(np.var(np.asarray(X, float), axis=0).mean()) or 1.0
    share, changed = decades(rng, -2, 2), {}
    if settings.get("tol") is not None:
        changed["tol"] = min(settings["tol"], 1e-6)
    if settings.get("C") is not None:
        changed["C"] = share if "gamma" in settings else share / variance
    if kind in ("Lasso", "ElasticNet"):  # above the covariances of target and columns nothing is left
        changed["alpha"] = min(share, 1.0) * (variance**0.5 * float(np.std(y)) or 1.0)
    elif kind in ("Ridge", "RidgeClassifier"):
        changed["alpha"] = share * len(X) * variance
    elif kind.endswith("Regressor") and "alpha" in settings:
        changed["alpha"] = settings["alpha"] and share * variance
    return model.set_params(**changed)


def _held(
    case: HuntCase, words: str, whole: Any, damaged: tuple[Any, Any, Any], refusals: tuple[type[Exception], ...]
) -> Certificate | None:
    """The certificate of a damaged model on X and y, if it holds; errors that are no refusals are findings."""
    try:
        found = audit(*damaged)
    except refusals:
        case.count("refused")
        return None
    except Exception as error:
        case.find(f"audit raised {type(error).__name__}", whole, f"{words}: {error}")
        return None
    case.count("audits that hold", int(found.holds))
    return found if found.holds else None


def _try_type(
    case: HuntCase, words: str, whole: Any, model: Any, before: dict[str, Any], X: Any, y: Any,
) -> None:  # fmt: skip
    """Try an attribute of another type, or none: no method may answer otherwise, though it may fail."""
    case.count("attributes of another type")
    # scikit-learn's NotFittedError is both.
    if _held(case, words, whole, (model, X, y), (ValueError, AttributeError)) is None:
        return
    after = said(model, X, y)
    answers = [m for m in before if not str(after.get(m, "Error")).endswith("Error")]
    changed = [m for m in answers if differ(before[m], after[m], 1e-5)]
    if changed:
        case.find("another type unseen", whole, f"{words} changes {', '.join(changed)}")


def _try_one(
    case: HuntCase, words: str, known: tuple[Any, Certificate], name: str, hurt: Any, before: dict[str, Any], X: Any,
    y: Any,
) -> None:  # fmt: skip
    case.count("attributes damaged")
    whole, proved = known
    model = damage(whole, name, hurt)
    found = _held(case, words, whole, (model, X, y), (ValueError,))
    if found is None:
        return
    if _equal_components(whole, model, name, X) or _equal_softmax(whole, name, hurt):
        return
    if _as_good(whole, model, X, y) and _equal_columns(found, name, whole, hurt, X):
        return
    if _as_good(whole, model, X, y) and (
        _said_so(whole, proved, found, name, hurt) or _another_optimum(whole, found, name)
    ):
        return
    if _another_best_value(whole, model, name, X, y):
        return
    if _within_the_gap(whole, found, model, name, X):
        return
    if name in KNOWN_BY and _unknown(found, KNOWN_BY[name], float(getattr(whole, name))):
        return
    after = said(model, X, y)
    # What a certificate leaves open: an answer may move by about the root of the tolerance.
    close = max(1e-5, 10 * whole.certificate_.tol**0.5, 1e-2 if np.asarray(X).dtype == np.float32 else 0.0)
    # A score is R², an accuracy or a logarithm: what matters is relative to 1, not to a score near 0. Squared
    # distances of rows that lie in a plane are rounding, and so are decision values far below margins of 1. The
    # coefficients of a path count by the log-odds that they make.
    least = {
        "score": 1.0,
        "decision_function": 1e-3,
        "coefs_paths_": 1 / max(float(np.abs(np.asarray(X, float)).max()), 1e-300),
        "feature_importances_": 1e-15,
        "threshold_": 1e-10 * float((np.asarray(X, float) ** 2).max()),
    }
    changed = [m for m in before if differ(before[m], after.get(m), close, least.get(m, 0.0))]
    if _pairs_that_tie(whole, model, X, close):
        changed = [m for m in changed if m not in ("decision_function", "predict", "score")]
    if _ties_alone(whole, before, after):
        changed = [m for m in changed if m not in ("predict", "score")]
    if _same_weights(whole, name, hurt):
        changed = [m for m in changed if m != "sample"]
    if changed and not _another_best_split(name, changed) and not _shares_of_nothing(before, changed, close):
        case.find("damage unseen", whole, f"{words} changes {', '.join(changed)}")


def _as_good(whole: Any, model: Any, X: Any, y: Any) -> bool:
    """Whether the damage leaves the objective, as the estimator itself adds it up, within the tolerance asked for.

    The checker has said so already; this is the solver's formula, which shares no code with it.
    """
    tol, optimal = whole.certificate_.tol, whole.certificate_.kind == "optimal"
    if not optimal or not hasattr(model, "predict"):
        return False
    before, after = (float(m.objective(X, y).total) for m in (whole, model))
    return bool(abs(after - before) <= 2 * tol * abs(before) + 1e-12 * whole.certificate_.scale)


def _said_so(whole: Any, proved: Certificate, found: Certificate, name: str, hurt: Any) -> bool:
    """Whether the audits themselves say that coefficients may be as far off as they were moved.

    A certificate proves how far each coefficient can be from the minimiser's, in numbers: the fitted ones by the
    audit of the fit, the damaged ones by their own. Targets of 1e6 leave coefficients of 7 open to 1.4, say.
    """
    if name not in ("coef_", "intercept_") or not found.parameter_error or not proved.parameter_error:
        return False
    old, new = np.asarray(getattr(whole, name), float), np.asarray(hurt)
    if new.shape != old.shape or new.dtype.kind != "f":
        return False
    errors = np.asarray(found.parameter_error) + np.asarray(proved.parameter_error)
    errors = errors[:, :-1] if name == "coef_" else errors[:, -1]
    if errors.size != old.size or not np.isfinite(errors).all():
        return False
    return bool((np.abs(new - old) <= errors.reshape(old.shape)).all())


def _another_optimum(whole: Any, found: Certificate, name: str) -> bool:
    """Whether these are intercepts of which several may be best, and of which the certificate says nothing.

    What is best for one of three biases of one machine for all classes depends on the others, so that there is no
    middle of the best ones; nor is it looked for beside a rounded hinge, whose slopes are all 1 next to a tiny C.
    Where a certificate speaks of coefficients it says that nothing is proved about such intercepts.
    """
    if found.parameter_error and np.isfinite(np.asarray(found.parameter_error)[:, -1]).any():
        return False
    if getattr(whole, "loss", "") == "huberised_hinge":
        return name == "intercept_"
    joint = str(getattr(whole, "multi_class", "")).replace("_", "-") in ("weston-watkins", "crammer-singer")
    return joint and name == "intercept_" and (type(whole).__name__ == "LinearSVC" or len(whole.classes_) > 2)


def _equal_columns(found: Certificate, name: str, whole: Any, hurt: Any, X: Any) -> bool:
    """Whether coefficients moved between equal columns, about which a certificate of an l1 penalty says nothing."""
    if name != "coef_" or found.parameter_error or np.shape(hurt) != np.shape(X)[1:]:
        return False
    _, which = np.unique(np.asarray(X, float), axis=1, return_inverse=True)
    return np.allclose(np.bincount(which.ravel(), whole.coef_), np.bincount(which.ravel(), hurt), rtol=1e-12)


def _ties_alone(whole: Any, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether other classes are predicted only where the move of the decision values itself makes them the best.

    Those values are compared too: a move that they are allowed may decide between two classes that were as good.
    """
    values, moved = (_of_each_class(said.get("decision_function")) for said in (before, after))
    old, new = before.get("predict"), after.get("predict")
    if (
        not hasattr(whole, "classes_")
        or np.ndim(values) != 2
        or np.shape(values) != np.shape(moved)
        or np.shape(old) != np.shape(new)
    ):
        return False
    classes = np.asarray(whole.classes_)
    if values.shape[1] != len(classes) or not np.isin(new, classes).all():
        return False
    step = 2 * np.abs(moved - values).max() + 1e-12 * np.abs(values).max()
    chosen = np.take_along_axis(values, np.searchsorted(classes, new)[:, None], axis=1)[:, 0]
    return bool((values.max(axis=1) - chosen <= step).all())


def _pairs_that_tie(whole: Any, model: Any, X: Any, close: float) -> bool:
    """Whether a kernel machine's votes moved only at rows that lie between two classes, by the values of the pairs.

    What it says of a class counts the pairs that the class wins: a pair's value of 0 wins a whole vote, or none.
    """
    if getattr(whole, "decision_function_shape", "") != "ovr" or len(whole.classes_) < 3:
        return False
    old, new = (
        copy.copy(one).set_params(decision_function_shape="ovo").decision_function(X) for one in (whole, model)
    )
    step = float(np.abs(new - old).max())
    moved = (np.sign(new) != np.sign(old)).any(axis=1)
    return step <= close * float(np.abs(old).max()) and bool((np.abs(old[moved]).min(axis=1) <= 2 * step).all())


def _of_each_class(values: Any) -> Any:
    """Decision values (n, k); two classes have one value, whose sign decides."""
    return np.column_stack([-values, values]) if np.ndim(values) == 1 else values


def _within_the_gap(whole: Any, found: Certificate, model: Any, name: str, X: Any) -> bool:
    """Whether predictions moved by no more than both gaps together leave open, where nothing says more.

    Half the squares of residuals are strongly convex in the predictions η, whatever the penalty: for the minimiser's
    η*, ½ |η - η*|² is at most the gap. So two models with gaps g and h are √(2g) + √(2h) apart at most.
    """
    squares = type(whole).__name__ in ("Lasso", "ElasticNet", "Ridge", "LinearRegression")
    if not squares or name not in ("coef_", "intercept_") or found.parameter_error or found.kind != "optimal":
        return False
    allowed = sum(np.sqrt(2 * max(c.gap, c.limit - c.tol * abs(c.objective))) for c in (whole.certificate_, found))
    return bool(np.linalg.norm(model.predict(X) - whole.predict(X)) <= allowed * (1 + 1e-6))


def _unknown(found: Certificate, check: str, value: float) -> bool:
    """Whether the audit itself says that a number is known to no digit: what it allows for rounding is as large."""
    return any(c.name == check and not c.limit < 0.5 * abs(value) for c in found.checks)


def _another_best_split(name: str, changed: list[str]) -> bool:
    """Whether importances went to another column and nothing else changed: its split parts the rows as well.

    A greedy claim says that no split is better, which the audit has scored anew, and not which of several best ones
    it is. Repeated columns have such, and so have few rows.
    """
    return name in ("trees_", "tree_", "members_") and changed == ["feature_importances_"]


def _another_best_value(whole: Any, model: Any, name: str, X: Any, y: Any) -> bool:
    """Whether leaves of a boosting took another of several medians or quantiles, all of which lower its loss alike.

    A fit takes the one in the middle; the claim is that no value of a leaf is better.
    """
    if name != "trees_" or getattr(whole, "loss", "") not in ("absolute_error", "quantile"):
        return False
    before, after = (float(m.objective(X, y).total) for m in (whole, model))
    return bool(abs(after - before) <= 1e-12 * abs(before))


def _shares_of_nothing(before: dict[str, Any], changed: list[str], close: float) -> bool:
    """Whether importances alone changed, and predictions are all the same: shares of functions that are next to 0."""
    said = before.get("predict")
    if changed != ["feature_importances_"] or np.asarray(said).dtype.kind != "f":
        return False
    return bool(np.ptp(said) <= close * np.abs(said).max())


def _equal_components(whole: Any, model: Any, name: str, X: Any) -> bool:
    """Whether these are other weights of components that are all equal on the rows: all fit them as well.

    They are equal where posteriors are the weights, up to the root of the tolerance: the likelihood changes by the
    square of that, and a certificate of a mixture is about its likelihood, which must be as it was. Beside a weight
    of 0 they have to be equal in all digits.
    """
    if name != "weights_" or not hasattr(whole, "predict_proba") or np.shape(model.weights_) != whole.weights_.shape:
        return False
    close = max(1e-3, 10 * whole.certificate_.tol**0.5)
    before, after = (float(m.score(X)) for m in (whole, model))
    if not abs(after - before) <= max(whole.certificate_.tol, 1e-9) * max(abs(before), 1.0):
        return False
    return bool(np.abs(whole.predict_proba(X) - whole.weights_).max() <= close * whole.weights_.min())


def _same_weights(whole: Any, name: str, hurt: Any) -> bool:
    """Whether these are a mixture's weights up to the rounding of float32.

    A draw by weights of 1 and 1e-12 takes another number of random bits than one by weights of 1 and 0, and every
    later draw is then another one of the same distribution.
    """
    if name != "weights_" or np.shape(hurt) != np.shape(whole.weights_):
        return False
    return bool(np.abs(hurt - whole.weights_).max() < np.finfo(np.float32).eps)


def _equal_softmax(whole: Any, name: str, hurt: Any) -> bool:
    """Whether an l1 fit of several classes got coefficients that are as good, and as small, for equal probabilities.

    Adding one number to a column's coefficients of all classes changes no probability, nor the sum of their sizes
    while as many are above 0 as below: with an even number of classes there may be no single minimiser.
    """
    if name != "coef_" or getattr(whole, "penalty", None) != "l1" or np.shape(hurt) != whole.coef_.shape:
        return False
    if len(whole.coef_) < 3:
        return False
    moved, size, hurt_size = hurt - whole.coef_, np.abs(whole.coef_).sum(axis=0), np.abs(hurt).sum(axis=0)
    rounding = 1e-12 * max(float(np.abs(whole.coef_).max()), 1e-300)
    return np.allclose(moved, moved[0], rtol=1e-12, atol=rounding) and np.allclose(size, hurt_size, rtol=1e-9)


TAMPERED_ATTRIBUTES = Hunt(
    "tampered_attributes",
    "Tampered attributes",
    "each fitted attribute damaged, turned to other types or removed: what changes an answer must fail the audit",
    try_tampering,
    30.0,
)
