# Written by tools/stubs.py from certifit/registry.py.
from certifit.kernel_approximation.approximate_svc import ApproximateSVC as ApproximateSVC
from certifit.mixture.bayesian.bayesian_mixture import BayesianGaussianMixture as BayesianGaussianMixture
from certifit.naive_bayes.bernoulli import BernoulliNB as BernoulliNB
from certifit.naive_bayes.categorical import CategoricalNB as CategoricalNB
from certifit.core import Certificate as Certificate
from certifit.exceptions import CertificateWarning as CertificateWarning
from certifit.naive_bayes.multinomial import ComplementNB as ComplementNB
from certifit.exceptions import DataError as DataError
from certifit.tree.decision_tree import DecisionTreeClassifier as DecisionTreeClassifier
from certifit.tree.decision_tree import DecisionTreeRegressor as DecisionTreeRegressor
from certifit.linear_model.regressors import ElasticNet as ElasticNet
from certifit.linear_model.family_regressors import GammaRegressor as GammaRegressor
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture as GaussianMixture
from certifit.naive_bayes.gaussian import GaussianNB as GaussianNB
from certifit.linear_model.glm.glm import GeneralizedLinearRegressor as GeneralizedLinearRegressor
from certifit.feature_selection.score_filters import GenericUnivariateSelect as GenericUnivariateSelect
from certifit.svm.hard_margin.hard_margin import HardMarginSVC as HardMarginSVC
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingClassifier as HistGradientBoostingClassifier,
)
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingRegressor as HistGradientBoostingRegressor,
)
from certifit.decomposition.pca.incremental_pca import IncrementalPCA as IncrementalPCA
from certifit.cluster.kmeans import KMeans as KMeans
from certifit.decomposition.kernel.kernel_pca import KernelPCA as KernelPCA
from certifit.feature_selection.l1_selector import L1Selector as L1Selector
from certifit.linear_model.regressors import Lasso as Lasso
from certifit.svm.kernel.kernels import Linear as Linear
from certifit.discriminant_analysis.linear import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
from certifit.linear_model.regressors import LinearRegression as LinearRegression
from certifit.svm.linear.linear_svm import LinearSVC as LinearSVC
from certifit.svm.linear.linear_svm import LinearSVR as LinearSVR
from certifit.manifold.locally_linear import LocallyLinearEmbedding as LocallyLinearEmbedding
from certifit.linear_model.logistic.logistic import LogisticRegression as LogisticRegression
from certifit.cluster.mini_batch_kmeans import MiniBatchKMeans as MiniBatchKMeans
from certifit.mixture.families.mixture import Mixture as Mixture
from certifit.naive_bayes.multinomial import MultinomialNB as MultinomialNB
from certifit.naive_bayes.mixed import NaiveBayes as NaiveBayes
from certifit.exceptions import NoSolutionError as NoSolutionError
from certifit.svm.nu.nu_svm import NuSVC as NuSVC
from certifit.svm.nu.nu_svm import NuSVR as NuSVR
from certifit.kernel_approximation.nystroem import Nystroem as Nystroem
from certifit.svm.nu.nu_svm import OneClassSVM as OneClassSVM
from certifit.decomposition.pca.pca import PCA as PCA
from certifit.linear_model.family_regressors import PoissonRegressor as PoissonRegressor
from certifit.svm.kernel.kernels import Polynomial as Polynomial
from certifit.decomposition.probabilistic.probabilistic_pca import ProbabilisticPCA as ProbabilisticPCA
from certifit.core.progress import ProgressBar as ProgressBar
from certifit.svm.kernel.kernels import RBF as RBF
from certifit.kernel_approximation.rbf_sampler import RBFSampler as RBFSampler
from certifit.feature_selection.searches.elimination import RFE as RFE
from certifit.feature_selection.searches.elimination import RFECV as RFECV
from certifit.feature_selection.searches.recursive_elimination import RecursiveElimination as RecursiveElimination
from certifit.linear_model.regressors import Ridge as Ridge
from certifit.linear_model.ridge_classifier import RidgeClassifier as RidgeClassifier
from certifit.decomposition.robust.robust_pca import RobustPCA as RobustPCA
from certifit.svm.kernel.svc import SVC as SVC
from certifit.svm.kernel.svr import SVR as SVR
from certifit.feature_selection.score_filters import SelectFdr as SelectFdr
from certifit.feature_selection.select_features import SelectFeatures as SelectFeatures
from certifit.feature_selection.score_filters import SelectFpr as SelectFpr
from certifit.feature_selection.score_filters import SelectFwe as SelectFwe
from certifit.feature_selection.score_filters import SelectKBest as SelectKBest
from certifit.feature_selection.score_filters import SelectPercentile as SelectPercentile
from certifit.feature_selection.searches.sequential_feature_selector import (
    SequentialFeatureSelector as SequentialFeatureSelector,
)
from certifit.feature_selection.searches.sequential_selector import SequentialSelector as SequentialSelector
from certifit.svm.kernel.kernels import Sigmoid as Sigmoid
from certifit.exceptions import SourceChangedError as SourceChangedError
from certifit.table.table_classifier import TableClassifier as TableClassifier
from certifit.table.table_regressor import TableRegressor as TableRegressor
from certifit.decomposition.robust.trimmed_pca import TrimmedPCA as TrimmedPCA
from certifit.decomposition.pca.truncated_svd import TruncatedSVD as TruncatedSVD
from certifit.linear_model.family_regressors import TweedieRegressor as TweedieRegressor
from certifit.feature_selection.variance_threshold import VarianceThreshold as VarianceThreshold
from certifit.feature_selection.scores import anova_f as anova_f
from certifit.rows import as_rows as as_rows
from certifit.checkers.auditing import audit as audit
from certifit.feature_selection.score_functions import chi2 as chi2
from certifit.cluster.choose_k import choose_clusters as choose_clusters
from certifit.checkers.comparison import compare as compare
from certifit.feature_selection.scores import correlation_f as correlation_f
from certifit.linear_model.regularisation_path import enet_path as enet_path
from certifit.feature_selection.score_functions import f_classif as f_classif
from certifit.feature_selection.score_functions import f_regression as f_regression
from certifit.feature_selection.scores import feature_scores as feature_scores
from certifit.svm.kernel.kernels import is_psd as is_psd
from certifit.feature_selection.scores import jeffreys as jeffreys
from certifit.linear_model.regularisation_path import lasso_path as lasso_path
from certifit.store import load as load
from certifit.datasets import load_penguins as load_penguins
from certifit.feature_selection.score_functions import mutual_info_classif as mutual_info_classif
from certifit.feature_selection.score_functions import mutual_info_regression as mutual_info_regression
from certifit.feature_selection.scores import mutual_information as mutual_information
from certifit.feature_selection.score_functions import r_regression as r_regression
from certifit.store import save as save
from certifit.mixture.choose_components import select_mixture as select_mixture
from certifit.rows import set_threads as set_threads
from certifit.decomposition.pca.both_views import two_views as two_views
from certifit.store import write_predictions as write_predictions
from certifit import cluster as cluster
from certifit import datasets as datasets
from certifit import decomposition as decomposition
from certifit import discriminant_analysis as discriminant_analysis
from certifit import divergence as divergence
from certifit import ensemble as ensemble
from certifit import exceptions as exceptions
from certifit import families as families
from certifit import feature_selection as feature_selection
from certifit import kernel_approximation as kernel_approximation
from certifit import linalg as linalg
from certifit import linear_model as linear_model
from certifit import losses as losses
from certifit import manifold as manifold
from certifit import mixture as mixture
from certifit import naive_bayes as naive_bayes
from certifit import plots as plots
from certifit import svm as svm
from certifit import table as table
from certifit import tree as tree

__all__: list[str]
__version__: str
