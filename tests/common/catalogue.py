"""Every estimator, one line each; the common tests loop over this list. A new estimator is a new line in CATALOGUE.

An entry says how to build the estimator small, what data it takes, which fitted attributes its certificate speaks of,
and which scikit-learn estimator solves the same problem.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from sklearn import (
    cluster,
    decomposition,
    ensemble,
    kernel_approximation,
    linear_model,
    manifold,
    mixture,
    naive_bayes,
    neural_network,
    svm,
)
from sklearn import tree as trees
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as SklearnLDA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as SklearnQDA
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
    f_classif,
    f_regression,
)
from sklearn.utils.validation import has_fit_parameter

from certifit import (
    PCA,
    SVC,
    SVR,
    AdaBoostClassifier,
    AdaBoostRegressor,
    AdditiveClassifier,
    AdditiveRegressor,
    ApproximateSVC,
    BaggingClassifier,
    BaggingRegressor,
    BayesianGaussianMixture,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    ConvNetClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ElasticNet,
    ElasticNetCV,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GammaRegressor,
    GaussianMixture,
    GaussianNB,
    GeneralizedLinearRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HardMarginSVC,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IncrementalPCA,
    KernelPCA,
    KMeans,
    Lasso,
    LassoCV,
    LinearDiscriminantAnalysis,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LocallyLinearEmbedding,
    LogisticRegression,
    LogisticRegressionCV,
    MiniBatchKMeans,
    Mixture,
    MLPClassifier,
    MLPRegressor,
    MultinomialNB,
    NaiveBayes,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PoissonRegressor,
    ProbabilisticPCA,
    QuadraticDiscriminantAnalysis,
    RandomForestClassifier,
    RandomForestRegressor,
    RBFSampler,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    RobustPCA,
    SelectFeatures,
    TrimmedPCA,
    TruncatedSVD,
    TweedieRegressor,
    jeffreys,
    mutual_information,
)
from certifit import feature_selection as filters
from certifit.core import Estimator

CENTRES = np.array([[0.0, 5.0, -1.0, 2.0], [3.0, 5.0, -1.0, 2.0], [0.0, 8.0, 1.0, 2.0]])


def groups(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping groups of rows (n, 4) with unequal spreads and non-zero means, and their numbers."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = CENTRES[y] + rng.normal(size=(n, 4)) * [2.0, 1.5, 1.0, 0.5]
    return X, y


def table(n: int = 150) -> tuple[np.ndarray, None]:
    return groups(n, 3)[0], None


def two(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return groups(n, 2)


def three(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return groups(n, 3)


def counts(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping groups with a count for each row, its mean log-linear in the columns."""
    X = groups(n, 3)[0]
    return X, np.random.default_rng(1).poisson(np.exp(0.2 * X[:, 0] - 0.1 * X[:, 1] + 1.5)).astype(float)


