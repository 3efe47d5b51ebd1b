"""Penalties chosen by cross-validation: against brute force and scikit-learn, and choices that were tampered with."""

import copy
import warnings

import numpy as np
import pytest
import sklearn.linear_model as theirs
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import KFold, LeaveOneOut

import certifit
from certifit import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeClassifierCV, RidgeCV, audit
from certifit.checkers.linear_model.cross_validated.squares import SquaredFits, squared_gaps
from certifit.exceptions import DataError
from certifit.linear_model.cross_validated import path_loops
from certifit.rows import ArrayRows

RNG = np.random.default_rng(0)
X, y = load_diabetes(return_X_y=True)
X, y = X[:120], y[:120]
WEIGHTS = RNG.uniform(0.2, 2.0, len(y))
LABELS = load_iris().target
ROWS = load_iris().data + RNG.normal(size=(150, 4))


# ------------------------------------------------------------------------------------------------- leave-one-out
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("columns", [10, 200])
def test_leave_one_out_is_what_fits_without_each_row_predict(free, columns):
    Z = RNG.normal(size=(30, columns)) + 3.0
    t = Z[:, 0] + RNG.normal(size=30)
    w = RNG.uniform(0.5, 2.0, 30)
    model = RidgeCV([0.5, 20.0], fit_intercept=free, scoring="neg_mean_absolute_error", store_cv_results=True)
    model.fit(Z, t, w)
    for place, alpha in enumerate([0.5, 20.0]):
        for train, test in LeaveOneOut().split(Z):
            one = theirs.Ridge(alpha, fit_intercept=free).fit(Z[train], t[train], w[train])
            assert model.cv_results_[test[0], place] == pytest.approx(one.predict(Z[test])[0], rel=1e-7)
    assert model.certificate_.holds
    assert audit(model, Z, t, w).holds


@pytest.mark.parametrize("columns", [12, 20])
@pytest.mark.parametrize("free", [True, False])
def test_leave_one_out_keeps_its_digits_beside_a_vanishing_penalty(free, columns):
    """Residuals and 1 - leverages vanish together with the penalty; their ratio does not."""
    Z = RNG.normal(size=(12, columns))
    t = Z[:, 0] + RNG.normal(size=12) + 5
    model = RidgeCV([1e-13], fit_intercept=free, scoring="r2", store_cv_results=True).fit(Z, t)
    for train, test in LeaveOneOut().split(Z):
        one = theirs.Ridge(1e-13, fit_intercept=free, solver="svd").fit(Z[train], t[train])
        assert model.cv_results_[test[0], 0] == pytest.approx(one.predict(Z[test])[0], rel=1e-7)
    assert model.certificate_.holds
    model.cv_results_ = model.cv_results_ * (1 + 1e-4)
    assert not audit(model, Z, t).holds


def test_a_row_without_weight_is_predicted_by_the_fit_to_the_others():
    w = np.where(np.arange(len(y)) == 7, 0.0, 1.0)
    model = RidgeCV([0.1], scoring="r2", store_cv_results=True).fit(X, y, w)
    others = theirs.Ridge(0.1).fit(np.delete(X, 7, 0), np.delete(y, 7))
    assert model.cv_results_[7, 0] == pytest.approx(others.predict(X[7:8])[0], rel=1e-9)
    assert audit(model, X, y, w).holds


@pytest.mark.parametrize(
    "params",
    [{}, {"scoring": "neg_mean_absolute_error"}, {"cv": 4}, {"cv": 3, "scoring": "neg_median_absolute_error"}],
)
def test_ridge_chooses_as_scikit_learn_does(params):
    weights = {} if "median" in str(params) else {"sample_weight": WEIGHTS}
    ours, peer = (cls([1e-3, 0.1, 1.0], **params).fit(X, y, **weights) for cls in (RidgeCV, theirs.RidgeCV))
    assert ours.alpha_ == peer.alpha_
    assert ours.best_score_ == pytest.approx(peer.best_score_, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-6)
    assert ours.certificate_.holds
    assert audit(peer, X, y, **weights).facts["choice"].endswith("not looked at")


