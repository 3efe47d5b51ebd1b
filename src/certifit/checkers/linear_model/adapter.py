"""Fitted linear and generalised linear models, ours or others', as the problem they claim to have solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.linear_model import glm as checker
from certifit.checkers.plain.response_columns import lay_out
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.checkers.problem import Problem
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.rows.checks import TableTerms


def audit_linear(model: Any, X: Any, y: Any, sample_weight: Any, tol: float, **beside: Any) -> Certificate:
    """Check a model with coef_ and intercept_; `beside` holds the offset, exposure or trials it was fitted with."""
    layout, y = lay_out(y, beside)
    coef, intercept = numbers(model, "coef_"), numbers(model, "intercept_")
    if coef.size != coef.shape[-1] or intercept.size != 1:
        raise DataError(got=f"coefficients of shape {coef.shape}", wanted="one target: coefficients (d,)")
    rows = fitted_rows(model, coef.size, X, y, sample_weight, TableTerms("numbers", layout.columns))
    return checker.certify(coef, float(intercept.ravel()[0]), linear_claim(model)._replace(layout=layout), tol, rows)


def linear_claim(model: Any) -> GlmClaim:
    """The problem that a fitted linear model says it has minimised."""
    if hasattr(model, "penalty_per_row"):
        return _own_claim(model)
    if getattr(model, "positive", False):
        raise DataError(got="a model with positive=True", wanted="coefficients without constraints")
    for base in type(model).__mro__:
        if base.__name__ in CLAIMS:
            return CLAIMS[base.__name__](model)
    raise DataError(got=f"a {type(model).__name__}", wanted=f"one of {', '.join(CLAIMS)}")


def linear_problem(model: Any) -> Problem:
    """The same in words, by which models can be compared."""
    claim = linear_claim(model)
    family = claim.family if np.isnan(claim.power) else f"{claim.family}, power {claim.power!r}"
    family = family if np.isnan(claim.theta) else f"{family}, theta {claim.theta!r}"
    strength = f"alpha={claim.alpha!r} {'per row' if claim.per_row else 'in all'}, l1_ratio={claim.l1_ratio!r}"
    return Problem(
        f"half the deviance ({family}; {claim.link} link)",
        strength if claim.alpha > 0 else "none",
        further="free intercept" if claim.intercept else "no intercept",
    )


def _own_claim(model: Any) -> GlmClaim:
    """That of certifit's own `GeneralizedLinearRegressor` and the classes made from it."""
    family = model.family if isinstance(model.family, str) else model.family.name
    power = float(getattr(model.family, "power", model.power)) if family == "tweedie" else np.nan
    theta = float(getattr(model.family, "theta", model.theta)) if family == "negative_binomial" else np.nan
    if family == "tweedie" and power in (0, 1, 2, 3):
        family, power = _family_of_power(power), np.nan
    usual = {"gaussian": "identity", "binomial": "logit"}.get(family, "log")
    link = usual if model.link == "auto" else model.link
    penalty = float(model.alpha), float(model.l1_ratio), bool(model.penalty_per_row)
    return GlmClaim(family, link, *penalty, bool(model.fit_intercept), power, theta)


def _family_of_power(power: float) -> str:
    """The family whose variance is μ^power."""
    special: dict[float, str] = {0: "gaussian", 1: "poisson", 2: "gamma", 3: "inverse_gaussian"}
    return special.get(power, "tweedie")


def _alpha(model: Any) -> float:
    """The strength of the penalty, also where cross-validation chose it."""
    alpha = np.ravel(getattr(model, "alpha_", getattr(model, "alpha", 0.0) or 0.0))
    if len(alpha) != 1:
        raise DataError(got=f"{len(alpha)} penalties in a {type(model).__name__}", wanted="one")
    return float(alpha[0])


def _ratio(model: Any) -> float:
    return float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0) or 0.0))


def _free(model: Any) -> bool:
    return bool(getattr(model, "fit_intercept", True))


def _tweedie(model: Any) -> GlmClaim:
    link = ("identity" if model.power <= 0 else "log") if model.link == "auto" else model.link
    return GlmClaim(_family_of_power(model.power), link, _alpha(model), 0.0, True, _free(model), float(model.power))


CLAIMS: dict[str, Callable[[Any], GlmClaim]] = {
    "LinearRegression": lambda m: GlmClaim("gaussian", "identity", 0.0, 0.0, True, _free(m)),
    "Ridge": lambda m: GlmClaim("gaussian", "identity", _alpha(m), 0.0, False, _free(m)),
    "Lasso": lambda m: GlmClaim("gaussian", "identity", _alpha(m), 1.0, True, _free(m)),
    "ElasticNet": lambda m: GlmClaim("gaussian", "identity", _alpha(m), _ratio(m), True, _free(m)),
    "RidgeCV": lambda m: GlmClaim("gaussian", "identity", _alpha(m), 0.0, False, _free(m)),
    "LassoCV": lambda m: GlmClaim("gaussian", "identity", _alpha(m), 1.0, True, _free(m)),
    "ElasticNetCV": lambda m: GlmClaim("gaussian", "identity", _alpha(m), _ratio(m), True, _free(m)),
    "PoissonRegressor": lambda m: GlmClaim("poisson", "log", _alpha(m), 0.0, True, _free(m)),
    "GammaRegressor": lambda m: GlmClaim("gamma", "log", _alpha(m), 0.0, True, _free(m)),
    "TweedieRegressor": _tweedie,
}


def audit_statsmodels(results: Any, X: Any, y: Any, sample_weight: Any, tol: float, **beside: Any) -> Certificate:
    """Check a statsmodels fit. X is the design matrix with its constant column, as there; X and y may be None, for
    the data that the results carry."""
    model = results.model
    if sample_weight is None and np.ndim(getattr(model, "freq_weights", 1.0)) == 1:
        sample_weight = model.freq_weights
    if X is None and y is None:
        X, y = model.exog, model.endog
        offset: Any = getattr(model, "_offset_exposure", getattr(model, "offset", 0.0))  # already with log exposure
        beside = {"offset": offset} if np.ndim(offset) == 1 and np.any(offset) else {}
        if np.ndim(getattr(model, "n_trials", 1)) == 1 and np.any(np.asarray(model.n_trials) != 1):
            beside["trials"], y = model.n_trials, model.endog * model.n_trials
    layout, y = lay_out(y, beside)
    coef = numbers(results, "params")
    claim = _statsmodels_claim(model)._replace(layout=layout)
    rows = fitted_rows(None, len(coef), X, y, sample_weight, TableTerms("numbers", layout.columns))
    return checker.certify(coef, 0.0, claim, tol, rows)


def _statsmodels_claim(model: Any) -> GlmClaim:
    """The problem that a statsmodels model solves, by the names of its class, family and link."""
    plain = {"OLS": ("gaussian", "identity"), "Logit": ("binomial", "logit"), "Probit": ("binomial", "probit")}
    plain["Poisson"] = ("poisson", "log")
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
            got=f"statsmodels {name} with family {kind} and link {link}",
            wanted=f"{', '.join(plain)}, or GLM with a family among {', '.join(families)} and a link among "
            f"{', '.join(links)}",
        )
    theta = 1 / family.alpha if kind == "NegativeBinomial" else np.nan
    power = float(family.var_power) if kind == "Tweedie" else np.nan
    return GlmClaim(families[kind], links[link], intercept=False, power=power, theta=theta)
