"""The statements of docs/atlas/11_new_rows on samples of tables that are known; each with a broken variant."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier

from certifit import (
    BootstrapSplit,
    ConformalRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    assess,
    load_penguins,
)
from certifit.model_selection import ShuffleSplit
from certifit.model_selection.assessment.intervals import clopper_pearson

# The population: every patient is known, and samples of 24 are drawn from them with replacement.
EVERYBODY, PROGRESSION = load_diabetes(return_X_y=True)
PATIENTS, TARGET = EVERYBODY[:, [2, 3, 6, 8]], PROGRESSION / PROGRESSION.std()
N = 24
PENGUINS = load_penguins().dropna()
BIRDS = PENGUINS[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].to_numpy()
SEX = PENGUINS["sex"].to_numpy()


def drawn(count, seed=0):
    """Samples of the patients (count, 24)."""
    return np.random.default_rng(seed).integers(0, len(TARGET), (count, N))


def nearly(estimates, truth, truth_error=0.0):
    """Whether the mean of the estimates is within three of its standard errors of the truth."""
    error = np.hypot(np.std(estimates, ddof=1) / np.sqrt(len(estimates)), truth_error)
    return abs(np.mean(estimates) - truth) < 3 * error


# Holdout, folds, single rows. -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def errors():
    """err(m) with its standard error, by the mean of 400 models fitted to m patients by NumPy, asked about all."""
    A, found, rng = np.column_stack([np.ones(len(TARGET)), PATIENTS]), {}, np.random.default_rng(7)
    for m in (12, 18, 23, 24):
        rows = rng.integers(0, len(TARGET), (400, m))
        lines = np.stack([np.linalg.lstsq(A[k], TARGET[k], rcond=None)[0] for k in rows])
        squares = ((lines @ A.T - TARGET) ** 2).mean(axis=1)
        found[m] = squares.mean(), squares.std(ddof=1) / 20
    return found


def told_by(method, count=35, **options):
    """What a method says of the squared error, sample by sample."""
    asked = {"method": method, "metrics": "neg_mean_squared_error", **options}
    return np.array(
        [
            -assess(LinearRegression(), PATIENTS[k], TARGET[k], random_state=s, **asked).claims[0].estimate
            for s, k in enumerate(drawn(count))
        ]
    )


@pytest.fixture(scope="module")
def left_out():
    """Estimates by how many rows were fitted."""
    halves, folds = told_by("holdout", test_size=0.5), told_by("k-fold", n_splits=4)
    return {12: halves, 18: folds, 23: told_by("leave-one-out")}


def fitted_rows(count=35):
    """The error of each sample's own rows."""
    return np.array(
        [
            np.mean((LinearRegression().fit(PATIENTS[k], TARGET[k]).predict(PATIENTS[k]) - TARGET[k]) ** 2)
            for k in drawn(count)
        ]
    )


def test_rows_left_out_tell_the_error_of_smaller_models(left_out, errors):
    for m, estimates in left_out.items():
        assert nearly(estimates, *errors[m])
    bias = [errors[m][0] - errors[N][0] for m in (12, 18, 23)]
    assert bias[0] > bias[1] > bias[2] > -0.02


def test_control_a_holdout_does_not_tell_the_error_of_all_rows(left_out, errors):
    assert not nearly(left_out[12], *errors[N])


def test_control_fitted_rows_tell_too_little(errors):
    assert not nearly(fitted_rows(), *errors[N])


def varies_less(one, other):
    """Whether estimates vary less on the same samples: Pitman's test, by the correlation of sum and difference."""
    correlation = np.corrcoef(one + other, one - other)[0, 1]
    return correlation < -2 / np.sqrt(len(one))


def test_folds_vary_less_than_a_holdout(left_out):
    assert varies_less(left_out[18], left_out[12])
    assert varies_less(left_out[23], left_out[12])


