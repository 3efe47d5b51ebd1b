"""Pictures of ensembles: boundaries side by side, how far trees err together, boosting's bound and its margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.plots.boundary import plot_boundary
from certifit.plots.fitted_models import ask, check_drawable
from certifit.plots.style import COLOURS, GREY, ink, new_axes, new_grid, plain, shorten, tidy
from certifit.rows import Array


def check_titles(models: Any) -> None:
    """Refuse what is no mapping of titles to models, or an empty one."""
    if not isinstance(models, Mapping) or not models:
        got = "no models" if isinstance(models, Mapping) else f"a {type(models).__name__} as models"
        raise DataError(got=got, wanted="models by their titles", fix="{'a tree': tree, 'a forest': forest}")


def plot_boundaries(
    models: Mapping[str, Any], X: Any, y: Any, features: Sequence[int | str] = (0, 1), axes: Any = None
) -> Array:
    """Draw the region of each class in the plane of two columns, for one fitted model after another.

    Parameters
    ----------
    models : mapping of titles to fitted models, of any library
        Say, a single tree, a bag of trees, a forest and boosting.
    X : table
    y : (n,) labels or numbers, or the name of a column of X
    features : two columns, by number or name
        Others are held at their median.
    axes : array of Axes, optional
        One for each model; by default those of a new figure.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import DecisionTreeClassifier, RandomForestClassifier
    >>> from certifit.plots import plot_boundaries
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"a tree": DecisionTreeClassifier(), "a forest": RandomForestClassifier(10, random_state=0)}
    >>> axes = plot_boundaries({name: model.fit(X[:, :2], y) for name, model in models.items()}, X[:, :2], y)
    >>> [ax.get_title() for ax in axes]
    ['a tree', 'a forest']
    """
    check_titles(models)
    wide = min(len(models), 2)
    high = -(-len(models) // wide)
    grid = new_grid(axes, (high, wide), (4.6 * wide, 3.9 * high), len(models))
    for place, (ax, (title, model)) in enumerate(zip(grid, models.items(), strict=True)):
        plot_boundary(model, X, y, features, ax=ax)
        ax.set_title(title)
        if ax.get_legend() is not None and place != wide - 1:  # one is enough, at the right edge
            ax.get_legend().remove()
        ax.label_outer()
    return grid


def plot_error_correlations(models: Mapping[str, Any], X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw the correlations between the errors of any two members of an ensemble, for one ensemble after another.

    The mean of T answers whose errors have the variance σ² and the correlation ρ has the variance ρσ² + (1 - ρ)σ²/T:
    more members lower the second part only. The lines are the mean correlations, which the legend tells.

    Parameters
    ----------
    models : mapping of titles to fitted forests or bags of regressors, of any library
    X, y : rows that the models have not seen, and their amounts
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(10, max_features=2, random_state=0).fit(X[::2], y[::2])
    >>> ax = plot_error_correlations({"two columns": forest}, X[1::2], y[1::2])
    >>> ax.get_xlabel()
    'correlation between the errors of two members'
    """
    check_titles(models)
    found = {title: _error_correlations(model, X, y) for title, model in models.items()}
    ax = new_axes(ax, 6.0, 3.6)
    edges = np.linspace(min(map(np.min, found.values())), max(map(np.max, found.values())), 31)
    for place, (title, pairs) in enumerate(found.items()):
        colour = COLOURS[place % len(COLOURS)]
        ax.hist(
            pairs, edges.tolist(), color=colour, alpha=0.5, label=f"{shorten(title)}: {pairs.mean():.2f} on average"
        )
        ax.axvline(pairs.mean(), ymax=0.8, color=colour, linewidth=2)  # the legend is above
    ax.set_xlabel("correlation between the errors of two members")
    ax.set_ylabel("pairs of members")
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])
    plain(*ax.legend(frameon=False, loc="upper left").get_texts())
    tidy(ax)
    return ax


def _error_correlations(model: Any, X: Any, y: Any) -> Array:
    """The correlation of errors for every pair of members (T (T - 1) / 2,)."""
    check_drawable(model, "a fitted ensemble of regressors", "estimators_")
    if hasattr(model, "classes_") or len(model.estimators_) < 2:
        raise DataError(got=f"a {type(model).__name__}", wanted="an ensemble of at least two regressors")
    table, target = np.asarray(X), np.asarray(y, dtype=np.float64)
    columns = getattr(model, "estimators_features_", [slice(None)] * len(model.estimators_))
    told = [ask(one, "predict", table[:, seen]) for one, seen in zip(model.estimators_, columns, strict=True)]
    return np.asarray(np.corrcoef(np.stack(told) - target))[np.triu_indices(len(told), 1)]


