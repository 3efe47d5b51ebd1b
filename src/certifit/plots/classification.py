"""Pictures of a linear model's coefficients, and of where a classifier errs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.plots.fitted_models import ask, check_drawable, default_names, last_step, seen_names
from certifit.plots.points import distinct_labels, is_continuous, label_codes, label_words, predicts_numbers
from certifit.plots.style import BLUE, RED, ink, new_axes, plain, shorten, tidy
from certifit.plots.tables import target_values, view_table
from certifit.rows import Array


def plot_coefficients(
    model: Any,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    ax: Axes | None = None,
    most: int = 20,
) -> Axes:
    """Draw the coefficients of the columns that matter most: bars where there is a row of them, else coloured cells.

    Parameters
    ----------
    model : fitted linear model, or its coefficients (d,) or (k, d)
        Of any library; of a pipeline, its last step. With two classes there is one row, which speaks for the second.
    features : (d,) names of columns, optional
        Those that the model was fitted to, unless given.
    classes : names of classes, optional
        The model's `classes_`, unless given.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    most : int, default=20
        How many columns to show: those with the largest coefficients, the largest first.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = plot_coefficients(LogisticRegression().fit(X, y))
    >>> [label.get_text() for label in ax.get_yticklabels()][0]
    'petal length (cm)'

    Coefficients alone will do:

    >>> ax = plot_coefficients([[1.0, -2.0]], ["height", "age"], ["no", "yes"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['age', 'height']
    """
    coef, own_features, own_classes = _coefficients(model)
    features = _names_for(features, own_features, coef.shape[1], "features")
    heads = _row_names(list(own_classes) if classes is None else list(classes), len(coef), model)
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:most]
    k, place = len(coef), np.arange(len(order))
    ax = new_axes(ax, 6.4 if k == 1 else float(np.clip(3.0 + 0.8 * k, 4.5, 12.0)), 1.2 + 0.26 * len(order))
    if k == 1:
        ax.barh(place, coef[0, order], color=np.where(coef[0, order] < 0, RED, BLUE), height=0.7)
        ax.axvline(0, color=ink(), linewidth=0.8)
        sides = f"← for {heads[0]}      coefficient      for {heads[1]} →" if len(heads) == 2 else "coefficient"
        plain(ax.set_xlabel(sides))
        ax.set_ylim(len(order) - 0.5, -0.5)
        tidy(ax)
    else:
        _draw_cells(ax, coef[:, order].T, heads)
    ax.set_yticks(place, [shorten(features[j]) for j in order], fontsize=8)
    plain(*ax.get_yticklabels())
    return ax


def _coefficients(model: Any) -> tuple[Array, list[str] | None, list[Any]]:
    """Return coefficients (k, d) of a model or an array, and the names of columns and classes that it knows."""
    if isinstance(model, (np.ndarray, list, tuple)):
        values, names, classes = np.asarray(model, dtype=np.float64), None, []
    else:
        wanted = "a fitted linear model (one with coef_), or an array of coefficients"
        check_drawable(model, wanted)
        inner = last_step(model)
        check_drawable(inner, wanted, "coef_")
        coef = inner.coef_
        values = np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, dtype=np.float64)
        names = seen_names(model, np.atleast_2d(values).shape[1])
        classes = np.asarray(getattr(inner, "classes_", [])).tolist()
    coef = np.atleast_2d(values)
    if coef.ndim != 2 or coef.size == 0:
        raise DataError(got=f"coefficients of shape {values.shape}", wanted="(columns,) or (classes, columns)")
    return coef, names, classes


def _names_for(given: Sequence[str] | None, own: list[str] | None, count: int, role: str) -> list[str]:
    if given is None:
        return own or default_names(count)
    if isinstance(given, str) or len(given) != count:
        raise DataError(got=f"{role}={given!r}", wanted=f"{count} names, one for each column of the coefficients")
    return [str(name) for name in given]


def _row_names(classes: list[Any], rows: int, model: Any) -> list[str]:
    """Return the words for rows of coefficients: classes, pairs of classes, or targets by number."""
    k = len(classes)
    words = [label_words(name, 16) for name in classes]
    inner = last_step(model)
    # Kernel machines have a row for each pair, positive for the first class; three classes have three pairs.
    pairs = hasattr(inner, "dual_coef_") and getattr(inner, "multi_class", "ovo") == "ovo"
    if rows == 1 and k in (0, 2):
        return words
    if k > 2 and rows == k * (k - 1) // 2 and (pairs or rows != k):
        return [f"{label_words(a, 12)} / {label_words(b, 12)}" for a, b in combinations(classes, 2)]
    if k and rows != k:
        raise DataError(got=f"{k} classes for {rows} rows of coefficients", wanted="one for each row, or two for one")
    return words or [f"target {i}" for i in range(rows)]


def _draw_cells(ax: Axes, shown: Array, heads: list[str]) -> None:
    """Draw coefficients (columns, classes) as coloured cells with their numbers."""
    k = shown.shape[1]
    largest = max(float(np.abs(shown).max()), 1e-300)
    ax.imshow(shown, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
    if k <= 10:
        # Cells have as many decimals as the largest coefficient needs for three digits; a zero has none.
        decimals = int(np.clip(2 - np.floor(np.log10(largest)), 0, 12))
        for i, j in np.ndindex(*shown.shape):
            colour = "white" if abs(shown[i, j]) > 0.6 * largest else "black"
            words = "0" if shown[i, j] == 0 else f"{shown[i, j]:z.{decimals}f}"
            ax.text(
                j,
                i,
                words if largest < 1e6 else f"{shown[i, j]:.1e}",
                ha="center",
                va="center",
                color=colour,
                fontsize=8,
            )
    _name_columns(ax, heads)


def _name_columns(ax: Axes, names: Sequence[str], most: int = 50) -> None:
    """Write names below the columns: upright while they are few and short, none where they would not be readable."""
    slanted = max(map(len, names)) > 7 if len(names) > 4 else sum(map(len, names)) > 40
    slant: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    shown = list(names) if len(names) <= most else []
    ax.set_xticks(range(len(shown)), shown, fontsize=8, **slant)
    plain(*ax.get_xticklabels())


def plot_confusion(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    classes: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often rows of each true class are predicted as which; shading is the share of the true class.

    Parameters
    ----------
    model : fitted classifier, or counts (k, k)
        Of any library, or a pipeline. Counts have true classes in rows and predicted ones in columns.
    X : table
        Rows for the model to classify; none with counts.
    y : (n,) true labels, or the name of a column of X
    sample_weight : (n,) or the name of a column of X, optional
        How many times each row counts.
    classes : labels, optional
        Their order; all labels that the model knows or that occur, unless given. With counts, their names.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_confusion(LogisticRegression().fit(X, y), X, y)
    >>> [text.get_text() for text in ax.texts]
    ['50', '0', '0', '0', '47', '3', '0', '1', '49']

    Counts alone will do:

    >>> ax = plot_confusion([[9, 1], [2, 8]], classes=["no", "yes"])
    >>> [text.get_text() for text in ax.texts]
    ['9', '1', '2', '8']
    """
    if isinstance(model, (np.ndarray, list, tuple)):
        counts, labels = _given_counts(model, X, y, classes)
    else:
        counts, labels = _counted(model, X, y, sample_weight, classes)
    k = len(labels)
    size = float(np.clip(1.8 + 0.55 * k, 3.0, 12.0))
    names = [label_words(label, 16) for label in labels]
    ax = new_axes(ax, size + 0.5 + 0.08 * max(map(len, names)), size)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    if k <= 20:
        for i, j in np.ndindex(k, k):
            colour = "white" if share[i, j] > 0.5 else "black"
            ax.text(j, i, _count_words(float(counts[i, j])), ha="center", va="center", color=colour, fontsize=9)
    _name_columns(ax, names)
    ax.set_yticks(range(k if k <= 50 else 0), names if k <= 50 else [], fontsize=8)
    plain(*ax.get_yticklabels())
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    return ax


def _count_words(count: float) -> str:
    """Return a count, or a sum of weights to three digits and at least to whole ones."""
    return f"{count:.0f}" if count.is_integer() or abs(count) >= 100 else f"{count:.3g}"


def _given_counts(counts: Any, X: Any, y: Any, classes: Any) -> tuple[Array, list[Any]]:
    values = np.asarray(counts, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not len(values) or (values < 0).any():
        raise DataError(
            got=f"counts of shape {values.shape}",
            wanted="as many rows (true) as columns (predicted), and no negative count",
            fix="plot_confusion(model, X, y) counts by itself.",
        )
    if X is not None or y is not None:
        raise DataError(
            got="counts together with X or y",
            wanted="counts alone, or a model with X and y",
            fix="Name the classes of counts by plot_confusion(counts, classes=...).",
        )
    names = list(range(len(values))) if classes is None else list(classes)
    if len(names) != len(values):
        raise DataError(got=f"{len(names)} classes", wanted=f"{len(values)}, one for each row of the counts")
    return values, names


def _counted(model: Any, X: Any, y: Any, sample_weight: Any, classes: Any) -> tuple[Array, list[Any]]:
    """Return the weight of rows of each true and predicted class (k, k), and the classes."""
    check_drawable(model, "a fitted classifier, or counts", "predict")
    if X is None or y is None:
        raise DataError(got="a model alone", wanted="rows X to classify and their true labels y")
    table, truth = view_table(X, y)
    if isinstance(sample_weight, str):
        table, sample_weight = view_table(table.source, sample_weight)
    truth = target_values(truth, table.n_rows)
    predicted = ask(model, "predict", table.source)
    assert truth is not None
    if predicts_numbers(model, predicted) or (is_continuous(truth) and truth.dtype.kind == "f"):
        raise DataError(
            got=f"numbers ({type(model).__name__} or y is continuous)",
            wanted="a classifier and labels",
            fix="plot_boundary draws what a regressor predicts.",
        )
    labels = list(getattr(model, "classes_", [])) if classes is None else list(classes)
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    known = set(labels)
    labels += [label for label in distinct_labels(truth, predicted) if label not in known]
    w = np.ones(table.n_rows) if sample_weight is None else target_values(sample_weight, table.n_rows)
    counts = np.zeros((len(labels), len(labels)))
    rows, columns = label_codes(truth, labels), label_codes(predicted, labels)
    there = (rows >= 0) & (columns >= 0)
    np.add.at(counts, (rows[there], columns[there]), np.asarray(w, dtype=np.float64)[there])
    return counts, labels
