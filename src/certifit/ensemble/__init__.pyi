# Written by tools/stubs.py from certifit/registry.py.
from certifit.ensemble.adaboost.adaboost_classifier import AdaBoostClassifier as AdaBoostClassifier
from certifit.ensemble.adaboost.adaboost_regressor import AdaBoostRegressor as AdaBoostRegressor
from certifit.ensemble.additive.additive_models import AdditiveClassifier as AdditiveClassifier
from certifit.ensemble.additive.additive_models import AdditiveRegressor as AdditiveRegressor
from certifit.ensemble.bagging.bagging import BaggingClassifier as BaggingClassifier
from certifit.ensemble.bagging.bagging import BaggingRegressor as BaggingRegressor
from certifit.ensemble.forest.classifiers import ExtraTreesClassifier as ExtraTreesClassifier
from certifit.ensemble.forest.regressors import ExtraTreesRegressor as ExtraTreesRegressor
from certifit.ensemble.boosting.gradient_boosting import GradientBoostingClassifier as GradientBoostingClassifier
from certifit.ensemble.boosting.gradient_boosting import GradientBoostingRegressor as GradientBoostingRegressor
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingClassifier as HistGradientBoostingClassifier,
)
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingRegressor as HistGradientBoostingRegressor,
)
from certifit.ensemble.forest.classifiers import RandomForestClassifier as RandomForestClassifier
from certifit.ensemble.forest.regressors import RandomForestRegressor as RandomForestRegressor
