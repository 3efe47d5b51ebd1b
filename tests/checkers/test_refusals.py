"""What audit cannot judge is refused in a sentence that names what it got and the nearest thing that would work."""

import copy

import numpy as np
import pytest
from sklearn import (
    cluster,
    covariance,
    decomposition,
    ensemble,
    gaussian_process,
    linear_model,
    multiclass,
    neighbors,
    svm,
)
from sklearn.datasets import load_iris

import certifit
from certifit import DataError, audit

X, Y = load_iris(return_X_y=True)

UNKNOWN = [
    cluster.MeanShift(),
    cluster.AffinityPropagation(),
    cluster.DBSCAN(),
    decomposition.FactorAnalysis(2),
    decomposition.NMF(2, max_iter=3000),
    linear_model.SGDRegressor(),
    linear_model.BayesianRidge(),
    linear_model.HuberRegressor(max_iter=1000),
    linear_model.MultiTaskLasso(),
    neighbors.KNeighborsClassifier(),
    gaussian_process.GaussianProcessClassifier(),
    covariance.EmpiricalCovariance(),
]


@pytest.mark.parametrize("model", UNKNOWN, ids=lambda m: type(m).__name__)
def test_a_model_of_another_kind_is_refused_in_a_sentence(model):
    y = np.column_stack([Y, Y]).astype(float) if isinstance(model, linear_model.MultiTaskLasso) else Y
    with pytest.raises(DataError) as caught:
        audit(model.fit(X, y), X, y)
    words = str(caught.value)
    assert words.startswith(f"Got a {type(model).__name__}")
    assert len(words) < 400
    assert " _" not in words


class Lasso(linear_model.Lasso):
    """Another library's class of that name is audited by it."""


class GroupLasso(Lasso):
    """Its penalty is on groups of columns: no Lasso, though a subclass."""


def test_what_would_work_is_named():
    members = [("a", linear_model.LogisticRegression(max_iter=1000))]
    for model in (ensemble.VotingClassifier(members), multiclass.OneVsRestClassifier(members[0][1])):
        with pytest.raises(DataError, match="Audit its members"):
            audit(model.fit(X, Y), X, Y)
    path = linear_model.LassoLars(0.01).fit(X, Y)
    with pytest.raises(DataError, match="like='Lasso'"):
        audit(path, X, Y)
    assert audit(path, X, Y, like="Lasso").holds


def test_a_subclass_is_not_its_base():
    model = Lasso(0.01, tol=1e-10).fit(X, Y)
    assert audit(model, X, Y).holds
    with pytest.raises(DataError, match=r"penalty is on groups|subclass of Lasso"):
        audit(GroupLasso(0.01).fit(X, Y), X, Y)


def test_what_it_is_like_must_be_known():
    with pytest.raises(DataError, match="Did you mean like='Lasso'"):
        audit(GroupLasso(0.01).fit(X, Y), X, Y, like="lasso")


def test_a_class_instead_of_a_model():
    with pytest.raises(DataError, match="the class KMeans"):
        audit(certifit.KMeans, X)


def test_unknown_arguments_are_refused():
    model = certifit.KMeans(3).fit(X)
    with pytest.raises(DataError, match="offset= for a KMeans; wanted one of effort"):
        audit(model, X, offset=1)
    for value in ("red", X):
        with pytest.raises(
            DataError, match=r"^Got colour= for a PCA; wanted X, y, sample_weight, tol and like only\.$"
        ):
            audit(certifit.PCA(2).fit(X), X, colour=value)


@pytest.mark.parametrize("tol", [-1.0, 1.0, 10.0, np.nan, np.inf, "tight", None.__class__])
def test_a_tolerance_that_proves_nothing_is_refused(tol):
    with pytest.raises(DataError, match="Got tol="):
        audit(certifit.PCA(2).fit(X), X, tol=tol)


@pytest.mark.parametrize("model", [certifit.PCA(2), decomposition.PCA(2), certifit.KMeans(3)], ids=str)
def test_the_data_must_be_given(model):
    with pytest.raises(DataError, match="Got no X; wanted the data"):
        audit(model.fit(X))


def test_the_tolerance_of_a_model_does_not_make_junk_hold():
    model = certifit.LogisticRegression().fit(X, Y)
    model.coef_ = -model.coef_
    for tol in (1e-6, 1.0, 10.0, 1e9):
        assert not audit(copy.deepcopy(model).set_params(tol=tol), X, Y).holds


def test_attributes_that_do_not_fit_together_are_refused_in_words():
    model = certifit.KMeans(3).fit(X)
    model.cluster_centers_ = "three"
    with pytest.raises(ValueError, match=r"."):
        audit(model, X)
    other = svm.SVC().fit(X, Y)
    other.classes_ = None
    with pytest.raises(DataError):
        audit(other, X, Y)


@pytest.mark.parametrize(
    "disguise",
    [
        lambda a: np.ma.masked_greater(a, np.median(a)),
        np.matrix,
        lambda a: a + 1e-3j,
        lambda a: a.astype(str),
        lambda a: a.astype(object),
        lambda _: None,
    ],
    ids=["masked", "matrix", "complex", "text", "objects", "nothing"],
)
@pytest.mark.parametrize("name", ["coef_", "intercept_"])
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays_of_another_kind_are_refused(name, disguise):
    """Their numbers are those of the fit, and what methods compute with them is not."""
    model = certifit.LogisticRegression().fit(X, Y)
    setattr(model, name, disguise(getattr(model, name)))
    with pytest.raises(DataError, match=name):
        audit(model, X, Y)
