"""Comparing models: published formulas, exact values, and a checker that is not fooled."""

from dataclasses import replace
from math import comb, sqrt

import numpy as np
import pytest
from scipy.stats import f as fisher
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.naive_bayes import GaussianNB

from certifit import DataError, bayesian_signed_rank, compare_models
from certifit.checkers.model_selection.comparisons import certify_comparison, closed_p_values, plain_p_value
from certifit.checkers.model_selection.splits import SplitDeclaration, certify_splits, row_keys
from certifit.model_selection.comparison.paired_tests import (
    combined_f_test,
    corrected_t_test,
    correlated_posterior,
    difference_interval,
    holm,
    mcnemar_test,
)
from certifit.plots.style import figures_apart

CANCER = load_breast_cancer(return_X_y=True)
BAYES = {"wide": GaussianNB(), "wider": GaussianNB(var_smoothing=1e-8), "majority": DummyClassifier()}


def test_the_corrected_t_has_its_closed_form():
    """Two degrees of freedom: p = 1 - t / √(2 + t²), with t = 0.2 / (0.1 √(1/3 + 1/2))."""
    t = 0.2 / (0.1 * sqrt(1 / 3 + 1 / 2))
    d = np.array([0.1, 0.2, 0.3])
    assert corrected_t_test(d, 0.5) == pytest.approx(1 - t / sqrt(2 + t * t))
    low, high = difference_interval(d, 0.5, 1 - corrected_t_test(d, 0.5))
    assert low == pytest.approx(0, abs=1e-12)
    assert high == pytest.approx(0.4)


def test_the_combined_f_is_alpaydins():
    """f = ΣΣ p² / (2 Σ s²), as mlxtend's combined_ftest_5x2cv computes it, against F with 10 and 5 degrees."""
    d = np.random.default_rng(0).normal(0.02, 0.02, size=10)
    squares, variances = [], []
    for a, b in d.reshape(5, 2):
        mean = (a + b) / 2
        squares += [a**2, b**2]
        variances.append((a - mean) ** 2 + (b - mean) ** 2)
    assert combined_f_test(d) == pytest.approx(fisher.sf(sum(squares) / (2 * sum(variances)), 10, 5))
    assert fisher.sf(4.735, 10, 5) == pytest.approx(0.05, abs=1e-4)  # Alpaydin's critical value, 4.74


def test_mcnemar_is_a_sum_of_binomial_chances():
    d = np.array([1] * 9 + [-1] * 2 + [0] * 80)
    assert mcnemar_test(d) == pytest.approx(2 * sum(comb(11, k) for k in range(3)) / 2**11)
    assert mcnemar_test(np.array([1, -1, 0])) == 1
    assert mcnemar_test(np.zeros(5)) == 1


def test_holm_is_closed_testing():
    """Holm's step-down equals the largest Bonferroni test of all sets of hypotheses that contain each."""
    rng = np.random.default_rng(0)
    for m in (1, 2, 5, 10):
        p = rng.random(m) ** 3
        np.testing.assert_allclose(holm(p), closed_p_values(p), rtol=1e-12)
    assert holm(np.array([0.02, 0.02])).tolist() == [0.04, 0.04]


def test_the_posterior_goes_with_the_test():
    """Without a region of equivalence the smaller side has half the two-sided p-value."""
    d = np.random.default_rng(1).normal(0.01, 0.02, 30)
    found = correlated_posterior(d, 1 / 9, 0.0)
    assert 2 * min(found.worse, found.better) == pytest.approx(corrected_t_test(d, 1 / 9))
    assert found.same == pytest.approx(0, abs=1e-12)
    assert sum(correlated_posterior(d, 1 / 9, 0.005)) == pytest.approx(1)


def test_signed_ranks_of_one_table_have_a_closed_form():
    """One clear win: the prior's weight w0 is Beta(1/2, 1), and 'same' wins where w0² > 1/2: P(better) = 2^(-1/4)."""
    found = bayesian_signed_rank([1.0], [0.0], draws=40_000)
    assert found.better == pytest.approx(2**-0.25, abs=0.006)
    assert found.same == pytest.approx(1 - 2**-0.25, abs=0.006)
    rng = np.random.default_rng(0)
    a, b = rng.random(20), rng.random(20)
    there, back = bayesian_signed_rank(a, b), bayesian_signed_rank(b, a)
    assert (there.worse, there.same, there.better) == (back.better, back.same, back.worse)
    alike = bayesian_signed_rank(a, a + 0.001)
    assert alike.same == 1
    with pytest.raises(DataError, match="for every table"):
        bayesian_signed_rank([1, 2], [1])


