"""Other libraries' models under audit, and two of them side by side."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn import cluster, decomposition, ensemble, linear_model, svm, tree
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import certifit
from certifit import DataError, audit, compare
from certifit.checkers.linear_model.logistic.adapter import logistic_problem
from tests.common.catalogue import groups

X3, Y3 = load_iris(return_X_y=True)
X3 = StandardScaler().fit_transform(X3)
X2, Y2 = X3[50:], Y3[50:]
W3 = np.random.default_rng(0).exponential(size=len(X3))


def logit(**params):
    return linear_model.LogisticRegression(**{"tol": 1e-8, "max_iter": 10_000, "random_state": 0, **params})


def loss(model, X, y, w=None, C=1.0):
    """Sum of weighted negative log-likelihoods and the penalty, from scikit-learn's own probabilities."""
    log_p = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return -(np.ones(len(y)) if w is None else w) @ log_p + (model.coef_**2).sum() / (2 * C)


# ------------------------------------------------------------------------------------------------ PCA
SOLVERS = ["auto", "full", "covariance_eigh", "arpack", "randomized"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_scikit_learn_pca(solver):
    model = decomposition.PCA(2, svd_solver=solver, random_state=0).fit(X3)
    c = audit(model, X3)
    assert c.kind == "optimal"
    assert c.holds
    reconstructed = model.inverse_transform(model.transform(X3))
    np.testing.assert_allclose(c.objective, ((X3 - reconstructed) ** 2).sum() / len(X3), rtol=1e-10)


@pytest.mark.parametrize("shape", [(8, 30), (30, 8)])
def test_scikit_learn_pca_tall_and_wide(shape):
    X = np.random.default_rng(0).normal(size=shape) + 5
    assert audit(decomposition.PCA(3).fit(X), X).holds
    assert audit(decomposition.PCA(whiten=True).fit(X), X).holds


def test_scikit_learn_pca_in_float32():
    X = (X3 + 10).astype(np.float32)
    assert audit(decomposition.PCA(2).fit(X), X).holds


def test_incremental_pca_is_recognised_by_its_attributes():
    """It forgets what a batch discards, and the gap says how much that cost."""
    X = np.random.default_rng(0).normal(size=(200, 20)) * np.linspace(3, 1, 20)
    model = decomposition.IncrementalPCA(3, batch_size=20).fit(X)
    c = audit(model, X)
    assert not c.holds
    best = audit(decomposition.PCA(3).fit(X), X).objective
    assert 0 < c.objective - best <= c.gap


# --------------------------------------------------------------------------------------------- KMeans
def test_scikit_learn_kmeans():
    X, _ = groups(300, 3)
    model = cluster.KMeans(3, n_init=10, random_state=0, tol=0.0).fit(X)
    c = audit(model, X)
    assert c.kind == "bounded"
    assert c.holds
    np.testing.assert_allclose(c.objective, model.inertia_, rtol=1e-10)
    assert 0 < c.bound <= model.inertia_


def test_kmeans_stopped_early_does_not_pass():
    X, _ = groups(300, 3)
    model = cluster.KMeans(3, init="random", n_init=1, max_iter=1, random_state=3).fit(X)
    assert not audit(model, X).holds


def test_kmeans_centres_that_are_not_means_do_not_pass():
    X, _ = groups(300, 3)
    model = cluster.KMeans(3, n_init=10, random_state=0, tol=0.0).fit(X)
    model.cluster_centers_ = model.cluster_centers_ + 0.1
    assert not audit(model, X).holds


# ----------------------------------------------------------------------------------------- logistic
@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"C": 0.01},
        {"C": 30.0},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"class_weight": {1: 3.0}},
    ],
    ids=str,
)
def test_scikit_learn_logistic_regression(solver, params):
    for X, y in ((X2, Y2), (X3, Y3)):
        model = logit(solver=solver, **params).fit(X, y)
        c = audit(model, X, y)
        assert c.holds
        assert c.relative_gap < 1e-9
        if "class_weight" not in params:
            np.testing.assert_allclose(c.objective, loss(model, X, y, C=params.get("C", 1.0)), rtol=1e-10)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 2: 0.5}], ids=str)
