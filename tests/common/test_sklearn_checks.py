"""scikit-learn's own checks of an estimator, all of them, none excepted."""

import os
import re
from inspect import Parameter, signature

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import has_fit_parameter

from certifit.registry import ESTIMATORS
from tests.common.catalogue import CATALOGUE

# Estimators whose checks take several seconds as they come, because they fit many models to each table: they fit
# fewer here. `make defaults` checks them as they come, and all estimators with the settings of the catalogue too.
QUICK = {
    "AdaBoostClassifier": {"n_estimators": 5},
    "AdaBoostRegressor": {"n_estimators": 5},
    "AdditiveClassifier": {"alpha": 0.05, "max_bins": 31},
    "AdditiveRegressor": {"alpha": 0.05, "max_bins": 31},
    "BaggingClassifier": {"n_estimators": 3},
    "BaggingRegressor": {"n_estimators": 3},
    "ConvNetClassifier": {"max_iter": 5},
    "ElasticNetCV": {"alphas": 5},
    "ExtraTreesClassifier": {"n_estimators": 5},
    "ExtraTreesRegressor": {"n_estimators": 5},
    "GradientBoostingClassifier": {"n_estimators": 3},
    "GradientBoostingRegressor": {"n_estimators": 10},
    "HistGradientBoostingClassifier": {"max_iter": 5},
    "L1Selector": {"alphas": 3},
    "LassoCV": {"alphas": 5},
    "LogisticRegressionCV": {"Cs": 2, "cv": 2},
    "MLPClassifier": {"max_iter": 30},
    "MLPRegressor": {"max_iter": 60},
    "RFECV": {"step": 4, "cv": 2},
    "RandomForestClassifier": {"n_estimators": 5},
    "RandomForestRegressor": {"n_estimators": 5},
    "RecursiveElimination": {"step": 4, "cv": 2},
    "RidgeClassifierCV": {"alphas": [1.0]},
    "SequentialFeatureSelector": {"n_features_to_select": 1, "cv": 2},
    "SequentialSelector": {"n_features_to_select": 1, "cv": 2},
}
AS_THEY_COME = bool(os.environ.get("CERTIFIT_DEFAULTS"))


def as_it_comes(cls):
    """An estimator with default settings; those that search over another one get a quick one, and two folds."""
    parameters = signature(cls).parameters
    asked = [name for name, p in parameters.items() if p.default is Parameter.empty]
    assert asked in ([], ["estimator"]), f"{cls.__name__} has no default for {asked}"
    settings = {} if AS_THEY_COME else QUICK.get(cls.__name__, {})
    return (
        cls(RidgeClassifier(), **({"cv": 2} if "cv" in parameters else {}) | settings) if asked else cls(**settings)
    )


# Without a penalty several of scikit-learn's data sets are separable and have no maximum-likelihood fit, so the
# catalogue's unpenalised regression is checked with its default settings, like the others.
MODELS = {
    re.sub(" at 0x[0-9a-f]+", "", repr(model)): model
    for model in (
        *(as_it_comes(registered.load()) for registered in ESTIMATORS),
        *(entry.cls(**entry.checked) for entry in CATALOGUE if AS_THEY_COME),
    )
}


@pytest.mark.filterwarnings(
    "ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning"
)  # 8 clusters of 4 rows
@pytest.mark.filterwarnings(
    "ignore:Mixture. component . has:sklearn.exceptions.ConvergenceWarning"
)  # two components of a row or two
@pytest.mark.filterwarnings("ignore::certifit.linear_model.glm.glm.CollinearWarning")  # 30 columns of 15 rows
@pytest.mark.filterwarnings("ignore::certifit.manifold.neighbours.DisconnectedWarning")  # groups far apart
@pytest.mark.filterwarnings("ignore:k=10 is greater than n_features:UserWarning")  # of tables with few columns
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")  # columns that do not tell classes apart
@pytest.mark.filterwarnings("ignore::certifit.svm.nu.nu_training.LargeNuWarning")  # classes of hardly any weight
@pytest.mark.filterwarnings("ignore::certifit.exceptions.InseparableWarning")  # classes without a margin
@pytest.mark.filterwarnings(
    "ignore::certifit.discriminant_analysis.quadratic.SingularClassWarning"
)  # classes of fewer rows than columns
@pytest.mark.parametrize("name", MODELS)
def test_every_check_passes(name):
    results = check_estimator(MODELS[name], on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed, failed
    # scikit-learn skips the first for its own estimators too, unless SCIPY_ARRAY_API is set for the whole process,
    # and the second where a classifier has no probabilities, as that in an RFE here
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input", "check_classifiers_multilabel_output_format_predict_proba"}
    assert len(results) > (45 if has_fit_parameter(MODELS[name], "sample_weight") else 40)
