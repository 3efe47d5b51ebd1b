"""Estimators that are no use are refused in words by every method; units of the target change no verdict."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import HuberRegressor, Ridge

from certifit import assess, audit, choose_setting, compare_models
from certifit.checkers.model_selection.choices import certify_choice
from certifit.checkers.model_selection.comparisons import certify_comparison
from certifit.checkers.model_selection.intervals import certify_intervals
from certifit.checkers.model_selection.replicates import certify_replicates
from certifit.exceptions import DataError
from certifit.model_selection import ConformalRegressor, bootstrap_coefficients
from certifit.model_selection.assessment.assess import make_problem
from certifit.model_selection.assessment.plans import certify_plan

ABSOLUTE = "neg_mean_absolute_error"
METHODS = ("holdout", "k-fold", "leave-one-out", "nested", ".632+", "bootstrap")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ np.array([1.0, 0.0, -1.0]) + RNG.normal(size=60)


class Answers(RegressorMixin, BaseEstimator):
    """A regressor that gives the same answers for any rows, as many as it likes."""

    def __init__(self, value=0.0, missing=0, columns=0):
        self.value, self.missing, self.columns = value, missing, columns

    def fit(self, X, y):
        return self

    def predict(self, X):
        shape = (len(X) - self.missing, self.columns) if self.columns else len(X) - self.missing
        return np.full(shape, self.value)


@pytest.mark.parametrize("method", METHODS)
def test_predictions_that_are_no_numbers(method):
    with pytest.raises(DataError, match=r"no numbers|score of nan for row"):
        assess(Answers(np.nan), X, Y, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_predictions_of_another_shape(method):
    with pytest.raises(DataError, match=r"predict gives \d+ answers for \d+ rows"):
        assess(Answers(missing=1), X, Y, method=method)
    with pytest.raises(DataError, match=r"predictions of shape \(\d+, 2\)"):
        assess(Answers(columns=2), X, Y, method=method)
    # One column is what some libraries give for one target.
    column, plain = (assess(Answers(columns=c), X, Y, method=method, metrics=ABSOLUTE) for c in (1, 0))
    assert column[ABSOLUTE].estimate == plain[ABSOLUTE].estimate


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.where(np.arange(60) < 5, np.nan, np.arange(60) // 3), "row 0 without a group"),
        (np.array([*"ab" * 29, "c", None], dtype=object), "row 59 without a group"),
        (np.array([*"ab" * 29, "c", 1], dtype=object), "groups of several types: int, str"),
        (np.arange(59), "groups of shape"),
    ],
)
def test_groups_that_are_missing_or_of_several_types(groups, words):
    with pytest.raises(DataError, match=words):
        assess(Ridge(), X, Y, groups=groups)


def test_a_row_counts_once_in_a_test():
    with pytest.raises(DataError, match="tests a row more than once"):
        assess(Ridge(), X, Y, method=[(np.arange(40), np.array([50, 50, 51]))])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [2.0**-60, 2.0**-400, 2.0**300])
def test_the_unit_of_the_target_changes_no_verdict(method, unit):
    """Limits are relative: of errors near 1e-18 an interval half as wide held before, since 1e-9 was allowed."""
    found, plain = (assess(Ridge(), X, Y * by, method=method, metrics=ABSOLUTE) for by in (unit, 1.0))
    claim, other = found[ABSOLUTE], plain[ABSOLUTE]
    assert found.certificate.holds
    assert claim.covers == other.covers
    assert (claim.high - claim.low) / unit == pytest.approx(other.high - other.low, rel=1e-9)
    middle = (claim.low + claim.high) / 2
    for wrong in (
        replace(claim, low=(claim.low + middle) / 2, high=(claim.high + middle) / 2),
        replace(claim, estimate=claim.estimate * 0.99),
    ):
        assert not certify_intervals([wrong], None).holds


def test_wrong_choices_comparisons_and_conformal_scores_of_small_targets_do_not_hold():
    small = 1e-15 * Y
    choice = choose_setting(Ridge(), {"alpha": [0.1, 10.0]}, X, small, metric=ABSOLUTE, n_splits=5, draws=50)
    splits = certify_plan(choice.plan, make_problem(Ridge(), X, small, {}))
    assert choice.certificate.holds
    for wrong in (replace(choice.claim, corrected=2 * choice.claim.corrected), replace(choice.claim, low=0.0)):
        assert not certify_choice(wrong, splits).holds
    found = compare_models({"weak": Ridge(0.1), "strong": Ridge(1e3)}, X, small, metric=ABSOLUTE)
    claim = found.pairs[0].claim
    splits = certify_plan(found.plan, make_problem(Ridge(), X, small, {}))
    assert certify_comparison([claim], splits, 0.05).holds
    assert not certify_comparison([replace(claim, difference=2 * claim.difference)], splits, 0.05).holds
    for method in ("split", "cv+"):
        model = ConformalRegressor(Ridge(), method=method, coverage=0.8, random_state=0).fit(X, small)
        assert audit(model, X, small).holds
        model.scores_ = model.scores_ * 1.5
        model.radius_ = {group: radius * 1.5 for group, radius in model.radius_.items()}
        assert not audit(model, X, small).holds


def test_wrong_replicates_of_small_coefficients_do_not_hold():
    found = bootstrap_coefficients(HuberRegressor(alpha=0.0), X * 1e12, Y, n_replicates=20)
    assert found.certificate.holds
    wrong = replace(found.claim, estimate=found.claim.estimate * [2, 1, 1, 1])
    assert not certify_replicates(wrong, X * 1e12, Y, HuberRegressor(alpha=0.0)).holds
