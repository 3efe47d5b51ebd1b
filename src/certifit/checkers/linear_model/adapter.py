"""Fitted linear and generalised linear models, ours or others', as the problem they claim to have solved.

| whose | how it is read |
|---|---|
| certifit's | settings; every fitted attribute is checked, what inference says among them |
| scikit-learn's, celer's, skglm's | settings by class name |
| glum's GeneralizedLinearRegressor | settings under glum's names; what certifit's problem lacks is refused |
| statsmodels' results | `statsmodels_adapter` |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.fitted import chosen_or_set, fitted_rows, numbers, setting
from certifit.checkers.linear_model import glm as checker
from certifit.checkers.linear_model import recession
from certifit.checkers.linear_model.collinear import LeftOutColumns
from certifit.checkers.linear_model.glm_sums import GlmMeasure, measured
from certifit.checkers.linear_model.inference import inference_checks
from certifit.checkers.linear_model.several_targets import (
    joint_certificate,
    only_column,
    pick_target,
    target_columns,
    target_model,
)
from certifit.checkers.plain.response_columns import lay_out
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.checkers.problem import Problem
from certifit.core import Certificate, Check, Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Rows
from certifit.rows.checks import TableTerms


def audit_linear(
    model: Any, X: Any, y: Any, sample_weight: Any, tol: float, solved: str | None = None, **beside: Any
) -> Certificate:
    """Check a model with coef_ and intercept_; `beside` holds the offset, exposure or trials it was fitted with.

    `solved` is the name of the class whose problem it is, where that is not the model's own.
    """
    if np.ndim(getattr(model, "coef_", 0.0)) == 2 and _has_several(model, target_columns(y)):
        return _audit_several(model, X, y, sample_weight, tol, solved)
    claim = linear_claim(model, solved)
    y = only_column(y) if target_columns(y) == 1 else y
    several = getattr(y, "ndim", 1) > 1
    layout, y = lay_out(y, beside)
    coef, intercept = numbers(model, "coef_"), numbers(model, "intercept_")
    if isinstance(model, Estimator):
        _check_shapes(coef, intercept)
    if coef.size != coef.shape[-1] or intercept.size != 1 or several:
        raise DataError(
            got=f"coefficients of shape {coef.shape} and targets of shape {np.shape(y)}",
            wanted="one target: y (n,), coefficients (d,)",
            fix="Fit and audit each target by itself.",
        )
    rows = fitted_rows(model, coef.size, X, y, sample_weight, TableTerms("numbers", layout.columns))
    coef, b = coef.ravel(), float(intercept.ravel()[0])
    own = isinstance(model, Estimator)
    left_out = _left_out(model, coef.size, claim) if own else None
    here = measured(coef, b, claim._replace(layout=layout), rows, checker.GlmCheckTuning().hessian_parameters)
    found = prove(here, b, tol, rows, left_out)
    if left_out is None or found.kind == "impossible":
        return found
    return with_checks(found, _own_checks(model, here, rows, left_out))


def _has_several(model: Any, targets: int | None) -> bool:
    """Whether a model of this kind has a row of coefficients for each column of a y with so many."""
    if isinstance(model, Estimator):
        least = 1 if getattr(model, "keeps_one_column", False) else 2
        return getattr(model, "several_targets", False) and targets is not None and targets >= least
    return (targets or 1) > 1


def _audit_several(model: Any, X: Any, y: Any, sample_weight: Any, tol: float, solved: str | None) -> Certificate:
    """Check a model of several targets, each as a model of its own."""
    coef, intercept = numbers(model, "coef_"), numbers(model, "intercept_")
    targets = target_columns(y)
    several = intercept.shape == (len(coef),) or (intercept.ndim == 0 and not isinstance(model, Estimator))
    if isinstance(X, Rows) or targets != len(coef) or not several:
        raise DataError(
            got=f"coefficients of shape {coef.shape}, intercepts of shape {intercept.shape} and "
            f"{'one target' if targets is None else f'{targets} targets'}",
            wanted="coefficients (d,) and an intercept, or a row of both for every column of y",
        )
    if isinstance(model, Estimator) and np.shape(model.deviance_) != (targets,):
        raise DataError(got=f"deviance_ of shape {np.shape(model.deviance_)}", wanted=f"one for each of {targets}")
    y = only_column(y) if targets == 1 else y
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, TableTerms("numbers", targets))
    found = [
        audit_linear(target_model(model, k), rows.relabel(partial(pick_target, k)), None, None, tol, solved)
        for k in range(targets)
    ]
    return joint_certificate(found)


def prove(
    here: GlmMeasure, intercept: float, tol: float, rows: Rows, left_out: LeftOutColumns | None = None
) -> Certificate:
    """The certificate of these coefficients, or the proof that there is no minimum to be near to."""
    impossible = recession.one_way(rows, here.at.claim)
    if impossible is not None:
        return impossible
    found = checker.certify_measured(here, intercept, tol, rows, left_out)
    impossible = None if found.holds else recession.unbounded(rows, here.at.claim)
    return found if impossible is None else impossible


def with_checks(found: Certificate, checks: tuple[Check, ...]) -> Certificate:
    """The certificate with these checks too."""
    return replace(found, checks=(*found.checks, *checks))


# Our own. ------------------------------------------------------------------------------------------------------


def _check_shapes(coef: Array, intercept: Array) -> None:
    """An error where the shapes are not those that our fit leaves, by which its methods compute."""
    if coef.ndim != 1 or intercept.ndim != 0:
        raise DataError(
            got=f"coef_ of shape {coef.shape} and intercept_ of shape {intercept.shape}",
            wanted="coefficients (d,) and an intercept that is a number, as fit leaves them",
        )


def _left_out(model: Any, d: int, claim: GlmClaim) -> LeftOutColumns:
    """The columns that our fit says are combinations of others."""
    lost, shortest = np.asarray(getattr(model, "collinear_", ())), model.collinear == "shortest"
    if lost.shape == (0,):
        return LeftOutColumns(np.zeros(0, int), shortest)
    whole = lost.dtype.kind in "iu" and np.array_equal(lost, np.unique(lost))
    if not whole or not np.isin(lost, np.arange(d)).all():
        raise DataError(got=f"collinear_ = {lost!r}", wanted=f"different numbers of columns, 0 to {d - 1}")
    if len(lost) and (claim.alpha > 0 or claim.positive):
        raise DataError(
            got="collinear_ columns beside a penalty or positive=True", wanted="none: such a fit leaves no column out"
        )
    if len(lost) and model.collinear == "refuse":
        raise DataError(got="collinear_ columns beside collinear='refuse'", wanted="none: such a fit refuses them")
    return LeftOutColumns(lost.astype(int), shortest)


def _own_checks(model: Any, here: GlmMeasure, rows: Rows, left_out: LeftOutColumns) -> tuple[Check, ...]:
    """The checks of what inference says of our fit."""
    claim = here.at.claim
    likelihood = ("deviance_", "null_deviance_", "pearson_chi2_", "dispersion_", "df_resid_", "loglikelihood_")
    names = (*likelihood, "covariance_")
    attributes = {name: getattr(model, name) for name in names if name in vars(model)}
    lost = [name for name in likelihood if name not in attributes]
    # A fit without a penalty leaves all (the third is not in older files), any other the deviance alone.
    if lost not in ([], ["pearson_chi2_"], list(likelihood[1:])):
        raise DataError(
            got=f"a {type(model).__name__} without {', '.join(lost)}",
            wanted="the fitted attributes as its fit left them",
        )
    none = model.covariance_ is None and not _may_have_errors(model, claim)
    checks = inference_checks(here, attributes, rows, None if none else model.covariance, left_out)
    if model.covariance_ is not None and (claim.alpha > 0 or claim.positive or model.covariance is None):
        checks = (*checks, Check("covariance_ of a fit that has none (1: yes)", 1.0, 0.0))
    return checks


def _may_have_errors(model: Any, claim: GlmClaim) -> bool:
    """Whether this fit should have a covariance, unless that overflows."""
    if claim.alpha > 0 or claim.positive or model.covariance is None or not model.certificate_.holds:
        return False
    dispersion = getattr(model, "dispersion_", np.nan)  # NaN where no row is left; none beside a penalty, chosen as 0
    return dispersion == dispersion


def linear_claim(model: Any, solved: str | None = None) -> GlmClaim:
    """The problem that a fitted linear model says it has minimised."""
    if isinstance(model, Estimator):
        return _own_claim(model)
    name = solved or type(model).__name__
    if name == "GeneralizedLinearRegressor":
        return _glum_claim(model)
    if name not in CLAIMS:
        raise DataError(got=f"a {name}", wanted=f"one of {', '.join(CLAIMS)}")
    return CLAIMS[name](model)._replace(positive=bool(getattr(model, "positive", False)))


def linear_problem(model: Any, solved: str | None = None) -> Problem:
    """The same in words, by which models can be compared."""
    return problem_of(linear_claim(model, solved))


def problem_of(claim: GlmClaim) -> Problem:
    """A claim in words."""
    family = claim.family if np.isnan(claim.power) else f"{claim.family}, power {claim.power!r}"
    family = family if np.isnan(claim.theta) else f"{family}, theta {claim.theta!r}"
    strength = f"alpha={claim.alpha!r} {'per row' if claim.per_row else 'in all'}, l1_ratio={claim.l1_ratio!r}"
    return Problem(
        f"half the deviance ({family}; {claim.link} link)",
        strength if claim.alpha > 0 else "none",
        further=("free intercept" if claim.intercept else "no intercept") + ", β >= 0" * claim.positive,
    )


def _own_claim(model: Any) -> GlmClaim:
    """That of certifit's own `GeneralizedLinearRegressor` and the classes made from it."""
    family = model.family if isinstance(model.family, str) else model.family.name
    power = float(getattr(model.family, "power", model.power)) if family == "tweedie" else np.nan
    theta = float(getattr(model.family, "theta", model.theta)) if family == "negative_binomial" else np.nan
    if family == "tweedie" and power in (0, 1, 2, 3):
        family, power = family_of_power(power), np.nan
    link = _usual_link(family) if model.link == "auto" else model.link
    penalty = _alpha(model), _ratio(model), bool(model.penalty_per_row)
    claim = GlmClaim(family, link, *penalty, bool(model.fit_intercept), power, theta)
    return claim._replace(positive=bool(model.positive))


