"""Proofs of generalised linear models: bounds and errors against exact arithmetic, points far from any optimum."""

import copy
import inspect
import pickle
import re
import warnings
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certifit
from certifit import (
    CertificateWarning,
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
    audit,
)
from certifit.checkers.plain.response_conjugates import gain, has_conjugate
from certifit.checkers.plain.response_losses import CONVEX, GlmClaim, loss

N, D = 60, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D)) * [1.0, 30.0, 0.01] + [0.0, 100.0, 0.0]
ETA = 0.5 * X[:, 0] + 0.02 * (X[:, 1] - 100) + 30 * X[:, 2]
TARGETS = {
    "gaussian": ETA + RNG.normal(size=N),
    "poisson": RNG.poisson(np.exp(ETA)).astype(float),
    "gamma": RNG.gamma(3.0, np.exp(ETA) / 3),
}


def solve_exactly(M, b):
    """Gaussian elimination in whatever numbers M and b hold."""
    M, b, m = [list(row) for row in M], list(b), len(b)
    for i in range(m):
        for k in range(i + 1, m):
            f = M[k][i] / M[i][i]
            M[k] = [p - f * q for p, q in zip(M[k], M[i], strict=True)]
            b[k] -= f * b[i]
    x = [b[0] * 0] * m
    for i in reversed(range(m)):
        x[i] = (b[i] - sum(M[i][j] * x[j] for j in range(i + 1, m))) / M[i][i]
    return x


def exact_least_squares(X, y, lam=Fraction(0)):
    """Ridge regression's normal equations with a free intercept, in fractions."""
    A = [[Fraction(float(v)) for v in row] + [Fraction(1)] for row in X]
    t = [Fraction(float(v)) for v in y]
    m = len(A[0])
    M = [[sum(row[i] * row[j] for row in A) + (lam if i == j < m - 1 else 0) for j in range(m)] for i in range(m)]
    return solve_exactly(M, [sum(row[i] * v for row, v in zip(A, t, strict=True)) for i in range(m)])


def exact_log_link(X, y, family, lam, start):
    """Newton's method to 40 digits on half the deviance of poisson or gamma plus lam/2 |β|², as fractions."""
    with localcontext(Context(prec=60)):
        A = [[Decimal(float(v)) for v in row] + [Decimal(1)] for row in X]
        t, theta, lam = [Decimal(float(v)) for v in y], [Decimal(float(v)) for v in start], Decimal(lam)
        m = len(theta)
        for _ in range(60):
            mu = [sum(a * b for a, b in zip(row, theta, strict=True)).exp() for row in A]
            u = [s - v if family == "poisson" else 1 - v / s for s, v in zip(mu, t, strict=True)]
            h = [s if family == "poisson" else v / s for s, v in zip(mu, t, strict=True)]
            ridge = [lam] * (m - 1) + [Decimal(0)]
            g = [sum(c * row[i] for c, row in zip(u, A, strict=True)) + ridge[i] * theta[i] for i in range(m)]
            H = [[sum(c * row[i] * row[k] for c, row in zip(h, A, strict=True)) for k in range(m)] for i in range(m)]
            H = [[v + (ridge[i] if i == k else 0) for k, v in enumerate(row)] for i, row in enumerate(H)]
            step = solve_exactly(H, g)
            theta = [a - s for a, s in zip(theta, step, strict=True)]
            if max(map(abs, step)) < Decimal(10) ** -40:
                return [Fraction(v) for v in theta]
    raise AssertionError("Newton's method did not end")


def assert_within(model, exact, X, y):
    """Each coefficient is as close as the certificates of fit and audit say, and they say enough."""
    stated = [*map(float, model.coef_), float(model.intercept_)]
    for certificate in (model.certificate_, audit(model, X, y)):
        (errors,) = certificate.parameter_error
        assert len(errors) == len(stated)
        for value, truth, error in zip(stated, exact, errors, strict=True):
            assert abs(Fraction(value) - truth) <= Fraction(error)
            assert error <= 2e-3 * abs(float(truth)) + 1e-9