def plot_boosting_bound(model: Any, X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw the share of wrong rows after every stage of AdaBoost, the exponential loss, and the bound of both.

    On rows that were fitted, the mean of exp(-margin) is the product of Z = 2 √(e (1 - e)) over the stages' weighted
    errors e, and at most exp(-2 Σ (½ - e)²).

    Parameters
    ----------
    model : fitted AdaBoostClassifier of two classes, ours or scikit-learn's
    X, y : the rows that it was fitted to, with the same weight each
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from certifit import AdaBoostClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> ax = plot_boosting_bound(AdaBoostClassifier(n_estimators=10).fit(X, y == 1), X, y == 1)
    >>> [line.get_label() for line in ax.lines][:2]
    ['share of wrong rows', 'mean of exp(-margin)']
    """
    steps = _margin_steps(model, X, y) / 2
    errors = np.asarray(model.estimator_errors_)[: len(steps)]
    margins, at = np.cumsum(steps, axis=0), np.arange(1, len(steps) + 1)
    ax = new_axes(ax, 6.0, 3.6)
    ax.step(at, (margins <= 0).mean(axis=1), where="post", color=COLOURS[1], label="share of wrong rows")
    ax.plot(at, np.exp(-margins).mean(axis=1), color=COLOURS[0], label="mean of exp(-margin)")
    product = np.cumprod(2 * np.sqrt(errors * (1 - errors)))
    # The dots lie on the line of the loss where strengths are ½ log((1 - e)/e).
    ax.plot(at, product, ".", color=ink(), markersize=4, label="product of 2 √(e (1 - e))")
    ax.plot(at, np.exp(-2 * np.cumsum((0.5 - errors) ** 2)), ":", color=GREY, label="exp(-2 Σ (½ - e)²)")
    ax.set_xlabel("stages")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_margins(models: Mapping[str, Any], X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw the share of rows up to each margin y Σ α h(x) / Σ α, for one boosted model after another.

    A margin is between -1 and 1, and above 0 where the row is told right. The dots are least margins.

    Parameters
    ----------
    models : mapping of titles to fitted AdaBoostClassifiers of two classes, ours or scikit-learn's
    X, y : rows and their classes
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from certifit import AdaBoostClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> ax = plot_margins({"ten stages": AdaBoostClassifier(n_estimators=10).fit(X, y == 1)}, X, y == 1)
    >>> ax.get_xlabel()
    'margin of a row'
    """
    check_titles(models)
    found = {title: _margins(model, X, y) for title, model in models.items()}
    ax = new_axes(ax, 6.0, 3.6)
    for place, (title, margins) in enumerate(found.items()):
        colour, label = COLOURS[place % len(COLOURS)], f"{shorten(title)}: least {margins[0]:.3f}"
        heights = np.arange(1, len(margins) + 1) / len(margins)
        ax.step(margins, heights, where="post", color=colour, label=label)
        ax.plot(margins[:1], [0], "o", color=colour, clip_on=False, zorder=3)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("margin of a row")
    ax.set_ylabel("share of rows up to it")
    plain(*ax.legend(frameon=False, loc="upper left").get_texts())
    tidy(ax)
    return ax


def _margins(model: Any, X: Any, y: Any) -> Array:
    """The margins of rows (n,), the least first."""
    steps = _margin_steps(model, X, y)
    return np.sort(steps.sum(axis=0) / np.asarray(model.estimator_weights_)[: len(steps)].sum())


def _margin_steps(model: Any, X: Any, y: Any) -> Array:
    """What every stage adds to the margins of rows: its strength where it tells them right, less it where not."""
    check_drawable(
        model, "a fitted AdaBoostClassifier of two classes", "estimators_", "estimator_weights_", "classes_"
    )
    if len(model.classes_) != 2:
        raise DataError(got=f"{len(model.classes_)} classes", wanted="two, whose margins are one number")
    right = np.stack([ask(one, "predict", X) == np.asarray(y) for one in model.estimators_])
    return np.asarray(model.estimator_weights_)[: len(right), None] * np.where(right, 1.0, -1.0)
