"""scikit-learn's estimator of the same problem, tightly set, for an estimator with random settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import cluster, decomposition, kernel_approximation, linear_model, manifold, mixture, naive_bayes, svm
from sklearn.feature_selection import SelectKBest, f_classif

CLOSE = {"tol": 1e-12, "max_iter": 20_000}


def peer_logistic(own: Any) -> Any:
    p = own.get_params()
    if p["penalty"] == "firth":
        return None
    ratio = {"l1": 1.0, "elasticnet": p["l1_ratio"]}.get(p["penalty"], p["l1_ratio"])
    smooth = ratio == 0.0 or p["penalty"] is None
    solver = {"solver": "lbfgs", **CLOSE} if smooth else {"solver": "saga", "tol": 1e-8, "max_iter": 2000}
    C = np.inf if p["penalty"] is None else p["C"]
    return linear_model.LogisticRegression(
        C=C, l1_ratio=ratio, fit_intercept=p["fit_intercept"], class_weight=p["class_weight"], **solver
    )


def peer_line(own: Any) -> Any:
    p = own.get_params()
    if own.__class__.__name__ == "LinearRegression":
        return linear_model.LinearRegression(fit_intercept=p["fit_intercept"])
    if own.__class__.__name__ == "Ridge":
        return linear_model.Ridge(p["alpha"], fit_intercept=p["fit_intercept"])
    if own.__class__.__name__ == "Lasso":
        return linear_model.Lasso(p["alpha"], fit_intercept=p["fit_intercept"], **CLOSE)
    return linear_model.ElasticNet(p["alpha"], l1_ratio=p["l1_ratio"], fit_intercept=p["fit_intercept"], **CLOSE)


def peer_glm(own: Any) -> Any:
    p = own.get_params()
    kind = getattr(linear_model, type(own).__name__)
    power = {"power": p["power"]} if "power" in p else {}
    return kind(alpha=p["alpha"], fit_intercept=p["fit_intercept"], solver="newton-cholesky", **power, **CLOSE)


def peer_linear_svc(own: Any) -> Any:
    p = own.get_params()
    if p["loss"] == "huberised_hinge" or not (p["penalize_intercept"] or not p["fit_intercept"]):
        return None
    if p["multi_class"] != "ovr":
        return None
    return svm.LinearSVC(C=p["C"], loss=p["loss"], fit_intercept=p["fit_intercept"], class_weight=p["class_weight"],
                         tol=1e-8, max_iter=20_000, random_state=0)  # fmt: skip


def peer_linear_svr(own: Any) -> Any:
    p = own.get_params()
    if not (p["penalize_intercept"] or not p["fit_intercept"]):
        return None
    return svm.LinearSVR(C=p["C"], loss=p["loss"], fit_intercept=p["fit_intercept"], epsilon=p["epsilon"],
                         tol=1e-8, max_iter=20_000, random_state=0)  # fmt: skip


def peer_machine(own: Any) -> Any:
    p = own.get_params()
    if p.get("multi_class", "ovo") != "ovo":
        return None
    names = ["C", "kernel", "degree", "gamma", "coef0", *(["epsilon"] if "epsilon" in p else ["class_weight"])]
    return getattr(svm, type(own).__name__)(**{k: p[k] for k in names}, tol=1e-6, max_iter=100_000)


def peer_kmeans(own: Any) -> Any:
    return cluster.KMeans(own.n_clusters, n_init=3, random_state=0)


def peer_pca(own: Any) -> Any:
    return decomposition.PCA(own.n_components, svd_solver="full", whiten=own.whiten)


def peer_svd(own: Any) -> Any:
    return decomposition.TruncatedSVD(own.n_components, algorithm="arpack", random_state=0)


def peer_gaussians(own: Any) -> Any:
    if own.reg_covar == "auto":
        return None
    return mixture.GaussianMixture(own.n_components, covariance_type=own.covariance_type, reg_covar=own.reg_covar,
                                   tol=1e-9, max_iter=1000, random_state=0)  # fmt: skip


def peer_lle(own: Any) -> Any:
    p = own.get_params()
    return manifold.LocallyLinearEmbedding(eigen_solver="dense", **{
        k: p[k] for k in ("n_neighbors", "n_components", "reg", "method", "modified_tol")})  # fmt: skip


def peer_bayes(own: Any) -> Any:
    p = own.get_params()
    if p.get("variance") == "shared":
        return None
    names = [
        k for k in ("alpha", "var_smoothing", "binarize", "fit_prior", "norm", "priors", "class_prior") if k in p
    ]
    return getattr(naive_bayes, type(own).__name__)(**{k: p[k] for k in names})


def peer_features(own: Any) -> Any:
    return SelectKBest(f_classif, k=1) if own.score_func == "anova" else None


def peer_landmarks(own: Any) -> Any:
    return kernel_approximation.Nystroem(kernel=own.kernel, gamma=0.1, n_components=own.n_components, random_state=0)


def peer_waves(own: Any) -> Any:
    return kernel_approximation.RBFSampler(gamma="scale", n_components=own.n_components, random_state=0)