@pytest.mark.parametrize("shift", [0.0, 2.0**20])
def test_least_squares_is_as_close_as_it_says(shift):
    y = TARGETS["gaussian"]
    model = LinearRegression().fit(X + shift, y)
    assert_within(model, exact_least_squares(X + shift, y), X + shift, y)
    sizes = np.abs([*model.coef_, float(model.intercept_)])
    assert (np.array(model.certificate_.parameter_error[0]) < 1e-6 * sizes).all()


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_ridge_is_as_close_as_it_says(alpha):
    y = TARGETS["gaussian"]
    assert_within(Ridge(alpha).fit(X, y), exact_least_squares(X, y, Fraction(alpha)), X, y)


@pytest.mark.parametrize("family", ["poisson", "gamma"])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_log_links_are_as_close_as_they_say(family, alpha):
    y = TARGETS[family]
    model = GeneralizedLinearRegressor(family, alpha=alpha, tol=1e-10).fit(X, y)
    exact = exact_log_link(X, y, family, alpha * N, [*model.coef_, float(model.intercept_)])
    assert_within(model, exact, X, y)


def test_errors_of_a_poor_fit_cover_what_is_missing():
    """Coefficients moved by hand: the error grows with the distance, and no digit is printed that is not proved."""
    y = TARGETS["poisson"]
    model = GeneralizedLinearRegressor("poisson").fit(X, y)
    best = model.coef_.copy()
    for size in (1e-8, 1e-5, 1e-3):
        model.coef_ = best + size * np.abs(best)
        (errors,) = audit(model, X, y).parameter_error
        assert (np.abs(model.coef_ - best) <= errors[:D]).all()
        assert errors[0] < 1e3 * size


def test_the_l1_penalty_alone_claims_no_distance():
    y = TARGETS["gaussian"]
    assert certifit.Lasso(0.1).fit(X, y).certificate_.parameter_error == ()
    assert ElasticNet(0.1).fit(X, y).certificate_.parameter_error != ()


def test_summary_prints_proved_digits_only():
    y = TARGETS["poisson"]
    model = GeneralizedLinearRegressor("poisson").fit(X, y)
    assert f"{model.coef_[0]:.5g}" in model.summary()
    (errors,) = model.certificate_.parameter_error
    wide = tuple(0.02 * abs(v) for v in (*model.coef_, float(model.intercept_)))
    object.__setattr__(model.certificate_, "parameter_error", (wide,))
    assert f"{model.coef_[0]:.5g}" not in model.summary()
    assert re.search(rf"x0 +{model.coef_[0]:.1g} ", str(model.summary()))
    object.__setattr__(model.certificate_, "parameter_error", ())
    assert "coef (unproved)" in model.summary()
    assert errors != wide


# ------------------------------------------------------------------------------------------------- conjugates
@pytest.mark.parametrize(("family", "link"), sorted(CONVEX))
def test_no_score_is_below_the_conjugate(family, link):
    """Fenchel and Young: φ(t) - u t >= g(u) for every t, with equality where u = φ'(t)."""
    claim = GlmClaim(family, link, power=1.5, theta=2.0)
    if not has_conjugate(claim):
        return
    rng = np.random.default_rng(0)
    y = {"binomial": np.array([0.0, 0.3, 1.0]), "gamma": np.array([0.2, 1.0, 7.0])}.get(family, np.array([0.0, 1, 9]))
    y = y + 0.5 if family == "inverse_gaussian" else y
    positive = link in ("inverse", "inverse_squared") or (family, link) == ("poisson", "identity")
    for t0 in rng.gamma(2.0, size=30) if positive else 3 * rng.normal(size=30):
        u = loss(claim, np.full(3, t0), y).u
        value, _ = gain(claim, u, y)
        np.testing.assert_allclose(value, loss(claim, np.full(3, t0), y).phi - u * t0, rtol=1e-9, atol=1e-9)
        for t in rng.gamma(2.0, size=30) if positive else 5 * rng.normal(size=30):
            assert (loss(claim, np.full(3, t), y).phi - u * t >= value - 1e-9 * (1 + np.abs(value))).all()


