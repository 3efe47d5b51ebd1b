# Written by tools/stubs.py from certifit/registry.py.
from certifit.ensemble.adaboost.adaboost_classifier import AdaBoostClassifier as AdaBoostClassifier
from certifit.ensemble.adaboost.adaboost_regressor import AdaBoostRegressor as AdaBoostRegressor
from certifit.ensemble.additive.additive_models import AdditiveClassifier as AdditiveClassifier
from certifit.ensemble.additive.additive_models import AdditiveRegressor as AdditiveRegressor
