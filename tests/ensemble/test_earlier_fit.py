"""Fits with warm_start go on from a table of the same columns and classes, and say so of any other."""

import numpy as np
import pytest

from certifit import (
    BaggingClassifier,
    BaggingRegressor,
    DataError,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

CLASSIFIERS = [
    BaggingClassifier, ExtraTreesClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier,
    RandomForestClassifier,
]  # fmt: skip
REGRESSORS = [BaggingRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor]
X = np.random.default_rng(0).normal(size=(90, 4))
Y = (X[:, 0] > 0).astype(int)


def members(model):
    return "max_iter" if "max_iter" in model.get_params() else "n_estimators"


def two_then_four(cls):
    """A model of two members or stages that is asked for four."""
    model = cls(warm_start=True, random_state=0)
    return model.set_params(**{members(model): 2}).fit(X, Y).set_params(**{members(model): 4})


@pytest.mark.parametrize("cls", CLASSIFIERS + REGRESSORS)
@pytest.mark.parametrize("table", [X[:, :2], np.hstack([X, X])])
def test_other_columns_are_refused_in_words(cls, table):
    model = two_then_four(cls)
    with pytest.raises(
        DataError, match=f"{table.shape[1]} columns with warm_start=True; wanted the 4 of the fit before"
    ):
        model.fit(table, Y)
    assert model.set_params(warm_start=False).fit(table, Y).certificate_.holds


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("labels", [np.digitize(X[:, 0], [-0.4, 0.4]), np.where(Y, "yes", "no")])
def test_other_classes_are_refused_in_words(cls, labels):
    model = two_then_four(cls)
    with pytest.raises(DataError, match=r"wanted those of the fit before, \[0, 1\]. warm_start=False begins anew"):
        model.fit(X, labels)
    assert model.set_params(warm_start=False).fit(X, labels).certificate_.holds


@pytest.mark.filterwarnings("ignore::certifit.exceptions.CertificateWarning")
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_members_of_other_rows_are_no_proof(cls):
    assert two_then_four(cls).fit(X, Y).certificate_.holds
    assert not two_then_four(cls).fit(X[::-1] * [1, 2, 3, 4], 1 - Y).certificate_.holds