@pytest.mark.parametrize(
    ("claim", "y"),
    [
        (GlmClaim("gamma", "log"), 0.75),
        (GlmClaim("binomial", "logit"), 0.0),
        (GlmClaim("binomial", "logit"), 1.0),
        (GlmClaim("negative_binomial", "log", theta=1.0), 0.0),
    ],
)
def test_what_small_dual_numbers_gain_has_all_its_digits(claim, y):
    """Beside a row of great weight they are small, and 1 - u has lost most of their digits."""

    def entropy(p):
        return -p * p.ln() if p else Decimal(0)

    for size in (1e-3, 1.0192800608652175e-06, 3.3e-9, 7.7e-13, 0.25, 0.9):
        u = -size if y == 1 else size
        value, terms = gain(claim, np.array([u]), np.array([y]))
        with localcontext() as context:
            context.prec = 60
            U, Y = Decimal(u), Decimal(y)
            if claim.family == "gamma":
                exact = -U * Y.ln() + entropy(1 - U) - U
            else:  # of counts with one failure at y = 0 as of classes: H(u, 1 - u)
                exact = entropy(abs(U)) + entropy(1 - abs(U))
            assert abs(Decimal(float(value[0])) - exact) <= Decimal(4 * 2.0**-52 * float(terms[0]))


def test_outside_the_range_nothing_is_gained():
    for claim, u, y in (
        (GlmClaim("poisson", "log"), -2.0, 1.0),
        (GlmClaim("gamma", "log"), 1.5, 1.0),
        (GlmClaim("binomial", "logit"), 0.5, 1.0),
        (GlmClaim("negative_binomial", "log", theta=2.0), 2.5, 1.0),
        (GlmClaim("gamma", "inverse"), 1.5, 1.0),
    ):
        assert gain(claim, np.array([u]), np.array([y]))[0][0] == -np.inf


# --------------------------------------------------------------------------------------- far from any optimum
@pytest.mark.parametrize("intercept", [400.0, -400.0, 700.0, 1e6])
@pytest.mark.parametrize(
    "model",
    [
        linear_model.GammaRegressor(alpha=0.1),
        linear_model.TweedieRegressor(power=1.5, alpha=0.1),
        linear_model.PoissonRegressor(alpha=0.1),
        GeneralizedLinearRegressor("negative_binomial", alpha=0.1),
    ],
    ids=str,
)
def test_means_that_overflow_are_no_optimum(model, intercept):
    y = TARGETS["gamma"]
    model = copy.deepcopy(model).fit(X / [1, 30, 1], y)
    best = audit(model, X / [1, 30, 1], y, tol=1e-2).objective
    model.intercept_ = intercept
    found = audit(model, X / [1, 30, 1], y)
    assert not found.holds
    assert found.bound <= best


@pytest.mark.filterwarnings("ignore")
def test_negative_means_are_no_optimum():
    import statsmodels.api as sm

    seen = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(60, 2))
        y = rng.gamma(2, np.exp(1.5 * Z[:, 0]) / 2)
        with np.errstate(all="ignore"):
            try:
                fit = sm.GLM(y, sm.add_constant(Z), family=sm.families.Gamma()).fit()
            except ValueError:
                continue
        if (fit.fittedvalues <= 0).any():
            seen += 1
            found = audit(fit)
            assert not found.holds
            assert any("belongs to no mean" in words for words in found.failures())
    assert seen > 3


def test_signs_turned_round_and_large_means():
    y = 2 + RNG.gamma(5.0, size=N)
    model = GeneralizedLinearRegressor("gamma", "inverse").fit(X[:, :1], y)
    assert audit(model, X[:, :1], y).holds
    model.coef_, model.intercept_ = -model.coef_, -model.intercept_
    assert not audit(model, X[:, :1], y).holds
    large = GeneralizedLinearRegressor("inverse_gaussian").fit(X[:, :1], 1e9 * y)
    assert audit(large, X[:, :1], 1e9 * y).holds
    large.intercept_ = large.intercept_ + 0.1
    assert not audit(large, X[:, :1], 1e9 * y).holds


