"""The statements of docs/atlas/04_principal_components on data; each with a broken variant that must fail."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal
from sklearn.datasets import load_diabetes, load_digits, load_wine, make_swiss_roll
from sklearn.linear_model import Lasso, LinearRegression

from certifit import (
    PCA,
    HardMarginSVC,
    L1Selector,
    LocallyLinearEmbedding,
    ProbabilisticPCA,
    SequentialSelector,
    TrimmedPCA,
    TruncatedSVD,
    two_views,
)
from certifit.datasets import load_penguins
from certifit.exceptions import NoSolutionError

WINE = load_wine().data / load_wine().data.std(axis=0)
DIGITS, LABELS = load_digits(return_X_y=True)
PENGUINS = load_penguins().dropna()[["flipper_length_mm", "bill_length_mm", "bill_depth_mm", "body_mass_g"]]
PENGUINS = (PENGUINS / PENGUINS.std()).to_numpy()


# --------------------------------------------------------------- the variance of the code and the mean
def same_wherever_the_rows_are(direction_and_size):
    """Whether a direction and its size stay when all rows are moved, by several constants."""
    axis, size = direction_and_size(WINE)
    for constant in (np.full(13, -3.0), np.linspace(-20, 20, 13)):
        moved_axis, moved_size = direction_and_size(WINE + constant)
        if not (np.isclose(size, moved_size, rtol=1e-9) and np.isclose(abs(axis @ moved_axis), 1, rtol=1e-9)):
            return False
    return True


def test_variance_does_not_depend_on_the_mean():
    def of_pca(rows):
        axis = PCA(1).fit(rows).components_[0]
        return axis, (rows @ axis).var()

    assert same_wherever_the_rows_are(of_pca)
    axis, variance = of_pca(WINE)
    covariance = np.cov(WINE.T, bias=True)
    assert variance == pytest.approx(axis @ covariance @ axis, rel=1e-10)
    assert variance == pytest.approx(np.linalg.eigvalsh(covariance)[-1], rel=1e-10)  # of most variance


def test_control_mean_square_depends_on_the_mean():
    def of_mean_squares(rows):
        axis = TruncatedSVD(1).fit(rows).components_[0]
        return axis, np.mean((rows @ axis) ** 2)

    assert not same_wherever_the_rows_are(of_mean_squares)


# -------------------------------------------------------------------------- most variance is least error
def variances_and_errors(rows, directions):
    """The variance of the rows along each direction, and the mean squared error of the code of the first M."""
    centred = rows - rows.mean(axis=0)
    left = [centred - centred @ directions[:M].T @ directions[:M] for M in range(len(directions) + 1)]
    return (centred @ directions.T).var(axis=0), np.array([np.mean((lost**2).sum(axis=1)) for lost in left])


def most_variance_is_least_error(rows, directions):
    """V_m is the m-th eigenvalue of the covariance, and J_M what the eigenvalues after the M-th add up to."""
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1]
    variances, errors = variances_and_errors(rows, directions)
    discarded = eigenvalues.sum() - np.append(0, np.cumsum(eigenvalues[: len(directions)]))
    found, expected = np.append(variances, errors), np.append(eigenvalues[: len(directions)], discarded)
    return np.allclose(found, expected, rtol=0, atol=1e-10 * eigenvalues.sum())


def test_most_variance_is_least_error():
    told = two_views(WINE, 5)
    assert most_variance_is_least_error(WINE, told.directions)
    variances, errors = variances_and_errors(WINE, told.directions)
    np.testing.assert_allclose(told.variances, variances, rtol=1e-9)
    np.testing.assert_allclose(told.errors, errors, rtol=1e-9)


def test_control_uncentred_rows_break_it():
    assert not most_variance_is_least_error(WINE, np.linalg.svd(WINE)[2][:5])


# ------------------------------------------------------------------------- digits in two components
def first_two(digits):
    chosen = np.isin(LABELS, digits)
    return PCA(2).fit(DIGITS[chosen]), DIGITS[chosen], np.where(LABELS[chosen] == digits[0], 1.0, -1.0)


def is_separable(codes, sides):
    """Whether some line has all rows on their sides: a linear program finds it, or says that there is none."""
    rows = -sides[:, None] * np.column_stack([codes, np.ones(len(codes))])
    return linprog(np.zeros(3), A_ub=rows, b_ub=-np.ones(len(codes)), bounds=(None, None)).status == 0


def share_between(code, sides):
    """The share of a code's variance that lies between the means of the two classes."""
    means = np.where(sides > 0, code[sides > 0].mean(), code[sides < 0].mean())
    return means.var() / code.var()


