"""What pictures say of models is what the models say: against predictions, counts by hand and scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.stats import poisson
from sklearn import cluster, ensemble, linear_model, manifold, naive_bayes, svm
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris, make_swiss_roll
from sklearn.metrics import confusion_matrix, silhouette_samples
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import certifit
from certifit.plots import (
    plot_boundary,
    plot_cells,
    plot_class_densities,
    plot_coefficients,
    plot_components,
    plot_confusion,
    plot_machine,
    plot_scree,
    plot_silhouettes,
)
from certifit.plots.boundary import make_plane
from certifit.plots.fitted_models import names_unsaid
from certifit.plots.tables import view_table

X, y = load_iris(return_X_y=True, as_frame=True)
NAMES = load_iris().target_names[y]
TWO = X.iloc[:, 2:]


def scattered(ax):
    """The points of each entry of the legend."""
    return {str(c.get_label()): np.asarray(c.get_offsets()) for c in ax.collections if not hasattr(c, "levels")}


def bars(ax):
    return [other for other in ax.figure.axes if other is not ax]


# ------------------------------------------------------------------------------------------------- tables
TABLES = {
    "pandas": lambda: TWO,
    "polars": lambda: pl.from_pandas(TWO),
    "Arrow": lambda: pa.Table.from_pandas(TWO),
    "array": lambda: TWO.to_numpy(),
    "lists": lambda: TWO.to_numpy().tolist(),
    "sparse": lambda: sparse.csr_matrix(TWO.to_numpy()),
}
TARGETS = {
    "list": list,
    "series": pd.Series,
    "Arrow": pa.array,
    "chunks": lambda labels: pa.chunked_array([labels[:70], labels[70:]]),
    "polars": pl.Series,
    "categories": pd.Categorical,
    "column": lambda labels: np.reshape(labels, (-1, 1)),
}


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("fit", [certifit.LinearSVC, svm.LinearSVC], ids=["ours", "theirs"])
def test_tables_of_any_kind(form, fit):
    table = TABLES[form]()
    if form == "Arrow" and fit is svm.LinearSVC:
        model = fit().fit(TWO, NAMES)
    else:
        model = fit().fit(table, NAMES)
    ax = plot_boundary(model, table, NAMES)
    named = form in ("pandas", "polars", "Arrow")
    assert ax.get_xlabel() == ("petal length (cm)" if named else "column 0")
    for name, points in scattered(ax).items():
        np.testing.assert_allclose(points, TWO.to_numpy()[name == NAMES])
    assert ax.figure.axes == [ax]


@pytest.mark.parametrize("form", TARGETS)
def test_targets_of_any_kind(form):
    labels = TARGETS[form](NAMES.tolist())
    model = certifit.GaussianNB().fit(TWO, NAMES)
    assert list(scattered(plot_boundary(model, TWO, labels))) == ["setosa", "versicolor", "virginica"]
    assert plot_confusion(model, TWO, labels).texts[0].get_text() == "50"


@pytest.mark.parametrize("make", [pa.Table.from_pandas, pl.from_pandas, lambda frame: frame])
def test_the_target_may_be_a_column_of_the_table(make):
    table = make(TWO.assign(kind=NAMES))
    model = certifit.LinearSVC().fit(table, "kind")
    ax = plot_boundary(model, table, "kind")
    assert list(scattered(ax)) == ["setosa", "versicolor", "virginica"]
    assert plot_confusion(model, table, "kind").texts[0].get_text() == "50"
    with pytest.raises(certifit.DataError, match="Did you mean 'kind'"):
        plot_boundary(model, table, "kin")


# ------------------------------------------------------------------------------------------------- boundaries
@pytest.mark.parametrize(
    "model",
    [
        certifit.LogisticRegression(),
        certifit.SVC(),
        linear_model.LogisticRegression(max_iter=500),
        svm.SVC(),
        ensemble.RandomForestClassifier(10, random_state=0),
    ],
    ids=lambda model: f"{type(model).__module__.partition('.')[0]} {type(model).__name__}",
)
def test_regions_are_what_is_predicted(model):
    """Whether a point lies in the filled region of a class is told by matplotlib's own paths."""
    model.fit(TWO, NAMES)
    ax = plot_boundary(model, TWO, NAMES)
    filled = [c for c in ax.collections if hasattr(c, "levels") and len(c.levels) == 2]
    assert len(filled) == 3
    rng = np.random.default_rng(0)
    points = rng.uniform(*np.array([ax.get_xlim(), ax.get_ylim()]).T, size=(300, 2))
    said = model.predict(pd.DataFrame(points, columns=TWO.columns))
    inside = np.array([[path.contains_point(p) for p in points] for path in (c.get_paths()[0] for c in filled)])
    right = [inside[list(model.classes_).index(label), i] for i, label in enumerate(said)]
    # Points nearer to a line than a cell of the grid may fall on the other side.
    assert np.mean(right) >= 0.97


