"""Other libraries' generalised linear models: audited as what they are, or refused in a sentence."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model

from certifit import GeneralizedLinearRegressor, LinearRegression, audit, compare
from certifit.exceptions import DataError

N = 80
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(N, 3))
Y = RNG.poisson(np.exp(0.5 + 0.3 * Z[:, 0])).astype(float)
T = RNG.uniform(1, 2, N)


@pytest.fixture(scope="module")
def sm():
    import statsmodels.api as sm

    return sm


def fits(sm):
    """By name: results that are audited as they are."""
    A, poisson = sm.add_constant(Z), sm.families.Poisson()
    lags = 0.5 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    return {
        "var_weights": sm.GLM(Y, A, family=poisson, var_weights=T).fit(tol=1e-10),
        "all weights": sm.GLM(
            Y, A, family=poisson, var_weights=T, freq_weights=np.arange(N) % 3 + 1.0, exposure=T
        ).fit(tol=1e-10),
        "exposure and offset": sm.Poisson(Y, A, exposure=T, offset=0.1 * T).fit(disp=0),
        "offset of Logit": sm.Logit((Y > 1) * 1.0, A, offset=0.1 * T).fit(disp=0),
        "WLS": sm.WLS(Y, A, weights=T).fit(),
        "GLS": sm.GLS(Y, A, sigma=lags).fit(),
        "GLSAR": sm.GLSAR(Y, A, rho=1).iterative_fit(3),
    }


def test_statsmodels_weights_offsets_and_whitened_rows(sm):
    for name, fit in fits(sm).items():
        assert audit(fit).holds, name
        fit.params[1] += 0.2
        assert not audit(fit).holds, name


def test_statsmodels_weights_belong_to_their_rows(sm):
    found = fits(sm)
    A = sm.add_constant(Z)
    for name in ("var_weights", "exposure and offset", "WLS"):
        assert audit(found[name], A, Y).holds
        with pytest.raises(DataError, match="other rows"):
            audit(found[name], A[:40], Y[:40])
    assert audit(found["GLS"], A, Y).holds
    assert audit(found["GLS"], Z, Y).holds
    for other in ((A[:40], Y[:40]), (A, Y + 1.0), (A[::-1], Y)):
        with pytest.raises(DataError, match="without X and y"):
            audit(found["GLS"], *other)
    assert not audit(found["WLS"], A, Y, np.ones(N)).holds


def test_statsmodels_fits_of_another_problem_are_refused(sm):
    A, poisson = sm.add_constant(Z), sm.families.Poisson()
    tied = ([[0, 1, 0, 0]], [0.5])
    for fit in (sm.GLM(Y, A, family=poisson).fit_constrained(tied), sm.Poisson(Y, A).fit_constrained(tied, disp=0)):
        with pytest.raises(DataError, match="constraints"):
            audit(fit)
    for fit in (sm.OLS(Y, A).fit_regularized(alpha=0.1), sm.Poisson(Y, A).fit_regularized(alpha=0.1, disp=0)):
        with pytest.raises(DataError, match="Lasso, ElasticNet and GeneralizedLinearRegressor"):
            audit(fit)
    for fit in (sm.RLM(Y, A).fit(), sm.MNLogit(np.minimum(Y, 2), A).fit(disp=0), sm.QuantReg(Y, A).fit()):
        with pytest.raises(DataError, match="OLS, WLS, GLS") as caught:
            audit(fit, A, Y)
        assert "like=" not in str(caught.value)  # all results descend from those of a regression
        assert "None" not in str(caught.value)


class Lasso(linear_model.Lasso):
    """Another library's class of a known name."""


class GroupLasso(Lasso):
    """A subclass of it with another penalty."""


def test_a_subclass_is_not_its_base():
    assert audit(Lasso(0.1, tol=1e-10).fit(Z, Y), Z, Y).holds
    with pytest.raises(DataError, match="groups of columns"):
        audit(GroupLasso(0.1).fit(Z, Y), Z, Y)
    weighted = Lasso(0.1, tol=1e-10).fit(Z, Y)
    weighted.weights = np.arange(3.0)
    with pytest.raises(DataError, match="same penalty on every coefficient"):
        audit(weighted, Z, Y)


class Unknown:
    """Coefficients without a known class."""

    def __init__(self, model):
        self.coef_, self.intercept_, self.alpha = model.coef_, model.intercept_, model.alpha


def test_like_names_the_problem():
    model = Unknown(linear_model.Lasso(0.1, tol=1e-10).fit(Z, Y))
    assert audit(model, Z, Y, like="Lasso").holds
    assert not audit(model, Z, Y, like="Ridge").holds


class PoissonDistribution:
    pass


class LogLink:
    pass


class FittedGlum:
    """What a fitted model of glum looks like."""

    alpha, l1_ratio, P1, P2, scale_predictors, fit_intercept = 0.1, 0.5, "identity", "identity", False, True
    lower_bounds = upper_bounds = A_ineq = None
    family_instance, link_instance = PoissonDistribution(), LogLink()


