"""Pictures of selected columns: their scores, the steps of a search, and the path of an L1 penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from certifit.exceptions import DataError
from certifit.plots.style import BLUE, GREY, RED, check_drawable, new_axes, plain, shorten, tidy
from certifit.rows import Array


def _names(model: Any) -> Array:
    d = len(model.support_)
    return np.asarray(getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)]), dtype=object)


def plot_scores(model: Any, ax: Axes | None = None, *, most: int = 30) -> Axes:
    """Draw the scores of the `most` best columns as bars, blue for the columns kept.

    >>> from certifit.feature_selection.select_features import SelectFeatures
    >>> model = SelectFeatures("variance", k=1).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 8.0]])
    >>> [label.get_text() for label in plot_scores(model).get_yticklabels()]
    ['x1', 'x0']
    """
    check_drawable(model, "a fitted SelectFeatures", "scores_", "support_")
    order = np.argsort(-model.scores_, kind="stable")[:most]
    ax = new_axes(ax, 6.4, 0.8 + 0.25 * len(order))
    scores = np.asarray(model.scores_, dtype=np.float64)[order]
    finite = scores[np.isfinite(scores)]
    shown = np.where(np.isfinite(scores), scores, 1.1 * finite.max(initial=1.0))  # infinite: the longest bar
    place = np.arange(len(order))
    ax.barh(place, shown, color=[BLUE if model.support_[j] else GREY for j in order])
    ax.set_yticks(place, [shorten(str(name)) for name in _names(model)[order]], fontsize=8)
    plain(*ax.get_yticklabels())
    ax.invert_yaxis()
    ax.set_xlabel(f"score ({getattr(model.score_func, '__name__', model.score_func)}); kept in blue")
    tidy(ax)
    return ax


def plot_search(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the mean score after each step of a search, with its standard error as a bar.

    >>> from sklearn.linear_model import Ridge
    >>> from certifit.feature_selection.sequential_selector import SequentialSelector
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = SequentialSelector(Ridge(), n_features_to_select=2).fit(X, X[:, 0] + 0.3 * X[:, 2])
    >>> plot_search(model).get_xlabel()
    'column taken at each step'
    """
    check_drawable(model, "a fitted SequentialSelector or RecursiveElimination", "path_", "support_")
    path = model.path_
    if len(path["score"]) == 0:
        raise DataError(
            got="a search without scores", wanted="one with scores", fix="Give RecursiveElimination a cv."
        )
    ax = new_axes(ax, 6.4, 4.0)
    if "column" in path:
        place, names = np.arange(len(path["column"])), _names(model)[path["column"]]
        ax.set_xticks(place, [shorten(str(name), 16) for name in names], rotation=45, ha="right", fontsize=8)
        plain(*ax.get_xticklabels())
        ax.set_xlabel("column taken at each step")
    else:
        place = path["n_features"]
        ax.axvline(int(model.support_.sum()), color=GREY, linestyle="--", linewidth=1)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("number of columns")
    ax.errorbar(place, path["score"], path["error"], color=BLUE, marker="o", markersize=4, capsize=3)
    ax.set_ylabel("mean score on rows held out")
    tidy(ax)
    return ax


def plot_l1_path(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how many columns are in use, undecided and proved to be 0 along the path; a dashed line marks the choice.

    >>> from certifit.feature_selection.l1_selector import L1Selector
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = L1Selector("squared", alphas=5).fit(X, X[:, 0] + 0.5 * X[:, 1])
    >>> [text.get_text() for text in plot_l1_path(model).get_legend().get_texts()]
    ['in use', 'undecided', 'proved to be 0']
    """
    check_drawable(model, "a fitted L1Selector", "path_", "alpha_", "support_")
    ax = new_axes(ax, 6.4, 4.0)
    path = model.path_
    rest = len(model.support_) - path["nonzero"] - path["proved_zero"]
    ax.stackplot(
        path["alpha"],
        [path["nonzero"], rest, path["proved_zero"]],
        labels=["in use", "undecided", "proved to be 0"],
        colors=[BLUE, RED, "#d1d5db"],
        step="post",
    )
    ax.axvline(model.alpha_, color="black", linestyle="--", linewidth=1)
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("strength of the penalty")
    ax.set_ylabel("columns")
    ax.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="upper right")
    tidy(ax)
    return ax
