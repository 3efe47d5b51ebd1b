"""The uncertainty of fitted coefficients: one last pass over the rows, covariances, and the table.

classical   φ I⁻¹,  I the expected Fisher information
sandwich    I⁻¹ (Σ w u² z zᵀ) I⁻¹, right also where the variance function is not (White 1980; "HC0")
clustered   the same with scores summed over clusters first, times G/(G-1) · (n-1)/(n-m) (Liang & Zeger 1986)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular

from certifit.checkers.linear_model.inference import InferenceTuning
from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.core import Certificate
from certifit.core.summary import Summary
from certifit.core.text_table import proved_digits, text_table
from certifit.exceptions import DataError, NotAvailableError
from certifit.linear_model.glm.block_statistics import scores
from certifit.linear_model.glm.coordinates import GlmCoordinates
from certifit.linear_model.glm.target import take_apart
from certifit.linear_model.linear_rows import moment, sandwich
from certifit.losses.response_families import ResponseFamily
from certifit.losses.response_losses import ResponseLoss
from certifit.numerics.factor import factor
from certifit.numerics.moments import Triangle, block_triangle
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class ClusterScores:
    """Scores summed over the rows of each cluster; `+` joins the clusters of two runs of rows."""

    labels: Array  # (G,) sorted
    total: Array  # (G, m)

    def __add__(self, other: ClusterScores) -> ClusterScores:
        labels, code = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        total = np.zeros((len(labels), self.total.shape[1]))
        np.add.at(total, code, np.concatenate([self.total, other.total]))
        return ClusterScores(labels, total)


@dataclass(frozen=True)
class InferenceSums(Sums):
    """Sums at the solution, from which likelihood and covariances follow."""

    information: Array | float  # (m, m) Σ w E φ" z zᵀ
    score_products: Array | float  # (m, m) Σ w u² z zᵀ
    clusters: Any  # ClusterScores, or 0
    half_deviance: float
    null: float  # half deviance of the constant model
    pearson: float  # Σ w (y - μ)² / V(μ)
    base: float  # see ResponseFamily.base
    rows: float  # Σ w
    rounding: float  # half deviance of residuals that are nothing but rounding

    def at_objective(self, half_deviance: float, squares: bool) -> InferenceSums:
        """The same with the half deviance that the fit's certificate states, which has lost no digits."""
        pearson = 2 * half_deviance if squares else self.pearson
        return replace(self, half_deviance=half_deviance, pearson=pearson)


class LikelihoodPoint(NamedTuple):
    """Where the sums are taken, and of what."""

    theta: Array  # (m,)
    null: float  # the constant model's score, without the offset
    coordinates: GlmCoordinates
    loss: ResponseLoss
    layout: ResponseLayout