FittedGlum.__name__ = "GeneralizedLinearRegressor"  # as there


def test_glum_has_a_class_of_our_name():
    ours = GeneralizedLinearRegressor("poisson", alpha=0.1, l1_ratio=0.5, tol=1e-9).fit(Z, Y)
    model = FittedGlum()
    model.coef_, model.intercept_ = ours.coef_, float(ours.intercept_)
    assert audit(model, Z, Y).holds
    assert audit(model, Z, Y).objective == pytest.approx(ours.certificate_.objective, rel=1e-12)
    for name, value in (("P1", np.arange(3.0)), ("scale_predictors", True), ("lower_bounds", np.zeros(3))):
        other = copy.copy(model)
        setattr(other, name, value)
        with pytest.raises(DataError, match=name):
            audit(other, Z, Y)
    model.alpha = None  # its word for no penalty
    assert not audit(model, Z, Y).holds


@pytest.mark.parametrize("model", [linear_model.Ridge(positive=True), linear_model.LassoCV(positive=True)], ids=str)
def test_coefficients_held_above_zero_are_audited(model):
    model.fit(Z, Y)
    assert audit(model, Z, Y).holds
    model.coef_ = np.where(model.coef_ > 0, model.coef_, -1e-3)
    assert not audit(model, Z, Y).holds


def test_several_targets_are_audited_and_joint_penalties_refused():
    both = np.column_stack([Y, Z[:, 0] - Y**2])
    for model in (linear_model.Ridge([1.0, 3.0]), linear_model.RidgeCV(), linear_model.LinearRegression()):
        assert audit(model.fit(Z, both), Z, both).holds
        model.coef_[1] *= 1.2
        assert not audit(model, Z, both).holds
    for model in (linear_model.MultiTaskLasso(), linear_model.MultiTaskElasticNetCV()):
        with pytest.raises(DataError, match="each target"):
            audit(model.fit(Z, both), Z, both)
    assert audit(linear_model.Ridge().fit(Z, Y[:, None]), Z, Y[:, None]).holds


@pytest.mark.parametrize(
    "model", [linear_model.RidgeCV(), linear_model.LassoCV(), linear_model.ElasticNetCV()], ids=str
)
def test_a_penalty_chosen_by_cross_validation(model):
    assert audit(model.fit(Z, Y), Z, Y).holds
    model.alpha_ *= 1.5
    assert not audit(model, Z, Y).holds


@pytest.mark.parametrize("alpha", [-1, np.nan, np.inf, "much", None])
def test_settings_that_no_fit_could_have_had(alpha):
    for model in (linear_model.Lasso(0.1), linear_model.Ridge(), linear_model.PoissonRegressor()):
        model.fit(Z, Y).alpha = alpha
        with pytest.raises(DataError, match="alpha"):
            audit(model, Z, Y)
    model = linear_model.ElasticNet(0.1).fit(Z, Y)
    model.l1_ratio = 2.0
    with pytest.raises(DataError, match="l1_ratio"):
        audit(model, Z, Y)
    model = linear_model.TweedieRegressor(power=1.5).fit(Z, Y)
    model.power = 0.5
    with pytest.raises(DataError, match="power"):
        audit(model, Z, Y)


@pytest.mark.parametrize("prepend", [True, False])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_a_constant_column_of_statsmodels_may_be_left_out(sm, prepend, form):
    rng = np.random.default_rng(8)
    Z = rng.normal(size=(60, 3))
    y = rng.poisson(np.exp(0.3 * Z[:, 0])).astype(float)
    design = sm.add_constant(Z, prepend=prepend)
    for fit in (sm.OLS(y, design).fit(), sm.GLM(y, design, family=sm.families.Poisson()).fit(tol=1e-12)):
        found = audit(fit, form(Z), y)
        assert found.holds
        assert found.objective == pytest.approx(audit(fit).objective)
        with pytest.raises(DataError, match="is not the constant 1"):
            audit(fit, np.roll(design, 1, axis=1), y)
        with pytest.raises(DataError, match="2 features"):
            audit(fit, Z[:, :2], y)
        fit.params[0] += 0.1
        assert not audit(fit, form(Z), y).holds


def test_statsmodels_results_are_compared_with_models_that_have_an_intercept(sm):
    rng = np.random.default_rng(9)
    Z, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    models = {"theirs": sm.OLS(y, sm.add_constant(Z)).fit(), "ours": LinearRegression().fit(Z, y)}
    found = compare(models, Z, y, show=False)
    assert not found.differences()
    assert all(c.holds for c in found.certificates.values())
    models["weighted"] = sm.WLS(y, sm.add_constant(Z), weights=rng.uniform(1, 2, size=40)).fit()
    assert len({*compare(models, Z, y, show=False).problems.values()}) == 2
