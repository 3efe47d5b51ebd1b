"""Model files that an earlier version wrote, before modules and classes had their present names, still load."""

from pathlib import Path

import numpy as np
import pytest

from certifit import audit, load
from certifit.registry import ESTIMATORS
from tests.common.test_house import load_tool

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "data").glob("*.certifit"))}
DIGESTS = load_tool("digests")
LATER = {  # fitted attributes that later versions added
    "ConvNetClassifier": {"moments_"},
    "IncrementalPCA": {"n_used_"},
    "HardMarginSVC": {"ridge_"},
    "RidgeClassifier": {"multilabel_"},
    **{name: {"dual_gap_"} for name in ("Lasso", "ElasticNet")},
    **{name: {"pearson_chi2_"} for name in ("LinearRegression", "GeneralizedLinearRegressor")},
}


def test_there_is_a_file_of_every_estimator_that_can_be_saved():
    """A wrapper around an estimator of any library cannot."""
    wrappers = {"SequentialSelector", "RecursiveElimination", "SequentialFeatureSelector", "RFE", "RFECV"}
    wrappers |= {"SelectFromModel"}
    assert set(FILES) == {entry.name for entry in ESTIMATORS} - wrappers


@pytest.mark.parametrize("name", FILES)
def test_it_says_what_a_fresh_fit_says(name, tmp_path):
    """To 1e-6: the file was written on another computer."""
    old = load(FILES[name])
    assert old.certificate_.holds
    _, _, X, y, new = next(DIGESTS.cases(tmp_path, [name]))
    fresh = type(old)(**old.get_params()).fit(*([X] if y is None else [X, y]))
    assert {attribute for attribute in vars(fresh) if not hasattr(old, attribute)} <= LATER.get(name, set())
    assert audit(old, X, y).holds
    said, expected = DIGESTS.found(old, new), DIGESTS.found(fresh, new)
    uses = [key for key in expected if key.startswith(tuple(f"{use}()" for use in DIGESTS.USES))]
    assert uses == [key for key in said if key.startswith(tuple(f"{use}()" for use in DIGESTS.USES))]
    for key in uses:
        if expected[key].dtype.kind == "f":
            np.testing.assert_allclose(said[key], expected[key], rtol=1e-6, atol=1e-6 * np.abs(expected[key]).max())
        else:
            np.testing.assert_array_equal(said[key], expected[key])