def test_scikit_learn_logistic_regression_with_weights(class_weight):
    model = logit(class_weight=class_weight).fit(X3, Y3, W3)
    assert audit(model, X3, Y3, W3).relative_gap < 1e-9
    assert not audit(model, X3, Y3).holds  # other weights are another problem


def test_liblinear_without_intercept():
    c = audit(logit(solver="liblinear", fit_intercept=False).fit(X2, Y2), X2, Y2)
    assert c.holds
    assert c.relative_gap < 1e-6


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("scaling", [1.0, 10.0])
def test_liblinear_penalises_the_intercept(scaling, l1_ratio):
    """LIBLINEAR's bias is a penalised column (documented in scikit-learn): that problem it solves."""
    X, y = X2 + 3, Y2
    model = logit(solver="liblinear", intercept_scaling=scaling, l1_ratio=l1_ratio, tol=1e-12).fit(X, y)
    found = audit(model, X, y)
    assert found.holds
    assert found.relative_gap < 1e-9
    b = model.intercept_[0] / scaling
    penalty = abs(b) if l1_ratio else b**2 / 2
    ridge = (model.coef_**2).sum() / 2
    expected = loss(model, X, y) + penalty + (np.abs(model.coef_).sum() - ridge if l1_ratio else 0.0)
    np.testing.assert_allclose(found.objective, expected, rtol=1e-10)
    model.intercept_ = model.intercept_ * 1.1
    assert not audit(model, X, y).holds


def test_liblinears_problem_is_not_that_of_a_free_intercept():
    """A free intercept does better, so no bound is lent, and the difference is named."""
    X, y = X2 + 3, Y2
    theirs, free = logit(solver="liblinear").fit(X, y), logit().fit(X, y)
    loose = audit(theirs, X, y).objective - (theirs.intercept_[0] ** 2) / 2
    best = audit(free, X, y).objective
    assert loose > best * (1 + 1e-4)
    table = compare({"theirs": theirs, "free": free}, X, y, show=False).certificates
    assert table["theirs"].holds
    assert table["free"].holds
    difference = logistic_problem(theirs).differences(logistic_problem(free))
    assert "penalised: coefficients and intercept against coefficients" in difference


def test_models_of_this_name_that_solve_other_problems_are_refused():
    class LogisticRegression(Plain):
        pass

    good = logit().fit(X3, Y3)
    parts = {name: getattr(good, name) for name in ("coef_", "intercept_", "classes_")}
    with pytest.raises(DataError, match="one model for each of 3 classes"):
        audit(LogisticRegression(C=1.0, multi_class="ovr", **parts), X3, Y3)
    with pytest.raises(DataError, match="one model for each of 3 classes"):
        audit(LogisticRegression(C=1.0, solver="liblinear", **parts), X3, Y3)
    celer = type("LogisticRegression", (Plain,), {"__module__": "celer.dropin_sklearn"})
    with pytest.raises(DataError, match="of celer that fits one model for each"):
        audit(celer(C=1.0, penalty="l1", **parts), X3, Y3)
    with pytest.raises(DataError, match="another C for each class"):
        audit(LogisticRegression(C_=np.array([1.0, 1.0, 2.0]), **parts), X3, Y3)
    means = linear_model.LogisticRegressionCV(
        Cs=[1.0], cv=3, l1_ratios=(0,), refit=False, scoring="accuracy", use_legacy_attributes=False
    ).fit(X3, Y3)
    with pytest.raises(DataError, match="means over the folds"):
        audit(means, X3, Y3)


@pytest.mark.parametrize(
    "wrong", [{"C": 0.0}, {"C": -1.0}, {"C": np.nan}, {"C": "one"}, {"l1_ratio": 2.0}, {"l1_ratio": np.nan}], ids=str
)
def test_settings_that_no_logistic_regression_can_have(wrong):
    model = logit().fit(X3, Y3)
    for name, value in wrong.items():
        setattr(model, name, value)
    with pytest.raises(DataError, match=r"LogisticRegression\.(C|l1_ratio)="):
        audit(model, X3, Y3)


