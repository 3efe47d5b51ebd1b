"""Networks from ONNX files: ONNX Runtime says the same of them; what is not known is refused by its name."""

import re

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy.stats import binom
from sklearn.datasets import load_digits, load_iris

from certifit import (
    ConvNetClassifier,
    DataError,
    MLPClassifier,
    MLPRegressor,
    audit,
    load_onnx,
    robust_radius,
    save_onnx,
    save_vnnlib,
)

X, KINDS = load_iris(return_X_y=True)
DIGITS = load_digits()
IMAGES, LABELS = (DIGITS.images[:150] / 16).astype(np.float32), DIGITS.target[:150]
RNG = np.random.default_rng(0)


def runtime(path, rows):
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: np.asarray(rows, dtype=np.float32)})[0]


def write(path, steps, shape, outputs):
    """A file of operators one after another: (name, constants, attributes)."""
    nodes, numbers, last = [], [], "rows"
    for k, (name, constants, attributes) in enumerate(steps):
        names = [f"c{k}_{i}" for i in range(len(constants))]
        kinds = [{"i": np.int64, "b": np.bool_}.get(np.asarray(c).dtype.kind, np.float32) for c in constants]
        numbers += [
            numpy_helper.from_array(np.asarray(c, kind), n)
            for c, n, kind in zip(constants, names, kinds, strict=True)
        ]
        nodes.append(helper.make_node(name, [last, *names], [f"v{k}"], **attributes))
        last = f"v{k}"
    graph = helper.make_graph(
        nodes, "theirs", [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", *shape])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", *outputs])], numbers,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def normal(*shape):
    return RNG.normal(size=shape)


