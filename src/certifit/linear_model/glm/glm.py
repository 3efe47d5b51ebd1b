"""Generalised linear models with a proved distance to the optimum and honest standard errors.

    min over β, b of   Σᵢ wᵢ d(yᵢ, μᵢ) / 2 + Σᵢ wᵢ · alpha (ρ |β|₁ + (1 - ρ)/2 |β|²),    g(μᵢ) = β·xᵢ + b + offsetᵢ

d is the family's unit deviance, ρ = l1_ratio. Newton's method on block sums; nearly collinear columns are made
orthogonal first. Reference: McCullagh & Nelder, Generalized Linear Models (1989).
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import stats
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.linear_model.adapter import linear_claim
from certifit.checkers.linear_model.several_targets import (
    only_column,
    pick_target,
    target_columns,
    target_model,
    target_strength,
)
from certifit.checkers.plain.response_columns import ResponseLayout, lay_out
from certifit.core import Attributes, Certificate, Estimator, Objective
from certifit.core.estimator import with_callbacks
from certifit.core.settings import LOOP, Setting, Settings
from certifit.exceptions import DataError, warn_caller
from certifit.linear_model.coefficient_error import gap_to_reach
from certifit.linear_model.column_words import column_words
from certifit.linear_model.glm.block_statistics import GlmRequest, GlmTotals, measure
from certifit.linear_model.glm.coordinates import GlmCoordinates, choose_coordinates
from certifit.linear_model.glm.fit import coefficients, finish, prove, refuse_one_way, scores_of, start_from
from certifit.linear_model.glm.solve import ElasticNetPenalty, GlmProblem, minimise
from certifit.linear_model.glm.start import check_size, constant_score, mean_score, null_score, targets_total
from certifit.linear_model.glm.tuning import GlmTuning
from certifit.linear_model.glm.working_columns import with_working_sets
from certifit.linear_model.inference import (
    Inference,
    LikelihoodPoint,
    last_pass,
    likelihood_attributes,
    no_degrees_of_freedom,
    p_value_words,
    why_no_errors,
)
from certifit.linear_model.several_targets import fit_targets
from certifit.losses.links import LINKS, link_function
from certifit.losses.response_families import ResponseFamily, response_family
from certifit.losses.response_losses import ResponseLoss, glm_loss
from certifit.rows import Array, Rows
from certifit.rows.sampling import evenly_spaced


class CollinearWarning(UserWarning):
    """Some columns are combinations of others: the data do not determine their coefficients."""


class GeneralizedLinearRegressor(Inference, RegressorMixin, Estimator):
    """A generalised linear model: any usual family and link, maximum likelihood or penalised.

    Parameters
    ----------
    family : 'gaussian', 'binomial', 'poisson', 'gamma', 'inverse_gaussian', 'negative_binomial' or 'tweedie'
    link : 'auto', 'identity', 'log', 'logit', 'probit', 'cloglog', 'inverse' or 'inverse_squared'
        'auto' is identity for gaussian, logit for binomial and log for the others.
    alpha : float, default=0.0
        Strength of the penalty, per unit of weight; 0 is maximum likelihood.
    l1_ratio : float between 0 and 1, default=0.0
        Share of the penalty that is |β|₁; the rest is |β|²/2.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    power : float, default=1.5
        Of the Tweedie family's variance μ^power.
    theta : float, default=1.0
        Of the negative binomial's variance μ + μ²/theta.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved, where the loss allows.
        Maximum likelihood goes on until each coefficient is within 1e-7 of its standard error; with a ridge penalty,
        less than 1e-6 asks for digits of the coefficients: the fit goes on to the square of it, or 1e-12.
    covariance : 'classical', 'sandwich', 'clustered' or None
        How the standard errors are computed; None saves the time.
    collinear : 'drop', 'shortest' or 'refuse', default='drop'
        What to do with columns that are combinations of those before them, where there is no penalty: leave them out,
        or take the shortest coefficients (smallest |β|) of all that give the same scores.
    max_iter : int, default=1000
    max_time : float or None
        Seconds after which the best fit so far is returned, with what is proved about it.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.

    Attributes
    ----------
    coef_ : (d,)
    intercept_ : float
    deviance_ : float
    null_deviance_, pearson_chi2_, dispersion_, loglikelihood_, df_resid_ : floats, without a penalty
    aic_, bic_ : floats, derived from loglikelihood_ and df_resid_
    standard_errors_, p_values_ : (d1,), the intercept first
    covariance_ : (d1, d1) of (intercept, coefficients); None where it is not valid
    no_errors_because_ : why there are no standard errors; empty where there are
    collinear_ : numbers of the columns that are combinations of those before them
    certificate_ : Certificate
    n_iter_ : int (diagnostic)
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    Dobson's (1990) randomised controlled trial:

    >>> import pandas as pd
    >>> from certifit import GeneralizedLinearRegressor
    >>> X = pd.DataFrame({"outcome2": [0, 1, 0] * 3, "outcome3": [0, 0, 1] * 3,
    ...                   "treatment2": [0] * 3 + [1] * 3 + [0] * 3, "treatment3": [0] * 6 + [1] * 3})
    >>> model = GeneralizedLinearRegressor("poisson").fit(X, [18, 17, 15, 20, 10, 20, 25, 13, 12])
    >>> round(model.deviance_, 4), round(float(model.standard_errors_[0]), 4), model.certificate_.holds
    (5.1291, 0.1709, True)
    """

    target = "numbers"
    sparse = True
    settings: ClassVar[Settings] = {
        **LOOP,
        "family": Setting(
            choices=(
                "gaussian",
                "binomial",
                "poisson",
                "gamma",
                "inverse_gaussian",
                "negative_binomial",
                "tweedie",
            ),
            other=lambda value: isinstance(value, ResponseFamily),
            other_words="a ResponseFamily",
        ),
        "link": Setting(choices=("auto", *LINKS)),
        "alpha": Setting(float, least=0, below=np.inf),
        "l1_ratio": Setting(float, least=0, most=1),
        "power": Setting(float),
        "theta": Setting(float),
        "covariance": Setting(choices=("classical", "sandwich", "clustered"), none=True),
        "collinear": Setting(choices=("shortest", "drop", "refuse")),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    _tuning: ClassVar[GlmTuning] = GlmTuning()
    penalty_per_row = True  # alpha stands beside the mean over rows, not beside their sum
    positive: Any = False  # whether coefficients are held at 0 or above
    several_targets: ClassVar[bool] = False  # whether y may have several columns, each with its own coefficients
    keeps_one_column: ClassVar[bool] = False  # whether a y of one column (n, 1) gives predictions (n, 1)

    def __init__(
        self,
        family="gaussian",
        link="auto",
        *,
        alpha=0.0,
        l1_ratio=0.0,
        fit_intercept=True,
        power=1.5,
        theta=1.0,
        tol=1e-6,
        covariance="classical",
        collinear="drop",
        max_iter=1000,
        max_time=None,
        warm_start=False,
    ):
        self.family = family
        self.link = link
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.power = power
        self.theta = theta
        self.tol = tol
        self.covariance = covariance
        self.collinear = collinear
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        trials: Any = None,
        clusters: Any = None,
    ) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets, or the name of the target column in X
        sample_weight : array of non-negative row weights, or the name of a column in X; 2 means the row twice
        offset : added to each row's score
        exposure : its logarithm is added to each row's score
        trials : binomial only: y counts the successes among these
        clusters : a number for each row's cluster, for covariance='clustered'
            offset, exposure, trials and clusters are arrays where y is one, and names of columns where y is one.
        """
        beside = {"offset": offset, "exposure": exposure, "trials": trials, "clusters": clusters}
        targets = target_columns(y) if self.several_targets else None
        y = only_column(y) if targets == 1 else y
        if targets is not None and (targets > 1 or self.keeps_one_column):
            refuse_beside(targets, beside)
            return self._fit_rows(X, y, sample_weight, targets=targets, several=targets)
        layout, y = lay_out(y, beside)
        return self._fit_rows(X, y, sample_weight, targets=layout.columns, layout=layout)

    def _check_settings(self) -> None:
        super()._check_settings()
        self._loss()  # a family refuses a power or theta of its own that is wrong

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = not self._loss().family.inside(np.array([-1.0]))[0]
        tags.target_tags.multi_output = self.several_targets
        return tags

    def _loss(self) -> ResponseLoss:
        family = response_family(self.family, theta=self.theta, power=self.power)
        return glm_loss(family, link_function(self.link, family.usual))

    def _penalty(self) -> ElasticNetPenalty:
        strength = float(np.max(self.alpha))  # of several targets' the largest
        return ElasticNetPenalty(strength, float(self.l1_ratio), self.penalty_per_row, bool(self.positive))

    @property
    def _most_passes(self) -> int:
        return 1000 if self.max_iter is None else self.max_iter

    def _fit(
        self,
        rows: Rows,
        previous: Attributes,
        layout: ResponseLayout = ResponseLayout(),
        several: int | None = None,
    ) -> Attributes:
        if several is not None:
            return self._fit_several(rows, previous, several)
        refuse_strengths(self.alpha)
        loss, penalty, claim = self._loss(), self._penalty(), linear_claim(self)._replace(layout=layout)
        d = rows.n_features
        sample = evenly_spaced(rows, self._tuning.sample_rows)
        refuse_one_way(rows, sample, claim)
        shortest = self.collinear == "shortest"
        coordinates = choose_coordinates(rows, sample, bool(self.fit_intercept), penalty.biased, shortest)
        lost = self._collinear(coordinates, rows)
        asked = gap_to_reach(self.tol) if penalty.smooth and loss.concordance != 0 else self.tol
        problem = with_working_sets(
            GlmProblem(rows, loss, coordinates, layout, penalty, max(asked, 1e-14), self._tuning)
        )
        check_size(sample)
        null = null_score(sample, loss, layout)
        if self.warm_start and np.shape(previous.get("coef_", 0.0)) == (d,):
            start = np.maximum(previous["coef_"], 0.0) if penalty.positive else previous["coef_"]
            theta = coordinates.theta(start, float(previous["intercept_"]))
        else:
            problem, theta = start_from(problem, sample, null)
        passes = self._most_passes
        with self._watch.loop("passes", passes, lambda state: coefficients(coordinates, state.x, d)) as watch:
            best = minimise(problem, theta, max_iter=passes, max_time=self.max_time, watcher=watch)
        fitted = finish(problem, best)
        certificate = prove(problem, best, fitted, claim, self.tol)
        why = self._why_no_errors(certificate)
        assert problem.totals is not None
        if penalty.biased:  # the likelihood and standard errors of a penalised fit would mislead
            deviance = 2 * max(0.0, certificate.objective - problem.penalty_at(best.params.x))
            evidence = {"deviance_": deviance, "covariance_": None}
        else:
            null = constant_score(rows, loss, layout, problem.totals.y, problem.totals.weight, null)
            theta = coordinates.theta(fitted["coef_"], float(fitted["intercept_"]))  # as it is stored
            at = LikelihoodPoint(theta, null, coordinates, loss, layout)
            e, frame = last_pass(rows, at, None if why else self.covariance)
            e = e.at_objective(certificate.objective, squares=loss.concordance == 0)
            evidence = likelihood_attributes(e, loss.family, frame, d, self.covariance, why)
        if "dual_gap_" in self.diagnostics:
            evidence["dual_gap_"] = certificate.gap / problem.totals.weight
        return {
            **fitted,
            **evidence,
            "collinear_": lost,
            "n_iter_": best.n_iter,
            "history_": best.history,
            "certificate_": certificate,
        }

    def _fit_several(self, rows: Rows, previous: Attributes, targets: int) -> Attributes:
        """Fit each target by itself, with its own strength of the penalty where there are several."""
        models = [copy.copy(self) for _ in range(targets)]
        for k, model in enumerate(models):
            model.alpha, model.covariance = target_strength(self.alpha, k, targets), None
        relabels = [partial(pick_target, k) for k in range(targets)]
        return fit_targets(models, self._watch, rows, relabels, previous if self.warm_start else {})

    def _collinear(self, coordinates: GlmCoordinates, rows: Rows) -> Array:
        """Numbers of the columns that are combinations of others; refused if that was asked for."""
        lost = coordinates.left_out(rows.n_features)
        if len(lost):
            words = column_words(rows, lost)
            if self.collinear == "refuse":
                raise DataError(
                    got=f"columns that are combinations of those before them: {words}",
                    wanted="columns that are linearly independent, given collinear='refuse'",
                    fix="Leave them out, use collinear='drop' or 'shortest', or a penalty.",
                )
            done = "left out (coefficient 0)"
            if coordinates.shortest is not None:
                done = "of all coefficients with the same predictions the shortest are taken"
            warn_caller(f"{words}: combinations of the columns before them, {done}", CollinearWarning)
        return lost

    @property
    def no_errors_because_(self) -> str:
        """Why there are no standard errors; empty where there are."""
        why = self._why_no_errors(self.certificate_)
        if np.ndim(self.coef_) == 2 and not why:
            return "there are several targets: fit each by itself for its standard errors"
        if not why and self._loss().family.free_dispersion:
            why = no_degrees_of_freedom(self.df_resid_ + self._parameters, self._parameters)
        if why or self.covariance_ is not None:
            return why
        return "variances of the coefficients are too large for a number: rescale the columns"

    def _why_no_errors(self, certificate: Certificate) -> str:
        """Why standard errors would not be valid, whatever the columns are; empty if they are."""
        if self.positive and not self._penalty().alpha > 0:
            return "coefficients are held at 0 or above: the usual standard errors do not apply"
        return why_no_errors(self._penalty().alpha > 0, certificate, self.covariance)

    @property
    def _parameters(self) -> int:
        """Number of coefficients that were estimated, the intercept among them."""
        return self.coef_.shape[-1] - len(self.collinear_) + bool(self.fit_intercept)

    @property
    def exact_fit_(self) -> bool:
        """Whether the residuals are nothing but rounding; the log-likelihood is infinite then."""
        return bool(np.isposinf(vars(self).get("loglikelihood_", 0.0)))

    @property
    def aic_(self) -> float:
        """Akaike's criterion, 2 (parameters) - 2 (log-likelihood); a free dispersion counts as a parameter."""
        return float(2 * (self._parameters + self._loss().family.free_dispersion) - 2 * self.loglikelihood_)

    @property
    def bic_(self) -> float:
        """Schwarz's criterion, log(rows) (parameters) - 2 (log-likelihood)."""
        free = self._parameters + self._loss().family.free_dispersion
        return float(np.log(self.df_resid_ + self._parameters) * free - 2 * self.loglikelihood_)

    def _estimates(self) -> tuple[list[str], Array]:
        d = self.coef_.shape[-1]
        names = [*map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)]))]
        theta = np.atleast_2d(self.coef_)
        if self.fit_intercept:
            names, theta = ["intercept", *names], np.column_stack([np.ravel(self.intercept_), theta])
        if np.ndim(self.coef_) == 1:
            return names, theta[0]
        return [f"target {k}: {name}" for k in range(len(theta)) for name in names], theta.ravel()

    def _student(self) -> float | None:
        return self.df_resid_ if self._loss().family.free_dispersion else None

    def _facts(self) -> list[tuple[str, str]]:
        loss = self._loss()
        family = ("family, link", f"{loss.family.name}, {loss.link.name}")
        proof = ("proof", f"{self.certificate_.kind}: {self.certificate_.claim}")
        if not hasattr(self, "loglikelihood_"):
            deviances = ", ".join(f"{deviance:.6g}" for deviance in np.ravel(self.deviance_)[:5])
            return [family, *self._penalty_facts(), ("deviance", deviances), proof]
        rows = self.df_resid_ + self._parameters
        squares = (loss.family.name, loss.link.name) == ("gaussian", "identity")
        pearson = ("Pearson chi²", f"{self.pearson_chi2_:.6g}")
        likelihood = [
            ("log-likelihood", f"{self.loglikelihood_:.6g}"),
            ("AIC, BIC", f"{self.aic_:.6g}, {self.bic_:.6g}"),
        ]
        deviance = f"{self.deviance_:.6g}"
        if self.exact_fit_:
            deviance, pearson, likelihood = "0", (pearson[0], "0"), [("residuals", "rounding: the fit is exact")]
        return [
            family,
            ("rows, residual df", f"{rows:g}, {self.df_resid_:g}"),
            ("deviance (null)", f"{deviance} ({self.null_deviance_:.6g})"),
            *(self._variance_facts() if squares else [self._explained(), pearson]),
            ("dispersion", f"{self.dispersion_:.6g}" + ("" if loss.family.free_dispersion else " (fixed)")),
            *likelihood,
            proof,
        ]

    def _penalty_facts(self) -> list[tuple[str, str]]:
        """What holds the coefficients back, in words."""
        penalty = self._penalty()
        held = [("constraint", "coefficients of at least 0")] if penalty.positive else []
        if not penalty.alpha > 0:
            return held
        strengths = ", ".join(f"{alpha:g}" for alpha in np.ravel(self.alpha)[:5])
        share = f", of which {100 * penalty.l1_ratio:g} % L1" if penalty.l1_ratio > 0 else ""
        return [("penalty", f"alpha={strengths} {'per row' if penalty.per_row else 'in all'}{share}"), *held]

    def _explained(self) -> tuple[str, str]:
        """The pseudo-R² that compares deviances, as `score` does."""
        share = 1 - self.deviance_ / self.null_deviance_ if self.null_deviance_ > 0 else np.nan
        return "pseudo-R² (deviance)", _beside_one(share)

    def _variance_facts(self) -> list[tuple[str, str]]:
        """R², adjusted R² and the F test against the constant model, of least squares with an intercept."""
        slopes, df = self._parameters - 1, self.df_resid_
        if not (self.fit_intercept and slopes > 0 and df > 0 and self.null_deviance_ > 0):
            return []
        left = self.deviance_ / self.null_deviance_
        adjusted = 1 - left * (df + slopes) / df
        facts = [("R², adjusted", f"{_beside_one(1 - left)}, {_beside_one(adjusted)}")]
        if self.deviance_ > 0 and not self.exact_fit_:
            F = (self.null_deviance_ - self.deviance_) / slopes / (self.deviance_ / df)
            p = p_value_words(float(stats.f.sf(F, slopes, df)))
            facts.append(("F, its p-value", f"{_beside_one(F)} with {slopes} and {df:g} df, {p}"))
        return facts

    def _notes(self) -> tuple[str, ...]:
        """What the data do not determine, and overdispersion, in words."""
        return (*self._collinear_notes(), *self._dispersion_notes())

    def _collinear_notes(self) -> tuple[str, ...]:
        """Which columns are combinations of others, and what that makes of the coefficients."""
        if not len(self.collinear_):
            return ()
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.coef_.shape[-1])])
        words = ", ".join(str(names[j]) for j in self.collinear_[:10])
        words += f" and {len(self.collinear_) - 10} more" if len(self.collinear_) > 10 else ""
        if self.collinear != "shortest":
            return (f"Combinations of the columns before them, left out: {words}.",)
        chosen = "Of all coefficients with the same predictions the shortest are taken; open ones could differ."
        return (f"Combinations of the columns before them: {words}. {chosen}",)

    def _dispersion_notes(self) -> tuple[str, ...]:
        """Overdispersion in words, where the family fixes the dispersion and the targets can show it."""
        loss = self._loss()
        # Targets of 0 and 1 without trials have the log-likelihood -deviance/2: their spread follows from their mean.
        if loss.family.free_dispersion or not hasattr(self, "loglikelihood_") or self.df_resid_ <= 0:
            return ()
        if loss.family.name == "binomial" and np.isclose(self.loglikelihood_, -0.5 * self.deviance_, rtol=1e-9):
            return ()
        ratio, p = self.pearson_chi2_ / self.df_resid_, float(stats.chi2.sf(self.pearson_chi2_, self.df_resid_))
        spread = f"Pearson's chi² is {ratio:.3g} times its degrees of freedom (p-value {p_value_words(p)})"
        if p >= 0.01:
            return (f"{spread}: no sign of overdispersion.",)
        says = f"{spread}: overdispersed, the targets spread more than the {loss.family.name} family says."
        cure = (
            "Classical standard errors are too small: use covariance='sandwich', or a family with a free dispersion."
        )
        return (f"{says} {cure}",)

    def linear_predictor(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Array:
        """The scores η = β·x + b + offset, (n,); of several targets (n, targets)."""
        layout, beside = lay_out(None, {"offset": offset, "exposure": exposure})
        rows = self._rows(X, beside, target="numbers" if layout.columns > 1 else "none", targets=layout.columns - 1)
        layout = ResponseLayout(*(None if place is None else place - 1 for place in layout))
        return rows.map(partial(scores_of, self.coef_, self.intercept_, layout))

    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Array:
        """The mean μ of each row."""
        loss, eta = self._loss(), self.linear_predictor(X, offset=offset, exposure=exposure)
        if loss.positive and (eta <= 0).any():
            row = int(np.argmax(eta <= 0))
            raise DataError(
                got=f"a score of {eta[row]:.4g} in row {row}, to which the {loss.link.name} link gives no mean",
                wanted="rows near those of the fit",
                fix="Use link='log', for which every score has a mean.",
            )
        return loss.mean(eta)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of deviance explained: 1 - deviance / null deviance (R² for the gaussian family).

        Of several targets, the mean of theirs.
        """
        rows = self._labelled_rows(X, y, sample_weight)
        if np.ndim(self.coef_) == 2:
            return float(np.mean([model._score(part) for model, part in self._each_target(rows)]))
        return self._score(rows)

    def _labelled_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Rows with as many targets as the fit had."""
        check_is_fitted(self)
        targets = len(self.coef_) if np.ndim(self.coef_) == 2 else 1
        if targets == 1 and self.several_targets and target_columns(y) == 1:
            y = only_column(y)
        return self._rows(X, y, sample_weight, target="numbers", targets=targets)

    def _each_target(self, rows: Rows) -> list[tuple[Any, Rows]]:
        """A model of each target alone, and the rows with that target."""
        return [(target_model(self, k), rows.relabel(partial(pick_target, k))) for k in range(len(self.coef_))]

    def _score(self, rows: Rows) -> float:
        loss = self._loss()
        total = rows.sum(partial(targets_total, ResponseLayout()))
        theta, coordinates = np.append(self.coef_, self.intercept_), GlmCoordinates(intercept=True)
        null = mean_score(loss, float(total[1]), float(total[0]))
        e, _ = last_pass(rows, LikelihoodPoint(theta, null, coordinates, loss, ResponseLayout()), None)
        return 1 - e.half_deviance / e.null if e.null > 0 else float(e.half_deviance == 0)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the deviance (data term) plus the penalty, on these rows; the sum over several targets."""
        rows = self._labelled_rows(X, y, sample_weight)
        if np.ndim(self.coef_) == 2:
            return Objective(*np.sum([model._objective(part) for model, part in self._each_target(rows)], axis=0))
        return self._objective(rows)

    def _objective(self, rows: Rows) -> Objective:
        loss = self._loss()
        theta, coordinates = np.append(self.coef_, self.intercept_), GlmCoordinates(intercept=True)
        s = rows.sum(
            partial(measure, theta, coordinates, loss, ResponseLayout(), GlmRequest(hessian=False, totals=True))
        )
        assert isinstance(s.totals, GlmTotals)
        data = max(0.0, s.loss + s.totals.constant)
        lam1, lam2 = self._penalty().strengths(s.totals.weight)
        penalty = lam1 * float(np.abs(self.coef_).sum()) + 0.5 * lam2 * float((self.coef_**2).sum())
        return Objective(data + penalty, data, penalty)


def refuse_beside(targets: int, beside: dict[str, Any]) -> None:
    """Refuse what stands beside one target only."""
    given = [name for name, value in beside.items() if value is not None]
    if given:
        raise DataError(
            got=f"{', '.join(given)} beside {targets} targets",
            wanted="one target, y (n,)",
            fix="Fit each target by itself.",
        )


def refuse_strengths(alpha: Any) -> None:
    """Refuse several penalties where there is one target."""
    if np.size(alpha) != 1:
        raise DataError(
            got=f"{np.size(alpha)} penalties for one target",
            wanted="one number",
            fix="Several are for y with as many columns.",
        )


__all__ = ["CollinearWarning", "GeneralizedLinearRegressor"]


def _beside_one(number: float) -> str:
    """Four digits, and none below 1e-5: what is left of deviances that are all but equal is rounding."""
    return f"{number if abs(number) >= 0.1 else round(float(number), 5) + 0.0:.4g}"
