"""The picture of a generalised linear model: its mean along one column with a band, and its deviance residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from certifit.checkers.linear_model.adapter import linear_claim
from certifit.checkers.plain.response_losses import GlmClaim, loss, mean_and_slope
from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable
from certifit.plots.points import point_style
from certifit.plots.style import BLUE, GREY, RED, label_axes, new_grid, tidy
from certifit.plots.tables import target_values, view_table
from certifit.rows import Array


def plot_glm(model: Any, X: Any, y: Any, feature: int | str = 0, level: float = 0.95, axes: Any = None) -> Array:
    """Draw the mean that a linear model gives along one column, with its band, and the rows' deviance residuals.

    Other columns are held at their medians. The band holds the mean at each place with the given confidence, as far
    as the model's standard errors do; models without standard errors have none. The residual of a row is the root of
    its part of the deviance, with the sign of y - μ. The dashed lines of the second picture are two standard
    deviations from zero, as the family expects them: more rows beyond them than about one in twenty speak of more
    variance than it has. Offsets and weights of rows do not count here.

    Parameters
    ----------
    model : fitted linear regression
        `GeneralizedLinearRegressor` or any regressor made from it, also scikit-learn's.
    X : table of numbers
    y : (n,) of numbers, or the name of a column of X
    feature : number or name of the column along which the mean is drawn
    level : float between 0 and 1
        Of the band.
    axes : two Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    array of two Axes: the fit, and its residuals

    Examples
    --------
    >>> from certifit import PoissonRegressor
    >>> x, y = np.arange(12.0)[:, None], [1, 1, 2, 1, 3, 4, 3, 6, 8, 9, 13, 14]
    >>> fit, residuals = plot_glm(PoissonRegressor(alpha=0.0).fit(x, y), x, y)
    >>> fit.get_title(loc="left"), residuals.get_xlabel()
    ('poisson, log link: mean and 95 % band', 'fitted mean')
    """
    check_drawable(model, "a fitted linear regression", "coef_", "intercept_", "predict")
    claim = linear_claim(model)
    table, y = view_table(X, y)
    values = target_values(y, table.n_rows)
    coef = np.asarray(model.coef_, dtype=np.float64)
    if values is None or coef.ndim != 1 or len(coef) != table.n_columns or not 0 < level < 1:
        raise DataError(
            got=f"y of {type(y).__name__}, coef_ of shape {coef.shape}, {table.n_columns} columns, level={level!r}",
            wanted="a target for each row, one coefficient for each column of X, a level between 0 and 1",
        )
    values = values.astype(np.float64)
    j = table.place(feature)
    numbers = np.column_stack([table.numbers(i) for i in range(table.n_columns)])
    axes = new_grid(axes, (1, 2), (9.6, 3.8))
    _draw_fit(axes[0], GlmCurve(model, claim, np.nanmedian(numbers, axis=0), j, level), numbers[:, j], values)
    label_axes(axes[0], table.label(j), getattr(y, "name", None) or "y")
    _draw_residuals(axes[1], claim, numbers @ coef + float(model.intercept_), values, len(coef) + claim.intercept)
    return axes


def _draw_fit(ax: Axes, curve: GlmCurve, x: Array, y: Array) -> None:
    """Draw rows, the mean along x and its band."""
    known = x[np.isfinite(x)]
    places = np.linspace(known.min(), known.max(), 200)
    style = point_style(len(x))
    ax.scatter(x, y, color=GREY, **style | {"alpha": 0.6 * style["alpha"]})
    mean, low, high = curve.mean_and_band(places)
    if low is not None and high is not None:
        ax.fill_between(places, np.minimum(low, high), np.maximum(low, high), color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(places, mean, color=BLUE, linewidth=2)
    words = f" and {100 * curve.level:g} % band" if low is not None else ""
    ax.set_title(f"{curve.claim.family}, {curve.claim.link} link: mean{words}", loc="left", fontsize=10)
    tidy(ax)


@dataclass(frozen=True)
class GlmCurve:
    """The mean of a fitted model along column j, where others are held at their medians."""

    model: Any
    claim: GlmClaim
    usual: Array  # (d,) the medians of all columns
    j: int
    level: float

    def mean_and_band(self, x: Array) -> tuple[Array, Array | None, Array | None]:
        """Return the mean at x (m,) and both ends of its interval; None for these without standard errors."""
        rows = np.tile(self.usual, (len(x), 1))
        rows[:, self.j] = x
        eta = rows @ np.asarray(self.model.coef_, dtype=np.float64) + float(self.model.intercept_)
        mean = mean_and_slope(self.claim.link, eta)[0]
        covariance = getattr(self.model, "covariance_", None)
        design = np.column_stack([np.ones(len(x)), rows]) if self.claim.intercept else rows
        if covariance is None or np.shape(covariance) != (design.shape[1],) * 2 or not np.isfinite(covariance).all():
            return mean, None, None
        error = np.sqrt(np.maximum(((design @ covariance) * design).sum(axis=1), 0.0))
        reach = error * float(stats.norm.ppf(0.5 + self.level / 2))
        return mean, mean_and_slope(self.claim.link, eta - reach)[0], mean_and_slope(self.claim.link, eta + reach)[0]


def _draw_residuals(ax: Axes, claim: GlmClaim, eta: Array, y: Array, parameters: int) -> None:
    """Draw the deviance residual of each row against its mean, and two of the deviations that the family expects."""
    mean = mean_and_slope(claim.link, eta)[0]
    residual = np.sign(y - mean) * np.sqrt(np.maximum(2 * loss(claim, eta, y).phi, 0.0))
    known = np.isfinite(residual)
    ax.scatter(mean, residual, color=GREY, **point_style(len(y)))
    # Counts and yes-or-no answers have no free dispersion; others have the one that their residuals show.
    fixed = claim.family in ("poisson", "binomial", "negative_binomial")
    left = max(1, int(known.sum()) - parameters)
    deviation = 1.0 if fixed else float(np.sqrt((residual[known] ** 2).sum() / left))
    ax.axhline(0, color=BLUE, linewidth=1.2)
    for side in (-2, 2):
        ax.axhline(side * deviation, color=RED, linestyle="--", linewidth=1)
    outside = float((np.abs(residual[known]) > 2 * deviation).mean()) if known.any() else 0.0
    ax.set_title(f"residuals: {100 * outside:.1f} % beyond two deviations", loc="left", fontsize=10)
    ax.set_xlabel("fitted mean")
    ax.set_ylabel("deviance residual")
    tidy(ax)
