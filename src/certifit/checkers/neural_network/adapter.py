"""The adapter of multi-layer perceptrons, ours or scikit-learn's: it reads weights, settings and rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, setting
from certifit.checkers.neural_network.network_loss import NetworkClaim, certify_network
from certifit.checkers.neural_network.plain_columns import (
    PlainColumnDense,
    PlainPeriodic,
    PlainRobustColumns,
    robust_columns,
)
from certifit.checkers.neural_network.plain_layers import PlainActivation, PlainDense, PlainLayer
from certifit.checkers.neural_network.presets import PRESET, checked_setting, setting_in_use
from certifit.core import Certificate, Check, Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms

ACTIVATION = Setting(choices=("identity", "logistic", "tanh", "relu", "leaky_relu", "gelu"))
ALPHA = Setting(float, least=0, below=np.inf)
SOLVER = Setting(choices=("lbfgs", "sgd", "adam", "adamw"))
LOSS = Setting(choices=("squared_error", "huber", "poisson"))
LABEL_SMOOTHING = Setting(float, least=0, below=1)
_LEAVE = "Leave its attributes as the fit left them."


def audit_perceptron(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted MLPClassifier or MLPRegressor on the rows that it was fitted on."""
    claim = read_perceptron(model)
    found = certify_perceptron(claim, perceptron_rows(model, claim, X, y, sample_weight), tol)
    return replace(found, checks=(*found.checks, *state_checks(model)))


def certify_perceptron(claim: NetworkClaim, rows: Rows, tol: float) -> Certificate:
    """Check a network, and that it scales columns by the medians and quartiles of these rows, where it scales."""
    found, scaling = certify_network(claim, rows, tol), claim.layers[0]
    if not isinstance(scaling, PlainRobustColumns):
        return found
    centre, scale = robust_columns(rows)
    size = np.abs(centre) + scale + 1e-300
    off = max(np.max(np.abs(scaling.centre - centre) / size), np.max(np.abs(scaling.scale - scale) / size))
    return replace(found, checks=(*found.checks, Check("center_ and scale_ are off by", float(off), 1e-12)))


def perceptron_rows(model: Any, claim: NetworkClaim, X: Any, y: Any, sample_weight: Any) -> Rows:
    """The rows that a perceptron was fitted on, with targets that the checker reads."""
    classifier = hasattr(model, "classes_")
    several = claim.output == "logistic" and claim.outputs > 1 if classifier else claim.outputs > 1
    if isinstance(model, Estimator):
        _check_our_own(model, claim, several)
    y = one_column(y) if not several else y
    terms = TableTerms("classes" if classifier else "numbers", claim.outputs if several else 1)
    rows = fitted_rows(model, claim.columns, X, y, sample_weight, terms)
    return network_targets(model, rows, several)


def network_targets(model: Any, rows: Rows, several: bool) -> Rows:
    """Rows whose y the checker reads: class numbers, labels or amounts, with the weights of classes in."""
    if not hasattr(model, "classes_") or several:
        return rows
    labels = encode_labels(rows, np.asarray(model.classes_))
    return apply_class_weight(labels, getattr(model, "class_weight", None))


def read_perceptron(model: Any) -> NetworkClaim:
    """The network that attributes and settings describe; refused where layers do not follow on each other."""
    coefs, intercepts = fitted_tensors(model, "coefs_"), fitted_tensors(model, "intercepts_")
    first, coefs, intercepts = _column_layers(model, coefs, intercepts)
    fits = len(coefs) == len(intercepts) > 0 and all(
        W.ndim == 2 and b.shape == (W.shape[1],) for W, b in zip(coefs, intercepts, strict=True)
    )
    fits = fits and (not first or first[-1].b.size == len(coefs[0]))
    if not fits or any(a.shape[1] != b.shape[0] for a, b in pairwise(coefs)):
        shapes = ", ".join(str(W.shape) for W in coefs)
        raise DataError(got=f"coefs_ of shapes {shapes}", wanted="layers that follow on each other", fix=_LEAVE)
    ours = isinstance(model, Estimator)
    solver = checked_setting(model, "solver", SOLVER)
    between = PlainActivation(checked_setting(model, "activation", ACTIVATION))
    layers: list[PlainLayer] = [*first, PlainDense(coefs[0], intercepts[0])]
    for W, b in zip(coefs[1:], intercepts[1:], strict=True):
        layers += [between, PlainDense(W, b)]
    return NetworkClaim(
        tuple(layers),
        network_output(model, coefs[-1].shape[1]),
        coefs[-1].shape[1],
        float(checked_setting(model, "alpha", ALPHA)) if solver != "adamw" else 0.0,
        # scikit-learn's loss_ of minibatches is their mean while weights were still moving.
        claimed_loss(model) if ours or solver == "lbfgs" else None,
        stationary=solver == "lbfgs" or not ours,
        smoothing=label_smoothing(model),
    )


