"""Plots of PCA: variances with their proved bound, rows along two components, and the two views of one component."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator, PercentFormatter

from certifit.exceptions import DataError
from certifit.plots.fitted_models import ask, check_drawable, last_step
from certifit.plots.points import colour_values, scatter_values
from certifit.plots.style import BLUE, GREY, RED, ink, label_axes, legend_beside, new_axes, tidy
from certifit.plots.tables import view_table
from certifit.rows import Array


def plot_scree(model: Any, variances: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the share of the variance of each component and of the first M; the title says what is proved.

    Parameters
    ----------
    model : fitted PCA
        Of any library, or one of its relatives with `explained_variance_ratio_`; of a pipeline, its last step. Its
        number of components is marked as the choice. Only models of certifit carry a proof. Of a probabilistic PCA,
        the variance of its noise is drawn as a line.
    variances : (d,) of float, optional
        Variances along all components, chosen or not; the model's own unless given.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import PCA
    >>> X = load_iris().data
    >>> ax = plot_scree(PCA(2).fit(X), PCA().fit(X).explained_variance_)
    >>> print(ax.get_title(loc="left"))
    2 components keep 97.77 % of the variance;
    proved: the best basis of this size keeps at most ... % more
    """
    check_drawable(model, "a fitted PCA")
    model = last_step(model)
    ratio = _kept_shares(model)
    k = len(ratio)
    if k == 0:
        raise DataError(got="a PCA without components", wanted="at least one to draw")
    share = ratio if variances is None else _shares(model, ratio, variances)
    ax = new_axes(ax, 6.4, 3.8)
    place = np.arange(1, len(share) + 1)
    chosen = place <= k
    ax.bar(place[chosen], share[chosen], color=BLUE, width=0.8, label="each component")
    if len(share) > k:
        ax.bar(place[~chosen], share[~chosen], color=GREY, alpha=0.5, width=0.8, label="not chosen")
    ax.plot(
        place, np.cumsum(share), color=RED, marker="o" if len(share) <= 40 else "", markersize=4, label="together"
    )
    ax.axvline(k, color=GREY, linestyle="--", linewidth=1)
    if not hasattr(model, "explained_variance_ratio_"):
        ax.axhline(float(model.noise_variance_) / _total(model), color=ink(), linestyle=":", label="noise")
    kept = float(ratio.sum())
    title = f"{k} component{'s' * (k > 1)} keep{'s' * (k == 1)} {100 * kept:.2f} % of the variance"
    if _proves_share(model) and kept < 1 - 1e-12:  # all components keep everything, which needs no proof
        most = proved_share(model)
        ax.fill_between([0.4, len(share) + 0.6], kept, most, color=RED, alpha=0.25, linewidth=0.5)
        title += _proved_words(model, most - kept)
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlim(0.4, len(share) + 0.6)
    ax.set_ylim(0, 1.03)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("component")
    ax.set_ylabel("share of the variance")
    legend_beside(ax)  # inside, it would lie on a bar where there are few of them
    tidy(ax)
    return ax


def _kept_shares(model: Any) -> Array:
    """Return the share of the variance of each component (k,)."""
    if hasattr(model, "noise_variance_") and not hasattr(model, "explained_variance_ratio_"):
        check_drawable(model, "a fitted PCA", "explained_variance_", "mean_")
        return np.asarray(model.explained_variance_) / _total(model)
    check_drawable(model, "a fitted PCA", "explained_variance_", "explained_variance_ratio_")
    return np.asarray(model.explained_variance_ratio_)


def _total(model: Any) -> float:
    """Return the total variance of a probabilistic PCA: along its axes, and its noise along all others."""
    variances = np.asarray(model.explained_variance_)
    return float(variances.sum() + (len(model.mean_) - len(variances)) * model.noise_variance_)


def _shares(model: Any, ratio: Array, variances: Any) -> Array:
    """Return variances as shares of the total variance that the model found."""
    total = float(np.sum(model.explained_variance_)) / (float(np.sum(ratio)) or 1.0)
    return np.asarray(variances, dtype=np.float64).ravel() / (total or 1.0)


