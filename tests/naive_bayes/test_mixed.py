"""Naive Bayes of mixed tables: every column against scipy.stats, the single-family models and the audit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import certifit
from certifit import BernoulliNB, CategoricalNB, DataError, GaussianNB, NaiveBayes, audit
from certifit.checkers.naive_bayes.mixed_adapter import audit_naive_bayes
from certifit.families import Binomial, Gaussian, Geometric, Poisson

FAMILIES = ["gaussian", "poisson", "bernoulli", "categorical", "exponential", "gamma", "geometric", "beta",
            "inverse_gaussian", "poisson"]  # fmt: skip


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.column_stack([
        rng.normal(100 + y, 1 + y), rng.poisson(2 + 2 * y), rng.random(n) < 0.2 + 0.3 * y, rng.integers(0, 2 + y),
        rng.exponential(1 + y), rng.gamma(2 + y, 1.0), rng.geometric(0.6 - 0.2 * y) - 1, rng.beta(2 + y, 2.0),
        rng.wald(1 + y, 3.0), rng.poisson(5 - y),
    ])  # fmt: skip
    return X.astype(float), y


def by_hand(X, y):
    """log p(x, c) from scipy.stats at maximum likelihood, for the columns whose solution is elementary."""
    total = np.zeros((len(X), 3))
    for c in range(3):
        Z = X[y == c]
        m, k, n = Z.mean(axis=0), len(Z), len(y)
        p = (Z[:, 2].sum() + 1) / (k + 2)
        cells = (np.bincount(Z[:, 3].astype(int), minlength=4) + 1) / (k + 4)
        lam = 1 / (1 / Z[:, 8] - 1 / m[8]).mean()
        total[:, c] = np.log(k / n) + np.sum([
            stats.norm.logpdf(X[:, 0], m[0], Z[:, 0].std()), stats.poisson.logpmf(X[:, 1], m[1]),
            stats.bernoulli.logpmf(X[:, 2], p), np.log(cells[X[:, 3].astype(int)]),
            stats.expon.logpdf(X[:, 4], scale=m[4]),
            stats.gamma.logpdf(X[:, 5], *stats.gamma.fit(Z[:, 5], floc=0)),
            stats.geom.logpmf(X[:, 6] + 1, 1 / (1 + m[6])),
            stats.beta.logpdf(X[:, 7], *stats.beta.fit(Z[:, 7], floc=0, fscale=1)),
            stats.invgauss.logpdf(X[:, 8], m[8] / lam, scale=lam), stats.poisson.logpmf(X[:, 9], m[9]),
        ], axis=0)  # fmt: skip
    return total


def test_every_family_against_scipy():
    X, y = mixed()
    model = NaiveBayes(FAMILIES, var_smoothing=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), by_hand(X, y), rtol=1e-6)
    assert model.certificate_.holds
    assert model.families_ == FAMILIES
    checked = audit_naive_bayes(model, X, y, None, 1e-10)
    assert checked.holds, checked
    np.testing.assert_allclose(checked.objective, model.certificate_.objective, rtol=1e-10)
    np.testing.assert_allclose(model.objective(X, y).total, model.certificate_.objective, rtol=1e-10)


@pytest.mark.parametrize("part", range(len(set(FAMILIES))))
def test_audit_notices_damage_in_every_family(part):
    X, y = mixed()
    model = NaiveBayes(FAMILIES).fit(X, y)
    best = model.certificate_.objective
    found = model.parameters_[part]
    name = next(n for n in ("theta", "log_p", "table", "members") if n in found)
    if name == "members":
        (first, *rest), *others = found[name]
        found[name] = (((first[0] * 1.001, *first[1:]), *rest), *others)
    else:
        found[name][0, 0] *= 1.001
    checked = audit_naive_bayes(model, X, y, None, 1e-7)
    assert not checked.holds
    assert any(found["family"] in words for words in checked.failures())
    assert checked.bound <= best * (1 + 1e-12)


def test_one_family_is_the_single_model():
    X, y = mixed()
    gaussian, columns = GaussianNB().fit(X, y), [2]
    np.testing.assert_allclose(NaiveBayes().fit(X, y).predict_proba(X), gaussian.predict_proba(X), rtol=1e-12)
    yes = BernoulliNB(binarize=0.5, alpha=0.5).fit(X[:, columns], y)
    model = NaiveBayes("bernoulli", alpha=0.5).fit(X[:, columns], y)
    np.testing.assert_allclose(model.predict_proba(X[:, columns]), yes.predict_proba(X[:, columns]), rtol=1e-13)
    kinds = CategoricalNB().fit(X[:, 2:4], y)
    model = NaiveBayes("categorical").fit(X[:, 2:4], y)
    np.testing.assert_allclose(model.predict_proba(X[:, 2:4]), kinds.predict_proba(X[:, 2:4]), rtol=1e-13)


def test_names_numbers_classes_and_members():
    X, y = mixed()
    names = [f"x{j}" for j in range(10)]
    plain = NaiveBayes(FAMILIES).fit(X, y).predict_log_proba(X)
    frame = pd.DataFrame(X, columns=names)
    for family in (dict(zip(names, FAMILIES, strict=True)), dict(enumerate(FAMILIES))):
        np.testing.assert_array_equal(NaiveBayes(family).fit(frame, y).predict_log_proba(frame), plain)
    classes = [Gaussian, Poisson, *FAMILIES[2:6], Geometric, *FAMILIES[7:]]
    np.testing.assert_array_equal(NaiveBayes(classes).fit(X, y).predict_log_proba(X), plain)
    counts = np.minimum(X[:, [1]], 10)
    model = NaiveBayes(Binomial(0.5, n=10)).fit(counts, y)
    expected = [stats.binom.logpmf(counts[:, 0], 10, counts[y == c].mean() / 10) for c in range(3)]
    np.testing.assert_allclose(
        model.predict_joint_log_proba(counts) - np.log(model.class_prior_), np.transpose(expected), rtol=1e-11
    )


def test_partial_fit_weights_and_missing_entries():
    X, y = mixed()
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.2] = np.nan
    w = rng.exponential(size=len(y))
    whole, model = NaiveBayes(FAMILIES).fit(X, y, w), NaiveBayes(FAMILIES)
    for here in np.array_split(np.argsort(y), 4):
        model.partial_fit(X[here], y[here], classes=[0, 1, 2], sample_weight=w[here])
    np.testing.assert_allclose(model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)
    assert audit_naive_bayes(whole, X, y, w, 1e-10).holds
    j = 1  # a row is scored by the columns it has
    there = ~np.isnan(X[:, j])
    without = np.where(np.arange(10) == j, np.nan, X)
    for c in range(3):
        rate = np.average(X[there & (y == c), j], weights=w[there & (y == c)])
        gain = whole.predict_joint_log_proba(X)[there, c] - whole.predict_joint_log_proba(without)[there, c]
        np.testing.assert_allclose(gain, stats.poisson.logpmf(X[there, j], rate), rtol=1e-8, atol=1e-9)


def test_a_count_never_seen():
    """A Poisson rate of 0 cannot produce a 1; where no class can, the prior is left. Never NaN."""
    X, y = [[0, 0], [0, 3], [2, 0], [1, 0]], [0, 0, 1, 1]
    model = NaiveBayes("poisson").fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[1, 0], [0, 1], [1, 1]]), [[0, 1], [1, 0], [0.5, 0.5]])
    assert model.certificate_.holds
    assert audit_naive_bayes(model, X, y, None, 1e-10).holds


def test_copies(tmp_path):
    X, y = mixed()
    model = NaiveBayes(FAMILIES).fit(X, y)
    certifit.save(model, tmp_path / "m.certifit")
    for again in (pickle.loads(pickle.dumps(model)), certifit.load(tmp_path / "m.certifit")):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("normal", "wanted one of bernoulli"),
        (["gaussian"], "one for each of the 10 columns"),
        ({0: "gaussian"}, "one for each of the columns"),
        ("poisson", "whole numbers"),
        ("beta", "between 0 and 1"),
        ([*FAMILIES[:4], "categorical", *FAMILIES[5:]], "in column 4; wanted category numbers"),
        ([*FAMILIES[:8], "geometric", "poisson"], "in column 8, among the rows from 0; wanted whole numbers"),
    ],
)
def test_refused(family, words):
    with pytest.raises(DataError, match=words):
        NaiveBayes(family).fit(*mixed())


@pytest.mark.parametrize(
    ("family", "size", "words"),
    [
        ("poisson", 1e30, "standard deviation is above the rounding"),
        ("exponential", 1e170, "squares do not overflow"),
    ],
)
def test_numbers_too_large_for_their_sums_are_refused(family, size, words):
    """A Poisson of mean 1e30 has standard deviation 1e15: a sum of such counts is off by as much in float64."""
    X = size * np.array([[1.0], [2.0], [3.0], [5.0]])
    with pytest.raises(DataError, match=words):
        NaiveBayes(family=family).fit(X, [0, 1, 0, 1])
    model = NaiveBayes(family=family).fit(1e20 * (X / size), [0, 1, 0, 1])
    assert model.certificate_.holds
    assert audit(model, 1e20 * (X / size), [0, 1, 0, 1]).holds


def test_columns_whose_variance_over_all_classes_overflows_are_refused():
    """Each class's own sum of squares may be finite where that of all classes is not."""
    X = np.array([[0.0], [0.0], [0.0], [6.8e153], [6.8e153], [0.0], [6.8e153], [0.0]])
    y = np.array([0, 0, 1, 1, 1, 1, 2, 2])
    with pytest.raises(DataError, match="overflow"):
        NaiveBayes().fit(X, y, np.full(8, 5.0))
