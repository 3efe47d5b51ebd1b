"""What a page carries so that a browser can recompute its certificate: rows and coefficients, or sums over the rows.

    P(β, b) = Σ wᵢ φᵢ(β·xᵢ + b) + λ/2 |β|²,   φ convex:   P(β', b') >= P(β, b*) - |g|² / 2λ   for all β', b'

with b* the best intercepts at β and g the slope of P in β. Any β will do: the page's witness is a point next to the
minimum, found here by Newton's method. `self_check.js` works this out from the rows; here it is
written a second time, in NumPy, so that a page only carries what its own script will agree with.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax, xlogy

from certifit.core import Certificate
from certifit.rows import Array
from certifit.table.labelled_table import fingerprint


@dataclass(frozen=True)
class ProofTuning:
    """How much of a page its proof may take, and how well both recomputations must agree."""

    most_bytes: int = 1_200_000  # of rows, as text
    agreement: float = 1e-10  # of the objective
    balanced: float = 1e-13  # imbalance of the intercepts, per row
    steps: int = 8  # of Newton's method
    most_parameters: int = 400  # up to which the witness is found by Newton's method; beyond, it is the model's own
    most_numbers: int = 5_000_000  # the same for rows times columns times squared scores


class ConvexFit(NamedTuple):
    """A fitted linear model with a ridge penalty, and the rows it was fitted to, all as numbers."""

    family: str  # of `LOSSES`, or softmax
    coef: Array  # (k, d)
    intercept: Array  # (k,)
    lam: float  # λ > 0
    X: Array  # (n, d)
    y: Array  # (n,) class numbers, or targets
    w: Array  # (n,) weights, those of the classes included
    free_intercept: bool = True
    theta: float | None = None  # of the negative binomial


class ConvexSums(NamedTuple):
    """Sums over the rows at some coefficients and intercepts."""

    loss: float  # Σ w φ
    g: Array  # (k, d) slopes of the loss in β
    off: Array  # (k,) in b
    H: Array  # (k, k) curvature in b


def _logistic(s: Array, y: Array) -> tuple[Array, Array, Array]:
    p = expit(s)
    return np.logaddexp(0.0, s) - y * s, p - y, p * expit(-s)


def _poisson(s: Array, y: Array) -> tuple[Array, Array, Array]:
    mean = np.exp(s)
    return mean - y - y * s + xlogy(y, y), mean - y, mean


def _gamma(s: Array, y: Array) -> tuple[Array, Array, Array]:
    ratio = y * np.exp(-s)
    return ratio - 1 + s - np.log(y), 1 - ratio, ratio


def _negative_binomial(s: Array, y: Array, theta: float) -> tuple[Array, Array, Array]:
    mean, share = np.exp(s), expit(s - np.log(theta))
    loss = xlogy(y, y) - y * s + (y + theta) * np.log((mean + theta) / (y + theta))
    return loss, theta * share - y * (1 - share), (y + theta) * share * (1 - share)


LOSSES: dict[str, Callable[..., tuple[Array, Array, Array]]] = {
    "gaussian": lambda s, y: (0.5 * (s - y) ** 2, s - y, np.ones_like(s)),
    "logistic": _logistic,
    "poisson": _poisson,
    "gamma": _gamma,
    "negative_binomial": _negative_binomial,
}


def measure(fit: ConvexFit, b: Array) -> ConvexSums:
    """The sums at intercepts b (k,)."""
    scores = fit.X @ fit.coef.T + b
    if len(fit.coef) == 1:
        further = () if fit.theta is None else (fit.theta,)
        loss, slope, h = LOSSES[fit.family](scores[:, 0], fit.y, *further)
        slope, H = slope[:, None], np.array([[fit.w @ h]])
    else:
        p, own = softmax(scores, axis=1), fit.y[:, None] == np.arange(len(b))
        top = scores.max(axis=1)
        loss = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - scores[own]
        slope, H = p - own, np.diag(fit.w @ p) - (p * fit.w[:, None]).T @ p
    weighted = slope * fit.w[:, None]
    return ConvexSums(float(fit.w @ loss), weighted.T @ fit.X, weighted.sum(axis=0), H)


def best_intercepts(fit: ConvexFit, tuning: ProofTuning = ProofTuning()) -> ConvexSums:
    """The sums at the best intercepts, by Newton's method; the last of several classes keeps its own."""
    b, m = fit.intercept.copy(), max(1, len(fit.coef) - 1)
    here = measure(fit, b)
    for _ in range(tuning.steps if fit.free_intercept else 0):
        if (np.abs(here.off) <= tuning.balanced * fit.w.sum()).all():
            break
        b[:m] -= np.linalg.solve(here.H[:m, :m], here.off[:m])
        here = measure(fit, b)
    return here


def find_witness(fit: ConvexFit, tuning: ProofTuning = ProofTuning()) -> ConvexFit:
    """The fit with coefficients next to the minimum, by Newton's method in all parameters."""
    k, d = fit.coef.shape
    if k * (d + 1) > tuning.most_parameters or k * k * fit.X.size > tuning.most_numbers:
        return fit
    Z = np.column_stack([fit.X, np.ones(len(fit.X))])
    ridge = np.tile(np.append(np.full(d, fit.lam), 0.0 if fit.free_intercept else 1e300), k)
    # Of several classes the intercepts have no common part: a ridge on it changes nothing else.
    ridge += np.tile(np.append(np.zeros(d), 1e-9 * fit.w.sum()), k) * (k > 1)
    for _ in range(tuning.steps):
        here = measure(fit, fit.intercept)
        slope = np.column_stack([here.g + fit.lam * fit.coef, here.off]).ravel()
        curved = _row_curvatures(fit)  # (n, k, k)
        H = np.einsum("nab,ni,nj->aibj", curved, Z, Z, optimize=True).reshape(len(slope), len(slope)) + np.diag(ridge)
        step = np.linalg.solve(H, slope).reshape(k, d + 1)
        fit = fit._replace(coef=fit.coef - step[:, :-1], intercept=fit.intercept - step[:, -1] * fit.free_intercept)
        if np.abs(step).max() < 1e-10:
            break
    return fit


