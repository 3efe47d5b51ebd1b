"""Generalised linear models with a proved distance to the optimum and honest standard errors.

    min over β, b of   Σᵢ wᵢ d(yᵢ, μᵢ) / 2 + Σᵢ wᵢ · alpha (ρ |β|₁ + (1 - ρ)/2 |β|²),    g(μᵢ) = β·xᵢ + b + offsetᵢ

d is the family's unit deviance, ρ = l1_ratio. Newton's method on block sums; nearly collinear columns are made
orthogonal first. Reference: McCullagh & Nelder, Generalized Linear Models (1989).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from certifit.certificates import glm as checker
from certifit.certificates import recession
from certifit.core import (
    Array,
    ArrayRows,
    Block,
    Certificate,
    DataError,
    Estimator,
    NoSolutionError,
    Objective,
    Rows,
)
from certifit.core.estimator import Attributes
from certifit.models.glm_family import response_family
from certifit.models.glm_frame import Frame, choose_frame
from certifit.models.glm_link import LINKS, link_function
from certifit.models.glm_loss import Loss, glm_loss
from certifit.models.glm_pass import Totals, Want, measure
from certifit.models.glm_refine import refine
from certifit.models.glm_solve import Penalty, Problem, Seed, minimise
from certifit.models.glm_start import constant_score, least_squares_start, null_score, targets_total
from certifit.models.glm_target import Layout, lay_out
from certifit.models.inference import KINDS, Evidence, Inference, covariance, last_pass, why_no_errors
from certifit.models.logistic_solve import subsample

SAMPLE = 2**16  # rows in the subsample that gives the shift and, for long tables, the start
SMALL = 2**18  # entries up to which least squares ends with a refined step, needed or not
LONG = 2**18  # rows from which the start is the subsample's solution
EXTREME = dict.fromkeys(LINKS, np.inf) | {"logit": 12.0, "log": 12.0, "probit": 4.0, "cloglog": 2.5}  # see below


class CollinearWarning(UserWarning):
    """Some columns are combinations of others and were left out."""


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
        Maximum likelihood goes on until each coefficient is within 1e-7 of its standard error.
    covariance : 'classical', 'sandwich', 'clustered' or None
        How the standard errors are computed; None saves the time.
    collinear : 'drop' or 'refuse'
        What to do with columns that are combinations of others, where there is no penalty.
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
    null_deviance_, dispersion_, loglikelihood_, aic_, bic_, df_resid_ : floats, without a penalty
    standard_errors_, p_values_ : (d1,), the intercept first
    covariance_ : (d1, d1) of (intercept, coefficients); None where it is not valid
    collinear_ : numbers of the columns left out
    certificate_ : Certificate
    n_iter_ : int
    history_ : objective, relative gap and seconds at every pass

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
    _depth = 4
    penalty_per_row = True  # alpha stands beside the mean over rows, not beside their sum

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
        self._layout, y = lay_out(y, beside)
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._layout

    @property
    def _targets(self) -> int:
        return self._layout.columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = not self._loss().family.inside(np.array([-1.0]))[0]
        return tags

    # What a front fixes. -----------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        family = response_family(self.family, theta=self.theta, power=self.power)
        return glm_loss(family, link_function(self.link, family.usual))

    def _penalty(self) -> Penalty:
        alpha, ratio = float(self.alpha), float(self.l1_ratio)
        if not 0 <= alpha < np.inf:
            raise DataError(got=f"alpha={self.alpha!r}", wanted="a finite number of at least 0")
        if not 0 <= ratio <= 1:
            raise DataError(got=f"l1_ratio={self.l1_ratio!r}", wanted="a number between 0 and 1")
        return Penalty(alpha, ratio, self.penalty_per_row)

    def problem_spec(self, layout: Layout) -> checker.Spec:
        """What the checker needs to know of the problem."""
        loss = self._loss()
        family = loss.family
        return checker.Spec(
            family.name,
            loss.link.name,
            *self._penalty(),
            bool(self.fit_intercept),
            getattr(family, "power", np.nan),
            getattr(family, "theta", np.nan),
            layout.offset,
            layout.exposure,
            layout.trials,
        )

    # ---------------------------------------------------------------------------------------------------------------

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        loss, penalty, layout = self._loss(), self._penalty(), self._layout
        self._check_settings()
        intercept, d = bool(self.fit_intercept), rows.n_features
        sample = subsample(rows, SAMPLE)
        frame = choose_frame(rows, sample, intercept, penalised=penalty.alpha > 0)
        lost = self._collinear(frame, rows)
        null = null_score(sample, loss, layout)
        theta = self._start(previous, frame, sample, loss, layout, null)
        problem = Problem(rows, loss, frame, layout, penalty, max(self.tol, 1e-14))
        if rows.n_rows >= LONG and not previous:
            theta, seed = _from_sample(problem, sample, theta)
            problem = replace(problem, seed=seed)
        with self._watch.loop("passes", self.max_iter, lambda state: _named(frame, state.x, d)) as watch:
            best = minimise(problem, theta, max_iter=self.max_iter, max_time=self.max_time, watcher=watch)
        if not np.isfinite(best.objective):
            raise DataError(
                got=f"no coefficients for which every mean is in the range of the {loss.family.name} family",
                wanted=f"a start for the {loss.link.name} link",
                fix="Use link='log', or fit an intercept.",
            )
        theta = best.params.x
        fitted = _named(frame, theta, d)
        if loss.concordance == 0 == penalty.alpha and (frame.R is not None or rows.n_rows * d <= SMALL):
            assert problem.proof.anchor is not None
            inverse = problem.proof.anchor.factor.solve
            coef, b = refine(rows, frame, layout, fitted["coef_"], float(fitted["intercept_"]), inverse)
            fitted = {"coef_": coef, "intercept_": np.float64(b)}
        proved = problem.proved and best.status == "converged"
        assert problem.totals is not None
        certificate = self._certificate(best, problem.totals.floor if proved else None, fitted, rows, layout)
        if penalty.alpha == 0 and not (certificate.holds and certificate.kind == "optimal"):
            self._refuse_unbounded(rows, layout, fitted)
        why = why_no_errors(penalty.alpha > 0, certificate, self.covariance)
        evidence = self._penalised_evidence(best.objective, problem, theta, why)
        if penalty.alpha == 0:
            assert problem.totals is not None
            null = constant_score(rows, loss, layout, problem.totals.y, problem.totals.weight, null)
            e = last_pass(rows, theta, null, frame, loss, layout, None if why else self.covariance)
            evidence = self._evidence(e, loss, frame, d, why)
        return {
            **fitted,
            **evidence,
            "collinear_": lost,
            "n_iter_": best.n_iter,
            "history_": best.history,
            "certificate_": certificate,
        }

    def _penalised_evidence(self, objective: float, problem: Problem, theta: Array, why: str) -> Attributes:
        """The deviance alone: likelihoods and standard errors of penalised fits do not mean what they say."""
        deviance = 2 * max(0.0, objective - problem.penalty_at(theta))
        return {"deviance_": deviance, "covariance_": None, "no_errors_because_": why}

    def _check_settings(self) -> None:
        if self.covariance not in (*KINDS, None):
            raise DataError(got=f"covariance={self.covariance!r}", wanted=f"one of {KINDS} or None")
        if self.collinear not in ("drop", "refuse"):
            raise DataError(got=f"collinear={self.collinear!r}", wanted="'drop' or 'refuse'")

    def _collinear(self, frame: Frame, rows: Rows) -> Array:
        """Numbers of the columns left out; refused if that was asked for."""
        d = rows.n_features
        lost = np.zeros(0, int) if frame.kept is None else np.setdiff1d(np.arange(d), frame.kept)
        if len(lost):
            names = [f"column {j}" if rows.names is None else repr(str(rows.names[j])) for j in lost[:10]]
            words = ", ".join(names) + (f" and {len(lost) - 10} more" if len(lost) > 10 else "")
            if self.collinear == "refuse":
                raise DataError(
                    got=f"columns that are combinations of those before them: {words}",
                    wanted="columns that are linearly independent, given collinear='refuse'",
                    fix="Leave them out, use collinear='drop', or a penalty.",
                )
            warnings.warn(
                f"{words}: combinations of the columns before them, left out (coefficient 0)",
                CollinearWarning,
                stacklevel=self._depth + 2,
            )
        return lost

    def _start(
        self, previous: Attributes, frame: Frame, sample: ArrayRows, loss: Loss, layout: Layout, null: float
    ) -> Array:
        d = sample.n_features
        coef = previous.get("coef_")
        if self.warm_start and coef is not None and coef.shape == (d,):
            return frame.theta(coef, float(previous["intercept_"]))
        if frame.intercept:
            return frame.theta(np.zeros(d), null)
        if not loss.positive:
            return np.zeros(frame.size(d))
        return least_squares_start(frame, sample, loss, layout)

    def _certificate(
        self, best: Any, floor: float | None, fitted: Attributes, rows: Rows, layout: Layout
    ) -> Certificate:
        """From the last pass where that proves it (`floor` is what rounding leaves there), else from the checker."""
        objective = best.objective
        if floor is not None:
            unit = max(objective, floor)  # what gaps are relative to
            limit = (self.tol + 1e-12) * unit
            claim = checker.PENALISED if self._penalty().alpha > 0 else checker.LIKELIHOOD
            return Certificate("optimal", claim, objective, objective - best.gain * unit, self.tol, limit)
        return checker.certify(fitted["coef_"], fitted["intercept_"], self.problem_spec(layout), self.tol, rows)

    def _refuse_unbounded(self, rows: Rows, layout: Layout, fitted: Attributes) -> None:
        """An error with its proof, if the likelihood has no maximum; some score is extreme then."""
        spec = self.problem_spec(layout)
        largest = np.abs(rows.map(partial(_scores, fitted["coef_"], fitted["intercept_"], layout))).max()
        direction = recession.find(rows, spec) if largest > EXTREME[spec.link] else None
        certificate = None if direction is None else recession.impossible(direction, spec, rows)
        if certificate is not None and certificate.holds:
            raise NoSolutionError(
                "The likelihood has no maximum: it rises for ever along a direction (separable classes, or a group "
                "without a single event). Use a penalty (alpha > 0), or leave out the columns with non-zero entries "
                f"in the direction (intercept last): {certificate.facts['direction']}",
                certificate,
            )

    def _evidence(self, e: Evidence, loss: Loss, frame: Frame, d: int, why: str) -> Attributes:
        m = frame.size(d)
        df = e.rows - m
        free = loss.family.free_dispersion
        dispersion = (e.pearson / df if df > 0 else np.nan) if free else 1.0
        if not why and free and not df > 0:
            why = f"there are {e.rows:g} rows for {m} coefficients: nothing is left to estimate the dispersion from"
        deviance = 2 * max(0.0, e.half_deviance)
        perfect = free and deviance == 0  # a density without spread is infinite where the points are
        loglik = np.inf if perfect else loss.family.log_likelihood(e.base, deviance, e.rows)
        parameters = m + free
        cov = None
        if not why:
            C = frame.covariance(covariance(self.covariance, e, dispersion), d)
            order = np.roll(np.arange(d + 1), 1) if frame.intercept else np.arange(d)
            cov = C[np.ix_(order, order)]
        return {
            "deviance_": deviance,
            "null_deviance_": 2 * max(0.0, e.null),
            "dispersion_": float(dispersion),
            "df_resid_": df,
            "loglikelihood_": float(loglik),
            "aic_": float(2 * parameters - 2 * loglik),
            "bic_": float(np.log(e.rows) * parameters - 2 * loglik),
            "covariance_": cov,
            "no_errors_because_": why,
        }

    def _estimates(self) -> tuple[list[str], Array]:
        names = [*map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(self.coef_))]))]
        if not self.fit_intercept:
            return names, self.coef_
        return ["intercept", *names], np.append(self.intercept_, self.coef_)

    def _student(self) -> float | None:
        return self.df_resid_ if self._loss().family.free_dispersion else None

    def _facts(self) -> list[tuple[str, str]]:
        loss = self._loss()
        family = ("family, link", f"{loss.family.name}, {loss.link.name}")
        proof = ("proof", f"{self.certificate_.kind}: {self.certificate_.claim}")
        if self._penalty().alpha > 0:
            return [family, ("deviance", f"{self.deviance_:.6g}"), proof]
        rows = self.df_resid_ + len(self.coef_) - len(self.collinear_) + bool(self.fit_intercept)
        return [
            family,
            ("rows, residual df", f"{rows:g}, {self.df_resid_:g}"),
            ("deviance (null)", f"{self.deviance_:.6g} ({self.null_deviance_:.6g})"),
            ("dispersion", f"{self.dispersion_:.6g}" + ("" if loss.family.free_dispersion else " (fixed)")),
            ("log-likelihood", f"{self.loglikelihood_:.6g}"),
            ("AIC, BIC", f"{self.aic_:.6g}, {self.bic_:.6g}"),
            proof,
        ]

    def linear_predictor(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Array:
        """The scores η = β·x + b + offset, (n,)."""
        layout, beside = lay_out(None, {"offset": offset, "exposure": exposure})
        rows = self._rows(X, beside, target="numbers" if layout.columns > 1 else "none", targets=layout.columns - 1)
        layout = Layout(*(None if place is None else place - 1 for place in layout))
        return rows.map(partial(_scores, self.coef_, self.intercept_, layout))

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
        """D², the share of deviance explained: 1 - deviance / null deviance (R² for the gaussian family)."""
        rows, loss = self._rows(X, y, sample_weight, target="numbers"), self._loss()
        total = rows.sum(partial(targets_total, Layout()))
        theta, frame = np.append(self.coef_, self.intercept_), Frame(intercept=True)
        null = float(loss.link.score(np.array(total[1] / total[0])))
        e = last_pass(rows, theta, null, frame, loss, Layout(), None)
        return 1 - e.half_deviance / e.null if e.null > 0 else float(e.half_deviance == 0)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the deviance (data term) plus the penalty, on these rows."""
        rows, loss = self._rows(X, y, sample_weight, target="numbers"), self._loss()
        theta, frame = np.append(self.coef_, self.intercept_), Frame(intercept=True)
        s = rows.sum(partial(measure, theta, frame, loss, Layout(), Want(hessian=False, totals=True)))
        assert isinstance(s.totals, Totals)
        data = max(0.0, s.loss + s.totals.constant)
        lam1, lam2 = self._penalty().strengths(s.totals.weight)
        penalty = lam1 * float(np.abs(self.coef_).sum()) + 0.5 * lam2 * float((self.coef_**2).sum())
        return Objective(data + penalty, data, penalty)


