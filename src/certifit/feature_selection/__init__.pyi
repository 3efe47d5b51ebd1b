# Written by tools/stubs.py from certifit/registry.py.
from certifit.feature_selection.score_filters import GenericUnivariateSelect as GenericUnivariateSelect
from certifit.feature_selection.l1_selector import L1Selector as L1Selector
from certifit.feature_selection.searches.elimination import RFE as RFE
from certifit.feature_selection.searches.elimination import RFECV as RFECV
from certifit.feature_selection.searches.recursive_elimination import RecursiveElimination as RecursiveElimination
from certifit.feature_selection.score_filters import SelectFdr as SelectFdr
from certifit.feature_selection.select_features import SelectFeatures as SelectFeatures
from certifit.feature_selection.score_filters import SelectFpr as SelectFpr
from certifit.feature_selection.searches.select_from_model import SelectFromModel as SelectFromModel
from certifit.feature_selection.score_filters import SelectFwe as SelectFwe
from certifit.feature_selection.score_filters import SelectKBest as SelectKBest
from certifit.feature_selection.score_filters import SelectPercentile as SelectPercentile
from certifit.feature_selection.searches.sequential_feature_selector import (
    SequentialFeatureSelector as SequentialFeatureSelector,
)
from certifit.feature_selection.searches.sequential_selector import SequentialSelector as SequentialSelector
from certifit.feature_selection.variance_threshold import VarianceThreshold as VarianceThreshold
from certifit.feature_selection.scores import anova_f as anova_f
from certifit.feature_selection.score_functions import chi2 as chi2
from certifit.feature_selection.scores import correlation_f as correlation_f
from certifit.feature_selection.score_functions import f_classif as f_classif
from certifit.feature_selection.score_functions import f_regression as f_regression
from certifit.feature_selection.scores import feature_scores as feature_scores
from certifit.feature_selection.scores import jeffreys as jeffreys
from certifit.feature_selection.score_functions import mutual_info_classif as mutual_info_classif
from certifit.feature_selection.score_functions import mutual_info_regression as mutual_info_regression
from certifit.feature_selection.scores import mutual_information as mutual_information
from certifit.feature_selection.score_functions import r_regression as r_regression
