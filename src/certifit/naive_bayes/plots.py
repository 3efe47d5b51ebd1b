"""Densities of classes and what they say of a class; and generative against discriminative as rows grow.

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
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from scipy.special import softmax
from scipy.stats import norm
from sklearn.model_selection import train_test_split

from certifit.exceptions import DataError
from certifit.families.column_families import column_families
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.naive_bayes.gaussian import GaussianNB
from certifit.plots.fitted_models import ask, check_drawable
from certifit.plots.points import class_style, label_codes, label_words
from certifit.plots.style import BLUE, RED, legend_beside, new_axes, new_grid, plain, shorten, tidy
from certifit.plots.tables import TableView, table_numbers, target_values, view_table
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
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("training rows")
    ax.set_ylabel("error on held-out rows")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_class_densities(model: Any, X: Any, y: Any, feature: int | str = 0, axes: Any = None) -> Array:
    """Draw how naive Bayes sees one column: prior times density of every class, and what they say of the class.

    Above are π_c p(x | c), whose sum is the density of the column, over histograms of the rows of each class: a
    density that fits its class follows its histogram. Below is the posterior p(c | x) of a row of which only this
    column is known. A column of counts or categories has probabilities in place of densities.

    Parameters
    ----------
    model : fitted naive Bayes: GaussianNB, BernoulliNB or CategoricalNB of ours or scikit-learn's, or our NaiveBayes
    X : table
        Rows as the model takes them.
    y : (n,) labels, or the name of a column of X
    feature : column, by number or name
    axes : two Axes, optional
        Where to draw; those of a new figure unless given.

    Returns
    -------
    array (2,) of Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import GaussianNB
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> densities, posterior = plot_class_densities(GaussianNB().fit(X, y), X, y, "petal width (cm)")
    >>> posterior.get_xlabel(), posterior.get_ylabel()
    ('petal width (cm)', 'p(c | x)')
    """
    check_drawable(model, "a fitted naive Bayes", "classes_")
    table, y = view_table(X, y)
    column = _read_column(model, table, table.place(feature))
    labels = np.asarray(model.classes_).tolist()
    codes = label_codes(np.asarray(target_values(y, table.n_rows)), labels)
    densities, posterior = new_grid(axes, (2, 1), (6.4, 5.2))
    share = softmax(column.log_joint, axis=1)
    for c, label in enumerate(labels):
        style: dict[str, Any] = {"color": class_style(c)["color"]}
        densities.stairs(column.histogram(codes == c), column.edges, fill=True, alpha=0.25, **style)
        style |= {"marker": "o", "linestyle": ":"} if column.counted else {}
        densities.plot(column.values, np.exp(column.log_joint[:, c]), label=label_words(label), **style)
        posterior.plot(column.values, share[:, c], **style)
    densities.set_ylabel("π p(x | c)")
    densities.set_ylim(bottom=0)
    posterior.set_ylabel("p(c | x)")
    posterior.set_ylim(-0.03, 1.03)
    legend_beside(densities)
    plain(posterior.set_xlabel(shorten(table.label(table.place(feature)), 40)))
    for ax in (densities, posterior):
        ax.set_xlim(min(column.values[0], column.edges[0]), max(column.values[-1], column.edges[-1]))
        ax.xaxis.set_major_locator(MaxNLocator(integer=column.counted))
        tidy(ax)
    return np.array([densities, posterior])


@dataclass(frozen=True)
class DrawnColumn:
    """A column as naive Bayes sees it."""

    known: Array  # (n,) its entries in the rows, NaN where missing
    values: Array  # (g,) where it is drawn
    log_joint: Array  # (g, k) log of π_c p(x | c) there
    counted: bool  # values have probabilities, not densities

    @property
    def edges(self) -> Array:
        """Borders of the bars of a histogram: one bar for each value that is counted."""
        if self.counted:
            return np.append(self.values, self.values[-1] + 1) - 0.5
        known = self.known[np.isfinite(self.known)]
        return np.histogram_bin_edges(known, int(np.clip(2 * np.sqrt(len(known)), 5, 50)))

    def histogram(self, some: Array) -> Array:
        """The density of some of the rows, with an area that is their share of all."""
        counts = np.histogram(self.known[some & np.isfinite(self.known)], self.edges)[0]
        return counts / (np.diff(self.edges) * np.isfinite(self.known).sum())


def _read_column(model: Any, table: TableView, j: int) -> DrawnColumn:
    """Return column j as the fitted attributes of a naive Bayes describe it."""
    seen = getattr(model, "n_features_in_", table.n_columns)
    if seen != table.n_columns:
        raise DataError(got=f"a table of {table.n_columns} columns", wanted=f"the {seen} columns of the fit")
    known = table.numbers(j)
    if not np.isfinite(known).any():
        raise DataError(got=f"{table.label(j)!r} without numbers", wanted="a column with at least one number to draw")
    if hasattr(model, "theta_") and hasattr(model, "var_"):
        values = _around(known)
        scores = norm.logpdf(values[:, None], model.theta_[:, j], np.sqrt(model.var_[:, j]))
        return DrawnColumn(known, values, np.log(model.class_prior_) + scores, False)
    if hasattr(model, "families_"):
        names = list(getattr(model, "feature_names_in_", ()))
        counted = column_families(model.family, table.n_columns, names)[j].support.discrete
        values = np.arange(np.nanmin(known), np.nanmax(known) + 1) if counted else _around(known)
        # Entries that are missing are left out of a row's score: it is then that of this column alone.
        alone = np.full((len(values), table.n_columns), np.nan)
        alone[:, j] = values
        return DrawnColumn(known, values, ask(model, "predict_joint_log_proba", alone), counted)
    found = getattr(model, "feature_log_prob_", None)
    if isinstance(found, list):
        values = np.arange(found[j].shape[1])
        return DrawnColumn(known, values, (model.class_log_prior_[:, None] + found[j]).T, True)
    if found is not None and hasattr(model, "binarize"):
        log_yes = found[:, j]
        joint = model.class_log_prior_ + np.stack([np.log1p(-np.exp(log_yes)), log_yes])
        known = known if model.binarize is None else np.where(np.isnan(known), known, known > model.binarize)
        return DrawnColumn(known, np.arange(2), joint, True)
    raise DataError(
        got=f"a {type(model).__name__}",
        wanted="naive Bayes with a distribution for each column",
        fix="Of a pipeline, draw the last step, with rows as it takes them.",
    )


def _around(known: Array, points: int = 400) -> Array:
    """Return values from the smallest to the largest known one, and a little beyond."""
    low, high = float(np.nanmin(known)), float(np.nanmax(known))
    room = 0.1 * (high - low) if high > low else 1.0
    return np.linspace(low - room, high + room, points)
