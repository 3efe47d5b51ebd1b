"""scikit-learn's own checks of an estimator, all of them, for every estimator and its variants."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from certifit import PCA, KMeans, LogisticRegression

# As few settings as possible: the checks bring data of their own. (Without a penalty several of their data sets are
# separable and have no maximum-likelihood fit, so that variant cannot be asked to fit them.)
MODELS = [PCA(), PCA(svd_solver="full"), KMeans(2), LogisticRegression(), LogisticRegression(solver="lbfgs")]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_check_passes(model):
    results = check_estimator(model, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed, failed
    # scikit-learn skips this one for its own estimators too, unless SCIPY_ARRAY_API is set for the whole process
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
    assert len(results) > 50