def test_scores_that_do_not_belong_to_the_classes_are_refused():
    for name, value in (("coef_", np.zeros((2, 4))), ("intercept_", np.zeros(2)), ("classes_", np.arange(4))):
        model = logit().fit(X3, Y3)
        setattr(model, name, value)
        with pytest.raises(DataError, match="scores"):
            audit(model, X3, Y3)


def test_no_penalty():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    for labels in (y, y > 0):
        c = audit(logit(C=np.inf).fit(X, labels), X, labels)
        assert c.kind == "optimal"
        assert c.holds
        assert c.relative_gap < 1e-9


def test_a_solver_that_stopped_early_is_found_out():
    X, y = 100 * X3, Y3
    with pytest.warns(ConvergenceWarning):
        model = logit(solver="saga", max_iter=5).fit(X, y)
    c = audit(model, X, y)
    best = logit(solver="newton-cholesky").fit(X, y)
    assert not c.holds
    assert c.bound <= loss(best, X, y) * (1 + 1e-10)
    assert loss(model, X, y) - loss(best, X, y) <= c.gap


def test_cross_validated_regression_is_audited_at_its_chosen_c():
    model = linear_model.LogisticRegressionCV(
        Cs=[0.1, 1.0], l1_ratios=(0,), cv=3, tol=1e-8, max_iter=1000, scoring="accuracy", use_legacy_attributes=False
    ).fit(X3, Y3)
    assert audit(model, X3, Y3).holds


@pytest.mark.filterwarnings("ignore::FutureWarning")  # scikit-learn's own, of attributes that will change
def test_cross_validated_regression_at_default_settings():
    """Its l1_ratio_ is None for each class."""
    model = linear_model.LogisticRegressionCV(tol=1e-8, max_iter=1000).fit(X3, Y3)
    assert audit(model, X3, Y3).holds


def test_labels_of_any_type():
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[Y3]
    model = logit().fit(X3, names)
    assert audit(model, X3, names).holds
    assert audit(model, X3, names.tolist()).holds
    shuffled = np.random.default_rng(0).permutation(names)
    assert not audit(model, X3, shuffled).holds


def test_tolerance():
    model = logit(tol=1e-2, solver="lbfgs").fit(X3, Y3)
    gap = audit(model, X3, Y3).relative_gap
    assert gap > 1e-9
    assert audit(model, X3, Y3, tol=2 * gap).holds
    assert not audit(model, X3, Y3, tol=gap / 2).holds
    assert audit(model, X3, Y3).tol == 1e-4  # for other libraries' models
    assert audit(certifit.LogisticRegression(tol=1e-3).fit(X3, Y3), X3, Y3).tol == 1e-3  # ours say what they promise
    assert audit(certifit.LogisticRegression(tol=0.5).fit(X3, Y3), X3, Y3).tol == 1e-2  # up to a hundredth