@pytest.mark.parametrize("params", [{}, {"alpha_per_target": True}, {"alpha_per_target": True, "scoring": "r2"}])
def test_several_targets(params):
    Y = np.column_stack([y, 300 * X[:, 2] + RNG.normal(size=len(y))])
    ours, peer = (cls([1e-3, 0.1, 1.0], **params).fit(X, Y) for cls in (RidgeCV, theirs.RidgeCV))
    np.testing.assert_array_equal(ours.alpha_, peer.alpha_)
    np.testing.assert_allclose(ours.best_score_, peer.best_score_, rtol=1e-9)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-5)
    assert audit(ours, X, Y).holds


@pytest.mark.parametrize("params", [{}, {"cv": 3}, {"class_weight": {0: 2.0, 1: 1.0, 2: 0.5}}])
def test_ridge_classifier_chooses_as_scikit_learn_does(params):
    ours, peer = (
        cls([0.1, 1.0, 30.0], **params).fit(ROWS, LABELS) for cls in (RidgeClassifierCV, theirs.RidgeClassifierCV)
    )
    assert ours.alpha_ == peer.alpha_
    assert ours.best_score_ == pytest.approx(peer.best_score_, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-6)
    assert audit(ours, ROWS, LABELS).holds


# --------------------------------------------------------------------------------------------------------- paths
@pytest.mark.parametrize("params", [{}, {"positive": True}, {"fit_intercept": False}, {"alphas": [0.01, 1.0, 0.1]}])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["even", "weighted"])
def test_lasso_chooses_as_scikit_learn_does(params, weights):
    ours = LassoCV(**params).fit(X, y, weights)
    peer = theirs.LassoCV(**params, tol=1e-9, max_iter=100_000).fit(X, y, weights)
    assert ours.alpha_ == pytest.approx(peer.alpha_, rel=1e-12)
    np.testing.assert_allclose(ours.alphas_, peer.alphas_, rtol=1e-12)
    np.testing.assert_allclose(ours.mse_path_, peer.mse_path_, rtol=1e-5)
    assert ours.certificate_.holds
    assert audit(ours, X, y, weights).holds
    assert audit(ours, X, y, weights, tol=1e-7).holds


def test_elastic_net_chooses_the_share_too():
    params = {"l1_ratio": [0.1, 0.5, 0.95], "alphas": 15, "cv": 4}
    ours = ElasticNetCV(**params).fit(X, y)
    peer = theirs.ElasticNetCV(**params, tol=1e-9, max_iter=100_000).fit(X, y)
    assert ours.l1_ratio_ == peer.l1_ratio_
    assert ours.alphas_.shape == peer.alphas_.shape == (3, 15)
    np.testing.assert_allclose(ours.mse_path_, peer.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-2)
    assert audit(ours, X, y).holds


@pytest.mark.parametrize("model", [LassoCV(alphas=10), RidgeCV(), RidgeCV(cv=3), ElasticNetCV(alphas=10)], ids=str)
def test_sparse_rows_and_dense_rows_agree(model):
    Z = np.where(RNG.random((60, 8)) < 0.6, 0.0, RNG.normal(size=(60, 8)) + 1.0)
    t = Z @ np.arange(8.0) + RNG.normal(size=60)
    dense = copy.deepcopy(model).fit(Z, t)
    light = copy.deepcopy(model).fit(sparse.csr_array(Z), t)
    assert light.alpha_ == pytest.approx(dense.alpha_, rel=1e-12)
    np.testing.assert_allclose(light.coef_, dense.coef_, rtol=1e-4, atol=1e-6)
    assert audit(light, sparse.csr_array(Z), t).holds


