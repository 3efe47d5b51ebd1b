"""L1 paths against scikit-learn's, the strengths they choose, and certificates that notice damage."""

import copy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.special import gammaln
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LassoCV, LogisticRegression, lasso_path
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import certifit
from certifit import CertificateWarning, DataError, GaussianNB
from certifit.checkers.feature_selection.l1_adapter import audit_l1
from certifit.feature_selection.l1_selector import L1Selector

X, Y = load_diabetes(return_X_y=True)
CANCER, LABELS = load_breast_cancer(return_X_y=True, as_frame=True)
CANCER = CANCER / CANCER.std()


def audit(model, X=X, y=Y, w=None):
    return audit_l1(model, X, y, w, model.tol)


# ---------------------------------------------------------------------------------------- known solutions
def test_the_lasso_path_agrees_with_scikit_learn():
    model = L1Selector("squared", alphas=20, tol=1e-7).fit(X, Y)
    _, theirs, _ = lasso_path(
        X - X.mean(axis=0), Y - Y.mean(), alphas=model.path_["alpha"], tol=1e-12, max_iter=10**6
    )
    np.testing.assert_allclose(model.coef_path_[:, 0].T, theirs, atol=1e-3)  # coefficients of several hundred
    np.testing.assert_array_equal(model.path_["nonzero"], (theirs != 0).sum(axis=0))
    assert model.certificate_.holds
    assert audit(model).holds


@pytest.mark.parametrize("i", [5, 15])
def test_logistic_fits_agree_with_scikit_learn(i):
    model = L1Selector(alphas=20, tol=1e-9).fit(CANCER, LABELS)
    alpha = model.path_["alpha"][i]
    peer = LogisticRegression(C=1 / (len(LABELS) * alpha), l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=10**5)
    centred = CANCER - CANCER.mean()  # SAGA crawls far from the origin; the intercept absorbs it
    np.testing.assert_allclose(model.coef_path_[i], peer.fit(centred, LABELS).coef_, atol=2e-4)


def test_columns_are_in_use_proved_or_undecided():
    model = L1Selector(alphas=20).fit(CANCER, LABELS)
    named = [*model.get_feature_names_out(), *model.proved_zero_, *model.undecided_]
    assert sorted(named) == sorted(CANCER.columns)
    assert (model.path_["proved_zero"] == model.proved_path_.sum(axis=1)).all()
    used = (model.coef_path_ != 0).any(axis=1)
    assert not (used & model.proved_path_).any()
    assert model.proved_path_.sum() > 0.9 * (~used).sum()


def test_a_smaller_tolerance_proves_more():
    loose, tight = (L1Selector(alphas=15, tol=tol).fit(CANCER, LABELS) for tol in (1e-3, 1e-8))
    assert tight.proved_path_.sum() > loose.proved_path_.sum()
    assert loose.certificate_.holds
    assert tight.certificate_.holds


def test_softmax():
    A, b = load_wine(return_X_y=True)
    model = L1Selector(alphas=10).fit(A / A.std(axis=0), b)
    assert model.coef_.shape == (3, 13)
    assert audit(model, A / A.std(axis=0), b).holds


def test_elastic_net():
    model = L1Selector("squared", alphas=10, l1_ratio=0.5).fit(X, Y)
    assert audit(model).holds
    assert model.proved_path_.any()


# ------------------------------------------------------------------------------------- choosing a strength
def test_information_criteria():
    """By their definitions: Schwarz (1978), Chen & Chen (2008)."""
    model, extended = (L1Selector("squared", criterion).fit(X, Y) for criterion in ("bic", "ebic"))
    n, size = len(Y), model.path_["nonzero"]
    fitted = np.einsum("mkd,nd->mn", model.coef_path_, X) + model.intercept_path_
    bic = n * np.log(((Y - fitted) ** 2).mean(axis=1)) + np.log(n) * (size + 1)
    np.testing.assert_allclose(model.path_["criterion"], bic, rtol=1e-9)
    sets = gammaln(11) - gammaln(size + 1) - gammaln(11 - size)
    np.testing.assert_allclose(extended.path_["criterion"], bic + 2 * sets, rtol=1e-9)
    assert model.alpha_ == model.path_["alpha"][bic.argmin()]


