"""Statistical learning in which every fit carries a proof of how good it is.

>>> from certifit import PCA
>>> PCA(n_components=1).fit([[1.0, 2.0], [3.0, 5.0], [5.0, 9.0]]).certificate_.holds
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Public names are flat and lazy: `import certifit` loads nothing, the first use of a name loads its module.
_HOME = {
    "PCA": "certifit.models.pca",
    "IncrementalPCA": "certifit.models.incremental_pca",
    "TruncatedSVD": "certifit.models.truncated_svd",
    "ProbabilisticPCA": "certifit.models.ppca",
    "RobustPCA": "certifit.models.robust_pca",
    "TrimmedPCA": "certifit.models.trimmed_pca",
    "LocallyLinearEmbedding": "certifit.models.lle",
    "SelectFeatures": "certifit.models.select_features",
    "SequentialSelector": "certifit.models.select_sequential",
    "RecursiveElimination": "certifit.models.select_recursive",
    "L1Selector": "certifit.models.select_l1",
    "feature_scores": "certifit.models.select_scores",
    "anova_f": "certifit.models.select_scores",
    "correlation_f": "certifit.models.select_scores",
    "mutual_information": "certifit.models.select_scores",
    "jeffreys": "certifit.models.select_scores",
    "two_views": "certifit.models.pca_views",
    "KMeans": "certifit.models.kmeans",
    "choose_clusters": "certifit.models.kmeans_choice",
    "GaussianMixture": "certifit.models.gaussian_mixture",
    "Mixture": "certifit.models.mixture",
    "select_mixture": "certifit.models.mixture_choice",
    "LogisticRegression": "certifit.models.logistic",
    "LinearSVC": "certifit.models.linear_svm",
    "LinearSVR": "certifit.models.linear_svm",
    "SVC": "certifit.models.svc",
    "HardMarginSVC": "certifit.models.hard_margin",
    "ApproximateSVC": "certifit.models.approximate_svc",
    "Nystroem": "certifit.models.kernel_features",
    "RBFSampler": "certifit.models.kernel_features",
    "SVR": "certifit.models.svr",
    "Linear": "certifit.models.svm_kernels",
    "Polynomial": "certifit.models.svm_kernels",
    "RBF": "certifit.models.svm_kernels",
    "Sigmoid": "certifit.models.svm_kernels",
    "is_psd": "certifit.models.svm_kernels",
    "GeneralizedLinearRegressor": "certifit.models.glm",
    "LinearRegression": "certifit.models.linear",
    "Ridge": "certifit.models.linear",
    "Lasso": "certifit.models.linear",
    "ElasticNet": "certifit.models.linear",
    "PoissonRegressor": "certifit.models.linear",
    "GammaRegressor": "certifit.models.linear",
    "TweedieRegressor": "certifit.models.linear",
    "GaussianNB": "certifit.models.naive_bayes",
    "BernoulliNB": "certifit.models.naive_bayes_discrete",
    "MultinomialNB": "certifit.models.naive_bayes_discrete",
    "ComplementNB": "certifit.models.naive_bayes_discrete",
    "CategoricalNB": "certifit.models.naive_bayes_discrete",
    "NaiveBayes": "certifit.models.naive_bayes_mixed",
    "TableClassifier": "certifit.models.table",
    "audit": "certifit.auditing",
    "compare": "certifit.auditing",
    "as_rows": "certifit.core",
    "set_threads": "certifit.core",
    "Certificate": "certifit.core",
    "CertificateWarning": "certifit.core",
    "DataError": "certifit.core",
    "NoSolutionError": "certifit.core",
    "SourceChangedError": "certifit.core",
    "ProgressBar": "certifit.core.progress",
    "save": "certifit.store",
    "load": "certifit.store",
    "load_penguins": "certifit.data",
}

_PACKAGES = ("divergence", "families", "linalg", "losses", "plots")

__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from certifit.auditing import audit, compare
    from certifit.core import (
        Certificate,
        CertificateWarning,
        DataError,
        NoSolutionError,
        SourceChangedError,
        as_rows,
        set_threads,
    )
    from certifit.core.progress import ProgressBar
    from certifit.data import load_penguins
    from certifit.models.approximate_svc import ApproximateSVC
    from certifit.models.gaussian_mixture import GaussianMixture
    from certifit.models.glm import GeneralizedLinearRegressor
    from certifit.models.hard_margin import HardMarginSVC
    from certifit.models.incremental_pca import IncrementalPCA
    from certifit.models.kernel_features import Nystroem, RBFSampler
    from certifit.models.kmeans import KMeans
    from certifit.models.kmeans_choice import choose_clusters
    from certifit.models.linear import (
        ElasticNet,
        GammaRegressor,
        Lasso,
        LinearRegression,
        PoissonRegressor,
        Ridge,
        TweedieRegressor,
    )
    from certifit.models.linear_svm import LinearSVC, LinearSVR
    from certifit.models.lle import LocallyLinearEmbedding
    from certifit.models.logistic import LogisticRegression
    from certifit.models.mixture import Mixture
    from certifit.models.mixture_choice import select_mixture
    from certifit.models.naive_bayes import GaussianNB
    from certifit.models.naive_bayes_discrete import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
    from certifit.models.naive_bayes_mixed import NaiveBayes
    from certifit.models.pca import PCA
    from certifit.models.pca_views import two_views
    from certifit.models.ppca import ProbabilisticPCA
    from certifit.models.robust_pca import RobustPCA
    from certifit.models.select_features import SelectFeatures
    from certifit.models.select_l1 import L1Selector
    from certifit.models.select_recursive import RecursiveElimination
    from certifit.models.select_scores import anova_f, correlation_f, feature_scores, jeffreys, mutual_information
    from certifit.models.select_sequential import SequentialSelector
    from certifit.models.svc import SVC
    from certifit.models.svm_kernels import RBF, Linear, Polynomial, Sigmoid, is_psd
    from certifit.models.svr import SVR
    from certifit.models.table import TableClassifier
    from certifit.models.trimmed_pca import TrimmedPCA
    from certifit.models.truncated_svd import TruncatedSVD
    from certifit.store import load, save


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # a tenth of a second, so only when asked

        return version("certifit")
    if name in _PACKAGES:
        return import_module(f"certifit.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'certifit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES, "__version__"]
