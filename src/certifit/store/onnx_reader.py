"""Other people's networks from ONNX files, as plain layers that a checker reads: small ones, layer after layer."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from certifit.checkers.neural_network.onnx_network import OnnxNetwork
from certifit.checkers.neural_network.plain_layers import (
    PlainActivation,
    PlainConvolution,
    PlainDense,
    PlainFlatten,
    PlainLayer,
    PlainNormalisation,
    PlainPool,
    PlainReshape,
    PlainTranspose,
)
from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.sources.regular_file import check_regular
from certifit.store.model_file import UNREADABLE, shortened

MOST_COLUMNS = 2**26  # numbers of a row: a file of a few bytes may declare any number
_SOFTMAX = "Softmax", "LogSoftmax"  # both end a network of classes, whose scores come before
_OF_SIZES = "Gather", "Concat", "Cast", "Squeeze", "Unsqueeze"
_ACTIVATIONS = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "logistic", "Gelu": "gelu", "LeakyRelu": "leaky_relu"}


def load_onnx(path: str | os.PathLike[str], classes: Sequence[Any] | None = None) -> OnnxNetwork:
    """Read a network from an ONNX file, to predict with it and to prove something about it.

    `audit(network, X, y)` gives an exact interval of its error from rows that it has not learnt from;
    `robust_radius(network, X, y)` proves how far rows may move. Known operators are Gemm, MatMul, Conv, Add, Sub,
    Mul, Div, Relu, LeakyRelu, Sigmoid, Tanh, Gelu, Softmax, LogSoftmax, MaxPool, AveragePool, GlobalAveragePool,
    BatchNormalization, Flatten, Reshape, Transpose, Identity and Dropout, one after another; others are refused by
    their name. Weights become float64: other programs compute in float32, and their answers have other last digits.

    Parameters
    ----------
    path : the file
    classes : the classes in the order of the outputs; 0, 1, … where they are not given
        A network of one output without a Sigmoid at its end predicts amounts, and has none.

    Returns
    -------
    OnnxNetwork

    Examples
    --------
    >>> from certifit import audit, load_onnx
    >>> network = load_onnx("theirs.onnx", classes=["cat", "dog"])  # doctest: +SKIP
    >>> print(audit(network, X_new, y_new))  # doctest: +SKIP
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("load_onnx needs the package onnx. Install it: pip install 'certifit[onnx]'") from None
    check_regular(path)
    try:
        content = onnx.load_model_from_string(Path(path).read_bytes())
        onnx.checker.check_model(content)
    except (onnx.checker.ValidationError, ValueError, TypeError) as error:
        raise _unreadable(path, error) from error
    except Exception as error:
        if type(error).__name__ != "DecodeError":  # of protobuf, which onnx brings along
            raise
        raise _unreadable(path, error) from error
    try:
        with np.errstate(all="ignore"):  # numbers of a stranger's file may be any
            found = OnnxReader(content.graph)
    except DataError:
        raise
    except (*UNREADABLE, MemoryError, ArithmeticError) as error:  # attributes and shapes may say anything
        raise _unreadable(path, error) from error
    outputs = found.shape[0]
    amounts = outputs == 1 and found.output == "squared_error"
    if amounts:
        return OnnxNetwork(tuple(found.layers), "squared_error", found.columns, None)
    count = 2 if outputs == 1 else outputs
    known = np.arange(count) if classes is None else np.asarray(classes)
    if known.shape != (count,):
        raise DataError(got=f"{known.size} classes for a network of {count}", wanted="a name for each")
    output = "softmax" if found.output == "squared_error" else found.output
    return OnnxNetwork(tuple(found.layers), output, found.columns, known)


def _unreadable(path: str | os.PathLike[str], error: Exception) -> DataError:
    return DataError(got=f"{os.fspath(path)!r}, which cannot be read ({shortened(error)})", wanted="an ONNX file")


