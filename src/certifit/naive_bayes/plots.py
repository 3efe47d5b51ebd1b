"""Generative against discriminative: two ways to fit one linear boundary, and how their errors cross as rows grow.

Gaussian naive Bayes with shared variances and logistic regression have the same form, p(c | x) = softmax(β x + b).
Naive Bayes finds (β, b) from class means and variances and needs few rows; logistic regression minimises the
conditional loss itself, needs more, and ends below where columns are not independent within a class.
Reference: Ng & Jordan, On discriminative vs. generative classifiers (NIPS 2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.model_selection import train_test_split

from certifit.exceptions import DataError
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.naive_bayes.gaussian import GaussianNB
from certifit.plots.fitted_models import check_drawable
from certifit.plots.style import BLUE, RED, new_axes, tidy
from certifit.plots.tables import table_numbers
from certifit.rows import Array


@dataclass(frozen=True)
class LearningCurves:
    """Errors on held-out rows for growing numbers of training rows, one column per repetition."""

    sizes: Array  # (s,)
    generative: Array  # (s, repeats)
    discriminative: Array  # (s, repeats)

    @property
    def crossing(self) -> float:
        """The smallest number of rows from which logistic regression errs less on average; inf if it never does."""
        worse = self.discriminative.mean(axis=1) > self.generative.mean(axis=1)
        last = np.flatnonzero(worse)
        after = 0 if len(last) == 0 else int(last[-1]) + 1
        return float(self.sizes[after]) if after < len(self.sizes) else float("inf")


def learning_curves(
    X: Any, y: Any, sizes: Sequence[int], *, repeats: int = 20, C: float = 100.0, random_state: int = 0
) -> LearningCurves:
    """Return errors of naive Bayes (shared variances) and of logistic regression on a held-out third of the rows.

    Both see the same training rows, the first `n` of a shuffled order that has every class at its head.

    Parameters
    ----------
    X : table of numbers
    y : (n,) labels
    sizes : numbers of training rows
    repeats : int, default=20
        How often rows are split anew.
    C : float, default=100.0
        Inverse strength of logistic regression's penalty.
    random_state : int, default=0

    Returns
    -------
    LearningCurves

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> curves = learning_curves(X / X.std(axis=0), y, [10, 300], repeats=3)
    >>> bool((curves.discriminative.mean(axis=1)[1] < curves.generative.mean(axis=1)[1]))
    True
    """
    X, y = table_numbers(X), np.asarray(y)
    found = np.empty((2, len(sizes), repeats))
    for r in range(repeats):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=1 / 3, stratify=y, random_state=random_state + r
        )
        if max(sizes) > len(X_train):
            raise DataError(got=f"sizes up to {max(sizes)}", wanted=f"at most the {len(X_train)} training rows")
        order = _every_class_first(y_train)
        X_train, y_train = X_train[order], y_train[order]
        for i, n in enumerate(sizes):
            models = GaussianNB(variance="shared"), LogisticRegression(C=C)
            for m, model in enumerate(models):
                found[m, i, r] = 1.0 - model.fit(X_train[:n], y_train[:n]).score(X_test, y_test)
    return LearningCurves(np.asarray(sizes), *found)


def _every_class_first(y: Array) -> Array:
    """An order of the rows in which two of each class come first."""
    turn = np.empty(len(y), dtype=int)  # how many rows of its class come before a row
    for c in np.unique(y):
        turn[y == c] = np.arange(int((y == c).sum()))
    return np.argsort(turn >= 2, kind="stable")


def plot_learning_curves(curves: LearningCurves, ax: Axes | None = None) -> Axes:
    """Draw the mean error against the number of rows, with its standard error as a band.

    Parameters
    ----------
    curves : LearningCurves
        What `learning_curves` returns.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> curves = LearningCurves(np.array([10, 100]), np.array([[0.2], [0.1]]), np.array([[0.3], [0.05]]))
    >>> curves.crossing
    100.0
    >>> ax = plot_learning_curves(curves)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['naive Bayes, shared variances', 'logistic regression']
    """
    check_drawable(curves, "what learning_curves returns", "sizes", "generative", "discriminative")
    ax = new_axes(ax, 6.4, 4.0)
    both = (
        ("naive Bayes, shared variances", curves.generative, BLUE),
        ("logistic regression", curves.discriminative, RED),
    )
    for label, errors, colour in both:
        mean = errors.mean(axis=1)
        band = errors.std(axis=1) / np.sqrt(errors.shape[1])
        ax.plot(curves.sizes, mean, color=colour, marker="o", markersize=3, label=label)
        ax.fill_between(curves.sizes, mean - band, mean + band, color=colour, alpha=0.2, linewidth=0)
    ax.set_xscale("log")
    ax.set_xlabel("training rows")
    ax.set_ylabel("error on held-out rows")
    ax.legend(frameon=False)
    tidy(ax)
    return ax
