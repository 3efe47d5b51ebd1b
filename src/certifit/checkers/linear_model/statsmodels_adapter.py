"""Results of statsmodels' fits as the problem they claim to have solved; they carry their data with them.

| model | read as |
|---|---|
| OLS, Logit, Probit, Poisson, GLM | the likelihood of that family; freq_weights times var_weights are row weights |
| WLS | least squares with its weights |
| GLS, GLSAR | least squares on the whitened rows, which the results carry |

A constant column of theirs is an intercept: it may be left out of the X of an audit, and is then added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.linear_model import glm as checker
from certifit.checkers.linear_model.adapter import family_of_power, problem_of, prove
from certifit.checkers.linear_model.glm_sums import measured
from certifit.checkers.plain.response_columns import lay_out
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.checkers.problem import Problem, unshared_problem
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.checks import TableTerms


def audit_statsmodels(results: Any, X: Any, y: Any, sample_weight: Any, tol: float, **beside: Any) -> Certificate:
    """Check a statsmodels fit. X is the design matrix, with or without its constant column; X and y may be None, for
    the data that the results carry."""
    model = results.model
    _refuse_constraints(results)
    claim = _statsmodels_claim(model)
    carried = X is None and y is None
    if type(model).__name__ in ("GLS", "GLSAR"):
        X, y = _whitened(model, X, y)
    elif carried:
        X, y = model.exog, model.endog
        if np.ndim(getattr(model, "n_trials", 1)) == 1 and np.any(np.asarray(model.n_trials) != 1):
            beside["trials"], y = model.n_trials, model.endog * model.n_trials
    else:
        X = _with_constant(model, X)
    if sample_weight is None:
        sample_weight = _weights(model, len(model.endog), X)
    offset = _offset(model)
    if offset is not None and not {"offset", "exposure"} & beside.keys():
        if np.shape(X)[:1] != np.shape(offset):
            raise DataError(
                got="a model that was fitted with an offset or exposure, and other rows",
                wanted="audit(results, X, y, offset=…) with the offset of these rows",
            )
        beside["offset"] = offset
    layout, y = lay_out(y, beside)
    coef = numbers(results, "params")
    rows = fitted_rows(None, len(coef), X, y, sample_weight, TableTerms("numbers", layout.columns))
    most = checker.GlmCheckTuning().hessian_parameters
    return prove(measured(coef, 0.0, claim._replace(layout=layout), rows, most), 0.0, tol, rows)


def statsmodels_problem(results: Any) -> Problem:
    """The problem in words, by which it can be compared with other models'; weights and offsets are nobody else's."""
    model = results.model
    plain = type(model).__name__ not in ("GLS", "GLSAR")
    if not plain or _weights(model, len(model.endog), model.exog) is not None or _offset(model) is not None:
        return unshared_problem(results)
    return problem_of(_statsmodels_claim(model)._replace(intercept=_constant(model) is not None))


def _constant(model: Any) -> int | None:
    """The number of the one column of the design matrix that is constant, and not 0; None where there is none."""
    design = np.asarray(model.exog)
    found = np.flatnonzero((design == design[0]).all(axis=0) & (design[0] != 0))
    return int(found[0]) if len(found) == 1 else None


def _with_constant(model: Any, X: Any) -> Any:
    """X with the constant column of the fit where it lacks it; refused where that column is another one in X."""
    place, width, shape = _constant(model), np.shape(model.exog)[1], np.shape(X)
    if place is None or len(shape) != 2:
        return X
    value = float(np.asarray(model.exog)[0, place])
    if shape[1] == width - 1:
        if sparse.issparse(X):
            return sparse.hstack([X[:, :place], np.full((shape[0], 1), value), X[:, place:]], format="csr")
        return np.insert(np.asarray(X, dtype=np.float64), place, value, axis=1)
    if shape[1] == width and isinstance(X, np.ndarray) and not (X[:, place] == value).all():
        raise DataError(
            got=f"rows whose column {place} is not the constant {value:g} that it was in the fit",
            wanted="the design matrix of the fit, or the same without its constant column",
        )
    return X


def _refuse_constraints(results: Any) -> None:
    if getattr(results, "constraints", None) is not None or getattr(results, "k_constr", False):
        raise DataError(
            got="a fit with constraints (fit_constrained)",
            wanted="one without",
            fix="Put a constraint b = c into the model: leave the column out and pass c times it as offset=.",
        )


def _whitened(model: Any, X: Any, y: Any) -> tuple[Array, Array]:
    """The rows that the fit carries, whitened by its covariance; X and y may say them once more, or be None."""
    carried = (X is None or np.array_equal(_with_constant(model, X), model.exog)) and (
        y is None or np.array_equal(y, model.endog)
    )
    if not carried:
        raise DataError(
            got=f"a {type(model).__name__} fit and other rows",
            wanted="audit(results) without X and y: its covariance of the errors belongs to the rows it carries",
        )
    return model.wexog, model.wendog


def _weights(model: Any, n: int, X: Any) -> Array | None:
    """Row weights that the model was fitted with; those of the variance count like those of the rows for β."""
    name = type(model).__name__
    if name == "WLS":
        weights = np.asarray(model.weights, dtype=np.float64)
    elif name == "GLM":
        given = [getattr(model, f"{kind}_weights", None) for kind in ("freq", "var")]
        weights = np.ones(n) * np.prod([np.ones(n) if w is None else np.asarray(w) for w in given], axis=0)
    else:
        return None
    if np.ndim(weights) == 0 or np.all(weights == 1):
        return None
    if np.shape(X)[:1] != weights.shape:
        raise DataError(
            got=f"a {name} fit with row weights, and other rows",
            wanted="audit(results, X, y, sample_weight) with the weights of these rows",
        )
    return weights


def _offset(model: Any) -> Array | None:
    """The offset with the logarithm of the exposure, as the model holds them."""
    if hasattr(model, "_offset_exposure"):
        total: Any = model._offset_exposure
    else:  # discrete models keep the logarithm of the exposure
        parts = [getattr(model, name, None) for name in ("offset", "exposure")]
        total = sum(np.asarray(part, dtype=np.float64) for part in parts if part is not None)
    return np.asarray(total, dtype=np.float64) if np.ndim(total) == 1 and np.any(total) else None


def _statsmodels_claim(model: Any) -> GlmClaim:
    """The problem that a statsmodels model solves, by the names of its class, family and link."""
    plain = {"Logit": ("binomial", "logit"), "Probit": ("binomial", "probit"), "Poisson": ("poisson", "log")}
    plain |= dict.fromkeys(("OLS", "WLS", "GLS", "GLSAR"), ("gaussian", "identity"))
    families = {
        "Gaussian": "gaussian",
        "Binomial": "binomial",
        "Poisson": "poisson",
        "Gamma": "gamma",
        "InverseGaussian": "inverse_gaussian",
        "NegativeBinomial": "negative_binomial",
        "Tweedie": "tweedie",
    }
    links = {
        "Identity": "identity",
        "Log": "log",
        "Logit": "logit",
        "Probit": "probit",
        "CLogLog": "cloglog",
        "InversePower": "inverse",
        "InverseSquared": "inverse_squared",
    }
    name = type(model).__name__
    if name in plain:
        return GlmClaim(*plain[name], intercept=False)
    family: Any = getattr(model, "family", None)
    kind, link = type(family).__name__, type(getattr(family, "link", None)).__name__
    if name != "GLM" or kind not in families or link not in links:
        raise DataError(
            got=f"statsmodels {name}" + (f" with family {kind} and link {link}" if name == "GLM" else ""),
            wanted=f"{', '.join(plain)}, or GLM with a family among {', '.join(families)} and a link among "
            f"{', '.join(links)}",
        )
    theta = 1 / family.alpha if kind == "NegativeBinomial" else np.nan
    power = float(family.var_power) if kind == "Tweedie" else np.nan
    if power in (0, 1, 2, 3):
        return GlmClaim(family_of_power(power), links[link], intercept=False)
    return GlmClaim(families[kind], links[link], intercept=False, power=power, theta=theta)