def test_a_bad_model_lends_no_bound():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(8, 60)) * 10.0 ** rng.integers(-4, 4, size=60)
    y = rng.normal(size=8)
    good = linear_model.Ridge(0.1).fit(wide, y)
    bad, half = copy.deepcopy(good), copy.deepcopy(good)
    bad.coef_, half.coef_ = good.coef_ * 1e4, good.coef_ * 2
    table = certifit.compare({"bad": bad, "half": half}, wide, y, show=False)
    assert not any(c.holds for c in table.certificates.values())
    assert audit(bad, wide, y).bound <= audit(good, wide, y).objective


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_nearly_interpolating_ridge(scale):
    rng = np.random.default_rng(2)
    wide, y = rng.normal(size=(20, 50)) * scale, rng.normal(size=20)
    model = Ridge(1e-3).fit(wide, y)
    assert model.certificate_.holds
    assert audit(model, wide, y).holds
    assert audit(linear_model.Ridge(1e-3).fit(wide, y), wide, y).holds
    model.coef_ = model.coef_ * (1 + 1e-3)
    assert not audit(model, wide, y).holds


# ----------------------------------------------------------------------------------------------- no minimum
@pytest.mark.parametrize(
    "model",
    [
        PoissonRegressor(alpha=0.1),
        TweedieRegressor(power=1.5, alpha=0.1),
        GeneralizedLinearRegressor("binomial", alpha=0.1),
        GeneralizedLinearRegressor("negative_binomial", alpha=0.1, l1_ratio=0.5),
        GeneralizedLinearRegressor("poisson"),
    ],
    ids=str,
)
def test_targets_of_0_have_no_minimum_with_a_free_intercept(model):
    with pytest.raises(NoSolutionError, match="no minimum") as caught:
        model.fit(X, np.zeros(N))
    certificate = caught.value.certificate
    assert certificate.kind == "impossible"
    assert certificate.proved
    np.testing.assert_array_equal(certificate.witness, [[0, 0, 0, -1]])
    model.fit(X, (np.arange(N) % 3 > 0).astype(float))
    found = audit(model, X, np.zeros(N))
    assert (found.kind, found.proved, found.holds) == ("impossible", True, False)
    held = copy.deepcopy(model).set_params(fit_intercept=False, alpha=0.1)
    assert held.fit(X, np.zeros(N)).certificate_.holds


def test_only_ones_have_no_minimum_either():
    with pytest.raises(NoSolutionError) as caught:
        GeneralizedLinearRegressor("binomial", alpha=1.0).fit(X, np.ones(N))
    np.testing.assert_array_equal(caught.value.certificate.witness, [[0, 0, 0, 1]])


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
def test_negative_targets_beside_a_log_link():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Z, y = rng.normal(size=(50, 3)), rng.normal(size=50)
        model = GeneralizedLinearRegressor("gaussian", "log").fit(Z, y)
        assert audit(model, Z, y).holds == model.certificate_.holds
    with pytest.raises(NoSolutionError):
        GeneralizedLinearRegressor("gaussian", "log").fit(Z, -np.abs(y))


# ---------------------------------------------------------------------------------------------- null spaces
def test_coefficients_of_collinear_columns_are_determined():
    y = TARGETS["poisson"]
    C = np.column_stack([X, X[:, 0] + X[:, 2]])
    along = np.array([1.0, 0.0, 1.0, -1.0])
    with pytest.warns(certifit.linear_model.glm.glm.CollinearWarning):
        model = GeneralizedLinearRegressor("poisson").fit(C, y)
    assert audit(model, C, y).holds
    assert model.certificate_.parameter_error[0][3] == 0
    model.coef_ = model.coef_ + 1e-3 * along
    assert not audit(model, C, y).holds
    theirs = linear_model.LinearRegression().fit(C, TARGETS["gaussian"])
    assert audit(theirs, C, TARGETS["gaussian"]).holds
    assert audit(theirs, C, TARGETS["gaussian"]).parameter_error == ()
    theirs.coef_ = theirs.coef_ + 1e6 * along
    assert not audit(theirs, C, TARGETS["gaussian"]).holds


def test_perfect_fits_hold_and_their_neighbours_do_not():
    y = X @ [1.0, 2.0, 3.0] + 4
    model = LinearRegression().fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    assert model.certificate_.scale > 1
    model.coef_ = model.coef_ * (1 + 1e-9)
    assert not audit(model, X, y).holds
    constant = LinearRegression().fit(X, np.full(N, 5.0))
    assert audit(constant, X, np.full(N, 5.0)).holds
    assert GammaRegressor(alpha=0.0).fit(X, np.full(N, 5.0)).certificate_.holds


