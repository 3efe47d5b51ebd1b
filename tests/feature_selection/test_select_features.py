"""Scores of single columns against SciPy's and scikit-learn's tests and closed forms, and the columns they choose."""

from decimal import Decimal, localcontext
from fractions import Fraction

import dask.array
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse, stats
from sklearn import feature_selection
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.feature_selection import SelectFdr, SelectKBest, SelectPercentile
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from certifit import DataError, GaussianNB
from certifit.checkers.feature_selection.filter_adapter import audit_filter
from certifit.divergence import kl
from certifit.families import Bernoulli, Gaussian
from certifit.feature_selection.scores import (
    SCORES,
    anova_f,
    correlation_f,
    feature_scores,
    information,
    jeffreys,
    mutual_information,
)
from certifit.feature_selection.select_features import SelectFeatures
from certifit.rows import as_rows

TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
DISCRETE = np.random.default_rng(0).integers(0, 5, (200, 3)).astype(float)
LABELS = (DISCRETE[:, 0] + np.random.default_rng(1).integers(0, 3, 200) > 3).astype(int)


def data_for(score):
    """A small table that the score takes."""
    if SCORES[score].target == "numbers":
        return load_diabetes(return_X_y=True)
    X, y = load_wine(return_X_y=True)
    return np.round(X) if score == "information" else X, y


def audit(model, X, y=None, w=None):
    return audit_filter(model, X, y, w, model.tol)


# ------------------------------------------------------------------------------------------ known solutions
@pytest.mark.parametrize("name", TABLES)
def test_anova_and_chi2_agree_with_scikit_learn(name):
    X, y = TABLES[name](return_X_y=True)
    varies = X.std(axis=0) > 0  # scikit-learn gives NaN for the others
    for mine, theirs in (("anova", feature_selection.f_classif), ("chi2", feature_selection.chi2)):
        found, expected = feature_scores(X, y, mine), theirs(X[:, varies], y)
        np.testing.assert_allclose(found.scores[varies], expected[0], rtol=1e-9)
        np.testing.assert_allclose(found.pvalues[varies], expected[1], rtol=1e-7, atol=1e-300)
        assert (found.scores[~varies] == 0).all()
        assert (found.pvalues[~varies] == 1).all()


def test_anova_agrees_with_scipy_and_statsmodels():
    X, y = load_iris(return_X_y=True)
    F, p = anova_f(X, y)
    expected = stats.f_oneway(*(X[y == c] for c in range(3)))
    np.testing.assert_allclose(F, expected.statistic, rtol=1e-11)
    np.testing.assert_allclose(p, expected.pvalue, rtol=1e-8)
    table = anova_lm(ols("x ~ C(y)", pd.DataFrame({"x": X[:, 0], "y": y})).fit())
    np.testing.assert_allclose(F[0], table["F"].iloc[0], rtol=1e-9)


def test_anova_is_right_at_offset_1e8_where_scikit_learn_cancels():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = np.round(rng.normal(size=(600, 2)) * 2**10 + 200.0 * y[:, None]) / 2**10  # exact after the shift too
    F, p = anova_f(X + 1e8, y)
    expected = stats.f_oneway(*(X[y == c] for c in range(3)))  # at offset 0
    np.testing.assert_allclose(F, expected.statistic, rtol=1e-10)
    np.testing.assert_allclose(p, expected.pvalue, rtol=1e-8)
    theirs, _ = feature_selection.f_classif(X + 1e8, y)
    assert (np.abs(theirs / expected.statistic - 1) > 1e-2).all()
    model = SelectFeatures(k=1).fit(X + 1e8, y)
    assert audit(model, X + 1e8, y).holds


@pytest.mark.parametrize("size", [1.0, 1e20, 3.5e277])
def test_chi2_of_a_column_without_effect_is_0_however_large_its_amounts_are(size):
    # The first column has 2, 4 and 4 tenths of its sum in classes that have 1, 2 and 2 of the rows.
    X = size / 3 * np.array([[2, 0], [0, 1], [1, 0], [2, 0], [0, 1.0]])
    y = [1, 2, 0, 2, 1]
    model = SelectFeatures("chi2", k=1).fit(X, y)
    assert model.scores_[0] == 0
    assert model.pvalues_[0] == 1
    np.testing.assert_allclose(model.scores_[1], size / 3 * 0.5, rtol=1e-12)  # (0, 1, 1) against (2, 4, 4) / 5
    assert audit(model, X, y).holds
    model.scores_ = model.scores_ * (1 + 1e-6)
    assert not audit(model, X, y).holds