def test_votes_that_tie_leave_no_gap():
    """A forest of two trees ties wherever they differ; predict still says which class it is."""
    model = ensemble.RandomForestClassifier(2, max_depth=2, random_state=1).fit(X.iloc[:, :2], NAMES)
    ax = plot_boundary(model, X.iloc[:, :2], NAMES)
    filled = [c.get_paths()[0] for c in ax.collections if hasattr(c, "levels") and len(c.levels) == 2]
    points = np.random.default_rng(0).uniform(*np.array([ax.get_xlim(), ax.get_ylim()]).T, size=(400, 2))
    inside = np.array([[path.contains_point(p) for p in points] for path in filled])
    assert np.mean(inside.sum(axis=0) == 1) >= 0.97


def test_a_threshold_moves_the_line():
    """predict_proba does not say what predict says, so the regions must be those of predict."""
    two = np.flatnonzero(y > 0)
    base = linear_model.LogisticRegression().fit(TWO.iloc[two], NAMES[two])
    model = FixedThresholdClassifier(base, threshold=0.9, response_method="predict_proba").fit(
        TWO.iloc[two], NAMES[two]
    )
    lines = {}
    for name, other in (("base", base), ("moved", model)):
        ax = plot_boundary(other, TWO.iloc[two], NAMES[two])
        (line,) = [c for c in ax.collections if hasattr(c, "levels") and len(c.levels) == 1]
        lines[name] = line.get_paths()[0].vertices
    p = base.predict_proba(pd.DataFrame(lines["moved"], columns=TWO.columns))[:, 1]
    assert abs(p.mean() - 0.9) < 0.02
    p = base.predict_proba(pd.DataFrame(lines["base"], columns=TWO.columns))[:, 1]
    np.testing.assert_allclose(p, 0.5, atol=1e-6)


def test_other_columns_are_held_at_their_median_and_words_at_the_most_frequent():
    frame = X.assign(kind=["a"] * 80 + ["b"] * 70)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough"),
        linear_model.LogisticRegression(max_iter=2000),
    ).fit(frame, NAMES)
    ax = plot_boundary(model, frame, NAMES, ("petal length (cm)", 3))
    assert ax.get_title(loc="left") == "3 other columns held at their median"
    plane = make_plane(view_table(frame)[0], (2, 3), 5)
    seen = []

    class Spy:
        def predict(self, rows):
            seen.append(rows)
            return np.zeros(len(rows))

    plane.ask(Spy(), "predict")
    (rows,) = seen
    assert list(rows.columns) == list(frame.columns)
    assert set(rows["kind"]) == {"a"}
    np.testing.assert_array_equal(rows["sepal width (cm)"], frame["sepal width (cm)"].median())
    assert rows["petal length (cm)"].nunique() == 5


