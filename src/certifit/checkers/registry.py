"""Every kind of fitted model that `audit` knows: its adapter, the attributes it has, and which problem it solves.

A model is recognised by the name of its class alone, so that look-alikes (another library's `LogisticRegression`)
work without being imported here. A subclass of another name may solve another problem: it is refused unless the
caller says what it is like. What is refused is told the nearest thing that would work (`refusals`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from certifit.checkers.cluster.adapter import audit_clusters, centres
from certifit.checkers.decomposition.adapter import (
    audit_pca,
    audit_ppca,
    audit_svd,
    pca_problem,
    ppca_problem,
    svd_problem,
)
from certifit.checkers.decomposition.kernel_adapter import audit_kernel_pca
from certifit.checkers.decomposition.robust_adapter import TRIMMED, audit_robust_pca, audit_trimmed_pca
from certifit.checkers.discriminant_analysis.adapter import audit_linear_discriminants
from certifit.checkers.discriminant_analysis.quadratic import audit_quadratic_discriminants
from certifit.checkers.ensemble.adaboost_adapter import audit_boosted_classifier
from certifit.checkers.ensemble.additive.adapter import audit_additive
from certifit.checkers.ensemble.bagging.adapter import audit_bag
from certifit.checkers.ensemble.boosted_median import audit_boosted_regressor
from certifit.checkers.ensemble.boosting.gradient_adapter import audit_gradient_boosting
from certifit.checkers.ensemble.boosting_adapter import audit_boosting
from certifit.checkers.ensemble.forest.sklearn_adapter import audit_forest
from certifit.checkers.feature_selection.filter_adapter import FILTERS, audit_filter, audit_variances
from certifit.checkers.feature_selection.from_model import audit_from_model
from certifit.checkers.feature_selection.l1_adapter import audit_l1
from certifit.checkers.feature_selection.search_adapter import audit_elimination, audit_sequential
from certifit.checkers.kernel_approximation.adapter import audit_approximate_svc, audit_fourier, audit_nystroem
from certifit.checkers.linear_model.adapter import CLAIMS, audit_linear, linear_problem
from certifit.checkers.linear_model.cross_validated.adapter import (
    audit_elastic_net_cv,
    audit_logistic_cv,
    audit_ridge_classifier_cv,
    audit_ridge_cv,
)
from certifit.checkers.linear_model.logistic.adapter import audit_logistic, logistic_problem
from certifit.checkers.linear_model.ridge_classifier import audit_ridge_classifier, ridge_classifier_problem
from certifit.checkers.linear_model.statsmodels_adapter import audit_statsmodels, statsmodels_problem
from certifit.checkers.manifold.adapter import audit_lle
from certifit.checkers.mixture.adapter import MIXTURE, audit_gaussian_mixture, gaussian_mixture_problem
from certifit.checkers.mixture.bayesian_adapter import audit_bayesian_mixture
from certifit.checkers.mixture.families_adapter import audit_mixture, mixture_problem
from certifit.checkers.model_selection.conformal import audit_conformal
from certifit.checkers.naive_bayes.adapter import (
    audit_bernoulli_nb,
    audit_categorical_nb,
    audit_complement_nb,
    audit_gaussian_nb,
    audit_multinomial_nb,
)
from certifit.checkers.naive_bayes.mixed_adapter import audit_naive_bayes
from certifit.checkers.neural_network.adapter import audit_perceptron
from certifit.checkers.neural_network.convolutional_adapter import audit_convolutional
from certifit.checkers.neural_network.onnx_network import audit_onnx_network
from certifit.checkers.problem import Problem, unshared_problem
from certifit.checkers.refusals import refusal
from certifit.checkers.svm.adapter import audit_one_class, audit_svc, audit_svr, machine_problem
from certifit.checkers.svm.hard_margin_adapter import audit_hard_margin
from certifit.checkers.svm.linear_machines.linear_adapter import (
    audit_linear_svc,
    audit_linear_svr,
    linear_machine_problem,
)
from certifit.checkers.tree.adapter import audit_tree
from certifit.checkers.tree.optimal import audit_best_tree
from certifit.checkers.tree.sums.adapter import audit_booster, audit_ebm
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError

Auditor = Callable[..., Certificate]  # (model, X, y, sample_weight, tol, **beside)


@dataclass(frozen=True)
class AuditedModel:
    """How models of one class name are audited."""

    auditor: Auditor
    attributes: tuple[str, ...]  # that a fitted one has
    problem: Callable[[Any], Problem] = unshared_problem  # equal for two models that minimise the same objective
    beside: tuple[str, ...] = ()  # further arguments that its auditor takes


def find_audited(model: Any, like: str | None = None) -> AuditedModel:
    """How this fitted model is audited; an error where it is not fitted or not known."""
    known = audited_models().get(like or type(model).__name__)
    # A subclass of ours may answer in its own way, whatever its name.
    odd = like is None and isinstance(model, Estimator) and type(model).__module__.partition(".")[0] != "certifit"
    if known is None or odd:
        raise refusal(model, like, tuple(audited_models()))
    missing = sorted(a for a in known.attributes if not _has(model, a))
    if missing:
        raise DataError(
            got=f"a {type(model).__name__} without {', '.join(missing)}",
            wanted="a fitted model",
            fix="Call fit first.",
        )
    return known


def _has(model: Any, name: str) -> bool:
    """Whether a model has an attribute; a property that fails on what it is derived from is there, and audited."""
    try:
        return hasattr(model, name)
    except Exception:
        return True


@cache
def audited_models() -> dict[str, AuditedModel]:
    """By class name, how models are audited. (coef_ alone does not tell which loss was minimised.)"""
    return {**_selectors_and_descriptions(), **_predictors(), **_weighted_votes_and_sums()}


def _selectors_and_descriptions() -> dict[str, AuditedModel]:
    """Models that choose columns, or describe the rows without a target."""
    filters = ("SelectFeatures", *FILTERS)
    clusters = AuditedModel(audit_clusters, ("cluster_centers_",), _cluster_problem, ("effort",))
    ppca = ("components_", "explained_variance_", "mean_", "noise_variance_")
    split = ("low_rank_", "sparse_", "components_", "singular_values_", "mean_")
    return {
        "ProbabilisticPCA": AuditedModel(audit_ppca, ppca, ppca_problem),
        "RobustPCA": AuditedModel(audit_robust_pca, split),
        "TrimmedPCA": AuditedModel(audit_trimmed_pca, TRIMMED),
        **dict.fromkeys(
            ("PCA", "IncrementalPCA"),
            AuditedModel(audit_pca, ("components_", "mean_", "explained_variance_"), pca_problem),
        ),
        "KernelPCA": AuditedModel(audit_kernel_pca, ("eigenvalues_", "eigenvectors_", "X_fit_")),
        "LocallyLinearEmbedding": AuditedModel(audit_lle, ("embedding_", "reconstruction_error_")),
        **dict.fromkeys(filters, AuditedModel(audit_filter, ("scores_",))),
        "VarianceThreshold": AuditedModel(audit_variances, ("variances_",)),
        **dict.fromkeys(
            ("SequentialSelector", "SequentialFeatureSelector"),
            AuditedModel(audit_sequential, ("support_",)),
        ),
        **dict.fromkeys(
            ("RecursiveElimination", "RFE", "RFECV"),
            AuditedModel(audit_elimination, ("support_", "ranking_")),
        ),
        "SelectFromModel": AuditedModel(audit_from_model, ("estimator_",)),
        "L1Selector": AuditedModel(audit_l1, ("coef_", "proved_zero_", "path_")),
        "TruncatedSVD": AuditedModel(audit_svd, ("components_", "singular_values_"), svd_problem),
        **dict.fromkeys(("KMeans", "MiniBatchKMeans", "BisectingKMeans"), clusters),
        "Kmeans": AuditedModel(audit_clusters, ("centroids",), _cluster_problem, ("effort",)),  # of faiss
        "GaussianMixture": AuditedModel(audit_gaussian_mixture, MIXTURE, gaussian_mixture_problem),
        "Mixture": AuditedModel(audit_mixture, ("weights_", "parameters_"), mixture_problem),
        "BayesianGaussianMixture": AuditedModel(audit_bayesian_mixture, (*MIXTURE, "mean_precision_")),
    }


def _weighted_votes_and_sums() -> dict[str, AuditedModel]:
    """AdaBoost, boosting with exact trees, additive models, and other libraries' sums of trees."""
    boosted = ("estimator_weights_", "estimator_errors_")
    terms = ("term_scores_", "bins_", "intercept_")
    return {
        "Booster": AuditedModel(audit_booster, ()),  # of LightGBM and of XGBoost
        **dict.fromkeys(("LGBMClassifier", "LGBMRegressor"), AuditedModel(audit_booster, ("booster_",))),
        **dict.fromkeys(("XGBClassifier", "XGBRegressor"), AuditedModel(audit_booster, ("n_features_in_",))),
        **dict.fromkeys(
            ("ExplainableBoostingClassifier", "ExplainableBoostingRegressor"), AuditedModel(audit_ebm, terms)
        ),
        **dict.fromkeys(
            ("GradientBoostingClassifier", "GradientBoostingRegressor"),
            AuditedModel(audit_gradient_boosting, ("estimators_", "train_score_")),
        ),
        **dict.fromkeys(("MLPClassifier", "MLPRegressor"), AuditedModel(audit_perceptron, ("coefs_", "intercepts_"))),
        "OnnxNetwork": AuditedModel(audit_onnx_network, ("layers", "output")),
        "ConvNetClassifier": AuditedModel(audit_convolutional, ("coefs_", "intercepts_", "layers_")),
        "AdaBoostClassifier": AuditedModel(audit_boosted_classifier, (*boosted, "classes_")),
        "AdaBoostRegressor": AuditedModel(audit_boosted_regressor, boosted),
        **dict.fromkeys(
            ("AdditiveClassifier", "AdditiveRegressor"),
            AuditedModel(audit_additive, ("shape_functions_", "intercept_", "alpha_")),
        ),
        **dict.fromkeys(
            ("ConformalRegressor", "ConformalClassifier"), AuditedModel(audit_conformal, ("scores_", "radius_"))
        ),
    }