class OnnxReader:
    """The layers of a graph, each made of the operators in their order."""

    def __init__(self, graph: Any) -> None:
        from onnx import helper, numpy_helper

        def array(tensor: Any) -> Array:
            if tensor.data_location:  # 1 is another file, by a path that a stranger has chosen
                raise DataError(got=f"numbers of {tensor.name[:80]!r} in another file", wanted="one file with all")
            return numpy_helper.to_array(tensor)

        self._attribute, self._array = helper.get_attribute_value, array
        self.numbers = {one.name: array(one) for one in graph.initializer}
        self.sizes: dict[str, list[int]] = {}  # shapes of rows, 0 for their number, and what is made of them
        self.layers: list[PlainLayer] = []
        self.output = "squared_error"  # until a Softmax or Sigmoid ends the graph
        (first,) = [one for one in graph.input if one.name not in self.numbers] or [None]
        if first is None or len(graph.output) != 1:
            raise DataError(got=f"a graph of {len(graph.output)} outputs", wanted="one input of rows and one output")
        sizes = [one.dim_value for one in first.type.tensor_type.shape.dim]
        self.shape: tuple[int, ...] = tuple(sizes[1:])
        self.columns = math.prod(self.shape)
        if not self.shape or min(self.shape) < 1 or self.columns > MOST_COLUMNS:
            raise DataError(
                got=f"an input of shape {sizes}", wanted="rows whose numbers are counted, (n, d) or images"
            )
        if len(self.shape) > 1:
            self._add(PlainReshape(self.shape), flat=True)
        self.last, nodes = first.name, list(graph.node)
        kinds = [(node.op_type, node.output[0]) for node in nodes if node.op_type not in ("Identity", "Constant")]
        if [kind for kind, _ in kinds[-2:]] == ["Sub", "Concat"]:
            kinds = kinds[:-2]
        self.end = kinds[-1][1] if kinds else ""  # a Sigmoid there makes probabilities of scores
        while nodes:
            node = nodes.pop(0)
            if node.op_type == "Constant":
                self.numbers[node.output[0]] = self._array(self._attributes(node)["value"])
            elif not self._is_two_class_end(node, nodes):
                self._read(node)
        if self.last != graph.output[0].name or len(self.shape) != 1:
            raise DataError(
                got=f"an output {graph.output[0].name!r} of shape {self.shape}", wanted="scores of each row"
            )

    def _add(self, layer: PlainLayer, flat: bool = False) -> None:
        """One more layer, and what it makes of the shape of a row."""
        x = np.zeros((1, self.columns) if flat else (1, *self.shape))
        self.layers.append(layer)
        self.shape = layer.forward(x)[0].shape[1:]

    def _attributes(self, node: Any) -> dict[str, Any]:
        return {one.name: self._attribute(one) for one in node.attribute}

    def _is_two_class_end(self, node: Any, nodes: list[Any]) -> bool:
        """Whether this and the next operator make (1 - p, p) of the probability p of the second of two classes."""
        ahead = next(iter(nodes), None)
        if node.op_type != "Sub" or ahead is None or ahead.op_type != "Concat" or self.output != "logistic":
            return False
        if list(node.input)[1:] != [self.last] or list(ahead.input) != [node.output[0], self.last]:
            return False
        self.last = nodes.pop(0).output[0]
        return bool((self.numbers.get(node.input[0], np.zeros(1)) == 1).all())

    def _read(self, node: Any) -> None:
        """Add the layer of one operator."""
        name, known = node.op_type, [one for one in node.input if one in self.numbers]
        if self._is_of_sizes(node):
            return
        unknown = [one for one in node.input if one and one not in self.numbers and one not in self.sizes]
        if node.domain not in ("", "ai.onnx"):
            self._refuse(node, f"of {node.domain}")
        if self.output != "squared_error" and name != "Identity":
            self._refuse(node, "after the Softmax or Sigmoid that ends the network")
        if unknown != [self.last]:
            self._refuse(node, "that does not follow on the one before it")
        self.last = node.output[0]
        given, values = self._attributes(node), [self.numbers[one].astype(np.float64) for one in known]
        if name in ("Gemm", "MatMul"):
            self._dense(node, given, values)
        elif name == "Conv":
            self._convolution(node, given, values)
        elif name in ("MaxPool", "AveragePool"):
            self._pool(node, given)
        elif name == "GlobalAveragePool" and len(self.shape) == 3:
            self._add(PlainPool((self.shape[1], self.shape[2]), False))
        elif name == "BatchNormalization":
            W, b, mean, variance = values
            if given.get("training_mode", 0):
                self._refuse(node, "by the moments of the rows at hand")
            self._add(PlainNormalisation(W, b, np.stack([mean, variance]), float(given.get("epsilon", 1e-5))))
        elif name in ("Add", "Sub", "Mul", "Div"):
            self._shift_or_scale(node, values)
        elif name in _ACTIVATIONS or name in _SOFTMAX:
            self._activation(node, given)
        elif name == "Flatten" and given.get("axis", 1) == 1:
            self._add(PlainFlatten())
        elif name == "Reshape":
            self._reshape(node)
        elif name == "Transpose" and given.get("perm", [1])[0] == 0:
            self._add(PlainTranspose(tuple(given["perm"])))
        elif name == "Dropout" and len(node.input) == 3 and values[-1].any():
            self._refuse(node, "that drops units at random")
        elif name not in ("Identity", "Dropout"):
            self._refuse(node, "which is not among those that are read")

    def _is_of_sizes(self, node: Any) -> bool:
        """Whether an operator works on the shape of the rows, which a Reshape then takes: its outcome is noted."""
        name = node.op_type
        if name == "Shape" and list(node.input) == [self.last] and not node.attribute:
            self.sizes[node.output[0]] = [0, *self.shape]
            return True
        if name not in _OF_SIZES or not any(one in self.sizes for one in node.input):
            return False
        if not all(one in self.sizes or one in self.numbers for one in node.input):
            self._refuse(node, "of other than shapes")
        parts = [self._sizes(one) for one in node.input]
        found = parts[0]
        if name == "Gather":
            found = [found[k] for k in parts[1]]
        elif name == "Concat":
            found = [size for part in parts for size in part]
        self.sizes[node.output[0]] = found
        return True

    def _sizes(self, name: str) -> list[int]:
        return self.sizes[name] if name in self.sizes else [int(size) for size in self.numbers[name].ravel()]

    def _refuse(self, node: Any, why: str) -> None:
        raise DataError(
            got=f"the operator {node.op_type} {why}",
            wanted="a network of layers one after another, of the operators that load_onnx names",
        )

    def _dense(self, node: Any, given: dict[str, Any], values: list[Array]) -> None:
        W = values[0].T if given.get("transB", 0) else values[0]
        if given.get("transA", 0) or node.input[0] in self.numbers or len(self.shape) != 1 or W.ndim != 2:
            self._refuse(node, "of other than rows and a matrix")
        b = values[1] * given.get("beta", 1.0) if len(values) > 1 else np.zeros(W.shape[1])
        self._add(PlainDense(W * given.get("alpha", 1.0), np.broadcast_to(b.ravel(), W.shape[1:]).copy()))

    def _convolution(self, node: Any, given: dict[str, Any], values: list[Array]) -> None:
        W = values[0]
        strides, pads = given.get("strides", [1, 1]), given.get("pads", [0] * 4)
        plain = given.get("group", 1) == 1 and set(given.get("dilations", [1])) == {1} and W.ndim == 4
        if not plain or len({*strides}) > 1 or len({*pads}) > 1 or given.get("auto_pad", b"NOTSET") != b"NOTSET":
            self._refuse(node, f"with strides {strides}, pads {pads}, groups or dilations that are not plain")
        b = values[1] if len(values) > 1 else np.zeros(len(W))
        self._add(PlainConvolution(W, b, int(strides[0]), int(pads[0])))

    def _pool(self, node: Any, given: dict[str, Any]) -> None:
        size, strides = given["kernel_shape"], given.get("strides", [1, 1])
        odd = any(given.get("pads", [0])) or given.get("ceil_mode", 0) or set(given.get("dilations", [1])) != {1}
        if list(size) != list(strides) or len(size) != 2 or odd or given.get("auto_pad", b"NOTSET") != b"NOTSET":
            self._refuse(node, f"of windows {size} that overlap or are padded")
        self._add(PlainPool((int(size[0]), int(size[1])), node.op_type == "MaxPool"))

    def _shift_or_scale(self, node: Any, values: list[Array]) -> None:
        """A number for each unit or channel that is added, subtracted, multiplied or divided by."""
        channels = self.shape[0]
        value = values[0]
        ranks = len(self.shape) + 1
        wide = value.reshape((1,) * (ranks - value.ndim) + value.shape) if value.ndim <= ranks else value
        per_channel = wide.ndim == ranks and all(size == 1 for k, size in enumerate(wide.shape) if k != 1)
        if node.input[0] in self.numbers and node.op_type in ("Sub", "Div"):
            self._refuse(node, "from or of a constant")
        if not per_channel or wide.shape[1] not in (1, channels):
            self._refuse(node, f"with numbers of shape {value.shape}")
        v = np.broadcast_to(wide.ravel(), (channels,)).copy()
        one, zero = np.ones(channels), np.zeros(channels)
        W = v if node.op_type == "Mul" else 1.0 / v if node.op_type == "Div" else one
        b = v if node.op_type == "Add" else -v if node.op_type == "Sub" else zero
        self._add(PlainNormalisation(W, b, np.stack([zero, one]), 0.0))

    def _activation(self, node: Any, given: dict[str, Any]) -> None:
        name, axis = node.op_type, given.get("axis", -1)
        if name in _SOFTMAX:
            if len(self.shape) != 1 or axis not in (-1, 1):
                self._refuse(node, "of other than the scores of a row")
            self.output = "softmax"
        elif name == "Sigmoid" and node.output[0] == self.end:
            self.output = "logistic"
        elif name == "LeakyRelu" and abs(given.get("alpha", 0.01) - 0.01) > 1e-6:
            self._refuse(node, f"with alpha={given['alpha']:g}, where 0.01 is known")
        elif name == "Gelu" and given.get("approximate", b"none") != b"none":
            self._refuse(node, "by an approximation")
        else:
            self._add(PlainActivation(_ACTIVATIONS[name]))

    def _reshape(self, node: Any) -> None:
        target = self._sizes(node.input[1])
        rest, numbers = target[1:], int(np.prod(self.shape))
        if target[0] not in (-1, 0, 1) or (rest.count(-1) > 1) or 0 in rest:
            self._refuse(node, f"to {target}")
        if -1 in rest:
            rest[rest.index(-1)] = numbers // max(1, -int(np.prod(rest)))
        if int(np.prod(rest)) != numbers:
            self._refuse(node, f"to {target} of rows of {numbers} numbers")
        self._add(PlainReshape(tuple(rest)))
