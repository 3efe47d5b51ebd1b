"""Every estimator with random settings, and scikit-learn's estimator of the same problem where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

import certifit
from benchmarks.hunts import peers
from benchmarks.hunts.random_tables import decades, pick

Rng = np.random.Generator


@dataclass(frozen=True)
class RandomModel:
    """An estimator as a hunt draws it: its settings and the kind of target that it takes."""

    name: str
    kind: str  # of the target: see random_tables.random_target
    settings: Callable[[Rng, int, int], dict[str, Any]]  # of rng, rows and columns
    peer: Callable[[Any], Any] | None = None  # scikit-learn's tight estimator of the same problem
    small: dict[str, Any] | None = None  # settings without which a default fit is slow or impossible
    most_rows: int = 200

    def make(self, rng: Rng | None, n: int = 50, d: int = 3) -> Any:
        """Make it with random settings, or with its defaults where there is no rng."""
        if rng is None:
            return getattr(certifit, self.name)(**(self.small or {}))
        return getattr(certifit, self.name)(**{**(self.small or {}), **self.settings(rng, n, d)})

    @property
    def takes_weights(self) -> bool:
        return has_fit_parameter(self.make(None), "sample_weight")

    @property
    def takes_sparse(self) -> bool:
        return bool(getattr(certifit, self.name).sparse)


def tight(rng: Rng, low: float = -8, high: float = -2) -> dict[str, Any]:
    return {"tol": decades(rng, low, high)} if rng.random() < 0.5 else {}


def free(rng: Rng) -> dict[str, Any]:
    return {"fit_intercept": False} if rng.random() < 0.25 else {}


def components(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(1, min(n, d) + 1))}


def no_settings(_rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {}


def _pca(rng: Rng, n: int, d: int) -> dict[str, Any]:
    solver = pick(rng, "auto", "auto", "full", "covariance_eigh", "gram", "arpack", "randomized", "power")
    k = int(rng.integers(1, max(2, min(n, d)))) if solver == "arpack" else components(rng, n, d)["n_components"]
    return {"n_components": k, "svd_solver": solver, "whiten": bool(rng.random() < 0.3), "random_state": 0}


def _svd(rng: Rng, n: int, d: int) -> dict[str, Any]:
    algorithm = pick(rng, "auto", "full", "covariance_eigh", "gram", "arpack", "randomized", "power")
    k = int(rng.integers(1, max(2, min(n, d)))) if algorithm == "arpack" else components(rng, n, d)["n_components"]
    return {"n_components": k, "algorithm": algorithm, "random_state": 0}


def _ppca(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(1, max(2, d))), "solver": pick(rng, "auto", "closed", "em"),
            "random_state": 0, **tight(rng, -6, -3)}  # fmt: skip


def _robust(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"lam": decades(rng, -2, 0.3) if rng.random() < 0.7 else None, "center": bool(rng.random() < 0.7)}


def _trimmed(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(1, max(2, min(n // 2, d)))),
            "keep": float(pick(rng, 0.5, 0.75, 0.9, 1.0)), "random_state": 0}  # fmt: skip


def _lle(rng: Rng, n: int, _d: int) -> dict[str, Any]:
    method = pick(rng, "standard", "modified")
    k = int(rng.integers(1, 3))
    return {"n_neighbors": int(rng.integers(k + 2, max(k + 3, min(15, n)))), "n_components": k, "method": method,
            "reg": decades(rng, -6, -1), "disconnected": pick(rng, "error", "join"), "random_state": 0}  # fmt: skip


def _features(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    score = pick(rng, "variance", "anova", "binned_information", "jeffreys")
    return {"score_func": score, "k": pick(rng, 0.5, int(rng.integers(1, d + 1)))}


def _tally_features(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    return {"score_func": pick(rng, "chi2", "information"), "k": int(rng.integers(1, d + 1))}


def _number_features(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    return {"score_func": pick(rng, "correlation", "regression_information"), "k": int(rng.integers(1, d + 1))}


def _kmeans(rng: Rng, n: int, _d: int) -> dict[str, Any]:
    return {"n_clusters": int(rng.integers(1, max(2, min(n // 2, 6)))), "init": pick(rng, "k-means++", "random"),
            "random_state": 0, **tight(rng)}  # fmt: skip


def _gaussians(rng: Rng, n: int, _d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(1, max(2, min(n // 5, 4)))), "random_state": 0,
            "covariance_type": pick(rng, "full", "tied", "diag", "spherical"),
            "reg_covar": pick(rng, "auto", "auto", 1e-6, 1e-3)}  # fmt: skip


def _mixture(rng: Rng, n: int, _d: int) -> dict[str, Any]:
    return {"family": pick(rng, "poisson", "geometric", "gaussian"), "random_state": 0, "tol": 1e-5,
            "n_components": int(rng.integers(1, max(2, min(n // 5, 4))))}  # fmt: skip


def _logistic(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    penalty = pick(rng, "l2", "l2", "l2", "l1", "elasticnet", None)
    out: dict[str, Any] = {"penalty": penalty, **tight(rng), **free(rng)}
    if penalty is not None:
        out["C"] = decades(rng, -6, 6)
    if penalty == "elasticnet":
        out["l1_ratio"] = float(pick(rng, 0.1, 0.5, 0.9))
    if rng.random() < 0.2:
        out["class_weight"] = "balanced"
    if rng.random() < 0.2 and penalty == "l2":
        out["solver"] = pick(rng, "lbfgs", "newton-cholesky")
    return out


def _firth(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"penalty": "firth", **free(rng)}


def _penalised(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"alpha": decades(rng, -6, 6), **tight(rng), **free(rng)}


def _elastic(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_penalised(rng, n, d), "l1_ratio": float(pick(rng, 0.01, 0.1, 0.5, 0.9, 1.0))}


def _plain_line(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {**free(rng), "covariance": pick(rng, "classical", "sandwich", None)}


def _tweedie(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_penalised(rng, n, d), "power": float(pick(rng, 1.0, 1.2, 1.5, 1.9, 2.0, 3.0))}


def _glm(family: str, *links: str) -> Callable[[Rng, int, int], dict[str, Any]]:
    def settings(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
        alpha = 0.0 if rng.random() < 0.5 else decades(rng, -6, 3)
        ratio = {"l1_ratio": 0.5} if alpha and rng.random() < 0.3 else {}
        return {
            "family": family,
            "link": pick(rng, "auto", *links),
            "alpha": alpha,
            **ratio,
            **tight(rng),
            **free(rng),
        }

    return settings


def _linear_svc(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    scheme = pick(rng, "ovr", "ovr", "ovr", "weston-watkins", "crammer-singer")
    return {"C": decades(rng, -6, 6), "loss": pick(rng, "hinge", "squared_hinge", "huberised_hinge"),
            "multi_class": scheme, "penalize_intercept": bool(rng.random() < 0.3), **free(rng), **tight(rng, -7, -2),
            "class_weight": pick(rng, None, None, "balanced")}  # fmt: skip


def _linear_svr(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"C": decades(rng, -6, 6), "loss": pick(rng, "epsilon_insensitive", "squared_epsilon_insensitive"),
            "epsilon": pick(rng, 0.0, decades(rng, -3, 1)), "penalize_intercept": bool(rng.random() < 0.3),
            **free(rng), **tight(rng, -7, -2)}  # fmt: skip


def _kernel(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    kernel = pick(rng, "rbf", "rbf", "linear", "poly")
    gamma = pick(rng, "scale", "scale", "auto")
    more = {"degree": int(rng.integers(1, 4)), "coef0": float(pick(rng, 0.0, 1.0))} if kernel == "poly" else {}
    return {"kernel": kernel, "gamma": gamma, **more}


def _svc(rng: Rng, n: int, d: int) -> dict[str, Any]:
    C, scheme = decades(rng, -4, 4), pick(rng, "ovo", "ovo", "ovr", "weston-watkins", "crammer-singer")
    return {"C": C, "multi_class": scheme, **_kernel(rng, n, d), **tight(rng, -8, -3),
            "class_weight": pick(rng, None, None, "balanced")}  # fmt: skip


def _svr(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {"C": decades(rng, -4, 4), "epsilon": decades(rng, -3, 0), **_kernel(rng, n, d), **tight(rng, -8, -3)}


def _hard(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_kernel(rng, n, d), "ridge": pick(rng, 0.0, "auto", decades(rng, -3, 1))}


def _approximate(rng: Rng, n: int, _d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(2, max(3, min(n, 20)))), "C": decades(rng, -3, 3), "random_state": 0,
            "features": pick(rng, "nystroem", "fourier"), "loss": pick(rng, "hinge", "squared_hinge")}  # fmt: skip


def _landmarks(rng: Rng, n: int, _d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(1, max(2, min(n, 20)))), "random_state": 0,
            "landmarks": pick(rng, "auto", "rpcholesky", "uniform")}  # fmt: skip


def _waves(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(2, 60)), "random_state": 0}


def _pseudo(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"alpha": decades(rng, -3, 2), "fit_prior": bool(rng.random() < 0.8)}


def _gaussian_nb(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"var_smoothing": decades(rng, -12, -1), "variance": pick(rng, "separate", "separate", "shared")}


def _mixed_nb(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"family": pick(rng, "gaussian", "poisson"), "alpha": decades(rng, -2, 1)}


def _path(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"criterion": pick(rng, "bic", "ebic"), "alphas": 5, "l1_ratio": float(pick(rng, 0.5, 1.0)), **free(rng)}


def _discriminant(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    solver = pick(rng, "svd", "lsqr", "eigen")
    shrinkage = None if solver == "svd" else pick(rng, None, "auto", float(rng.random()))
    return {"solver": solver, "shrinkage": shrinkage, "store_covariance": bool(rng.random() < 0.3)}


def _kernel_pca(rng: Rng, n: int, d: int) -> dict[str, Any]:
    kernel = pick(rng, "linear", "rbf", "poly", "cosine")
    return {"n_components": int(rng.integers(1, min(n, d) + 1)), "kernel": kernel, "alpha": decades(rng, -6, 1),
            "gamma": pick(rng, None, decades(rng, -3, 1)),
            "fit_inverse_transform": bool(rng.random() < 0.3)}  # fmt: skip


def _ridge_classifier(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_penalised(rng, n, d), "class_weight": pick(rng, None, None, "balanced"),
            **({"positive": True} if rng.random() < 0.3 else {})}  # fmt: skip


def _chosen_ridge(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"alphas": [decades(rng, -6, 6) for _ in range(3)], "cv": pick(rng, None, None, 3), **free(rng)}


def _chosen_lasso(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"alphas": 6, "cv": 3, "positive": bool(rng.random() < 0.3), **free(rng)}


def _chosen_elastic(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_chosen_lasso(rng, n, d), "l1_ratio": [0.2, 0.9]}


def _perceptron(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"hidden_layer_sizes": (int(rng.integers(1, 9)),) * int(rng.integers(1, 3)), "max_iter": 8,
            "activation": pick(rng, "relu", "tanh", "logistic", "gelu"), "alpha": decades(rng, -6, 2),
            "solver": pick(rng, "adam", "adamw", "sgd"), "learning_rate_init": decades(rng, -5, -3),
            "random_state": 0}  # fmt: skip


def _convolutional(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"layers": [("conv", int(rng.integers(1, 5)), 1), pick(rng, "relu", "tanh"), ("dense", 3)],
            "max_iter": 4, "alpha": decades(rng, -6, 1), "solver": pick(rng, "adam", "sgd"),
            "learning_rate_init": decades(rng, -5, -3), "random_state": 0}  # fmt: skip


def _regularised(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"reg_param": decades(rng, -3, 0)}


def _positive(settings: Callable[[Rng, int, int], dict[str, Any]]) -> Callable[[Rng, int, int], dict[str, Any]]:
    return lambda rng, n, d: {**settings(rng, n, d), "positive": True}


def _positive_line(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {**free(rng), "positive": True}


def _threshold(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"threshold": pick(rng, 0.0, decades(rng, -6, 3))}


def _best(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    return {"k": pick(rng, "all", int(rng.integers(1, d + 1)))}


def _percentile(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"percentile": int(rng.integers(1, 101))}


def _level(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"alpha": decades(rng, -6, -0.01)}


def _any_mode(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    mode = pick(rng, "percentile", "k_best", "fpr", "fdr", "fwe")
    ends = {"percentile": int(rng.integers(1, 101)), "k_best": int(rng.integers(1, d + 1))}
    return {"mode": mode, "param": ends.get(mode, decades(rng, -6, -0.01))}


def _nu_svc(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {"nu": float(rng.uniform(0.05, 0.6)), **_kernel(rng, n, d), **tight(rng, -8, -3)}


def _nu_svr(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_nu_svc(rng, n, d), "C": decades(rng, -4, 4)}


def _boosted(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {
        "n_estimators": int(rng.integers(1, 12)),
        "learning_rate": float(rng.choice([0.3, 1.0])),
        "max_bins": [None, 8][int(rng.integers(2))],
    }


def _boosted_amounts(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {
        "n_estimators": int(rng.integers(1, 6)),
        "loss": str(rng.choice(["linear", "square", "exponential"])),
        "random_state": 0,
    }


def _additive(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"alpha": float(rng.choice([0.01, 0.1, 1.0])), "max_bins": int(rng.choice([4, 255])),
            "interactions": pick(rng, 0, 0, 1)}  # fmt: skip


def _additive_counts(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_additive(rng, n, d), "loss": "poisson"}


def _tree(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    return {"max_depth": pick(rng, None, int(rng.integers(1, 5))), "min_samples_leaf": int(rng.integers(1, 4)),
            "ccp_alpha": pick(rng, 0.0, decades(rng, -4, 0)), "random_state": 0,
            "splitter": pick(rng, "best", "best", "random"),
            "categorical_features": pick(rng, None, None, [int(rng.integers(0, d))])}  # fmt: skip


def _tree_of_amounts(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_tree(rng, n, d), "criterion": pick(rng, "squared_error", "absolute_error")}


def _tree_of_bins(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_tree(rng, n, d), "categorical_features": None, "max_bins": pick(rng, 4, 255)}


def _best_tree(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"max_depth": int(rng.integers(1, 4)), "max_bins": int(rng.integers(2, 9)), "time_limit": 0.0}


def _forest(rng: Rng, n: int, d: int) -> dict[str, Any]:
    rows = bool(rng.integers(2))
    tree = _tree(rng, n, d)
    return {**{name: tree[name] for name in ("max_depth", "min_samples_leaf", "ccp_alpha", "random_state")},
            "n_estimators": int(rng.integers(1, 6)), "bootstrap": rows,
            "max_features": pick(rng, None, "sqrt", 1), "oob_score": rows and bool(rng.integers(2))}  # fmt: skip


def _bag(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    rows = bool(rng.integers(2))
    return {"n_estimators": int(rng.integers(1, 5)), "bootstrap": rows, "max_features": pick(rng, 1.0, 0.5),
            "oob_score": rows and bool(rng.integers(2)), "random_state": 0}  # fmt: skip


def _boosting(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"max_iter": int(rng.integers(1, 8)), "max_leaf_nodes": pick(rng, 2, 4, 31), "random_state": 0,
            "min_samples_leaf": int(rng.integers(1, 10)), "learning_rate": pick(rng, 0.05, 0.3),
            "l2_regularization": pick(rng, 0.0, decades(rng, -3, 1))}  # fmt: skip


def _boosting_of_amounts(rng: Rng, n: int, d: int) -> dict[str, Any]:
    return {**_boosting(rng, n, d), "loss": pick(rng, "squared_error", "absolute_error", "huber")}


def _exact_boosting(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"n_estimators": int(rng.integers(1, 6)), "max_depth": int(rng.integers(1, 4)), "random_state": 0,
            "learning_rate": pick(rng, 0.05, 0.3), "subsample": pick(rng, 1.0, 0.6)}  # fmt: skip


def _dirichlet(rng: Rng, n: int, _d: int) -> dict[str, Any]:
    return {"n_components": int(rng.integers(1, max(2, min(n // 5, 4)))), "random_state": 0,
            "covariance_type": pick(rng, "full", "tied", "diag", "spherical"),
            "weight_concentration_prior_type": pick(rng, "dirichlet_process", "dirichlet_distribution")}  # fmt: skip


# ------------------------------------------------------------------------------------------ models of other models
def _eliminated(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    return {"n_features_to_select": int(rng.integers(1, d + 1)), "step": pick(rng, 1, 2)}


def _eliminated_line(rng: Rng, n: int, d: int) -> dict[str, Any]:
    line = pick(rng, certifit.Ridge(), certifit.Lasso(0.1), certifit.LinearRegression(), certifit.LinearSVR())
    return {**_eliminated(rng, n, d), "estimator": line}


def _searched(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"direction": pick(rng, "forward", "backward"), "tol": pick(rng, None, 1e-3)}


def _importances(rng: Rng, _n: int, d: int) -> dict[str, Any]:
    model = pick(rng, certifit.Lasso(0.1), certifit.LinearRegression(),
                 certifit.DecisionTreeRegressor(max_depth=2, random_state=0))  # fmt: skip
    return {"estimator": model, "threshold": pick(rng, None, "mean", "0.5*median", -np.inf),
            "max_features": pick(rng, None, int(rng.integers(1, d + 1)))}  # fmt: skip


def _class_importances(rng: Rng, n: int, d: int) -> dict[str, Any]:
    model = pick(rng, certifit.LogisticRegression(), certifit.LinearSVC(penalty="l1"),
                 certifit.RandomForestClassifier(3, max_depth=3, random_state=0))  # fmt: skip
    return {**_importances(rng, n, d), "estimator": model}


def _table_of_classes(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"C": decades(rng, -3, 3), "class_weight": pick(rng, None, "balanced")}


def _table_of_amounts(rng: Rng, _n: int, _d: int) -> dict[str, Any]:
    return {"alpha": pick(rng, 0.0, decades(rng, -3, 3))}


MODELS = (
    RandomModel("PCA", "none", _pca, peers.peer_pca),
    RandomModel("IncrementalPCA", "none", components),
    RandomModel("TruncatedSVD", "none", _svd, peers.peer_svd, {"n_components": 1}),
    RandomModel("ProbabilisticPCA", "none", _ppca),
    RandomModel("RobustPCA", "none", _robust, most_rows=40),
    RandomModel("TrimmedPCA", "none", _trimmed, None, {"n_components": 1, "random_state": 0}),
    RandomModel("LocallyLinearEmbedding", "none", _lle, peers.peer_lle, {"n_neighbors": 3, "n_components": 1}),
    RandomModel("SelectFeatures", "classes", _features, peers.peer_features),
    RandomModel("SelectFeatures", "tallies", _tally_features, None, {"score_func": "chi2"}),
    RandomModel("SelectFeatures", "numbers", _number_features, None, {"score_func": "correlation"}),
    RandomModel("KMeans", "none", _kmeans, peers.peer_kmeans, {"n_clusters": 2, "random_state": 0}, 80),
    RandomModel("GaussianMixture", "none", _gaussians, peers.peer_gaussians, {"random_state": 0}, 100),
    RandomModel("Mixture", "tallies alone", _mixture, None, {"family": "poisson", "random_state": 0}, 100),
    RandomModel("LogisticRegression", "two", _logistic, peers.peer_logistic),
    RandomModel("LogisticRegression", "classes", _logistic, peers.peer_logistic, most_rows=100),
    RandomModel("LogisticRegression", "two", _firth, None, {"penalty": "firth"}),
    RandomModel("LinearRegression", "numbers", _plain_line, peers.peer_line),
    RandomModel("Ridge", "numbers", _penalised, peers.peer_line),
    RandomModel("Lasso", "numbers", _penalised, peers.peer_line),
    RandomModel("ElasticNet", "numbers", _elastic, peers.peer_line),
    RandomModel("PoissonRegressor", "counts", _penalised, peers.peer_glm),
    RandomModel("GammaRegressor", "positive", _penalised, peers.peer_glm),
    RandomModel("TweedieRegressor", "positive", _tweedie, peers.peer_glm, {"power": 1.5}),
    RandomModel("GeneralizedLinearRegressor", "counts", _glm("poisson", "log", "identity"), None,
                {"family": "poisson"}),
    RandomModel("GeneralizedLinearRegressor", "shares", _glm("binomial", "logit", "probit", "cloglog"), None,
                {"family": "binomial"}),
    RandomModel("GeneralizedLinearRegressor", "positive", _glm("gamma", "log", "inverse"), None, {"family": "gamma"}),
    RandomModel("GeneralizedLinearRegressor", "positive", _glm("inverse_gaussian", "log", "inverse_squared"), None,
                {"family": "inverse_gaussian"}),
    RandomModel("GeneralizedLinearRegressor", "counts", _glm("negative_binomial", "log"), None,
                {"family": "negative_binomial"}),
    RandomModel("GeneralizedLinearRegressor", "numbers", _glm("gaussian", "identity"), None, {"family": "gaussian"}),
    RandomModel("LinearSVC", "two", _linear_svc, peers.peer_linear_svc),
    RandomModel("LinearSVC", "classes", _linear_svc, peers.peer_linear_svc, most_rows=100),
    RandomModel("LinearSVR", "numbers", _linear_svr, peers.peer_linear_svr),
    RandomModel("SVC", "two", _svc, peers.peer_machine, most_rows=80),
    RandomModel("SVC", "classes", _svc, peers.peer_machine, most_rows=60),
    RandomModel("SVR", "numbers", _svr, peers.peer_machine, most_rows=80),
    RandomModel("HardMarginSVC", "two", _hard, most_rows=60),
    RandomModel("Nystroem", "none", _landmarks, peers.peer_landmarks, {"n_components": 2, "random_state": 0}),
    RandomModel("RBFSampler", "none", _waves, peers.peer_waves, {"n_components": 20, "random_state": 0}),
    RandomModel("ApproximateSVC", "two", _approximate, None, {"n_components": 2, "random_state": 0}),
    RandomModel("GaussianNB", "classes", _gaussian_nb, peers.peer_bayes),
    RandomModel("BernoulliNB", "classes", _pseudo, peers.peer_bayes),
    RandomModel("MultinomialNB", "tallies", _pseudo, peers.peer_bayes),
    RandomModel("ComplementNB", "tallies", _pseudo, peers.peer_bayes),
    RandomModel("CategoricalNB", "tallies", _pseudo, peers.peer_bayes),
    RandomModel("NaiveBayes", "tallies", _mixed_nb),
    RandomModel("ConvNetClassifier", "classes", _convolutional, None, {"max_iter": 3, "random_state": 0}, 60),
    RandomModel("MLPClassifier", "classes", _perceptron, None, {"max_iter": 3, "random_state": 0}),
    RandomModel("MLPRegressor", "numbers", _perceptron, None, {"max_iter": 3, "random_state": 0}),
    RandomModel("L1Selector", "two", _path, None, {"alphas": 5}, 60),
    RandomModel("L1Selector", "numbers", _path, None, {"alphas": 5, "loss": "squared"}, 60),
    RandomModel("LinearDiscriminantAnalysis", "classes", _discriminant),
    RandomModel("QuadraticDiscriminantAnalysis", "classes", _regularised, None, {"reg_param": 0.1}),
    RandomModel("KernelPCA", "none", _kernel_pca, None, {"n_components": 1}, 60),
    RandomModel("RidgeClassifier", "classes", _ridge_classifier),
    RandomModel("RidgeCV", "numbers", _chosen_ridge, None, {"cv": 3}),
    RandomModel("RidgeClassifierCV", "classes", lambda rng, n, d: {**_chosen_ridge(rng, n, d), "cv": None}),
    RandomModel("LogisticRegressionCV", "classes", lambda rng, n, d: free(rng), None, {"Cs": 2, "cv": 2}, 60),
    RandomModel("LassoCV", "numbers", _chosen_lasso, None, {"alphas": 3, "cv": 3}, 60),
    RandomModel("ElasticNetCV", "numbers", _chosen_elastic, None, {"alphas": 3, "cv": 3}, 60),
    RandomModel("LinearRegression", "numbers", _positive_line, None, {"positive": True}),
    RandomModel("Ridge", "numbers", _positive(_penalised), None, {"positive": True}),
    RandomModel("Lasso", "numbers", _positive(_penalised), None, {"positive": True}),
    RandomModel("ElasticNet", "numbers", _positive(_elastic), None, {"positive": True}),
    RandomModel("VarianceThreshold", "none", _threshold),
    RandomModel("SelectKBest", "classes", _best, None, {"k": 1}),
    RandomModel("SelectPercentile", "classes", _percentile),
    RandomModel("SelectFpr", "classes", _level),
    RandomModel("SelectFdr", "classes", _level),
    RandomModel("SelectFwe", "classes", _level),
    RandomModel("GenericUnivariateSelect", "classes", _any_mode),
    RandomModel("NuSVC", "two", _nu_svc, None, {"nu": 0.2}, 60),
    RandomModel("NuSVR", "numbers", _nu_svr, None, None, 60),
    RandomModel("OneClassSVM", "none", _nu_svc, None, None, 60),
    RandomModel("DecisionTreeClassifier", "classes", _tree, None, {"random_state": 0}, 100),
    RandomModel("DecisionTreeRegressor", "numbers", _tree_of_amounts, None, {"random_state": 0}, 100),
    RandomModel("DecisionTreeClassifier", "classes", _tree_of_bins, None, {"random_state": 0, "max_bins": 8}, 100),
    RandomModel("DecisionTreeRegressor", "numbers", _tree_of_bins, None, {"random_state": 0, "max_bins": 8}, 100),
    RandomModel("OptimalTreeClassifier", "classes", _best_tree, None, {"time_limit": 0.0}, 60),
    RandomModel("OptimalTreeRegressor", "numbers", _best_tree, None, {"time_limit": 0.0}, 60),
    RandomModel("AdaBoostClassifier", "classes", _boosted, None, {"n_estimators": 5}, 100),
    RandomModel("AdaBoostClassifier", "two", _boosted, None, {"n_estimators": 5}, 100),
    RandomModel("AdaBoostRegressor", "numbers", _boosted_amounts, None, {"n_estimators": 3}, 80),
    *(
        RandomModel(name, "classes", _forest, None, {"n_estimators": 3, "random_state": 0}, 100)
        for name in ("RandomForestClassifier", "ExtraTreesClassifier")
    ),
    *(
        RandomModel(name, "numbers", _forest, None, {"n_estimators": 3, "random_state": 0}, 100)
        for name in ("RandomForestRegressor", "ExtraTreesRegressor")
    ),
    RandomModel("BaggingClassifier", "classes", _bag, None, {"n_estimators": 3, "random_state": 0}, 60),
    RandomModel("BaggingRegressor", "numbers", _bag, None, {"n_estimators": 3, "random_state": 0}, 60),
    RandomModel("GradientBoostingClassifier", "classes", _exact_boosting, None, {"n_estimators": 3}, 60),
    RandomModel("GradientBoostingRegressor", "numbers", _exact_boosting, None, {"n_estimators": 3}, 60),
    RandomModel("HistGradientBoostingClassifier", "classes", _boosting, None, {"random_state": 0}, 100),
    RandomModel("HistGradientBoostingRegressor", "numbers", _boosting_of_amounts, None, {"random_state": 0}, 100),
    RandomModel("AdditiveClassifier", "two", _additive, None, {"alpha": 0.1}, 100),
    RandomModel("AdditiveClassifier", "classes", _additive, None, {"alpha": 0.1}, 100),
    RandomModel("AdditiveRegressor", "numbers", _additive, None, {"alpha": 0.1}, 100),
    RandomModel("AdditiveRegressor", "counts", _additive_counts, None, {"alpha": 0.1, "loss": "poisson"}, 100),
    RandomModel("BayesianGaussianMixture", "none", _dirichlet, None, {"random_state": 0}, 100),
    RandomModel("MiniBatchKMeans", "none", _kmeans, None, {"n_clusters": 2, "random_state": 0}, 80),
    RandomModel("RFE", "numbers", _eliminated_line, None, {"estimator": certifit.Ridge()}, 60),
    RandomModel("RFECV", "classes", no_settings, None, {"estimator": certifit.RidgeClassifier(), "cv": 2}, 60),
    RandomModel("RecursiveElimination", "classes", _eliminated, None, {"estimator": certifit.LinearSVC()}, 60),
    RandomModel("SequentialSelector", "classes", no_settings, None,
                {"estimator": certifit.GaussianNB(), "cv": 2}, 60),
    RandomModel("SequentialFeatureSelector", "numbers", _searched, None,
                {"estimator": certifit.Ridge(), "cv": 3}, 60),
    RandomModel("SelectFromModel", "numbers", _importances, None, {"estimator": certifit.Lasso(0.1)}, 60),
    RandomModel("SelectFromModel", "classes", _class_importances, None,
                {"estimator": certifit.LogisticRegression()}, 60),
    RandomModel("TableClassifier", "classes", _table_of_classes, None, None, 60),
    RandomModel("TableRegressor", "numbers", _table_of_amounts, None, None, 60),
)  # fmt: skip


def random_model(rng: Rng, only: tuple[str, ...] = ()) -> RandomModel:
    """One of them, each as likely."""
    choices = [m for m in MODELS if not only or m.name in only]
    return choices[int(rng.integers(len(choices)))]