def test_numbers_have_levels_and_a_colour_bar():
    frame, target = load_diabetes(return_X_y=True, as_frame=True)
    for model in (certifit.Ridge(0.01), ensemble.RandomForestRegressor(5, random_state=0)):
        ax = plot_boundary(model.fit(frame, target), frame, target, ("bmi", "s5"))
        assert [bar.get_ylabel() for bar in bars(ax)] == ["prediction, and y of rows"]
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("bmi", "s5")


def test_a_model_is_anything_that_predicts():
    class Rule:
        def predict(self, rows):
            return np.where(np.asarray(rows)[:, 0] > 3, "long", "short")

    class Column(Rule):
        def predict(self, rows):  # as some libraries answer
            return super().predict(rows)[:, None].tolist()

    for model in (Rule(), Column()):
        ax = plot_boundary(model, TWO.to_numpy(), np.where(TWO.iloc[:, 0] > 3, "long", "short"))
        assert list(scattered(ax)) == ["long", "short"]


def test_circles_of_other_libraries_machines():
    model = svm.SVC().fit(TWO, NAMES)
    found = scattered(plot_machine(model, TWO, NAMES))
    np.testing.assert_array_equal(found[f"support vectors ({len(model.support_)})"], TWO.to_numpy()[model.support_])
    with pytest.raises(certifit.DataError, match="the 150 rows"):
        plot_machine(model, TWO[:10], NAMES[:10])


# ------------------------------------------------------------------------------------------------- clusters
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("library", [certifit.KMeans, cluster.KMeans])
def test_cells_are_where_a_centre_is_nearest(library, scaled):
    """The lines against perpendicular bisectors: as far from one centre as from the next."""
    kmeans = library(3, n_init=1, random_state=0)
    model = make_pipeline(StandardScaler(), kmeans).fit(TWO) if scaled else kmeans.fit(TWO)
    ax = plot_cells(model, TWO)
    scale, mean = (TWO.std(ddof=0).to_numpy(), TWO.mean().to_numpy()) if scaled else (1.0, 0.0)
    np.testing.assert_allclose(scattered(ax)["centres"], kmeans.cluster_centers_ * scale + mean)
    for c, label in enumerate(("0", "1", "2")):
        np.testing.assert_allclose(scattered(ax)[label], TWO[model.predict(TWO) == c])
    lines = [c.get_paths()[0].vertices for c in ax.collections if hasattr(c, "levels") and len(c.levels) == 1]
    far = np.sqrt((((np.concatenate(lines) - mean) / scale)[:, None] - kmeans.cluster_centers_) ** 2 @ np.ones(2))
    nearest = np.sort(far, axis=1)
    # Lines are straight between the points of a grid; only where three cells meet are they not.
    assert np.mean(nearest[:, 1] - nearest[:, 0] < 1e-9) > 0.97


@pytest.mark.parametrize(
    "model",
    [certifit.KMeans(3, random_state=0), cluster.AgglomerativeClustering(3), cluster.DBSCAN(0.6)],
    ids=lambda model: type(model).__name__,
)
def test_silhouettes_against_scikit_learn(model):
    model.fit(X)
    clustered = model.labels_ >= 0
    expected = silhouette_samples(X[clustered], model.labels_[clustered])
    ax = plot_silhouettes(model, X)
    drawn = [bar.get_width() for bar in ax.patches]
    order = np.lexsort([-expected, model.labels_[clustered]])
    np.testing.assert_allclose(drawn, expected[order], atol=1e-12)
    assert ax.get_title(loc="left") == f"mean silhouette {expected.mean():.2f}"
    assert len(plot_silhouettes(model, X, most=50).patches) == 50