# ------------------------------------------------------------------------------------------- targets far from zero
def far_table(n, far, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    return Z, far + Z @ [1, 2, -1.0] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(("n", "far"), [(50, 1e6), (50, 1e10), (50, 1e13), (20000, 1e10)])
@pytest.mark.parametrize("own", [True, False])
def test_targets_far_from_zero_excuse_nothing(n, far, own):
    """The allowance is relative to what the columns could explain, not to the square of the targets."""
    Z, y = far_table(n, far)
    model = (LinearRegression() if own else linear_model.LinearRegression()).fit(Z, y)
    best = copy.deepcopy(model)
    assert audit(best, Z, y).holds
    for times in (0.0, 0.95, 1.05):
        model.coef_ = times * best.coef_
        found = audit(model, Z, y)
        assert found.gap > found.limit
        assert found.bound <= audit(best, Z, y).objective


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
@pytest.mark.parametrize("far", [0.0, 1e13])
def test_a_fit_that_has_not_moved_proves_nothing(far):
    Z, y = far_table(50, far)
    model = LinearRegression(max_iter=0).fit(Z, y)
    assert not model.coef_.any()
    assert not model.certificate_.holds
    assert not audit(model, Z, y).holds


def test_a_heavy_row_excuses_nothing():
    Z, y = far_table(50, 1e10)
    w = np.ones(50)
    w[3] = 1e8
    model = LinearRegression().fit(Z, y, w)
    assert audit(model, Z, y, w).holds
    model.coef_ = 0 * model.coef_
    found = audit(model, Z, y, w)
    assert found.gap > found.limit


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), certifit.Lasso(0.01)], ids=str)
@pytest.mark.parametrize("far", [1e10, 1e13])
def test_deviances_of_targets_far_from_zero(model, far):
    """The stated deviance against fractions, at the stated coefficients."""
    Z, y = far_table(50, far)
    model.fit(Z, y)
    exact = sum(
        (Fraction(float(t)) - Fraction(float(model.intercept_)) - sum(Fraction(v) * Fraction(c) for v, c in zip(
            map(float, row), map(float, model.coef_), strict=True))) ** 2
        for row, t in zip(Z, y, strict=True)
    )  # fmt: skip
    assert model.deviance_ == pytest.approx(float(exact), rel=1e-5)
    assert audit(model, Z, y).holds


@pytest.mark.parametrize("value", [0.1, 3.0, 1e9])
@pytest.mark.parametrize("model", [LinearRegression(), PoissonRegressor(alpha=0.0), GammaRegressor()], ids=str)
def test_constant_targets_are_fitted_and_audited(model, value):
    Z = RNG.normal(size=(50, 3))
    y = np.full(50, value)
    model.fit(Z, y)
    assert model.certificate_.holds
    assert audit(model, Z, y).holds


def test_targets_that_are_mostly_rounding_prove_nothing():
    Z, y = far_table(50, 0.0)
    y = 1e17 + 30 * y
    model = LinearRegression().fit(Z, y)
    model.coef_ = 0 * model.coef_
    assert not audit(model, Z, y).holds


# ------------------------------------------------------------------------------------- columns that were left out
@pytest.mark.filterwarnings("ignore::certifit.linear_model.glm.glm.CollinearWarning")
def test_the_minimum_without_a_column_is_not_that_of_all():
    """A column that was a combination of others in the rows of the fit, and is none in those of the audit."""
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(7, 5)), rng.normal(size=(5, 5))
    A[:, 4] = A[:, 0]
    model = LinearRegression(fit_intercept=False).fit(A, rng.normal(size=7))
    assert list(model.collinear_) == [4]
    found = audit(model, B, rng.normal(size=5))  # five rows, five columns: the minimum is 0
    assert not found.holds
    assert found.bound <= 1e-20


@pytest.mark.filterwarnings("ignore::certifit.linear_model.glm.glm.CollinearWarning")
@pytest.mark.parametrize("collinear", ["shortest", "drop"])
def test_the_columns_named_are_combinations_of_those_before_them(collinear):
    """Of two equal columns either is a combination of the others; only the second is one of those before it."""
    rng = np.random.default_rng(0)
    A = np.repeat(rng.normal(size=(20, 2)), [2, 1], axis=1)
    y = rng.normal(size=20)
    model = GeneralizedLinearRegressor("gaussian", collinear=collinear).fit(A, y)
    assert list(model.collinear_) == [1]
    assert audit(model, A, y).holds
    model.collinear_ = np.array([0])
    assert not audit(model, A, y).holds
    model.collinear_ = np.array([1.0])  # no number that names a column
    with pytest.raises(DataError, match="collinear_"):
        audit(model, A, y)


