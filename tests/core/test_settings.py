"""Declared settings: what they accept, and what they say of the rest."""

import math
from fractions import Fraction

import numpy as np
import pytest

from certifit import (
    BayesianGaussianMixture,
    DataError,
    GaussianNB,
    KMeans,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    Ridge,
)
from certifit.core import Setting

COUNT, SHARE = Setting(int, least=1), Setting(float, least=0, most=1)
FINITE = Setting(float, above=0, below=math.inf)


@pytest.mark.parametrize("value", [1, np.int64(3), np.uint8(1), 10**400])
def test_whole_numbers_of_any_type_and_size(value):
    assert COUNT.accepts(value)


@pytest.mark.parametrize("value", [0, -(10**400), True, 2.0, "2", None, np.nan, np.array(2)])
def test_what_is_no_count(value):
    assert not COUNT.accepts(value)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), Fraction(1, 2), np.array(0.5)])
def test_numbers_of_any_type(value):
    assert SHARE.accepts(value)


@pytest.mark.parametrize("value", [np.nan, 1.5, -1e-9, "0.5", None, np.array([0.5]), 1j])
def test_what_is_no_share(value):
    assert not SHARE.accepts(value)


@pytest.mark.parametrize("value", [math.inf, 0.0, -1])
def test_finite_and_above(value):
    assert FINITE.accepts(1e300)
    assert not FINITE.accepts(value)


def test_words_none_and_others():
    setting = Setting(choices=("auto",), none=True, other=callable, other_words="a function")
    assert all(setting.accepts(value) for value in ("auto", None, len))
    assert not any(setting.accepts(value) for value in ("other", 1, True))
    assert setting.wanted == "'auto', a function or None"


def test_settings_are_refused_before_any_row_is_read(tmp_path):
    with pytest.raises(DataError, match=r"Got n_clusters=0; wanted a whole number of at least 1\."):
        KMeans(0).fit(tmp_path / "no such file.csv")


def test_numbers_as_numpy_hands_them_out():
    X, y = [[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0]
    assert Ridge(np.array(0.5)).fit(X, y).coef_ == Ridge(0.5).fit(X, y).coef_


def _is_part(found, value):
    return isinstance(found, np.ndarray) and np.shares_memory(found, value)


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        (GaussianNB, "priors", np.array([0.5, 0.5])),
        (LinearDiscriminantAnalysis, "priors", np.array([0.5, 0.5])),
        (QuadraticDiscriminantAnalysis, "priors", np.array([0.5, 0.5])),
        (BayesianGaussianMixture, "mean_prior", np.zeros(2)),
        (BayesianGaussianMixture, "covariance_prior", np.eye(2)),
    ],
)
def test_an_array_given_as_a_setting_may_change_after_the_fit(kind, setting, value):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = kind(**{setting: value}).fit(X, np.arange(20) % 2)
    shared = [name for name, found in vars(model).items() if name != setting and _is_part(found, value)]
    assert shared == []