# ------------------------------------------------------------------------------------------------- naive Bayes
COUNTS = X.round().astype(int)
DENSITIES = {
    "Gaussian, ours": (certifit.GaussianNB(), X),
    "Gaussian, theirs": (naive_bayes.GaussianNB(), X),
    "categories, ours": (certifit.CategoricalNB(), COUNTS),
    "categories, theirs": (naive_bayes.CategoricalNB(), COUNTS),
    "yes and no, ours": (certifit.BernoulliNB(binarize=3.0), X),
    "yes and no, theirs": (naive_bayes.BernoulliNB(binarize=3.0), X),
    "families": (certifit.NaiveBayes(["gaussian", "gamma", "poisson", "poisson"]), COUNTS),
}


@pytest.mark.parametrize("case", DENSITIES)
def test_densities_sum_to_priors_and_to_the_posterior(case):
    """Fitted to this column alone, a model's own predict_proba is the posterior that is drawn."""
    model, table = DENSITIES[case]
    densities, posterior = plot_class_densities(model.fit(table, NAMES), table, NAMES, 2)
    name = table.columns[2]
    assert posterior.get_xlabel() == name
    alone = clone(model).set_params(family="poisson") if case == "families" else clone(model)
    points = densities.lines[0].get_xdata()
    asked = 4.0 * points if "yes" in case else points  # above or below what counts as yes
    with names_unsaid():
        expected = alone.fit(table[[name]], NAMES).predict_proba(asked[:, None])
    rates = table[name].groupby(NAMES).mean()
    for c, (above, below) in enumerate(zip(densities.lines, posterior.lines, strict=True)):
        np.testing.assert_allclose(below.get_ydata(), expected[:, c], atol=1e-6)
        if case == "families":
            np.testing.assert_allclose(above.get_ydata(), poisson.pmf(points, rates.iloc[c]) / 3)
        else:
            steps = np.gradient(points) if "Gaussian" in case else np.ones(len(points))
            assert above.get_ydata() @ steps == pytest.approx(1 / 3, abs=0.01)
    areas = [patch.get_data() for patch in densities.patches]
    assert [np.sum(area.values * np.diff(area.edges)) for area in areas] == pytest.approx([1 / 3] * 3)


# ------------------------------------------------------------------------------------------------- colours
@pytest.mark.parametrize("library", [certifit.LocallyLinearEmbedding, manifold.LocallyLinearEmbedding])
def test_an_embedding_with_numbers_has_a_colour_bar(library):
    roll, position = make_swiss_roll(200, random_state=0)
    model = library(n_neighbors=12).fit(roll)
    ax = plot_components(model, roll, position)
    assert [bar.get_ylabel() for bar in bars(ax)] == ["y"]
    np.testing.assert_allclose(ax.collections[0].get_array(), position)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), model.transform(roll))
    ax = plot_components(model, y=position)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), model.embedding_)


def test_an_embedding_that_places_no_other_rows():
    model = manifold.SpectralEmbedding(n_neighbors=60, random_state=0).fit(X)
    ax = plot_components(model, X, NAMES)
    np.testing.assert_allclose(scattered(ax)["setosa"], model.embedding_[:50])
    with pytest.raises(certifit.DataError, match="the 150 rows of the fit: a SpectralEmbedding places no others"):
        plot_components(model, X[:20])


def test_missing_labels_and_numbers_are_grey():
    model = certifit.PCA(2).fit(X)
    some = np.array([None, *NAMES[1:]], dtype=object)
    assert len(scattered(plot_components(model, X, some))["no label"]) == 1
    numbers = np.r_[np.nan, X.iloc[1:, 0]]
    assert len(scattered(plot_components(model, X, numbers))["no value"]) == 1


@pytest.mark.parametrize(
    "labels", [y == 0, y.astype(float), [(i, "a")[i % 2] for i in y]], ids=["bool", "float", "mixed"]
)
def test_labels_of_any_type(labels):
    ax = plot_components(certifit.PCA(2).fit(X), X, pd.Series(labels))
    assert sum(len(points) for points in scattered(ax).values()) == 150
    assert "no label" not in scattered(ax)


