"""Replicates by weighted sums: the same coefficients as refits to the rows drawn, and a checker that draws again."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

import certifit
from certifit import DataError, bootstrap_coefficients
from certifit.checkers.model_selection.replicates import certify_replicates, drawn_rows, replicate_keys
from certifit.model_selection.bootstrap.replicates import drawn_counts, replicates_by_sums

X, Y = load_diabetes(return_X_y=True)
X = X[:, :5] * 20 + 3


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(3.0), LinearRegression(fit_intercept=False)])
def test_replicates_are_fits_to_the_rows_drawn(model):
    found = bootstrap_coefficients(model, X, Y, n_replicates=12, random_state=7)
    assert found.claim.alpha is not None
    assert found.certificate.holds
    for b, key in enumerate(replicate_keys(7, 12)):
        rows = drawn_rows(int(key), len(Y))
        fitted = model.fit(X[rows], Y[rows])
        wanted = np.append(fitted.coef_, fitted.intercept_) if model.fit_intercept else fitted.coef_
        np.testing.assert_allclose(found.values[b], wanted, rtol=1e-10)


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_replicates_of_many_rows_are_fits_too(shift):
    """Products of long tables are summed in short numbers, about weights of 1: what they lack is not seen."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4000, 2)) + shift
    target = table @ [1.0, -2.0] + rng.normal(size=4000)
    found = replicates_by_sums(table, target, 0.0, True, (5, 10))
    for key, values in zip(replicate_keys(5, 10), found[1], strict=True):
        rows = drawn_rows(int(key), 4000)
        wanted = LinearRegression().fit(table[rows], target[rows])
        np.testing.assert_allclose(values[:2], wanted.coef_, rtol=1e-9)
        assert values[2] == pytest.approx(wanted.intercept_, abs=1e-9 * (1 + 3 * shift))


@pytest.mark.compiled
def test_rows_are_drawn_evenly_and_alike_in_both_implementations():
    """Counts of n draws among n rows are multinomial: mean 1, variance 1 - 1/n, and e⁻¹ of the rows are left out."""
    n, keys = 50, replicate_keys(3, 400)
    counts = np.concatenate([part for _, part in drawn_counts(n, 3, 400, 128)])
    again = np.array([np.bincount(drawn_rows(int(key), n), minlength=n) for key in keys])
    assert np.array_equal(counts, again)
    # Hashes are made a thousand at a time; an odd number of rows needs half of the last.
    [(_, odd)] = drawn_counts(2051, 3, 2, 2)
    assert np.array_equal(odd, [np.bincount(drawn_rows(int(key), 2051), minlength=2051) for key in keys[:2]])
    assert (counts.sum(axis=1) == n).all()
    assert counts.var() == pytest.approx(1 - 1 / n, abs=0.05)
    assert np.mean(counts == 0) == pytest.approx((1 - 1 / n) ** n, abs=0.01)
    assert np.abs(counts.mean(axis=0) - 1).max() < 5 / np.sqrt(400)


def test_errors_are_those_of_the_textbook():
    """Least squares with independent errors: the standard error of a slope is σ / (√n s)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    found = bootstrap_coefficients(
        LinearRegression(), x, 2 * x[:, 0] + rng.normal(size=400), n_replicates=400, confidence=0.99
    )
    assert found.to_frame()["error"][0] == pytest.approx(1 / np.sqrt(400), rel=0.2)
    assert found.claim.low[0] < 2 < found.claim.high[0]
    assert found.names == ("x0", "intercept")
    assert max(map(len, str(found).splitlines())) <= 80
    assert len(found.plot().lines) == 4


def test_other_models_are_fitted_and_the_checker_fits_them_again():
    kinds = (Y > 140).astype(int)
    found = bootstrap_coefficients(LogisticRegression(), X[:80], kinds[:80], n_replicates=10)
    assert found.claim.alpha is None
    assert found.certificate.holds
    wrong = replace(found.claim, values=found.claim.values + 1e-3 * np.eye(6)[0])
    assert not certify_replicates(wrong, X[:80], kinds[:80], LogisticRegression()).holds
    for part in ("estimate", "values"):  # the intercept's error counts, and that of all rows
        wrong = replace(found.claim, **{part: getattr(found.claim, part) + 1e-2 * np.eye(6)[5]})
        assert not certify_replicates(wrong, X[:80], kinds[:80], LogisticRegression()).holds


def test_a_class_of_the_same_name_is_fitted():
    class Ridge(certifit.Ridge):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, 2 * y)

    found = bootstrap_coefficients(Ridge(), X[:80], Y[:80], n_replicates=10)
    assert found.claim.alpha is None
    np.testing.assert_allclose(found.claim.estimate[:5], 2 * certifit.Ridge().fit(X[:80], Y[:80]).coef_)


def test_the_checker_is_not_fooled():
    found = bootstrap_coefficients(certifit.Ridge(1.0), X, Y, n_replicates=20)
    assert found.certificate.holds
    for wrong in (
        replace(found.claim, values=found.claim.values * (1 + 1e-6)),
        replace(found.claim, estimate=found.claim.estimate * (1 + 1e-6)),
        replace(found.claim, low=found.claim.low + 0.01),
        replace(found.claim, seed=1),
        replace(found.claim, alpha=1.001),
    ):
        assert not certify_replicates(wrong, X, Y).holds


def test_collinear_columns_are_fitted():
    twice = np.column_stack([X, X[:, 0] * (1 + 1e-10)])
    assert bootstrap_coefficients(LinearRegression(), twice[:50], Y[:50], n_replicates=10).claim.alpha is None


@pytest.mark.parametrize(
    ("model", "table", "options", "words"),
    [
        (LinearRegression(), X, {"n_replicates": 3}, "n_replicates"),
        (LinearRegression(), X, {"confidence": 1.0}, "confidence"),
        (LinearRegression(), X[:-1], {}, "one target a row"),
        (LinearRegression(), np.where(X > 5, np.nan, X), {}, "finite"),
        (certifit.GaussianNB(), X, {}, "coef_"),
        (LinearRegression(), X[:3], {"y": ["a", "b", "c"]}, "no numbers"),
        (certifit.Ridge(), X[:3], {"y": [1.0, np.nan, 2.0]}, "infinite targets"),
    ],
)
def test_bad_input_is_answered_in_words(model, table, options, words):
    with pytest.raises(DataError, match=words):
        bootstrap_coefficients(model, table, **{"y": (Y > 140).astype(int), **options})


def test_targets_of_any_size_have_the_same_replicates():
    """2²⁰⁰ is beyond short numbers, and a multiplication by it is exact."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=3000)
    found = bootstrap_coefficients(LinearRegression(), X, y, n_replicates=20)
    large = bootstrap_coefficients(LinearRegression(), X, 2.0**200 * y, n_replicates=20)
    small = bootstrap_coefficients(LinearRegression(), X, 2.0**-200 * y, n_replicates=20)
    np.testing.assert_allclose(large.values, 2.0**200 * found.values, rtol=1e-9)
    np.testing.assert_allclose(small.values, 2.0**-200 * found.values, rtol=1e-9)
    assert large.certificate.holds
