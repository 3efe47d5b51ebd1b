"""Pictures of ensembles: the boundaries of several models, side by side on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certifit.exceptions import DataError
from certifit.plots.boundary import plot_boundary
from certifit.plots.style import new_grid
from certifit.rows import Array


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
    if not models:
        raise DataError(got="no models", wanted="at least one, by its title")
    wide = min(len(models), 2)
    high = -(-len(models) // wide)
    grid = new_grid(axes, (high, wide), (4.6 * wide, 3.9 * high), len(models))
    for place, (ax, (title, model)) in enumerate(zip(grid, models.items(), strict=True)):
        plot_boundary(model, X, y, features, ax=ax)
        ax.set_title(title)
        if ax.get_legend() is not None and place:
            ax.get_legend().remove()
        ax.label_outer()
    return grid