# --------------------------------------------------------------------------------------- look-alikes
class Plain:
    """Only attributes, no scikit-learn."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def copied(model, *names):
    return {name: getattr(model, name) for name in names}


def test_a_plain_object_with_the_attributes_of_a_pca():
    source = decomposition.PCA(2).fit(X3)
    alike = Plain(**copied(source, "components_", "mean_", "explained_variance_"))
    assert audit(alike, X3, like="PCA").holds
    alike.components_ = alike.components_[:, ::-1]
    assert not audit(alike, X3, like="PCA").holds


def test_a_plain_object_with_the_attributes_of_a_kmeans():
    X, _ = groups(300, 3)
    source = cluster.KMeans(3, n_init=10, random_state=0, tol=0.0).fit(X)
    assert audit(Plain(cluster_centers_=source.cluster_centers_, labels_=source.labels_), X, like="KMeans").holds
    assert audit(Plain(cluster_centers_=source.cluster_centers_), X, like="KMeans").holds


def test_a_class_that_is_called_logistic_regression():
    alike = type("LogisticRegression", (Plain,), {})
    source = logit().fit(X3, Y3)
    names = ("coef_", "intercept_", "classes_", "C", "fit_intercept", "class_weight")
    assert audit(alike(**copied(source, *names)), X3, Y3).holds
    assert audit(alike(**copied(source, "coef_", "intercept_", "classes_", "C")), X3, Y3).holds
    with pytest.raises(DataError, match="does not say its C"):
        audit(alike(**copied(source, "coef_", "intercept_", "classes_")), X3, Y3)


def test_a_subclass_is_audited_as_its_base_where_the_caller_says_so():
    """It may solve another problem, as celer's GroupLasso, a subclass of Lasso, does."""

    class Mine(linear_model.LogisticRegression):
        pass

    model = Mine(tol=1e-8).fit(X3, Y3)
    with pytest.raises(DataError, match=r"subclass of LogisticRegression .*like='LogisticRegression'"):
        audit(model, X3, Y3)
    assert audit(model, X3, Y3, like="LogisticRegression").holds


def test_a_pipeline_is_audited_at_its_end():
    raw, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), "passthrough", decomposition.PCA(3), logit()).fit(raw, y)
    assert audit(model, raw, y).holds
    model[-1].coef_ = 1.1 * model[-1].coef_
    assert not audit(model, raw, y).holds


# ------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    "model", [decomposition.PCA(), cluster.KMeans(), logit(), certifit.PCA(), certifit.LogisticRegression()], ids=str
)
def test_unfitted(model):
    with pytest.raises(DataError, match=r"wanted a fitted model\. Call fit first"):
        audit(model, X3, Y3)


def test_models_of_another_kind_are_refused():
    with pytest.raises(DataError, match="Got a KNeighborsClassifier"):
        audit(KNeighborsClassifier().fit(X3, Y3), X3, Y3)


def test_columns_must_be_those_of_the_fit():
    with pytest.raises(ValueError, match="2 features"):
        audit(decomposition.PCA(2).fit(X3), X3[:, :2])
    alike = Plain(**copied(decomposition.PCA(2).fit(X3), "components_", "mean_", "explained_variance_"))
    with pytest.raises(DataError, match="rows of 2 features; wanted the 4"):
        audit(alike, X3[:, :2], like="PCA")


