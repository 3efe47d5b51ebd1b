"""Families fitted to samples: moments matched, certificates, weights, priors, files. Peer: scipy.stats."""

import math
from itertools import product

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from certifit import DataError, as_rows
from certifit.checkers.families.moment_matching import certify_family
from certifit.families import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    InverseGaussian,
    MultivariateGaussian,
    Poisson,
    Prior,
    SphericalGaussian,
)
from certifit.rows.rows import ArrayRows
from tests.families.family_members import MEMBERS, close, drawn, each_family, pack, unpack


@each_family
def test_a_fit_matches_its_moments_and_no_neighbour_is_likelier(family):
    known = MEMBERS[family][0].known_values
    x = drawn(family)
    fit = family.fit(x, **known)
    member = fit.member
    assert fit.certificate.kind == "exact"
    assert fit.certificate.holds, str(fit.certificate)
    assert fit.n == len(x)
    close(fit.log_likelihood, member.log_density(x).sum())
    sd = np.sqrt(np.diag(member.T_covariance()))
    assert (np.abs(member.T(x).mean(axis=0) - member.mean_parameters) <= 1e-10 * sd).all()
    theta = pack(member)
    for j, sign in product(range(len(theta)), (-1, 1)):
        near = theta.copy()
        near[j] += sign * 1e-3 / math.sqrt(member.fisher_information()[j, j])
        assert unpack(member, near).log_density(x).sum() < fit.log_likelihood


def test_fits_agree_with_scipy():
    x = drawn(Gamma)
    shape, _, scale = stats.gamma.fit(x, floc=0)
    member = Gamma.fit(x).member
    close([member.shape, member.rate], [shape, 1 / scale], rtol=1e-7)
    x = drawn(Beta)
    a, b, _, _ = stats.beta.fit(x, floc=0, fscale=1)
    member = Beta.fit(x).member
    close([member.a, member.b], [a, b], rtol=1e-7)
    x = drawn(InverseGaussian)
    member = InverseGaussian.fit(x).member
    close([member.mean, 1 / member.shape], [x.mean(), (1 / x).mean() - 1 / x.mean()], rtol=1e-12)
    x = drawn(MultivariateGaussian)
    close(MultivariateGaussian.fit(x).member.covariance, np.cov(x.T, bias=True), rtol=1e-12)
    close(MultivariateGaussian.fit(x, unbiased=True).member.covariance, np.cov(x.T), rtol=1e-12)


@each_family
def test_every_fitted_parameter_that_is_changed_breaks_the_certificate(family):
    known = MEMBERS[family][0].known_values
    x = drawn(family)
    rows = as_rows(np.asarray(x).reshape(len(x), -1))
    fit = family.fit(rows, **known)
    theta = pack(fit.member)
    for j in range(len(theta)):
        wrong = theta.copy()
        wrong[j] *= 1 + 1e-6
        parameters = unpack(fit.member, wrong).parameters
        certificate = certify_family(family.__name__, parameters, rows, fit.log_likelihood)
        assert not certificate.checks[0].passed, (family, j)
    honest = certify_family(family.__name__, fit.member.parameters, rows, fit.log_likelihood)
    assert honest.holds
    liar = certify_family(family.__name__, fit.member.parameters, rows, fit.log_likelihood * (1 + 1e-9))
    assert not liar.holds


@each_family
def test_weight_two_is_the_row_twice_and_blocks_merge(family):
    known = MEMBERS[family][0].known_values
    x = np.asarray(drawn(family, 90))
    w = np.arange(90) % 3
    once = family.fit(x, sample_weight=w, **known)
    twice = family.fit(np.repeat(x, w, axis=0), **known)
    assert once.n == twice.n == 90
    assert once.certificate.holds
    close(pack(once.member), pack(twice.member), rtol=1e-10, atol=1e-13)
    close(once.log_likelihood, twice.log_likelihood, rtol=1e-11)
    rows = ArrayRows(x.reshape(90, -1), w=w.astype(float))
    rows.block_rows = 8
    blocks = family.fit(rows, **known)
    assert blocks.certificate.holds
    close(pack(blocks.member), pack(once.member), rtol=1e-10, atol=1e-13)


@each_family
def test_from_a_file_as_in_memory(family, tmp_path):
    known = MEMBERS[family][0].known_values
    x = np.asarray(drawn(family, 60)).reshape(60, -1)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(x.shape[1])}), path)
    stored = family.fit(path, **known)
    assert stored.certificate.holds
    assert stored.member == family.fit(x, **known).member
    assert family.fit(da.from_array(x, chunks=(32, -1)), **known).certificate.holds


@each_family
def test_float32_rows(family):
    """Sums are float64 whatever the rows are."""
    known = MEMBERS[family][0].known_values
    assert family.fit(np.asarray(drawn(family, 60), np.float32), **known).certificate.holds