def test_more_columns_than_rows_and_collinear_ones():
    Z = RNG.normal(size=(25, 40))
    Z = np.column_stack([Z, Z[:, 0] + Z[:, 1], Z[:, 2]])
    t = Z[:, 0] - Z[:, 2] + 0.1 * RNG.normal(size=25)
    model = LassoCV(alphas=20, cv=3).fit(Z, t)
    assert model.certificate_.holds
    assert audit(model, Z, t).holds


def test_a_constant_target_needs_no_column():
    model = LassoCV(alphas=5, cv=3).fit(X, np.ones(len(X)))
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(1.0)


@pytest.mark.compiled
def test_coordinate_descent_against_its_plain_twin():
    A = RNG.normal(size=(20, 6))
    G, c = A.T @ A, A.T @ RNG.normal(size=20)
    for positive in (False, True):
        beta, slopes = np.zeros(6), c.copy()
        sweeps = path_loops.descend(G, 0.7, positive, beta, slopes, 500, 1e-13)
        plain = np.zeros(6)
        for _ in range(500):
            for j in range(6):
                pull = c[j] - G[j] @ plain + G[j, j] * plain[j]
                size = max((pull if positive else abs(pull)) - 0.7, 0.0)
                plain[j] = (1.0 if positive else np.sign(pull)) * size / G[j, j]
        assert sweeps < 500
        np.testing.assert_allclose(beta, plain, atol=1e-12)
        np.testing.assert_allclose(slopes, c - G @ beta, atol=1e-11)


# ----------------------------------------------------------------------------------------------------- the bounds
@pytest.mark.parametrize(("lam1", "lam2"), [(5.0, 0.0), (0.0, 2.0), (3.0, 2.0), (0.0, 0.0)])
@pytest.mark.parametrize("free", [True, False])
def test_gaps_are_never_smaller_than_the_distance_to_the_minimum(lam1, lam2, free):
    """The minimum is that of scikit-learn's coordinate descent, or of LAPACK."""
    Z, t, w = X[:50, :5] * 20, y[:50] / 20, WEIGHTS[:50]
    total = w.sum()
    if lam1 + lam2 == 0:
        best = theirs.LinearRegression(fit_intercept=free).fit(Z, t, w)
    elif lam1 == 0:
        best = theirs.Ridge(lam2, fit_intercept=free).fit(Z, t, w)
    else:
        strength = (lam1 + lam2) / total
        share = lam1 / (lam1 + lam2)
        best = theirs.ElasticNet(strength, l1_ratio=share, fit_intercept=free, tol=1e-12, max_iter=9999).fit(Z, t, w)
    moved = [best.coef_ + size * RNG.normal(size=5) for size in (0.0, 1e-4, 1e-2, 1.0)]
    b = np.full(4, float(best.intercept_))
    fits = SquaredFits(np.array(moved), b, np.full(4, lam1), np.full(4, lam2), free)
    found = squared_gaps(ArrayRows(Z, t, w), t, fits)
    assert (found.gap >= found.objective - found.objective[0] - 1e-9).all()
    assert found.gap[0] <= 1e-6 * found.objective[0]
    assert not found.unproved(1e-6)[0]
    assert found.unproved(1e-6)[3]


