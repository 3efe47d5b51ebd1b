"""What no fit leaves is refused: attributes of another kind, replaced methods, settings of another problem."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

import certifit
from certifit import DataError, audit

X, Y = load_iris(return_X_y=True)


class Unlike:
    """Turns into the numbers that an audit reads, and multiplies to 0."""

    __array_ufunc__ = None

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __getattr__(self, name):
        if name.startswith("__") or name == "values":
            raise AttributeError(name)
        return getattr(self.values, name)

    def __rmatmul__(self, rows):
        return np.zeros(len(rows))


@pytest.mark.parametrize(
    ("make", "name", "disguise"),
    [
        (lambda: certifit.PCA(2), "mean_", Unlike),
        (lambda: certifit.PCA(2), "mean_", list),
        (lambda: certifit.PCA(2), "noise_variance_", str),
        (lambda: certifit.IncrementalPCA(2), "scatter_", sparse.csr_array),
        (lambda: certifit.KMeans(3), "cluster_centers_", sparse.csr_array),
        (lambda: certifit.LinearRegression(), "df_resid_", str),
        (lambda: certifit.Lasso(0.01), "coef_", list),
        (lambda: certifit.Lasso(0.01), "coef_", lambda a: a.astype(">f8")),
        (lambda: certifit.Lasso(0.01), "coef_", lambda a: a.astype(np.longdouble)),
        (lambda: certifit.GaussianMixture(2, random_state=0), "weights_", tuple),
        (lambda: certifit.LogisticRegression(), "classes_", Unlike),
        (lambda: certifit.LinearDiscriminantAnalysis(), "scalings_", sparse.csr_array),
    ],
)
def test_what_merely_turns_into_numbers_is_refused(make, name, disguise):
    model = make().fit(X, Y)
    assert audit(model, X, Y).holds
    setattr(model, name, disguise(getattr(model, name)))
    with pytest.raises(DataError, match=name):
        audit(model, X, Y)


def test_sparse_coefficients_are_those_of_sparsify():
    model = certifit.LogisticRegression().fit(X, Y).sparsify()
    assert audit(model, X, Y).holds


def test_parts_of_members_are_looked_at_too():
    model = certifit.BaggingClassifier(certifit.GaussianNB(), n_estimators=2, random_state=0).fit(X, Y)
    model.estimators_[1].theta_ = model.estimators_[1].theta_.astype(np.float16)
    with pytest.raises(DataError, match="theta_"):
        audit(model, X, Y)


def test_whole_numbers_are_no_scores_of_boosting():
    model = certifit.HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    assert audit(model, X, Y).holds
    whole = model.trees_.baseline.astype(int)
    model.trees_ = replace(model.trees_, baseline=whole)
    assert not audit(model, X, Y).holds


@pytest.mark.parametrize("method", ["predict", "score", "decision_function"])
def test_a_replaced_method_is_refused(method):
    model = certifit.LogisticRegression().fit(X, Y)
    setattr(model, method, lambda *_: 0)
    with pytest.raises(DataError, match=f"{method} set in a LogisticRegression"):
        audit(model, X, Y)


def test_replaced_methods_of_conformal_models_are_refused_too():
    rows = np.random.default_rng(0).normal(size=(90, 3))
    y = rows @ [1.0, 0.0, -2.0] + np.sin(5 * rows[:, 1])
    model = certifit.ConformalRegressor(certifit.Ridge()).fit(rows, y)
    assert audit(model, rows, y).holds
    model.predict_interval = lambda *_: 0
    with pytest.raises(DataError, match="predict_interval set in a ConformalRegressor"):
        audit(model, rows, y)


class Ridge(certifit.Ridge):
    """Of the same name, and with other answers."""

    def predict(self, X):
        return 2 * super().predict(X)


def test_a_subclass_of_ours_is_refused_whatever_its_name():
    model = Ridge().fit(X, Y)
    with pytest.raises(DataError, match="a subclass of Ridge"):
        audit(model, X, Y)
    assert audit(model, X, Y, like="Ridge").holds


def test_the_exponential_loss_is_of_two_classes_after_the_fit_too():
    three = np.digitize(X[:, 0], np.quantile(X[:, 0], [1 / 3, 2 / 3]))
    for kind in (
        certifit.HistGradientBoostingClassifier(max_iter=2),
        certifit.GradientBoostingClassifier(n_estimators=2),
    ):
        model = kind.fit(X, three)
        assert audit(model, X, three).holds
        assert not audit(model.set_params(loss="exponential"), X, three).holds


@pytest.mark.parametrize("power", ["one", None])
def test_a_power_that_is_no_number_is_refused_in_words(power):
    y = np.abs(X[:, 0]) + 1
    with pytest.raises(DataError, match="Got power="):
        certifit.TweedieRegressor(power=power).fit(X, y)
    with pytest.raises(DataError, match="Got power="):
        audit(certifit.TweedieRegressor(power=1.5).fit(X, y).set_params(power=power), X, y)


def test_sums_that_were_taken_away_are_missed():
    model = certifit.IncrementalPCA(2).fit(X)
    del model.scatter_
    with pytest.raises(DataError, match="scatter_"):
        audit(model, X)
    for name in ("loglikelihood_", "dispersion_"):
        model = certifit.LinearRegression().fit(X, X[:, 0])
        delattr(model, name)
        with pytest.raises(DataError, match=f"without {name}"):
            audit(model, X, X[:, 0])


@pytest.mark.parametrize("fill", [None, "0"])
def test_columns_of_a_table_that_no_fit_leaves_are_refused_in_words(fill):
    model = certifit.TableRegressor().fit(X, X[:, 0])
    model.columns_ = (replace(model.columns_[0], fill=fill), *model.columns_[1:])
    with pytest.raises(DataError, match="do not fit together"):
        audit(model, X, X[:, 0])


@pytest.mark.parametrize(
    ("make", "set_afterwards"),
    [
        (lambda: certifit.Ridge(alpha=5.0), {"penalty_per_row": True}),
        (lambda: certifit.Lasso(0.01), {"family": "poisson"}),
        (lambda: certifit.PCA(2), {"diagnostics": ("components_",)}),
        (lambda: certifit.PCA(2), {"settings": {}}),
        (lambda: certifit.PCA(2), {"tuning": None}),
        (lambda: certifit.LinearSVC(), {"kernel": "rbf"}),
        (lambda: certifit.PCA(2), {"steps": [("other", certifit.PCA(2).fit(X))], "named_steps": {}}),
    ],
)
def test_what_is_set_beside_settings_and_fitted_attributes_is_refused(make, set_afterwards):
    model = make().fit(X, Y)
    vars(model).update(set_afterwards)
    with pytest.raises(DataError, match="set in a"):
        audit(model, X, Y)


@pytest.mark.parametrize(
    ("weak", "strong", "name"),
    [
        (certifit.Ridge(0.0), certifit.Ridge(50.0), "alpha"),
        (certifit.RidgeClassifier(0.1), certifit.RidgeClassifier(50.0), "alpha"),
        (certifit.LogisticRegression(C=10.0), certifit.LogisticRegression(C=0.1), "C"),
        (certifit.ElasticNet(0.1, l1_ratio=0.1), certifit.ElasticNet(0.1, l1_ratio=1.0), "l1_ratio"),
        (certifit.LogisticRegression(l1_ratio=0.5), certifit.LogisticRegression(l1_ratio=0.0), "l1_ratio"),
    ],
)
def test_no_strength_but_the_setting_counts(weak, strong, name):
    """The coefficients are those of another penalty, which an attribute as searches leave calls the one asked for."""
    other, model = weak.fit(X, Y), strong.fit(X, Y)
    model.coef_, model.intercept_ = other.coef_, other.intercept_
    assert not audit(model, X, Y).holds
    setattr(model, f"{name}_", getattr(other, name))
    assert not audit(model, X, Y).holds


def test_a_training_state_that_was_taken_away_is_missed():
    images, labels = np.tile(X, 4)[:20].reshape(20, 4, 4), Y[:20] % 2
    labels[:10] = 1
    model = certifit.ConvNetClassifier(layers=(("conv", 2, 3), "relu"), max_iter=2, random_state=0)
    model.fit(images, labels)
    assert model.t_ == 40
    del model.training_state_
    with pytest.raises(DataError, match="training_state_"):
        audit(model, images, labels)


def test_support_vectors_have_the_precision_of_their_rows():
    """Whole numbers are the same in single precision, in which they would be reckoned with."""
    rows = np.rint(X * 4096)
    model = certifit.SVR(gamma=1e-9).fit(rows, Y)
    assert audit(model, rows, Y).holds
    model.support_vectors_ = model.support_vectors_.astype(np.float32)
    assert (model.support_vectors_ == rows[model.support_]).all()
    assert not audit(model, rows, Y).holds


def test_classes_of_a_kept_estimator_are_looked_at_where_it_never_predicts_them():
    labels = np.arange(len(X)) % 10 == 0  # too few to be predicted
    model = certifit.RFECV(certifit.RidgeClassifier(), cv=2).fit(X, labels.astype(int))
    assert audit(model, X, labels.astype(int)).holds
    assert not model.predict(X).any()
    model.estimator_.classes_ = np.array([0, 2])
    assert not audit(model, X, labels.astype(int)).holds
