"""Trees as text, dot and picture: the words that scikit-learn writes, of its trees and of ours."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn import tree as theirs
from sklearn.datasets import load_diabetes, load_iris

from certifit import (
    DataError,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    OptimalTreeClassifier,
    RandomForestClassifier,
)
from certifit.tree import export_graphviz, export_text, plot_tree

IRIS, DIABETES = load_iris(), load_diabetes()


def their_trees():
    Y = np.column_stack([IRIS.target, IRIS.target > 0])
    return {
        "classes": theirs.DecisionTreeClassifier(max_depth=3, random_state=0).fit(IRIS.data, IRIS.target),
        "amounts": theirs.DecisionTreeRegressor(max_depth=3, random_state=0).fit(DIABETES.data, DIABETES.target),
        "two targets": theirs.DecisionTreeClassifier(max_depth=3, random_state=0).fit(IRIS.data, Y),
        "leaf": theirs.DecisionTreeClassifier().fit([[0.0], [1.0]], [1, 1]),
    }


@pytest.mark.parametrize("name", ["classes", "amounts"])
@pytest.mark.parametrize("settings", [{}, {"max_depth": 1}, {"show_weights": True, "decimals": 1, "spacing": 2}])
def test_text_as_scikit_learn_writes_it(name, settings):
    model = their_trees()[name]
    assert export_text(model, **settings) == theirs.export_text(model, **settings)


@pytest.mark.parametrize("name", ["classes", "amounts", "two targets", "leaf"])
@pytest.mark.parametrize("settings", [
    {}, {"filled": True, "rounded": True, "precision": 2}, {"max_depth": 1, "filled": True},
    {"rotate": True, "leaves_parallel": True}, {"special_characters": True, "proportion": True},
    {"label": "root", "impurity": False, "node_ids": True}, {"class_names": True},
])  # fmt: skip
def test_dot_as_scikit_learn_writes_it(name, settings):
    model = their_trees()[name]
    if settings.get("class_names") and name != "classes":
        return
    assert export_graphviz(model, **settings) == theirs.export_graphviz(model, out_file=None, **settings)


def test_dot_into_a_file(tmp_path):
    model = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
    text, file = export_graphviz(model), io.StringIO()
    assert export_graphviz(model, file) is None
    assert export_graphviz(model, str(tmp_path / "tree.dot")) is None
    assert file.getvalue() == (tmp_path / "tree.dot").read_text() == text


def test_ours_name_their_columns_by_themselves():
    frame = load_iris(as_frame=True)
    model = DecisionTreeClassifier(max_depth=1).fit(frame.data, frame.target)
    assert export_text(model).startswith("|--- petal length (cm) <= 2.45")


def test_a_question_for_missing_entries_has_words():
    X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]])
    model = DecisionTreeClassifier().fit(X, [0, 0, 0, 1, 1])
    assert model.tree_.threshold[0] == np.inf
    assert "|--- feature_0 is not missing\n|   |--- class: 0\n|--- feature_0 is missing\n" in export_text(model)
    assert '[label="x[0] is not missing\\n' in export_graphviz(model)
    assert plot_tree(model)[0].get_text().startswith("x[0] is not missing\n")
    plt.close("all")


def test_wrong_names_are_refused():
    model = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
    with pytest.raises(DataError, match="feature_names must contain 4 elements, got 1"):
        export_text(model, feature_names=["a"])
    with pytest.raises(DataError, match="Got 2 while the tree was fitted with 3 classes"):
        plot_tree(model, class_names=["a", "b"])
    with pytest.raises(DataError, match="label"):
        export_graphviz(model, label="some")


@pytest.mark.parametrize("name", ["classes", "amounts", "two targets", "leaf"])
def test_pictures_of_any_tree(name):
    """Boxes say what scikit-learn's say, none covers another of its level, and all lie inside the picture."""
    model = their_trees()[name]
    texts = plot_tree(model)
    figure = texts[0].get_figure()
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    told = [text for text in texts if text.get_bbox_patch() is not None]
    assert len(told) == model.tree_.node_count
    assert told[0].get_text().replace("\n", " ") == theirs.plot_tree(model)[0].get_text().replace("\n", " ")
    boxes = [text.get_bbox_patch().get_window_extent(renderer) for text in told]
    for i, a in enumerate(boxes):
        assert figure.bbox.x0 <= a.x0
        assert a.x1 <= figure.bbox.x1
        assert not any(a.overlaps(b) for b in boxes[i + 1 :])
    plt.close("all")


def test_a_picture_on_given_axes_down_to_a_depth():
    model = DecisionTreeRegressor().fit(DIABETES.data, DIABETES.target)
    figure, ax = plt.subplots(figsize=(5, 4))
    texts = plot_tree(model, ax=ax, max_depth=1, feature_names=DIABETES.feature_names, fontsize=7)
    assert [text.get_text() for text in texts].count("(...)") == 4
    assert {text.get_fontsize() for text in texts} == {7}
    assert plt.get_fignums() == [figure.number]
    plt.close("all")


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        DecisionTreeRegressor(max_depth=4),
        OptimalTreeClassifier(),
        RandomForestClassifier(3, random_state=0),
        ExtraTreesRegressor(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_copy_for_scikit_learn_answers_alike_and_its_tools_read_it(model):
    """Values that float32 holds exactly, some of them missing: not one row may go another way."""
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 8, size=(80, 3)) / 4
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.where(np.nan_to_num(X[:, 0]) + rng.normal(size=80) > 0, 3, 1)
    copy = model.fit(X, y).to_sklearn()
    assert type(copy).__module__.startswith("sklearn.")
    assert (copy.predict(X) == model.predict(X)).all()
    assert (copy.apply(X) == model.apply(X)).all()
    np.testing.assert_allclose(copy.feature_importances_, model.feature_importances_)
    tree = copy if hasattr(model, "tree_") else copy.estimators_[0]
    words = theirs.export_text(tree).replace(" <= inf", " is not missing").replace(" >  inf", " is missing")
    assert words == export_text(tree)


def test_a_tree_with_categories_has_no_copy_in_scikit_learn():
    X, y = np.arange(12.0)[:, None] % 4, np.array([0, 1, 1, 0] * 3)
    with pytest.raises(DataError, match="asks for sets of categories"):
        DecisionTreeClassifier(categorical_features=[0]).fit(X, y).to_sklearn()