# ------------------------------------------------------------------------------------------------------- logistic
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"scoring": "neg_log_loss", "class_weight": "balanced"},
        {"l1_ratios": [0.0, 0.5], "use_legacy_attributes": True},
        {"use_legacy_attributes": False, "fit_intercept": False},
        {"refit": False},
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_chooses_as_scikit_learn_does(params, classes):
    kept = np.isin(LABELS, range(classes))
    Z, t = ROWS[kept], np.array(["a", "b", "c"])[LABELS[kept]]
    ours = LogisticRegressionCV(Cs=[0.01, 1.0], cv=3, tol=1e-11, **params).fit(Z, t)
    solver = {"solver": "saga" if "l1_ratios" in params else "newton-cholesky", "tol": 1e-8, "max_iter": 20_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        peer = theirs.LogisticRegressionCV(Cs=[0.01, 1.0], cv=3, **{**params, **solver}).fit(Z, t)
    np.testing.assert_array_equal(ours.C_, peer.C_)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    assert np.shape(ours.n_iter_) == np.shape(peer.n_iter_)
    for name, close in (("scores_", 1e-4), ("coefs_paths_", 1e-2)):
        mine, their = getattr(ours, name), getattr(peer, name)
        assert isinstance(mine, dict) == isinstance(their, dict)
        pairs = [(mine[key], their[key]) for key in their] if isinstance(their, dict) else [(mine, their)]
        for one, other in pairs:  # the intercepts of scikit-learn's saga are not close enough
            columns = slice(4) if name == "coefs_paths_" else slice(None)
            np.testing.assert_allclose(one[..., columns], other[..., columns], atol=close)
    assert ours.certificate_.holds
    assert audit(ours, Z, t).holds
    assert ours.score(Z, t) == pytest.approx(peer.score(Z, t), abs=1e-4)


# ---------------------------------------------------------------------------------------------------- hurt choices
def _second_best(model):
    """Another strength, its fit to all rows perfectly optimal."""
    hurt = copy.deepcopy(model)
    hurt.alpha_ = float(hurt.alphas_[2])
    fresh = certifit.Lasso(hurt.alpha_).fit(X, y)
    hurt.coef_, hurt.intercept_, hurt.deviance_ = fresh.coef_, fresh.intercept_, fresh.deviance_
    return hurt


def _hurt(name, change):
    def apply(model):
        hurt = copy.deepcopy(model)
        setattr(hurt, name, change(np.array(getattr(hurt, name))))
        return hurt

    return apply


@pytest.mark.parametrize(
    ("words", "damage"),
    [
        ("short of the best", _second_best),
        ("mse_path_", _hurt("mse_path_", lambda a: a * 1.001)),
        ("not proved", _hurt("fold_coef_", lambda a: a * 1.05)),
        ("folds that are not", _hurt("fold_roles_", lambda a: a[::-1])),
        ("alphas_", _hurt("alphas_", lambda a: a * 1.001)),
    ],
)
def test_a_wrong_choice_is_noticed(words, damage):
    model = LassoCV(alphas=20, cv=3).fit(X, y)
    assert audit(model, X, y).holds
    found = audit(damage(model), X, y)
    assert not found.holds
    assert any(words in failure for failure in found.failures())


@pytest.mark.parametrize("model", [LassoCV(alphas=4, cv=3), ElasticNetCV(alphas=4, cv=3)], ids=str)
def test_a_strength_of_nothing_is_noticed(model):
    """Without a penalty there would be a dispersion, which such a fit does not have."""
    hurt = copy.deepcopy(model).fit(X, y)
    hurt.alpha_ = 0.0
    assert not audit(hurt, X, y).holds


def test_another_strength_of_ridge_is_noticed():
    model = RidgeCV([0.01, 10.0]).fit(X, y)
    fresh = certifit.Ridge(10.0).fit(X, y)
    model.alpha_, model.coef_, model.intercept_, model.deviance_ = (
        10.0,
        fresh.coef_,
        fresh.intercept_,
        fresh.deviance_,
    )
    found = audit(model, X, y)
    assert any("alpha_, short of the best" in failure for failure in found.failures())


@pytest.mark.parametrize("weights", [[1.0], [0.0, 2.0, 0.0]])
def test_leaving_out_the_only_row_leaves_no_intercept(weights):
    rows = X[: len(weights)], y[: len(weights)], weights
    with pytest.raises(DataError, match="1 sample of positive weight"):
        RidgeCV().fit(*rows)
    assert RidgeCV(fit_intercept=False).fit(*rows).certificate_.holds


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (RidgeCV(store_cv_results=True, cv=3), "store_cv_results"),
        (RidgeCV(alpha_per_target=True, cv=3), "alpha_per_target"),
        (RidgeCV([0.0, 1.0]), r"alphas\[0\] == 0.0, must be > 0.0; wanted .*leave-one-out needs a penalty"),
        (ElasticNetCV(l1_ratio=0.0), "l1_ratio=0 without alphas"),
        (LassoCV(alphas=[-1.0]), "alphas"),
        (LassoCV(cv=[(np.arange(10), np.arange(0))]), "without rows"),
    ],
)
def test_what_does_not_go_together_is_refused(model, words):
    with pytest.raises(DataError, match=words):
        model.fit(X, y)


