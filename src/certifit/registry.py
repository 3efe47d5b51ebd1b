"""Every public name and the module it lives in: the one place where an estimator is registered.

Public names (flat, and in their rooms), their types (`tools/stubs.py` writes the stubs), the warm-up, model files,
the tests' catalogue and the table in the README follow from here. Names are loaded on first use, so that
`import certifit` is quick and `certifit.cluster` loads no support vector machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Registered:
    """A public name, where it is defined, and, of an estimator, what its certificate proves."""

    name: str
    module: str  # below `certifit`, such as `cluster.kmeans`
    proves: str = ""  # one line of the README's table; empty where the name is no estimator
    warm_up: tuple[Mapping[str, Any], ...] = ()  # settings that lead to compiled loops of their own

    @property
    def room(self) -> str:
        """The public package that exports the name, such as `cluster`."""
        return self.module.partition(".")[0]

    @property
    def is_estimator(self) -> bool:
        return bool(self.proves)

    def load(self) -> Any:
        return getattr(import_module(f"certifit.{self.module}"), self.name)


class _Proves:
    """What certificates of several estimators have in common."""

    axes = "no basis of this size has a smaller reconstruction error, up to a stated gap"
    glm = "the deviance is within a stated gap of its minimum, wherever it is convex; standard errors where valid"
    chosen = "as without cross-validation; every fold's fits are optimal, their scores exact, the choice the best"
    machine = "the objective is within a stated duality gap of the minimum, also for all classes at once"
    kernel_error = "by how much any kernel value is off"
    moments = "every parameter is exactly what the class-wise sums say"
    forest = (
        "every node says what its tree's rows say, splits are the best that nodes were shown; out-of-bag intervals"
    )
    bag = "members are what their samples make of the estimator; the out-of-bag score, with an interval that covers"
    splits = "every node says what its rows say; splits scored again (4 by a fit, 1000 by an audit) are the best"
    stages = "every leaf's value, and that no stage raised the loss; the gap to the best additive model, of stumps"
    slope_trees = "as histogram boosting, and that trees are the greedy least-squares trees of their stage's slopes"
    best_tree = "no tree of this depth costs less, whatever its thresholds; or the least that any could cost"
    additive = "no sum of functions of columns, and of the pairs chosen, has a smaller objective, up to a stated gap"
    greedy = "every greedy choice was the best of its candidates"
    network = "the stored loss is that of these weights; the gradient's largest entry, at most tol with 'lbfgs'"
    layers = "the stored loss is that of these weights, layer by layer; the gradient's largest entry"
    em = "one more EM step gains nothing, and no step ever lost; log-likelihood = bound + KL; collapses are named"


_BOOSTING, _HIST_BOOSTING = "ensemble.boosting.gradient_boosting", "ensemble.boosting.hist_gradient_boosting"
_joint = tuple({"multi_class": kind} for kind in ("weston-watkins", "crammer-singer"))
_descents = tuple({"max_iter": 2, "solver": solver} for solver in ("adam", "sgd"))
_shapes = tuple({"n_components": 2, "covariance_type": shape} for shape in ("full", "diag"))

ESTIMATORS: tuple[Registered, ...] = (
    Registered("PCA", "decomposition.pca.pca", _Proves.axes),
    Registered("IncrementalPCA", "decomposition.pca.incremental_pca", _Proves.axes),
    Registered("TruncatedSVD", "decomposition.pca.truncated_svd", _Proves.axes),
    Registered(
        "KernelPCA",
        "decomposition.kernel.kernel_pca",
        "no directions of feature space leave a smaller squared distance; each eigenvalue in its place",
    ),
    Registered(
        "ProbabilisticPCA",
        "decomposition.probabilistic.probabilistic_pca",
        "complete rows: the likelihood's global maximum; rows with missing entries: one more EM step gains nothing",
    ),
    Registered("RobustPCA", "decomposition.robust.robust_pca", "no better split into low rank and errors exists"),
    Registered("TrimmedPCA", "decomposition.robust.trimmed_pca", "a fixed point of trimming"),
    Registered(
        "LocallyLinearEmbedding",
        "manifold.locally_linear",
        "no coordinates have smaller squared errors: eigenvalues below are counted",
    ),
    Registered("SelectFeatures", "feature_selection.select_features", "scores and the choice are exact"),
    *(
        Registered(name, "feature_selection.score_filters", "scores and the choice are exact")
        for name in (
            "SelectKBest",
            "SelectPercentile",
            "SelectFpr",
            "SelectFdr",
            "SelectFwe",
            "GenericUnivariateSelect",
        )
    ),
    Registered("VarianceThreshold", "feature_selection.variance_threshold", "variances and the choice are exact"),
    Registered("SequentialSelector", "feature_selection.searches.sequential_selector", _Proves.greedy),
    Registered("RecursiveElimination", "feature_selection.searches.recursive_elimination", _Proves.greedy),
    Registered("RFE", "feature_selection.searches.elimination", _Proves.greedy),
    Registered("RFECV", "feature_selection.searches.elimination", _Proves.greedy),
    Registered("SequentialFeatureSelector", "feature_selection.searches.sequential_feature_selector", _Proves.greedy),
    Registered(
        "SelectFromModel",
        "feature_selection.searches.select_from_model",
        "threshold and choice are exact; the model that chose passes its own audit",
    ),
    Registered("L1Selector", "feature_selection.l1_selector", "which columns are zero at the optimum"),
    Registered(
        "KMeans",
        "cluster.kmeans",
        "a fixed point of Lloyd's algorithm, at most a stated multiple of the best possible objective; on a single "
        'column, and on many small tables with `config(proof="best")`, that no clustering is better',
    ),
    Registered("MiniBatchKMeans", "cluster.mini_batch_kmeans", "as KMeans: all rows are read, not batches"),
    Registered("GaussianMixture", "mixture.gaussian.gaussian_mixture", _Proves.em, warm_up=_shapes),
    Registered("Mixture", "mixture.families.mixture", _Proves.em),
    Registered(
        "BayesianGaussianMixture",
        "mixture.bayesian.bayesian_mixture",
        "one more variational step changes neither parameters nor lower bound; priors are those of settings and rows",
    ),
    Registered(
        "LogisticRegression",
        "linear_model.logistic.logistic",
        "binary and softmax, L2, L1 or elastic net: objective within a stated gap of the minimum; without penalty "
        "also that a maximum exists, or the direction that shows it does not",
    ),
    Registered("LinearRegression", "linear_model.regressors", _Proves.glm),
    Registered("Ridge", "linear_model.regressors", _Proves.glm, warm_up=({"positive": True},)),
    Registered("RidgeClassifier", "linear_model.ridge_classifier", _Proves.glm),
    Registered("Lasso", "linear_model.regressors", _Proves.glm),
    Registered("ElasticNet", "linear_model.regressors", _Proves.glm),
    Registered("RidgeCV", "linear_model.cross_validated.ridge_cv", _Proves.chosen),
    Registered("RidgeClassifierCV", "linear_model.cross_validated.ridge_cv", _Proves.chosen),
    Registered("LassoCV", "linear_model.cross_validated.elastic_net_cv", _Proves.chosen),
    Registered("ElasticNetCV", "linear_model.cross_validated.elastic_net_cv", _Proves.chosen),
    Registered("LogisticRegressionCV", "linear_model.cross_validated.logistic_cv", _Proves.chosen),
    Registered("PoissonRegressor", "linear_model.family_regressors", _Proves.glm),
    Registered("GammaRegressor", "linear_model.family_regressors", _Proves.glm),
    Registered("TweedieRegressor", "linear_model.family_regressors", _Proves.glm),
    Registered("GeneralizedLinearRegressor", "linear_model.glm.glm", _Proves.glm),
    Registered("LinearSVC", "svm.linear.linear_svm", _Proves.machine, warm_up=_joint),
    Registered("LinearSVR", "svm.linear.linear_svm", _Proves.machine),
    Registered("SVC", "svm.kernel.svc", _Proves.machine, warm_up=_joint),
    Registered("SVR", "svm.kernel.svr", _Proves.machine),
    Registered("NuSVC", "svm.nu.nu_svm", _Proves.machine),
    Registered("NuSVR", "svm.nu.nu_svm", _Proves.machine),
    Registered("OneClassSVM", "svm.nu.nu_svm", _Proves.machine),
    Registered(
        "HardMarginSVC",
        "svm.hard_margin.hard_margin",
        "no margin is larger; or two convex combinations that meet, so that there is none",
    ),
    Registered("Nystroem", "kernel_approximation.nystroem", _Proves.kernel_error),
    Registered("RBFSampler", "kernel_approximation.rbf_sampler", _Proves.kernel_error),
    Registered(
        "ApproximateSVC",
        "kernel_approximation.approximate_svc",
        "the gap of the approximated problem and, where it is small enough, of the exact one",
    ),
    Registered(
        "LinearDiscriminantAnalysis",
        "discriminant_analysis.linear",
        "means and covariance are those of the rows; coefficients and directions solve their equations",
    ),
    Registered(
        "QuadraticDiscriminantAnalysis",
        "discriminant_analysis.quadratic",
        "priors, means and covariances are those of the rows, and rows are scored by them",
    ),
    Registered("DecisionTreeClassifier", "tree.decision_tree", _Proves.splits, warm_up=({"max_leaf_nodes": 3},)),
    Registered(
        "DecisionTreeRegressor",
        "tree.decision_tree",
        _Proves.splits,
        warm_up=({"criterion": "absolute_error", "max_leaf_nodes": 3}, {"categorical_features": [0]}),
    ),
    Registered(
        "AdaBoostClassifier",
        "ensemble.adaboost.adaboost_classifier",
        "mean exp(-margin) is the product of the stages' Z; loss and least margin against the best of all stumps",
        warm_up=({"n_estimators": 2}, {"n_estimators": 2, "max_bins": 255}),
    ),
    Registered(
        "AdaBoostRegressor",
        "ensemble.adaboost.adaboost_regressor",
        "weights, errors and strengths of all stages follow from the learners' predictions",
        warm_up=({"n_estimators": 2},),
    ),
    Registered("GradientBoostingClassifier", _BOOSTING, _Proves.slope_trees, warm_up=({"n_estimators": 2},)),
    Registered(
        "GradientBoostingRegressor",
        _BOOSTING,
        _Proves.slope_trees,
        warm_up=({"n_estimators": 2}, {"n_estimators": 2, "subsample": 0.5}),
    ),
    Registered("HistGradientBoostingClassifier", _HIST_BOOSTING, _Proves.stages),
    Registered("HistGradientBoostingRegressor", _HIST_BOOSTING, _Proves.stages),
    Registered("OptimalTreeClassifier", "tree.optimal.optimal_tree", _Proves.best_tree),
    Registered("OptimalTreeRegressor", "tree.optimal.optimal_tree", _Proves.best_tree),
    Registered(
        "RandomForestClassifier",
        "ensemble.forest.classifiers",
        _Proves.forest,
        warm_up=({"n_estimators": 2, "oob_score": True}, {"n_estimators": 2, "max_leaf_nodes": 3}),
    ),
    Registered("ExtraTreesClassifier", "ensemble.forest.classifiers", _Proves.forest),
    Registered("RandomForestRegressor", "ensemble.forest.regressors", _Proves.forest),
    Registered("ExtraTreesRegressor", "ensemble.forest.regressors", _Proves.forest),
    Registered("BaggingClassifier", "ensemble.bagging.bagging", _Proves.bag),
    Registered("BaggingRegressor", "ensemble.bagging.bagging", _Proves.bag),
    Registered("AdditiveClassifier", "ensemble.additive.additive_models", _Proves.additive),
    Registered(
        "AdditiveRegressor",
        "ensemble.additive.additive_models",
        _Proves.additive,
        warm_up=({"alpha": 0.01}, {"alpha": 0.01, "loss": "poisson"}),
    ),
    Registered("ConvNetClassifier", "neural_network.convolutional", _Proves.layers, warm_up=({"max_iter": 2},)),
    Registered("MLPClassifier", "neural_network.perceptron_models", _Proves.network, warm_up=_descents),
    Registered("MLPRegressor", "neural_network.perceptron_models", _Proves.network, warm_up=_descents),
    Registered("GaussianNB", "naive_bayes.gaussian", _Proves.moments),
    Registered("BernoulliNB", "naive_bayes.bernoulli", _Proves.moments),
    Registered("MultinomialNB", "naive_bayes.multinomial", _Proves.moments),
    Registered("ComplementNB", "naive_bayes.multinomial", _Proves.moments),
    Registered("CategoricalNB", "naive_bayes.categorical", _Proves.moments),
    Registered("NaiveBayes", "naive_bayes.mixed", _Proves.moments),
    Registered(
        "TableClassifier",
        "table.table_classifier",
        "words, numbers and holes are encoded for `LogisticRegression`, or the estimator named: its certificate",
    ),
    Registered(
        "TableRegressor",
        "table.table_regressor",
        "the same for amounts, counts and positive amounts, by `GeneralizedLinearRegressor`: its certificate",
    ),
)

FUNCTIONS: tuple[Registered, ...] = (
    Registered("two_views", "decomposition.pca.both_views"),
    Registered("feature_scores", "feature_selection.scores"),
    Registered("anova_f", "feature_selection.scores"),
    Registered("correlation_f", "feature_selection.scores"),
    Registered("mutual_information", "feature_selection.scores"),
    Registered("jeffreys", "feature_selection.scores"),
    *(
        Registered(name, "feature_selection.score_functions")
        for name in (
            "f_classif",
            "f_regression",
            "r_regression",
            "chi2",
            "mutual_info_classif",
            "mutual_info_regression",
        )
    ),
    Registered("choose_clusters", "cluster.choose_k"),
    Registered("k_means", "cluster.kmeans"),
    Registered("kmeans_plusplus", "cluster.seeding"),
    Registered("locally_linear_embedding", "manifold.embedding_function"),
    Registered("l1_min_c", "svm.smallest_l1_strength"),
    Registered("ridge_regression", "linear_model.regularisation_path"),
    Registered("export_graphviz", "tree.export"),
    Registered("export_text", "tree.export"),
    Registered("plot_tree", "tree.plots"),
    Registered("enet_path", "linear_model.regularisation_path"),
    Registered("lasso_path", "linear_model.regularisation_path"),
    Registered("select_mixture", "mixture.choose_components"),
    Registered("Linear", "svm.kernel.kernels"),
    Registered("Polynomial", "svm.kernel.kernels"),
    Registered("RBF", "svm.kernel.kernels"),
    Registered("Sigmoid", "svm.kernel.kernels"),
    Registered("is_psd", "svm.kernel.kernels"),
    Registered("BootstrapSplit", "model_selection.splitting.bootstrap_split"),
    Registered("TimeHoldout", "model_selection.splitting.time_holdout"),
    Registered("HashedSplit", "model_selection.splitting.hashed_split"),
    Registered("HashedKFold", "model_selection.splitting.hashed_split"),
    Registered("assess", "model_selection.assessment.assess"),
    Registered("ConformalRegressor", "model_selection.conformal.regressor"),
    Registered("ConformalClassifier", "model_selection.conformal.classifier"),
    Registered("compare_models", "model_selection.comparison.compare_models"),
    Registered("bayesian_signed_rank", "model_selection.comparison.paired_tests"),
    Registered("choose_setting", "model_selection.choosing.choose_setting"),
    Registered("bootstrap_coefficients", "model_selection.bootstrap.replicates"),
    Registered("bias_and_variance", "model_selection.bootstrap.bias_variance"),
    Registered("assess_sizes", "model_selection.choosing.score_curves"),
    Registered("prove_penalty", "model_selection.choosing.penalty_range"),
    Registered("assess_values", "model_selection.choosing.score_curves"),
    Registered("check_splits", "model_selection.splitting.check"),
    Registered("audit", "checkers.auditing"),
    Registered("config", "core.config"),
    Registered("report", "report.model_page"),
    Registered("compare", "checkers.comparison"),
    Registered("prove_monotone", "checkers.tree.sums.questions"),
    Registered("prove_order", "checkers.tree.sums.questions"),
    Registered("score_range", "checkers.tree.sums.questions"),
    Registered("robust_radius", "checkers.neural_network.robustness"),
    Registered("any_width_bound", "checkers.neural_network.any_width"),
    Registered("load_onnx", "store.onnx_reader"),
    Registered("save_onnx", "store.onnx_file"),
    Registered("save_vnnlib", "store.vnnlib_file"),
    Registered("as_rows", "rows"),
    Registered("set_threads", "rows"),
    Registered("Certificate", "core"),
    Registered("ProgressBar", "core.progress"),
    Registered("CertificateWarning", "exceptions"),
    Registered("DataError", "exceptions"),
    Registered("InseparableWarning", "exceptions"),
    Registered("NoSolutionError", "exceptions"),
    Registered("SourceChangedError", "exceptions"),
    Registered("save", "store"),
    Registered("load", "store"),
    Registered("write_predictions", "store"),
    Registered("load_penguins", "datasets"),
    Registered("load_visits", "datasets"),
    Registered("fit", "table.portfolio.fitting"),
)

# Pictures are drawn in the rooms and exported by `certifit.plots`.
PICTURES: dict[str, str] = {
    "em_frames": "mixture.plots",
    "learning_curves": "naive_bayes.plots",
    "plot_active_units": "neural_network.activity_plots",
    "plot_backpropagation": "neural_network.plots",
    "plot_boundaries": "ensemble.plots",
    "plot_boosting_bound": "ensemble.plots",
    "plot_boundary": "plots.boundary",
    "plot_cells": "cluster.plots",
    "plot_class_densities": "naive_bayes.plots",
    "plot_cluster_choice": "cluster.plots",
    "plot_coefficients": "plots.classification",
    "plot_components": "decomposition.pca.plots",
    "plot_confusion": "plots.classification",
    "plot_convergence": "plots.convergence",
    "plot_coverage": "model_selection.plots",
    "plot_directions": "divergence.plots",
    "plot_em_steps": "mixture.plots",
    "plot_em_trace": "mixture.plots",
    "plot_error_correlations": "ensemble.plots",
    "plot_estimates": "model_selection.plots",
    "plot_feature_maps": "neural_network.plots",
    "plot_filters": "neural_network.plots",
    "plot_first_axes": "decomposition.robust.plots",
    "plot_glm": "linear_model.glm.plots",
    "plot_images": "decomposition.pca.compression_plots",
    "plot_kl_terms": "divergence.plots",
    "plot_l1_path": "feature_selection.plots",
    "plot_learning_curves": "naive_bayes.plots",
    "plot_log_normaliser": "families.plots",
    "plot_losses": "losses.plots",
    "plot_machine": "svm.plots",
    "plot_margins": "ensemble.plots",
    "plot_mistakes": "neural_network.plots",
    "plot_mixture": "mixture.plots",
    "plot_mixture_choice": "mixture.plots",
    "plot_pmf_and_density": "divergence.plots",
    "plot_projection_path": "divergence.plots",
    "plot_quadratic_form": "linalg.plots",
    "plot_rate_distortion": "decomposition.pca.compression_plots",
    "plot_scores": "feature_selection.plots",
    "plot_scree": "decomposition.pca.plots",
    "plot_search": "feature_selection.plots",
    "plot_pair_functions": "ensemble.additive.plots",
    "plot_shape_functions": "ensemble.additive.plots",
    "plot_silhouettes": "cluster.plots",
    "plot_slope_sizes": "neural_network.plots",
    "plot_split": "decomposition.robust.plots",
    "plot_two_views": "decomposition.pca.plots",
    "rate_distortion": "decomposition.pca.compression_plots",
    "svg": "plots.style",
}

# Names that a room passes on as they are, from scikit-learn's module of the same name.
PASSED_ON: dict[str, tuple[str, ...]] = {
    "model_selection": (
        "BaseCrossValidator",
        "BaseShuffleSplit",
        "FixedThresholdClassifier",
        "GridSearchCV",
        "GroupKFold",
        "GroupShuffleSplit",
        "KFold",
        "LearningCurveDisplay",
        "LeaveOneGroupOut",
        "LeaveOneOut",
        "LeavePGroupsOut",
        "LeavePOut",
        "ParameterGrid",
        "ParameterSampler",
        "PredefinedSplit",
        "RandomizedSearchCV",
        "RepeatedKFold",
        "RepeatedStratifiedKFold",
        "ShuffleSplit",
        "StratifiedGroupKFold",
        "StratifiedKFold",
        "StratifiedShuffleSplit",
        "TimeSeriesSplit",
        "TunedThresholdClassifierCV",
        "ValidationCurveDisplay",
        "check_cv",
        "cross_val_predict",
        "cross_val_score",
        "cross_validate",
        "learning_curve",
        "permutation_test_score",
        "train_test_split",
        "validation_curve",
    ),
}

PUBLIC: dict[str, Registered] = {entry.name: entry for entry in (*ESTIMATORS, *FUNCTIONS)}


def room_names(room: str) -> dict[str, str]:
    """The public names of one room, in order, and the modules below `certifit` that define them."""
    return {name: PUBLIC[name].module for name in sorted(PUBLIC) if PUBLIC[name].room == room}


def lazy_names(
    package: str, names: Mapping[str, str], passed_on: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that loads each name from its module on first use.

    Names that are `passed_on` come from scikit-learn's module of the same name.
    """

    def get(name: str) -> Any:
        if name in passed_on:
            return getattr(import_module(package.replace("certifit", "sklearn", 1)), name)
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"certifit.{names[name]}"), name)

    every = sorted([*names, *passed_on])
    return get, lambda: [*every], every
