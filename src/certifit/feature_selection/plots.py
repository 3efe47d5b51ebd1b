"""Pictures of selected columns: their scores, the steps of a search, and the path of an L1 penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable, last_step, seen_names
from certifit.plots.style import BLUE, GREY, RED, ink, legend_beside, new_axes, plain, shorten, tidy
from certifit.rows import Array


def _names(model: Any, count: int) -> Array:
    return np.asarray(seen_names(model, count), dtype=object)


def plot_scores(model: Any, ax: Axes | None = None, *, most: int = 30) -> Axes:
    """Draw the scores of the `most` best columns as bars, blue for the columns kept.

    Parameters
    ----------
    model : fitted selector with `scores_`
        `SelectFeatures`, or one of scikit-learn's, such as `SelectKBest`.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    most : int, default=30

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit.feature_selection.select_features import SelectFeatures
    >>> model = SelectFeatures("variance", k=1).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 8.0]])
    >>> [label.get_text() for label in plot_scores(model).get_yticklabels()]
    ['x1', 'x0']
    """
    check_drawable(model, "a fitted SelectFeatures, or another selector with scores")
    whole, model = model, last_step(model)
    check_drawable(model, "a fitted SelectFeatures, or another selector with scores", "scores_", "get_support")
    every, kept = np.asarray(model.scores_, dtype=np.float64), np.asarray(model.get_support())
    # A score that is no number, as of a constant column, comes last.
    order = np.argsort(np.where(np.isnan(every), np.inf, -every), kind="stable")[:most]
    ax = new_axes(ax, 6.4, 0.8 + 0.25 * len(order))
    scores = np.nan_to_num(every[order], nan=0.0, posinf=np.inf, neginf=-np.inf)
    finite = scores[np.isfinite(scores)]
    shown = np.where(np.isfinite(scores), scores, 1.1 * finite.max(initial=1.0))  # infinite: the longest bar
    place = np.arange(len(order))
    ax.barh(place, shown, color=[BLUE if kept[j] else GREY for j in order])
    ax.set_yticks(place, [shorten(str(name)) for name in _names(whole, len(every))[order]], fontsize=8)
    plain(*ax.get_yticklabels())
    ax.set_ylim(len(order) - 0.5, -0.5)
    score = getattr(model, "score_func", "")
    ax.set_xlabel(f"score ({getattr(score, '__name__', score)}); kept in blue")
    tidy(ax)
    return ax


def plot_search(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the mean score after each step of a search, with its standard error as a bar.

    Parameters
    ----------
    model : fitted search with scores on rows held out
        `SequentialSelector`, `RecursiveElimination` with a cv, or scikit-learn's `RFECV`.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from certifit.feature_selection.searches.sequential_selector import SequentialSelector
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = SequentialSelector(Ridge(), n_features_to_select=2).fit(X, X[:, 0] + 0.3 * X[:, 2])
    >>> plot_search(model).get_xlabel()
    'column taken at each step'
    """
    check_drawable(model, "a fitted SequentialSelector or RecursiveElimination")
    path = _search_path(model)
    if len(path["score"]) == 0:
        raise DataError(
            got="a search without scores", wanted="one with scores", fix="Give RecursiveElimination a cv."
        )
    ax = new_axes(ax, 6.4, 4.0)
    if "column" in path:
        place, names = np.arange(len(path["column"])), _names(model, len(model.support_))[path["column"]]
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


def _search_path(model: Any) -> Any:
    """Return scores and their standard errors by step, of our searches or of scikit-learn's RFECV."""
    found = getattr(model, "cv_results_", None)
    if found is None or "n_features" not in found:
        check_drawable(model, "a fitted SequentialSelector or RecursiveElimination", "path_", "support_")
        return model.path_
    folds = sum(name.startswith("split") and name.endswith("test_score") for name in found)
    error = np.asarray(found["std_test_score"]) / np.sqrt(max(1, folds - 1))
    return {"n_features": found["n_features"], "score": found["mean_test_score"], "error": error}


def plot_l1_path(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how many columns are in use, undecided and proved to be 0 along the path; a dashed line marks the choice.

    Parameters
    ----------
    model : fitted L1Selector
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
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
    ax.axvline(model.alpha_, color=ink(), linestyle="--", linewidth=1)
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("strength of the penalty")
    ax.set_ylabel("columns")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend_beside(ax)
    tidy(ax)
    return ax