def test_zeros_and_ones_are_separable():
    model, rows, sides = first_two([0, 1])
    codes = model.transform(rows)
    assert is_separable(codes, sides)
    machine = HardMarginSVC(kernel="linear", ridge=0.0).fit(codes, sides)
    assert (sides * (codes @ machine.coef_[0] + machine.intercept_[0]) > 0).all()
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    assert model.explained_variance_ratio_.sum() == pytest.approx(eigenvalues[:2].sum() / eigenvalues.sum(), rel=1e-9)
    assert not is_separable(np.ones((len(sides), 2)), sides)  # the program refuses where codes say nothing
    assert share_between(codes[:, 0], sides) > 0.9


def test_control_threes_and_eights():
    model, rows, sides = first_two([3, 8])
    assert not is_separable(model.transform(rows), sides)
    assert share_between(model.transform(rows)[:, 0], sides) < 0.8
    with pytest.raises(NoSolutionError, match="cannot be separated"):
        HardMarginSVC(kernel="linear", ridge=0.0).fit(model.transform(rows), sides)


# ----------------------------------------------------------------------------------- probabilistic PCA
def log_likelihood(axes, variances, noise):
    """Of all rows, with so much variance along the axes (k, d) and the noise everywhere else."""
    C = axes.T * (variances - noise) @ axes + noise * np.eye(WINE.shape[1])
    return multivariate_normal(WINE.mean(axis=0), C).logpdf(WINE).sum()


def noise_is_most_likely(model, noise):
    """Whether less noise and more noise are both less likely, and any change of a variance along an axis too."""
    axes, variances = model.components_, model.explained_variance_
    best = log_likelihood(axes, variances, noise)
    others = [log_likelihood(axes, variances, noise * factor) for factor in (0.9, 0.99, 1.01, 1.1)]
    others += [log_likelihood(axes, variances * factor, noise) for factor in (0.95, 1.05)]
    return all(other < best for other in others)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_noise_is_the_mean_of_what_is_discarded(k):
    model = ProbabilisticPCA(k).fit(WINE)
    discarded = np.linalg.eigvalsh(np.cov(WINE.T, bias=True))[::-1][k:]
    assert model.noise_variance_ == pytest.approx(discarded.mean(), rel=1e-10)
    assert noise_is_most_likely(model, model.noise_variance_)
    assert model.loglikelihood_ == pytest.approx(
        log_likelihood(model.components_, model.explained_variance_, discarded.mean()), rel=1e-10
    )


def test_control_noise_of_the_next_eigenvalue():
    discarded = np.linalg.eigvalsh(np.cov(WINE.T, bias=True))[::-1][3:]
    model = ProbabilisticPCA(3).fit(WINE)
    assert not noise_is_most_likely(model, discarded[0])
    assert not noise_is_most_likely(model, discarded[-1])


# ------------------------------------------------------------------------------------- missing entries
def rows_say_more_than_means(rows):
    """Whether a fit to the entries that are left predicts those taken out better than the columns' means do."""
    missing = np.random.default_rng(0).random(rows.shape) < 0.3
    holes = np.where(missing, np.nan, rows)
    filled = ProbabilisticPCA(5).fit(holes).impute(holes)
    assert np.array_equal(filled[~missing], rows[~missing])
    return np.mean((filled - rows)[missing] ** 2) < 0.8 * np.mean((np.nanmean(holes, axis=0) - rows)[missing] ** 2)


def test_rows_fill_their_holes_better_than_means():
    assert rows_say_more_than_means(DIGITS[LABELS < 2])
    assert rows_say_more_than_means(WINE)


