"""Reads fitted multilayer perceptrons, ours and scikit-learn's, and certifies them on their training rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.checkers.ensemble.boosting.stage_rules import held_out_rows
from certifit.checkers.fitted import fitted_rows
from certifit.checkers.neural_network.perceptron import (
    ACTIVATIONS,
    PerceptronClaim,
    PlainPerceptron,
    certify_perceptron,
)
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms


def training_mask(rows: Rows, stratified: bool, fraction: float | None, seed: int) -> Array:
    """Return which rows are trained on (n,): those of positive weight that are not held out."""
    w = rows.map(lambda block: block.w)
    if fraction is None:
        return w > 0
    y = rows.map(lambda block: np.asarray(block.y, np.float64)) if stratified else None
    return (w > 0) & ~held_out_rows(y, w, fraction, seed)


def plain_network(model: Mapping[str, Any], n: int, weight: float) -> PlainPerceptron:
    """Return the network of fitted attributes and settings, trained on n rows of this total weight."""
    weights = tuple(np.asarray(W, np.float64) for W in model["coefs_"])
    biases = tuple(np.asarray(b, np.float64) for b in model["intercepts_"])
    _check_shapes(weights, biases, model)
    classes = model.get("classes_")
    loss = str(model.get("loss", "squared_error")) if classes is None else _class_loss(weights[-1].shape[1])
    batch = n if model["solver"] == "lbfgs" else min(200 if model["batch_size"] == "auto" else model["batch_size"], n)
    shrinkage = 0.0 if model["solver"] == "adamw" else float(model["alpha"]) * n / (batch * weight)
    return PlainPerceptron(
        weights, biases, str(model["activation"]), loss, shrinkage, float(model.get("label_smoothing", 0.0))
    )


def _class_loss(outputs: int) -> str:
    return "logistic" if outputs == 1 else "softmax"


def _check_shapes(weights: tuple[Array, ...], biases: tuple[Array, ...], model: Mapping[str, Any]) -> None:
    """Refuse tensors that do not fit each other, the columns or the classes."""
    classes = model.get("classes_")
    chain = [int(model["n_features_in_"]), *(b.shape[0] if b.ndim == 1 else -1 for b in biases)]
    fits = len(weights) == len(biases) and all(
        W.shape == (a, b) for W, a, b in zip(weights, chain[:-1], chain[1:], strict=True)
    )
    if fits and classes is not None:
        fits = chain[-1] == (1 if len(classes) == 2 else len(classes))
    if not fits or model["activation"] not in ACTIVATIONS:
        shapes = ", ".join(str(W.shape) for W in weights)
        raise DataError(
            got=f"coefs_ of shapes {shapes} with intercepts_ of {[b.shape for b in biases]}",
            wanted="layers that fit each other, the columns and the classes",
            fix="Leave fitted attributes as the fit left them.",
        )
    if not all(np.isfinite(t).all() for t in (*weights, *biases)):
        raise DataError(got="weights with NaN or infinity", wanted="finite numbers", fix="Fit it again.")


def certify_network(model: Mapping[str, Any], rows: Rows, mask: Array, gradient: Any, tol: float) -> Certificate:
    """Check fitted attributes and settings on the rows of `mask`, whose y are codes of classes or amounts.

    `gradient(rows)` is the fit's own gradient on a sample; None in an audit.
    """
    index = np.flatnonzero(mask)
    whole = bool(mask.all())
    training = rows if whole else rows.take(index)
    weight = float(rows.map(lambda block: block.w)[mask].sum())
    net = plain_network(model, len(index), weight)
    some = rows.take(index[:: max(1, len(index) // 256)])
    own = None if gradient is None else gradient(some, net)
    # scikit-learn's loss_ is a mean over weights that are gone.
    foreign = gradient is None and "final_loss_" not in model
    claim = PerceptronClaim(foreign, model.get("final_loss_"), model.get("largest_slope_"), own)
    return certify_perceptron(net, claim, training, some, tol)


def audit_perceptron(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted MLPClassifier or MLPRegressor."""
    state = {**model.get_params(deep=False), **vars(model)}
    classes = state.get("classes_")
    targets = len(np.asarray(state["intercepts_"][-1]))
    terms = TableTerms("numbers" if classes is None else "classes", targets=1 if classes is not None else targets)
    if classes is not None and not isinstance(classes, np.ndarray):
        raise DataError(got="a network of several columns of labels", wanted="one column of classes")
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        rows = apply_class_weight(encode_labels(rows, np.asarray(classes)), state.get("class_weight"))
    ours = isinstance(model, Estimator)
    fraction = float(state["validation_fraction"]) if state["early_stopping"] and ours else None
    mask = training_mask(rows, classes is not None, fraction, int(state.get("validation_seed_", 0)))
    if not mask.any():
        raise DataError(got="no row that was trained on", wanted="the rows that the model was fitted on")
    return certify_network(state, rows, mask, None, tol)
