"""What `summary()` says of a fit, against statsmodels' numbers, and how it looks."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.datasets import load_diabetes, load_iris

from certifit import (
    ElasticNet,
    GeneralizedLinearRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    TweedieRegressor,
    audit,
)
from certifit.core import Certificate
from certifit.core.summary import Summary

X, y = load_diabetes(return_X_y=True, as_frame=True)
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(np.exp(2 + 5 * X["bmi"]))
SPREAD = RNG.negative_binomial(2, 0.1, len(X))


def line(model, label):
    """The value beside this label."""
    return dict(model.summary().facts)[label]


def test_least_squares_have_r_squared_and_f():
    model, expected = LinearRegression().fit(X, y), sm.OLS(y, sm.add_constant(X)).fit()
    assert line(model, "R², adjusted") == f"{expected.rsquared:.4g}, {expected.rsquared_adj:.4g}"
    F = line(model, "F, its p-value")
    assert f"{expected.fvalue:.4g} with {expected.df_model:.0f} and {expected.df_resid:.0f} df, <1e-16" == F
    few = LinearRegression().fit(X[["age", "sex"]], y)
    expected = sm.OLS(y, sm.add_constant(X[["age", "sex"]])).fit()
    assert line(few, "F, its p-value").endswith(f"{expected.f_pvalue:.1e}")
    assert not hasattr(LinearRegression(fit_intercept=False).fit(X, y), "R²")
    assert "R²" not in LinearRegression(fit_intercept=False).fit(X, y).summary()


def test_weights_count_rows():
    w = RNG.integers(0, 3, len(X))
    model = LinearRegression().fit(X, y, sample_weight=w)
    rows = np.repeat(np.arange(len(X)), w)
    expected = sm.OLS(y.to_numpy()[rows], sm.add_constant(X.to_numpy()[rows])).fit()
    assert line(model, "R², adjusted") == f"{expected.rsquared:.4g}, {expected.rsquared_adj:.4g}"


@pytest.mark.parametrize(("target", "words"), [(COUNTS, "no sign of overdispersion"), (SPREAD, "overdispersed")])
def test_counts_have_pearson_chi2_pseudo_r2_and_overdispersion_in_words(target, words):
    model = GeneralizedLinearRegressor("poisson").fit(X, target)
    expected = sm.GLM(target, sm.add_constant(X), family=sm.families.Poisson()).fit()
    assert model.pearson_chi2_ == pytest.approx(expected.pearson_chi2, rel=1e-8)
    assert line(model, "Pearson chi²") == f"{expected.pearson_chi2:.6g}"
    assert line(model, "pseudo-R² (deviance)") == f"{1 - expected.deviance / expected.null_deviance:.4g}"
    ratio = f"{expected.pearson_chi2 / expected.df_resid:.3g} times its degrees of freedom"
    (note,) = model.summary().notes
    assert ratio in note
    assert words in note
    assert audit(model, X, target).holds
    model.pearson_chi2_ *= 1.001
    assert not audit(model, X, target).holds


def test_families_with_a_free_dispersion_and_labels_say_nothing_of_overdispersion():
    for model in (GeneralizedLinearRegressor("gamma"), LinearRegression(), TweedieRegressor(power=1.5, alpha=0.0)):
        assert model.fit(X, y).summary().notes == ()
    labels = (y > 140).astype(float)
    assert GeneralizedLinearRegressor("binomial").fit(X, labels).summary().notes == ()
    trials = np.full(len(y), 20.0)
    successes = RNG.beta(1.0, 1.0, len(y)) * 20 // 1
    binomial = GeneralizedLinearRegressor("binomial").fit(X, successes, trials=trials)
    assert "overdispersed" in binomial.summary()


@pytest.mark.parametrize("model", [Ridge(0.1), ElasticNet(0.01), Lasso(0.5), LogisticRegression()], ids=str)
def test_penalised_models_show_their_coefficients(model):
    target = y > 140 if isinstance(model, LogisticRegression) else y
    page = model.fit(X, target).summary()
    names = [row[0] for row in page.table[1:]]
    assert names == ["intercept", *X.columns]
    assert page.table[0][1] == ("coef (unproved)" if isinstance(model, Lasso) else "coef")
    shown = page.table[1 + 3][1]  # bmi
    assert float(shown.partition(" ")[0]) == pytest.approx(np.ravel(model.coef_)[2], rel=0.1)
    assert "no standard errors: the fit is penalised" in page


def test_several_targets_and_classes_have_a_line_for_each_coefficient():
    both = Ridge().fit(X, np.column_stack([y, -y])).summary()
    assert len(both.table) == 1 + 2 * 11
    assert "target 1: bmi" in both
    iris = LogisticRegression().fit(*load_iris(return_X_y=True)).summary()
    assert len(iris.table) == 1 + 3 * 5


def test_many_coefficients_are_cut_short():
    wide = RNG.normal(size=(40, 120))
    model = Lasso(0.05).fit(wide, wide[:, 3] - wide[:, 70])
    page = model.summary()
    assert len(page.table) == 51
    assert "x3" in page
    assert f"{np.count_nonzero(model.coef_) + 1} of which are not 0" in page


def test_the_page_fits_80_columns_and_shows_as_html():
    long = X.rename(
        columns={"bmi": "body mass index, in kilograms per square metre, measured at the first visit <1>"}
    )
    for model in (
        LinearRegression(),
        Ridge(),
        GeneralizedLinearRegressor("poisson"),
        LinearRegression(positive=True),
    ):
        page = model.fit(long, SPREAD).summary()
        assert isinstance(page, Summary)
        assert max(map(len, str(page).splitlines())) <= 80
        assert repr(page) == str(page)
        assert "body mass" in str(page)
        inside = page._repr_html_()
        assert "first visit &lt;1&gt;" in inside
        assert inside.count("<table>") == inside.count("</table>") == 2
    assert "proof" in str(page)
    assert "proof" in page


def test_coefficients_without_a_proof_are_counted():
    errors = ((1.0, np.inf, 8.3, np.inf),)
    certificate = Certificate("optimal", "x", 2.0, 1.0, 1.0, parameter_error=errors)
    words = dict(certificate.lines())["coefficients"]
    assert words == "all but 2 of 4 within 8.3 of the minimiser's; nothing is proved about those 2"
    assert "(50 %)" in str(certificate)
    assert "(100 %)" in str(Certificate("optimal", "x", 1.0, 0.0, 1.0))
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.1]})
    assert "coef" in LinearRegression().fit(frame, [1.0, 2.0, 2.5]).summary()


def test_rounding_is_not_shown_as_a_share_or_a_deviance():
    flat = GeneralizedLinearRegressor("poisson").fit(np.array([[-1.0], [1.0], [-1.0], [1.0]]), [1.0, 1.0, 3.0, 3.0])
    assert line(flat, "pseudo-R² (deviance)") == "0"
    squares = LinearRegression().fit(np.array([[-1.0], [1.0], [-1.0], [1.0]]), [0.1, 0.1, 0.3, 0.3])
    assert line(squares, "R², adjusted") == "0, -0.5"
    assert line(squares, "F, its p-value").startswith("0 with 1 and 2 df")
    exact = LinearRegression().fit(np.array([[0.1], [0.2], [0.7]]), [0.3, 0.5, 1.5])
    assert exact.exact_fit_
    assert line(exact, "deviance (null)").startswith("0 (")
    curved = GeneralizedLinearRegressor("gamma").fit(np.array([[0.1], [0.7]]), [0.3, 1.5])
    assert curved.exact_fit_
    assert line(curved, "Pearson chi²") == "0"


def test_a_deviance_below_0_is_no_rounding():
    rows, targets = np.array([[0.1], [0.2], [0.7]]), [0.3, 0.5, 1.5]
    model = LinearRegression().fit(rows, targets)
    model.deviance_ = -1e-40
    assert not audit(model, rows, targets).holds


def test_the_rounding_of_a_ridge_penalty_is_that_of_squares():
    # β is about 1e-12: its square costs 1e-13, its size would cost 0.1.
    rows = 1e5 * RNG.normal(size=(8, 2))
    targets = 1e-6 * RNG.normal(size=8)
    model = Ridge(alpha=1e11).fit(rows, targets)
    assert audit(model, rows, targets).holds
    model.deviance_ *= 1.01
    assert not audit(model, rows, targets).holds


@pytest.mark.parametrize("seed", range(12))
def test_residuals_of_targets_far_from_0_are_rounded_as_the_targets_are(seed):
    rng = np.random.default_rng(seed)
    rows, weights = 20840 + 5 * rng.normal(size=(6, 6)), 10.0 ** rng.uniform(-4, 4, 6)
    targets = 8246 + 0.1 * rng.normal(size=6)
    model = Ridge(alpha=4e-6).fit(rows, targets, sample_weight=weights)
    assert audit(model, rows, targets, weights).holds
    model.deviance_ *= 1.01
    assert not audit(model, rows, targets, weights).holds
