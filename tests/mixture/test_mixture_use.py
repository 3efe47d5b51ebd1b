"""Mixtures of exponential families in use: sources and settings, degenerate tables, and what is refused."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from certifit import DataError, audit
from certifit.families import (
    Binomial,
    Gaussian,
    GaussianFixedVariance,
    MultivariateGaussian,
    NegativeBinomial,
    Poisson,
)
from certifit.mixture.families.mixture import Mixture
from tests.common.tuning import tuned
from tests.mixture.family_tables import MIXED, check, table


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


def test_a_start_from_which_em_never_parts_components():
    """EM alone stays where all components are equal, at a saddle: they are parted, and the fit goes on from there."""
    X = table("poisson")
    model = Mixture("poisson", parameters_init=np.full((2, X.shape[1]), 2.0)).fit(X)
    usual = Mixture("poisson", random_state=0).fit(X)
    np.testing.assert_allclose(model.lower_bound_, usual.lower_bound_, atol=1e-4)
    assert model.certificate_.holds
    assert audit(model, X).holds
    single = Mixture("poisson", 1, smoothing=0.0).fit(X)
    single.set_params(n_components=2)
    single.weights_, single.parameters_ = np.full(2, 0.5), np.repeat(single.parameters_, 2, axis=0)
    words = audit(single, X).failures()
    assert any("a saddle: moving components 0 and 1 apart" in line for line in words)


def test_a_start_from_some_of_many_rows():
    X = table("poisson", "gamma", n=300)
    some = tuned(Mixture(["poisson", "gamma"], tol=1e-10, random_state=0), sample_rows=40).fit(X)
    every = Mixture(["poisson", "gamma"], tol=1e-10, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(some.weights_), np.sort(every.weights_), rtol=1e-3)
    with pytest.raises(DataError, match=r"among every 8th row; .* give parameters_init"):
        tuned(Mixture("poisson"), sample_rows=40).fit(X[:, :1], sample_weight=np.arange(300) >= 297)


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


@pytest.mark.filterwarnings("ignore:Mixture. component")
@pytest.mark.parametrize("seed", range(4))
def test_counts_of_thousands_of_millions_are_judged_up_to_their_rounding(seed):
    X = 7e9 + np.random.default_rng(seed).poisson(2, (16, 5))
    model = Mixture("poisson", random_state=0).fit(X)
    assert model.certificate_.holds
    assert audit(model, X).holds
    model.parameters_ = model.parameters_ * (1 + 1e-5)  # by half a nat a row
    assert not audit(model, X).holds


@pytest.mark.parametrize("family", ["geometric", NegativeBinomial(0.5, 2.0)])
def test_failures_stay_possible_next_to_a_heavy_row_without_any(family):
    # 1 / (1 + mean) is 1 to the last digit, but the imagined row of the second column has failures.
    X, weight = np.array([[0, 0], [0, 0], [1.0, 0]]), [1e12, 1.0, 1.0]
    model = Mixture(family, n_components=1).fit(X, sample_weight=weight)
    assert (model.parameters_ < 1).all()
    assert model.certificate_.objective < 1e-9
    assert audit(model, X, sample_weight=weight).holds