# --------------------------------------------------------------------------------------------- awkward numbers
def test_covariance_with_an_outlier_of_eight_decades():
    """Fisher's information, inverted in fractions: the columns differ in the other rows alone."""
    rng = np.random.default_rng(8)
    Z = 5 * rng.normal(size=(13, 3))
    Z[-1] *= 1e7
    y = rng.normal(size=13)
    model = LinearRegression().fit(Z, y)
    A = [[Fraction(1)] + [Fraction(float(v)) for v in row] for row in Z]
    M = [[sum(row[i] * row[j] for row in A) for j in range(4)] for i in range(4)]
    inverse = np.array([[float(v) for v in solve_exactly(M, [Fraction(i == j) for i in range(4)])] for j in range(4)])
    error = np.sqrt(np.diag(inverse))
    found = model.covariance_ / model.dispersion_ / error / error[:, None]
    np.testing.assert_allclose(found, inverse / error / error[:, None], atol=1e-6)
    assert audit(model, Z, y).holds


@pytest.mark.parametrize("covariance", ["classical", "sandwich"])
def test_covariance_where_curvatures_span_decades(covariance):
    """Fisher's information, w μ² of a row, inverted in fractions: the rows' own collinearity says nothing of it."""
    X = np.array([
        [0, -1, -2, 1, 0, 0], [-1, -1, -1, 0, 0, 0], [1, 0, 0, 1, 1, -1], [-1, 0, 0, -2, 0, 1],
        [1, -1, -1, -1, 1, -2], [-2, 0, 1, 1, -1, -2], [1, 2, -1, -1, 0, 0], [-3, -1, -1, 1, 1, 1.0],
    ])  # fmt: skip
    y = np.array([0.295, 0.96, 0.574, 2.31, 0.0608, 62.0, 1.47, 3.33])
    w = np.array([6.7e-3, 7.1e-3, 12.2, 4.6e-3, 7.2e-3, 278.9, 1.77, 7.7e-3])
    model = GeneralizedLinearRegressor("gamma", "inverse", covariance=covariance).fit(X, y, w)
    A = [[Fraction(1)] + [Fraction(float(v)) for v in row] for row in X]
    beta = [Fraction(float(v)) for v in (model.intercept_, *model.coef_)]
    mu = [1 / sum(a * b for a, b in zip(row, beta, strict=True)) for row in A]

    def products(h):
        rows = list(zip(h, A, strict=True))
        return [[sum(v * row[i] * row[j] for v, row in rows) for j in range(7)] for i in range(7)]

    weight = [Fraction(float(v)) for v in w]
    information = products([v * m**2 for v, m in zip(weight, mu, strict=True)])
    inverse = [solve_exactly(information, [Fraction(i == j) for i in range(7)]) for j in range(7)]
    if covariance == "sandwich":
        squares = products([v * (Fraction(float(t)) - m) ** 2 for v, t, m in zip(weight, y, mu, strict=True)])
        middle = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in squares] for row in inverse]
        inverse = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in inverse] for row in middle]
    expected = np.array([[float(v) for v in row] for row in inverse])
    expected *= model.dispersion_ if covariance == "classical" else 1.0
    error = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(
        model.covariance_ / error / error[:, None], expected / error / error[:, None], atol=1e-9
    )
    assert audit(model, X, y, sample_weight=w).holds


@pytest.mark.parametrize("covariance", ["sandwich", "classical"])
def test_errors_of_a_perfect_fit_are_rounding(covariance):
    rng = np.random.default_rng(1)
    Z, w = rng.normal(size=(16, 2)), 10.0 ** rng.uniform(-4, 4, size=16)
    y = 0.25 * Z[:, 0]
    model = LinearRegression(covariance=covariance).fit(Z, y, w)
    assert model.certificate_.holds
    assert audit(model, Z, y, w).holds
    model.covariance_ = model.covariance_ + 1e-20 * np.eye(3)
    assert not audit(model, Z, y, w).holds


