# Written by tools/stubs.py from certifit/registry.py.
from certifit.ensemble.adaboost.adaboost_classifier import AdaBoostClassifier as AdaBoostClassifier
from certifit.ensemble.adaboost.adaboost_regressor import AdaBoostRegressor as AdaBoostRegressor
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingClassifier as HistGradientBoostingClassifier,
)
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingRegressor as HistGradientBoostingRegressor,
)