def amounts(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """The same with positive amounts."""
    X = groups(n, 3)[0]
    return X, np.random.default_rng(1).gamma(3.0, np.exp(0.2 * X[:, 0] - 0.1 * X[:, 1] + 0.5))


def tallies(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers 0, 1, 2, … in three classes of unequal size."""
    X, _ = groups(n, 3)
    y = np.array([0, 0, 1, 2])[np.arange(n) % 4]
    return np.abs(np.round(X + y[:, None] * [1.0, 0.0, -2.0, 0.5])), y


def few_classes(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, of as many rows as a kernel machine, or many fits, can be asked to take in a test."""
    return two(min(n, 3000))


def handful(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, of as many rows as a linear program over them can be asked to take in a test."""
    return two(min(n, 200))


def few_three(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return three(min(n, 2000))


def few_amounts(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return amounts(min(n, 3000))


def few_table(n: int = 150) -> tuple[np.ndarray, None]:
    return table(min(n, 3000))


def short(data: Callable[[int], Any]) -> Callable[..., Any]:
    """The same table, of fewer rows where nobody asks for more: for models whose audit looks at every node."""
    return wraps(data)(lambda n=60: data(n))


def far_groups(n: int = 150) -> tuple[np.ndarray, None]:
    """Groups that hardly overlap."""
    X, y = groups(n, 3)
    return X + 2 * CENTRES[y], None


def apart(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Two classes with a gap between them."""
    X = groups(min(n, 3000), 3)[0]
    y = (X @ [1.0, -1.0, 0.0, 1.0] > -3.0).astype(int)
    return X + np.outer(y - 0.5, [1.0, -1.0, 0.0, 1.0]), y


def fitted_part(model: Any, path: str) -> Any:
    """A fitted attribute, or a part of one, such as `tree_.threshold`; of a list of arrays, all their numbers."""
    found = attrgetter(path)(model)
    return np.concatenate([np.ravel(part) for part in found]) if isinstance(found, list) else found


def set_fitted_part(model: Any, path: str, value: Any) -> None:
    name, _, part = path.partition(".")
    old = getattr(model, name)
    if isinstance(old, list):
        cuts = np.split(np.asarray(value), np.cumsum([one.size for one in old])[:-1])
        value = [cut.reshape(one.shape) for cut, one in zip(cuts, old, strict=True)]
    setattr(model, name, replace(getattr(model, name), **{part: value}) if part else value)


@dataclass(frozen=True)
class Entry:
    cls: Callable[..., Estimator]
    params: dict[str, Any]
    data: Callable[..., tuple[np.ndarray, np.ndarray | None]]  # n -> X (n, 4), y
    audited: tuple[str, ...]  # the fitted attributes, or their parts, that the certificate speaks of
    peer: Callable[[], Any]  # scikit-learn's estimator of the same problem; where it has none, ours from elsewhere
    checked: dict[str, Any] = field(
        default_factory=dict
    )  # settings for scikit-learn's checks, which bring their data

    def make(self, **params: Any) -> Any:
        return self.cls(**{**self.params, **params})

    def fit(self, *n: int, **params: Any) -> Any:
        return self.make(**params).fit(*self.data(*n))

    def fitted(self) -> Any:
        """The same as `fit()`, fitted once in a process: a copy that a test may change."""
        return deepcopy(self._fitted_once)

    @cached_property
    def _fitted_once(self) -> Any:
        return self.fit()

    def has(self, param: str) -> bool:
        model = self.make()
        return param in model.get_params() and param not in model.ignored

    @property
    def is_sum(self) -> bool:
        """Whether a row of weight 2 is the row twice.

        It is not where folds or minibatches, which count rows, decide, nor where a linear program has several
        solutions.
        """
        model = self.make()
        several = self.params.get("corrective") is not None or self.in_minibatches
        return has_fit_parameter(model, "sample_weight") and getattr(model, "cv", "none") == "none" and not several

    @property
    def in_minibatches(self) -> bool:
        """Whether rows are learnt from in minibatches: any number of epochs is then a model as good as any."""
        return getattr(self.make(), "solver", "") in ("adam", "adamw", "sgd")

    def __str__(self) -> str:
        words = [f"{k}={v}" for k, v in self.params.items() if np.isscalar(v) or v is None]
        return f"{self.cls.__name__}({', '.join(words)}) on {self.data.__name__}"


class LikelyPCA(decomposition.PCA):
    """scikit-learn's PCA with the variances that are likeliest: divided by n, not n - 1."""

    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)
        self.explained_variance_ = self.explained_variance_ * (len(X) - 1) / len(X)
        self.noise_variance_ = self.noise_variance_ * (len(X) - 1) / len(X)
        return self


LikelyPCA.__name__ = "ProbabilisticPCA"  # as audit knows it

SPECTRAL = ("components_", "mean_", "explained_variance_")
SINGULAR = ("components_", "singular_values_")
SPLIT = ("low_rank_", "sparse_", "components_", "singular_values_", "dual_", "mean_")
TRIMMED = ("components_", "mean_", "explained_variance_", "weights_", "errors_")
EMBEDDED = ("embedding_", "reconstruction_error_", "neighbors_")
SCORED = ("scores_", "pvalues_")
GRAM, WIDE = ("eigenvalues_", "eigenvectors_", "gram_means_"), {"kernel": "rbf", "gamma": 0.1}
BACK = {"kernel": "poly", "degree": 2, "fit_inverse_transform": True}
ALIGNED, CURVED = {"method": "ltsa"}, {"method": "hessian"}
NEAR = {"n_neighbors": 12, "eigen_solver": "arpack"}
CORRELATION, CHI2, INFORMATION, JEFFREYS = (
    {"score_func": name} for name in ("correlation", "chi2", "information", "jeffreys")
)
SHALLOW = {"max_bins": 16, "time_limit": 0.0}
# with leaves of one row: a weight of 2 is then a row twice
TEN_STAGES = {"max_iter": 10, "max_leaf_nodes": 6, "min_samples_leaf": 1}
TEN_STUMPS = {"max_iter": 10, "max_leaf_nodes": 2, "min_samples_leaf": 1}
BOOSTING = ("trees_.value", "trees_.threshold")  # the baseline of classes of equal size is 0
SLOPES, SLOPE_TREES = {"n_estimators": 6}, (*BOOSTING, "trees_.mean", "trees_.weight", "trees_.impurity")
NODES = ("tree_.value", "tree_.threshold", "tree_.impurity", "tree_.weighted_n_node_samples")
STAGES, BOOSTED = ("estimator_weights_", "estimator_errors_"), {"n_estimators": 8}
FOREST = ("trees_.value", "trees_.threshold", "trees_.impurity", "trees_.weighted_n_node_samples")
GROVE, UNSEEN = (
    {"n_estimators": 3, "random_state": 0},
    {"n_estimators": 8, "max_samples": 0.3, "random_state": 0, "oob_score": True},
)
BAG = {"n_estimators": 5, "max_samples": 0.2, "random_state": 0, "oob_score": True}
CURVES, TIGHT = ("alpha_", "intercept_"), {"alpha": 0.01, "tol": 1e-9}
RANDOMISED = {"svd_solver": "randomized", "random_state": 0}
MIXED, DIAGONAL = ("weights_", "means_", "covariances_"), {"covariance_type": "diag"}
VARIATIONAL = ("means_", "covariances_", "mean_precision_", "degrees_of_freedom_")
DIRICHLET = {"weight_concentration_prior_type": "dirichlet_distribution", **DIAGONAL}
RATES = np.array([[2.0, 5.0, 3.0, 2.0], [3.0, 8.0, 1.0, 3.0]])
CLUSTERS = ("cluster_centers_", "labels_")
LINEAR = ("coef_", "intercept_")
CHOSEN, FOLDS = (*LINEAR, "best_score_"), (*LINEAR, "best_score_", "fold_coef_", "fold_intercept_")
EXPANSION = ("dual_coef_", "intercept_", "support_vectors_", "slacks_")
HARD = ("dual_coef_", "intercept_", "support_vectors_", "margin_")
LANDMARKS, FEW = {"n_components": 8, "random_state": 0}, {"n_components": 20}
WAVES = {"n_components": 51, "gamma": "scale", "random_state": 0}
HINGE, HELD = {"loss": "hinge", "tol": 1e-10}, {"penalize_intercept": True}
FREE = {"penalize_intercept": False}
HUBER, SQUARED = {"loss": "huberised_hinge"}, {"loss": "squared_epsilon_insensitive"}
WATKINS, SINGER = {"multi_class": "weston-watkins"}, {"multi_class": "crammer-singer"}
LIKELY = {"probability": True}
FLAT = {"kernel": "linear", "C": 0.1}
COUNTED = ("feature_count_", "feature_log_prob_", "class_log_prior_")
DISCRIMINANTS, EIGEN = (*LINEAR, "means_", "scalings_"), {"solver": "eigen"}
QUADRATIC = ("means_", "rotations_", "scalings_", "covariance_")
LBFGS = {"solver": "lbfgs"}
TENSORS, SMOOTH = ("coefs_", "intercepts_", "loss_"), {"hidden_layer_sizes": (3,), "activation": "tanh"}
STATIONARY = {**LBFGS, **SMOOTH, "alpha": 20.0, "tol": 1e-7, "max_iter": 3000, "random_state": 0}
TINY = {"layers": [("conv", 3, 2), "relu", ("dense", 4), "tanh", "batch_norm"], "max_iter": 5, "random_state": 0}
EPOCHS = {"hidden_layer_sizes": (5,), "batch_size": 50, "max_iter": 12, "random_state": 0}
lle = partial(manifold.LocallyLinearEmbedding, n_neighbors=12, eigen_solver="dense")
liblinear = partial(svm.LinearSVC, tol=1e-9, max_iter=100_000, random_state=0)
truncated = partial(decomposition.TruncatedSVD, 2, algorithm="arpack")
pca, kmeans = decomposition.PCA, cluster.KMeans
gmm = partial(mixture.GaussianMixture, tol=1e-9, max_iter=5000, random_state=0)
close = {"tol": 1e-10, "max_iter": 10_000}
logit_cv = partial(
    linear_model.LogisticRegressionCV, solver="newton-cholesky", tol=1e-10, max_iter=1000, l1_ratios=(0.0,),
    scoring="accuracy", use_legacy_attributes=True,
)  # fmt: skip
logit = partial(linear_model.LogisticRegression, solver="newton-cholesky", tol=1e-10, max_iter=1000)

CATALOGUE = [
    Entry(PCA, {"n_components": 2}, table, SPECTRAL, partial(pca, 2)),
    Entry(PCA, {"svd_solver": "full", "whiten": True}, table, SPECTRAL, partial(pca, 4), {"whiten": True}),
    Entry(PCA, {"n_components": 1, **RANDOMISED}, table, SPECTRAL, partial(pca, 1), RANDOMISED),
    Entry(IncrementalPCA, {"n_components": 2}, table, SPECTRAL, partial(decomposition.IncrementalPCA, 2)),
    Entry(TruncatedSVD, {"n_components": 2}, table, SINGULAR, truncated, {"n_components": 1}),
    Entry(KernelPCA, {"n_components": 2, **WIDE}, table, GRAM, partial(decomposition.KernelPCA, 2, **WIDE), WIDE),
    Entry(KernelPCA, {"n_components": 3, **BACK}, table, (*GRAM, "dual_coef_"),
          partial(decomposition.KernelPCA, 3, **BACK), BACK),
    Entry(ProbabilisticPCA, {"n_components": 2, "solver": "em", "random_state": 0}, table,
          (*SPECTRAL, "noise_variance_"), partial(LikelyPCA, 2)),
    Entry(RobustPCA, {"lam": 0.1}, table, SPLIT, partial(RobustPCA, lam=0.1, tol=1e-9)),
    Entry(TrimmedPCA, {"random_state": 0}, table, TRIMMED, partial(TrimmedPCA, random_state=1)),
    Entry(LocallyLinearEmbedding, NEAR, table, EMBEDDED, lle),
    Entry(LocallyLinearEmbedding, {**NEAR, "method": "modified"}, table, EMBEDDED, partial(lle, method="modified"),
          {"method": "modified"}),
    Entry(LocallyLinearEmbedding, {**NEAR, **ALIGNED}, table, EMBEDDED, partial(lle, **ALIGNED), ALIGNED),
    Entry(LocallyLinearEmbedding, {**NEAR, **CURVED}, table, EMBEDDED,
          partial(LocallyLinearEmbedding, n_neighbors=12, eigen_solver="dense", **CURVED),
          {**CURVED, "n_neighbors": 6}),
    Entry(SelectFeatures, {"k": 2}, three, SCORED, partial(SelectKBest, f_classif, k=2)),
    Entry(SelectFeatures, {**CORRELATION, "k": 2}, amounts, SCORED, partial(SelectKBest, f_regression, k=2),
          CORRELATION),
    Entry(SelectFeatures, CHI2, tallies, SCORED, partial(SelectKBest, chi2, k=2), CHI2),
    Entry(SelectFeatures, INFORMATION, tallies, SCORED, partial(SelectKBest, mutual_information, k=2), INFORMATION),
    Entry(SelectFeatures, JEFFREYS, three, ("scores_",), partial(SelectKBest, jeffreys, k=2), JEFFREYS),
    Entry(filters.SelectKBest, {"k": 2}, three, SCORED, partial(SelectKBest, f_classif, k=2)),
    Entry(filters.SelectPercentile, {"score_func": f_regression, "percentile": 50}, amounts, SCORED,
          partial(SelectPercentile, f_regression, percentile=50), {"score_func": f_regression}),
    Entry(filters.SelectFdr, {"score_func": chi2}, tallies, SCORED, partial(SelectFdr, chi2), {"score_func": chi2}),
    Entry(filters.SelectFpr, {}, three, SCORED, SelectFpr),
    Entry(filters.SelectFwe, {}, three, SCORED, SelectFwe),
    Entry(filters.GenericUnivariateSelect, {"mode": "k_best", "param": 2}, three, SCORED,
          partial(GenericUnivariateSelect, mode="k_best", param=2)),
    Entry(filters.VarianceThreshold, {"threshold": 1.0}, table, ("variances_",), partial(VarianceThreshold, 1.0)),
    Entry(KMeans, {"n_clusters": 3, "init": CENTRES}, table, CLUSTERS, partial(kmeans, 3, init=CENTRES)),
    Entry(MiniBatchKMeans, {"n_clusters": 3, "init": CENTRES}, table, CLUSTERS, partial(kmeans, 3, init=CENTRES)),
    Entry(GaussianMixture, {"n_components": 3, "random_state": 0}, far_groups, MIXED, partial(gmm, 3)),
    Entry(GaussianMixture, {"n_components": 2, "random_state": 0, **DIAGONAL}, table, MIXED,
          partial(gmm, 2, **DIAGONAL), DIAGONAL),
    Entry(BayesianGaussianMixture, {"n_components": 3, "random_state": 0}, table, VARIATIONAL,
          partial(mixture.BayesianGaussianMixture, n_components=3, tol=1e-9, max_iter=5000, random_state=0)),
    Entry(BayesianGaussianMixture, {"n_components": 2, "random_state": 0, **DIRICHLET}, table, VARIATIONAL,
          partial(mixture.BayesianGaussianMixture, n_components=2, tol=1e-9, max_iter=5000, random_state=0,
                  **DIRICHLET), DIRICHLET),
    Entry(Mixture, {"family": "poisson", "n_components": 2, "parameters_init": RATES, "tol": 1e-5}, tallies,
          ("weights_", "parameters_"), partial(Mixture, "poisson", 2, random_state=1), {"n_components": 1}),
    Entry(LogisticRegression, {}, two, LINEAR, logit),
    Entry(LogisticRegression, {}, three, LINEAR, logit),
    Entry(LogisticRegression, {**LBFGS, "C": 0.1}, three, LINEAR, partial(logit, C=0.1), LBFGS),
    Entry(LogisticRegression, {"penalty": None}, two, LINEAR, partial(logit, C=np.inf)),
    Entry(LogisticRegression, {"l1_ratio": 0.5}, three, LINEAR,
          partial(logit, l1_ratio=0.5, solver="saga", max_iter=10_000), {"l1_ratio": 0.5}),
    Entry(LogisticRegression, {"penalty": "l1"}, two, LINEAR,
          partial(logit, l1_ratio=1.0, solver="saga", max_iter=10_000)),
    Entry(LinearRegression, {}, amounts, LINEAR, linear_model.LinearRegression),
    Entry(LinearRegression, {"positive": True}, amounts, LINEAR,
          partial(linear_model.LinearRegression, positive=True), {"positive": True}),
    Entry(RidgeClassifier, {"alpha": 2.0}, two, LINEAR, partial(linear_model.RidgeClassifier, 2.0)),
    Entry(RidgeClassifier, {"class_weight": "balanced"}, three, LINEAR,
          partial(linear_model.RidgeClassifier, class_weight="balanced"), {"class_weight": "balanced"}),
    Entry(Ridge, {"alpha": 2.0}, amounts, LINEAR, partial(linear_model.Ridge, 2.0)),
    Entry(RidgeCV, {"alphas": (0.5, 2.0, 8.0)}, amounts, CHOSEN, partial(linear_model.RidgeCV, (0.5, 2.0, 8.0))),
    Entry(RidgeCV, {"cv": 3}, amounts, FOLDS, partial(linear_model.RidgeCV, cv=3), {"cv": 3}),
    Entry(RidgeClassifierCV, {}, two, CHOSEN, linear_model.RidgeClassifierCV),
    Entry(RidgeClassifierCV, {"cv": 3}, three, FOLDS, partial(linear_model.RidgeClassifierCV, cv=3), {"cv": 3}),
    Entry(LassoCV, {"alphas": 5, "cv": 3}, amounts, (*LINEAR, "alphas_", "mse_path_", "fold_coef_"),
          partial(linear_model.LassoCV, alphas=5, cv=3, **close), {"alphas": 5}),
    Entry(ElasticNetCV, {"alphas": 5, "cv": 3, "l1_ratio": [0.2, 0.9]}, amounts,
          (*LINEAR, "alphas_", "mse_path_", "fold_coef_"),
          partial(linear_model.ElasticNetCV, alphas=5, cv=3, l1_ratio=[0.2, 0.9], **close), {"alphas": 5}),
    Entry(LogisticRegressionCV, {"Cs": [0.1, 1.0], "cv": 3}, three, (*LINEAR, "fold_scores_", "fold_coef_"),
          partial(logit_cv, Cs=[0.1, 1.0], cv=3), {"Cs": 3}),
    Entry(Lasso, {"alpha": 0.1}, amounts, LINEAR, partial(linear_model.Lasso, 0.1, **close)),
    Entry(ElasticNet, {"alpha": 0.1}, amounts, LINEAR, partial(linear_model.ElasticNet, 0.1, **close)),
    Entry(ElasticNet, {"alpha": 0.1, "positive": True}, amounts, LINEAR,
          partial(linear_model.ElasticNet, 0.1, positive=True, **close), {"positive": True}),
    Entry(PoissonRegressor, {"alpha": 0.1}, counts, LINEAR,
          partial(linear_model.PoissonRegressor, alpha=0.1, **close)),
    Entry(GammaRegressor, {"alpha": 0.1}, amounts, LINEAR, partial(linear_model.GammaRegressor, alpha=0.1, **close)),
    Entry(TweedieRegressor, {"power": 1.5}, amounts, LINEAR,
          partial(linear_model.TweedieRegressor, power=1.5, **close)),
    Entry(GeneralizedLinearRegressor, {"family": "poisson"}, counts, LINEAR,
          partial(linear_model.PoissonRegressor, alpha=0.0, **close), {"family": "gaussian"}),
    Entry(LinearSVC, {**HINGE, **FREE}, two, LINEAR, partial(svm.SVC, kernel="linear", tol=1e-9),
          {"loss": "hinge", **FREE}),
    Entry(LinearSVC, {**HINGE, **HELD, "C": 0.1}, three, LINEAR, partial(liblinear, C=0.1, loss="hinge"),
          {"loss": "hinge"}),
    Entry(LinearSVC, {**HELD, "tol": 1e-10}, three, LINEAR, liblinear),
    Entry(LinearSVC, {**HUBER, "tol": 1e-10}, two, LINEAR, partial(LinearSVC, **HUBER, tol=1e-6), HUBER),
    Entry(LinearSVC, {**SINGER, **HELD, "tol": 1e-10, "C": 0.1}, three, LINEAR,
          partial(liblinear, C=0.1, multi_class="crammer_singer"), {**SINGER, **HELD}),
    Entry(LinearSVC, {**WATKINS, "tol": 1e-10}, three, LINEAR, partial(LinearSVC, **WATKINS, tol=1e-8), WATKINS),
    Entry(LinearSVR, {**FREE, "epsilon": 0.5, "tol": 1e-10}, amounts, LINEAR,
          partial(svm.SVR, kernel="linear", epsilon=0.5, tol=1e-9)),
    Entry(LinearSVR, {**SQUARED, **HELD, "epsilon": 0.5, "tol": 1e-10}, amounts, LINEAR,
          partial(svm.LinearSVR, **SQUARED, epsilon=0.5, tol=1e-10, max_iter=100_000), SQUARED),
    Entry(SVC, {"tol": 1e-10}, few_classes, EXPANSION, partial(svm.SVC, tol=1e-10)),
    Entry(SVC, {"tol": 1e-10, **FLAT}, few_classes, EXPANSION, partial(svm.SVC, tol=1e-10, **FLAT), FLAT),
    Entry(SVC, {"tol": 1e-10, **WATKINS}, few_classes, EXPANSION, partial(SVC, **WATKINS), WATKINS),
    Entry(SVC, {"tol": 1e-10, **SINGER}, few_classes, EXPANSION, partial(SVC, **SINGER), SINGER),
    Entry(SVC, {"tol": 1e-10, **LIKELY}, few_classes, (*EXPANSION, "probability_slopes_"),
          partial(svm.SVC, tol=1e-10), LIKELY),
    Entry(SVC, {"tol": 1e-10, "multi_class": "ovr", **LIKELY}, few_three, (*EXPANSION, "probability_slopes_"),
          partial(SVC, tol=1e-8, multi_class="ovr"), {"multi_class": "ovr", **LIKELY}),
    Entry(SVR, {"tol": 1e-10, "epsilon": 0.5}, few_amounts, EXPANSION, partial(svm.SVR, tol=1e-10, epsilon=0.5)),
    Entry(NuSVC, {"tol": 1e-9, "nu": 0.6}, few_classes, EXPANSION, partial(svm.NuSVC, nu=0.6, tol=1e-10)),
    Entry(NuSVR, {"tol": 1e-7, "nu": 0.3}, few_amounts, EXPANSION, partial(svm.NuSVR, nu=0.3, tol=1e-10)),
    Entry(OneClassSVM, {"tol": 1e-9, "nu": 0.3}, few_table, EXPANSION, partial(svm.OneClassSVM, nu=0.3, tol=1e-10)),
    Entry(HardMarginSVC, {"tol": 1e-10}, apart, (*HARD, "coef_"),
          partial(svm.SVC, kernel="linear", C=1e4, tol=1e-10)),
    Entry(HardMarginSVC, {"kernel": "rbf", "tol": 1e-10}, apart, HARD, partial(svm.SVC, C=1e6, tol=1e-10),
          {"kernel": "rbf", "ridge": 0.1}),
    Entry(Nystroem, LANDMARKS, table, ("components_", "normalization_"),
          partial(kernel_approximation.Nystroem, **LANDMARKS), FEW),
    Entry(RBFSampler, WAVES, table, ("random_weights_", "random_offset_"),
          partial(kernel_approximation.RBFSampler, **WAVES), FEW),
    Entry(ApproximateSVC, {**LANDMARKS, "tol": 1e-10}, two, LINEAR,
          partial(ApproximateSVC, **LANDMARKS, tol=1e-6), FEW),
    Entry(QuadraticDiscriminantAnalysis, {"store_covariance": True}, three, QUADRATIC,
          partial(SklearnQDA, store_covariance=True)),
    Entry(QuadraticDiscriminantAnalysis, {"solver": "eigen", "shrinkage": "auto"}, two, QUADRATIC[:3],
          partial(SklearnQDA, solver="eigen", shrinkage="auto"), EIGEN),
    Entry(LinearDiscriminantAnalysis, {}, three, DISCRIMINANTS, SklearnLDA),
    Entry(LinearDiscriminantAnalysis, {**EIGEN, "shrinkage": "auto"}, two, (*DISCRIMINANTS, "covariance_"),
          partial(SklearnLDA, **EIGEN, shrinkage="auto"), {**EIGEN, "shrinkage": 0.1}),
    Entry(LinearDiscriminantAnalysis, {"solver": "lsqr", "shrinkage": 0.1, "priors": [0.2, 0.3, 0.5]}, three,
          (*LINEAR, "means_", "covariance_"), partial(SklearnLDA, "lsqr", 0.1, [0.2, 0.3, 0.5]),
          {"solver": "lsqr", "shrinkage": 0.1}),
    Entry(DecisionTreeClassifier, {}, three, NODES, partial(trees.DecisionTreeClassifier, random_state=0)),
    Entry(DecisionTreeClassifier, {"criterion": "entropy", "max_leaf_nodes": 8}, two, NODES,
          partial(trees.DecisionTreeClassifier, criterion="entropy", max_leaf_nodes=8, random_state=0),
          {"criterion": "entropy"}),
    Entry(DecisionTreeRegressor, {"max_depth": 4}, amounts, NODES,
          partial(trees.DecisionTreeRegressor, max_depth=4, random_state=0), {"max_depth": 4}),
    Entry(DecisionTreeRegressor, {"criterion": "poisson", "min_weight_fraction_leaf": 0.05}, counts, NODES,
          partial(trees.DecisionTreeRegressor, criterion="poisson", min_weight_fraction_leaf=0.05, random_state=0),
          {"min_weight_fraction_leaf": 0.05}),
    Entry(DecisionTreeRegressor, {"criterion": "absolute_error", "max_depth": 3}, short(few_amounts), NODES,
          partial(trees.DecisionTreeRegressor, criterion="absolute_error", max_depth=3, random_state=0),
          {"criterion": "absolute_error"}),
    Entry(OptimalTreeClassifier, SHALLOW, three, NODES, partial(OptimalTreeClassifier, **SHALLOW), SHALLOW),
    Entry(OptimalTreeRegressor, SHALLOW, amounts, NODES, partial(OptimalTreeRegressor, **SHALLOW), SHALLOW),
    Entry(AdaBoostClassifier, BOOSTED, two, (*STAGES, "members_.leaf_weight"),
          partial(ensemble.AdaBoostClassifier, **BOOSTED, random_state=0)),
    Entry(AdaBoostClassifier, {**BOOSTED, "learning_rate": 0.5, "max_bins": 16}, three,
          (*STAGES, "members_.leaf_weight"),
          partial(ensemble.AdaBoostClassifier, **BOOSTED, learning_rate=0.5, random_state=0), {"max_bins": 16}),
    Entry(AdaBoostClassifier, {**BOOSTED, "estimator": DecisionTreeClassifier(max_depth=2)}, few_three, STAGES,
          partial(ensemble.AdaBoostClassifier, trees.DecisionTreeClassifier(max_depth=2), **BOOSTED, random_state=0),
          {**BOOSTED, "estimator": DecisionTreeClassifier(max_depth=2)}),
    Entry(AdaBoostClassifier, {**BOOSTED, "corrective": "lpboost", "nu": 0.3}, handful, STAGES[:1],
          partial(AdaBoostClassifier, **BOOSTED, corrective="lpboost", nu=0.3, learning_rate=0.5)),
    Entry(AdaBoostRegressor, {"n_estimators": 3}, amounts, STAGES,
          partial(ensemble.AdaBoostRegressor, n_estimators=3, random_state=0)),
    Entry(RandomForestClassifier, GROVE, short(three), FOREST, partial(ensemble.RandomForestClassifier, **GROVE)),
    Entry(RandomForestClassifier, {**UNSEEN, "criterion": "entropy", "max_depth": 4}, short(two),
          (*FOREST, "oob_decision_function_", "oob_interval_"), partial(ensemble.RandomForestClassifier, **GROVE),
          {"criterion": "entropy", "max_leaf_nodes": 8}),
    Entry(RandomForestRegressor, {**UNSEEN, "max_depth": 5}, short(amounts),
          (*FOREST, "oob_prediction_", "oob_residual_"),
          partial(ensemble.RandomForestRegressor, **GROVE, max_depth=5)),
    Entry(RandomForestRegressor, {**GROVE, "criterion": "poisson", "max_leaf_nodes": 8}, short(counts), FOREST,
          partial(ensemble.RandomForestRegressor, **GROVE, criterion="poisson"), {"max_depth": 3}),
    Entry(ExtraTreesClassifier, {**GROVE, "max_depth": 5}, short(three), FOREST,
          partial(ensemble.ExtraTreesClassifier, **GROVE)),
    Entry(ExtraTreesRegressor, {**GROVE, "max_depth": 5}, short(amounts), FOREST,
          partial(ensemble.ExtraTreesRegressor, **GROVE, max_depth=5)),
    Entry(BaggingClassifier, BAG, few_three, ("oob_decision_function_", "oob_interval_"),
          partial(ensemble.BaggingClassifier, **GROVE)),
    Entry(BaggingRegressor, {**BAG, "max_features": 2}, few_amounts, ("oob_prediction_", "oob_interval_"),
          partial(ensemble.BaggingRegressor, **GROVE)),
    Entry(AdditiveClassifier, TIGHT, two, CURVES, partial(AdditiveClassifier, alpha=0.01, tol=1e-7)),
    Entry(AdditiveRegressor, {**TIGHT, "monotonic_cst": [1, 0, 0, 0]}, amounts, CURVES,
          partial(AdditiveRegressor, alpha=0.01, tol=1e-7, monotonic_cst=[1, 0, 0, 0])),
    Entry(AdditiveRegressor, {**TIGHT, "loss": "poisson"}, counts, CURVES,
          partial(AdditiveRegressor, alpha=0.01, tol=1e-7, loss="poisson"), {"alpha": 0.05}),
    Entry(GradientBoostingClassifier, SLOPES, short(few_three), SLOPE_TREES,
          partial(GradientBoostingClassifier, n_estimators=9)),
    Entry(GradientBoostingClassifier, {**SLOPES, "loss": "exponential", "max_depth": 1}, two, SLOPE_TREES,
          partial(GradientBoostingClassifier, loss="exponential", n_estimators=6, max_depth=1),
          {"max_depth": 1, **SLOPES}),
    Entry(GradientBoostingRegressor, SLOPES, short(few_amounts), (*SLOPE_TREES, "trees_.baseline"),
          partial(GradientBoostingRegressor, n_estimators=9)),
    Entry(GradientBoostingRegressor, {**SLOPES, "loss": "huber"}, short(few_amounts), (*SLOPE_TREES, "huber_deltas_"),
          partial(GradientBoostingRegressor, loss="huber", n_estimators=9), {"loss": "huber", "n_estimators": 30}),
    Entry(HistGradientBoostingClassifier, {**TEN_STAGES, "random_state": 0}, short(three), BOOSTING,
          partial(ensemble.HistGradientBoostingClassifier, **TEN_STAGES), {"max_iter": 10}),
    Entry(HistGradientBoostingClassifier, {**TEN_STUMPS, "random_state": 0}, two, BOOSTING,
          partial(ensemble.HistGradientBoostingClassifier, **TEN_STUMPS), TEN_STUMPS),
    Entry(HistGradientBoostingRegressor, {**TEN_STAGES, "random_state": 0}, short(amounts),
          (*BOOSTING, "trees_.baseline"), partial(ensemble.HistGradientBoostingRegressor, **TEN_STAGES),
          {"max_iter": 10}),
    Entry(HistGradientBoostingRegressor, {"loss": "poisson", **TEN_STAGES, "random_state": 0}, short(counts),
          (*BOOSTING, "trees_.baseline"),
          partial(ensemble.HistGradientBoostingRegressor, loss="poisson", **TEN_STAGES),
          {"max_iter": 10}),
    Entry(MLPClassifier, STATIONARY, few_three, TENSORS, partial(neural_network.MLPClassifier, **STATIONARY)),
    Entry(ConvNetClassifier, TINY, two, (*TENSORS, "moments_"), partial(neural_network.MLPClassifier, **STATIONARY)),
    Entry(MLPClassifier, EPOCHS, two, TENSORS, partial(neural_network.MLPClassifier, **STATIONARY)),
    Entry(MLPRegressor, STATIONARY, few_amounts, TENSORS, partial(neural_network.MLPRegressor, **STATIONARY)),
    Entry(MLPRegressor, {**EPOCHS, "solver": "sgd", "learning_rate": "adaptive"}, amounts, TENSORS,
          partial(neural_network.MLPRegressor, **STATIONARY)),
    Entry(GaussianNB, {}, three, ("theta_", "var_"), naive_bayes.GaussianNB),
    Entry(BernoulliNB, {"binarize": 1.0}, tallies, COUNTED, partial(naive_bayes.BernoulliNB, binarize=1.0)),
    Entry(MultinomialNB, {"alpha": 0.5}, tallies, COUNTED, partial(naive_bayes.MultinomialNB, alpha=0.5)),
    Entry(ComplementNB, {}, tallies, COUNTED, naive_bayes.ComplementNB),
    Entry(CategoricalNB, {}, tallies, ("class_log_prior_", "class_count_"), naive_bayes.CategoricalNB),
    Entry(NaiveBayes, {}, tallies, ("class_prior_", "class_count_"), naive_bayes.GaussianNB),
]  # fmt: skip

every_estimator = pytest.mark.parametrize("entry", CATALOGUE, ids=str)
# for what settings do not change: each class once
ONCE = [*{entry.cls: entry for entry in reversed(CATALOGUE)}.values()][::-1]
every_class = pytest.mark.parametrize("entry", ONCE, ids=str)
# for those that are sums over rows: they take weights, and any number of rows
every_sum = pytest.mark.parametrize("entry", [e for e in CATALOGUE if e.is_sum], ids=str)


def every_with(param: str) -> Any:
    """For the estimators that have this parameter."""
    return pytest.mark.parametrize("entry", [e for e in CATALOGUE if e.has(param)], ids=str)


# for those that go on until nothing is left to gain; of a boosting, any number of stages is a model as good as any
every_converging = pytest.mark.parametrize(
    "entry",
    [e for e in CATALOGUE if e.has("max_iter") and "Boosting" not in e.cls.__name__ and not e.in_minibatches],
    ids=str,
)


def unfitted(model: Any) -> bool:
    """Nothing is left of any fit, not even half of one."""
    return not [name for name in vars(model) if name.endswith("_") and not name.startswith("__")]
