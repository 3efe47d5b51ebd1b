"""The statements of docs/atlas/06_generative_and_discriminative on data, each with a broken variant that fails."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from certifit import (
    CategoricalNB,
    GaussianNB,
    LogisticRegression,
    NoSolutionError,
    QuadraticDiscriminantAnalysis,
    load_penguins,
)
from certifit.plots import learning_curves

BIRDS = load_penguins().dropna()
SPECIES = BIRDS["species"].to_numpy()
BILL = BIRDS[["bill_length_mm", "bill_depth_mm"]].to_numpy()
KINDS = np.unique(SPECIES)


# ------------------------------------------------------------------------------------------------- counting
CODES = np.column_stack([np.unique(BIRDS[name], return_inverse=True)[1] for name in ("island", "sex")])


def most_likely(tables, alpha):
    """Lagrange: (n + α) / p is one number for all values of a class and column, and p sum to 1 (exact fractions)."""
    for j, table in enumerate(tables):
        for c, name in enumerate(KINDS):
            own = CODES[name == SPECIES, j]
            masses = [Fraction(int((own == v).sum())) + Fraction(alpha) for v in range(table.shape[1])]
            expected = [float(mass / sum(masses)) for mass in masses]
            if not np.allclose(table[c], expected, rtol=1e-12, atol=0):
                return False
            seen = table[c] > 0
            multipliers = np.array([float(mass) for mass in masses])[seen] / table[c][seen]
            if np.ptp(multipliers) > 1e-9 * multipliers[0] or abs(table[c].sum() - 1) > 1e-12:
                return False
    return True


@pytest.mark.parametrize("alpha", [0, 1, 0.5])
def test_naive_bayes_counts(alpha):
    model = CategoricalNB(alpha=alpha).fit(CODES, SPECIES)
    assert most_likely([np.exp(table) for table in model.feature_log_prob_], alpha)


def test_no_other_probabilities_make_the_rows_likelier():
    """Gibbs: Σ n log p at the shares against many other points of the simplex."""
    model = CategoricalNB(alpha=0).fit(CODES, SPECIES)
    rng = np.random.default_rng(0)
    for counts, table in zip(model.category_count_, model.feature_log_prob_, strict=True):
        for c in range(3):
            seen = counts[c] > 0
            best = counts[c][seen] @ table[c][seen]
            others = rng.dirichlet(np.ones(len(counts[c])) + 20 * np.exp(table[c]), 200)[:, seen]
            assert (counts[c][seen] @ np.log(others).T <= best).all()


def test_an_unseen_value_is_impossible_without_smoothing():
    """No Chinstrap was seen on the first island, so none can be there; with a pseudo-row it can."""
    chinstrap = list(KINDS).index("Chinstrap")
    assert [CategoricalNB(alpha=a).fit(CODES, SPECIES).predict_proba([[0, 0]])[0, chinstrap] > 0 for a in (0, 1)] == [
        False,
        True,
    ]


def test_control_smoothing_the_numerator_only():
    model = CategoricalNB(alpha=1).fit(CODES, SPECIES)
    wrong = [(counts + 1) / counts.sum(axis=1, keepdims=True) for counts in model.category_count_]
    assert not most_likely(wrong, 1)
    assert not most_likely([np.exp(table) for table in model.feature_log_prob_], 0)


# ------------------------------------------------------------------------------------------------- form
def is_combination(model, features, c, tol=1e-9):
    """The log-odds of class c against the first are a linear combination of these columns; return it, or None."""
    logs = model.predict_log_proba(BILL)
    odds = logs[:, c] - logs[:, 0]
    found = np.linalg.lstsq(features, odds, rcond=None)[0]
    return found if np.abs(features @ found - odds).max() < tol * np.abs(odds).max() else None


ONE = np.ones((len(BILL), 1))
LINEAR, SQUARES = np.hstack([BILL, ONE]), np.hstack([BILL, ONE, BILL**2])


def moments(c):
    """Prior, means and variances of a class, by hand."""
    own = BILL[KINDS[c] == SPECIES]
    return len(own) / len(BILL), own.mean(axis=0), own.var(axis=0)


def is_softmax(model):
    """p(c | x) is the softmax of μ/σ² · x + log π - Σ μ²/2σ², by moments taken by hand and pooled variances."""
    shared = sum(prior * var for prior, _, var in map(moments, range(3)))
    scores = [
        BILL @ (m / shared) + np.log(prior) - (m**2 / shared).sum() / 2 for prior, m, _ in map(moments, range(3))
    ]
    powers = np.exp(np.transpose(scores) - np.max(scores, axis=0)[:, None])
    return np.allclose(model.predict_proba(BILL), powers / powers.sum(axis=1, keepdims=True), atol=1e-7)


def test_equal_variances_are_logistic():
    model = GaussianNB(variance="shared", var_smoothing=0.0).fit(BILL, SPECIES)
    assert is_softmax(model)
    for c in (1, 2):
        assert is_combination(model, LINEAR, c) is not None


def test_control_variances_of_their_own_are_not():
    model = GaussianNB(var_smoothing=0.0).fit(BILL, SPECIES)
    assert not is_softmax(model)
    assert is_combination(model, LINEAR, 1) is None


def squares_follow(model):
    """The coefficients of the squares are ½ (1/σ₀² - 1/σ_c²), and not all 0."""
    for c in (1, 2):
        found, expected = is_combination(model, SQUARES, c), (1 / moments(0)[2] - 1 / moments(c)[2]) / 2
        if found is None or not np.allclose(found[3:], expected, rtol=1e-6):
            return False
    return True


def test_different_variances_are_quadratic():
    assert squares_follow(GaussianNB(var_smoothing=0.0).fit(BILL, SPECIES))


def test_control_covariances_need_products():
    model = QuadraticDiscriminantAnalysis().fit(BILL, SPECIES)
    assert not squares_follow(model)
    products = np.hstack([SQUARES, BILL.prod(axis=1, keepdims=True)])
    assert is_combination(model, products, 1) is not None


def test_control_equal_variances_have_no_squares():
    assert not squares_follow(GaussianNB(variance="shared", var_smoothing=0.0).fit(BILL, SPECIES))


# ------------------------------------------------------------------------------------------------- fewer rows
CANCER = load_breast_cancer(as_frame=True)
SHAPES, ILL = np.log(CANCER.data.filter(regex="texture|smoothness|symmetry")), CANCER.target


def shuffled_within_classes():
    """The same columns, independent of each other within each class."""
    rng = np.random.default_rng(0)
    return SHAPES.groupby(ILL).transform(lambda column: rng.permutation(column))


def naive_bayes_errs_less(curves):
    """On the same splits, by at least twice the standard error of the mean difference."""
    apart = (curves.discriminative - curves.generative)[0]
    return bool(apart.mean() > 2 * apart.std(ddof=1) / np.sqrt(len(apart)))


def test_naive_bayes_needs_fewer_rows():
    assert naive_bayes_errs_less(learning_curves(shuffled_within_classes(), ILL, [24], repeats=20))


def test_control_dependent_columns_turn_it_round():
    curves = learning_curves(SHAPES, ILL, [300], repeats=10)
    assert not naive_bayes_errs_less(curves)
    assert curves.discriminative.mean() < curves.generative.mean() - 0.01


def labels_are_likelier(logistic, bayes, X, y):
    """Σ log p(y | x) on the rows of the fit, with p from coefficients."""
    score = X @ (bayes.coef_[1] - bayes.coef_[0]) + bayes.intercept_[1] - bayes.intercept_[0]
    of_bayes = -np.logaddexp(0, np.where(y == 1, -1, 1) * score).sum()
    score = X @ logistic.coef_[0] + logistic.intercept_[0]
    return bool(-np.logaddexp(0, np.where(y == 1, -1, 1) * score).sum() >= of_bayes)


@pytest.mark.parametrize("table", [SHAPES, shuffled_within_classes()], ids=["as measured", "independent"])
def test_logistic_regression_makes_labels_likelier(table):
    X, y = table.to_numpy(), ILL.to_numpy()
    bayes = GaussianNB(variance="shared").fit(X, y)
    assert labels_are_likelier(LogisticRegression(penalty=None).fit(X, y), bayes, X, y)


def test_control_a_penalty_gives_likelihood_away():
    X, y = SHAPES.to_numpy(), ILL.to_numpy()
    bayes = GaussianNB(variance="shared").fit(X, y)
    assert not labels_are_likelier(LogisticRegression(C=1e-3).fit(X, y), bayes, X, y)


# ------------------------------------------------------------------------------------------------- concavity
MEASURED = BIRDS[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].to_numpy(dtype=float)
ROWS = np.hstack([(MEASURED - MEASURED.mean(axis=0)) / MEASURED.std(axis=0), ONE])
MALE = np.where(BIRDS["sex"] == "male", 1, -1)


def log_likelihood(theta, y=MALE):
    return -np.logaddexp(0, -y * (ROWS @ theta)).sum()


def minus_squared_error(theta):
    return -((1 / (1 + np.exp(-MALE * (ROWS @ theta))) - 1) ** 2).sum()


def is_concave(f, about):
    """Second differences along random lines, near and far, and halfway points above their chords."""
    rng = np.random.default_rng(0)
    for size in (0.01, 1.0, 10.0):
        for _ in range(50):
            middle, step = about + size * rng.normal(size=5), size * rng.normal(size=5)
            if f(middle + step) + f(middle - step) > 2 * f(middle) + 1e-8:
                return False
    return True


def fitted(model):
    return np.append(model.coef_[0], model.intercept_[0])


def test_logistic_likelihood_is_concave():
    theta = fitted(LogisticRegression(penalty=None).fit(ROWS[:, :4], MALE))
    assert is_concave(log_likelihood, theta)
    # The second derivatives by differences of the gradient are -X'DX, and the gradient vanishes at the fit.
    p = 1 / (1 + np.exp(-ROWS @ theta))
    hessian = -ROWS.T @ (ROWS * (p * (1 - p))[:, None])
    assert np.linalg.eigvalsh(hessian).max() < 0
    e, h = np.eye(5), 1e-4
    around = [[log_likelihood(theta + h * (s * a + t * b)) for s in (1, -1) for t in (1, -1)] for a in e for b in e]
    differences = (np.array(around) @ [1, -1, -1, 1] / (4 * h**2)).reshape(5, 5)
    np.testing.assert_allclose(differences, hessian, atol=1e-3 * np.abs(hessian).max())
    assert np.abs(ROWS.T @ ((MALE + 1) / 2 - p)).max() < 1e-6


def test_control_squared_errors_are_not_convex():
    assert not is_concave(minus_squared_error, fitted(LogisticRegression(penalty=None).fit(ROWS[:, :4], MALE)))


def rises_for_ever(y):
    """Along the direction of a lightly penalised fit every row gains, however far one goes."""
    theta = fitted(LogisticRegression(C=1e6, tol=1e-9).fit(ROWS[:, :4], y))
    values = [log_likelihood(t * theta, y) for t in (0.5, 1.0, 2.0, 4.0)]
    return bool((y * (ROWS @ theta) > 0).all() and np.all(np.diff(values) > 0))


def test_separable_classes_have_no_maximum():
    gentoo = np.where(SPECIES == "Gentoo", 1, -1)
    assert rises_for_ever(gentoo)
    with pytest.raises(NoSolutionError, match="the likelihood has no maximum"):
        LogisticRegression(penalty=None).fit(ROWS[:, :4], gentoo)


def test_control_overlapping_classes_have_one():
    assert not rises_for_ever(MALE)
    assert LogisticRegression(penalty=None).fit(ROWS[:, :4], MALE).certificate_.holds
