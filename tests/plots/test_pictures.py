"""Every picture, of our models and of scikit-learn's: a pyplot figure of its own, or the axes it is given."""

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn import (
    cluster,
    decomposition,
    ensemble,
    feature_selection,
    linear_model,
    mixture,
    naive_bayes,
    neural_network,
    svm,
)
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certifit
from certifit import plots
from certifit.divergence import Mixture, minimise_kl
from certifit.families import Binomial, Gaussian, Poisson
from certifit.plots.style import figures_apart
from certifit.registry import PICTURES

X, y = load_iris(return_X_y=True, as_frame=True)
NAMES = load_iris().target_names[y]
TWO = X.iloc[:, 2:]
COUNTS = X.round().astype(int)
NUMBERS = X.iloc[:, 0].to_numpy()
BIMODAL = Mixture([0.4, 0.6], [Gaussian(-3.0, 1.0), Gaussian(3.0, 1.0)])
IMAGES = np.random.default_rng(0).uniform(size=(10, 4))
WRONG = np.arange(10) % 3  # classes of them, wrong ones if turned round


def convolutional():
    """A network of 4 x 4 images."""
    images = np.random.default_rng(0).uniform(size=(30, 4, 4))
    return certifit.ConvNetClassifier([("conv", 3, 2), "relu"], max_iter=1, random_state=0).fit(
        images, np.arange(30) % 3
    )


def boosted(library):
    """Three stages of AdaBoost, of one library or another."""
    return library.AdaBoostClassifier(n_estimators=3, random_state=0).fit(X, y > 1)


