"""ONNX Runtime, which nobody here wrote, says the same of the same rows."""

import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import load_digits, load_iris

from certifit import PCA, ConvNetClassifier, DataError, MLPClassifier, MLPRegressor, save_onnx

X, KINDS = load_iris(return_X_y=True)
DIGITS = load_digits()


def run(model, rows, path):
    save_onnx(model, path)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return session.run(None, {"rows": np.asarray(rows, dtype=np.float32)})[0]


@pytest.mark.parametrize("activation", ["relu", "identity", "logistic", "tanh", "leaky_relu", "gelu"])
def test_perceptrons_of_classes(activation, tmp_path):
    for y in (KINDS, KINDS > 0):
        model = MLPClassifier((6, 4), activation, max_iter=5, random_state=0).fit(X, y)
        np.testing.assert_allclose(run(model, X, tmp_path / "m.onnx"), model.predict_proba(X), atol=2e-6)


def test_perceptrons_of_labels_and_amounts(tmp_path):
    labels = np.column_stack([KINDS > 0, X[:, 0] > 6])
    model = MLPClassifier((5,), max_iter=5, random_state=0).fit(X, labels)
    np.testing.assert_allclose(run(model, X, tmp_path / "m.onnx"), model.predict_proba(X), atol=2e-6)
    for loss, y in (("squared_error", X[:, :2]), ("huber", X[:, 0]), ("poisson", KINDS + 1.0)):
        model = MLPRegressor(loss=loss, hidden_layer_sizes=(5,), max_iter=5, random_state=0).fit(X, y)
        said = run(model, X, tmp_path / "m.onnx").reshape(model.predict(X).shape)
        np.testing.assert_allclose(said, model.predict(X), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "layers",
    [
        "lenet",
        [("conv", 3, 3), "batch_norm", "relu", ("dense", 6), "batch_norm"],
        [("conv", 4, 3, 2, 1), "tanh", ("average_pool", 2), ("dense", 9), "relu", ("dropout", 0.3)],
    ],
)
def test_convolutional_networks(layers, tmp_path):
    rows, y = (DIGITS.images[:120] / 16).astype(np.float32), DIGITS.target[:120]
    model = ConvNetClassifier(layers, max_iter=2, random_state=0).fit(rows, y)
    np.testing.assert_allclose(
        run(model, rows.reshape(120, -1), tmp_path / "m.onnx"), model.predict_proba(rows), atol=2e-6
    )


def test_what_is_no_network_is_refused(tmp_path):
    with pytest.raises(DataError, match="PCA; wanted an MLPClassifier"):
        save_onnx(PCA(1).fit(X), tmp_path / "m.onnx")