# ------------------------------------------------------------------------------------------------- confusion
@pytest.mark.parametrize("library", [certifit.LinearSVC, svm.LinearSVC])
@pytest.mark.parametrize("labels", [NAMES, y.to_numpy(), y.to_numpy() * 1.5], ids=["words", "integers", "floats"])
def test_confusion_against_scikit_learn(library, labels):
    codes = np.unique(labels, return_inverse=True)[1]
    labels = codes.astype(float) if labels.dtype.kind == "f" else labels
    model = library().fit(X.iloc[:, :2], labels)
    w = np.random.default_rng(0).integers(1, 5, len(labels))
    ax = plot_confusion(model, X.iloc[:, :2], labels, sample_weight=w)
    counts = confusion_matrix(labels, model.predict(X.iloc[:, :2]), sample_weight=w)
    assert [text.get_text() for text in ax.texts] == [str(int(n)) for n in counts.ravel()]
    np.testing.assert_allclose(ax.images[0].get_array(), counts / counts.sum(axis=1, keepdims=True))


def test_confusion_with_labels_the_model_does_not_know():
    model = certifit.GaussianNB().fit(X, NAMES)
    ax = plot_confusion(model, X, np.where(NAMES == "setosa", "unknown", NAMES))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["setosa", "versicolor", "virginica", "unknown"]
    assert ax.texts[12].get_text() == "50"
    ax = plot_confusion(model, X, NAMES, classes=["virginica", "setosa", "versicolor"])
    assert ax.texts[4].get_text() == "50"


# ------------------------------------------------------------------------------------------------- coefficients
def test_bars_are_coefficients_with_names():
    two = y < 2
    for model in (certifit.LogisticRegression(), linear_model.LogisticRegression()):
        model.fit(X[two], NAMES[two])
        ax = plot_coefficients(model)
        order = np.argsort(-np.abs(model.coef_[0]))
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.coef_[0, order])
        assert [label.get_text() for label in ax.get_yticklabels()] == X.columns[order].tolist()
        assert ax.get_xlabel() == "← for setosa      coefficient      for versicolor →"


def test_rows_of_kernel_machines_are_pairs_positive_for_the_first():
    for model in (certifit.SVC(kernel="linear"), svm.SVC(kernel="linear")):
        model.fit(X, NAMES)
        ax = plot_coefficients(model)
        pairs = [label.get_text() for label in ax.get_xticklabels()]
        assert pairs == ["setosa / versicolor", "setosa / virginica", "versicolor / virginica"]
        means = X.groupby(NAMES).mean()
        for row, pair in zip(model.coef_, pairs, strict=True):
            first, second = pair.split(" / ")
            assert row @ (means.loc[first] - means.loc[second]) > 0


def test_several_targets_and_sparse_coefficients():
    model = linear_model.Ridge().fit(X, X.iloc[:, :2])
    assert [label.get_text() for label in plot_coefficients(model).get_xticklabels()] == ["target 0", "target 1"]
    model = linear_model.LogisticRegression(max_iter=500).fit(X, NAMES)
    dense = plot_coefficients(model).images[0].get_array()
    np.testing.assert_array_equal(plot_coefficients(model.sparsify()).images[0].get_array(), dense)


def test_the_levels_of_a_regression_are_round_numbers():
    x = np.random.default_rng(0).normal(size=(60, 2))
    ax = plot_boundary(certifit.Ridge().fit(x, 3 * x[:, 0] - x[:, 1]), x)
    bar = ax.get_figure().axes[1]
    ticks = [float(label.get_text().replace("−", "-")) for label in bar.get_yticklabels() if label.get_text()]
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])
    assert any(np.isclose(steps[0], times * 10.0**power) for power in (-1, 0) for times in range(1, 10))


def test_the_legend_of_a_scree_plot_lies_on_no_bar():
    ax = plot_scree(certifit.PCA(2).fit(load_iris().data))
    ax.get_figure().canvas.draw()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