def test_unknown_labels_are_refused():
    with pytest.raises(DataError, match="not fitted on"):
        audit(logit().fit(X2, Y2), X3, Y3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_models_that_are_not_finite_are_refused(bad):
    pca, regression = decomposition.PCA(2).fit(X3), logit().fit(X3, Y3)
    pca.components_[0, 0] = bad
    regression.coef_[0, 0] = bad
    with pytest.raises(DataError, match="components_ with NaN or infinity"):
        audit(pca, X3)
    with pytest.raises(DataError, match="coef_ with NaN or infinity"):
        audit(regression, X3, Y3)


def test_one_row_has_no_variance():
    with pytest.raises(DataError, match="total weight of 1"):
        audit(decomposition.PCA(2).fit(X3), X3[:1])


def test_bad_data_are_refused():
    model = logit().fit(X3, Y3)
    with pytest.raises(DataError, match="NaN in row 0"):
        audit(model, np.where(np.arange(X3.size).reshape(X3.shape) == 1, np.nan, X3), Y3)
    with pytest.raises(ValueError, match="requires y"):
        audit(model, X3)


def test_audit_changes_neither_model_nor_data():
    model = logit().fit(X3, Y3)
    before = {name: np.copy(value) for name, value in vars(model).items()}
    X, w = X3.copy(), W3.copy()
    X.flags.writeable = w.flags.writeable = False
    audit(model, X, Y3, w)
    assert vars(model).keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(np.copy(vars(model)[name]), value)


# -------------------------------------------------------------------------------------------- compare
def rivals():
    with pytest.warns(ConvergenceWarning):
        rough = logit(solver="saga", max_iter=2).fit(X3, Y3)
    return {
        "rough <b>": rough,
        "ours": certifit.LogisticRegression(tol=1e-10).fit(X3, Y3),
        "theirs": logit().fit(X3, Y3),
    }


def test_compare_prints_and_returns_the_table(capsys):
    models = rivals()
    table = compare(models, X3, Y3)
    assert capsys.readouterr().out == f"{table}\n"
    alone = {name: audit(model, X3, Y3) for name, model in models.items()}
    best = max(c.bound for c in alone.values())  # proved for one, it holds for all that minimise the same
    for name, c in table.certificates.items():
        assert c.objective == alone[name].objective
        assert c.bound == min(best, c.objective)
    lines = str(table).splitlines()
    assert lines[0].split() == ["model", "objective", "lower", "bound", "gap", "relative", "gap", "holds"]
    assert set(lines[1]) == {"-"}
    assert lines[-1].startswith("rough <b>")  # the largest objective comes last
    assert lines[-1].endswith("NO")
    assert all(line.endswith("yes") for line in lines[2:4])
    objectives = [float(row[1]) for row in table.table()]
    assert objectives == sorted(objectives)


def test_compare_does_not_carry_bounds_between_problems():
    models = {"C = 1": logit().fit(X3, Y3), "C = 0.01": logit(C=0.01).fit(X3, Y3)}
    table = compare(models, X3, Y3, show=False)
    assert dict(table.certificates) == {name: audit(model, X3, Y3) for name, model in models.items()}


def test_compare_may_be_quiet(capsys):
    compare(rivals(), X3, Y3, show=False)
    assert capsys.readouterr().out == ""


def test_compare_in_a_notebook_is_escaped():
    page = compare(rivals(), X3, Y3, show=False)._repr_html_()
    assert "<b>" not in page
    assert "rough &lt;b&gt;" in page
    assert page.count("<tr>") == 4


def test_compare_as_plain_data():
    table = compare(rivals(), X3, Y3, W3, tol=1e-3, show=False)
    data = table.to_dict()
    assert {name: d["holds"] for name, d in data.items()} == {"rough <b>": False, "ours": False, "theirs": False}
    assert all(d["tol"] == 1e-3 for d in data.values())


def test_compare_says_which_of_two_is_right():
    """Two fits that disagree in their coefficients: the proofs tell which one is the optimum."""
    good, bad = logit().fit(X3, Y3), logit(C=0.5).fit(X3, Y3)
    bad.C = 1.0  # solved another problem
    verdict = compare({"good": good, "bad": bad}, X3, Y3, show=False).certificates
    assert verdict["good"].holds
    assert not verdict["bad"].holds
    assert verdict["bad"].bound <= verdict["good"].objective <= verdict["bad"].objective


@pytest.mark.parametrize("class_weight", ["balanced", {2: 3.0}])
def test_separate_machines_weigh_their_own_class_only(class_weight):
    """LIBLINEAR and scikit-learn's SGD, with more than two classes; scikit-learn's own answer is the witness."""
    X, y = load_iris(return_X_y=True)
    X, y = scale(X[:120]), y[:120]
    model = svm.LinearSVC(class_weight=class_weight, tol=1e-9, max_iter=100_000, random_state=0).fit(X, y)
    assert audit(model, X, y, tol=1e-6).holds
    model.coef_[1] *= 1.1
    assert not audit(model, X, y, tol=1e-4).holds


ATTRIBUTES = "support_ support_vectors_ dual_coef_ intercept_ n_support_ C kernel gamma degree coef0 n_features_in_"


@pytest.mark.parametrize(
    ("model", "also"), [(svm.SVC(tol=1e-8), ("classes_", "class_weight")), (svm.SVR(tol=1e-8), ("epsilon",))]
)
def test_a_machine_of_another_library_is_audited_by_its_attributes(model, also):
    X, y = load_iris(return_X_y=True)
    model.fit(X, y)
    alike = SimpleNamespace(**{name: getattr(model, name) for name in (*ATTRIBUTES.split(), *also)})
    like = type(model).__name__
    assert audit(alike, X, y, like=like).holds
    alike.dual_coef_ = 1.01 * alike.dual_coef_
    assert not audit(alike, X, y, like=like).holds
    with pytest.raises(DataError, match="Got a SimpleNamespace"):
        audit(alike, X, y)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, np.asarray])