def test_chi2_of_a_table_agrees_with_scipy():
    """For a column of 0 and 1 with its complement, the two scores add up to the test of independence."""
    x, y = (DISCRETE[:, 1] > 2).astype(float), LABELS
    table = np.array([[(y[x == v] == c).sum() for c in (0, 1)] for v in (0, 1)])
    scores = feature_scores(np.column_stack([x, 1 - x]), y, "chi2").scores
    np.testing.assert_allclose(scores.sum(), stats.chi2_contingency(table, correction=False).statistic, rtol=1e-12)


def test_correlation_agrees_with_scikit_learn_and_scipy():
    X, y = load_diabetes(return_X_y=True)
    F, p = correlation_f(X, y)
    expected = feature_selection.f_regression(X, y)
    np.testing.assert_allclose(F, expected[0], rtol=1e-10)
    np.testing.assert_allclose(p, expected[1], rtol=1e-8)
    line = stats.linregress(X[:, 2], y)
    np.testing.assert_allclose(F[2], (line.slope / line.stderr) ** 2, rtol=1e-10)
    far, _ = correlation_f(np.round(X * 2**20) / 2**20 + 2.0**26, y + 2.0**26)
    np.testing.assert_allclose(far, correlation_f(np.round(X * 2**20) / 2**20, y)[0], rtol=1e-7)


def test_variance_agrees_with_numpy_at_any_offset():
    X = load_wine().data
    np.testing.assert_allclose(feature_scores(X, score="variance").scores, X.var(axis=0), rtol=1e-12)


def test_information_is_the_divergence_of_joint_from_product():
    """I(x; y) = KL(joint || product of the margins), by certifit.divergence; and the entropies of SciPy."""
    table = np.array([[30.0, 10.0, 5.0], [4.0, 25.0, 26.0]])
    joint = table / table.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    value = float(kl(joint.ravel(), product.ravel()))
    bias = (6 - 2 - 3 + 1) / (2 * table.sum())  # Miller & Madow (1955)
    found, p = information(table)
    np.testing.assert_allclose(found, value - bias, rtol=1e-13)
    np.testing.assert_allclose(value, feature_information(joint), rtol=1e-12)
    g = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    np.testing.assert_allclose(p, g.pvalue, rtol=1e-10)


def test_information_of_columns_agrees_with_scikit_learn():
    scores, p = mutual_information(DISCRETE, LABELS)
    theirs = feature_selection.mutual_info_classif(DISCRETE, LABELS, discrete_features=True)
    bias = (5 * 2 - 5 - 2 + 1) / (2 * len(LABELS))  # every cell of these tables is occupied but for the first column
    np.testing.assert_allclose(scores[1:], np.maximum(theirs[1:] - bias, 0.0), atol=1e-12)
    assert scores.argmax() == theirs.argmax() == 0
    assert p[0] < 1e-10 < 0.01 < p[1:].min()


def test_miller_and_madow_take_the_bias_off():
    """The mean over many samples of a table is within a fifth of the bias (r-1)(c-1)/2n of the true information."""
    rng = np.random.default_rng(0)
    joint = np.array([[0.2, 0.05, 0.1], [0.05, 0.2, 0.1], [0.1, 0.05, 0.15]])
    exact = float(kl(joint.ravel(), np.outer(joint.sum(axis=1), joint.sum(axis=0)).ravel()))
    tables = rng.multinomial(200, joint.ravel(), size=2000).reshape(-1, 3, 3).astype(float)
    found = np.mean([information(table)[0] for table in tables])
    assert abs(found - exact) < 0.2 * (2 * 2 / 400)


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_binned_information_of_a_gaussian_pair(r):
    """Against the information of the cells' exact probabilities, which is below that of the pair, -½ log(1 - r²)."""
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 100_000))
    y = r * x + np.sqrt(1 - r**2) * e
    found = feature_scores(x[:, None], y, "regression_information").scores[0]
    edges = np.clip(stats.norm.ppf(np.arange(16) / 15), -9, 9)
    law = stats.multivariate_normal([0, 0], [[1, r], [r, 1]])
    below = law.cdf(np.stack(np.meshgrid(edges, edges), axis=-1))
    cells = np.clip(np.diff(np.diff(below, axis=0), axis=1), 0, None)
    np.testing.assert_allclose(found, feature_information(cells), rtol=0.01, atol=2e-3)
    assert found <= -0.5 * np.log(1 - r**2) + 2e-3


