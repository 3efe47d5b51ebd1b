"""Selectors under scikit-learn's names against scikit-learn's own: the same scores, the same columns, and a proof."""

import copy
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn import feature_selection as theirs
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import certifit.feature_selection as ours
from certifit import DataError, audit

DIABETES, AMOUNTS = load_diabetes(return_X_y=True)
WINE, LABELS = load_wine(return_X_y=True)
WINE = (WINE - WINE.mean(axis=0)) / WINE.std(axis=0)
TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}


# ------------------------------------------------------------------------------------------------- score functions
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["f_classif", "chi2"])
def test_scores_of_classes_are_scikit_learns(name, table):
    X, y = TABLES[table](return_X_y=True)
    used = X.std(axis=0) > 0
    for matrix in (X[:, used], sparse.csr_matrix(X[:, used])):
        scores, p = getattr(ours, name)(matrix, y)
        expected, expected_p = getattr(theirs, name)(X[:, used], y)
        np.testing.assert_allclose(scores, expected, rtol=1e-8)
        np.testing.assert_allclose(p, expected_p, rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("force_finite", [True, False])
def test_correlations_are_scikit_learns(center, force_finite):
    options = {"center": center, "force_finite": force_finite}
    for X in (DIABETES, DIABETES + 3.0, sparse.csr_matrix(DIABETES)):
        np.testing.assert_allclose(
            ours.r_regression(X, AMOUNTS, **options), theirs.r_regression(X, AMOUNTS, **options), rtol=1e-10
        )
        for mine, other in zip(
            ours.f_regression(X, AMOUNTS, **options), theirs.f_regression(X, AMOUNTS, **options), strict=True
        ):
            np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("force_finite", [True, False])
def test_constant_and_perfect_columns_are_scikit_learns(force_finite):
    # scikit-learn's own cases: a constant column, one that is the target, and one that is minus the target
    y = np.array([0.0, 1.0, 2.0, 5.0])
    X = np.column_stack([np.full(4, 2.0), y, -y])
    found, p = ours.f_regression(X, y, force_finite=force_finite)
    largest = np.finfo(float).max if force_finite else np.inf
    constant = 0.0 if force_finite else np.nan
    np.testing.assert_array_equal(found, [constant, largest, largest])
    np.testing.assert_array_equal(p, [1.0 if force_finite else np.nan, 0.0, 0.0])
    np.testing.assert_allclose(ours.r_regression(X, y, force_finite=force_finite), [constant, 1.0, -1.0])


def test_constant_columns_are_warned_of():
    X = np.column_stack([WINE, np.ones(len(WINE))])
    with pytest.warns(UserWarning, match="column 13: constant, with score 0"):
        scores, p = ours.f_classif(X, LABELS)
    assert (scores[-1], p[-1]) == (0.0, 1.0)


def test_mutual_information_is_scikit_learns():
    for seed in (0, 1):
        np.testing.assert_array_equal(
            ours.mutual_info_classif(WINE, LABELS, random_state=seed),
            theirs.mutual_info_classif(WINE, LABELS, random_state=seed),
        )
    np.testing.assert_array_equal(
        ours.mutual_info_regression(DIABETES, AMOUNTS, random_state=0),
        theirs.mutual_info_regression(DIABETES, AMOUNTS, random_state=0),
    )


# --------------------------------------------------------------------------------------------------------- filters
FILTERS = [
    ("SelectKBest", {"k": 3}),
    ("SelectKBest", {"k": "all"}),
    ("SelectKBest", {"k": 0}),
    ("SelectPercentile", {"percentile": 30}),
    ("SelectPercentile", {"percentile": 0}),
    ("SelectPercentile", {"percentile": 100}),
    ("SelectFpr", {"alpha": 1e-8}),
    ("SelectFdr", {"alpha": 1e-8}),
    ("SelectFwe", {"alpha": 1e-8}),
    ("GenericUnivariateSelect", {"mode": "k_best", "param": 2}),
    ("GenericUnivariateSelect", {"mode": "percentile", "param": 40}),
    ("GenericUnivariateSelect", {"mode": "fdr", "param": 1e-5}),
]


@pytest.mark.parametrize(("name", "settings"), FILTERS, ids=str)
def test_filters_keep_scikit_learns_columns(name, settings):
    for score in (None, theirs.f_classif, ours.f_classif):
        given = {} if score is None else {"score_func": score}
        model = getattr(ours, name)(**given, **settings).fit(WINE, LABELS)
        other = getattr(theirs, name)(**settings).fit(WINE, LABELS)
        np.testing.assert_allclose(model.scores_, other.scores_, rtol=1e-9)
        np.testing.assert_allclose(model.pvalues_, other.pvalues_, rtol=1e-6)
        np.testing.assert_array_equal(model.get_support(), other.get_support())
        found = audit(model, WINE, LABELS)
        assert found.kind == "exact"
        assert found.holds
        assert model.certificate_.holds
        assert audit(other, WINE, LABELS).holds


def test_among_equal_scores_scikit_learns_columns_are_kept():
    X = np.hstack([WINE[:, :3]] * 3)
    for name, settings in [("SelectKBest", {"k": k}) for k in range(10)] + [
        ("SelectPercentile", {"percentile": p}) for p in range(0, 101, 7)
    ]:
        model = getattr(ours, name)(**settings).fit(X, LABELS)
        # scikit-learn's rule on the same numbers: its own scores of equal columns may differ in the last digit
        other = getattr(theirs, name)(lambda X, y, s=model.scores_: s, **settings).fit(X, LABELS)
        np.testing.assert_array_equal(model.get_support(), other.get_support())
        assert audit(model, X, LABELS).holds


def signed(X, _y):
    return np.asarray(X).sum(axis=0) * np.arange(X.shape[1]), np.linspace(0, 1, X.shape[1])


@pytest.mark.parametrize(
    "score",
    [
        signed,
        lambda X, y: np.arange(X.shape[1]) * 1.0,
        partial(theirs.f_regression, center=False),
        partial(theirs.mutual_info_classif, random_state=0),
        partial(ours.mutual_info_classif, random_state=0, discrete_features=False),
        lambda X, y: np.where(np.arange(X.shape[1]) % 2, np.nan, 1.0),
    ],
    ids=["signed", "numbers", "partial", "neighbours", "own neighbours", "nan"],
)
def test_any_function_can_score(score):
    model, other = (module.SelectKBest(score, k=4).fit(WINE, LABELS) for module in (ours, theirs))
    np.testing.assert_array_equal(model.scores_, other.scores_)
    np.testing.assert_array_equal(model.get_support(), other.get_support())
    assert audit(model, WINE, LABELS).holds
    hurt = copy.deepcopy(model)
    hurt.scores_ = hurt.scores_ + 1e-3 * np.arange(13)
    assert not audit(hurt, WINE, LABELS).holds


def test_a_random_function_is_told():
    model = ours.SelectKBest(lambda X, y: np.random.default_rng().random(X.shape[1]), k=2).fit(WINE, LABELS)
    assert audit(model, WINE, LABELS).claim.startswith("by the scores recorded, which are random")


def test_a_filter_needs_no_target_where_its_function_does_not():
    model = ours.SelectKBest(lambda X, y: X.var(axis=0), k=2).fit(DIABETES * np.arange(10))
    np.testing.assert_array_equal(model.get_support(indices=True), [8, 9])
    assert audit(model, DIABETES * np.arange(10)).holds


@pytest.mark.parametrize(
    ("score", "y"), [(theirs.f_classif, LABELS), (theirs.f_regression, WINE[:, 0]), (ours.r_regression, WINE[:, 0])]
)
def test_filters_take_any_source_and_weights(score, y, tmp_path):
    frame = pd.DataFrame(WINE, columns=[f"c{j}" for j in range(13)])
    whole = ours.SelectKBest(score, k=4).fit(frame, y)
    names = whole.get_feature_names_out().tolist()
    pq.write_table(pa.Table.from_pandas(frame.assign(target=y)), tmp_path / "t.parquet", row_group_size=50)
    streamed = ours.SelectKBest(score, k=4).fit(tmp_path / "t.parquet", y="target")
    np.testing.assert_allclose(streamed.scores_, whole.scores_, rtol=1e-10)
    assert streamed.get_feature_names_out().tolist() == names
    assert audit(streamed, tmp_path / "t.parquet", "target").holds
    kept = whole.set_output(transform="pandas").transform(frame)
    assert kept.columns.tolist() == names
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = ours.SelectKBest(score, k=4).fit(WINE, y, sample_weight=weights)
    repeated = ours.SelectKBest(score, k=4).fit(np.repeat(WINE, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.scores_, repeated.scores_, rtol=1e-10)
    assert audit(weighted, WINE, y, weights).holds


def test_a_search_over_a_pipeline_chooses_as_with_scikit_learns():
    grid = {"selectkbest__k": [1, 3, 6, "all"], "svc__C": [0.1, 1.0]}
    found = []
    for module in (ours, theirs):
        pipeline = make_pipeline(StandardScaler(), module.SelectKBest(module.f_classif), SVC())
        found.append(GridSearchCV(pipeline, grid, cv=3).fit(WINE, LABELS))
    mine, other = found
    assert mine.best_params_ == other.best_params_
    np.testing.assert_array_equal(mine.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(
        mine.best_estimator_[:-1].get_feature_names_out(), other.best_estimator_[:-1].get_feature_names_out()
    )


@pytest.mark.parametrize(
    "damage", [lambda s: s * 1.001, lambda s: s[::-1].copy(), lambda s: s * np.nan, lambda s: s[:3]]
)
@pytest.mark.parametrize("name", ["scores_", "pvalues_"])
def test_damaged_scores_do_not_pass(name, damage):
    for function, y in ((ours.f_classif, LABELS), (ours.f_regression, WINE[:, 3])):
        model = ours.SelectKBest(function, k=4).fit(WINE, y)
        setattr(model, name, damage(getattr(model, name)))
        try:
            holds = audit(model, WINE, y).holds
        except DataError:
            holds = False
        assert not holds


def test_what_a_filter_refuses():
    for model, words in (
        (ours.SelectFpr(ours.r_regression), "without p-values"),
        (ours.SelectKBest(k=-1), "k=-1"),
        (ours.SelectKBest("anova"), "a function of"),
        (ours.SelectPercentile(percentile=101), "percentile=101"),
        (ours.GenericUnivariateSelect(mode="fpr", param=2), "param=2"),
        (ours.SelectKBest(lambda X, y: np.ones(3), k=1), "a number for each of the 13 columns"),
    ):
        with pytest.raises(DataError, match=words):
            model.fit(WINE, LABELS if "p-values" not in words else WINE[:, 0])
    with pytest.raises(DataError, match="a score function that takes none"):
        ours.SelectKBest(signed, k=1).fit(WINE, LABELS, sample_weight=LABELS + 1)
    with pytest.warns(UserWarning, match="k=20 is greater than n_features=13"):
        assert ours.SelectKBest(k=20).fit(WINE, LABELS).get_support().all()
    with pytest.warns(UserWarning, match="No features were selected"):
        assert ours.SelectKBest(k=0).fit(WINE, LABELS).transform(WINE).shape == (178, 0)


# ------------------------------------------------------------------------------------------------------- variances
@pytest.mark.parametrize("threshold", [0.0, 0.1, 1.0])
def test_variances_are_scikit_learns(threshold):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * [0.2, 0.5, 1.0, 2.0, 5.0, 0.0] + [1e6, 0, 3, 0, -1, 0.1]
    holes = X.copy()
    holes[rng.random(X.shape) < 0.2] = np.nan
    for table in (X, holes, sparse.csr_matrix(X)):
        model, other = (module.VarianceThreshold(threshold).fit(table) for module in (ours, theirs))
        # scikit-learn keeps a constant column with missing entries, by the rounding of its variance
        assert not model.get_support()[5]
        np.testing.assert_array_equal(model.get_support()[:5], other.get_support()[:5])
        dense = table.toarray() if sparse.issparse(table) else table
        np.testing.assert_allclose(model.variances_[:5], np.nanvar(dense, axis=0)[:5], rtol=1e-6)
        assert model.certificate_.holds
        assert audit(model, table).holds
        model.variances_ = model.variances_ * 1.0001
        assert not audit(model, table).holds
    assert audit(theirs.VarianceThreshold(threshold).fit(X), X, tol=1e-4).holds


def test_constant_columns_do_not_vary_whatever_rounding_says():
    X = np.full((10, 2), -0.13725701)  # whose variance NumPy computes as more than 0
    X[:, 1] = np.arange(10)
    assert ours.VarianceThreshold().fit(X).get_support().tolist() == [False, True]
    with pytest.raises(DataError, match="No feature in X meets the variance threshold"):
        ours.VarianceThreshold().fit(X[:, :1])
    with pytest.raises(DataError, match="X contains only one sample"):
        ours.VarianceThreshold().fit(X[:1])


# ----------------------------------------------------------------------------------------------------- elimination
@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (Ridge(), {}),
        (Ridge(), {"n_features_to_select": 3, "step": 2}),
        (Ridge(), {"n_features_to_select": 0.25, "step": 0.3}),
        (Lasso(0.3), {"n_features_to_select": 1}),  # importances that are equal: 0
        (DecisionTreeClassifier(max_depth=3, random_state=0), {"n_features_to_select": 4}),
        (LogisticRegression(), {"importance_getter": lambda fitted: np.abs(fitted.coef_[0])}),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "-".join(value),
)
def test_elimination_is_scikit_learns(estimator, settings):
    classes = not isinstance(estimator, (Ridge, Lasso))
    X, y = (WINE, LABELS) if classes else (DIABETES, AMOUNTS)
    model, other = (module.RFE(estimator, **settings).fit(X, y) for module in (ours, theirs))
    np.testing.assert_array_equal(model.support_, other.support_)
    np.testing.assert_array_equal(model.ranking_, other.ranking_)
    assert model.n_features_ == other.n_features_
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert model.score(X, y) == other.score(X, y)
    if classes:
        np.testing.assert_array_equal(model.classes_, other.classes_)
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X))
        assert hasattr(model, "decision_function") == hasattr(other, "decision_function")
    else:
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "classes_")
    found = audit(model, X, y)
    assert found.holds, found.failures()
    assert found.kind == "greedy"
    assert found.objective == pytest.approx(model.certificate_.objective)


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (Ridge(), {}),
        (Ridge(), {"step": 3, "min_features_to_select": 2, "cv": 4, "scoring": "neg_mean_absolute_error"}),
        (RidgeClassifier(), {"cv": 3}),
        (DecisionTreeClassifier(max_depth=2, random_state=0), {"cv": 3, "step": 2}),
    ],
    ids=str,
)
def test_cross_validated_elimination_is_scikit_learns(estimator, settings):
    X, y = (DIABETES, AMOUNTS) if isinstance(estimator, Ridge) else (WINE, LABELS)
    model, other = (module.RFECV(estimator, **settings).fit(X, y) for module in (ours, theirs))
    np.testing.assert_array_equal(model.support_, other.support_)
    np.testing.assert_array_equal(model.ranking_, other.ranking_)
    assert set(model.cv_results_) == set(other.cv_results_)
    for name, values in other.cv_results_.items():
        np.testing.assert_allclose(model.cv_results_[name], values, rtol=1e-12, err_msg=name)
    assert model.score(X, y) == other.score(X, y)
    assert audit(model, X, y).holds
    model.fold_scores_ = model.fold_scores_ * 1.01
    assert not audit(model, X, y).holds