def test_cross_validation_agrees_with_lasso_cv_and_takes_one_standard_error():
    model = L1Selector("squared", "cv", alphas=15, tol=1e-7).fit(X, Y)
    peer = LassoCV(alphas=model.path_["alpha"], tol=1e-10, max_iter=10**5).fit(X, Y)
    np.testing.assert_allclose(model.path_["criterion"], peer.mse_path_.mean(axis=1) / 2, rtol=1e-5)
    best = model.path_["criterion"].argmin()
    limit = model.path_["criterion"][best] + model.path_["error"][best]
    within = model.path_["alpha"][model.path_["criterion"] <= limit]
    assert model.alpha_ == within.max() > peer.alpha_


def test_columns_that_matter_are_found():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(400, 40))
    b = (A[:, 3] - A[:, 7] + 0.5 * A[:, 11] + rng.logistic(size=400) > 0).astype(int)
    assert L1Selector(criterion="ebic").fit(A, b).get_support(indices=True).tolist()[:3] == [3, 7, 11]


# ------------------------------------------------------------------------------------------------ sabotage
def test_sabotage_is_noticed():
    def noticed(**changes):
        model = L1Selector("squared", alphas=10).fit(X, Y)
        vars(model).update(changes)
        return not audit(model).holds

    model = L1Selector("squared", alphas=10).fit(X, Y)
    kept = model.get_feature_names_out()
    path = model.coef_path_.copy()
    path[3] *= 1.05
    assert not noticed()
    assert noticed(coef_=model.coef_ * 1.05)
    assert noticed(coef_=-model.coef_)
    assert noticed(intercept_=model.intercept_ + 5)
    assert noticed(coef_path_=path)
    assert noticed(intercept_path_=model.intercept_path_ + 5)
    assert noticed(support_=~model.support_)
    assert noticed(proved_zero_=np.append(model.proved_zero_, kept[:1]))
    proved = model.proved_path_.copy()
    proved[-1, model.coef_path_[-1, 0].argmax()] = True
    assert noticed(proved_path_=proved)
    assert not audit(model, X[10:], Y[10:]).holds  # other rows


def test_out_of_time():
    with pytest.warns(CertificateWarning, match="strengths asked for and not fitted: "):
        model = L1Selector("squared", alphas=[0.5, 0.1], max_time=0.0).fit(X, Y)
    assert len(model.path_["alpha"]) == 1
    assert not audit(model).holds


# ----------------------------------------------------------------------------------------------- in company
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_scikit_learns_checks(loss):
    results = check_estimator(L1Selector(loss, alphas=3), on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    assert len(results) > 50


def test_parquet_and_sparse_and_weights(tmp_path):
    table = pa.table({**{f"c{j}": X[:, j] for j in range(10)}, "y": Y, "w": 1.0 + np.arange(len(Y)) % 2})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    times = 1 + np.arange(len(Y)) % 2
    stored = L1Selector("squared", alphas=8).fit(str(tmp_path / "t.parquet"), "y", "w")
    weighted = L1Selector("squared", alphas=8).fit(X, Y, sample_weight=times)
    repeated = L1Selector("squared", alphas=8).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    for model in (weighted, repeated):
        np.testing.assert_allclose(stored.path_["alpha"], model.path_["alpha"], rtol=1e-9)
        np.testing.assert_allclose(stored.coef_path_, model.coef_path_, rtol=1e-3, atol=0.5)
        assert stored.alpha_ == pytest.approx(model.alpha_)
    assert audit(stored, str(tmp_path / "t.parquet"), "y", "w").holds
    assert stored.transform(str(tmp_path / "t.parquet")).shape == (len(Y), stored.support_.sum())
    thin = sparse.csr_matrix(np.where(np.abs(X) > 0.03, X, 0.0))
    assert audit(L1Selector("squared", alphas=8).fit(thin, Y), thin).holds


def test_far_from_the_origin():
    """Columns 1e5 standard deviations away: the same columns, and the proof holds."""
    near, far = L1Selector("squared", alphas=8).fit(X, Y), L1Selector("squared", alphas=8).fit(X + 5000.0, Y)
    np.testing.assert_array_equal(near.support_, far.support_)
    assert audit(far, X + 5000.0).holds


def test_inside_a_pipeline():
    pipe = make_pipeline(StandardScaler(), L1Selector(alphas=8), GaussianNB()).fit(CANCER, LABELS)
    assert pipe.score(CANCER, LABELS) > 0.9


# -------------------------------------------------------------------------------------------------- corners
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "poisson"}, "loss='poisson'; wanted one of 'auto', 'logistic', 'squared'"),
        ({"criterion": "aic"}, "criterion='aic'"),
        ({"l1_ratio": 0.0}, "l1_ratio=0.0"),
        ({"alphas": 0}, "alphas=0"),
        ({"alphas": [1.0, -1.0]}, "alphas=[1.0, -1.0]"),
        ({"alphas": [1e6]}, "no column with a coefficient that is not 0"),
    ],
)
def test_settings_that_are_refused(settings, words):
    with pytest.raises(DataError) as caught:
        L1Selector(**{"loss": "squared", **settings}).fit(X, Y)
    assert words in str(caught.value)