def _block_sums(at: LikelihoodPoint, kind: str | None, turn: Array | None, block: Block) -> InferenceSums:
    """Sum a block's part.

    With a triangular factor R as `turn`, information and scores are those of the coordinates R⁻ᵀ z.
    """
    theta, null, coordinates, loss, layout = at
    response = take_apart(layout, block)
    y, w, Z = response.y, response.w, coordinates.rows(response.X)
    eta = scores(Z, theta, coordinates, response)
    appends_one = coordinates.appends_one and turn is None
    Z = Z if turn is None else np.ascontiguousarray(solve_triangular(turn, _with_ones(Z, coordinates).T, trans="T").T)
    mu = loss.mean(eta)
    phi, u, _ = loss.rows(eta, y)
    null_phi = loss.rows(null + response.offset, y).phi
    constant = loss.constant(y)
    information: Array | float = 0.0
    score_products: Array | float = 0.0
    clusters: Any = 0.0
    curvature = loss.expected(eta)
    if kind is not None:
        information = sandwich(Z, w * curvature, appends_one)
    if kind == "sandwich":
        score_products = sandwich(Z, response.times * (response.trials * u) ** 2, appends_one)
    if kind == "clustered":
        clusters = _by_cluster(Z, w * u, appends_one, response.clusters)
    b = coordinates.coefficients(theta, block.X.shape[1])[1]
    size = np.abs(eta) + np.abs(response.offset) + abs(b) + (np.abs(y) if loss.concordance == 0 else 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        pearson = np.where(y == mu, 0.0, (y - mu) ** 2 / loss.family.variance(mu))
        rounding = 0.5 * float(w @ (curvature * (InferenceTuning().exact * size) ** 2))
    return InferenceSums(
        information,
        score_products,
        clusters,
        float(w @ (phi + constant)),
        float(w @ (null_phi + constant)),
        float(w @ pearson),
        float(response.times @ np.broadcast_to(loss.family.base(y, response.trials), y.shape)),
        float(response.times.sum()),
        rounding,
    )


def _with_ones(Z: Any, coordinates: GlmCoordinates) -> Array:
    """Rows of these coordinates as an array (rows, m), a column of ones last where they lack one."""
    Z = Z if isinstance(Z, np.ndarray) else Z.toarray()
    return np.column_stack([Z, np.ones(len(Z))]) if coordinates.appends_one else Z


def _information_triangle(at: LikelihoodPoint, block: Block) -> Triangle:
    """The triangular factor R of a block's information RᵀR."""
    response = take_apart(at.layout, block)
    Z = at.coordinates.rows(response.X)
    curvature = at.loss.expected(scores(Z, at.theta, at.coordinates, response))
    return block_triangle(_with_ones(Z, at.coordinates), response.w * curvature)


def _by_cluster(Z: Any, u: Array, appends_one: bool, clusters: Array | None) -> ClusterScores:
    if clusters is None:
        raise DataError(
            got="covariance='clustered' without clusters",
            wanted="fit(…, clusters=): a number for each row's cluster",
        )
    labels, code = np.unique(clusters, return_inverse=True)
    member = (code == np.arange(len(labels))[:, None]).astype(np.float64)  # (G, rows)
    return ClusterScores(labels, moment(Z, (member * u).T, appends_one))


def covariance(kind: str, e: InferenceSums, dispersion: float) -> Array:
    """The covariance (m, m) of θ, of this kind."""
    assert isinstance(e.information, np.ndarray)
    inverse = factor(e.information)
    eye = np.eye(len(e.information))
    if kind == "classical":
        return dispersion * inverse.solve(eye)
    score_products = e.score_products
    if kind == "clustered":
        total, groups = e.clusters.total, len(e.clusters.labels)
        if groups < 2:
            raise DataError(got="one cluster", wanted="at least two, better dozens")
        score_products = total.T @ total * (groups / (groups - 1) * (e.rows - 1) / max(1.0, e.rows - len(eye)))
    assert isinstance(score_products, np.ndarray)
    return inverse.solve(inverse.solve(score_products).T)


def last_pass(
    rows: Rows, at: LikelihoodPoint, kind: str | None, least_pivot: float = 1e-4
) -> tuple[InferenceSums, GlmCoordinates]:
    """One pass over all rows at the solution, and the coordinates that its information and scores are in.

    Coordinates that suit the rows need not suit the information, whose curvatures may span decades: with smaller
    pivots its inverse would lose most of its digits, and coordinates in which it is 1 are taken instead.
    """
    e = rows.sum(partial(_block_sums, at, kind, None))
    if not isinstance(e.information, np.ndarray) or not np.isfinite(e.information).all():
        return e, at.coordinates
    found = factor(e.information).cholesky
    if found is not None and np.diag(found[0]).min(initial=1.0) > least_pivot:
        return e, at.coordinates
    R = rows.sum(partial(_information_triangle, at)).R
    if R.shape[0] < R.shape[1] or not np.isfinite(R).all() or not np.diag(R).all():
        return e, at.coordinates
    return rows.sum(partial(_block_sums, at, kind, R)), at.coordinates.turned(R)


def likelihood_attributes(
    e: InferenceSums, family: ResponseFamily, coordinates: GlmCoordinates, d: int, kind: str | None, why: str
) -> dict[str, Any]:
    """Fitted attributes of a maximum-likelihood fit; `why`, if not empty, says why it has no standard errors.

    A covariance that is too large for numbers is left out as well.
    """
    m, free = coordinates.size(d), family.free_dispersion
    df = e.rows - m
    dispersion = (e.pearson / df if df > 0 else np.nan) if free else 1.0
    why = why or (no_degrees_of_freedom(e.rows, m) if free else "")
    deviance = 2 * max(0.0, e.half_deviance)
    # A density without spread is infinite where the points are; what rounding makes of that is no likelihood.
    exact = free and family.name != "tweedie" and e.half_deviance <= e.rounding
    loglik = np.inf if exact else family.log_likelihood(e.base, deviance, e.rows)
    cov = None
    if not why and kind is not None:
        C = coordinates.covariance(covariance(kind, e, dispersion), d)
        order = np.roll(np.arange(d + 1), 1) if coordinates.intercept else np.arange(d)
        cov = None if np.isinf(C).any() else C[np.ix_(order, order)]
    return {
        "deviance_": deviance,
        "null_deviance_": 2 * max(0.0, e.null),
        "dispersion_": float(dispersion),
        "pearson_chi2_": float(e.pearson),
        "df_resid_": df,
        "loglikelihood_": float(loglik),
        "covariance_": cov,
    }


def no_degrees_of_freedom(rows: float, m: int) -> str:
    """Why so many rows give no dispersion beside m coefficients; empty if they do."""
    if rows > m:
        return ""
    return f"there are {rows:g} rows for {m} coefficients: nothing is left to estimate the dispersion from"


def why_no_errors(penalised: bool, certificate: Certificate, kind: str | None) -> str:
    """Why standard errors would not be valid; empty if they are."""
    if penalised:
        return "the fit is penalised: its coefficients are biased and the usual standard errors do not apply"
    if not certificate.holds:
        return "the fit's certificate does not hold: it is not proved to be the maximum of the likelihood"
    return "covariance=None: none were asked for" if kind is None else ""


class Inference(ABC):
    """Standard errors and what follows from them, for a model whose fit sets the covariance."""

    covariance_: Array | None  # of the estimates; None where it would not be valid
    covariance: Any  # the setting: how it is computed
    certificate_: Certificate
    fit_intercept: Any

    @property
    def exact_fit_(self) -> bool:
        """Whether the residuals are nothing but rounding: a likelihood and errors of theirs would say nothing."""
        return False

    @property
    @abstractmethod
    def no_errors_because_(self) -> str:
        """Why there are no standard errors; empty where there are."""

    @abstractmethod
    def _estimates(self) -> tuple[list[str], Array]:
        """Names and values of the estimates, in the order of `covariance_`."""

    @abstractmethod
    def _facts(self) -> list[tuple[str, str]]:
        """What `summary` says above the table: (label, value) pairs."""

    def _student(self) -> float | None:
        """Degrees of freedom of the t distribution; None for the normal."""
        return None

    def coefficient_table(self, level: float = 0.95) -> CoefficientTable:
        """Estimates, standard errors, tests against 0 and confidence intervals; refused where they are not valid."""
        if self.covariance_ is None:
            raise NotAvailableError(
                got="a fit without standard errors", wanted="a valid one", fix=self.no_errors_because_ + "."
            )
        names, estimates = self._estimates()
        table = CoefficientTable.of(names, estimates, self.covariance_, self._student(), level)
        return replace(table, proved=self._parameter_errors(len(estimates)))

    def _parameter_errors(self, size: int) -> Array | None:
        """How far each estimate can be from the minimiser's, in the order of `covariance_`; None where unknown."""
        errors = np.array(self.certificate_.parameter_error, dtype=np.float64)
        if errors.ndim != 2:
            return None
        errors = np.roll(errors, 1, axis=1) if self.fit_intercept else errors[:, :-1]
        return errors.ravel() if errors.size == size else None

    @property
    def standard_errors_(self) -> Array:
        """In the order of `covariance_`: the intercept first."""
        return self.coefficient_table().standard_error

    @property
    def p_values_(self) -> Array:
        return self.coefficient_table().p_value

    def confidence_intervals(self, level: float = 0.95) -> Array:
        """Lower and upper ends, one row for each estimate, in the order of `covariance_`."""
        table = self.coefficient_table(level)
        return np.column_stack([table.lower, table.upper])

    def summary(self, level: float = 0.95) -> Summary:
        """The fit on one page: what was fitted, how well, and the coefficients.

        Parameters
        ----------
        level : float between 0 and 1, default=0.95
            Of the confidence intervals.

        Returns
        -------
        Summary : prints as a table of at most 80 columns; notebooks show it as one
        """
        facts = self._facts()
        if self.covariance_ is not None and not self.exact_fit_:
            facts.append(("standard errors", str(self.covariance)))
            return Summary(tuple(facts), self.coefficient_table(level).lines(), self._notes())
        exact = "the fit is exact, its residuals are rounding"
        why = f"no standard errors: {exact if self.exact_fit_ else self.no_errors_because_}"
        table, left = self._plain_table()
        return Summary(tuple(facts), table, (*left, *self._notes(), why))

    def _notes(self) -> tuple[str, ...]:
        """What `summary` says below the table."""
        return ()

    def _plain_table(self, most: int = 50) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
        """The coefficients with their proved digits, at most so many lines of them, and what was left out."""
        names, values = self._estimates()
        proved = self._parameter_errors(len(values))
        digits = shown_digits(values, proved)
        shown, left = np.arange(len(values)), tuple[str, ...]()
        if len(values) > most:
            used = int(np.count_nonzero(values))
            shown = np.sort(np.argsort(-np.abs(values), kind="stable")[:most])
            left = (f"The {most} largest of {len(values)} estimates, {used} of which are not 0; all are in coef_.",)
        heading = ("", "coef" if proved is not None else "coef (unproved)")
        return (heading, *((names[j], digits[j]) for j in shown)), left


@dataclass(frozen=True)
class CoefficientTable:
    """Estimates with their uncertainty, one row per coefficient, the intercept first.

    `str` prints it, the estimates with the digits that the fit's certificate proves and no others.
    """

    names: tuple[str, ...]
    estimate: Array  # (m,)
    standard_error: Array  # (m,)
    statistic: Array  # (m,) estimate / standard error
    p_value: Array  # (m,)
    lower: Array  # (m,) ends of the confidence intervals
    upper: Array  # (m,)
    level: float
    t: bool  # Student's t (estimated dispersion) rather than the normal
    proved: Array | None = None  # (m,) how far each estimate can be from the minimiser's; None where nobody knows

    @classmethod
    def of(cls, names: Any, estimate: Array, covariance: Array, df: float | None, level: float) -> CoefficientTable:
        """From estimates (m,) and their covariance (m, m); df is None for the normal distribution."""
        error = np.sqrt(np.diag(covariance))
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = estimate / error
        law = stats.norm if df is None else stats.t(df)
        margin = law.ppf(0.5 + level / 2) * error
        p = 2 * law.sf(np.abs(statistic))
        ends = estimate - margin, estimate + margin
        return cls(tuple(names), estimate, error, statistic, p, *ends, level, df is not None)

    def __str__(self) -> str:
        return text_table(self.lines(), "lr")

    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The table as lines of cells, the heading first."""
        tail = f"{(1 - self.level) / 2:.3g}"
        letter = "t" if self.t else "z"
        coef = "coef" if self.proved is not None else "coef (unproved)"
        head = ["", coef, "std err", letter, f"P>|{letter}|", f"[{tail}", f"{1 - (1 - self.level) / 2:.3g}]"]
        lines = [head]
        columns = (self.estimate, self.standard_error, self.statistic, self.p_value, self.lower, self.upper)
        shown = shown_digits(self.estimate, self.proved)
        for name, digits, values in zip(self.names, shown, zip(*columns, strict=True), strict=True):
            if np.isnan(values[1]):  # a column left out, or a coefficient that the data do not determine
                lines.append([name, *(("left out", "") if values[0] == 0 else (digits, "open")), *[""] * 4])
                continue
            _, error, statistic, p, lower, upper = (float(v) for v in values)
            numbers = [digits, f"{error:.4g}", f"{statistic:.3f}", p_value_words(p), f"{lower:.4g}", f"{upper:.4g}"]
            lines.append([name, *numbers])
        return tuple(map(tuple, lines))


def shown_digits(values: Array, proved: Array | None) -> list[str]:
    """Estimates (m,) with the digits that are proved; with five where it is not known how far they can be off."""
    if proved is None:
        return [f"{value:.5g}" for value in values]
    return [proved_digits(float(v), float(e)) for v, e in zip(values, proved, strict=True)]


def p_value_words(p: float) -> str:
    """A p-value in few characters."""
    return "<1e-16" if p < 1e-16 else f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"