def test_control_a_holdout_varies_no_less_than_folds(left_out):
    assert not varies_less(left_out[12], left_out[18])


# The bootstrap. -------------------------------------------------------------------------------------------------


def leaves_out_one_row_in_e(splitter, n=50):
    """Whether the share of rows left out is (1 - 1/n)^n on average."""
    return nearly([len(test) / n for _, test in splitter.split(np.zeros((n, 1)))], (1 - 1 / n) ** n, 1e-9)


def test_draws_leave_out_one_row_in_e():
    assert leaves_out_one_row_in_e(BootstrapSplit(200, random_state=0))


def test_control_draws_without_replacement():
    assert not leaves_out_one_row_in_e(ShuffleSplit(200, test_size=0.3, random_state=0))


@pytest.fixture(scope="module")
def mixed():
    return told_by(".632", 20, n_splits=10)


def test_632_is_nearly_right(mixed, errors):
    assert nearly(mixed, *errors[N])


def test_control_neither_part_alone_is_right(mixed, errors):
    fitted = fitted_rows(20)
    unseen = (mixed - 0.368 * fitted) / 0.632
    assert not nearly(fitted, *errors[N])
    assert not nearly(unseen, *errors[N])
    asked = {"metrics": "neg_mean_squared_error", "n_splits": 10, "random_state": 0}
    (first, *_) = drawn(20)
    alone = assess(LinearRegression(), PATIENTS[first], TARGET[first], method="bootstrap", **asked)
    assert -alone.claims[0].estimate == pytest.approx(unseen[0])


def test_control_632_believes_a_model_that_learns_by_heart():
    """Nearest neighbours of classes that no column tells: half of new rows are wrong."""
    coin, rng = np.arange(40) % 2, np.random.default_rng(0)
    samples = [rng.permutation(len(BIRDS))[:40] for _ in range(5)]
    wrong = [
        1 - assess(KNeighborsClassifier(1), BIRDS[k], coin, method=".632", n_splits=10).claims[0].estimate
        for k in samples
    ]
    assert not nearly(wrong, 0.5)
    assert np.mean(wrong) < 0.4


# Coverage. ------------------------------------------------------------------------------------------------------


def covers(held, share=0.9):
    """Whether so many of the intervals hold the truth as chance allows: a binomial test, once in 1000 wrong."""
    return binom.cdf(np.sum(held), len(held), share) > 1e-3


@pytest.fixture(scope="module")
def holdouts():
    """Ends of intervals from rows left out and from fitted rows, and the accuracy on all birds (20, 5)."""
    found, tree = [], DecisionTreeClassifier()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, len(SEX), 80)
        # Each drawn bird is measured anew: one that is drawn twice is no copy of a row.
        birds, sex = BIRDS[rows] + 1e-6 * rng.normal(size=(80, 4)), SEX[rows]
        asked = {"method": "holdout", "test_size": 0.5, "confidence": 0.9, "random_state": seed}
        said = assess(tree, birds, sex, **asked)
        fitted, tested = said.plan.splits[0]
        model = tree.fit(birds[fitted], sex[fitted])
        exact = clopper_pearson((model.predict(birds[tested]) == sex[tested]).sum(), len(tested), 0.9)
        np.testing.assert_allclose([said.claims[0].low, said.claims[0].high], exact, rtol=1e-9)
        right = (model.predict(birds[fitted]) == sex[fitted]).sum()
        naive = clopper_pearson(right, len(fitted), 0.9)
        found.append([said.claims[0].low, said.claims[0].high, *naive, (model.predict(BIRDS) == SEX).mean()])
    return np.array(found)


def test_holdout_intervals_cover(holdouts):
    low, high, _, _, truth = holdouts.T
    assert covers((low <= truth) & (truth <= high))


def test_control_intervals_of_fitted_rows_miss(holdouts):
    _, _, low, high, truth = holdouts.T
    assert not covers((low <= truth) & (truth <= high))