def _usual_link(family: str) -> str:
    return {"gaussian": "identity", "binomial": "logit"}.get(family, "log")


def family_of_power(power: float) -> str:
    """The family whose variance is μ^power."""
    special: dict[float, str] = {0: "gaussian", 1: "poisson", 2: "gamma", 3: "inverse_gaussian"}
    return special.get(power, "tweedie")


# scikit-learn's, and those of its kind. ------------------------------------------------------------------------


def _alpha(model: Any) -> float:
    """The strength of the penalty, also where cross-validation chose it."""
    name = chosen_or_set(model, "alpha")
    alpha = np.ravel(getattr(model, name, 0.0))
    if len(alpha) != 1:
        raise DataError(
            got=f"{len(alpha)} penalties in a {type(model).__name__}",
            wanted="one",
            fix="Fit and audit each target by itself, with its own alpha.",
        )
    Setting(float, least=0, below=np.inf).check(f"{type(model).__name__}.{name}", alpha.tolist()[0])
    return float(alpha[0])


def _ratio(model: Any) -> float:
    ratio = setting(model, chosen_or_set(model, "l1_ratio"), Setting(float, least=0, most=1), 0.0)
    return float(ratio)


def _free(model: Any) -> bool:
    return bool(getattr(model, "fit_intercept", True))


