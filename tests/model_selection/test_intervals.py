"""Intervals: published values, coverage on simulated rows, and a checker that is not fooled."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from certifit import assess
from certifit.checkers.model_selection.intervals import certify_intervals
from certifit.model_selection import KFold
from certifit.model_selection.assessment.intervals import betting_interval, clopper_pearson

X, Y = load_breast_cancer(return_X_y=True)


def test_clopper_and_pearson():
    """Exact limits of R's binom.test(7, 20): 0.1539092, 0.5921885; and the rule for no successes, 1 - (α/2)^(1/n)."""
    low, high = clopper_pearson(7, 20, 0.95)
    assert low == pytest.approx(0.1539092, abs=1e-6)
    assert high == pytest.approx(0.5921885, abs=1e-6)
    low, high = clopper_pearson([0, 10], [10, 10], 0.9)
    assert low.tolist() == [0.0, pytest.approx(0.05**0.1)]
    assert high.tolist() == [pytest.approx(1 - 0.05**0.1), 1.0]


@pytest.mark.parametrize(("a", "b"), [(0.3, 3.0), (10, 30)])
def test_betting_covers_and_is_narrower_than_hoeffding(a, b):
    """60 samples of beta rows: 90 % intervals miss at most 6 + 3 standard deviations of 60 draws."""
    rng, n = np.random.default_rng(0), 150
    ends = np.array([betting_interval(rng.beta(a, b, n), 0.9) for _ in range(60)])
    truth = beta.mean(a, b)
    missed = np.count_nonzero((ends[:, 0] > truth) | (ends[:, 1] < truth))
    assert missed <= 6 + 3 * np.sqrt(60 * 0.1 * 0.9)
    hoeffding = 2 * np.sqrt(np.log(2 / 0.1) / (2 * n))
    assert np.mean(ends[:, 1] - ends[:, 0]) < 0.6 * hoeffding


def test_betting_ends_stay_within_the_span_and_cannot_be_one_point():
    low, high = betting_interval(np.zeros(50), 0.9)
    assert low == 0
    assert 0.01 < high < 0.2
    low, high = betting_interval(np.ones(50), 0.9)
    assert 0.8 < low < 0.99
    assert high == 1


def claims():
    """One claim of every way."""
    splits = assess(GaussianNB(), X, Y, method=KFold(5), metrics=["accuracy", "roc_auc"])
    metrics = ["accuracy", "neg_brier_score", "neg_log_loss", "roc_auc"]
    single = assess(GaussianNB(), X, Y, method="holdout", metrics=metrics)
    return {claim.way: claim for found in (splits, single) for claim in found.claims}


CLAIMS = claims()


def test_every_way_is_met():
    assert set(CLAIMS) == {"binomial", "betting", "normal", "percentiles", "corrected t"}
    assert all(certify_intervals([claim], None).holds for claim in CLAIMS.values())


@pytest.mark.parametrize("way", CLAIMS)
def test_narrowed_and_moved_intervals_are_refused(way):
    claim = CLAIMS[way]
    width = claim.high - claim.low
    for wrong in (
        replace(claim, low=claim.low + 0.05 * width),
        replace(claim, high=claim.high - 0.05 * width),
        replace(claim, estimate=claim.estimate + 3 * width),
        replace(claim, low=claim.low + width, high=claim.high + width),
        replace(claim, confidence=0.99),
        replace(claim, values=np.append(claim.values, np.nan)),
        replace(claim, confidence=1.0),
    ):
        assert not certify_intervals([wrong], None).holds, wrong


@pytest.mark.parametrize("way", ["binomial", "betting", "normal", "corrected t"])
def test_estimates_must_be_the_mean_of_their_scores(way):
    claim = CLAIMS[way]
    assert not certify_intervals([replace(claim, estimate=claim.estimate + 1e-6)], None).holds
    assert not certify_intervals([replace(claim, values=claim.values[1:])], None).holds


def test_scores_outside_their_span_prove_nothing():
    claim = CLAIMS["betting"]
    assert not certify_intervals([replace(claim, span=(-0.001, 0.0))], None).holds
    assert not certify_intervals([replace(CLAIMS["binomial"], values=CLAIMS["binomial"].values * 0.5)], None).holds


def test_leaking_splits_are_refused():
    everything = np.arange(len(Y))
    found = assess(GaussianNB(), X, Y, method=[(everything, everything[:100])])
    assert not found.certificate.holds
    assert "faults of the splits" in found.certificate.failures()[0]


def test_intervals_of_folds_hold_the_truth():
    """20 tables of 60 rows, accuracy of the fitted model on 4000 new rows: 18 are expected, 15 are two deviations."""
    rng, hits = np.random.default_rng(1), 0
    for seed in range(20):
        y = np.arange(4060) % 2
        table = rng.normal(size=(4060, 2)) + y[:, None]
        found = assess(GaussianNB(), table[:60], y[:60], method="k-fold", n_splits=5, random_state=seed)["accuracy"]
        truth = np.mean(GaussianNB().fit(table[:60], y[:60]).predict(table[60:]) == y[60:])
        hits += found.low <= truth <= found.high
    assert hits >= 15