def feature_information(joint):
    """By SciPy's entropies."""
    return stats.entropy(joint.sum(axis=1)) + stats.entropy(joint.sum(axis=0)) - stats.entropy(joint.ravel())


def test_binned_information_of_a_class():
    """Two classes a standard deviation apart: against the integral of the closed form."""
    rng = np.random.default_rng(0)
    y = np.arange(100_000) % 2
    x = rng.normal(size=100_000) + y
    t = np.linspace(-9, 10, 200_001)
    p = (stats.norm.pdf(t) + stats.norm.pdf(t - 1)) / 2
    mixture = -np.trapezoid(p * np.log(p), t)
    exact = mixture - stats.norm.entropy()
    np.testing.assert_allclose(feature_scores(x[:, None], y, "binned_information").scores[0], exact, rtol=0.05)


def test_jeffreys_is_the_sum_of_both_divergences():
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    laws = [[Gaussian(x.mean(), x.var()) for x in X[y == c].T] for c in (0, 1)]
    expected = [float(kl(p, q)) + float(kl(q, p)) for p, q in zip(*laws, strict=True)]
    np.testing.assert_allclose(jeffreys(X, y), expected, rtol=1e-9)
    B = (np.median(X, axis=0) < X).astype(float)
    laws = [[Bernoulli(x.mean()) for x in B[y == c].T[:2]] for c in (0, 1)]
    expected = [float(kl(p, q)) + float(kl(q, p)) for p, q in zip(*laws, strict=True)]
    np.testing.assert_allclose(jeffreys(B, y)[:2], expected, rtol=1e-10)


def test_jeffreys_of_three_classes_is_the_mean_over_pairs():
    X, y = load_iris(return_X_y=True)  # equal classes
    pairs = [jeffreys(X[y != c], y[y != c]) for c in range(3)]
    np.testing.assert_allclose(jeffreys(X, y), np.mean(pairs, axis=0), rtol=1e-10)