def test_constant_and_repeated_columns():
    A = np.column_stack([np.ones(len(X)), X[:, 2], X[:, 2], X[:, 8]])
    model = L1Selector("squared", alphas=8).fit(A, Y)
    assert "x0" in model.proved_zero_
    assert audit(model, A).holds
    with pytest.raises(DataError, match="none of which varies"):
        L1Selector("squared").fit(np.ones((20, 2)), Y[:20])
    with pytest.raises(DataError, match="one class"):
        L1Selector().fit(X, np.zeros(len(X)))


# ------------------------------------------------------------------------------------ nothing is taken on trust
def test_a_target_far_from_zero_costs_no_proof():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6))
    y = X[:, 0] + rng.normal(size=100)
    near, far = L1Selector("squared", alphas=8).fit(X, y), L1Selector("squared", alphas=8).fit(X, 1e6 + y)
    assert far.certificate_.holds
    assert audit(far, X, 1e6 + y).holds
    np.testing.assert_array_equal(near.support_, far.support_)
    np.testing.assert_allclose(far.certificate_.objective, near.certificate_.objective, rtol=1e-6)


@pytest.mark.parametrize("name", ["alpha", "nonzero", "proved_zero", "gap", "loss", "criterion", "error"])
@pytest.mark.parametrize("criterion", ["bic", "cv"])
def test_every_column_of_the_path_is_watched(criterion, name):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = model_target(X)
    model = L1Selector("squared", criterion, alphas=5, cv=3).fit(X, y)
    assert audit(model, X, y).holds
    model.path_ = {**model.path_, name: model.path_[name] + 1.0}
    assert not audit(model, X, y).holds


def model_target(X):
    return X[:, 0] + np.random.default_rng(1).normal(size=len(X))


def test_another_strength_than_the_criterion_chooses_does_not_pass():
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = L1Selector("squared", alphas=5).fit(X, model_target(X))
    other = int(np.flatnonzero((model.path_["alpha"] != model.alpha_) & (model.path_["nonzero"] > 0))[0])
    model.alpha_, model.coef_ = float(model.path_["alpha"][other]), model.coef_path_[other]
    model.intercept_, model.support_ = model.intercept_path_[other], (model.coef_path_[other] != 0).any(axis=0)
    assert not audit(model, X, model_target(X)).holds


# ------------------------------------------------------------------------------------------------ the loss from y
def test_numbers_and_classes_are_told_apart_by_y():
    numbers = L1Selector(alphas=5).fit(X, Y)  # 214 different whole numbers in 442 rows
    assert numbers.loss_ == "squared"
    np.testing.assert_array_equal(numbers.coef_path_, L1Selector("squared", alphas=5).fit(X, Y).coef_path_)
    fractions = L1Selector(alphas=5).fit(X[:40], np.arange(40) % 2 + 0.5)
    assert fractions.loss_ == "squared"
    table, labels = load_wine(return_X_y=True)
    for y in (labels, labels.astype(float), np.array(["a", "b", "c"])[labels], labels > 0):
        model = L1Selector(alphas=5).fit(table / table.std(axis=0), y)
        assert model.loss_ == "logistic"
        assert model.classes_.dtype == y.dtype
        assert audit(model, table / table.std(axis=0), y).holds
    assert L1Selector(alphas=5).fit(X[:60], np.arange(60)).loss_ == "squared"  # without a word of classes
    many = np.repeat(np.arange(30), 6)  # 30 classes, six rows each
    assert L1Selector(alphas=2).fit(np.random.default_rng(0).normal(size=(180, 2)) + many[:, None], many).loss_ == (
        "logistic"
    )


def test_the_loss_of_a_fit_is_the_one_that_y_asks_for():
    model = L1Selector(alphas=5).fit(X, Y)
    model.classes_ = np.unique(Y)
    with pytest.raises(DataError, match="the squared loss, for which its settings and this y ask"):
        audit(model)


# ----------------------------------------------------------------------------------------------- fits of the folds
def folds_model(cv=3, **settings):
    table = np.random.default_rng(0).normal(size=(60, 4))
    return table, model_target(table), L1Selector("squared", "cv", alphas=5, cv=cv, **settings)