def _squares(model: Any, l1_ratio: float = 0.0, alpha: float | None = None, *, per_row: bool = True) -> GlmClaim:
    strength = _alpha(model) if alpha is None else alpha
    return GlmClaim("gaussian", "identity", strength, l1_ratio, per_row, _free(model))


def _weights_alone(model: Any, claim: GlmClaim) -> GlmClaim:
    """The claim, unless the model has weights of columns or groups, as celer's and skglm's may have."""
    for name in ("weights", "groups"):
        if getattr(model, name, None) is not None:
            raise DataError(
                got=f"a {type(model).__name__} with {name}=",
                wanted="the same penalty on every coefficient",
                fix="Divide each column by its weight, fit without weights, and audit that.",
            )
    return claim


def _tweedie(model: Any) -> GlmClaim:
    power = float(setting(model, "power", Setting(float)))
    if not np.isfinite(power) or 0 < power < 1:
        raise DataError(got=f"power={power!r}", wanted="a finite number that is not between 0 and 1")
    link = ("identity" if power <= 0 else "log") if model.link == "auto" else model.link
    family = family_of_power(power)
    return GlmClaim(family, link, _alpha(model), 0.0, True, _free(model), power if family == "tweedie" else np.nan)


def _logarithmic(family: str) -> Callable[[Any], GlmClaim]:
    return lambda m: GlmClaim(family, "log", _alpha(m), 0.0, True, _free(m))


