"""Mixtures of exponential families: against mathematics by hand, a plain EM, published numbers, and damage."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from certifit import CertificateWarning, audit
from certifit.families import (
    Prior,
)
from certifit.mixture.families.mixture import Mixture
from tests.mixture.family_tables import COUNTS, MIXED, check, each_family, table


# ------------------------------------------------------------------------------------------------ by hand
def test_one_step_of_a_bernoulli_mixture_by_hand():
    """Rows (1, 1) and (0, 0); p = 3/4 and 1/4: responsibilities 9/10 and 1/10, so that p becomes 9/10 and 1/10."""
    start = [[0.75, 0.75], [0.25, 0.25]]
    with pytest.warns(CertificateWarning, match="gain of one more EM step"):
        model = Mixture("bernoulli", smoothing=0, max_iter=1, parameters_init=start).fit([[1, 1], [0, 0]])
    np.testing.assert_allclose(model.parameters_, [[0.9, 0.9], [0.1, 0.1]], rtol=1e-14)
    np.testing.assert_allclose(model.weights_, [0.5, 0.5], rtol=1e-14)
    first, second = model.em_trace_
    np.testing.assert_allclose(first["loglik"], np.log((0.75**2 + 0.25**2) / 2), rtol=1e-13)
    np.testing.assert_allclose(second["loglik"], np.log((0.81 + 0.01) / 2), rtol=1e-13)
    bound = 0.9 * np.log(0.5 * 0.81 / 0.9) + 0.1 * np.log(0.5 * 0.01 / 0.1)  # q is (9/10, 1/10) in both rows
    np.testing.assert_allclose(second["bound"], bound, rtol=1e-12)
    np.testing.assert_allclose(second["kl"], np.log(0.41) - bound, rtol=1e-11)


@each_family
def test_one_component_is_the_familys_own_fit(family):
    """Counts without a prior; elsewhere imagined rows that are like all rows change nothing, but for a Gaussian."""
    x = table(family)[:, 0]
    w = np.random.default_rng(1).exponential(size=len(x))
    counts = family in COUNTS
    model = Mixture(family, 1, smoothing=0 if counts else 3.0).fit(x[:, None], sample_weight=w)
    ((mine,),) = model.members()
    prior = None
    if family == "gaussian":
        place, spread = model.prior_["shift"][0], model.prior_["scale"][0]
        prior = Prior(3.0, [place, place**2 + spread**2])
    theirs = type(mine).fit(x, w, prior=prior, **mine.known_values).member
    for name, value in theirs.parameters.items():
        np.testing.assert_allclose(mine.parameters[name], value, rtol=1e-9, err_msg=name)
    total = np.dot(w, theirs.log_density(x))
    np.testing.assert_allclose(model.loglikelihood_, total, rtol=1e-10)
    assert model.certificate_.holds
    assert check(model, x[:, None], w).holds


def test_published_death_notices():
    """Hasselblad (1969): days by number of death notices in The Times; Lange, Applied Probability (2010), ch. 2.

    The maximum likelihood mixture of two Poissons has weight 0.3599 and means 1.256 and 2.663.
    """
    days = np.array([162, 267, 271, 185, 111, 61, 27, 8, 3, 1])
    settings = {"smoothing": 0, "tol": 1e-11, "max_iter": 5000, "parameters_init": [[1.0], [2.5]]}
    model = Mixture("poisson", **settings).fit(np.arange(10)[:, None], sample_weight=days)
    np.testing.assert_allclose(model.weights_[0], 0.3599, atol=5e-4)
    np.testing.assert_allclose(model.parameters_[:, 0], [1.256, 2.663], atol=1e-3)
    assert model.certificate_.holds


# ------------------------------------------------------------------------------------------------ a plain EM
def plain_log_density(X, theta):
    """(n,) of rows with missing entries under one component of a (categorical, poisson, gaussian) table, by SciPy."""
    p, rate, mean, variance = theta
    with np.errstate(invalid="ignore"):
        parts = [
            np.log(p[np.nan_to_num(X[:, 0]).astype(int)]),
            stats.poisson.logpmf(X[:, 1], rate),
            stats.norm.logpdf(X[:, 2], mean, np.sqrt(variance)),
        ]
    return sum(np.where(np.isnan(X[:, j]), 0.0, parts[j]) for j in range(3))


def plain_em(X, w, thetas, s, centre, steps):
    """Loops over components and columns; `centre` are median and quartile distance of the Gaussian column."""
    pi, k = np.full(len(thetas), 1 / len(thetas)), 4
    there = ~np.isnan(X)
    seen = [X[there[:, j], j] for j in range(3)]
    weight = [w[there[:, j]] for j in range(3)]
    shares = (np.array([weight[0][seen[0] == c].sum() for c in range(k)]) + 1 / k) / (weight[0].sum() + 1)
    count = (weight[1] @ seen[1] + 1) / (weight[1].sum() + 1)
    for _ in range(steps):
        logs = np.array([np.log(p) + plain_log_density(X, theta) for p, theta in zip(pi, thetas, strict=True)])
        r = np.exp(logs - logs.max(axis=0))
        r *= w / r.sum(axis=0)
        pi = r.sum(axis=1) / w.sum()
        thetas = []
        for q in r:
            n = [q[there[:, j]] for j in range(3)]
            p = np.array([n[0][seen[0] == c].sum() for c in range(k)]) + s * shares
            rate = (n[1] @ seen[1] + s * count) / (n[1].sum() + s)
            z = (seen[2] - centre[0]) / centre[1]
            first, second = (n[2] @ z) / (n[2].sum() + s), (n[2] @ z**2 + s) / (n[2].sum() + s)
            mean, variance = centre[0] + centre[1] * first, centre[1] ** 2 * (second - first**2)
            thetas.append((p / p.sum(), rate, mean, variance))
    return pi, thetas


def test_a_mixed_table_with_missing_entries_and_weights_against_a_plain_em():
    families = ["categorical", "poisson", "gaussian"]
    X = table(*families)
    rng = np.random.default_rng(2)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[5] = np.nan
    w = rng.exponential(size=len(X))
    start = [[0.4, 0.3, 0.2, 0.1, 2.0, 3.0, 2.0], [0.1, 0.2, 0.3, 0.4, 8.0, 12.0, 9.0]]
    settings = {"smoothing": 0.7, "max_iter": 6, "tol": 0.0, "parameters_init": start}
    with pytest.warns(CertificateWarning):
        model = Mixture(families, **settings).fit(X, sample_weight=w)
    some = ~np.isnan(X).all(axis=1)
    centre = model.prior_["shift"][2], model.prior_["scale"][2]
    thetas = [(np.array(row[:4]), *row[4:]) for row in start]
    pi, thetas = plain_em(X[some], w[some], thetas, 0.7, centre, 6)
    np.testing.assert_allclose(model.weights_, pi, rtol=1e-11)
    np.testing.assert_allclose(model.parameters_, [np.concatenate([t[0], t[1:]]) for t in thetas], rtol=1e-10)
    logs = np.array([np.log(p) + plain_log_density(X, theta) for p, theta in zip(pi, thetas, strict=True)])
    expected = np.where(some, np.logaddexp(*logs), 0.0)  # a row without entries does not count
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[5], model.weights_, rtol=1e-15)
    assert model.parameter_names_.tolist() == ["0 p0", "0 p1", "0 p2", "0 p3", "1 rate", "2 mean", "2 variance"]


def test_a_missing_column_is_left_out():
    """Within a component columns are independent: what is left is the mixture of the others."""
    X = table("poisson", "exponential", "bernoulli")
    model = Mixture(["poisson", "exponential", "bernoulli"], random_state=0).fit(X)
    missing = X.copy()
    missing[:, 1] = np.nan
    rest = [[m for j, m in enumerate(row) if j != 1] for row in model.members()]
    logs = [row[0].log_density(X[:, 0]) + row[1].log_density(X[:, 2]) for row in rest]
    expected = np.logaddexp(*(np.log(p) + log for p, log in zip(model.weights_, logs, strict=True)))
    np.testing.assert_allclose(model.score_samples(missing), expected, rtol=1e-12)


# ------------------------------------------------------------------------------------------------ certificates
@each_family
def test_fit_and_checker_agree(family):
    X = np.tile(table(family), 2)
    X[:, 1] = X[::-1, 1]
    X[::7, 0] = np.nan
    w = 1.0 + np.arange(len(X)) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a second component may be one too many
        model = Mixture(family, smoothing=0.5, random_state=0).fit(X, sample_weight=w)
    mine, checked = model.certificate_, check(model, X, w)
    assert mine.holds
    assert checked.holds
    assert (mine.kind, mine.claim) == (checked.kind, checked.claim)
    np.testing.assert_allclose(mine.objective, checked.objective, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(mine.objective, model.objective(X, sample_weight=w).total, rtol=1e-10, atol=1e-11)


def test_every_iteration_is_laid_open():
    X = table(*MIXED)
    model = Mixture(MIXED, random_state=0).fit(X)
    trace = model.em_trace_
    np.testing.assert_allclose(trace["loglik"], trace["bound"] + trace["kl"], rtol=1e-12)
    assert (trace["kl"] >= -1e-12).all()
    assert (np.diff(trace["loglik"]) >= -1e-12).all()
    assert (trace["bound"][1:] >= trace["loglik"][:-1] - 1e-12).all()  # the M step raises the bound, which was tight
    np.testing.assert_allclose(trace["loglik"][-1], model.lower_bound_, rtol=1e-14)
    np.testing.assert_allclose(-model.objective(X).total, model.lower_bound_, rtol=1e-10)


def test_at_rest_every_member_expects_what_its_rows_have_on_average():
    X = table(*COUNTS[:4])
    model = Mixture(COUNTS[:4], smoothing=0.0, tol=1e-14, max_iter=20_000, random_state=0).fit(X)
    R = model.predict_proba(X)
    np.testing.assert_allclose(model.weights_, R.mean(axis=0), rtol=1e-6)
    for r, members in zip(R.T, model.members(), strict=True):
        for x, member in zip(X.T, members, strict=True):
            np.testing.assert_allclose(member.mean_parameters, r @ member.T(x) / r.sum(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("family", [MIXED, COUNTS, ["exponential", "inverse_gaussian", "beta"]], ids=len)
def test_damage_to_any_number_is_noticed(family):
    X = table(*family)
    model = Mixture(family, tol=1e-8, max_iter=3000, random_state=0).fit(X)
    assert check(model, X).holds
    for name in ("weights_", "parameters_"):
        good = getattr(model, name)
        for place in np.ndindex(good.shape):
            for factor in (1.02, 0.98, -1.0):
                bad = good.copy()
                bad[place] *= factor
                setattr(model, name, bad)
                assert not check(model, X).holds, (name, place, factor)
        setattr(model, name, good[::-1].copy())
        assert not check(model, X).holds, name
        setattr(model, name, good)
    assert not check(model, X[:100]).holds


def test_the_bound_is_below_every_mixture_of_counts():
    X = table(*COUNTS)
    models = [Mixture(COUNTS, 2, random_state=seed, init_params="random").fit(X) for seed in range(3)]
    for a in models:
        assert all(a.certificate_.bound <= b.certificate_.objective for b in models)


def test_names_of_components_do_not_matter():
    X = table("poisson", "exponential")
    start = np.array([[2.0, 1.0], [8.0, 0.25]])
    one, other = (Mixture(["poisson", "exponential"], parameters_init=s).fit(X) for s in (start, start[::-1]))
    np.testing.assert_allclose(one.parameters_, other.parameters_[::-1], rtol=1e-10)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], rtol=1e-9)
    np.testing.assert_allclose(one.certificate_.objective, other.certificate_.objective, rtol=1e-13)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e14, 1e279])
@pytest.mark.parametrize("family", ["poisson", "geometric"])
def test_counts_so_large_that_nats_are_lost_prove_nothing(family, size):
    X = np.floor(np.random.default_rng(0).exponential(size=(25, 1)) * size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Mixture(family, 2, random_state=0).fit(X)
    assert audit(model, X).holds == model.certificate_.holds
    if size <= 1e3:
        assert model.certificate_.holds
    if family == "poisson" and size >= 1e14:  # x log x of 1e14 is known to a whole nat
        assert any("last digits" in words for words in model.certificate_.failures())