def _sorted_folds():
    """Return the rows of two folds, of which the first is fitted without class 2."""
    return [(np.flatnonzero(LABELS < 2), np.flatnonzero(LABELS == 2)), (np.arange(0, 150, 2), np.arange(1, 150, 2))]


@pytest.mark.parametrize("two", [False, True])
def test_without_an_intercept_a_class_without_rows_has_a_finite_fit(two):
    """The objective of scikit-learn, whose fit to the same rows is the reference."""
    labels = np.minimum(LABELS, 1) if two else LABELS
    folds = [(np.flatnonzero(labels == labels.max()), np.arange(10)), *_sorted_folds()[1:]]
    terms = {"Cs": [0.3, 2.0], "cv": folds, "fit_intercept": False, "use_legacy_attributes": False}
    with pytest.warns(UserWarning, match="1 of 2 folds lack a class: their scores"):
        model = LogisticRegressionCV(**terms, refit=False, tol=1e-9).fit(ROWS, labels)
    assert model.certificate_.holds
    assert audit(model, ROWS, labels).holds
    known = {"l1_ratios": (0.0,), "scoring": "accuracy", "tol": 1e-9, "max_iter": 10_000}
    reference = theirs.LogisticRegressionCV(**terms, **known, refit=False).fit(ROWS, labels)
    np.testing.assert_allclose(model.coefs_paths_, reference.coefs_paths_, atol=1e-3)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-3)
    wrong = copy.deepcopy(model)
    wrong.fold_coef_[0, 0, 0] *= 1.01
    assert not audit(wrong, ROWS, labels).holds


def test_means_over_folds_leave_out_those_that_lack_a_class():
    terms = {"Cs": [0.3, 2.0], "refit": False, "use_legacy_attributes": False}
    with pytest.warns(UserWarning, match="means over the other folds"):
        model = LogisticRegressionCV(cv=_sorted_folds(), **terms).fit(ROWS, LABELS)
    alone = LogisticRegressionCV(cv=_sorted_folds()[1:], **terms).fit(ROWS, LABELS)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.C_ == alone.C_
    assert audit(model, ROWS, LABELS).holds
    wrong = copy.deepcopy(model)
    wrong.coef_ = wrong.coef_ * 0.5
    assert not audit(wrong, ROWS, LABELS).holds
    with pytest.raises(DataError, match="no fold"), pytest.warns(UserWarning, match="never expect"):
        LogisticRegressionCV(cv=_sorted_folds()[:1], **terms).fit(ROWS, LABELS)


def test_the_path_of_two_classes_is_that_of_single_fits():
    """Every fit of a small table, along a path of Newton steps, is that of the estimator for one C."""
    labels, Cs = np.minimum(LABELS, 1), [10.0, 1e-3, 1e3]
    w = np.tile([1.0, 0.0, 2.0], 50)
    folds = [(np.arange(0, 150, 2), np.arange(1, 150, 2))]
    model = LogisticRegressionCV(Cs=Cs, cv=folds, tol=1e-8, use_legacy_attributes=False)
    model.fit(ROWS + 100, labels, sample_weight=w)
    for C, coef, intercept in zip(Cs, model.fold_coef_[0, 0], model.fold_intercept_[0, 0], strict=True):
        lone = certifit.LogisticRegression(C=C, tol=1e-8).fit(ROWS[::2] + 100, labels[::2], sample_weight=w[::2])
        np.testing.assert_allclose(coef, lone.coef_, atol=1e-6)
        np.testing.assert_allclose(intercept, lone.intercept_, atol=1e-3)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4])