def test_control_columns_shuffled_apart():
    rng = np.random.default_rng(1)
    assert not rows_say_more_than_means(rng.permuted(DIGITS[LABELS < 2], axis=0))
    assert not rows_say_more_than_means(rng.permuted(WINE, axis=0))


# -------------------------------------------------------------------------------------------- outliers
def doubled(every, factor=2.0):
    """The penguins with too large a depth of the bill in every so many rows."""
    wrong = np.arange(len(PENGUINS)) % every == 0
    return np.where(wrong[:, None] & (np.arange(4) == 2), factor * PENGUINS, PENGUINS)


def keeps_the_axis(model, rows, degrees=10.0):
    """Whether the first axis of a fit to these rows is that of the rows as they were."""
    axis = model.fit(rows).components_[0]
    truth = np.linalg.svd(PENGUINS - PENGUINS.mean(axis=0))[2][0]
    return bool(np.degrees(np.arccos(min(1.0, abs(axis @ truth)))) < degrees)


def trimmed():
    return TrimmedPCA(1, keep=0.8, random_state=0)


def test_trimming_resists_outliers():
    for factor in (2.0, 100.0, 1e6):  # no distance carries it away
        assert keeps_the_axis(trimmed(), doubled(15, factor))
        assert not keeps_the_axis(PCA(1), doubled(15, factor))
    assert not keeps_the_axis(PCA(1), doubled(len(PENGUINS), 100.0))  # one row is enough


def test_control_more_outliers_than_are_trimmed():
    assert not keeps_the_axis(trimmed(), doubled(3))


# ------------------------------------------------------------------------------------------ neighbours
ROLL, ALONG = make_swiss_roll(600, random_state=0)
SHEET = np.column_stack([(ALONG * np.sqrt(1 + ALONG**2) + np.arcsinh(ALONG)) / 2, ROLL[:, 1]])  # length of the spiral


def ranks(places):
    """The place of each row among all others, by distance from each (n, n); itself is 0."""
    return cdist(places, places).argsort(axis=1).argsort(axis=1)


def keeps_neighbours(places):
    """Whether nine of ten of a row's five nearest in the plane are among its 20 nearest on the sheet."""
    plane, sheet = ranks(places), ranks(SHEET)
    near = (plane > 0) & (plane <= 5)
    return (sheet[near] <= 20).mean() > 0.9


def test_embedding_preserves_neighbours():
    assert keeps_neighbours(LocallyLinearEmbedding(n_neighbors=8, method="modified").fit(ROLL).embedding_)


def test_control_projection_and_wide_neighbourhoods():
    assert not keeps_neighbours(PCA(2).fit(ROLL).transform(ROLL))
    assert not keeps_neighbours(LocallyLinearEmbedding(n_neighbors=30, method="modified").fit(ROLL).embedding_)


def has_least_error_of_weights(rows, places, n_neighbors, reg):
    """Whether Σ |y - Σ w y|² is the sum of the smallest eigenvalues after zero; weights row by row, by hand.

    Places are centred, and uncorrelated columns of one length.
    """
    n = len(rows)
    W = np.zeros((n, n))
    for i, near in enumerate(ranks(rows).argsort(axis=1)[:, 1 : n_neighbors + 1]):
        difference = rows[near] - rows[i]
        gram = difference @ difference.T
        weights = np.linalg.solve(gram + reg * np.trace(gram) * np.eye(n_neighbors), np.ones(n_neighbors))
        W[i, near] = weights / weights.sum()
    left = places - W @ places
    least = np.linalg.eigvalsh((np.eye(n) - W).T @ (np.eye(n) - W))[1 : places.shape[1] + 1]
    whitened = np.allclose(places.T @ places, np.eye(2), atol=1e-8) and np.allclose(places.sum(axis=0), 0, atol=1e-6)
    return bool(whitened and np.isclose((left**2).sum(), least.sum(), rtol=1e-4))


def test_embedding_has_the_least_error_of_its_weights():
    places = LocallyLinearEmbedding(n_neighbors=8, reg=1e-3).fit(WINE).embedding_
    assert has_least_error_of_weights(WINE, places, 8, 1e-3)
    projected = PCA(2).fit(WINE).transform(WINE)
    projected = np.linalg.qr(projected - projected.mean(axis=0))[0]  # centred, orthonormal columns as the embedding's
    assert not has_least_error_of_weights(WINE, projected, 8, 1e-3)