def test_the_fits_of_the_folds_are_kept_and_proved():
    table, y, model = folds_model()
    model.fit(table, y)
    assert model.fold_coef_.shape == (3, 5, 1, 4)
    found = audit(model, table, y)
    assert found.holds
    assert next(check for check in found.checks if "fits of the folds" in check.name).residual <= model.tol
    for train, test in KFold(3).split(table):
        fold = int(np.flatnonzero(model.fold_roles_[:, test[0]] == 2)[0])
        _, theirs, _ = lasso_path(
            table[train] - table[train].mean(axis=0),
            y[train] - y[train].mean(),
            alphas=model.path_["alpha"],
            tol=1e-12,
        )
        np.testing.assert_allclose(model.fold_coef_[fold, :, 0].T, theirs, atol=1e-4)


@pytest.mark.parametrize("name", ["fold_coef_", "fold_intercept_", "fold_roles_"])
def test_no_fit_of_a_fold_can_be_changed(name):
    table, y, model = folds_model()
    model.fit(table, y)
    for at in np.ndindex(getattr(model, name).shape[:2] if name != "fold_roles_" else (3,)):
        hurt = copy.deepcopy(model)
        part = getattr(hurt, name)
        part[at] = 3 - part[at] if name == "fold_roles_" else part[at] * 1.1 + 0.02
        assert not audit(hurt, table, y).holds, at
    other = copy.deepcopy(model).set_params(cv=4)
    assert not audit(other, table, y).holds


@pytest.mark.parametrize(
    "cv", [KFold(3, shuffle=True), ShuffleSplit(3, test_size=0.2), "used up"], ids=["shuffled", "random", "iterator"]
)
def test_folds_that_cannot_be_made_again_are_taken_from_the_fit(cv):
    table, y, model = folds_model(iter([*KFold(3).split(np.zeros(60))]) if cv == "used up" else cv)
    model.fit(table, y)
    assert model.certificate_.holds
    assert audit(model, table, y).holds
    model.fold_roles_ = model.fold_roles_[::-1].copy()
    assert not audit(model, table, y).holds


def test_folds_that_lack_a_class_or_rows_are_refused():
    table, labels = load_wine(return_X_y=True)
    table = table / table.std(axis=0)
    with pytest.raises(DataError, match="lack a class"):
        L1Selector("logistic", "cv", alphas=3, cv=KFold(3)).fit(table, labels)  # rows are sorted by class
    with pytest.raises(DataError, match="at least two folds"):
        L1Selector("logistic", "cv", alphas=3, cv=ShuffleSplit(1)).fit(table, labels)


# ------------------------------------------------------------------------------------------------ wrong attributes
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"coef_path_": np.zeros((5, 1, 4))}, "without any coefficient"),
        ({"coef_path_": np.zeros((0, 1, 4))}, "at least one"),
        ({"coef_path_": np.zeros((5, 2, 4))}, "as many fits"),
        ({"path_": {}}, "a dict with alpha"),
        ({"path_": None}, "path_"),
        ({"support_": np.ones(3, bool)}, "support_ of shape"),
        ({"fold_coef_": np.zeros((2, 5, 1, 4))}, "fold_coef_ of shape"),
        ({"fold_intercept_": np.zeros((3, 5))}, "fold_intercept_ of shape"),
        ({"fold_roles_": np.ones((3, 60), np.int8)}, "what each row is to every fold"),
        ({"fold_roles_": np.ones((3, 60)) + 0.5}, "what each row is to every fold"),
    ],
    ids=str,
)
def test_wrong_attributes_are_named(changes, words):
    table, y, model = folds_model()
    model.fit(table, y)
    vars(model).update(changes)
    with pytest.raises(DataError, match=words):
        certifit.audit(model, table, y)


def test_missing_fits_of_folds_and_infinite_criteria_are_named():
    table, y, model = folds_model()
    model.fit(table, y)
    hurt = copy.deepcopy(model)
    hurt.path_["criterion"][2] = np.nan
    with pytest.raises(DataError, match=r"path_\['criterion'\] with NaN"):
        certifit.audit(hurt, table, y)
    del model.fold_coef_
    with pytest.raises(DataError, match="without fold_coef_"):
        certifit.audit(model, table, y)


def test_strengths_whose_inverse_overflows_are_refused_in_words():
    """Columns of denormal numbers: the strengths of the path underflow, and C would be 1 / 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)) * 1e-310, np.arange(30) % 2
    with pytest.raises(DataError, match=r"whose inverse overflows.*Rescale the columns"):
        L1Selector(alphas=5).fit(X, y)
