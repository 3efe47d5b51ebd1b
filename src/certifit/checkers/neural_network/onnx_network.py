"""Networks of any origin, read from a file as plain layers: what they answer, and how often that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import beta

from certifit.checkers.neural_network.network_loss import NetworkClaim, network_scores
from certifit.checkers.neural_network.plain_layers import PlainLayer
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, as_rows


@dataclass(frozen=True, eq=False)
class OnnxNetwork:
    """A network that was read from an ONNX file by `load_onnx`; it computes in float64.

    Attributes
    ----------
    layers : from the row to the scores
    output : 'softmax', 'logistic' or 'squared_error': how scores are read
    n_features_in_ : numbers of a row; images are flat, in the order of the file
    classes_ : (k,), or None where answers are amounts
    """

    layers: tuple[PlainLayer, ...]
    output: str
    n_features_in_: int
    classes_: Array | None

    def network_claim(self) -> NetworkClaim:
        """The network as checkers read it."""
        x = np.zeros((1, self.n_features_in_))
        outputs = int(network_scores(NetworkClaim(self.layers, self.output, 0, 0.0, None, False), x).shape[1])
        return NetworkClaim(self.layers, self.output, outputs, 0.0, None, False)

    def decision_function(self, X: Any) -> Array:
        """The scores of rows or images (n, k)."""
        return self._rows(X).map(partial(_scores, self.network_claim()))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class (n, k)."""
        scores = self.decision_function(X)
        if self.classes_ is None:
            raise DataError(got="predict_proba of a network of amounts", wanted="a network of classes")
        if self.output == "softmax":
            return np.asarray(softmax(scores, axis=1))
        return np.hstack([expit(-scores), expit(scores)]) if scores.shape[1] == 1 else np.asarray(expit(scores))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row, or its amounts."""
        scores = self.decision_function(X)
        if self.classes_ is None:
            return scores[:, 0] if scores.shape[1] == 1 else scores
        return np.asarray(self.classes_[_chosen(self.output, scores)])

    def _rows(self, X: Any) -> Rows:
        X = X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim > 2 else X
        rows = as_rows(X)
        if rows.n_features != self.n_features_in_:
            raise DataError(got=f"rows of {rows.n_features} numbers", wanted=f"{self.n_features_in_}, as in the file")
        return rows


def _scores(claim: NetworkClaim, block: Block, most: int = 64) -> Array:
    X = dense(block.X)
    return np.concatenate([network_scores(claim, X[k : k + most]) for k in range(0, len(X), most)])


def _chosen(output: str, scores: Array) -> Array:
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(int)
    if output == "logistic":
        raise DataError(got="a network of any number of labels", wanted="one class for each row",
                        fix="Use predict_proba.")  # fmt: skip
    return np.asarray(scores.argmax(axis=1))


def audit_onnx_network(model: OnnxNetwork, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Prove an interval of the error on new rows, from rows that it has not learnt from (Clopper & Pearson 1934)."""
    if model.classes_ is None or sample_weight is not None:
        raise DataError(
            got="weights of rows" if sample_weight is not None else "a network of amounts",
            wanted="a network of classes and rows that count once each, whose errors can be counted",
        )
    said, right = model.predict(X), np.asarray(y)
    if right.shape != said.shape:
        raise DataError(got=f"y of shape {right.shape} for {len(said)} rows", wanted="a class for each row")
    unknown = np.setdiff1d(right, model.classes_)
    if len(unknown):
        raise DataError(
            got=f"classes that the network does not know: {unknown.tolist()}", wanted=f"{model.classes_.tolist()}",
            fix="Name its classes in their order: load_onnx(path, classes=[...]).",
        )  # fmt: skip
    n, wrong = len(said), int((said != right).sum())
    low = float(beta.ppf(0.025, wrong, n - wrong + 1)) if wrong else 0.0
    high = float(beta.ppf(0.975, wrong + 1, n - wrong)) if wrong < n else 1.0
    words = f"error on new rows is between {low:.4g} and {high:.4g} with confidence 95 %"
    facts: dict[str, float | str] = {
        "rows": float(n), "wrong": float(wrong), "error at least": low, "error at most": high,
        "rests on": "these rows are drawn like new ones, independently, and the network has not learnt from them",
    }  # fmt: skip
    return Certificate("statistical", words, wrong / n, low, tol, limit=1.0, facts=facts, scale=1.0)