def test_no_start_is_refused_in_words():
    Z = np.array([[1.0], [-1.0], [1.0]])  # no coefficient makes every mean positive
    with pytest.raises(certifit.DataError, match="every mean is in the range"):
        GeneralizedLinearRegressor("poisson", "identity", alpha=0.5, fit_intercept=False).fit(Z, [1.0, 2.0, 3.0])


def test_denormal_columns_are_refused_in_words():
    Z = sparse.csr_matrix(1e-310 * RNG.normal(size=(9, 4)))
    with pytest.raises(certifit.DataError, match="columns so small"):
        LinearRegression().fit(Z, RNG.normal(size=9))


def test_deviance_beside_a_heavy_row():
    """A row whose deviance is a difference of terms of 1e12: the sum of the others keeps its digits."""
    rng = np.random.default_rng(2)
    Z, y, w = rng.normal(size=(25, 3)), rng.gamma(2.0, size=25), np.ones(25)
    w[4] = 1e12
    model = TweedieRegressor(power=1.5).fit(Z, y, w)
    assert audit(model, Z, y, w).holds


# --------------------------------------------------------------------------------------- attributes of our own
@pytest.mark.parametrize("name", ["coef_", "intercept_"])
@pytest.mark.parametrize("model", [Ridge(), LinearRegression(), PoissonRegressor()], ids=str)
def test_shapes_are_those_that_fit_leaves(model, name):
    y = TARGETS["poisson"]
    model.fit(X, y)
    setattr(model, name, np.asarray(getattr(model, name))[None])
    with pytest.raises(certifit.DataError, match=r"wanted coefficients \(d,\) and an intercept"):
        audit(model, X, y)


@pytest.mark.parametrize("name", ["standard_errors_", "p_values_"])
@pytest.mark.parametrize("model", [Ridge(), certifit.LogisticRegression()], ids=str)
def test_errors_that_do_not_apply_are_not_there(model, name):
    model.fit(X, (TARGETS["gaussian"] > 0).astype(float))
    assert hasattr(model, name) is False
    assert name not in dict(inspect.getmembers(model))
    with pytest.raises(certifit.DataError, match="penalised") as caught:
        getattr(model, name)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)
    assert "<" in model._repr_html_()
    assert "<" in make_pipeline(StandardScaler(), model).fit(X, TARGETS["gaussian"] > 0)._repr_html_()


def test_why_there_are_no_errors_cannot_be_made_up():
    model = certifit.LogisticRegression().fit(X, TARGETS["gaussian"] > 0)
    with pytest.raises(AttributeError):
        model.no_errors_because_ = "the weather"
    assert "no standard errors: the fit is penalised" in model.summary()


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
@pytest.mark.parametrize("family", ["gaussian", "gamma", "poisson"])
@pytest.mark.parametrize("spread", [1e-1, 1e-3, 1e-5])
def test_fits_prove_what_they_store(family, spread):
    """The intercept cancels β·x: what its last digit is worth is part of the proof, and of every number stated."""
    rng = np.random.default_rng(4)
    Z = 1e7 + spread * rng.normal(size=(30, 1))
    y = rng.gamma(2.0, size=30) if family != "poisson" else rng.poisson(3.0, size=30).astype(float)
    model = GeneralizedLinearRegressor(family).fit(Z, y)
    found = audit(model, Z, y)
    assert found.holds == model.certificate_.holds, found.failures()
    assert all(check.passed for check in found.checks)


@pytest.mark.parametrize("seed", range(4))
def test_ridge_far_from_0_without_an_intercept_is_proved_and_the_bound_is_true(seed):
    # Columns that are nearly the same, which weights of eight decades and a weak penalty alone tell apart.
    rng = np.random.default_rng(seed)
    X, y, weight = 35118 + 2 * rng.normal(size=(14, 4)), rng.normal(size=14), 10 ** rng.uniform(-4, 4, 14)
    model = Ridge(alpha=0.00134, fit_intercept=False).fit(X, y, weight)
    found = audit(model, X, y, weight)
    least = exact_ridge_minimum(X, y, weight, 0.00134)
    assert model.certificate_.holds
    assert found.holds
    assert float(found.bound) <= least <= float(found.objective) * (1 + 1e-9)


