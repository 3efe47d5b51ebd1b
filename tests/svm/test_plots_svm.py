"""The pictures of support vector machines draw the numbers they say."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from certifit import SVC, SVR, DataError, LinearSVC
from certifit.plots import plot_convergence, plot_machine

IRIS = load_iris()
X, NAMES = IRIS.data[:, [1, 3]], IRIS.target_names[IRIS.target]
TWO = IRIS.target > 0
NAMED = pd.DataFrame(X, columns=["sepal $width$", "petal"])


def rings(ax):
    """The marked rows of each kind, by the words in the legend."""
    found = {c.get_label(): c.get_offsets() for c in ax.collections if str(c.get_label()).endswith(")")}
    return {label.rsplit(" ", 1)[0]: np.asarray(points) for label, points in found.items()}


def test_support_vectors_are_marked_by_kind():
    model = SVC(C=0.5).fit(X[TWO], NAMES[TWO])
    found = rings(plot_machine(model, X[TWO], NAMES[TWO]))
    beyond, right = model.support_kinds_ == "non-margin", model.predict(X[TWO]) == NAMES[TWO]
    kinds = {"on the margin": model.support_kinds_ == "margin", "inside the margin": beyond & right}
    for words, rows in (kinds | {"misclassified": ~right}).items():
        np.testing.assert_array_equal(found.pop(words), X[TWO][rows])
    assert not found
    # For two classes a wrong row is always at its bound, since its margin is below 1.
    assert (beyond | right).all()


def test_rows_of_a_tube_are_marked_by_kind():
    model = SVR(C=0.5).fit(X, IRIS.data[:, 0])
    found = rings(plot_machine(model, X, IRIS.data[:, 0]))
    for words, kind in (("on the edge of the tube", "margin"), ("outside the tube", "non-margin")):
        np.testing.assert_array_equal(found[words], X[model.support_kinds_ == kind])


def test_the_lines_are_where_the_machine_decides():
    model = SVC(kernel="linear", tol=1e-8).fit(X[TWO], NAMES[TWO])
    ax = plot_machine(model, X[TWO], NAMES[TWO])
    drawn = [c for c in ax.collections if getattr(c, "levels", None) is not None and len(c.levels) == 1]
    assert sorted(float(c.levels[0]) for c in drawn) == [-1, 0, 1]
    for contour in drawn:
        points = contour.get_paths()[0].vertices
        np.testing.assert_allclose(model.decision_function(points), contour.levels[0], atol=1e-9)


def test_of_several_machines_a_row_shows_what_it_is_at_most():
    model = SVC().fit(X, NAMES)
    assert model.support_kinds_.shape == (150, 3)
    found = rings(plot_machine(model, X, NAMES))
    beyond = (model.support_kinds_ == "non-margin").any(axis=1)
    assert len(found["inside the margin"]) + len(found["misclassified"]) == beyond.sum()
    np.testing.assert_array_equal(found["misclassified"], X[model.predict(X) != NAMES])
    circled = sum(len(points) for points in found.values())
    assert circled == len(model.support_)


def test_a_machine_without_kinds_and_names_of_columns():
    ax = plot_machine(LinearSVC().fit(NAMED, NAMES), NAMED, NAMES, features=("sepal $width$", "petal"))
    assert not rings(ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sepal $width$", "petal")
    ax.figure.canvas.draw()  # a `$` is not mathematics


def test_what_cannot_be_drawn_is_refused():
    model = SVC().fit(X, NAMES)
    with pytest.raises(DataError, match="the 150 rows that the model was fitted on"):
        plot_machine(model, X[:10], NAMES[:10])
    with pytest.raises(DataError, match="two different columns"):
        plot_machine(SVC().fit(IRIS.data, NAMES), IRIS.data, NAMES, features=(1, 1))
    with pytest.raises(DataError, match="a SVC that is not fitted"):
        plot_machine(SVC(), X, NAMES)


def test_the_gap_of_every_machine_against_time():
    model = SVC(tol=1e-9).fit(X, NAMES)
    ax = plot_convergence(model)
    *lines, asked = ax.lines
    assert len(lines) == 3
    for line, history in zip(lines, model.history_, strict=True):
        assert len(line.get_xdata()) == len(history)
        assert np.all(np.diff(line.get_xdata()) > 0)
    assert asked.get_ydata()[0] == 1e-9
    assert ax.get_ylabel() == "gap / objective"
    assert "3 machines" in ax.get_legend().get_texts()[0].get_text()