def test_the_estimator_that_is_kept_is_the_one_that_belongs_to_the_columns():
    model = ours.RFE(Ridge(), n_features_to_select=3).fit(DIABETES, AMOUNTS)
    for hurt in (
        Ridge(2.0).fit(DIABETES[:, model.support_], AMOUNTS),
        Ridge().fit(DIABETES[:, :3], AMOUNTS),
    ):
        wrong = copy.deepcopy(model)
        wrong.estimator_ = hurt
        assert not audit(wrong, DIABETES, AMOUNTS).holds
    wrong.estimator_ = Ridge().fit(DIABETES[:, :2], AMOUNTS)
    with pytest.raises(DataError, match="estimator_ of 2 columns"):
        audit(wrong, DIABETES, AMOUNTS)
    moved = copy.deepcopy(model)
    moved.estimator_.intercept_ += 0.01
    assert not audit(moved, DIABETES, AMOUNTS).holds
    assert not audit(copy.deepcopy(model).set_params(n_features_to_select=4), DIABETES, AMOUNTS).holds


def test_elimination_takes_several_targets_and_groups():
    Y = np.column_stack([AMOUNTS, DIABETES[:, 2]])
    model, other = (
        module.RFE(LinearRegression(), n_features_to_select=3).fit(DIABETES, Y) for module in (ours, theirs)
    )
    np.testing.assert_array_equal(model.ranking_, other.ranking_)
    assert audit(model, DIABETES, Y).holds
    groups = np.arange(len(AMOUNTS)) % 5
    folds = [*GroupKFold(3).split(DIABETES, AMOUNTS, groups)]
    mine = ours.RFECV(Ridge(), cv=folds).fit(DIABETES, AMOUNTS)
    np.testing.assert_array_equal(
        mine.support_, theirs.RFECV(Ridge(), cv=GroupKFold(3)).fit(DIABETES, AMOUNTS, groups=groups).support_
    )


