"""How good is a model on new rows? Splits, assessment with intervals that cover, conformal prediction, comparison.

Splitters, searches and scores of scikit-learn's are passed on as they are, so that `from certifit.model_selection
import KFold` is the same class as `from sklearn.model_selection import KFold`.
"""

from certifit.registry import PASSED_ON, lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("model_selection"), PASSED_ON["model_selection"])