def _predictors() -> dict[str, AuditedModel]:
    """Models that predict a target, and the features that machines are made from."""
    machine = ("support_", "support_vectors_", "dual_coef_", "intercept_")
    results = ("GLM", "Regression", "BinaryCount", "Binary", "Logit", "Probit", "Poisson")  # of statsmodels
    linear, classifier = ("coef_", "intercept_"), ("coef_", "intercept_", "classes_")
    counts = ("feature_log_prob_", "class_log_prior_")
    beside = ("offset", "exposure", "trials", "clusters")
    return {
        "LogisticRegression": AuditedModel(audit_logistic, classifier, logistic_problem),
        "LogisticRegressionCV": AuditedModel(audit_logistic_cv, classifier, logistic_problem),
        "RidgeClassifier": AuditedModel(audit_ridge_classifier, classifier, ridge_classifier_problem),
        "RidgeClassifierCV": AuditedModel(audit_ridge_classifier_cv, classifier, ridge_classifier_problem),
        "LinearDiscriminantAnalysis": AuditedModel(audit_linear_discriminants, (*classifier, "means_", "priors_")),
        "QuadraticDiscriminantAnalysis": AuditedModel(
            audit_quadratic_discriminants, ("means_", "priors_", "rotations_", "scalings_")
        ),
        "ApproximateSVC": AuditedModel(audit_approximate_svc, ("features_", *classifier)),
        "Nystroem": AuditedModel(audit_nystroem, ("components_", "component_indices_", "normalization_")),
        "RBFSampler": AuditedModel(audit_fourier, ("random_weights_", "random_offset_")),
        **dict.fromkeys(
            ("LinearSVC", "SGDClassifier"), AuditedModel(audit_linear_svc, classifier, linear_machine_problem)
        ),
        "LinearSVR": AuditedModel(audit_linear_svr, linear, linear_machine_problem),
        "HardMarginSVC": AuditedModel(audit_hard_margin, (*machine, "margin_")),
        "SVC": AuditedModel(audit_svc, machine, machine_problem),
        "SVR": AuditedModel(audit_svr, machine, machine_problem),
        "NuSVC": AuditedModel(audit_svc, machine, machine_problem),
        "NuSVR": AuditedModel(audit_svr, machine, machine_problem),
        "OneClassSVM": AuditedModel(audit_one_class, machine, machine_problem),
        **dict.fromkeys(("DecisionTreeClassifier", "DecisionTreeRegressor"), AuditedModel(audit_tree, ("tree_",))),
        **dict.fromkeys(
            ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
            AuditedModel(audit_boosting, ("is_categorical_",)),
        ),
        **dict.fromkeys(
            ("OptimalTreeClassifier", "OptimalTreeRegressor"), AuditedModel(audit_best_tree, ("tree_", "borders_"))
        ),
        **dict.fromkeys(
            ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
            AuditedModel(audit_forest, ("n_outputs_",)),
        ),
        **dict.fromkeys(("BaggingClassifier", "BaggingRegressor"), AuditedModel(audit_bag, ("estimators_",))),
        "GaussianNB": AuditedModel(audit_gaussian_nb, ("theta_", "var_", "class_prior_")),
        "BernoulliNB": AuditedModel(audit_bernoulli_nb, counts),
        "MultinomialNB": AuditedModel(audit_multinomial_nb, counts),
        "ComplementNB": AuditedModel(audit_complement_nb, counts),
        "CategoricalNB": AuditedModel(audit_categorical_nb, counts),
        "NaiveBayes": AuditedModel(audit_naive_bayes, ("parameters_", "class_prior_")),
        **{
            name: AuditedModel(
                partial(audit_linear, solved=name), linear, partial(linear_problem, solved=name), beside
            )
            for name in ("GeneralizedLinearRegressor", *CLAIMS)
        },
        "RidgeCV": AuditedModel(audit_ridge_cv, (*linear, "alpha_"), partial(linear_problem, solved="RidgeCV")),
        **{
            name: AuditedModel(
                partial(audit_elastic_net_cv, solved=name), (*linear, "alpha_"), partial(linear_problem, solved=name)
            )
            for name in ("LassoCV", "ElasticNetCV")
        },
        **{
            f"{name}Results{wrapper}": AuditedModel(
                audit_statsmodels, ("params", "model"), statsmodels_problem, beside
            )
            for wrapper in ("", "Wrapper")
            for name in results
        },
    }


def _cluster_problem(model: Any) -> Problem:
    return Problem(f"squared distances to {len(centres(model))} centres")