def _row_curvatures(fit: ConvexFit) -> Array:
    """The curvature of every row's weighted loss in its scores (n, k, k)."""
    scores = fit.X @ fit.coef.T + fit.intercept
    if len(fit.coef) == 1:
        further = () if fit.theta is None else (fit.theta,)
        return (fit.w * LOSSES[fit.family](scores[:, 0], fit.y, *further)[2])[:, None, None]
    p = softmax(scores, axis=1)
    return fit.w[:, None, None] * (p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :])


def lower_bound(fit: ConvexFit, best: ConvexSums) -> float:
    """P(β, b*) - |g|² / 2λ."""
    slope = best.g + fit.lam * fit.coef
    return best.loss + 0.5 * fit.lam * float((fit.coef**2).sum()) - float((slope**2).sum()) / (2 * fit.lam)


class FitSource(NamedTuple):
    """What the digest of the rows is made from beside them: labels or targets, and weights, as they were given."""

    y: Array  # (n,)
    w: Array | None
    class_weights: tuple[float, ...] | None = None


def page_proof(
    fit: ConvexFit | str, source: FitSource | None, certificate: Certificate, tuning: ProofTuning = ProofTuning()
) -> dict[str, Any]:
    """What the page carries, as JSON has it; a string instead of a fit says why nothing can be recomputed."""
    if isinstance(fit, str) or source is None:
        return {"form": "none", "why": str(fit)}
    with np.errstate(all="ignore"):
        try:
            here, witness = measure(fit, fit.intercept), find_witness(fit, tuning)
            best = best_intercepts(witness, tuning)
        except np.linalg.LinAlgError:
            return {"form": "none", "why": "numbers overflow"}
    penalty = 0.5 * fit.lam * float((fit.coef**2).sum())
    objective, bound = here.loss + penalty, lower_bound(witness, best)
    size = max(certificate.scale, abs(certificate.objective))
    close, limit = tuning.agreement * size, certificate.limit
    holds = certificate.objective - bound <= limit
    agrees = abs(objective - certificate.objective) <= close and abs(bound - certificate.bound) <= limit + close
    if not agrees or holds != certificate.holds or certificate.kind != "optimal":
        return {
            "form": "none",
            "why": "this certificate needs more than the plain proof that the page's script knows",
        }
    words = {name: getattr(certificate, name) for name in ("objective", "bound", "limit", "scale", "holds")}
    proof = {
        "family": fit.family,
        "theta": fit.theta,
        "lam": fit.lam,
        "k": len(fit.coef),
        "free_intercept": fit.free_intercept,
        "coef": _packed_bytes(fit.coef),
        "intercept": _packed_bytes(fit.intercept),
        "witness": _packed_bytes(witness.coef),
        "witness_intercept": _packed_bytes(witness.intercept),
        "certificate": words,
    }
    rows = _packed_rows(fit, source, tuning)
    if rows is not None:
        return {"form": "rows", **proof, **rows}
    sums: dict[str, Any] = {
        "form": "sums",
        **proof,
        "loss": here.loss,
        "best_loss": best.loss,
        "slopes": _packed_bytes(best.g),
    }
    if 3 * len(sums["slopes"]) > tuning.most_bytes:
        return {"form": "none", "why": "the coefficients alone would not fit into the page"}
    return sums | {"fingerprint": fingerprint(fit.X, source.y, source.w)}


def _packed_rows(fit: ConvexFit, source: FitSource, tuning: ProofTuning) -> dict[str, Any] | None:
    """The rows as text, or None where they are too many."""
    if fit.X.size > tuning.most_bytes:  # at least a byte each
        return None
    columns = [_packed(column) for column in fit.X.T]
    labels = None
    if source.y.dtype.kind != "f":
        labels = [_packed_bytes(label) for label in np.unique(source.y)[:, None]]
    found: dict[str, Any] = {
        "shape": [*fit.X.shape],
        "columns": columns,
        "y": _packed(fit.y.astype(np.float64)),
        "w": None if source.w is None else _packed(source.w),
        "labels": labels,
        "class_weights": source.class_weights,
        "head": repr((fit.X.shape, source.y.dtype.str)),
    }
    parts = [*columns, found["y"], found["w"] or {}]
    size = sum(len(text) for part in parts for text in part.values() if isinstance(text, str))
    return found if size <= tuning.most_bytes else None


def _packed(column: Array) -> dict[str, Any]:
    """A column as its different numbers and the place of each row's among them, where these are few."""
    bits, codes = np.unique(np.ascontiguousarray(column).view(np.int64), return_inverse=True)  # -0.0 is not 0.0
    size = 1 if len(bits) <= 256 else 2
    if len(bits) > 65_536 or 8 * len(bits) + size * len(column) >= 8 * len(column):
        return {"values": _packed_bytes(column)}
    return {
        "values": _packed_bytes(bits.view(np.float64)),
        "codes": _packed_bytes(codes.astype(f"<u{size}")),
        "size": size,
    }


def _packed_bytes(array: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