CLAIMS: dict[str, Callable[[Any], GlmClaim]] = {
    "LinearRegression": lambda m: _squares(m, alpha=0.0),
    "Ridge": lambda m: _squares(m, per_row=False),
    "Lasso": lambda m: _weights_alone(m, _squares(m, 1.0)),
    "ElasticNet": lambda m: _weights_alone(m, _squares(m, _ratio(m))),
    "RidgeCV": lambda m: _squares(m, per_row=False),
    "LassoCV": lambda m: _weights_alone(m, _squares(m, 1.0)),
    "ElasticNetCV": lambda m: _weights_alone(m, _squares(m, _ratio(m))),
    "PoissonRegressor": _logarithmic("poisson"),
    "GammaRegressor": _logarithmic("gamma"),
    "TweedieRegressor": _tweedie,
}


# glum's. -------------------------------------------------------------------------------------------------------


def _glum_claim(model: Any) -> GlmClaim:
    """glum's GeneralizedLinearRegressor minimises the same objective, if its penalty matrices are the identity."""
    for name, usual in (
        ("P1", "identity"),
        ("P2", "identity"),
        ("scale_predictors", False),
        ("lower_bounds", None),
        ("upper_bounds", None),
        ("A_ineq", None),
        ("monotonic_constraints", None),
        ("alpha_search", False),
    ):
        value = getattr(model, name, usual)
        if not (isinstance(value, type(usual)) and value == usual):
            raise DataError(
                got=f"a GeneralizedLinearRegressor of {type(model).__module__} with {name}",
                wanted="glum's model without constraints and with identity penalties",
                fix=f"Fit with {name}={usual!r}, or audit certifit's GeneralizedLinearRegressor.",
            )
    family, link = _glum_family(model)
    alpha = 0.0 if model.alpha is None else _alpha(model)  # None is glum's word for no penalty
    power = float(getattr(model.family_instance, "power", np.nan)) if family == "tweedie" else np.nan
    theta = float(getattr(model.family_instance, "theta", np.nan)) if family == "negative_binomial" else np.nan
    if family == "tweedie" and power in (0, 1, 2, 3):
        family, power = family_of_power(power), np.nan
    return GlmClaim(family, link, alpha, _ratio(model) if alpha else 0.0, True, _free(model), power, theta)


def _glum_family(model: Any) -> tuple[str, str]:
    """Family and link under our names, by the names of the classes of glum's."""
    if not hasattr(model, "family_instance") or not hasattr(model, "link_instance"):
        raise DataError(
            got=f"a GeneralizedLinearRegressor of {type(model).__module__}",
            wanted="certifit's or glum's",
            fix="audit certifit's GeneralizedLinearRegressor, which any library's coefficients can be put into.",
        )
    families = {
        "NormalDistribution": "gaussian",
        "PoissonDistribution": "poisson",
        "GammaDistribution": "gamma",
        "InverseGaussianDistribution": "inverse_gaussian",
        "BinomialDistribution": "binomial",
        "TweedieDistribution": "tweedie",
        "NegativeBinomialDistribution": "negative_binomial",
    }
    links = {"IdentityLink": "identity", "LogLink": "log", "LogitLink": "logit", "CloglogLink": "cloglog"}
    family, link = type(model.family_instance).__name__, type(model.link_instance).__name__
    if family not in families or link not in links:
        raise DataError(
            got=f"glum's model with {family} and {link}",
            wanted=f"a family among {', '.join(families)} and a link among {', '.join(links)}",
        )
    return families[family], links[link]