# ------------------------------------------------------------------------------------------------------ sequential
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_features_to_select": 2},
        {"n_features_to_select": 0.3, "direction": "backward"},
        {"tol": 0.01},
        {"tol": -0.01, "direction": "backward"},
        {"tol": 1e-3, "direction": "backward"},
        {"n_features_to_select": 3, "scoring": "neg_mean_absolute_error", "cv": None},
    ],
    ids=str,
)
def test_sequential_selection_is_scikit_learns(settings):
    X = DIABETES[:, :6]
    model, other = (
        module.SequentialFeatureSelector(Ridge(0.1), **settings).fit(X, AMOUNTS) for module in (ours, theirs)
    )
    np.testing.assert_array_equal(model.support_, other.support_)
    assert model.n_features_to_select_ == other.n_features_to_select_
    found = audit(model, X, AMOUNTS)
    assert model.certificate_.holds
    assert found.holds, found.failures()
    hurt = copy.deepcopy(model)
    hurt.support_ = ~hurt.support_
    assert not audit(hurt, X, AMOUNTS).holds


def test_what_sequential_selection_refuses():
    with pytest.raises(DataError, match="n_features_to_select must be < n_features"):
        ours.SequentialFeatureSelector(GaussianNB(), n_features_to_select=13).fit(WINE, LABELS)
    with pytest.raises(DataError, match="tol must be strictly positive"):
        ours.SequentialFeatureSelector(GaussianNB(), tol=-1.0).fit(WINE, LABELS)


@pytest.mark.parametrize("model", [ours.RFE(RidgeClassifier()), ours.RFECV(RidgeClassifier(), cv=2)], ids=str)
def test_missing_entries_of_rows_without_weight_are_refused_by_eliminations(model):
    """No estimator sees these rows; the audit would refuse them."""
    X, w = WINE[::3].copy(), np.ones(len(LABELS[::3]))
    X[7, 2], w[7] = np.nan, 0.0
    with pytest.raises(DataError, match="NaN in row 7, column 2"):
        model.fit(X, LABELS[::3], sample_weight=w)
    X[7, 2] = 0.5
    assert audit(model.fit(X, LABELS[::3], sample_weight=w), X, LABELS[::3], w).holds


@pytest.mark.parametrize("model", [ours.RFE(RidgeClassifier()), ours.RFECV(RidgeClassifier(), cv=2)], ids=str)
def test_classes_of_the_kept_estimator_that_became_text_are_noticed(model):
    """`predict` would answer with words where the labels are numbers."""
    model.fit(WINE, LABELS)
    model.estimator_.classes_ = model.estimator_.classes_.astype(str)
    assert not audit(model, WINE, LABELS).holds
