"""What a page carries so that a browser can recompute its certificate: rows and coefficients, or sums over the rows.

    P(β, b) = L(β, b) + λ/2 |β|² + λ₁ |β|₁,   L(β, b) = Σ wᵢ φᵢ(β·xᵢ + b),   φ convex and never below 0

L lies above its tangent at any β and the best intercepts b* there, whose slope in β is g. So, for all β', b',

    P(β', b') >= L(β, b*) - g·β + min_β' (g·β' + λ/2 |β'|² + λ₁ |β'|₁),

where the minimum is -Σ max(0, |gⱼ| - λ₁)² / 2λ or, for λ = 0, at least -max(0, maxⱼ |gⱼ| - λ₁) R: some point has the
objective R λ₁, and whatever is better has |β'|₁ <= R. Any β will do: the page's witness is a point next to the
minimum, found here by Newton's method on the coefficients that are not 0. `self_check.js` works this out from the
rows; here it is written a second time, in NumPy, so that a page only carries what its own script will agree with.
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
    """A fitted linear model with a penalty, and the rows it was fitted to, all as numbers."""

    family: str  # of `LOSSES`, or softmax
    coef: Array  # (k, d)
    intercept: Array  # (k,)
    lam: float  # λ >= 0
    X: Array  # (n, d)
    y: Array  # (n,) class numbers, or targets
    w: Array  # (n,) weights, those of the classes included
    free_intercept: bool = True
    theta: float | None = None  # of the negative binomial
    bias: float = 0.0  # the intercept is the penalised coefficient of a column of these; 0: it is not penalised
    unit: float = 1.0  # by which given weights were multiplied
    lam1: float = 0.0  # λ₁ >= 0, above 0 where λ is 0

    @property
    def penalised(self) -> Array:
        """All numbers in the penalty, with penalised intercepts after the coefficients."""
        return np.append(self.coef.ravel(), self.intercept / self.bias if self.bias else ())

    @property
    def penalty(self) -> float:
        """λ/2 |β|² + λ₁ |β|₁."""
        return 0.5 * self.lam * float((self.penalised**2).sum()) + self.lam1 * float(np.abs(self.coef).sum())

    def slopes(self, sums: ConvexSums) -> Array:
        """The slopes of the loss in these."""
        return np.append(sums.g.ravel(), sums.off * self.bias if self.bias else ())


class ConvexSums(NamedTuple):
    """Sums over the rows at some coefficients and intercepts."""

    loss: float  # Σ w φ
    g: Array  # (k, d) slopes of the loss in β
    off: Array  # (k,) in b
    H: Array  # (k, k) curvature in b


def _logistic(s: Array, y: Array) -> tuple[Array, Array, Array]:
    p = expit(s)
    return np.logaddexp(0.0, s) - y * s, p - y, p * expit(-s)


def _squared_hinge(s: Array, y: Array) -> tuple[Array, Array, Array]:
    side = 2.0 * y - 1.0
    short = np.maximum(0.0, 1.0 - side * s)
    return short**2, -2 * side * short, 2.0 * (short > 0)


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
    "squared_hinge": _squared_hinge,
    "poisson": _poisson,
    "gamma": _gamma,
    "negative_binomial": _negative_binomial,
}


def measure(fit: ConvexFit, b: Array) -> ConvexSums:
    """The sums at intercepts b (k,)."""
    scores = fit.X @ fit.coef.T + b
    if fit.family != "softmax":
        further = () if fit.theta is None else (fit.theta,)
        losses, slope, h = LOSSES[fit.family](scores, _targets(fit), *further)
        loss, H = losses.sum(axis=1), np.diag(fit.w @ h)
    else:
        p, own = softmax(scores, axis=1), fit.y[:, None] == np.arange(len(b))
        top = scores.max(axis=1)
        loss = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - scores[own]
        slope, H = p - own, np.diag(fit.w @ p) - (p * fit.w[:, None]).T @ p
    weighted = slope * fit.w[:, None]
    return ConvexSums(float(fit.w @ loss), weighted.T @ fit.X, weighted.sum(axis=0), H)


def _targets(fit: ConvexFit) -> Array:
    """What each score is to say (n, k): the target itself, or which of several classes a row is of."""
    return fit.y[:, None] if len(fit.coef) == 1 else (fit.y[:, None] == np.arange(len(fit.coef))).astype(np.float64)


def best_intercepts(fit: ConvexFit, tuning: ProofTuning = ProofTuning()) -> ConvexSums:
    """The sums at the best intercepts, by Newton's method; the last of a softmax keeps its own."""
    b, m = fit.intercept.copy(), len(fit.coef) - (fit.family == "softmax")
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
    moves = fit.free_intercept or fit.bias > 0
    pull = fit.lam / fit.bias**2 if fit.bias else 0.0
    ridge = np.tile(np.append(np.full(d, fit.lam), pull if moves else 1e300), k)
    # The intercepts of a softmax have no common part: a ridge on it changes nothing else.
    ridge += np.tile(np.append(np.zeros(d), 1e-9 * fit.w.sum()), k) * (fit.family == "softmax")
    side = np.sign(fit.coef) if fit.lam1 > 0 else np.ones((k, d))
    for _ in range(tuning.steps):
        here = measure(fit, fit.intercept)
        pulled = here.g + fit.lam * fit.coef + fit.lam1 * side
        slope = np.column_stack([pulled, here.off + pull * fit.intercept]).ravel()
        curved = _row_curvatures(fit)  # (n, k, k)
        H = np.einsum("nab,ni,nj->aibj", curved, Z, Z, optimize=True).reshape(len(slope), len(slope)) + np.diag(ridge)
        free, step = np.flatnonzero(np.column_stack([side, np.ones(k)])), np.zeros((k, d + 1))
        step.flat[free] = np.linalg.solve(H[np.ix_(free, free)], slope[free])
        fit = fit._replace(coef=fit.coef - step[:, :-1], intercept=fit.intercept - step[:, -1] * moves)
        if fit.lam1 > 0:  # what would change its side is 0
            side = np.where(fit.coef * side > 0, side, 0.0)
            fit = fit._replace(coef=np.where(side != 0, fit.coef, 0.0))
        if np.abs(step).max() < 1e-10:
            break
    return fit


