"""Plots of PCA: the variance along each component with its proved bound, and rows along the first two."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from certifit.exceptions import DataError
from certifit.plots.style import BLUE, COLOURS, GREY, MARKERS, RED, check_drawable, new_axes, plain, shorten, tidy
from certifit.rows import Array


def plot_scree(model: Any, variances: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the share of the variance of each component and of the first M; the title says what is proved.

    Parameters
    ----------
    model : a fitted PCA; its number of components is marked as the choice
    variances : (d,) variances along all components, chosen or not; None for the model's own

    >>> from sklearn.datasets import load_iris
    >>> from certifit import PCA
    >>> X = load_iris().data
    >>> ax = plot_scree(PCA(2).fit(X), PCA().fit(X).explained_variance_)
    >>> print(ax.get_title(loc="left"))
    2 components keep 97.77 % of the variance;
    proved: the best basis of this size keeps at most ... % more
    """
    check_drawable(model, "a fitted certifit PCA", "n_components_", "explained_variance_ratio_", "certificate_")
    k, ratio = model.n_components_, np.asarray(model.explained_variance_ratio_)
    if k == 0:
        raise DataError(got="a PCA without components", wanted="at least one to draw")
    if variances is None:
        share = ratio
    else:
        total = float(np.sum(model.explained_variance_)) / (float(ratio.sum()) or 1.0)
        share = np.asarray(variances, dtype=np.float64) / (total or 1.0)
    kept, most = float(ratio.sum()), proved_share(model)
    sure = "proved" if model.certificate_.kind == "optimal" else "almost surely"
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
    ax.fill_between([0.4, len(share) + 0.6], kept, most, color=RED, alpha=0.25, linewidth=0.5)
    ax.set_title(
        f"{k} component{'s' * (k > 1)} keep{'s' * (k == 1)} {100 * kept:.2f} % of the variance;\n"
        f"{sure}: the best basis of this size keeps at most {100 * (most - kept):.2g} % more",
        loc="left",
        fontsize=10,
    )
    ax.set_xlim(0.4, len(share) + 0.6)
    ax.set_ylim(0, 1.03)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("component")
    ax.set_ylabel("share of the variance")
    ax.legend(frameon=False, loc="best")
    tidy(ax)
    return ax


def proved_share(model: Any) -> float:
    """Return the share of the variance that no basis of the model's size can exceed, from its certificate."""
    certificate, left = model.certificate_, 1.0 - float(np.sum(model.explained_variance_ratio_))
    return 1.0 - left * certificate.bound / certificate.objective if certificate.objective > 0 else 1.0


def plot_components(model: Any, X: Any, y: Any = None, ax: Axes | None = None) -> Axes:
    """Draw rows in the plane of a model's first two components, coloured by y where it is given.

    >>> from sklearn.datasets import load_iris
    >>> from certifit import PCA
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_components(PCA(2).fit(X), X, y)
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('component 1 (92.5 % of the variance)', ['0', '1', '2'])
    """
    Z = np.asarray(model.transform(X))[:, :2]
    if Z.shape[1] < 2:
        raise DataError(got=f"a model with {Z.shape[1]} components", wanted="two or more", fix="Fit PCA(2).")
    ax = new_axes(ax, 6.0, 4.6)
    scatter_classes(Z, y, ax)
    for axis, name in enumerate(("xaxis", "yaxis")):
        ratio = getattr(model, "explained_variance_ratio_", None)
        share = "" if ratio is None else f" ({100 * float(ratio[axis]):.1f} % of the variance)"
        getattr(ax, name).set_label_text(f"component {axis + 1}{share}")
    # A distance has the same length in every direction.
    ax.set_aspect("equal", adjustable="datalim")
    tidy(ax)
    return ax


def scatter_classes(Z: Array, y: Any, ax: Axes) -> None:
    """Draw points (n, 2), with a colour and marker for each value of y; many points are small and transparent."""
    size = float(np.clip(20_000 / max(1, len(Z)), 3, 30))
    style: dict[str, Any] = {"s": size, "alpha": 0.35 if len(Z) > 5000 else 0.7, "linewidths": 0}
    if y is None:
        ax.scatter(*Z.T, color=COLOURS[0], **style)
        return
    y = np.asarray(y)
    names = np.unique(y)
    most = len(COLOURS) * len(MARKERS)
    if len(y) != len(Z) or len(names) > most:
        raise DataError(got=f"{len(y)} labels of {len(names)} classes", wanted=f"{len(Z)} of at most {most} classes")
    for c, name in enumerate(names):
        colour, marker = COLOURS[c % len(COLOURS)], MARKERS[(c + c // len(COLOURS)) % len(MARKERS)]
        ax.scatter(*Z[y == name].T, color=colour, marker=marker, label=shorten(str(name)), **style)
    legend = ax.legend(frameon=False, markerscale=float(np.sqrt(30 / size)))
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1.0)
    plain(*legend.get_texts())