def _from_sample(whole: Problem, sample: ArrayRows, theta: Array) -> tuple[Array, Seed | None]:
    """The subsample's solution as a start; with a ridge its Hessian also replaces the whole's, see `Seed`."""
    times = whole.rows.n_rows / sample.n_rows
    penalty = whole.penalty
    if not penalty.per_row:
        penalty = penalty._replace(alpha=penalty.alpha / times)
    part = Problem(sample, whole.loss, whole.frame, whole.layout, penalty, 1e-3)
    theta = minimise(part, theta, max_iter=20).params.x
    if penalty.alpha == 0 or penalty.l1_ratio > 0:  # closer than the subsample's Hessian leads in a few passes
        return theta, None
    want = Want(hessian=True, totals=False)
    s = sample.sum(partial(measure, theta, whole.frame, whole.loss, whole.layout, want))
    assert part.totals is not None
    assert isinstance(s.H, np.ndarray)
    return theta, Seed(theta, s.H, part.totals.weight, times)


def _named(frame: Frame, theta: Array, d: int) -> Attributes:
    coef, intercept = frame.coefficients(theta, d)
    return {"coef_": coef.copy(), "intercept_": np.float64(intercept)}


def _scores(coef: Array, intercept: float, layout: Layout, block: Block) -> Array:
    eta = block.X @ coef + intercept
    if layout.offset is not None:
        eta = eta + _beside(block, layout.offset)
    if layout.exposure is not None:
        eta = eta + np.log(_beside(block, layout.exposure))
    return eta


def _beside(block: Block, place: int) -> Array:
    assert block.y is not None
    return block.y if block.y.ndim == 1 else block.y[:, place]


__all__ = ["CollinearWarning", "GeneralizedLinearRegressor"]