THEIRS = {
    "rows": (
        [
            ("Sub", [normal(4)], {}), ("Div", [np.array(2.0)], {}), ("MatMul", [normal(4, 6)], {}),
            ("Add", [normal(6)], {}), ("LeakyRelu", [], {"alpha": 0.01}),
            ("Gemm", [normal(5, 6), normal(5)], {"transB": 1, "alpha": 0.5, "beta": 2.0}), ("Tanh", [], {}),
            ("Gemm", [normal(5, 3)], {}), ("Sigmoid", [], {}), ("Mul", [normal(1, 3)], {}),
            ("Softmax", [], {"axis": 1}),
        ],
        (4,), (3,),
    ),
    "images, channels first": (
        [
            ("Conv", [normal(4, 2, 3, 3), normal(4)], {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}),
            ("BatchNormalization", [normal(4), normal(4), normal(4), RNG.uniform(1, 2, 4)], {"epsilon": 1e-3}),
            ("Relu", [], {}), ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
            ("AveragePool", [], {"kernel_shape": [1, 2], "strides": [1, 2]}), ("Add", [normal(4, 1, 1)], {}),
            ("Flatten", [], {}), ("Gemm", [normal(8, 3), normal(3)], {}), ("Identity", [], {}),
        ],
        (2, 8, 8), (3,),
    ),
    "reshaped": (
        [
            ("Reshape", [np.array([-1, 1, 4, 3])], {}), ("Transpose", [], {"perm": [0, 1, 3, 2]}),
            ("Conv", [normal(2, 1, 2, 2)], {"kernel_shape": [2, 2]}), ("Relu", [], {}),
            ("Reshape", [np.array([-1, 12])], {}), ("Gemm", [normal(12, 1)], {}),
        ],
        (12,), (1,),
    ),
    "pooled as a whole": (
        [
            ("Conv", [normal(4, 2, 3, 2), normal(4)], {"kernel_shape": [3, 2]}), ("Relu", [], {}),
            ("GlobalAveragePool", [], {}), ("Reshape", [np.array([0, -1])], {}), ("Gemm", [normal(4, 3)], {}),
            ("LogSoftmax", [], {"axis": -1}),
        ],
        (2, 8, 7), (3,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THEIRS)
def test_other_peoples_networks_say_what_onnx_runtime_says(name, tmp_path):
    steps, shape, outputs = THEIRS[name]
    path = write(tmp_path / "theirs.onnx", steps, shape, outputs)
    rows = RNG.normal(size=(30, *shape))
    network = load_onnx(path)
    said = network.predict_proba(rows) if name in ("rows", "pooled as a whole") else network.decision_function(rows)
    said = np.log(said) if name == "pooled as a whole" else said
    np.testing.assert_allclose(said, runtime(path, rows), rtol=1e-4, atol=1e-5)
    if name == "reshaped":
        assert network.classes_ is None
        np.testing.assert_array_equal(network.predict(rows), said[:, 0])
    else:
        np.testing.assert_array_equal(network.predict(rows), runtime(path, rows).argmax(axis=1))


def test_our_own_files_come_back(tmp_path):
    layers = [("conv", 3, 3, 1, 1), "batch_norm", "relu", ("max_pool", 2), ("dense", 6), "relu"]
    models = [
        (ConvNetClassifier(layers, max_iter=2, random_state=0).fit(IMAGES, LABELS), IMAGES.reshape(150, -1)),
        (MLPClassifier((6,), "gelu", max_iter=3, random_state=0).fit(X, KINDS == 1), X),
        (MLPClassifier((6,), "logistic", max_iter=3, random_state=0).fit(X, KINDS), X),
    ]
    for model, rows in models:
        save_onnx(model, tmp_path / "m.onnx")
        network = load_onnx(tmp_path / "m.onnx", classes=model.classes_)
        np.testing.assert_allclose(network.predict_proba(rows), model.predict_proba(rows), atol=1e-5)
        save_onnx(model, tmp_path / "s.onnx", scores=True)
        scores = runtime(tmp_path / "s.onnx", rows)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(rows))
    amounts = MLPRegressor(hidden_layer_sizes=(4,), max_iter=3, random_state=0).fit(X, X[:, 0])
    save_onnx(amounts, tmp_path / "m.onnx")
    np.testing.assert_allclose(load_onnx(tmp_path / "m.onnx").predict(X), amounts.predict(X), atol=1e-5)


def test_the_error_has_clopper_and_pearsons_interval(tmp_path):
    """Its ends are the shares at which as few, or as many, errors have a chance of 2.5 % (SciPy's binomial)."""
    model = MLPClassifier((6,), max_iter=40, learning_rate_init=0.01, random_state=0).fit(X[::2], KINDS[::2])
    save_onnx(model, tmp_path / "m.onnx")
    network = load_onnx(tmp_path / "m.onnx")
    found = audit(network, X[1::2], KINDS[1::2])
    wrong = int((model.predict(X[1::2]) != KINDS[1::2]).sum())
    assert found.kind == "statistical"
    assert found.holds
    assert found.facts["wrong"] == wrong > 0
    low, high = found.facts["error at least"], found.facts["error at most"]
    assert binom.sf(wrong - 1, 75, low) == pytest.approx(0.025)
    assert binom.cdf(wrong, 75, high) == pytest.approx(0.025)
    with pytest.raises(DataError, match=r"classes that the network does not know: \[7\]"):
        audit(network, X[:2], [0, 7])
    with pytest.raises(DataError, match="weights of rows"):
        audit(network, X, KINDS, sample_weight=np.ones(150))


def test_radii_of_their_networks_are_those_of_ours(tmp_path):
    model = MLPClassifier((8, 5), max_iter=60, learning_rate_init=0.01, random_state=0).fit(X, KINDS)
    save_onnx(model, tmp_path / "m.onnx")
    theirs = robust_radius(load_onnx(tmp_path / "m.onnx"), X, KINDS)
    np.testing.assert_allclose(theirs, robust_radius(model, X, KINDS), atol=1e-5)
    assert (theirs > 0.01).mean() > 0.5


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (("Sin", [], {}), "the operator Sin which is not among"),
        (("LeakyRelu", [], {"alpha": 0.3}), "LeakyRelu with alpha=0.3"),
        (("Transpose", [], {"perm": [1, 0]}), "the operator Transpose which"),
        (("Pow", [np.array(2.0)], {}), "the operator Pow which"),
        (("Dropout", [np.array(0.5), np.array(True)], {}), "Dropout that drops units"),
        (("BatchNormalization", [np.ones(4)] * 4, {"training_mode": 1}), "by the moments of the rows at hand"),
        (("Add", [np.ones((5, 4))], {}), r"Add with numbers of shape \(5, 4\)"),
    ],
)
def test_other_operators_are_refused_by_name(step, words, tmp_path):
    path = write(tmp_path / "m.onnx", [step, ("Gemm", [normal(4, 3)], {})], (4,), (3,))
    with pytest.raises(DataError, match=words):
        load_onnx(path)


