"""Numbers of other implementations and of papers, on the same splits, scores and differences.

Reference numbers were made once with mlxtend 0.25.0, baycomp 1.0.3, crepes 0.9.1 and MAPIE 1.6.0, by the calls that
each test names.
"""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from certifit import ConformalClassifier, ConformalRegressor, assess, bayesian_signed_rank
from certifit.checkers.model_selection.intervals import certify_intervals
from certifit.model_selection.assessment.intervals import corrected_claim
from certifit.model_selection.comparison.paired_tests import corrected_t_test, correlated_posterior

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)


def mlxtend_splits(n, n_splits, seed):
    """`BootstrapOutOfBag(n_splits, random_seed)`: rows drawn with replacement, tested on the rest."""
    rng, everything = np.random.RandomState(seed), np.arange(n)
    for _ in range(n_splits):
        train = rng.choice(everything, size=n, replace=True)
        yield train, np.setdiff1d(everything, train)


def test_mlxtend_on_the_same_splits():
    """bootstrap_point632_score(KNeighborsClassifier(3), X, y, n_splits=20, random_seed=1, method=…), its mean.

    Its apparent error is that of the drawn rows' models on all rows; Efron's, and ours, of the model of all rows.
    """
    X, y = IRIS[0][:, :2], IRIS[1]
    splits = [*mlxtend_splits(150, 20, 1)]
    model = KNeighborsClassifier(3)
    left_out = assess(model, X, y, method=splits)["accuracy"]
    assert left_out.estimate == pytest.approx(0.7403794065513236, abs=1e-12)
    apparent = np.array([model.fit(X[train], y[train]).score(X, y) for train, _ in splits])
    theirs = 0.632 * left_out.values + 0.368 * apparent
    assert theirs.mean() == pytest.approx(0.7706611182737697, abs=1e-12)
    assert assess(model, X, y, method=".632").claims[0].estimate == pytest.approx(0.7706611182737697, abs=0.03)
    assert assess(model, X, y, method=".632+").claims[0].estimate == pytest.approx(0.766460027650038, abs=0.03)


def test_efron_and_tibshirani_where_the_target_is_chance():
    """Two equally likely classes that no column tells, one nearest neighbour: the error is ½ and the apparent one 0.

    Err(.632) then is 0.632 · ½ = 0.316, which is what the .632+ rule was made to mend (Efron & Tibshirani 1997,
    section 3): its estimate is about ½.
    """
    rng = np.random.default_rng(0)
    found = {".632": [], ".632+": []}
    for seed in range(6):
        X, y = rng.normal(size=(20, 5)), np.repeat([0, 1], 10)
        for method, values in found.items():
            claim = assess(KNeighborsClassifier(1), X, y, method=method, n_splits=15, random_state=seed)["accuracy"]
            values.append(1 - claim.estimate)
    # Each estimate's deviation is about 0.07 and 0.1.
    assert np.mean(found[".632"]) == pytest.approx(0.316, abs=0.05)
    assert np.mean(found[".632+"]) == pytest.approx(0.5, abs=0.08)


class FisherRule(ClassifierMixin, BaseEstimator):
    """Fisher's linear discriminant function of two classes of equal chance, in a few lines that take no time."""

    def fit(self, X, y):
        self.classes_, parts = np.array([0, 1]), [X[y == kind] for kind in (0, 1)]
        means = np.array([part.mean(axis=0) for part in parts])
        within = sum((part - mean).T @ (part - mean) for part, mean in zip(parts, means, strict=True))
        self.slopes_ = np.linalg.lstsq(within, means[1] - means[0])[0]
        self.level_ = means.mean(axis=0) @ self.slopes_
        return self

    def predict(self, X):
        return (X @ self.slopes_ > self.level_).astype(int)

    def true_error(self, apart):
        """Classes are N(-a, I) and N(a, I): each side is missed with the chance of a normal tail."""
        length, shift = np.linalg.norm(self.slopes_), self.slopes_ @ apart
        # Of class 0, slopes x > level; of class 1, the other side.
        return norm.cdf(np.array([-shift - self.level_, self.level_ - shift]) / length).mean()