def test_a_kernel_machine_of_scikit_learn_on_any_rows(form):
    X, y = load_iris(return_X_y=True)
    for kernel in ("rbf",) if sparse.issparse(form(X)) else ("rbf", lambda A, B: A @ B.T):
        model = svm.SVC(kernel=kernel, tol=1e-8).fit(form(X), y)
        assert audit(model, form(X), y).holds
        model.support_ = np.roll(model.support_, 1)
        assert not audit(model, form(X), y).holds


@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_libsvm_numbers_its_support_vectors_among_the_rows_with_a_weight(form, kernel):
    w = (np.arange(len(X3)) % 3 > 0).astype(float)
    for model, y in ((svm.SVC(kernel=kernel, tol=1e-6), Y3), (svm.SVR(kernel=kernel, tol=1e-6), X3[:, 0] + Y3)):
        model.fit(form(X3), y, sample_weight=w)
        assert np.array_equal(np.asarray(form(model.support_vectors_).sum()), form(X3)[w > 0][model.support_].sum())
        assert audit(model, form(X3), y, w).holds
        assert not audit(model, form(X3), y).holds
        model.support_ = np.roll(model.support_, 1)
        assert not audit(model, form(X3), y, w).holds


def test_where_it_keeps_no_support_vectors_libsvm_predicts_by_those_numbers_and_is_wrong():
    w = (np.arange(len(X3)) % 3 > 0).astype(float)
    model = svm.SVC(kernel="precomputed", tol=1e-6).fit(X3 @ X3.T, Y3, sample_weight=w)
    right = svm.SVC(kernel="linear", tol=1e-6).fit(X3, Y3, sample_weight=w)
    assert (model.predict(X3 @ X3.T) != right.predict(X3)).mean() > 0.2
    assert not audit(model, X3 @ X3.T, Y3, w).holds