def test_rows_of_weight_zero_are_not_there():
    w = [0, 1, 1, 2]
    for family, nothing, x in (
        (Poisson, -1.5, [1, 2, 4]),
        (Gamma, -3.0, [1.0, 2.0, 4.0]),
        (Gaussian, 1e200, [1, 2, 4]),
    ):
        fit = family.fit([nothing, *x], sample_weight=w)
        assert fit.certificate.holds
        close(pack(fit.member), pack(family.fit(x, sample_weight=w[1:]).member))
    with pytest.raises(DataError, match="-1 in row 3"):
        Poisson.fit([-1, 0, 2, -1], sample_weight=w)


def test_rare_events_keep_their_digits():
    """One success in 3e9 trials, whichever row comes first."""
    assert Bernoulli.fit([1, 0], sample_weight=[1, 3e9]).member.p == 1 / (3e9 + 1)
    assert Categorical.fit([0, 1], sample_weight=[3e9, 1]).member.p[1] == 1 / (3e9 + 1)


def test_numbers_come_in_many_shapes():
    expected = Poisson.fit(np.array([1.0, 2.0, 6.0])).member
    column = pd.DataFrame({"x": [1, 2, 6]})
    series = pd.Series([1, 2, 6]), pd.Series([1, 2, 6], name="x"), pl.Series("x", [1, 2, 6])
    for x in ([1, 2, 6], (1, 2, 6), [[1], [2], [6]], *series, column, da.from_array(np.array([1.0, 2.0, 6.0]))):
        assert Poisson.fit(x).member == expected
    with pytest.raises(DataError, match="one column"):
        Poisson.fit([[1, 2], [3, 4]])


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("family", [Gamma, InverseGaussian, Beta, Gaussian, Exponential], ids=lambda f: f.__name__)
def test_method_of_moments(family, unbiased):
    x = drawn(family)
    if unbiased and family is Exponential:
        with pytest.raises(DataError, match="unbiased"):
            family.fit(x, method="moments", unbiased=True)
        return
    fit = family.fit(x, method="moments", unbiased=unbiased)
    assert fit.certificate.holds
    close(fit.member.mean, x.mean())
    if family is not Exponential:
        close(fit.member.variance, x.var(ddof=int(unbiased)), rtol=1e-11)
        assert ("(n - 1)/n" in fit.note) is not unbiased


def test_method_of_moments_for_shares():
    x = drawn(Dirichlet)
    fit = Dirichlet.fit(x, method="moments")
    assert fit.certificate.holds
    close(fit.member.mean, x.mean(axis=0))
    close(np.trace(fit.member.covariance), x.var(axis=0).sum())
    changed = certify_family("Dirichlet", {"a": fit.member.a * (1 + 1e-6)}, as_rows(x), fit.log_likelihood, "moments")
    assert not changed.holds


@pytest.mark.parametrize("family", [Gaussian, DiagonalGaussian, SphericalGaussian, MultivariateGaussian])
def test_the_variance_is_biased_unless_asked(family):
    x = np.asarray(drawn(family, 5))
    biased, unbiased = family.fit(x), family.fit(x, unbiased=True)
    assert biased.certificate.holds
    assert unbiased.certificate.holds
    assert "unbiased=True" in biased.note
    assert "unbiased=True" in str(biased)
    assert unbiased.note == ""
    for name in ("variance", "covariance"):
        if hasattr(biased.member, name):
            close(getattr(unbiased.member, name), np.asarray(getattr(biased.member, name)) * 5 / 4)
    with pytest.raises(DataError, match="needs two rows"):
        family.fit(x[:1], unbiased=True)


def test_a_small_variance_far_from_zero():
    z = np.random.default_rng(0).normal(size=5000)
    x = 1e8 + 1e-4 * np.round(z * 2**10) / 2**10
    for family, table in ((Gaussian, x), (DiagonalGaussian, np.column_stack([x, z])), (MultivariateGaussian, None)):
        X = np.column_stack([x, z]) if table is None else table
        fit = family.fit(X)
        assert fit.certificate.holds, str(fit.certificate)
        first = fit.member.covariance[0, 0] if family is not Gaussian else fit.member.variance
        close(first, np.var(x - 1e8), rtol=1e-12)
    y = 1e8 + z
    fit = Gamma.fit(y)
    assert fit.certificate.holds
    close(fit.member.shape, 1e16 / z.var(), rtol=1e-6)
    assert InverseGaussian.fit(y).certificate.holds


@each_family
def test_a_prior_is_imagined_rows(family):
    member = MEMBERS[family][0]
    x = drawn(family, 100)
    imagined = family.from_mean(member.mean_parameters, **member.known_values)
    fit = family.fit(x, prior=Prior(25, imagined.mean_parameters), **member.known_values)
    assert fit.certificate.holds, str(fit.certificate)
    blended = (100 * member.T(x).mean(axis=0) + 25 * member.mean_parameters) / 125
    close(fit.member.mean_parameters, blended, rtol=1e-10)
    rows = as_rows(np.asarray(x).reshape(100, -1))
    assert not certify_family(family.__name__, fit.member.parameters, rows, fit.log_likelihood).holds


def test_a_prior_mends_a_sample_without_spread():
    for family in (Gaussian, Gamma, InverseGaussian, Beta):
        x = np.full(5, MEMBERS[family][0].mean)
        assert family.fit(x, prior=Prior(2, MEMBERS[family][0].mean_parameters)).certificate.holds
