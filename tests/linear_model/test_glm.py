"""Generalised linear models: known solutions, agreement with other libraries, proofs, and degenerate tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse, stats
from sklearn import linear_model

import certifit
from certifit import (
    DataError,
    ElasticNet,
    GammaRegressor,
    GeneralizedLinearRegressor,
    Lasso,
    LinearRegression,
    NoSolutionError,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from certifit.linear_model.glm.glm import CollinearWarning

RNG = np.random.default_rng(3)
N, D = 300, 5
X = RNG.normal(size=(N, D)) * [1.0, 0.5, 2.0, 1.0, 1.0] + [0.0, 5.0, -3.0, 1.0, 0.0]
ETA = 0.5 + X @ [0.3, -0.2, 0.1, 0.05, 0.0]
MU = np.exp(ETA)
TARGETS = {
    "gaussian": ETA + RNG.normal(size=N),
    "binomial": (RNG.random(N) < 1 / (1 + np.exp(-ETA))).astype(float),
    "poisson": RNG.poisson(MU).astype(float),
    "gamma": RNG.gamma(2.0, MU / 2),
    "inverse_gaussian": RNG.wald(MU, 5.0),
    "negative_binomial": RNG.negative_binomial(2, 2 / (2 + MU)).astype(float),
    "tweedie": np.where(RNG.random(N) < 0.3, 0.0, RNG.gamma(2.0, MU / 2)),
}
PAIRS = [
    ("gaussian", "identity"),
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("inverse_gaussian", "log"),
    ("inverse_gaussian", "inverse_squared"),
    ("negative_binomial", "log"),
    ("tweedie", "log"),
]
every_pair = pytest.mark.parametrize(("family", "link"), PAIRS)


def glm(family="gaussian", link="auto", **params):
    return GeneralizedLinearRegressor(family, link, theta=2.0, **params)


def target(family, link):
    return TARGETS[family] + (3.0 if (family, link) == ("poisson", "identity") else 0.0)


def log_density(family, y, mu):
    """From scipy.stats, with dispersion 1 where it is free (it does not move the maximum over the coefficients)."""
    if family == "gaussian":
        return stats.norm.logpdf(y, mu)
    if family == "binomial":
        return stats.bernoulli.logpmf(y.astype(int), mu)
    if family == "poisson":
        return stats.poisson.logpmf(y.astype(int), mu)
    if family == "gamma":
        return stats.expon.logpdf(y, scale=mu)
    if family == "inverse_gaussian":
        return stats.invgauss.logpdf(y, mu)
    return stats.nbinom.logpmf(y.astype(int), 2, 2 / (2 + mu))


@pytest.mark.parametrize(("family", "link"), [pair for pair in PAIRS if pair[0] != "tweedie"])  # no density in scipy
def test_no_small_move_raises_the_likelihood(family, link):
    """The maximum, by scipy.stats densities: all directions and signs."""
    y = target(family, link)
    model = glm(family, link).fit(X, y)
    base = log_density(family, y, model.predict(X)).sum()
    means = {"coef": model.coef_.copy(), "b": model.intercept_}
    errors = model.standard_errors_
    for j in range(D + 1):
        for sign in (-1, 1):
            moved = glm(family, link).fit(X, y)
            if j == 0:
                moved.intercept_ = means["b"] + sign * 0.01 * errors[0]
            else:
                moved.coef_ = means["coef"] + sign * 0.01 * errors[j] * (np.arange(D) == j - 1)
            assert log_density(family, y, moved.predict(X)).sum() < base


def test_tweedie_scores_are_zero():
    """The derivative of the half deviance in the score, μ^(2-p) - y μ^(1-p), is orthogonal to every column."""
    y = TARGETS["tweedie"]
    mu = glm("tweedie", "log").fit(X, y).predict(X)
    scores = np.column_stack([np.ones(N), X]).T @ (mu**0.5 - y * mu**-0.5)
    np.testing.assert_allclose(scores, 0.0, atol=1e-6)


@every_pair
def test_certificate(family, link):
    """Proved where there is a bound without a penalty, `stationary` elsewhere; both stop holding when perturbed."""
    y = target(family, link)
    model = glm(family, link).fit(X, y)
    proved = (family, link) in {p for p in PAIRS if p[1] in ("logit", "log", "identity")} - {
        ("poisson", "identity"),
        ("inverse_gaussian", "log"),
    }
    assert model.certificate_.kind == ("optimal" if proved else "stationary")
    assert model.certificate_.holds
    again = certifit.audit(model, X, y)
    assert again.holds
    assert again.kind == model.certificate_.kind
    assert again.objective == pytest.approx(model.certificate_.objective, rel=1e-10)
    model.coef_ = model.coef_ * 1.01
    assert not certifit.audit(model, X, y).holds


@every_pair
def test_penalised_certificate(family, link):
    """With a ridge every convex pair is proved by duality; the checker agrees and sabotage shows."""
    y = target(family, link)
    model = glm(family, link, alpha=0.1).fit(X, y)
    convex = (family, link) != ("inverse_gaussian", "log")
    assert model.certificate_.kind == ("optimal" if convex else "stationary")
    assert model.certificate_.holds
    assert certifit.audit(model, X, y).holds
    model.coef_ = model.coef_[::-1].copy()
    assert not certifit.audit(model, X, y).holds


PEERS = [
    (Ridge(3.0), linear_model.Ridge(3.0), "gaussian"),
    (Lasso(0.1), linear_model.Lasso(0.1, tol=1e-12), "gaussian"),
    (ElasticNet(0.1, l1_ratio=0.3), linear_model.ElasticNet(0.1, l1_ratio=0.3, tol=1e-12), "gaussian"),
    (LinearRegression(), linear_model.LinearRegression(), "gaussian"),
    (LinearRegression(fit_intercept=False), linear_model.LinearRegression(fit_intercept=False), "gaussian"),
    (PoissonRegressor(0.1), linear_model.PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000), "poisson"),
    (GammaRegressor(0.1), linear_model.GammaRegressor(alpha=0.1, tol=1e-10, max_iter=1000), "gamma"),
    (
        TweedieRegressor(power=1.5, alpha=0.1),
        linear_model.TweedieRegressor(power=1.5, alpha=0.1, tol=1e-10, max_iter=1000),
        "tweedie",
    ),
]


@pytest.mark.parametrize(("ours", "theirs", "family"), PEERS, ids=lambda v: str(v)[:30])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(ours, theirs, family, weighted):
    y, w = TARGETS[family], RNG.integers(0, 4, N).astype(float) if weighted else None
    ours = ours.set_params(tol=1e-13).fit(X, y, w)
    theirs.fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-6)
    assert ours.score(X, y, w) == pytest.approx(theirs.score(X, y, w), abs=1e-6)
    assert certifit.audit(theirs, X, y, w).holds
    bound = ours.certificate_.bound
    assert certifit.audit(theirs, X, y, w).objective >= bound - 1e-12 * abs(bound)  # honesty
    theirs.coef_ = theirs.coef_ + 0.05
    assert not certifit.audit(theirs, X, y, w).holds


@pytest.mark.parametrize("family", ["gaussian", "poisson", "binomial", "gamma"])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_elastic_net_zeroes_and_subgradients(family, l1_ratio):
    """At the minimum |gradient| <= λ₁ where β = 0 and gradient = -λ₁ sign β - λ₂ β elsewhere."""
    y, alpha = TARGETS[family], 0.05
    model = glm(family, alpha=alpha, l1_ratio=l1_ratio, tol=1e-13).fit(X, y)
    mu = model.predict(X)
    u = (mu - y) / (mu if family == "gamma" else 1.0)  # derivative of the half deviance in the score
    gradient = X.T @ u / N + alpha * (1 - l1_ratio) * model.coef_
    zero = model.coef_ == 0
    assert (np.abs(gradient[zero]) <= alpha * l1_ratio * (1 + 1e-5)).all()
    np.testing.assert_allclose(gradient[~zero], -alpha * l1_ratio * np.sign(model.coef_[~zero]), rtol=1e-4)
    assert certifit.audit(model, X, y).holds
    strong = glm(family, alpha=10.0, l1_ratio=1.0).fit(X, y)
    assert not strong.coef_.any()
    assert strong.predict(X)[0] == pytest.approx(y.mean(), rel=1e-5)


def test_l1_with_more_columns_than_rows():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(40, 120))
    y = wide[:, 0] - 2 * wide[:, 1] + 0.1 * rng.normal(size=40)
    ours = Lasso(0.1, tol=1e-9).fit(wide, y)
    theirs = linear_model.Lasso(0.1, tol=1e-12, max_iter=100_000).fit(wide, y)
    assert ours.certificate_.holds
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_offset_exposure_and_trials():
    rng = np.random.default_rng(1)
    t = rng.uniform(0.5, 3.0, N)
    counts = rng.poisson(t * MU).astype(float)
    a = glm("poisson").fit(X, counts, exposure=t)
    b = glm("poisson").fit(X, counts, offset=np.log(t))
    rate = glm("poisson").fit(X, counts / t, t)  # the textbook equivalence: rates weighted by exposure
    for other in (b, rate):
        np.testing.assert_allclose(a.coef_, other.coef_, rtol=1e-7)
    np.testing.assert_allclose(a.predict(X, exposure=t), np.exp(np.log(t) + X @ a.coef_ + a.intercept_))
    assert certifit.audit(a, X, counts, exposure=t).holds
    assert not certifit.audit(a, X, counts).holds
    m = rng.integers(1, 10, N).astype(float)
    wins = rng.binomial(m.astype(int), 1 / (1 + np.exp(-ETA))).astype(float)
    grouped = glm("binomial").fit(X, wins, trials=m)
    rows = np.repeat(np.arange(N), m.astype(int))
    order = np.concatenate([np.arange(int(k)) < s for k, s in zip(m, wins, strict=True)]).astype(float)
    single = glm("binomial").fit(X[rows], order)
    np.testing.assert_allclose(grouped.coef_, single.coef_, rtol=1e-8)
    np.testing.assert_allclose(grouped.standard_errors_, single.standard_errors_, rtol=1e-8)


def test_weight_two_is_the_row_twice():
    w = RNG.integers(0, 3, N)
    for family in ("gaussian", "poisson", "gamma"):
        y = TARGETS[family]
        a, b = glm(family).fit(X, y, w), glm(family).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
        np.testing.assert_allclose(a.standard_errors_, b.standard_errors_, rtol=1e-9)
        assert a.aic_ == pytest.approx(b.aic_)
        assert a.df_resid_ == b.df_resid_


def test_least_squares_inference_by_the_textbook():
    y = TARGETS["gaussian"]
    A = np.column_stack([np.ones(N), X])
    beta, rss = np.linalg.lstsq(A, y)[:2]
    s2 = rss[0] / (N - D - 1)
    errors = np.sqrt(s2 * np.diag(np.linalg.inv(A.T @ A)))
    model = LinearRegression().fit(X, y)
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), beta, rtol=1e-10)
    np.testing.assert_allclose(model.standard_errors_, errors, rtol=1e-9)
    np.testing.assert_allclose(model.p_values_, 2 * stats.t.sf(np.abs(beta / errors), N - D - 1), rtol=1e-7)
    half = stats.t.ppf(0.95, N - D - 1) * errors
    np.testing.assert_allclose(
        model.confidence_intervals(0.9), np.column_stack([beta - half, beta + half]), rtol=1e-9
    )
    assert model.dispersion_ == pytest.approx(s2)
    assert model.loglikelihood_ == pytest.approx(stats.norm.logpdf(y, A @ beta, np.sqrt(rss[0] / N)).sum())
    r = y - A @ beta
    bread = np.linalg.inv(A.T @ A)
    robust = LinearRegression(covariance="sandwich").fit(X, y)
    np.testing.assert_allclose(robust.covariance_, bread @ (A.T * r**2 @ A) @ bread, rtol=1e-8)
    groups = np.arange(N) % 17
    scores = np.array([(A * r[:, None])[groups == g].sum(axis=0) for g in range(17)])
    meat = scores.T @ scores * 17 / 16 * (N - 1) / (N - D - 1)
    clustered = LinearRegression(covariance="clustered").fit(X, y, clusters=groups)
    np.testing.assert_allclose(clustered.covariance_, bread @ meat @ bread, rtol=1e-8)
    assert "clustered" in clustered.summary()


def test_summary_reads_like_a_table():
    text = glm("poisson").fit(X, TARGETS["poisson"]).summary()
    for word in ("poisson, log", "deviance", "AIC", "intercept", "x4", "std err", "P>|z|", "0.975]", "optimal"):
        assert word in text


@pytest.mark.parametrize(
    ("params", "reason"), [({"alpha": 0.1}, "penalised"), ({"covariance": None}, "none were asked for")]
)
def test_standard_errors_are_refused_with_the_reason(params, reason):
    model = glm("poisson", **params).fit(X, TARGETS["poisson"])
    with pytest.raises(DataError, match=reason):
        _ = model.standard_errors_
    assert reason in model.summary()


def test_collinear_columns_are_named_and_left_out():
    extra = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(N), X[:, 2]])
    y = TARGETS["poisson"]
    with pytest.warns(CollinearWarning, match="column 5, column 6, column 7"):
        model = glm("poisson").fit(extra, y)
    plain = glm("poisson").fit(X, y)
    np.testing.assert_array_equal(model.collinear_, [5, 6, 7])
    np.testing.assert_allclose(model.coef_, np.append(plain.coef_, [0, 0, 0]), atol=1e-8)
    np.testing.assert_allclose(model.standard_errors_[:6], plain.standard_errors_, rtol=1e-6)
    assert np.isnan(model.standard_errors_[6:]).all()
    assert "left out" in model.summary()
    with pytest.raises(DataError, match="column 5"):
        glm("poisson", collinear="refuse").fit(extra, y)


def test_more_columns_than_rows():
    wide = RNG.normal(size=(6, 10))
    y = RNG.normal(size=6)
    with pytest.warns(CollinearWarning):
        model = LinearRegression().fit(wide, y)
    np.testing.assert_allclose(model.predict(wide), y, atol=1e-10)
    with pytest.raises(DataError, match="nothing is left"):
        _ = model.standard_errors_


def test_offsets_and_scales_do_not_cost_digits():
    """Shifts that are exact in floating point and powers of two as scales: the same fit, to rounding."""
    y = TARGETS["gaussian"]
    grid = np.round(X * 2**20) / 2**20
    plain = LinearRegression().fit(grid, y)
    moved = LinearRegression().fit(grid + 2.0**26, y)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-9)
    tiny = LinearRegression().fit(grid * 2.0**-30, y)
    np.testing.assert_allclose(tiny.coef_ * 2.0**-30, plain.coef_, rtol=1e-9)
    far = LinearRegression().fit(grid, y + 2.0**26)
    np.testing.assert_allclose(far.coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "binomial"])
@pytest.mark.parametrize("size", [2.0**-700, 2.0**700])
def test_columns_whose_squares_are_no_numbers(family, size):
    """Powers of two: exactly the same fit in other units."""
    y = TARGETS[family]
    plain, model = glm(family).fit(X, y), glm(family).fit(X * size, y)
    np.testing.assert_allclose(model.coef_ * size, plain.coef_, rtol=1e-6)
    assert model.certificate_.holds
    assert certifit.audit(model, X * size, y).holds


def test_numbers_at_the_ends_of_the_range_are_refused():
    with pytest.raises(DataError, match="coefficients are too large"):
        glm("poisson").fit(X * 1e-310, TARGETS["poisson"])
    with pytest.raises(DataError, match="squares overflow"):
        glm("poisson", alpha=0.1).fit(X * 1e200, TARGETS["poisson"])
    with pytest.raises(DataError, match="squares overflow"):
        Ridge().fit(X * 1e200, TARGETS["gaussian"])
    for size in (1e200, 1e-200):
        with pytest.raises(DataError, match="Change the unit"):
            LinearRegression().fit(X, TARGETS["gaussian"] * size)
    with pytest.raises(DataError, match="rescale the columns"):
        _ = glm("poisson").fit(X * 2.0**-700, TARGETS["poisson"]).standard_errors_


def test_nearly_collinear_columns_keep_the_digits_there_are():
    """A Vandermonde matrix, against rational arithmetic."""
    from fractions import Fraction

    x = np.arange(21) / 4
    A = np.vander(x, 9, increasing=True)[:, 1:]
    y = np.round(np.sin(x) * 1024) / 1024
    exact = _solve_exactly([[Fraction(v) for v in row] for row in np.column_stack([np.ones(21), A])], y)
    model = LinearRegression().fit(A, y)
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), exact, rtol=1e-8)


def _solve_exactly(A, y):
    """Normal equations in fractions."""
    from fractions import Fraction

    m = len(A[0])
    M = [[sum(row[i] * row[j] for row in A) for j in range(m)] for i in range(m)]
    b = [sum(row[i] * Fraction(float(v)) for row, v in zip(A, y, strict=True)) for i in range(m)]
    for i in range(m):
        for k in range(i + 1, m):
            f = M[k][i] / M[i][i]
            M[k] = [a - f * c for a, c in zip(M[k], M[i], strict=True)]
            b[k] -= f * b[i]
    x = [Fraction(0)] * m
    for i in reversed(range(m)):
        x[i] = (b[i] - sum(M[i][j] * x[j] for j in range(i + 1, m))) / M[i][i]
    return np.array([float(v) for v in x])


def test_perfect_fit():
    model = LinearRegression().fit(X, X @ np.arange(1.0, 6.0) + 3)
    np.testing.assert_allclose(model.coef_, np.arange(1.0, 6.0), rtol=1e-12)
    assert model.certificate_.holds


def test_no_maximum_is_an_error_with_its_proof():
    y = (X[:, 0] > 0).astype(float)
    for link in ("logit", "probit", "cloglog"):
        with pytest.raises(NoSolutionError, match="no maximum") as caught:
            glm("binomial", link).fit(X, y)
        assert caught.value.certificate.kind == "impossible"
        assert caught.value.certificate.proved
    group = (np.arange(N) < 20).astype(float)[:, None]
    with pytest.raises(NoSolutionError):
        glm("poisson").fit(group, np.where(group[:, 0] > 0, 0.0, TARGETS["poisson"]))
    with pytest.raises(NoSolutionError):
        glm("poisson").fit(X, np.zeros(N))
    assert glm("binomial", alpha=1e-3).fit(X, y).certificate_.holds


@pytest.mark.parametrize(
    ("family", "bad"), [("poisson", -1.0), ("gamma", 0.0), ("binomial", 1.5), ("inverse_gaussian", -2.0)]
)
def test_targets_outside_the_family(family, bad):
    y = TARGETS[family].copy()
    y[7] = bad
    with pytest.raises(DataError, match=f"{bad:g} in row 7"):
        glm(family).fit(X, y)
    w = np.ones(N)
    w[7] = 0.0  # a row that does not count may hold anything
    assert glm(family).fit(X, y, w).certificate_.holds


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"family": "normal"}, "family='normal'"),
        ({"link": "sqrt"}, "link='sqrt'"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"l1_ratio": 2.0}, "l1_ratio=2.0"),
        ({"family": "negative_binomial", "theta": 0.0}, "theta=0.0"),
        ({"family": "tweedie", "power": 0.5}, "power=0.5"),
        ({"covariance": "hc9"}, "covariance='hc9'"),
        ({"collinear": "keep"}, "collinear='keep'"),
    ],
)
def test_settings(params, message):
    with pytest.raises(DataError, match=message):
        GeneralizedLinearRegressor(**params).fit(X, TARGETS["poisson"])


def test_bad_exposure_trials_and_mixed_names():
    y = TARGETS["poisson"]
    with pytest.raises(DataError, match="exposure -1 in row 3"):
        glm("poisson").fit(X, y, exposure=np.where(np.arange(N) == 3, -1.0, 1.0))
    with pytest.raises(DataError, match="number of successes 2 in row 0"):
        glm("binomial").fit(X, np.full(N, 2.0), trials=np.ones(N))
    with pytest.raises(DataError, match="all of them as names"):
        glm("poisson").fit(X, y, offset="t")
    with pytest.raises(DataError, match="clusters"):
        glm("poisson", covariance="clustered").fit(X, y)


def test_every_source_gives_the_same_answer(tmp_path):
    t = np.linspace(1, 2, N)
    columns = {f"c{j}": X[:, j] for j in range(D)} | {"y": TARGETS["poisson"], "t": t}
    table = pa.table(columns)
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    reference = glm("poisson").fit(X, TARGETS["poisson"], exposure=t)
    frame = table.to_pandas()
    for source in (table, path, frame):
        model = glm("poisson").fit(source, "y", exposure="t")
        np.testing.assert_array_equal(model.coef_, reference.coef_)
        np.testing.assert_array_equal(model.standard_errors_, reference.standard_errors_)
        np.testing.assert_allclose(model.predict(source, exposure="t"), reference.predict(X, exposure=t))
    import dask.dataframe as dd

    model = glm("poisson").fit(dd.from_pandas(frame, npartitions=3), "y", exposure="t")
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-10)


def test_sparse_and_float32():
    S = sparse.random_array((N, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
    y = np.random.default_rng(1).poisson(np.exp(S.toarray() @ np.linspace(-1, 1, 20))).astype(float)
    a, b = glm("poisson").fit(S, y), glm("poisson").fit(S.toarray(), y)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-7)
    single = glm("poisson").fit(X.astype(np.float32), TARGETS["poisson"])
    np.testing.assert_allclose(single.coef_, glm("poisson").fit(X, TARGETS["poisson"]).coef_, atol=1e-5)


def test_statsmodels_results_are_audited():
    import statsmodels.api as sm

    A = sm.add_constant(X)
    fits = [
        sm.GLM(TARGETS["poisson"], A, family=sm.families.Poisson()).fit(tol=1e-10),
        sm.GLM(TARGETS["gamma"], A, family=sm.families.Gamma(sm.families.links.Log())).fit(tol=1e-10),
        sm.OLS(TARGETS["gaussian"], A).fit(),
        sm.Logit(TARGETS["binomial"], A).fit(disp=0),
        sm.Poisson(TARGETS["poisson"], A).fit(disp=0),
    ]
    for fit in fits:
        assert certifit.audit(fit).holds
        assert certifit.audit(fit, A, fit.model.endog).holds
    assert not certifit.audit(fits[0], A, TARGETS["poisson"] + 1).holds
