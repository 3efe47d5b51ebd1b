# Written by tools/stubs.py from certifit/registry.py.
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingClassifier as HistGradientBoostingClassifier,
)
from certifit.ensemble.boosting.hist_gradient_boosting import (
    HistGradientBoostingRegressor as HistGradientBoostingRegressor,
)