@pytest.mark.parametrize("there", [[0, 2], [1]])
def test_a_class_that_a_fold_lacks_has_probability_zero(there, l1_ratio):
    """scikit-learn's own solver, whose intercept of the missing class creeps towards -inf, is the reference."""
    seen = np.isin(LABELS, there)
    split = [(np.flatnonzero(seen), np.flatnonzero(~seen)), (np.arange(0, 150, 2), np.arange(1, 150, 2))]
    with pytest.warns(UserWarning, match="1 of 2 folds lack a class"):
        model = LogisticRegressionCV(
            Cs=[0.3, 2.0], l1_ratios=[l1_ratio], cv=split, scoring="accuracy", use_legacy_attributes=False
        ).fit(ROWS, LABELS)
    assert model.certificate_.holds
    assert audit(model, ROWS, LABELS).holds
    assert (model.scores_[0] == 0.0).all()
    gone = np.setdiff1d([0, 1, 2], there)
    assert (model.fold_intercept_[0, 0][:, gone] == -np.inf).all()
    assert (model.fold_coef_[0, 0][:, gone] == 0.0).all()
    if len(there) == 2:
        penalty = {"l1_ratio": l1_ratio, "C": 2.0, "solver": "saga", "tol": 1e-7, "max_iter": 100_000}
        wide = theirs.LogisticRegression(**penalty)
        lone = np.append(ROWS[seen], [[0.0] * ROWS.shape[1]], axis=0)
        wide.fit(lone, np.append(LABELS[seen], 1), sample_weight=np.append(np.ones(seen.sum()), 1e-9))
        found = model.fold_coef_[0, 0, 1]
        np.testing.assert_allclose(found[2] - found[0], wide.coef_[2] - wide.coef_[0], atol=2e-3)


def test_a_wrong_fit_of_a_fold_that_lacks_a_class_is_found():
    split = [(np.flatnonzero(LABELS < 2), np.flatnonzero(LABELS == 2))]
    with pytest.warns(UserWarning, match="never expect"):
        model = LogisticRegressionCV(Cs=[1.0], cv=split).fit(ROWS, LABELS)
    for name, place, value in (("fold_coef_", (0, 0, 0, 2, 0), 0.1), ("fold_intercept_", (0, 0, 0, 2), -9.0)):
        wrong = copy.deepcopy(model)
        getattr(wrong, name)[place] = value
        assert not audit(wrong, ROWS, LABELS).holds
    wrong = copy.deepcopy(model)
    wrong.fold_coef_[0, 0, 0, :2] *= 1.01
    assert not audit(wrong, ROWS, LABELS).holds


def test_words_as_labels_of_a_fold_of_one_class():
    """Sorted rows in two folds: each is certain of the class that it has not seen, so the squared error is 1."""
    X, words = np.arange(4.0)[:, None], np.array(["a", "a", "b", "b"])
    with pytest.warns(UserWarning, match="2 of 2 folds"):
        model = LogisticRegressionCV(cv=KFold(2), scoring="neg_brier_score", use_legacy_attributes=False).fit(
            X, words
        )
    assert model.C_ == 1e-4  # the first of equals
    assert (model.scores_ == -1.0).all()
    assert audit(model, X, words).holds


def test_elastic_net_needs_its_shares():
    with pytest.raises(DataError, match="without l1_ratios"):
        LogisticRegressionCV(penalty="elasticnet", l1_ratios=None).fit(ROWS, LABELS)