def test_a_shape_may_be_made_of_the_rows_own(tmp_path):
    """As PyTorch writes x.view(x.size(0), -1): Shape, Gather, Unsqueeze, Concat and Reshape."""
    steps = [
        ("Conv", ["rows", "window"], ["maps"]), ("Shape", ["maps"], ["shape"]), ("Gather", ["shape", "first"], ["n"]),
        ("Unsqueeze", ["n", "axis"], ["sizes"]), ("Concat", ["sizes", "rest"], ["flat"]),
        ("Reshape", ["maps", "flat"], ["long"]), ("Gemm", ["long", "W"], ["scores"]),
    ]  # fmt: skip
    nodes = [helper.make_node(*step, **({"axis": 0} if step[0] == "Concat" else {})) for step in steps]
    numbers = {"window": normal(2, 1, 2, 2).astype("f4"), "first": np.array(0), "axis": np.array([0]),
               "rest": np.array([-1]), "W": normal(18, 3).astype("f4")}  # fmt: skip
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (("rows", ["n", 1, 4, 4]), ("scores", ["n", 3]))]  # fmt: skip
    made = [numpy_helper.from_array(value, name) for name, value in numbers.items()]
    graph = helper.make_graph(nodes, "theirs", ends[:1], ends[1:], made)
    path = tmp_path / "theirs.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    rows = normal(5, 1, 4, 4)
    np.testing.assert_allclose(load_onnx(path).decision_function(rows), runtime(path, rows), rtol=1e-4, atol=1e-5)


def test_windows_that_overlap_and_other_files_are_refused(tmp_path):
    pool = ("MaxPool", [], {"kernel_shape": [3, 3], "strides": [2, 2]})
    path = write(tmp_path / "m.onnx", [pool, ("Flatten", [], {}), ("Gemm", [normal(9, 3)], {})], (1, 7, 7), (3,))
    with pytest.raises(DataError, match=re.escape("MaxPool of windows [3, 3] that overlap")):
        load_onnx(path)
    path.write_bytes(b"no such thing")
    with pytest.raises(DataError, match="cannot be read"):
        load_onnx(path)


def test_a_question_for_other_provers(tmp_path):
    """Read back as text: a box of 0.25 about the row, and that another class has at least the score of its own."""
    model = MLPClassifier((5,), max_iter=30, random_state=0).fit(X, KINDS)
    save_vnnlib(model, X[60], 0.25, tmp_path / "q.vnnlib")
    text = (tmp_path / "q.vnnlib").read_text()
    chosen = int(np.flatnonzero(model.classes_ == model.predict(X[60:61])[0])[0])
    for j in range(4):
        assert f"(assert (>= X_{j} {X[60, j] - 0.25}))" in text
        assert f"(assert (<= X_{j} {X[60, j] + 0.25}))" in text
    others = [j for j in range(3) if j != chosen]
    wanted = " ".join(f"(and (>= Y_{j} Y_{chosen}))" for j in others)
    assert text.endswith(f"(assert (or {wanted}))\n")
    assert text.count("declare-const") == 7
    with pytest.raises(DataError, match="a row of 3 numbers"):
        save_vnnlib(model, X[0, :3], 0.1, tmp_path / "q.vnnlib")
    with pytest.raises(DataError, match="eps=-1"):
        save_vnnlib(model, X[0], -1, tmp_path / "q.vnnlib")