# ------------------------------------------------------------------------------------ shapes of our own attributes
OWN = {
    "logistic": (certifit.LogisticRegression(), ("coef_", "intercept_")),
    "linear": (certifit.LinearSVC(), ("coef_", "intercept_")),
    "all classes at once": (certifit.LinearSVC(multi_class="crammer-singer"), ("coef_", "intercept_")),
    "numbers": (certifit.LinearSVR(), ("coef_", "intercept_")),
    "kernel": (
        certifit.SVC(),
        ("intercept_", "dual_coef_", "n_support_", "support_", "support_vectors_", "slacks_", "gamma_"),
    ),
    "probabilities": (certifit.SVC(probability=True), ("support_vectors_", "class_weight_")),
    "kernel of numbers": (certifit.SVR(), ("intercept_", "dual_coef_", "n_support_", "gamma_")),
    "linear kernel": (certifit.SVC(kernel="linear"), ("gamma_",)),
    "margin": (certifit.HardMarginSVC(ridge=0.1), ("coef_", "intercept_", "dual_coef_", "margin_", "n_support_")),
    "nystroem": (certifit.Nystroem(n_components=9, random_state=0), ("components_", "normalization_", "gamma_")),
    "fourier": (certifit.RBFSampler(n_components=9, random_state=0), ("random_weights_", "random_offset_", "gamma_")),
    "features": (certifit.ApproximateSVC(n_components=9, random_state=0), ("coef_", "intercept_")),
    "fourier features": (
        certifit.ApproximateSVC(features="fourier", n_components=9, random_state=0),
        ("coef_", "intercept_"),
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_attributes_of_our_own_models_have_one_shape(name):
    model, attributes = OWN[name]
    X, y = X3[::3], Y3[::3]
    model = clone(model).fit(X, y)
    assert audit(model, X, y).holds
    for attribute in attributes:
        right = getattr(model, attribute)
        value = np.asarray(right)
        for wrong in (None, "words", value[None], value[..., None], *([value[..., :-1]] if value.ndim else [])):
            setattr(model, attribute, wrong)
            assert is_refused(model, X, y), (attribute, np.shape(wrong))
        setattr(model, attribute, right)
    assert audit(model, X, y).holds


def is_refused(model, X, y):
    """Whether the audit fails, or says in words that it cannot be."""
    try:
        return not audit(model, X, y).holds
    except DataError:
        return True


def test_like_may_be_the_class_itself():
    class Mine(linear_model.Ridge):
        pass

    model = Mine().fit(X3, Y3)
    assert audit(model, X3, Y3, like=linear_model.Ridge).holds
    with pytest.raises(DataError, match="like='dict'"):
        audit(model, X3, Y3, like=dict)
    with pytest.raises(DataError, match="a class or its name"):
        audit(model, X3, Y3, like=3)


def test_compare_names_the_models_of_a_list():
    ours, theirs = certifit.Ridge().fit(X3, Y3), linear_model.Ridge().fit(X3, Y3)
    assert [*compare([ours, theirs], X3, Y3, show=False).certificates] == ["certifit Ridge", "sklearn Ridge"]
    other = linear_model.LinearRegression().fit(X3, Y3)
    assert [*compare((theirs, other), X3, Y3, show=False).certificates] == ["Ridge", "LinearRegression"]
    twice = compare([theirs, theirs], X3, Y3, show=False)
    assert [*twice.certificates] == ["sklearn Ridge (1)", "sklearn Ridge (2)"]
    for wrong in ([], {}, theirs):
        with pytest.raises(DataError, match="fitted models by name, or a list"):
            compare(wrong, X3, Y3)


# ---------------------------------------------------------------------------------------- trees and weights
@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeClassifier(class_weight="balanced"),
        ensemble.RandomForestClassifier(3, class_weight="balanced"),
        ensemble.ExtraTreesClassifier(3, class_weight="balanced_subsample"),
        ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, class_weight="balanced"),
    ],
)
@pytest.mark.parametrize("weights", ["uneven", "some of them 0", "equal"])
def test_balance_of_scikit_learns_trees_is_its_own(model, weights):
    # By weights in forests, by numbers of rows elsewhere, rows of weight 0 among them.
    w = {"uneven": W3, "some of them 0": np.where(np.arange(150) % 4, W3, 0.0), "equal": None}[weights]
    kept = np.flatnonzero(np.arange(150) > 20)  # classes of different size
    X, y, w = X3[kept], Y3[kept], None if w is None else w[kept]
    model = clone(model).set_params(random_state=0).fit(X, y, sample_weight=w)
    found = audit(model, X, y, w)
    assert found.holds, found
    other = audit(model.set_params(class_weight=None), X, y, w)
    assert not other.holds


@pytest.mark.parametrize("kind", [ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor])
def test_scikit_learns_impurities_of_light_nodes(kind):
    # Those of a child whose sibling weighs 10^9 times as much have lost as many digits.
    w = W3**4
    model = kind(10, random_state=0).fit(X3, Y3, sample_weight=w)
    found = audit(model, X3, Y3, w)
    assert found.holds, found
    model.estimators_[0].tree_.impurity[0] *= 1 + 1e-9
    assert not audit(model, X3, Y3, w).holds


@pytest.mark.parametrize("family", ["poisson", "geometric", "exponential", ["poisson", "gaussian", "bernoulli"]])
def test_parameters_of_any_family_are_plain(family):
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.poisson(2, size=(60, 2)), rng.integers(2, size=60)]) + 0.0, np.arange(60) % 2
    assert audit(certifit.NaiveBayes(family=family).fit(X, y), X, y).holds
    if isinstance(family, str):
        model = certifit.Mixture(family=family, n_components=2, random_state=0, max_iter=500).fit(X)
        assert audit(model, X).holds == model.certificate_.holds
