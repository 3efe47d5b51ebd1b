"""LIBSVM's own example, with the numbers that its programs print.

The table is the Statlog heart data (UCI Machine Learning Repository, https://doi.org/10.24432/C57303, CC BY 4.0),
scaled to [-1, 1] and given in their format by the authors of LIBSVM and LIBLINEAR as `heart_scale`.
"""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from certifit import SVC, audit


@pytest.mark.parametrize("dense", [False, True])
def test_what_libsvm_prints(dense):
    """`svm-train heart_scale` (C = 1, RBF with gamma 1/13) and `svm-predict` on the same rows."""
    X, y = load_svmlight_file(str(Path(__file__).parent / "data" / "heart_scale.svmlight"))
    X = X.toarray() if dense else X
    model = SVC(C=1.0, gamma=1 / 13).fit(X, y)
    assert model.certificate_.bound == pytest.approx(100.8773, abs=5e-5)  # they minimise minus the dual: -100.8773
    assert model.certificate_.objective == pytest.approx(100.8773, abs=5e-5)
    assert model.n_support_.sum() == 132
    assert np.sum(model.support_kinds_ == "non-margin") == 107
    assert np.sum(model.predict(X) == y) == 234  # of 270
    assert audit(model, X, y).holds