def _proves_share(model: Any) -> bool:
    """Say whether the certificate bounds the variance left out: errors about the mean, by any basis of this size.

    That of a robust PCA is about norms of its parts, that of a truncated SVD about errors around zero.
    """
    certificate = getattr(model, "certificate_", None)
    if certificate is None or not hasattr(model, "mean_") or certificate.kind not in ("optimal", "statistical"):
        return False
    about = certificate.claim.startswith("mean squared reconstruction error")
    return about and bool(np.isfinite([certificate.objective, certificate.bound]).all())


def _proved_words(model: Any, more: float) -> str:
    """Return what the certificate says about bases of the same size."""
    sure = "proved" if model.certificate_.kind == "optimal" else "almost surely"
    return f";\n{sure}: the best basis of this size keeps at most {100 * more:.2g} % more"


def proved_share(model: Any) -> float:
    """Return the share of the variance that no basis of the model's size can exceed, from its certificate."""
    certificate, left = model.certificate_, 1.0 - float(np.sum(model.explained_variance_ratio_))
    return 1.0 - left * certificate.bound / certificate.objective if certificate.objective > 0 else 1.0


def plot_components(model: Any, X: Any = None, y: Any = None, ax: Axes | None = None) -> Axes:
    """Draw rows in the plane of a model's first two components, coloured by y where it is given.

    Parameters
    ----------
    model : fitted model with `transform` or `embedding_`
        A PCA, an embedding or any other transformer, of any library, or a pipeline.
    X : table, optional
        The rows to draw. Without it, and of models that cannot transform rows, those of the fit (`embedding_`).
    y : (n,) labels or numbers, or the name of a column of X, optional
        Labels have a legend, numbers a colour bar.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import PCA
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_components(PCA(2).fit(X), X, y)
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('component 1 (92.5 % of the variance)', ['0', '1', '2'])
    """
    Z, y = _codes(model, X, y)
    if Z.ndim != 2 or Z.shape[1] < 2:
        got = f"a model with {Z.shape[1] if Z.ndim == 2 else 1} component"
        raise DataError(got=got, wanted="two or more", fix=f"Fit {type(last_step(model)).__name__} with two.")
    y = colour_values(y, len(Z))
    ax = new_axes(ax, 6.4, 4.6)
    scatter_values(ax, np.asarray(Z[:, :2], dtype=np.float64), y)
    ratio = getattr(last_step(model), "explained_variance_ratio_", None)
    for axis, name in enumerate(("xaxis", "yaxis")):
        share = "" if ratio is None or len(ratio) < 2 else f" ({100 * float(ratio[axis]):.1f} % of the variance)"
        getattr(ax, name).set_label_text(f"component {axis + 1}{share}")
    # A distance has the same length in every direction.
    ax.set_aspect("equal", adjustable="datalim")
    tidy(ax)
    return ax


def _codes(model: Any, X: Any, y: Any) -> tuple[Array, Any]:
    """Return the rows as the model places them (n, k), and y."""
    wanted = "a fitted model that places rows, by transform or embedding_"
    check_drawable(model, wanted)
    if X is not None:
        table, y = view_table(X, y)
        if hasattr(model, "transform"):
            return ask(model, "transform", table.source), y
    inner = last_step(model)
    if not hasattr(inner, "embedding_"):
        if hasattr(model, "transform"):
            raise DataError(got=f"a {type(model).__name__} without rows", wanted="the rows X to draw")
        check_drawable(inner, wanted, "transform")
    Z = np.asarray(inner.embedding_)
    if X is not None and len(Z) != table.n_rows:
        raise DataError(
            got=f"{table.n_rows} rows",
            wanted=f"the {len(Z)} rows of the fit: a {type(inner).__name__} places no others",
        )
    return Z, y