def _row_curvatures(fit: ConvexFit) -> Array:
    """The curvature of every row's weighted loss in its scores (n, k, k)."""
    scores = fit.X @ fit.coef.T + fit.intercept
    if fit.family != "softmax":
        further = () if fit.theta is None else (fit.theta,)
        h = fit.w[:, None] * LOSSES[fit.family](scores, _targets(fit), *further)[2]
        return h[:, :, None] * np.eye(h.shape[1])
    p = softmax(scores, axis=1)
    return fit.w[:, None, None] * (p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :])


def lower_bound(fit: ConvexFit, best: ConvexSums, objective: float) -> float:
    """What no parameters can be below, where some have this objective."""
    g = fit.slopes(best)
    over = np.maximum(np.abs(g) - fit.lam1, 0.0)
    least = float((over**2).sum()) / (2 * fit.lam) if fit.lam > 0 else float(over.max()) * objective / fit.lam1
    return best.loss - float(g @ fit.penalised) - least


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
            here = measure(fit, fit.intercept)
            near = find_witness(fit, tuning)
            found = [(point, best_intercepts(point, tuning)) for point in ((fit,) if near is fit else (fit, near))]
            objective = here.loss + fit.penalty
            witness, best = max(found, key=lambda p: np.nan_to_num(lower_bound(p[0], p[1], objective), nan=-np.inf))
        except np.linalg.LinAlgError:
            return {"form": "none", "why": "numbers overflow"}
    bound = lower_bound(witness, best, objective)
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
        "lam1": fit.lam1,
        "k": len(fit.coef),
        "free_intercept": fit.free_intercept,
        "bias": fit.bias,
        "unit": fit.unit,
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
        "slopes": _packed_bytes(witness.slopes(best)),
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
