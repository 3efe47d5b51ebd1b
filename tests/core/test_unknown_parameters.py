"""Parameters that an estimator does not have, and values that a parameter may not have, are refused in words."""

import inspect
import pickle
from typing import ClassVar

import pytest
from sklearn.base import clone

from certifit import ElasticNetCV, KMeans, Ridge
from certifit.core import Estimator
from certifit.core.settings import Setting
from certifit.exceptions import DataError
from certifit.registry import ESTIMATORS


def test_a_misspelt_parameter_names_the_class_and_the_right_word():
    with pytest.raises(TypeError, match=r"'alhpa', which Ridge does not have.*Did you mean 'alpha'\?"):
        Ridge(alhpa=1)
    with pytest.raises(DataError, match=r"'n_cluster', which KMeans does not have.*Did you mean 'n_clusters'\?"):
        KMeans().set_params(n_cluster=3)


def test_a_word_like_no_other_asks_nothing():
    with pytest.raises(TypeError, match=r"'zzz', which KMeans does not have.*Leave it out\.$"):
        KMeans(zzz=1)


def test_a_parameter_that_is_missing_for_a_reason_says_so():
    class Thinned(KMeans):
        differences: ClassVar[dict[str, str]] = {"thin": "Every row is used."}

    with pytest.raises(TypeError, match=r"'thin', which Thinned does not have.*Every row is used\."):
        Thinned(thin=2)


def test_a_misspelt_word_is_recognised():
    with pytest.raises(DataError, match=r"Did you mean 'k-means\+\+'\? Choose one\."):
        Setting(choices=("k-means++", "random"), fix="Choose one.").check("init", "kmeans++")
    with pytest.raises(DataError, match=r"'random'\.$"):
        Setting(choices=("k-means++", "random")).check("init", "zzz")


@pytest.mark.parametrize("entry", ESTIMATORS, ids=lambda entry: entry.name)
def test_every_estimator_names_itself(entry):
    with pytest.raises(TypeError, match=rf"'nosuch', which {entry.name} does not have"):
        entry.load()(nosuch=1)


def test_signatures_cloning_and_pickling_are_as_before():
    assert next(iter(inspect.signature(Ridge).parameters)) == "alpha"
    assert clone(Ridge(2.0)).alpha == pickle.loads(pickle.dumps(Ridge(2.0))).alpha == 2.0


def test_a_class_that_takes_any_parameter_is_left_alone():
    class Open(Estimator):
        def __init__(self, **anything):
            self.anything = anything

        def _fit(self, rows, previous): ...
        def objective(self, X, y=None, sample_weight=None): ...

    assert Open(whatever=1).anything == {"whatever": 1}


def test_arguments_of_fit_are_refused_in_the_name_of_the_class():
    rows, target = [[0.0], [1.0]], [0.0, 1.0]
    with pytest.raises(TypeError, match=r"which KMeans\.fit does not take.*Did you mean 'sample_weight'\?"):
        KMeans(1).fit(rows, sample_weights=[1, 1])
    with pytest.raises(TypeError, match=r"Got the argument 'groups', which ElasticNetCV\.fit does not take"):
        ElasticNetCV().fit(rows, target, groups=[1, 1])
