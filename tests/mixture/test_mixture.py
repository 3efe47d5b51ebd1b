"""Mixtures of exponential families: against mathematics by hand, a plain EM, published numbers, and damage."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning

from certifit import CertificateWarning, DataError, audit
from certifit.checkers.mixture.families_adapter import audit_mixture
from certifit.families import (
    Binomial,
    Gaussian,
    GaussianFixedVariance,
    MultivariateGaussian,
    NegativeBinomial,
    Poisson,
    Prior,
)
from certifit.mixture.families.mixture import Mixture
from tests.common.tuning import tuned


def draws(n=120, seed=0):
    """A column of each family in two groups, the first of a third of the rows."""
    rng = np.random.default_rng(seed)
    low = np.arange(n) % 3 == 0
    a, b = np.where(low, 1.0, 4.0), np.where(low, 0.2, 0.7)
    return {
        "bernoulli": rng.random(n) < b,
        "categorical": np.where(low, rng.integers(0, 2, n), rng.integers(0, 4, n)),
        "poisson": rng.poisson(2 * a),
        "geometric": rng.geometric(b) - 1,
        "exponential": rng.exponential(a),
        "gamma": rng.gamma(2 * a, 1.5),
        "inverse_gaussian": rng.wald(a, 3.0),
        "beta": rng.beta(a, 2.0),
        "gaussian": rng.normal(3 * a, a),
        Binomial(0.5, n=7): rng.binomial(7, b),
        NegativeBinomial(0.5, r=2.5): rng.negative_binomial(2.5, b),
        GaussianFixedVariance(0.0, variance=2.0): rng.normal(3 * a, np.sqrt(2)),
    }


def table(*families, n=120):
    found = draws(n)
    return np.column_stack([found[name] for name in families or list(found)]).astype(np.float64)


ALL = list(draws(4))
MIXED = ["bernoulli", "categorical", "poisson", "gamma", "gaussian"]
COUNTS = ["bernoulli", "categorical", "poisson", "geometric", Binomial(0.5, n=7), NegativeBinomial(0.5, r=2.5)]
each_family = pytest.mark.parametrize("family", ALL, ids=str)


def check(model, X, w=None, tol=None):
    return audit_mixture(model, X, None, w, model.tol if tol is None else tol)


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


# ------------------------------------------------------------------------------------------------ use
def test_groups_are_found_again():
    X = table(*MIXED, n=300)
    model = Mixture(MIXED, random_state=0).fit(X)
    low = np.arange(300) % 3 == 0
    agree = np.mean(model.predict(X) == low)
    assert max(agree, 1 - agree) > 0.95


def test_criteria_count_what_is_free():
    X = table("bernoulli", "categorical", "gamma", Binomial(0.5, n=7))
    model = Mixture(["bernoulli", "categorical", "gamma", Binomial(0.5, n=7)], random_state=0).fit(X)
    assert model.n_parameters() == 1 + 2 * (1 + 3 + 2 + 1)
    ll = model.score_samples(X).sum()
    np.testing.assert_allclose(model.bic(X), 15 * np.log(len(X)) - 2 * ll, rtol=1e-13)
    np.testing.assert_allclose(model.aic(X), 2 * 15 - 2 * ll, rtol=1e-13)
    np.testing.assert_allclose(model.score(X), ll / len(X), rtol=1e-13)


def test_samples_have_the_mixtures_means():
    X = table("poisson", "categorical", "gamma")
    model = Mixture(["poisson", "categorical", "gamma"], random_state=0).fit(X)
    drawn, which = model.sample(20_000, random_state=1)
    means = np.array([[m.mean for m in row] for row in model.members()])
    for j in range(2):
        error = drawn[which == j].std(axis=0) / np.sqrt((which == j).sum())
        assert (np.abs(drawn[which == j].mean(axis=0) - means[j]) < 5 * error).all()
    np.testing.assert_array_equal(drawn, model.sample(20_000, random_state=1)[0])


def test_families_by_name_number_and_class():
    X = pd.DataFrame(table("poisson", "gaussian"), columns=["visits", "size"])
    by_name = Mixture({"size": "gaussian", "visits": Poisson}, random_state=0).fit(X)
    by_number = Mixture({0: "poisson", 1: Gaussian}, random_state=0).fit(X.to_numpy())
    np.testing.assert_array_equal(by_name.parameters_, by_number.parameters_)
    assert by_name.parameter_names_.tolist() == ["visits rate", "size mean", "size variance"]
    assert by_name.families_.tolist() == ["poisson", "gaussian"]


def test_an_offset_of_1e8_changes_nothing():
    X = np.round(1000 * table("gaussian", GaussianFixedVariance(0.0, variance=2.0))) / 1024  # exact at 1e8
    family = ["gaussian", GaussianFixedVariance(0.0, variance=2.0)]
    here, there = (Mixture(family, random_state=0).fit(X + offset) for offset in (0.0, 1e8))
    np.testing.assert_allclose(there.parameters_ - [1e8, 0, 1e8], here.parameters_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(there.lower_bound_, here.lower_bound_, rtol=1e-9)
    assert check(there, X + 1e8).holds


@pytest.mark.parametrize("source", ["parquet", "dask"])
def test_from_a_file_and_on_dask(source, tmp_path):
    frame = pd.DataFrame(table("poisson", "gaussian", "categorical", n=500), columns=["a", "b", "c"])
    frame.iloc[::9, 1] = np.nan
    families = {"a": "poisson", "b": "gaussian", "c": "categorical"}
    here = Mixture(families, random_state=0).fit(frame)
    if source == "parquet":
        X = tmp_path / "t.parquet"
        frame.to_parquet(X)
    else:
        X, families = da.from_array(frame.to_numpy(), chunks=(128, 3)), list(families.values())
    there = Mixture(families, random_state=0).fit(X)
    np.testing.assert_allclose(there.parameters_, here.parameters_, rtol=1e-9)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(frame), rtol=1e-7, atol=1e-10)
    assert check(there, X).holds


def test_sparse_counts_are_the_same_rows():
    family = ["poisson", "bernoulli", "geometric"]
    X = table(*family, n=300)
    X[4, 1] = np.nan
    dense, thin = (Mixture(family, random_state=0).fit(rows) for rows in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.parameters_, dense.parameters_, rtol=1e-12)
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), rtol=1e-10)
    assert check(thin, sparse.csr_array(X)).holds
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        Mixture("gaussian").fit(sparse.csr_array(X))


# ------------------------------------------------------------------------------------------------ corners
@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli", "exponential"])
def test_more_components_than_distinct_rows(family):
    X = np.repeat([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="component . (has|is the same as) .* Ask for fewer components"):
        model = Mixture(family, 5, random_state=0).fit(X)
    assert model.certificate_.holds
    assert model.certificate_.facts
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("family", ["gaussian", "poisson", "categorical"])
def test_identical_rows(family):
    X = np.full((6, 2), 2.0)
    with pytest.warns(ConvergenceWarning, match="component . (has|is the same as)"):
        model = Mixture(family, random_state=0).fit(X)
    assert model.certificate_.holds
    assert np.isfinite(model.parameters_).all()


def test_a_constant_column_does_not_matter():
    X = table("gaussian", "poisson")
    start = [[3.0, 2.0, 2.0], [12.0, 9.0, 8.0]]
    without = Mixture(["gaussian", "poisson"], parameters_init=start).fit(X)
    model = Mixture(["gaussian", "poisson", "gaussian"], parameters_init=[[*row, 7.0, 4.0] for row in start])
    model.fit(np.column_stack([X, np.full(len(X), 7.0)]))
    assert check(model, np.column_stack([X, np.full(len(X), 7.0)])).holds
    np.testing.assert_allclose(model.parameters_[:, :3], without.parameters_, rtol=2e-3)
    np.testing.assert_allclose(model.parameters_[:, 3], 7.0, rtol=1e-12)


def test_one_far_outlier_has_a_component_of_its_own():
    X = table("gaussian", "poisson")
    X[7, 0] = 1e12
    model = Mixture(["gaussian", "poisson"], 3, smoothing=0.1, random_state=0).fit(X)
    assert check(model, X).holds
    alone = model.predict(X)[7]
    assert (model.predict(X) == alone).sum() == 1
    assert np.delete(model.parameters_[:, 0], alone).max() < 50


def test_maximum_likelihood_may_say_never():
    """Without imagined rows an outcome that no component ever had is impossible, and is said to be."""
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    model = Mixture("categorical", 1, smoothing=0).fit(np.vstack([X, [[2.0]]]), sample_weight=[1, 1, 1, 1, 0])
    assert model.parameters_.tolist() == [[0.5, 0.5]]
    zeros = Mixture("poisson", 1, smoothing=0).fit(np.zeros((3, 1)))
    assert zeros.score_samples([[0.0], [2.0]]).tolist() == [0.0, -np.inf]
    assert Mixture("poisson", 1).fit(np.zeros((3, 1))).score_samples([[2.0]]) > -20  # smoothed: unlikely


@pytest.mark.parametrize(
    ("family", "X", "words"),
    [
        ("poisson", [[1.5], [2.0]], "1.5 in row 0 of column 0; wanted whole numbers"),
        ("gamma", [[1.0], [0.0]], "0 in row 1 of column 0; wanted positive numbers"),
        ("gamma", [[2.0, 1.0], [3.0, 1.0]], r"all equal \(variance 0\) in column 1"),
        ("exponential", [[0.0], [0.0]], "a mean of 0 in column 0"),
        ("categorical", [[0.0], [1e6]], "class number 1e.06 in column 0"),
        ("bernoulli", [[0.0, np.nan], [1.0, np.nan]], "column 1 of X without a single value"),
        ("tweedie", [[0.0], [1.0]], "family 'tweedie'; wanted one of bernoulli, beta"),
        (MultivariateGaussian, [[0.0], [1.0]], "For vectors use GaussianMixture"),
        (Binomial, [[0.0], [1.0]], "give a member"),
        (["poisson"], [[0.0, 1.0], [1.0, 1.0]], "1 families; wanted one for each of the 2 columns"),
        ({"a": "poisson"}, [[0.0], [1.0]], r"families for the columns \['a'\]"),
        ("gaussian", [[0.0]], "fewer rows than components"),
        ("gaussian", [[np.inf], [0.0]], "infinity in row 0"),
        ("gaussian", [[1e200], [0.0], [1.0], [2.0]], "values so large that their squares overflow"),
    ],
)
def test_what_cannot_be_used_is_named(family, X, words):
    with pytest.raises(DataError, match=words):
        Mixture(family).fit(X)


@pytest.mark.parametrize(
    "bad", [{"smoothing": -1.0}, {"smoothing": "auto"}, {"init_params": "best"}, {"parameters_init": [[1.0]]}]
)
def test_settings_that_cannot_be_used(bad):
    ((name, _),) = bad.items()
    with pytest.raises(DataError, match=name):
        Mixture("poisson", **bad).fit([[1.0], [2.0]])


def test_a_start_from_which_components_never_part():
    with pytest.warns(ConvergenceWarning, match="component 0 is the same as 1"):
        model = Mixture("poisson", parameters_init=[[2.0], [2.0]]).fit(table("poisson"))
    assert model.certificate_.holds  # stationary it is
    assert model.certificate_.facts == {"component 0": "is the same as 1"}


def test_a_start_from_some_of_many_rows():
    X = table("poisson", "gamma", n=300)
    some = tuned(Mixture(["poisson", "gamma"], tol=1e-10, random_state=0), sample_rows=40).fit(X)
    every = Mixture(["poisson", "gamma"], tol=1e-10, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(some.weights_), np.sort(every.weights_), rtol=1e-3)
    with pytest.raises(DataError, match=r"among every 8th row; .* give parameters_init"):
        tuned(Mixture("poisson"), sample_rows=40).fit(X[:, :1], sample_weight=np.arange(300) % 8 == 3)


def test_a_start_that_is_no_member():
    with pytest.raises(DataError, match="a finite rate of at least 0"):
        Mixture("poisson", parameters_init=[[-1.0], [2.0]]).fit([[1.0], [2.0]])


def test_a_class_that_was_never_seen():
    model = Mixture("categorical", 1).fit([[0.0], [1.0]])
    with pytest.raises(DataError, match="2 in row 0 of column 0; wanted class numbers from 0 to 1"):
        model.predict([[2.0]])


def test_rows_without_entries_or_weight_do_not_count():
    X = table("poisson", "gaussian")
    more = np.vstack([X, np.full((3, 2), np.nan), [[9e5, -1e9]]])
    w = np.r_[np.ones(len(X) + 3), 0.0]
    start = [[2.0, 3.0, 2.0], [8.0, 12.0, 9.0]]
    alone, beside = (
        Mixture(["poisson", "gaussian"], parameters_init=start).fit(rows, sample_weight=weights)
        for rows, weights in ((X, None), (more, w))
    )
    np.testing.assert_allclose(alone.parameters_, beside.parameters_, rtol=1e-12)
    assert alone.certificate_.objective == pytest.approx(beside.certificate_.objective, rel=1e-13)


def test_names_of_families_are_checked():
    X = table("poisson", Binomial(0.5, n=7), "gaussian")
    model = Mixture({0: Poisson, 1: Binomial(0.5, n=7), 2: "gaussian"}, random_state=0).fit(X)
    assert audit(model, X).holds
    model.families_ = np.array(["geometric", *model.families_[1:]], dtype=object)
    assert "families_ other than family" in audit(model, X).failures()[0]


@pytest.mark.parametrize("name", ["loglikelihood_", "lower_bound_", "lower_bounds_"])
def test_what_a_mixture_reports_of_itself_is_checked(name):
    X = np.random.default_rng(0).poisson([[2.0, 8.0]] * 40 + [[9.0, 1.0]] * 40)
    model = Mixture("poisson", random_state=0).fit(X)
    assert audit(model, X).holds
    setattr(model, name, getattr(model, name) + 0.1)
    assert not audit(model, X).holds