# A name, how it is drawn, and on how many axes.
CASES = {
    "boundaries": (
        lambda **on: plots.plot_boundaries(
            {"ours": certifit.GaussianNB().fit(TWO, NAMES), "theirs": svm.SVC().fit(TWO, NAMES)}, TWO, NAMES, **on
        ),
        2,
    ),
    "backpropagation": (
        lambda **on: plots.plot_backpropagation(
            certifit.MLPClassifier((3,), "tanh", max_iter=2, random_state=0).fit(TWO, NAMES),
            TWO.iloc[0],
            "setosa",
            **on,
        ),
        1,
    ),
    "boosting bound, ours": (lambda **on: plots.plot_boosting_bound(boosted(certifit), X, y > 1, **on), 1),
    "boosting bound, theirs": (lambda **on: plots.plot_boosting_bound(boosted(ensemble), X, y > 1, **on), 1),
    "boundary, ours": (lambda **on: plots.plot_boundary(certifit.GaussianNB().fit(X, NAMES), X, NAMES, **on), 1),
    "boundary, theirs": (
        lambda **on: plots.plot_boundary(linear_model.LogisticRegression(max_iter=500).fit(X, NAMES), X, **on),
        1,
    ),
    "boundary of numbers": (
        lambda **on: plots.plot_boundary(certifit.Ridge().fit(TWO, NUMBERS), TWO, NUMBERS, **on),
        1,
    ),
    "boundary of clusters": (
        lambda **on: plots.plot_boundary(cluster.KMeans(3, random_state=0).fit(TWO), TWO, NAMES, **on),
        1,
    ),
    "cells, ours": (lambda **on: plots.plot_cells(certifit.KMeans(3, random_state=0).fit(X), X, **on), 1),
    "cells of a pipeline, theirs": (
        lambda **on: plots.plot_cells(
            make_pipeline(StandardScaler(), cluster.KMeans(3, n_init=1, random_state=0)).fit(TWO), TWO, **on
        ),
        1,
    ),
    "class densities, ours": (
        lambda **on: plots.plot_class_densities(certifit.GaussianNB().fit(X, NAMES), X, NAMES, 3, **on),
        2,
    ),
    "class densities, theirs": (
        lambda **on: plots.plot_class_densities(naive_bayes.CategoricalNB().fit(COUNTS, y), COUNTS, y, 1, **on),
        2,
    ),
    "cluster choice": (
        lambda **on: plots.plot_cluster_choice(
            certifit.choose_clusters(TWO, range(1, 4), references=2, random_state=0), **on
        ),
        3,
    ),
    "coefficients, ours": (lambda **on: plots.plot_coefficients(certifit.LinearSVC().fit(X, NAMES), **on), 1),
    "coefficients, theirs": (lambda **on: plots.plot_coefficients(linear_model.Ridge().fit(X, y), **on), 1),
    "coefficients alone": (lambda **on: plots.plot_coefficients([1.0, -2.0], **on), 1),
    "components, ours": (lambda **on: plots.plot_components(certifit.PCA(2).fit(X), X, NAMES, **on), 1),
    "components, theirs": (lambda **on: plots.plot_components(decomposition.PCA(2).fit(X), X, **on), 1),
    "components and numbers": (lambda **on: plots.plot_components(certifit.PCA(2).fit(X), X, NUMBERS, **on), 1),
    "confusion, ours": (lambda **on: plots.plot_confusion(certifit.GaussianNB().fit(X, y), X, y, **on), 1),
    "confusion, theirs": (lambda **on: plots.plot_confusion(svm.SVC().fit(X, NAMES), X, NAMES, **on), 1),
    "confusion of counts": (lambda **on: plots.plot_confusion([[9, 1], [2, 8]], **on), 1),
    "convergence": (lambda **on: plots.plot_convergence(certifit.LinearSVC().fit(X, y), **on), 1),
    "coverage": (lambda **on: plots.plot_coverage({"a": [[0, 2], [2, 3]], "b": [[0, 2]]}, 1.0, **on), 1),
    "directions": (lambda **on: plots.plot_directions(BIMODAL, Gaussian, **on), 1),
    "directions of counts": (
        lambda **on: plots.plot_directions(Mixture([0.5, 0.5], [Poisson(2.0), Poisson(9.0)]), Poisson, **on),
        1,
    ),
    "EM steps": (
        lambda **on: plots.plot_em_steps(certifit.GaussianMixture(2, random_state=0), TWO, [1], **on),
        4,
    ),
    "EM trace": (lambda **on: plots.plot_em_trace(certifit.GaussianMixture(3, random_state=0).fit(TWO), **on), 2),
    "error correlations": (
        lambda **on: plots.plot_error_correlations(
            {
                "ours": certifit.RandomForestRegressor(3, random_state=0).fit(X, NUMBERS),
                "theirs": ensemble.BaggingRegressor(n_estimators=3, max_features=2, random_state=0).fit(X, NUMBERS),
            },
            X,
            NUMBERS,
            **on,
        ),
        1,
    ),
    "estimates": (lambda **on: plots.plot_estimates({"a": [1.0, 2.0], "b": NUMBERS}, 1.0, **on), 1),
    "feature maps": (lambda **on: plots.plot_feature_maps(convolutional(), np.arange(16.0), **on), 1),
    "filters": (lambda **on: plots.plot_filters(convolutional(), **on), 1),
    "first axes": (
        lambda **on: plots.plot_first_axes(
            {"ours": certifit.PCA(1).fit(X), "theirs": decomposition.PCA(1).fit(X)}, X, np.arange(150) < 5, **on
        ),
        1,
    ),
    "GLM, ours": (
        lambda **on: plots.plot_glm(
            certifit.LinearRegression().fit(X.iloc[:, 1:], NUMBERS), X.iloc[:, 1:], NUMBERS, **on
        ),
        2,
    ),
    "GLM, theirs": (
        lambda **on: plots.plot_glm(
            linear_model.GammaRegressor().fit(TWO, NUMBERS), TWO, NUMBERS, "petal width (cm)", **on
        ),
        2,
    ),
    "images": (lambda **on: plots.plot_images(IMAGES, (2, 2), **on), 1),
    "KL terms": (lambda **on: plots.plot_kl_terms([0.5, 0.5, 0.0], [0.5, 0.0, 0.5], list("abc"), **on), 1),
    "KL terms of counts": (lambda **on: plots.plot_kl_terms(Binomial(0.3, 20), Poisson(6.0), **on), 1),
    "L1 path": (
        lambda **on: plots.plot_l1_path(certifit.L1Selector("squared", alphas=4).fit(X, NUMBERS), **on),
        1,
    ),
    "learning curves": (
        lambda **on: plots.plot_learning_curves(plots.learning_curves(X, y, [20, 60], repeats=2), **on),
        1,
    ),
    "log-normaliser": (lambda **on: plots.plot_log_normaliser(Poisson(3.0), **on), 1),
    "losses": (plots.plot_losses, 1),
    "machine, ours": (lambda **on: plots.plot_machine(certifit.SVC().fit(TWO, NAMES), TWO, NAMES, **on), 1),
    "machine, theirs": (lambda **on: plots.plot_machine(svm.SVC().fit(TWO, NAMES), TWO, NAMES, **on), 1),
    "machine of numbers": (lambda **on: plots.plot_machine(svm.SVR().fit(TWO, NUMBERS), TWO, NUMBERS, **on), 1),
    "margins": (
        lambda **on: plots.plot_margins({"ours": boosted(certifit), "theirs": boosted(ensemble)}, X, y > 1, **on),
        1,
    ),
    "mistakes, ours": (
        lambda **on: plots.plot_mistakes(certifit.GaussianNB().fit(IMAGES, WRONG), IMAGES, WRONG[::-1], **on),
        1,
    ),
    "mistakes of images, theirs": (
        lambda **on: plots.plot_mistakes(naive_bayes.GaussianNB().fit(IMAGES, WRONG), IMAGES, WRONG[::-1], **on),
        1,
    ),
    "mixture, ours": (
        lambda **on: plots.plot_mixture(certifit.GaussianMixture(3, random_state=0).fit(X), X, **on),
        1,
    ),
    "mixture, theirs": (
        lambda **on: plots.plot_mixture(mixture.GaussianMixture(3, random_state=0).fit(X), X, **on),
        1,
    ),
    "mixture choice": (
        lambda **on: plots.plot_mixture_choice(
            certifit.select_mixture(TWO, range(1, 3), ["full"], random_state=0), **on
        ),
        2,
    ),
    "pmf and density": (lambda **on: plots.plot_pmf_and_density(Binomial(0.3, 20), Gaussian(6.0, 4.2), **on), 1),
    "projection path": (
        lambda **on: plots.plot_projection_path(minimise_kl(Binomial(0.3, 20), Gaussian, method="gradient"), **on),
        1,
    ),
    "quadratic form": (lambda **on: plots.plot_quadratic_form([[2.0, 1.0], [1.0, 2.0]], **on), 1),
    "quadratic form, indefinite": (lambda **on: plots.plot_quadratic_form([[1.0, 2.0], [2.0, 1.0]], **on), 1),
    "quadratic form, flat": (lambda **on: plots.plot_quadratic_form([[0.0, 0.0], [0.0, 0.0]], **on), 1),
    "rate and distortion": (
        lambda **on: plots.plot_rate_distortion(
            plots.rate_distortion([certifit.PCA(k).fit(X) for k in (1, 2)], X), **on
        ),
        1,
    ),
    "scores, ours": (lambda **on: plots.plot_scores(certifit.SelectFeatures("anova", k=2).fit(X, y), **on), 1),
    "scores, theirs": (lambda **on: plots.plot_scores(feature_selection.SelectKBest(k=2).fit(X, y), **on), 1),
    "scree, ours": (lambda **on: plots.plot_scree(certifit.PCA(2).fit(X), **on), 1),
    "scree with noise": (lambda **on: plots.plot_scree(certifit.ProbabilisticPCA(2).fit(X), **on), 1),
    "scree, theirs": (lambda **on: plots.plot_scree(decomposition.PCA(2).fit(X), **on), 1),
    "search, ours": (
        lambda **on: plots.plot_search(
            certifit.SequentialSelector(linear_model.Ridge(), n_features_to_select=2).fit(X, NUMBERS), **on
        ),
        1,
    ),
    "search, theirs": (
        lambda **on: plots.plot_search(feature_selection.RFECV(linear_model.Ridge()).fit(X, NUMBERS), **on),
        1,
    ),
    "pair functions": (
        lambda **on: plots.plot_pair_functions(
            certifit.AdditiveRegressor(alpha=0.01, interactions=[(0, 1), (1, 2)]).fit(X, NUMBERS), **on
        ),
        2,
    ),
    "shape functions": (
        lambda **on: plots.plot_shape_functions(certifit.AdditiveClassifier(alpha=0.01).fit(X, y > 0), most=2, **on),
        2,
    ),
    "silhouettes, ours": (lambda **on: plots.plot_silhouettes(certifit.KMeans(3, random_state=0).fit(X), X, **on), 1),
    "silhouettes, theirs": (
        lambda **on: plots.plot_silhouettes(
            make_pipeline(StandardScaler(), cluster.AgglomerativeClustering(3)).fit(X), X, **on
        ),
        1,
    ),
    "active units, ours": (
        lambda **on: plots.plot_active_units(
            {"ours": certifit.MLPClassifier((3, 2), max_iter=1, random_state=0).fit(X, y)}, X, **on
        ),
        1,
    ),
    "active units, theirs": (
        lambda **on: plots.plot_active_units(
            neural_network.MLPRegressor(hidden_layer_sizes=(3, 3), tol=1e3, n_iter_no_change=1).fit(X, NUMBERS),
            X,
            **on,
        ),
        1,
    ),
    "active units of images": (lambda **on: plots.plot_active_units(convolutional(), np.ones((5, 16)), **on), 1),
    "slope sizes, ours": (
        lambda **on: plots.plot_slope_sizes(
            {"ours": certifit.MLPClassifier((3,), max_iter=1, random_state=0).fit(X, y)}, X, y, **on
        ),
        1,
    ),
    "slope sizes, theirs": (
        lambda **on: plots.plot_slope_sizes(
            neural_network.MLPRegressor(hidden_layer_sizes=(3, 3), tol=1e3, n_iter_no_change=1).fit(X, NUMBERS),
            X,
            NUMBERS,
            **on,
        ),
        1,
    ),
    "two views, ours": (lambda **on: plots.plot_two_views(certifit.two_views(TWO, 1), TWO, **on), 1),
    "two views, theirs": (lambda **on: plots.plot_two_views(decomposition.PCA(1).fit(TWO), TWO, **on), 1),
    "two views and numbers": (
        lambda **on: plots.plot_two_views(certifit.PCA(1).fit(TWO), TWO, NUMBERS, **on),
        1,
    ),
    "split": (lambda **on: plots.plot_split(certifit.RobustPCA().fit(IMAGES), IMAGES, (2, 2), **on), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_picture_is_one_figure_of_pyplots_that_can_be_drawn(case):
    draw, count = CASES[case]
    before = mpl.rcParams.copy()
    axes = draw()
    assert len(plt.get_fignums()) == 1
    figure = plt.figure(plt.get_fignums()[0])
    assert all(ax.figure is figure for ax in np.ravel(axes))
    assert np.size(axes) == count
    figure.canvas.draw()
    assert mpl.rcParams == before


@pytest.mark.parametrize("case", CASES)
def test_a_picture_goes_where_it_is_told(case):
    draw, count = CASES[case]
    figure, given = plt.subplots(1, count)
    axes = draw(**({"ax": given} if count == 1 else {"axes": given}))
    assert plt.get_fignums() == [figure.number]
    assert all(a is b for a, b in zip(np.ravel(axes), np.ravel(given), strict=True))
    assert all(ax.has_data() for ax in np.ravel(given))
    with pytest.raises(certifit.DataError, match="Figure"):
        draw(**({"ax": figure} if count == 1 else {"axes": [figure] * count}))


def test_every_public_picture_is_drawn_above():
    drawn = {name for draw, _ in CASES.values() for name in [*draw.__code__.co_names, draw.__name__]}
    assert {name for name in PICTURES if name.startswith("plot_")} <= drawn


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_every_public_picture_is_explained(name):
    text = getattr(plots, name).__doc__
    for words in ("Parameters\n", "Returns\n", ">>>"):
        assert words in text


def test_pyplot_is_loaded_with_the_first_picture_and_not_before():
    code = (
        "import sys, certifit\n"
        "from certifit.plots import plot_losses\n"
        "certifit.PCA, certifit.plots.plot_scree\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
        "plot_losses()\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_figures_apart_are_not_shown():
    with figures_apart():
        ax = plots.plot_losses()
    assert plt.get_fignums() == []
    assert plots.svg(ax).count("</svg>") == 1
    plots.plot_losses()
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("style", ["dark_background", "default"])
def test_lines_are_seen_on_any_background(style):
    with plt.style.context(style):
        ax = plots.plot_coefficients([1.0, -2.0])
        assert ax.lines[0].get_color() != ax.get_facecolor()
        assert mpl.colors.to_rgb(ax.lines[0].get_color()) == mpl.colors.to_rgb(mpl.rcParams["text.color"])


REFUSED = {
    "a plane of one column": lambda: plots.plot_boundary(
        certifit.Ridge().fit(X[["sepal length (cm)"]], y), X[["sepal length (cm)"]]
    ),
    "columns that are not there": lambda: plots.plot_boundary(certifit.GaussianNB().fit(X, y), X, y, ("petal", 1)),
    "too many classes": lambda: plots.plot_components(certifit.PCA(2).fit(X), X, [str(i) for i in range(150)]),
    "a column that is not modelled": lambda: plots.plot_class_densities(
        naive_bayes.MultinomialNB().fit(X, y), X, y, "petal width (cm)"
    ),
    "cells without centres": lambda: plots.plot_cells(mixture.GaussianMixture(2, random_state=0).fit(X), X),
    "cells of other columns": lambda: plots.plot_cells(certifit.KMeans(2, random_state=0).fit(TWO), X),
    "densities of other columns": lambda: plots.plot_class_densities(certifit.GaussianNB().fit(TWO, y), X, y),
    "one silhouette": lambda: plots.plot_silhouettes(certifit.KMeans(1).fit(X), X),
    "a regressor's confusion": lambda: plots.plot_confusion(linear_model.Ridge().fit(X, y), X, y),
    "margins of three classes": lambda: plots.plot_margins({"m": certifit.AdaBoostClassifier().fit(X, y)}, X, y),
    "members of a classifier": lambda: plots.plot_error_correlations(
        {"m": ensemble.RandomForestClassifier(2).fit(X, y)}, X, y
    ),
    "intervals without an end": lambda: plots.plot_coverage({"m": [[0.0, np.inf]]}, 1.0),
    "a model alone": lambda: plots.plot_confusion(certifit.GaussianNB().fit(X, y)),
    "counts with X": lambda: plots.plot_confusion([[1, 2], [3, 4]], ["no", "yes"]),
    "a discrete p": lambda: plots.plot_directions(Binomial(0.3, 20), Gaussian),
    "a member for a family": lambda: plots.plot_directions(BIMODAL, Gaussian(0.0, 1.0)),
    "a kernel machine's coefficients": lambda: plots.plot_coefficients(svm.SVC().fit(X, y)),
    "the terms of densities": lambda: plots.plot_kl_terms(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0)),
    "entries without names": lambda: plots.plot_kl_terms([0.5, 0.5], [0.25, 0.75], ["a"]),
    "a density for a pmf": lambda: plots.plot_pmf_and_density(Gaussian(0.0, 1.0)),
    "a pmf for a density": lambda: plots.plot_pmf_and_density(Binomial(0.3, 20), Poisson(6.0)),
    "no estimates": lambda: plots.plot_estimates({"n = 2": []}, 1.0),
    "two natural parameters": lambda: plots.plot_log_normaliser(Gaussian(0.0, 1.0)),
    "a form of three numbers": lambda: plots.plot_quadratic_form(np.eye(3)),
    "a line among four columns": lambda: plots.plot_two_views(certifit.PCA(1).fit(X), X),
    "axes of other columns": lambda: plots.plot_two_views(certifit.PCA(1).fit(X), TWO),
    "a GLM of other columns": lambda: plots.plot_glm(certifit.Ridge().fit(X, y), TWO, y),
    "a classifier as a GLM": lambda: plots.plot_glm(svm.LinearSVC().fit(X, y), X, y),
    "names that do not fit": lambda: plots.plot_coefficients([1.0, 2.0], ["a"]),
    "no history": lambda: plots.plot_convergence(linear_model.LogisticRegression(max_iter=500).fit(X, y)),
    "EM of another library": lambda: plots.plot_em_steps(mixture.GaussianMixture(2), TWO),
    "models without titles": lambda: plots.plot_boundaries([certifit.DecisionTreeClassifier().fit(TWO, y)], TWO, y),
    "margins without titles": lambda: plots.plot_margins([], X, y),
    "no criterion": lambda: plots.plot_mixture_choice(
        certifit.select_mixture(TWO, range(1, 2), ["full"], random_state=0), "aicc"
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_drawn_is_said_and_leaves_no_empty_figure(case):
    with pytest.raises(certifit.DataError, match=r"^Got .*; wanted .*\."):
        REFUSED[case]()
    assert plt.get_fignums() == []


def test_a_model_without_history_names_one_that_has_it():
    with pytest.raises(
        certifit.DataError, match=r"LogisticRegression without history_.*Fit certifit.LogisticRegression"
    ):
        REFUSED["no history"]()
    with pytest.raises(certifit.DataError, match="GaussianNB, which is solved without iteration"):
        plots.plot_convergence(certifit.GaussianNB().fit(X, y))
    with pytest.raises(certifit.DataError, match=r"discrete p \(Binomial\) and a continuous family \(Gaussian\)"):
        REFUSED["a discrete p"]()


def test_models_inside_others_are_found():
    pipe = make_pipeline(StandardScaler(), certifit.LogisticRegression()).fit(X, NAMES)
    best = GridSearchCV(pipe, {"logisticregression__C": [0.1, 1.0]}, cv=3).fit(X, NAMES)
    for model in (pipe, best):
        ax = plots.plot_coefficients(model)
        assert {label.get_text() for label in ax.get_yticklabels()} == set(X.columns)
        assert [label.get_text() for label in ax.get_xticklabels()] == ["setosa", "versicolor", "virginica"]
        plots.plot_convergence(model)
        plots.plot_boundary(model, X, NAMES, ("petal length (cm)", "petal width (cm)"))
    codes = make_pipeline(StandardScaler(), decomposition.PCA(2)).fit(X)
    assert plots.plot_components(codes, X, NAMES).get_xlabel().endswith("of the variance)")
    assert plots.plot_scree(codes).get_title(loc="left").startswith("2 components keep 95.81 %")


def test_long_names_are_shortened():
    long = pd.DataFrame(X.to_numpy(), columns=[f"a very long name of a column, number {j} of four" for j in range(4)])
    ax = plots.plot_coefficients(certifit.LogisticRegression().fit(long, [f"a very long class name {i}" for i in y]))
    assert all(len(label.get_text()) <= 32 for label in (*ax.get_yticklabels(), *ax.get_xticklabels()))
