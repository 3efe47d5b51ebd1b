"""From a fitted object to the checker that knows its problem: what it claims to have minimised, and its parameters.

A model is recognised by the name of its class or of a base class, so that look-alikes (another library's
`LogisticRegression`, a subclass of `KMeans`) work without being imported here, and else by its fitted attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.cluster.adapter import audit_clusters, centres
from certifit.checkers.decomposition.adapter import audit_pca, audit_ppca, audit_svd
from certifit.checkers.decomposition.robust_adapter import TRIMMED, audit_robust_pca, audit_trimmed_pca
from certifit.checkers.feature_selection.adapter import audit_elimination, audit_filter, audit_l1, audit_sequential
from certifit.checkers.kernel_approximation.adapter import audit_approximate_svc, audit_fourier, audit_nystroem
from certifit.checkers.linear_model.adapter import CLAIMS, audit_linear, audit_statsmodels, linear_claim
from certifit.checkers.linear_model.logistic_adapter import audit_logistic, logistic_settings
from certifit.checkers.manifold.adapter import audit_lle
from certifit.checkers.mixture.adapter import MIXTURE, audit_gaussian_mixture, refuse_bayesian_mixture
from certifit.checkers.mixture.families_adapter import audit_mixture
from certifit.checkers.naive_bayes.adapter import (
    audit_bernoulli_nb,
    audit_categorical_nb,
    audit_complement_nb,
    audit_gaussian_nb,
    audit_multinomial_nb,
)
from certifit.checkers.naive_bayes.mixed_adapter import audit_naive_bayes
from certifit.checkers.svm.adapter import audit_svc, audit_svr, machine_problem
from certifit.checkers.svm.hard_margin_adapter import audit_hard_margin
from certifit.checkers.svm.linear_adapter import audit_linear_svc, audit_linear_svr
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError

FOREIGN_TOL = 1e-4  # relative gap asked of other libraries' models, whose own `tol` means something else

Auditor = Callable[..., Certificate]  # (model, X, y, sample_weight, tol, **beside)


def audit(
    model: Any, X: Any = None, y: Any = None, sample_weight: Any = None, *, tol: float | None = None, **beside: Any
) -> Certificate:
    """Recompute a fitted model's certificate from the data. The checker uses no code of the solver.

    Parameters
    ----------
    model : fitted certifit or scikit-learn PCA, TruncatedSVD, LocallyLinearEmbedding, KMeans (also MiniBatchKMeans,
        BisectingKMeans and faiss.Kmeans), GaussianMixture, Mixture, LogisticRegression, naive Bayes, linear or
        generalised linear model, support vector machine, Nystroem, RBFSampler, SelectKBest, anything with the same
        fitted attributes, a Pipeline that ends in one, a TableClassifier, or results of a statsmodels GLM, OLS,
        Logit, Probit or Poisson fit (these carry their data: X and y may be left out)
    X, y, sample_weight : the data it was fitted on, in any form that `fit` takes
    tol : relative gap to ask for; by default the model's own for certifit models, 1e-4 for others
    **beside : offset, exposure or trials of a generalised linear model that was fitted with them; effort of a
        clustering's lower bound (1 by default; 10 takes up to a thousand times as long and proves more)

    Returns
    -------
    Certificate : what is proved; `holds` says whether it is enough
    """
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        for _, step in model.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return audit(model.steps[-1][1], X, y, sample_weight, tol=tol, **beside)
    if hasattr(model, "encode_labelled"):
        return audit(model.model_, model.encode_labelled(X, y, sample_weight), tol=tol)
    auditor = _auditor(model)
    if tol is None:
        tol = float(getattr(model, "tol", FOREIGN_TOL)) if isinstance(model, Estimator) else FOREIGN_TOL
    return auditor(model, X, y, sample_weight, tol, **beside)


def _auditor(model: Any) -> Auditor:
    names = {base.__name__ for base in type(model).__mro__}
    for name, (auditor, attributes) in _AUDITORS.items():
        has = [a for a in attributes if hasattr(model, a)]
        if name in names and len(has) < len(attributes):
            missing = ", ".join(sorted(set(attributes) - set(has)))
            raise DataError(
                got=f"a {type(model).__name__} without {missing}", wanted="a fitted model", fix="Call fit first."
            )
        if name in names:
            return auditor
    for name, (auditor, attributes) in _AUDITORS.items():
        if name not in _ALIKE or hasattr(model, "nu"):  # NuSVC and its like solve another problem
            continue
        if all(hasattr(model, a) for a in (*attributes, *_ALIKE[name])):
            return auditor
    raise DataError(
        got=f"a {type(model).__name__}",
        wanted=f"a fitted {', '.join(_AUDITORS)}, or something with all attributes of a {', '.join(_ALIKE)}",
    )


def problem(model: Any) -> tuple[str, ...]:
    """What a model minimises: equal for two models if a bound proved for one on the same data holds for the other."""
    auditor = _auditor(model)
    if auditor is audit_logistic:
        return "logistic", str(np.shape(model.coef_)), *map(repr, logistic_settings(model))
    if auditor in (audit_svc, audit_svr):
        return machine_problem(model)
    if auditor is audit_linear:
        return "linear", *map(repr, linear_claim(model))
    if auditor not in (audit_pca, audit_clusters):
        return (str(id(model)),)
    size = model.components_ if auditor is audit_pca else centres(model)
    return auditor.__name__, str(np.shape(size))


FILTERS = ("SelectFeatures", "SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe")
MACHINE = ("support_", "support_vectors_", "dual_coef_", "intercept_")
STATSMODELS = ("GLM", "Regression", "BinaryCount", "Binary", "Logit", "Probit", "Poisson")
_COUNTS = ("feature_log_prob_", "class_log_prior_")
_AUDITORS: dict[str, tuple[Auditor, tuple[str, ...]]] = {
    "ProbabilisticPCA": (audit_ppca, ("components_", "explained_variance_", "mean_", "noise_variance_")),
    "RobustPCA": (audit_robust_pca, ("low_rank_", "sparse_", "components_", "singular_values_", "mean_")),
    "TrimmedPCA": (audit_trimmed_pca, TRIMMED),
    "PCA": (audit_pca, ("components_", "mean_", "explained_variance_")),
    "LocallyLinearEmbedding": (audit_lle, ("embedding_", "reconstruction_error_")),
    **dict.fromkeys(FILTERS, (audit_filter, ("scores_",))),
    "SequentialSelector": (audit_sequential, ("support_", "path_", "candidate_scores_")),
    "RecursiveElimination": (audit_elimination, ("support_", "ranking_", "importances_")),
    "L1Selector": (audit_l1, ("coef_", "proved_zero_", "path_")),
    "TruncatedSVD": (audit_svd, ("components_", "singular_values_")),
    **dict.fromkeys(("KMeans", "MiniBatchKMeans", "BisectingKMeans"), (audit_clusters, ("cluster_centers_",))),
    "Kmeans": (audit_clusters, ("centroids",)),  # of faiss
    "GaussianMixture": (audit_gaussian_mixture, MIXTURE),
    "Mixture": (audit_mixture, ("weights_", "parameters_")),
    "BayesianGaussianMixture": (refuse_bayesian_mixture, MIXTURE),
    "LogisticRegression": (audit_logistic, ("coef_", "intercept_", "classes_")),
    "ApproximateSVC": (audit_approximate_svc, ("features_", "coef_", "intercept_", "classes_")),
    "Nystroem": (audit_nystroem, ("components_", "component_indices_", "normalization_")),
    "RBFSampler": (audit_fourier, ("random_weights_", "random_offset_")),
    **dict.fromkeys(("LinearSVC", "SGDClassifier"), (audit_linear_svc, ("coef_", "intercept_", "classes_"))),
    "LinearSVR": (audit_linear_svr, ("coef_", "intercept_")),
    "HardMarginSVC": (audit_hard_margin, (*MACHINE, "margin_")),
    "SVC": (audit_svc, MACHINE),
    "SVR": (audit_svr, MACHINE),
    "GaussianNB": (audit_gaussian_nb, ("theta_", "var_", "class_prior_")),
    "BernoulliNB": (audit_bernoulli_nb, _COUNTS),
    "MultinomialNB": (audit_multinomial_nb, _COUNTS),
    "ComplementNB": (audit_complement_nb, _COUNTS),
    "CategoricalNB": (audit_categorical_nb, _COUNTS),
    "NaiveBayes": (audit_naive_bayes, ("parameters_", "class_prior_")),
    **dict.fromkeys(("GeneralizedLinearRegressor", *CLAIMS), (audit_linear, ("coef_", "intercept_"))),
    **{f"{name}Results": (audit_statsmodels, ("params", "model")) for name in STATSMODELS},
    **{f"{name}ResultsWrapper": (audit_statsmodels, ("params", "model")) for name in STATSMODELS},
}
# Others are known by their attributes, with these besides. (coef_ alone does not tell which loss was minimised.)
_ALIKE: dict[str, tuple[str, ...]] = {
    "PCA": (),
    "KMeans": (),
    "SVC": ("C", "kernel", "classes_"),
    "SVR": ("C", "kernel", "epsilon"),
}