def _column_layers(
    model: Any, coefs: tuple[Array, ...], intercepts: tuple[Array, ...]
) -> tuple[list[Any], tuple[Array, ...], tuple[Array, ...]]:
    """The layers that look at columns by themselves, and the tensors of those behind them."""
    if setting(model, "preset", PRESET) is None:
        return [], coefs, intercepts
    centre = numbers(model, "center_")
    d, scale = centre.size, exact_shape(model, "scale_", centre.shape)
    shapes = [part.shape for part in (*coefs[:2], *intercepts[:2])]
    wanted = len(coefs) > 2 and coefs[0].ndim == 2 and coefs[1].ndim == 3
    h, m = (coefs[0].shape[1], coefs[1].shape[2]) if wanted else (0, 0)
    if centre.ndim != 1 or scale.min(initial=0.0) < 0 or shapes != [(d, h), (d, h + 1, m), (d, h), (d, m)]:
        raise DataError(got=f"coefs_ and intercepts_ of shapes {shapes} for {d} columns",
                        wanted="frequencies and sums for each column", fix=_LEAVE)  # fmt: skip
    embedding = [PlainPeriodic(coefs[0], intercepts[0]), PlainColumnDense(coefs[1], intercepts[1])]
    return [PlainRobustColumns(centre, scale), *embedding], coefs[2:], intercepts[2:]


def claimed_loss(model: Any) -> float | None:
    """The loss that a model claims; None of one whose fit was interrupted, which claims nothing."""
    if hasattr(model, "loss_"):
        return float(numbers(model, "loss_"))
    if getattr(getattr(model, "certificate_", None), "kind", "") == "unproved":
        return None
    raise DataError(got=f"a {type(model).__name__} without loss_", wanted="a fitted model", fix="Call fit first.")


def label_smoothing(model: Any) -> float:
    """The share of targets that is spread over all classes; 0 for amounts and for other libraries' models."""
    if not hasattr(model, "classes_"):
        return 0.0
    return float(checked_setting(model, "label_smoothing", LABEL_SMOOTHING, 0.0))


def fitted_tensors(model: Any, name: str) -> tuple[Array, ...]:
    found = getattr(model, name)
    if not isinstance(found, (list, tuple)):
        raise DataError(got=f"{name} as {type(found).__name__}", wanted="a list of arrays", fix=_LEAVE)
    parts = tuple(np.asarray(part) for part in found)
    if not all(part.dtype.kind == "f" and np.isfinite(part).all() for part in parts):
        raise DataError(got=f"{name} with entries that are no finite numbers", wanted="finite numbers", fix=_LEAVE)
    return tuple(part.astype(np.float64) for part in parts)


def network_output(model: Any, outputs: int) -> str:
    """How scores are read: by the number of classes, or by the loss of amounts."""
    if not hasattr(model, "classes_"):
        return str(setting(model, "loss", LOSS, "squared_error"))
    k = len(model.classes_)
    several = getattr(model, "multilabel_", getattr(model, "out_activation_", "") == "logistic" and outputs > 1)
    if outputs != (k if several or k > 2 else 1):
        raise DataError(got=f"{k} classes_ and {outputs} scores", wanted="a score for each class", fix=_LEAVE)
    return "logistic" if several or k <= 2 else "softmax"


def _check_our_own(model: Any, claim: NetworkClaim, several: bool) -> None:
    """Refuse what no fit of ours leaves: other layers than were asked for, or arrays of another kind."""
    asked = np.atleast_1d(np.asarray(setting_in_use(model, "hidden_layer_sizes"), dtype=int)).tolist()
    if [len(b) for b in model.intercepts_[:-1] if b.ndim == 1] != asked:
        raise DataError(
            got=f"hidden_layer_sizes={model.hidden_layer_sizes!r}", wanted="the settings that it was fitted with"
        )
    if any(type(getattr(model, name)) is not list for name in ("coefs_", "intercepts_")):
        raise DataError(got="coefs_ or intercepts_ that are no list", wanted="lists of arrays", fix=_LEAVE)
    if several and hasattr(model, "classes_") and np.asarray(model.classes_).tolist() != [*range(claim.outputs)]:
        raise DataError(got=f"classes_ {model.classes_}", wanted="the numbers of the labels", fix=_LEAVE)
    if setting_in_use(model, "solver") == "lbfgs" and any(
        np.asarray(part).dtype != np.float64 for part in (*model.coefs_, *model.intercepts_)
    ):
        raise DataError(
            got="coefs_ or intercepts_ of another type", wanted="float64, as 'lbfgs' leaves them", fix=_LEAVE
        )


def state_checks(model: Any) -> list[Check]:
    """Whether the state from which partial_fit goes on is the one that the last epoch left with these weights."""
    if not isinstance(model, Estimator):
        return []
    state = getattr(model, "training_state_", None)
    if (state is None) != (setting_in_use(model, "solver") == "lbfgs"):
        got = f"solver={model.solver!r} {'without' if state is None else 'with'} a training_state_"
        raise DataError(got=got, wanted="the solver that it was fitted with, and what that leaves", fix=_LEAVE)
    if state is None:
        return []
    parts = (*model.coefs_, *model.intercepts_)
    params = np.concatenate([np.ravel(part) for part in parts])
    other = len({part.dtype for part in parts}) > 1 or state.sum_of(params) != state.checksum
    other |= state.mean.shape != params.shape or state.square.shape not in (params.shape, (0,))
    return [Check("training_state_ is not the one left by the last epoch (1: yes)", float(other), 0.0)]


def one_column(y: Any) -> Any:
    """The one column of a y that has one, as an array (n,)."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return np.asarray(y)[:, 0] if len(shape) == 2 and shape[1] == 1 and not hasattr(y, "__dask_graph__") else y