def plot_two_views(model: Any, X: Any, y: Any = None, ax: Axes | None = None) -> Axes:
    """Draw rows of two columns, a model's first axis, and each row's distance from it: both views of one component.

    Along the line is the variance that the code keeps, across it the error that it leaves; the title says how large
    both are, and that they add up to the variance of the rows. The thick part is two standard deviations long.

    Parameters
    ----------
    model : fitted PCA, of any library or one of its relatives with `components_` and `mean_`; or what `two_views`
        returns
    X : table of two columns
        The rows to draw.
    y : (n,) labels or numbers, or the name of a column of X, optional
        Colours of the rows: labels have a legend, numbers a colour bar.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import PCA
    >>> X = load_iris().data[:, 2:]
    >>> print(plot_two_views(PCA(1).fit(X), X).get_title(loc="left"))
    along the line: variance 3.637; across it: mean square 0.03581
    together 3.673, the variance of the rows
    """
    table, y = view_table(X, y)
    if table.n_columns != 2:
        raise DataError(
            got=f"a table of {table.n_columns} columns",
            wanted="two columns, so that a distance from a line can be seen",
            fix="Choose two columns, or draw the shares of all components by plot_scree.",
        )
    mean, axis = _first_axis(model)
    rows = np.column_stack([table.numbers(j) for j in (0, 1)])
    colours, known = colour_values(y, len(rows)), np.isfinite(rows).all(axis=1)
    rows, colours = rows[known], None if colours is None else colours[known]
    if not len(rows):
        raise DataError(got="no row with numbers in both columns", wanted="at least one row to draw")
    code = (rows - mean) @ axis
    feet = mean + np.outer(code, axis)
    along, across = float(code.var()), float(((rows - feet) ** 2).sum(axis=1).mean())
    ax = new_axes(ax, 6.4, 4.6)
    reach = np.array([code.min(), code.max()]) + 0.1 * np.ptp(code) * np.array([-1.0, 1.0])
    ax.add_collection(LineCollection(list(np.stack([rows, feet], axis=1)), colors=RED, linewidths=0.9, alpha=0.7))
    ax.plot(*(mean + np.outer(reach, axis)).T, color=BLUE, linewidth=1.2)
    ax.plot(*feet.T, "|", color=BLUE, markersize=4)
    if colours is None:
        ax.plot(*rows.T, "o", color=GREY, markersize=3.5, alpha=0.8)
    else:
        scatter_values(ax, rows, colours, zorder=2.5)
    spread = code.mean() + code.std() * np.array([-1.0, 1.0])
    ax.plot(*(mean + np.outer(spread, axis)).T, color=BLUE, linewidth=6, alpha=0.6, solid_capstyle="butt", zorder=3)
    # A right angle looks like one.
    ax.set_aspect("equal", adjustable="datalim")
    total = float(rows.var(axis=0).sum())
    more = along + across - total
    # A line that misses the mean of the rows leaves more error than there is variance.
    sum_words = "the variance" if more <= 1e-9 * total else f"{more:.2g} more than the variance"
    title = f"along the line: variance {along:.4g}; across it: mean square {across:.4g}"
    ax.set_title(f"{title}\ntogether {along + across:.4g}, {sum_words} of the rows", loc="left", fontsize=10)
    label_axes(ax, table.label(0), table.label(1))
    tidy(ax)
    return ax


def _first_axis(model: Any) -> tuple[Array, Array]:
    """Return a point (2,) of a model's line and its direction (2,), of length one."""
    if hasattr(model, "directions") and hasattr(model, "mean"):
        mean, axes = model.mean, model.directions
    else:
        check_drawable(model, "a fitted PCA")
        model = last_step(model)
        check_drawable(model, "a fitted PCA", "components_")
        axes = np.asarray(model.components_)
        mean = getattr(model, "mean_", None)
        mean = np.zeros(np.shape(axes)[-1]) if mean is None else mean  # a truncated SVD's line goes through 0
    if np.ndim(axes) != 2 or np.shape(axes)[0] < 1 or np.shape(axes)[1] != 2:
        raise DataError(
            got=f"components of shape {np.shape(axes)}",
            wanted="at least one component of two columns",
            fix="Fit PCA(1) to the two columns that are drawn.",
        )
    axis = np.asarray(axes, dtype=np.float64)[0]
    return np.asarray(mean, dtype=np.float64), axis / np.linalg.norm(axis)
