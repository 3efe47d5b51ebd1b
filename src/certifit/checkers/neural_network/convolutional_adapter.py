"""The adapter of convolutional networks: it reads the words for layers, weights, settings and rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, setting
from certifit.checkers.neural_network.adapter import (
    ALPHA,
    SOLVER,
    claimed_loss,
    fitted_tensors,
    label_smoothing,
    network_output,
    network_targets,
    one_column,
    state_checks,
)
from certifit.checkers.neural_network.network_loss import NetworkClaim, certify_network
from certifit.checkers.neural_network.normalised_units import moment_checks
from certifit.checkers.neural_network.plain_layers import (
    ACTIVATIONS,
    PlainActivation,
    PlainConvolution,
    PlainDense,
    PlainFlatten,
    PlainImages,
    PlainLayer,
    PlainNormalisation,
    PlainPool,
)
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.rows import Array, Rows
from certifit.rows.checks import TableTerms


def audit_convolutional(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted ConvNetClassifier on the images that it was fitted on."""
    claim = read_convolutional(model)
    found = certify_convolutional(claim, image_rows(model, claim, X, y, sample_weight), tol)
    return replace(found, checks=(*found.checks, *state_checks(model)))


def certify_convolutional(claim: NetworkClaim, rows: Rows, tol: float) -> Certificate:
    """Check a network, and that what it normalises by is the mean and variance of these rows."""
    found = certify_network(claim, rows, tol)
    return replace(found, checks=(*found.checks, *moment_checks(claim, rows)))


def image_rows(model: Any, claim: NetworkClaim, X: Any, y: Any, sample_weight: Any) -> Rows:
    """The images that a network was fitted on as flat rows, with targets that the checker reads."""
    several = claim.output == "logistic" and claim.outputs > 1
    X = X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim > 2 else X
    terms = TableTerms("classes", claim.outputs if several else 1)
    y = y if several else one_column(y)
    rows = fitted_rows(model, math.prod(model.image_shape_), X, y, sample_weight, terms)
    return network_targets(model, rows, several)


def read_convolutional(model: Any) -> NetworkClaim:
    """The network that the words for layers and the weights describe; refused where they do not fit together."""
    shape = tuple(model.image_shape_)
    if len(shape) != 3 or any(type(size) is not int or size < 1 for size in shape):
        raise DataError(got=f"image_shape_ {shape}", wanted="height, width and channels")
    coefs, intercepts = fitted_tensors(model, "coefs_"), fitted_tensors(model, "intercepts_")
    weights = [*zip(coefs, intercepts, strict=True)]
    moments = [*fitted_tensors(model, "moments_")] if hasattr(model, "moments_") else []
    layers: list[PlainLayer] = [PlainImages((shape[0], shape[1], shape[2]))]
    for words in (*model.layers_, ("dense", len(intercepts[-1]))):
        name, *sizes = words
        if name != "dropout" and any(type(size) is not int for size in sizes):
            raise DataError(got=f"the layer {words!r}", wanted="whole numbers")
        if name in ("conv", "dense", "batch_norm"):
            if not weights:
                raise DataError(got=f"{len(coefs)} coefs_ and the layers {model.layers_}", wanted="weights for each")
            W, b = weights.pop(0)
            known = name != "batch_norm"
            layers.append(_weighted(name, sizes, W, b) if known else _normalisation(W, b, moments))
        elif name != "dropout":  # which is the identity but while training
            layers.append(_plain(name, sizes))
    if moments:
        raise DataError(got=f"{len(model.moments_)} moments_", wanted="a pair for each 'batch_norm'")
    if weights:
        raise DataError(got=f"{len(coefs)} coefs_ and the layers {model.layers_}", wanted="a layer for each")
    outputs = len(intercepts[-1])
    alpha = float(setting(model, "alpha", ALPHA))
    return NetworkClaim(
        tuple(layers),
        network_output(model, outputs),
        outputs,
        alpha if setting(model, "solver", SOLVER) != "adamw" else 0.0,
        claimed_loss(model),
        stationary=False,
        smoothing=label_smoothing(model),
    )


def _weighted(name: str, sizes: list[Any], W: Array, b: Array) -> PlainLayer:
    """A layer with weights of the shapes that its words ask for."""
    wanted = (sizes[0], *W.shape[1:2], *sizes[1:3]) if name == "conv" else (len(W), sizes[0])
    if W.shape != wanted or b.shape != (sizes[0],):
        raise DataError(got=f"weights of shape {W.shape} in a layer {(name, *sizes)}", wanted=f"shape {wanted}")
    if name == "dense":
        return PlainDense(W, b)
    stride, padding = sizes[3:]
    if stride < 1 or padding < 0:
        raise DataError(
            got=f"the layer {(name, *sizes)}", wanted="a stride of at least 1 and a padding of at least 0"
        )
    return PlainConvolution(W, b, stride, padding)


def _normalisation(W: Array, b: Array, moments: list[Array]) -> PlainLayer:
    """A normalisation with the next of the moments."""
    found = moments.pop(0) if moments else np.zeros(0)
    if W.ndim != 1 or b.shape != W.shape or found.shape != (2, len(W)):
        raise DataError(
            got=f"a 'batch_norm' with weights of shape {W.shape}, biases {b.shape} and moments {found.shape}",
            wanted="a weight, a bias, a mean and a variance for each channel",
        )
    return PlainNormalisation(W, b, found)


def _plain(name: str, sizes: list[Any]) -> PlainLayer:
    """A layer without weights."""
    if name in ("max_pool", "average_pool") and all(size > 0 for size in sizes):
        return PlainPool((sizes[0], sizes[1]), name == "max_pool")
    if name == "flatten" and not sizes:
        return PlainFlatten()
    if name in ACTIVATIONS and not sizes:
        return PlainActivation(name)
    raise DataError(got=f"the layer {(name, *sizes)}", wanted="a layer that networks have")