@pytest.mark.parametrize("size", [1e-310, 5e-324])
def test_ridge_of_denormal_columns_is_audited(size):
    X, y = size * np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [5.0, 10.0]]), np.array([1.0, 3.0, 2.0, 4.0])
    model = Ridge(alpha=86.4).fit(X, y)
    assert audit(model, X, y).holds == model.certificate_.holds


def exact_ridge_minimum(X, y, weight, alpha):
    """½ (yᵀWy - cᵀH⁻¹c) with H = XᵀWX + α and c = XᵀWy, in fractions."""
    X, d = [[Fraction(float(v)) for v in row] for row in X], X.shape[1]
    y, w, alpha = [Fraction(float(v)) for v in y], [Fraction(float(v)) for v in weight], Fraction(alpha)
    H = [[sum(wi * r[i] * r[j] for wi, r in zip(w, X, strict=True)) + alpha * (i == j) for j in range(d)]
         + [sum(wi * r[i] * t for wi, r, t in zip(w, X, y, strict=True))] for i in range(d)]  # fmt: skip
    c = [row[d] for row in H]
    for i in range(d):
        H[i] = [v / H[i][i] for v in H[i]]
        H = [row if k == i else [u - row[i] * v for u, v in zip(row, H[i], strict=True)] for k, row in enumerate(H)]
    total = sum(wi * t * t for wi, t in zip(w, y, strict=True))
    return float((total - sum(a * row[d] for a, row in zip(c, H, strict=True))) / 2)


@pytest.mark.filterwarnings("ignore:column 1, column 2. combinations")
@pytest.mark.parametrize("family", ["negative_binomial", "poisson"])
def test_a_deviance_that_falls_for_ever_has_no_minimum_though_it_comes_down_to_rounding(family):
    # A row of its own without an event: its deviance falls towards 0 as its score goes to -∞.
    X, y = np.array([[11876.9, 49.2, 1.9], [11877.2, 49.5, 1.2]]), [40.0, 0.0]
    with pytest.raises(NoSolutionError) as raised:
        GeneralizedLinearRegressor(family=family).fit(X, y)
    assert raised.value.certificate.proved


def test_means_that_the_deviance_does_not_tell_are_not_proved():
    """A target next to 0 has nearly all of an inverse Gaussian deviance: beside it any large mean would do."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(22, 1)), np.exp(0.3 * rng.normal(size=22))
    for least, holds in ((1e-1, True), (1e-9, False)):
        y[0] = least
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            model = GeneralizedLinearRegressor("inverse_gaussian", tol=1e-6, covariance=None).fit(X, y)
        assert audit(model, X, y).holds == model.certificate_.holds
        assert model.certificate_.holds or not holds
        right = model.intercept_
        for wrong in (right + 3.0, right + 6.0, right + 9.0):
            model.intercept_ = wrong
            found = audit(model, X, y)
            assert any("logarithm of a mean" in words for words in found.failures()), (least, wrong)


def test_less_than_the_usual_gap_asks_for_digits_of_penalised_coefficients():
    """At the minimum Σ (μ - y) x / n + alpha β = 0, of which a gap of 1e-7 alone would leave three digits."""
    Z, y = np.array([[-2.0, 0], [-1, 0], [1, 1], [2, 1]]), np.array([0.0, 1, 1, 2])
    model = PoissonRegressor(alpha=1.0, tol=1e-7).fit(Z, y)
    slope = Z.T @ (model.predict(Z) - y) / 4 + model.coef_
    assert np.abs(slope).max() < 1e-6


@pytest.mark.parametrize("alpha", [1e-15, 1e-11, 1e-3])
@pytest.mark.parametrize("column", ["zeros", "repeated"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_penalty_next_to_nothing_is_proved_beside_columns_that_say_nothing(alpha, column, intercept):
    """An L1 penalty has no curvature: the Hessian of such columns is singular, whatever the coefficients."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=30)
    X = np.column_stack([X, np.zeros(30) if column == "zeros" else X[:, 0]])
    model = Lasso(alpha, fit_intercept=intercept).fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    model.coef_ = model.coef_ * 1.01
    assert not audit(model, X, y).holds