@pytest.mark.parametrize(
    ("test", "options"), [("corrected t", {"n_splits": 5, "n_repeats": 2}), ("5x2cv F", {}), ("McNemar", {})]
)
def test_models_are_told_apart_where_they_differ_only(test, options):
    found = compare_models(BAYES, *CANCER, test=test, **options)
    assert found.certificate.holds, found.certificate
    verdicts = {(pair.claim.first, pair.claim.second): pair.verdict for pair in found.pairs}
    assert len(verdicts) == 3
    for (first, second), verdict in verdicts.items():
        if second == "majority":
            assert verdict == f"{first} is better"
        else:
            assert verdict in ("cannot be told apart", "practically the same")
    assert "corrected for 3 pairs" in str(found)
    assert len(found.to_frame()) == 3
    assert "<table>" in found._repr_html_()


def test_models_that_are_the_same_are_said_to_be():
    X, y = load_diabetes(return_X_y=True)
    models = {"least squares": LinearRegression(), "ridge": Ridge(1e-6), "mean": DummyRegressor()}
    found = compare_models(models, X, y, n_splits=5, n_repeats=2)
    last = {
        pair.verdict for pair in found.pairs if {pair.claim.first, pair.claim.second} == {"least squares", "ridge"}
    }
    assert last == {"practically the same"}
    assert found.metric == "r2"
    with figures_apart():
        ax = found.plot()
    assert [label.get_text() for label in ax.get_yticklabels()][-1].endswith("- mean")


def test_the_checker_refuses_what_does_not_follow():
    found = compare_models(BAYES, *CANCER, n_splits=3, n_repeats=2)
    claims = [pair.claim for pair in found.pairs]
    splits = certify_splits(found.plan.splits, row_keys(CANCER[0]), SplitDeclaration())
    assert certify_comparison(claims, splits, 0.05).holds
    first = claims[0]
    for wrong in (
        replace(first, p_value=first.p_value * 0.5, corrected=first.corrected * 0.5),
        replace(first, corrected=first.corrected * 0.9),
        replace(first, difference=first.difference + 1e-3),
        replace(first, ratio=0.0),
        replace(first, differences=first.differences + 0.01),
    ):
        assert not certify_comparison([wrong, *claims[1:]], splits, 0.05).holds, wrong
    leaky = certify_splits([(np.arange(100), np.arange(99, 200))], row_keys(CANCER[0]), SplitDeclaration())
    assert not certify_comparison(claims, leaky, 0.05).holds


def test_the_checker_finds_every_p_value_by_another_road():
    rng = np.random.default_rng(2)
    found = compare_models(BAYES, *CANCER, n_splits=3, n_repeats=1).pairs[0].claim
    for _ in range(5):
        d = rng.normal(0.02, 0.03, 10)
        assert plain_p_value(replace(found, differences=d, test="5x2cv F")) == pytest.approx(combined_f_test(d))
        assert plain_p_value(replace(found, differences=d, ratio=0.1)) == pytest.approx(corrected_t_test(d, 0.1))
        signs = rng.integers(-1, 2, 30)
        assert plain_p_value(replace(found, differences=signs, test="McNemar")) == pytest.approx(mcnemar_test(signs))


def test_bad_input_is_answered_in_words():
    X, y = CANCER
    with pytest.raises(DataError, match="two or more estimators by name"):
        compare_models({"one": GaussianNB()}, X, y)
    with pytest.raises(DataError, match="classifiers and regressors"):
        compare_models({"a": GaussianNB(), "b": Ridge()}, X, y)
    with pytest.raises(DataError, match="classifiers and accuracy"):
        compare_models({"a": Ridge(1), "b": Ridge()}, X, y, test="McNemar")
    with pytest.raises(DataError, match="Did you mean 'McNemar'"):
        compare_models(BAYES, X, y, test="mcnemar")
    with pytest.raises(DataError, match="five times two halves"):
        compare_models(BAYES, X, y, test="5x2cv F", n_splits=3)
    with pytest.raises(DataError, match="rope=-1"):
        compare_models(BAYES, X, y, rope=-1)
