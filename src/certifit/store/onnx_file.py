"""Networks as ONNX files, which run in a browser, on a phone, or from any other language."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.neural_network.presets import setting_in_use
from certifit.exceptions import DataError
from certifit.files.atomic_file import write_atomically
from certifit.neural_network.layers.batch_norm import BatchNorm
from certifit.neural_network.layers.layer_words import Words
from certifit.neural_network.multilayer_perceptron import MultilayerPerceptron

_ACTIVATIONS = {
    "identity": "Identity",
    "logistic": "Sigmoid",
    "tanh": "Tanh",
    "relu": "Relu",
    "leaky_relu": "LeakyRelu",
    "gelu": "Gelu",
}
_OPERATORS = 20  # the version of ONNX's list of operators, the first that has GELU


def save_onnx(model: Any, path: str | os.PathLike[str], *, scores: bool = False) -> None:
    """Write a fitted network to a file that ONNX Runtime and others read.

    Everything in it is float32, which is what such programs compute in. Its input `rows` (n, d) are flat rows, also
    of images; its output is `probabilities` (n, k) of the classes, in the order of `classes_`, or `predictions`
    (n, t).

    Parameters
    ----------
    model : fitted MLPClassifier, MLPRegressor or ConvNetClassifier
    path : where to write
    scores : bool, default=False
        Whether the output of a classifier is `scores` (n, k), the larger the likelier, in place of probabilities:
        provers of robustness know no exponential function. Of two classes they are -s and s, s the log-odds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import MLPClassifier, save_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MLPClassifier((8,), solver="lbfgs", alpha=1.0, max_iter=1000, random_state=0).fit(X, y)
    >>> save_onnx(model, "iris.onnx")  # doctest: +SKIP
    """
    if not isinstance(model, MultilayerPerceptron):
        raise DataError(got=type(model).__name__, wanted="an MLPClassifier, MLPRegressor or ConvNetClassifier")
    check_is_fitted(model)
    try:
        from onnx import checker
    except ImportError:
        raise ImportError("save_onnx needs the package onnx. Install it: pip install 'certifit[onnx]'") from None
    found = OnnxGraph(model, scores and hasattr(model, "classes_")).whole()
    checker.check_model(found, full_check=True)
    write_atomically(path, found.SerializeToString())


class OnnxGraph:
    """The operators of a network, each added after the last, and its numbers."""

    def __init__(self, model: Any, scores: bool = False) -> None:
        from onnx import helper, numpy_helper

        self.scores = scores
        self.model, self._helper, self._tensor = model, helper, numpy_helper.from_array
        shape = getattr(model, "image_shape_", None)
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []
        self.last = "rows"
        if shape is not None:
            self._add("Reshape", self._constant(np.array([-1, *shape])))
            self._add("Transpose", perm=[0, 3, 1, 2])
        tensors, self._moments = (
            zip(model.coefs_, model.intercepts_, strict=True),
            iter(getattr(model, "moments_", ())),
        )
        for words in (*_words(model), ("dense", len(model.intercepts_[-1]))):
            self._layer(words, tensors)
        self._answer()

    def _add(self, operator: str, *inputs: str, **attributes: Any) -> None:
        """One more operator on the last output."""
        name = f"step_{len(self.nodes) + 1}"
        self.nodes.append(self._helper.make_node(operator, [self.last, *inputs], [name], **attributes))
        self.last = name

    def _constant(self, value: Any) -> str:
        value = np.ascontiguousarray(value)
        value = value.astype(np.float32 if value.dtype.kind == "f" else np.int64)
        name = f"numbers_{len(self.numbers) + 1}"
        self.numbers.append(self._tensor(value, name))
        return name

    def _layer(self, words: Words, tensors: Any) -> None:
        """The operators of one layer; dropout is for training only."""
        name, *sizes = words
        if name in ("dense", "conv"):
            W, b = (self._constant(part) for part in next(tensors))
            if name == "dense":
                self._add("Gemm", W, b)
            else:
                _, height, width, stride, padding = sizes
                self._add("Conv", W, b, kernel_shape=[height, width], strides=[stride] * 2, pads=[padding] * 4)
        elif name == "batch_norm":
            numbers = (*next(tensors), *next(self._moments))
            self._add("BatchNormalization", *(self._constant(part) for part in numbers), epsilon=BatchNorm.epsilon)
        elif name in ("max_pool", "average_pool"):
            operator = "MaxPool" if name == "max_pool" else "AveragePool"
            self._add(operator, kernel_shape=sizes, strides=sizes)
        elif name == "flatten":
            self._add("Flatten")
        elif name == "robust_columns":
            self._scale_columns()
        elif name == "periodic":
            W, b = (self._constant(part) for part in next(tensors))
            self._add("Unsqueeze", self._constant(np.array([2])))
            number = self.last
            for operator, inputs in (("Mul", (W,)), ("Add", (b,)), ("Cos", ())):
                self._add(operator, *inputs)
            self.nodes.append(self._helper.make_node("Concat", [number, self.last], ["embedded"], axis=2))
            self.last = "embedded"
        elif name == "column_dense":
            W, b = (self._constant(part) for part in next(tensors))
            self._add("Transpose", perm=[1, 0, 2])
            self._add("MatMul", W)
            self._add("Transpose", perm=[1, 0, 2])
            self._add("Add", b)
            self._add("Flatten")
        elif name != "dropout":
            self._add(_ACTIVATIONS[name])

    def _scale_columns(self) -> None:
        """Columns about their medians and over their scales, smoothly held between -3 and 3."""
        scale = self.model.scale_
        self._add("Sub", self._constant(self.model.center_))
        self._add("Mul", self._constant(np.divide(1.0, scale, where=scale > 0, out=np.zeros(len(scale)))))
        scaled = self.last
        for operator, inputs in (("Mul", (scaled,)), ("Mul", (self._constant(np.array([1 / 9])),)),
                                 ("Add", (self._constant(np.ones(1)),)), ("Sqrt", ())):  # fmt: skip
            self._add(operator, *inputs)
        self.nodes.append(self._helper.make_node("Div", [scaled, self.last], ["clipped"]))
        self.last = "clipped"

    def _answer(self) -> None:
        """From scores to probabilities, or to means."""
        output = self.model._claim().output
        two = output == "logistic" and len(self.model.classes_) == 2 and len(self.model.intercepts_[-1]) == 1
        if self.scores:
            if two:
                second = self.last
                self._add("Neg")
                self._add("Concat", second, axis=1)
        elif output == "softmax":
            self._add("Softmax", axis=1)
        elif output == "logistic":
            self._add("Sigmoid")
            if two:
                second = self.last
                self.nodes.append(self._helper.make_node("Sub", [self._constant(np.ones(1)), second], ["first"]))
                self.last = "first"
                self._add("Concat", second, axis=1)
        elif output == "poisson":
            self._add("Exp")

    def whole(self) -> Any:
        """The file's content."""
        make, classes = self._helper, hasattr(self.model, "classes_")
        kind, name = (
            make.np_dtype_to_tensor_dtype(np.dtype(np.float32)),
            "scores" if self.scores else "probabilities" if classes else "predictions",
        )
        columns = int(self.model.n_features_in_)
        outputs = max(2, len(self.model.classes_)) if classes else len(self.model.intercepts_[-1])
        self.nodes.append(make.make_node("Identity", [self.last], [name]))
        graph = make.make_graph(
            self.nodes,
            type(self.model).__name__,
            [make.make_tensor_value_info("rows", kind, ["n", columns])],
            [make.make_tensor_value_info(name, kind, ["n", outputs])],
            self.numbers,
        )
        opset = [make.make_opsetid("", _OPERATORS)]
        return make.make_model(graph, opset_imports=opset, producer_name="certifit", ir_version=9)


def _words(model: Any) -> tuple[Words, ...]:
    """The layers before the last dense one."""
    if hasattr(model, "layers_"):
        return tuple(model.layers_)
    first = (("robust_columns",), ("periodic",), ("column_dense",)) if model.preset is not None else ()
    hidden, activation = [len(b) for b in model.intercepts_[:-1] if b.ndim == 1], setting_in_use(model, "activation")
    return (*first, *(words for units in hidden for words in (("dense", units), (activation,))))