def test_efron_and_tibshirani_where_the_rule_is_smooth():
    """20 rows of two normal classes in 2 dimensions and Fisher's rule, one of the paper's designs: the .632+ estimate
    is nearer to the true error than leave-one-out cross-validation, in root mean square (their abstract, and all
    tables). The figures of their tables are not compared: true errors here are exact, and rows drawn anew.
    """
    rng, off = np.random.default_rng(0), {".632+": [], "leave-one-out": []}
    apart = np.array([0.5, 0.0])
    for _ in range(60):
        y = np.repeat([0, 1], 10)
        X = rng.normal(size=(20, 2)) + np.where(y, 1, -1)[:, None] * apart
        truth = FisherRule().fit(X, y).true_error(apart)
        for method, values in off.items():
            options = {"n_splits": 25} if method == ".632+" else {}
            values.append(1 - assess(FisherRule(), X, y, method=method, **options)["accuracy"].estimate - truth)
    size = {method: np.sqrt(np.mean(np.square(values))) for method, values in off.items()}
    assert size[".632+"] < 0.9 * size["leave-one-out"]
    assert abs(np.mean(off[".632+"])) < 0.05


def test_baycomp_signed_ranks():
    """SignedRankTest.probs(a, 0, rope, nsamples=400000, random_state=1): 0.9676, 0.0324, 0.00003; 0.9994 without."""
    a = [0.024, 0.016, 0.039, 0.023, 0.004, 0.031, 0.059, 0.048, -0.001, -0.018, 0.001, 0.021]
    found = bayesian_signed_rank(a, np.zeros(12), rope=0.01, draws=100_000)
    np.testing.assert_allclose(found, (3.25e-05, 0.0324125, 0.967555), atol=0.003)
    assert bayesian_signed_rank(a, np.zeros(12), rope=0.0, draws=100_000).better == pytest.approx(0.9993675, abs=5e-4)


DIFFERENCES = np.array(
    [
        -37, 6, -15, -5, -1, 4, 18, 31, 7, 37, -3, 17, 28, 12, -5, -8, 1, 14, -10, 6, 7, 21, 14, 17, -3, 7, 26, 40,
        -15, 40, 37, 26, 15, 4, 39, 49, 46, 36, 17, -14, 10, 23, -16, 18, 19, 24, -14, -3, 1, -13,
    ]
) / 1000  # fmt: skip


def test_baycomp_correlated_t():
    """CorrelatedTTest.probs(d, 0, rope, runs=5) of 5 times 10 folds: 0.5633, 0.4350, 0.0017; 0.9438 without."""
    found = correlated_posterior(DIFFERENCES, 1 / 9, 0.01)
    np.testing.assert_allclose(
        found, (0.001729538866256486, 0.43496518100007575, 0.5633052801336678), atol=1e-9
    )  # fmt: skip
    assert correlated_posterior(DIFFERENCES, 1 / 9, 0.0).better == pytest.approx(0.9437931248888418, abs=1e-9)


def test_nadeau_and_bengio():
    """Their correction for J = 15 tests of a tenth of the rows: (1/15 + (1/10) / (9/10)) S².

    Ten tests of a tenth share no row: t has 9 degrees of freedom, not their 14, so that it does not cover less often.
    """
    scores = DIFFERENCES[:15]
    claim = corrected_claim("accuracy", scores, 0.9, ratio=1 / 9)
    quantile = 1.8331129326536335  # the 95 % quantile of t with 9 degrees of freedom, in any table
    assert claim.high - claim.estimate == pytest.approx(quantile * np.sqrt(8 / 45) * scores.std(ddof=1), rel=1e-9)
    assert certify_intervals([claim], None).holds


AREAS = np.array(
    [
        -1, -3, 0, 0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, -1, 0, 0, 0, 0, -1, -1, 1, -2, 0, 1, 1, 1, 0, 0, -1, 1,
        0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 1, 1, 0, 1, -1, 2, 0, 0, 0, 0, 0, 5, -1,
        0, 1, 0, 0, 0, 0, 1, 1, 2, 0, 1, 0, -1, 0, 0, 1, -2, 1, 0, 1, 0, 0, 0, 0, 0, 0, -1, 0, -1, 0, 0, 1, 2,
        0, 0,
    ]
) / 25  # fmt: skip


def test_nadeau_and_bengio_in_scikit_learns_example():
    """Its page "Statistical comparison of models using grid search": t = 0.750 and p = 0.227, to one side.

    Differences of the areas under ROC curves of two SVC, RBF and linear, by 10 times 10 folds of its 100 moons;
    made with scikit-learn 1.9.1 by the page's calls. Its chance that the first is better is 0.773.
    """
    assert corrected_t_test(AREAS, 10 / 90) / 2 == pytest.approx(0.227, abs=5e-4)
    assert student.isf(corrected_t_test(AREAS, 10 / 90) / 2, 99) == pytest.approx(0.750, abs=5e-4)
    assert correlated_posterior(AREAS, 10 / 90, 0.0).better == pytest.approx(0.773, abs=5e-4)