# ------------------------------------------------------------------------------------- feature selection
PEOPLE, PROGRESS = load_diabetes(return_X_y=True, as_frame=True)
SHUFFLED = PEOPLE.apply(np.random.default_rng(0).permutation).add_suffix(" shuffled")
COLUMNS = pd.concat([PEOPLE, SHUFFLED], axis=1) / PEOPLE.iloc[:, 0].std()
SELECTED = L1Selector("squared", "ebic").fit(COLUMNS, PROGRESS)


def are_zero_in_the_optimum(dropped, alpha):
    """Whether the coefficients of these columns (d,) are 0 in scikit-learn's optimum, solved to many digits."""
    return bool((Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(COLUMNS, PROGRESS).coef_[dropped] == 0).all())


def test_zeros_of_l1_are_proved():
    for step in (3, 10, 20, 29):
        proved, alpha = SELECTED.proved_path_[step], SELECTED.path_["alpha"][step]
        assert proved.any()
        assert are_zero_in_the_optimum(proved, alpha)
        residuals = PROGRESS - SELECTED.intercept_path_[step, 0] - COLUMNS @ SELECTED.coef_path_[step, 0]
        slope = np.abs((COLUMNS - COLUMNS.mean()).T @ residuals) / len(PROGRESS)
        assert (slope[proved] < alpha).all()
        used = SELECTED.coef_path_[step, 0] != 0
        np.testing.assert_allclose(slope[used], alpha, rtol=1e-2)  # the balance of slopes, up to the gap


def test_shuffled_columns_are_not_chosen():
    chosen = set(COLUMNS.columns[SELECTED.support_])
    assert chosen >= {"bmi", "s5", "bp"}
    assert not any(name.endswith("shuffled") for name in chosen)


def test_control_correlation_with_the_target():
    alpha = SELECTED.alpha_
    correlation = np.abs((COLUMNS - COLUMNS.mean()).T @ (PROGRESS - PROGRESS.mean())) / len(PROGRESS)
    assert not are_zero_in_the_optimum((correlation < alpha).to_numpy(), alpha)


def held_out_score(columns):
    """The mean R² of least squares on five folds in their order, by hand."""
    y, numbers = PROGRESS.to_numpy(), np.arange(len(PROGRESS))
    design = np.column_stack([np.ones(len(y)), PEOPLE.to_numpy()[:, list(columns)]])
    scores = []
    for test in np.array_split(numbers, 5):
        train = np.setdiff1d(numbers, test)
        beta = np.linalg.lstsq(design[train], y[train], rcond=None)[0]
        scores.append(1 - np.sum((y[test] - design[test] @ beta) ** 2) / np.sum((y[test] - y[test].mean()) ** 2))
    return np.mean(scores)


def each_step_is_best(taken):
    """Whether every column, with those before it, has a better score than any other in its place."""
    for step, column in enumerate(taken):
        others = set(range(PEOPLE.shape[1])) - set(taken[: step + 1])
        if any(held_out_score([*taken[:step], other]) > held_out_score([*taken[:step], column]) for other in others):
            return False
    return True


def test_each_step_is_the_best_of_its_candidates(greedy):
    assert each_step_is_best(greedy)


def test_control_columns_by_their_single_scores():
    assert not each_step_is_best(sorted(range(PEOPLE.shape[1]), key=lambda j: -held_out_score([j]))[:6])


def test_control_greedy_is_not_best(greedy):
    better = [PEOPLE.columns.get_loc(name) for name in ("sex", "bmi", "bp", "s1", "s2", "s5")]
    assert held_out_score(better) > held_out_score(greedy)
    assert not each_step_is_best(sorted(better, key=lambda j: -held_out_score([j])))


@pytest.fixture(scope="module")
def greedy():
    """Six columns in the order in which forward selection takes them."""
    search = SequentialSelector(LinearRegression(), n_features_to_select=6).fit(PEOPLE, PROGRESS)
    return search.path_["column"].tolist()