# -------------------------------------------------------------------------------------------------- the choice
@pytest.mark.parametrize("score", SCORES)
def test_fit_proves_and_the_checker_agrees(score):
    X, y = data_for(score)
    model = SelectFeatures(score, k=3).fit(X, y)
    assert model.certificate_.holds
    checked = audit(model, X, y)
    assert checked.holds
    np.testing.assert_allclose(checked.objective, model.certificate_.objective, rtol=1e-11)
    np.testing.assert_allclose(model.objective(X, y).total, np.sort(model.scores_)[:-3].sum(), rtol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_sabotage_is_noticed(score):
    X, y = data_for(score)

    def noticed(**changes):
        model = SelectFeatures(score, k=3).fit(X, y)
        vars(model).update(changes)
        return not audit(model, X, y).holds

    model = SelectFeatures(score, k=3).fit(X, y)
    worst, best = model.scores_.argmin(), model.scores_.argmax()
    swapped = model.support_.copy()
    swapped[[worst, best]] = True, False
    fewer = model.support_.copy()
    fewer[np.flatnonzero(fewer)[model.scores_[fewer].argmin()]] = False
    assert noticed(scores_=model.scores_ * 1.0001)
    assert noticed(scores_=model.scores_[::-1].copy())
    assert noticed(support_=swapped)
    assert noticed(support_=fewer)
    if model.pvalues_ is not None:
        assert noticed(pvalues_=model.pvalues_ * 1.01)
    assert not audit(model, X[5:], y[5:]).holds  # other rows


@pytest.mark.parametrize("score", SCORES)
def test_the_bound_is_the_best_choice_by_scikit_learns_machinery(score):
    X, y = data_for(score)
    mine = SelectFeatures(score, k=3).fit(X, y)
    theirs = SelectKBest(lambda X, y: feature_scores(X, y, score).scores, k=3).fit(X, y)
    np.testing.assert_array_equal(mine.get_support(), theirs.get_support())
    assert mine.certificate_.bound <= mine.scores_[~theirs.get_support()].sum() * (1 + 1e-12)


def test_scikit_learns_selectors_are_audited():
    X, y = load_wine(return_X_y=True)
    for model in (SelectKBest(k=4), SelectPercentile(feature_selection.chi2), SelectFdr(anova_f, alpha=1e-9)):
        assert audit_filter(model.fit(X, y), X, y, None, 1e-6).holds
    damaged = SelectKBest(k=4).fit(X, y)
    damaged.scores_ = damaged.scores_ * 1.01
    assert not audit_filter(damaged, X, y, None, 1e-6).holds
    with pytest.raises(DataError, match="score function among"):
        audit_filter(SelectKBest(feature_selection.mutual_info_classif).fit(X, y), X, y, None, 1e-6)


@pytest.mark.filterwarnings("ignore:Features:UserWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("k", [3, 62, "all"])
@pytest.mark.parametrize("score", [feature_selection.f_classif, feature_selection.chi2])
def test_scikit_learn_scores_constant_columns_nan_and_is_still_right(score, k):
    """Three pixels of the digits never vary."""
    X, y = load_digits(return_X_y=True)
    model = SelectKBest(score, k=k).fit(X, y)
    assert np.isnan(model.scores_).sum() == 3
    assert audit_filter(model, X, y, None, 1e-6).holds
    model.scores_[21] = model.pvalues_[21] = np.nan  # a column that does vary
    assert not audit_filter(model, X, y, None, 1e-6).holds


def test_scikit_learn_may_keep_the_last_of_equals():
    X, y = load_wine(return_X_y=True)
    X = np.hstack([X[:, :2]] * 2)
    model = SelectKBest(k=1).fit(X, y)
    assert model.get_support(indices=True)[0] == 2  # ours would keep column 0
    assert audit_filter(model, X, y, None, 1e-6).holds


def test_two_rows_lie_on_a_line_whatever_their_weights():
    """r² is 1 and F infinite: with degrees of freedom of half a row, too, what is left is rounding."""
    X = np.array([[-0.09700006, 1.31604297], [-1.91652965, -1.20974371]])
    y, w = np.array([208731.55841344, 97627.24967779]), np.array([2.27977844, 0.24015412])
    model = SelectFeatures("correlation", k=1).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(model.scores_, np.inf)
    assert audit_filter(model, X, y, w, 1e-6).holds


@pytest.mark.parametrize("power", [-1030, -700, -230, 230, 700, 1000])
@pytest.mark.parametrize(
    "score", ["anova", "jeffreys", "binned_information", "correlation", "regression_information"]
)
def test_scores_do_not_depend_on_the_size_of_a_column(score, power):
    X, y = load_wine(return_X_y=True)
    y = y if score in ("anova", "jeffreys", "binned_information") else X[:, 12] / 1024
    X = np.round(X[:, :12] * 16) / 1024  # so that also denormal numbers keep every digit
    large = X.copy()
    large[:, ::2] = np.ldexp(X[:, ::2], power)
    plain, model = SelectFeatures(score).fit(X, y), SelectFeatures(score).fit(large, y)
    np.testing.assert_allclose(model.scores_, plain.scores_, rtol=1e-12)
    assert model.certificate_.holds
    assert audit_filter(model, large, y, None, 1e-9).holds
    from_csr = SelectFeatures(score).fit(sparse.csr_matrix(large), y)
    np.testing.assert_allclose(from_csr.scores_, plain.scores_, rtol=1e-12)


def test_a_target_of_any_size_correlates_alike():
    X, y = load_wine(return_X_y=True)
    y = np.round(y + X[:, 12] / 1024, 3)
    for score in ("correlation", "regression_information"):
        for power in (-900, 900):
            model = SelectFeatures(score).fit(X, np.ldexp(y, power))
            np.testing.assert_allclose(model.scores_, SelectFeatures(score).fit(X, y).scores_, rtol=1e-10)
            assert audit_filter(model, X, np.ldexp(y, power), None, 1e-9).holds


def test_chi2_of_small_amounts_is_in_proportion():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(4, size=(60, 3)).astype(float), np.arange(60) % 3
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(
            SelectFeatures("chi2").fit(X * size, y).scores_, SelectFeatures("chi2").fit(X, y).scores_ * size
        )


def test_information_next_to_independence_keeps_its_digits():
    # one cell has nearly all the weight; exact arithmetic, with a series for log(1 + t)
    table = np.array([[1e8, 3.0, 2.0], [1.0, 1e-3, 0.0], [5.0, 2e-3, 1e-3]])
    cells = [[Fraction(value) for value in row] for row in table]
    n = sum(map(sum, cells))
    rows, columns = [sum(row) for row in cells], [sum(column) for column in zip(*cells, strict=True)]
    with localcontext(prec=60):
        exact = sum(
            _decimal(cells[i][j] / n) * _decimal(cells[i][j] * n / (rows[i] * columns[j])).ln()
            for i in range(3)
            for j in range(3)
            if cells[i][j]
        )
    bias = (8 - 3 - 3 + 1) / (2 * float(n))
    found, _ = information(table)
    assert float(exact) < 1e-6  # entropies of about 1e-6, whose differences would be wrong in the eighth digit
    assert found == pytest.approx(max(0.0, float(exact) - bias), rel=1e-9, abs=1e-22)


def _decimal(share: Fraction) -> Decimal:
    return Decimal(share.numerator) / Decimal(share.denominator)


def test_names_and_inverse():
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = SelectFeatures(k=0.2).fit(X, y)  # 3 of 13
    names = model.get_feature_names_out().tolist()
    assert names == X.columns[model.support_].tolist()
    assert len(names) == 3
    kept = model.set_output(transform="pandas").transform(X)
    assert kept.columns.tolist() == names
    back = model.inverse_transform(kept.to_numpy())
    np.testing.assert_array_equal(back[:, model.support_], X[names])
    assert (back[:, ~model.support_] == 0).all()


def test_threshold_and_number():
    X, y = load_wine(return_X_y=True)
    scores = feature_scores(X, y).scores
    model = SelectFeatures(k=1.0, threshold=100.0).fit(X, y)
    np.testing.assert_array_equal(model.support_, scores > 100)
    assert audit(model, X, y).holds
    np.testing.assert_array_equal(
        SelectFeatures(k=2, threshold=100.0).fit(X, y).support_, scores >= np.sort(scores)[-2]
    )
    assert SelectFeatures(k=13).fit(X, y).support_.all()
    with pytest.raises(DataError, match=r"no column that scores above it.*Lower the threshold"):
        SelectFeatures(threshold=1e9).fit(X, y)


def test_inside_pipelines_and_searches():
    X, y = load_wine(return_X_y=True)
    pipe = make_pipeline(SelectFeatures(), GaussianNB())
    search = GridSearchCV(pipe, {"selectfeatures__k": [1, 6]}, cv=3).fit(X, y)
    assert search.best_params_ == {"selectfeatures__k": 6}


# ------------------------------------------------------------------------------------------- rows of any kind
@pytest.mark.parametrize("score", SCORES)
def test_every_source_gives_the_same_scores(score, tmp_path):
    X, y = data_for(score)
    expected = feature_scores(X, y, score)
    table = pa.table({**{f"c{j}": X[:, j] for j in range(X.shape[1])}, "y": y})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    sources = {
        "parquet": (str(tmp_path / "t.parquet"), "y"),
        "dask": (dask.array.from_array(X, chunks=(50, X.shape[1])), dask.array.from_array(y, chunks=50)),
        "sparse": (sparse.csr_matrix(X), y),
    }
    for name, (A, b) in sources.items():
        if score == "variance" and name == "parquet":
            A, b = table.drop_columns("y"), None
        found = feature_scores(A, None if score == "variance" else b, score)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-11, atol=1e-13, err_msg=name)
    if score != "variance":
        model = SelectFeatures(score, k=3).fit(str(tmp_path / "t.parquet"), "y")
        kept = model.transform(str(tmp_path / "t.parquet"))
        np.testing.assert_array_equal(kept, X[:, model.support_])
        assert audit(model, str(tmp_path / "t.parquet"), "y").holds


def test_sparse_stays_sparse():
    X, y = sparse.csr_matrix(DISCRETE), LABELS
    kept = SelectFeatures("chi2", k=1).fit(X, y).transform(X)
    assert sparse.issparse(kept)
    np.testing.assert_array_equal(kept.toarray()[:, 0], DISCRETE[:, 0])


@pytest.mark.parametrize("score", SCORES)
def test_weight_two_is_a_row_twice_and_zero_is_absent(score):
    X, y = data_for(score)
    times = np.arange(len(X)) % 3
    weighted = feature_scores(X, y, score, times.astype(float))
    repeated = feature_scores(np.repeat(X, times, axis=0), np.repeat(y, times), score)
    np.testing.assert_allclose(weighted.scores, repeated.scores, rtol=1e-9, atol=1e-12)
    if weighted.pvalues is not None:
        np.testing.assert_allclose(weighted.pvalues, repeated.pvalues, rtol=1e-6)


# --------------------------------------------------------------------------------------------------- corners
@pytest.mark.parametrize("score", SCORES)
def test_a_constant_column_scores_nothing(score):
    X, y = data_for(score)
    X = np.column_stack([np.full(len(X), 0.1), X[:, :2]])
    found = feature_scores(X, y, score)
    if score == "chi2":  # a constant amount of every row is spread as the rows are
        np.testing.assert_allclose(found.scores[0], 0, atol=1e-12)
    else:
        assert found.scores[0] == 0
    assert found.pvalues is None or found.pvalues[0] == pytest.approx(1.0)
    assert np.isfinite(found.scores).all()


def test_a_column_that_decides_alone():
    y = np.arange(60) % 3
    X = np.column_stack([0.1 * y, np.random.default_rng(0).normal(size=60)])
    for score in ("anova", "jeffreys"):
        model = SelectFeatures(score, k=1).fit(X, y)
        assert model.scores_[0] == np.inf
        assert model.get_support(indices=True).tolist() == [0]
        assert audit(model, X, y).holds
    F, p = correlation_f(X[:, :1], 3.0 * y + 1)
    assert F[0] == np.inf
    assert p[0] == 0


def test_among_equal_columns_the_first_is_kept():
    X, y = load_iris(return_X_y=True)
    X = X[:, [2, 0, 2, 2]]
    model = SelectFeatures(k=2).fit(X, y)
    assert model.get_support(indices=True).tolist() == [0, 2]
    model.support_ = np.array([True, False, False, True])
    assert not audit(model, X, y).holds


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"score_func": "magic"}, "score_func='magic'; wanted one of 'variance', 'anova'"),
        ({"k": 5}, "k=5 for 4 columns; wanted a whole number from 1 to 4"),
        ({"k": 0}, "k=0 for 4 columns"),
        ({"k": 1.5}, "k=1.5 for 4 columns"),
        ({"k": True}, "k=True"),
        ({"threshold": "high"}, "threshold='high'"),
    ],
)
def test_settings_that_are_refused(settings, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(DataError) as caught:
        SelectFeatures(**settings).fit(X, y)
    assert words in str(caught.value)


def test_data_that_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(DataError, match="one class"):
        anova_f(X, np.zeros(150))
    with pytest.raises(DataError, match="NaN in every row"):
        anova_f(np.full((150, 1), np.nan), y)
    with pytest.raises(DataError, match="negative value in column 1 of X"):
        feature_scores(np.column_stack([X[:, 0], -X[:, 1]]), y, "chi2")
    with pytest.raises(DataError, match=r"1001 or more different values in column 0.*binned_information"):
        mutual_information(np.arange(1001.0)[:, None], np.arange(1001) % 2)
    with pytest.raises(DataError, match="more than 3"):
        anova_f(X[[0, 50, 100]], y[[0, 50, 100]])
    with pytest.raises(DataError, match="more than 2"):
        correlation_f(X[:2], [0.0, 1.0])


def test_many_values_are_found_across_blocks():
    """Each block has few, all together too many."""
    rows = as_rows(np.arange(40_000.0)[:, None] // 32, np.arange(40_000) % 2, target="classes")
    with pytest.raises(DataError, match="different values in column 0"):
        feature_scores(rows, score="information")