RESIDUALS = [
    2.0409, -2.5557, 0.4181, -0.5678, -0.4526, -0.2156, -2.02, -0.2319, -0.8652, 3.323, 0.2258, -0.3526, -0.2813,
    -0.668, -1.0552, -0.3908, 0.4819, -0.2386, 0.9578, -0.1998, 0.0243, 1.5458, 0.5451, -0.5052, -0.1828, 0.5405,
    1.9351, -0.2696, -0.2436, 1.0023, -0.8865, -0.2917, 0.8825, 0.5804, 0.0915, 0.6701, -2.8282, 1.0213, -0.9596,
    -1.6686, 0.2764, 0.7005, -0.4448, -1.0764, 0.0261, -0.0527, 1.4056, 0.7474, 0.1938, 1.1116, -0.2055, -0.9259,
    0.5841, 0.5825, -0.2148, -0.7828, 0.2292,
]  # fmt: skip


def test_crepes_on_the_same_scores():
    """ConformalRegressor().fit(residuals).predict_int([0, 1, -2], confidence=0.9): 2.02 to both sides."""
    X = np.arange(57.0)[:, None]
    flat = LinearRegression().fit(X, np.zeros(57))
    model = ConformalRegressor(flat, method="prefit", coverage=0.9).fit(X, np.array(RESIDUALS))
    np.testing.assert_allclose(model.predict_interval([[0.0], [3.0]]), [[-2.02, 2.02]] * 2, atol=1e-12)


def test_mapie_on_the_same_rows():
    """SplitConformalRegressor(fitted, confidence_level=0.9, prefit=True), conformalised on rows 200 to 349."""
    X, y = DIABETES
    fitted = LinearRegression().fit(X[:200], y[:200])
    model = ConformalRegressor(fitted, method="prefit", coverage=0.9).fit(X[200:350], y[200:350])
    wanted = [
        [152.52210446813484, 350.65680759798084],
        [-10.460205091078421, 187.67449803876758],
        [-23.572930619058184, 174.56177251078782],
    ]
    np.testing.assert_allclose(model.predict_interval(X[350:353]), wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        (
            "cv+",
            [
                [94.79140381112597, 275.4580018474153],
                [3.794952316262112, 179.20215708941157],
                [43.57656229945724, 222.17769008687713],
            ],
        ),
        (
            "jackknife+",
            [
                [99.16339163532481, 273.84649558073215],
                [6.070325713711711, 181.3226288363283],
                [49.13473618317707, 223.33771822693348],
            ],
        ),
    ],
)
def test_mapie_by_folds(method, wanted):
    """CrossConformalRegressor(LinearRegression(), confidence_level=0.9, method='plus', cv=…), rows 0 to 148.

    Its cv are our folds, KFold(5, shuffle=True, random_state=RandomState(0).randint(2**31)), or LeaveOneOut().
    """
    X, y = DIABETES
    model = ConformalRegressor(LinearRegression(), method=method, coverage=0.9, n_splits=5, random_state=0)
    np.testing.assert_allclose(model.fit(X[:149], y[:149]).predict_interval(X[400:403]), wanted, rtol=1e-9)


def test_mapie_sets_by_folds():
    """CrossConformalClassifier(GaussianNB(), confidence_level=0.9, conformity_score='lac', cv=…), 'crossval'."""
    X, y = IRIS[0][:, :2], IRIS[1]
    order = np.random.RandomState(0).permutation(150)
    model = ConformalClassifier(GaussianNB(), method="cv+", coverage=0.9, n_splits=5, random_state=0)
    chosen = model.fit(X[order[:99]], y[order[:99]]).predict_set(X[order[99:139]])
    assert chosen.sum(axis=0).tolist() == [17, 13, 20]
    assert np.flatnonzero(chosen.sum(axis=1) > 1).tolist() == [9, 13, 16, 20, 27, 28, 29, 31, 33, 38]


def test_mapie_sets():
    """SplitConformalClassifier(prefit, conformity_score='lac'), confidence 0.95: classes in 40 sets, empty sets."""
    X, y = IRIS
    order = np.random.RandomState(0).permutation(150)
    fitted = GaussianNB().fit(X[order[:60]], y[order[:60]])
    model = ConformalClassifier(fitted, method="prefit", coverage=0.95).fit(X[order[60:110]], y[order[60:110]])
    chosen = model.predict_set(X[order[110:]])
    assert chosen.sum(axis=0).tolist() == [14, 11, 12]
    assert np.flatnonzero(~chosen.any(axis=1)).tolist() == [9, 22, 31]
