"""Pictures of clusters: how many there are, the cells of their centres, and how well each row lies in its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from certifit.cluster.choose_k import silhouettes
from certifit.exceptions import DataError
from certifit.plots.boundary import draw_regions, frame_plane, make_plane
from certifit.plots.fitted_models import ask, check_drawable, last_step
from certifit.plots.points import distinct_labels, label_words
from certifit.plots.style import BLUE, COLOURS, GREY, RED, ink, legend_beside, new_axes, new_grid, plain, tidy
from certifit.plots.tables import table_numbers, view_table
from certifit.rows import Array


def plot_cluster_choice(choice: Any, axes: Any = None) -> Array:
    """Draw the objective with its lower bound, the silhouette and the gap statistic by number of clusters.

    The optimum lies in the grey band. A ring, a dashed line and the title name the number that each criterion prefers
    (in the first picture, the one with the largest fall that is proved).

    Parameters
    ----------
    choice : what `choose_clusters` returns
    axes : three Axes, optional
        Where to draw; those of a new figure unless given.

    Returns
    -------
    array (3,) of Axes

    Examples
    --------
    >>> from certifit.cluster.choose_k import choose_clusters
    >>> X = [[0.0], [0.1], [0.3], [5.0], [5.2], [9.0]]
    >>> choice = choose_clusters(X, range(1, 5), references=2, random_state=0)
    >>> axes = plot_cluster_choice(choice)
    >>> [ax.get_ylabel() for ax in axes]
    ['objective', 'silhouette', 'gap statistic']
    """
    check_drawable(choice, "what choose_clusters returns", "objective", "bound", "silhouette", "gap", "choices")
    curve, silhouette, gap = new_grid(axes, (1, 3), (9.6, 2.8))
    k = choice.n_clusters
    reached = np.where(choice.objective > 0, choice.objective, np.nan)
    bound = np.maximum(choice.bound, np.nanmin(reached) / 10)  # a bound of 0 leaves the axes
    curve.fill_between(k, bound, reached, color=GREY, alpha=0.25, linewidth=0)
    curve.plot(k, reached, "o-", color=BLUE, markersize=4, label="reached")
    curve.plot(k, bound, "-", color=GREY, linewidth=1, label="proved lower bound")
    curve.set_yscale("log")
    curve.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    curve.yaxis.set_major_formatter("{x:g}")
    curve.yaxis.set_minor_formatter(NullFormatter())
    silhouette.plot(k, choice.silhouette, "o-", color=BLUE, markersize=4)
    gap.errorbar(k, choice.gap, choice.gap_error, color=BLUE, marker="o", markersize=4, capsize=3)
    _finish(curve, "objective", "largest fall", (k, reached, choice.choices.get("fall")))
    _finish(silhouette, "silhouette", "largest silhouette", (k, choice.silhouette, choice.choices.get("silhouette")))
    _finish(gap, "gap statistic", "gap rule", (k, choice.gap, choice.choices.get("gap")))
    curve.legend(frameon=False, fontsize=8)
    return np.array([curve, silhouette, gap])


def _finish(ax: Axes, word: str, criterion: str, found: tuple[Array, Array, int | None]) -> None:
    """Label the axes and mark the number of clusters that was chosen; `found` are numbers, values and choice."""
    k, values, chosen = found
    if chosen is not None:
        at = values[np.asarray(k) == chosen]
        ax.axvline(chosen, color=RED, linestyle="--", linewidth=1, zorder=1)
        ax.plot([chosen], at, "o", color="none", markeredgecolor=RED, markersize=10, markeredgewidth=1.8, zorder=3)
        ax.set_title(f"{criterion}: {chosen}", loc="left", fontsize=9, color=RED)
    ax.set_ylabel(word)
    ax.set_xlabel("clusters")
    # All numbers in every picture: a criterion that begins at 2 would have its mark on the axis.
    ax.set_xlim(np.min(k) - 0.4, np.max(k) + 0.4)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(ax)


def plot_cells(model: Any, X: Any, features: Sequence[int | str] = (0, 1), ax: Axes | None = None) -> Axes:
    """Draw the cell of each cluster in the plane of two columns, its centre, and its rows.

    The cell of a centre is where no other centre is nearer (Voronoi). Where the table has more columns, these are
    held at their median: the picture is a cut through the cells, and rows may lie in another cell than their own.

    Parameters
    ----------
    model : fitted clustering with `cluster_centers_` and `predict`
        Of any library, or a pipeline that ends with one; steps before it are undone by `inverse_transform`.
    X : table
        Rows as the model takes them.
    features : two columns, by number or name
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit import KMeans
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0], [6.0, 5.0]]
    >>> ax = plot_cells(KMeans(2, random_state=0).fit(X), X)
    >>> ax.get_legend().get_texts()[-1].get_text()
    'centres'
    """
    check_drawable(model, "a fitted clustering with predict", "predict")
    check_drawable(last_step(model), "a fitted clustering with centres", "cluster_centers_")
    table, _ = view_table(X)
    plane = make_plane(table, features)
    C = _centres_in_the_table(model)
    if C.shape[1] != table.n_columns:
        raise DataError(got=f"centres of {C.shape[1]} columns", wanted=f"those of the table, {table.n_columns}")
    C = C[:, list(plane.columns)]
    labels, predicted = ask(model, "predict", X), plane.ask(model, "predict")
    ax = new_axes(ax, 6.4, 4.6)
    draw_regions(ax, plane, model, predicted, labels)
    ax.scatter(C[:, 0], C[:, 1], s=130, marker="P", color="white", edgecolors="black", label="centres", zorder=5)
    legend_beside(ax)
    frame_plane(ax, plane)
    return ax


def _centres_in_the_table(model: Any) -> Array:
    """Return the centres (k, d) in the columns of the table, before the steps of a pipeline."""
    C = np.asarray(last_step(model).cluster_centers_, dtype=np.float64)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if len(getattr(model, "steps", ())) < 2:
        return C
    before = model[:-1]
    if not hasattr(before, "inverse_transform"):
        raise DataError(
            got=f"a pipeline with {type(before[-1]).__name__}, which cannot be undone",
            wanted="steps with inverse_transform, to place the centres among the rows",
            fix="Draw the last step, with rows as it takes them.",
        )
    return np.asarray(before.inverse_transform(C), dtype=np.float64)


def plot_silhouettes(model: Any, X: Any, ax: Axes | None = None, most: int = 2000) -> Axes:
    """Draw how well each row lies in its cluster: a bar for each row, cluster by cluster, the best first.

    The silhouette of a row is (b - a) / max(a, b), where a is its mean distance to the other rows of its cluster and
    b that to the rows of the next one: 1 is far from all others, 0 between two, below 0 nearer to another.

    Parameters
    ----------
    model : fitted clustering with `predict` or `labels_`
        Of any library, or a pipeline: distances are then those of the rows that its last step sees. Rows labelled -1
        (noise) are left out.
    X : table of numbers
        The rows to draw; those of the fit, where the model has no `predict`.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    most : int, default=2000
        Of a longer table, so many rows are drawn, evenly spaced.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit import KMeans
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0], [6.0, 5.0]]
    >>> ax = plot_silhouettes(KMeans(2, random_state=0).fit(X), X)
    >>> ax.get_title(loc="left")
    'mean silhouette 0.84'
    """
    check_drawable(model, "a fitted clustering")
    Z, labels = _clustered_rows(model, X)
    shown = np.flatnonzero(_in_a_cluster(labels))
    shown = shown[np.linspace(0, len(shown) - 1, min(most, len(shown))).astype(int)] if len(shown) else shown
    Z, labels = Z[shown], labels[shown]
    clusters = distinct_labels(labels)
    if not 1 < len(clusters) < len(labels):
        raise DataError(got=f"{len(clusters)} clusters of {len(labels)} rows", wanted="two clusters, and more rows")
    values = silhouettes(Z, labels, np.ones(len(Z)))
    ax = new_axes(ax, 6.4, 4.6)
    top, space = 0.0, max(1.0, 0.02 * len(values))
    middles = []
    for c, label in enumerate(clusters):
        bars = np.sort(values[labels == label])[::-1]
        ax.barh(top + 0.5 + np.arange(len(bars)), bars, height=1.0, color=COLOURS[c % len(COLOURS)])
        middles.append(top + len(bars) / 2)
        top += len(bars) + space
    ax.axvline(0, color=ink(), linewidth=0.8)
    ax.axvline(values.mean(), color=ink(), linewidth=1.2, linestyle="--")
    ax.set_ylim(top - space, 0)
    ax.set_yticks(middles, [label_words(label) for label in clusters])
    plain(*ax.get_yticklabels())
    ax.set_xlabel("silhouette")
    ax.set_ylabel("cluster")
    ax.set_title(f"mean silhouette {values.mean():.2f}", loc="left", fontsize=9)
    tidy(ax)
    return ax


def _clustered_rows(model: Any, X: Any) -> tuple[Array, Array]:
    """Return rows as the model's last step sees them (n, d), and their labels (n,)."""
    inner = last_step(model)
    if hasattr(model, "predict"):
        labels = ask(model, "predict", X)
    else:
        check_drawable(inner, "a fitted clustering with predict or labels_", "labels_")
        labels = np.asarray(inner.labels_)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    seen = ask(model[:-1], "transform", X) if len(getattr(model, "steps", ())) > 1 else X
    Z = table_numbers(seen)
    if len(Z) != len(labels):
        raise DataError(got=f"{len(Z)} rows", wanted=f"the {len(labels)} rows that the model was fitted on")
    return Z, labels


def _in_a_cluster(labels: Array) -> Array:
    """Say of each row whether it is in a cluster: labels below 0 stand for noise."""
    return labels >= 0 if labels.dtype.kind in "if" else np.ones(len(labels), dtype=bool)