def covers_for_every_truth(low, high, n, share=0.9):
    """Whether the intervals of the counts 0 … n hold p with at least this chance, for 199 values of p."""
    p, counts = np.linspace(0.005, 0.995, 199)[:, None], np.arange(n + 1)
    held = (low <= p) & (p <= high)
    return bool(((binom.pmf(counts, n, p) * held).sum(axis=1) >= share).all())


def test_exact_intervals_cover_for_every_truth():
    for n in (5, 40):
        assert covers_for_every_truth(*clopper_pearson(np.arange(n + 1), np.full(n + 1, n), 0.9), n)


def test_control_the_normal_interval_covers_too_rarely():
    p = np.arange(41) / 40
    reach = 1.645 * np.sqrt(p * (1 - p) / 40)
    assert not covers_for_every_truth(p - reach, p + reach, 40)


# Conformal prediction. ------------------------------------------------------------------------------------------


def covers_by_rank(shares, n, coverage=0.9):
    """Whether the mean share of covered rows is k / (n + 1), k = ⌈(n + 1) coverage⌉."""
    return nearly(shares, np.ceil((n + 1) * coverage) / (n + 1))


@pytest.fixture(scope="module")
def conformal_shares():
    """The share of new patients covered, by 39 calibration rows left out and by the fitted rows (12, 2)."""
    found, tree = [], DecisionTreeRegressor(max_depth=4)
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(len(TARGET))
        old, new = order[:139], order[139:]
        X, y = EVERYBODY, TARGET
        honest = ConformalRegressor(tree, calibration_size=39 / 139, random_state=seed).fit(X[old], y[old])
        assert len(honest.scores_) == 39
        seen = ConformalRegressor(tree.fit(X[old], y[old]), method="prefit").fit(X[old], y[old])
        ends = [model.predict_interval(X[new]) for model in (honest, seen)]
        found.append([np.mean((low <= y[new]) & (y[new] <= high)) for low, high in (end.T for end in ends)])
    return np.array(found)


def test_conformal_intervals_cover(conformal_shares):
    assert covers_by_rank(conformal_shares[:, 0], 39)


TREE = DecisionTreeRegressor(max_depth=4).fit(EVERYBODY[:200], TARGET[:200])
TEN, THEIR_TARGETS = EVERYBODY[200:210], TARGET[200:210]


def covers_by_turns(interval, coverage):
    """Whether of ten rows, each new in turn, exactly k = ⌈10 coverage⌉ are covered; errors have no ties."""
    assert len(np.unique(np.abs(TREE.predict(TEN) - THEIR_TARGETS))) == 10
    others = [np.delete(np.arange(10), i) for i in range(10)]
    ends = np.array([interval(TEN[o], THEIR_TARGETS[o], TEN[[i]], coverage) for i, o in enumerate(others)])
    covered = (ends[:, 0] <= THEIR_TARGETS) & (ends[:, 1] >= THEIR_TARGETS)
    return covered.sum() == np.ceil(10 * coverage)


def conformal_interval(X, y, new, coverage):
    return ConformalRegressor(TREE, method="prefit", coverage=coverage).fit(X, y).predict_interval(new)[0]


def interval_of_the_share(X, y, new, coverage):
    """The smallest error that so large a share of the calibration rows does not exceed: n in place of n + 1."""
    reach = np.quantile(np.abs(y - TREE.predict(X)), coverage, method="inverted_cdf")
    return TREE.predict(new)[0] - reach, TREE.predict(new)[0] + reach


@pytest.mark.parametrize("coverage", [0.5, 0.75, 0.84])
def test_k_of_all_ranks_are_covered(coverage):
    assert covers_by_turns(conformal_interval, coverage)


def test_control_the_share_of_calibration_rows():
    assert not covers_by_turns(interval_of_the_share, 0.75)


def test_control_fitted_scores_are_too_small(conformal_shares):
    assert not covers_by_rank(conformal_shares[:, 1], 139)
