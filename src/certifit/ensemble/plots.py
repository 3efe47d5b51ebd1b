"""Pictures of ensembles: the boundaries of several models, side by side on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from certifit.exceptions import DataError
from certifit.plots.boundary import plot_boundary


def plot_boundaries(models: Mapping[str, Any], X: Any, y: Any, features: Sequence[int | str] = (0, 1)) -> Figure:
    """Draw the region of each class in the plane of two columns, for one fitted model after another.

    Parameters
    ----------
    models : mapping of titles to fitted models, of any library
        Say, a single tree, a bag of trees, a forest and boosting.
    X : table
    y : (n,) labels or numbers, or the name of a column of X
    features : two columns, by number or name
        Others are held at their median.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import DecisionTreeClassifier, RandomForestClassifier
    >>> from certifit.plots import plot_boundaries
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"a tree": DecisionTreeClassifier(), "a forest": RandomForestClassifier(10, random_state=0)}
    >>> figure = plot_boundaries({name: model.fit(X[:, :2], y) for name, model in models.items()}, X[:, :2], y)
    >>> [ax.get_title() for ax in figure.axes]
    ['a tree', 'a forest']
    """
    if not models:
        raise DataError(got="no models", wanted="at least one, by its title")
    wide = min(len(models), 2)
    high = -(-len(models) // wide)
    figure, axes = plt.subplots(
        high, wide, figsize=(4.6 * wide, 3.9 * high), squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    for place, (ax, (title, model)) in enumerate(zip(axes.flat, models.items(), strict=False)):
        plot_boundary(model, X, y, features, ax=ax)
        ax.set_title(title)
        if ax.get_legend() is not None and place:
            ax.get_legend().remove()
        ax.label_outer()
    for ax in axes.flat[len(models) :]:
        ax.remove()
    return figure
