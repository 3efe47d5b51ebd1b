"""What a linear machine on Nyström features proves about the problem with the kernel itself.

Its scores are those of a function f of the kernel's space with |f| <= |β|, since the features are a projection: its
objective is one that the original problem reaches. From below, for all 0 <= aᵢ <= top uᵢ (with Σ aᵢ sᵢ = 0 where the
intercept is free), u = C w, s = ±1,

    optimum >= Σ [aᵢ (1 + e) - aᵢ² / (2κuᵢ)] - ½ |Σ aᵢ sᵢ φ(xᵢ)|² - ½ |Σ aᵢ sᵢ ψ'(xᵢ)|²,

ψ' the part of the kernel's own features that φ does not span, ψ'(x)·ψ'(z) = k(x, z) - φ(x)·φ(z). The length of that
last sum is at most the sum of its lengths over runs of rows, each of which needs the kernel values of that run only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from certifit.checkers.svm.linear_machines.claimed import ClaimedLinearSvm
from certifit.rows import Array, Block, Matrix, Rows, Sums

FeatureMap = Callable[[Block], Array]
TableKernel = Callable[[Matrix, Matrix], Array]


@dataclass(frozen=True)
class FeatureMachineTuning:
    """How the bound for the kernel itself is computed."""

    widths: tuple[float, ...] = tuple((10.0 ** -np.arange(0.0, 4.5, 0.5)).tolist())  # of the hinge's rounded kink
    run_rows: int = 1024  # rows of a run
    rounding: float = 1e-13  # of a run's squared length, relative


@dataclass(frozen=True)
class FeatureMachines:
    """Fitted linear machines on features."""

    claim: ClassVar[str] = (
        "losses and penalty within gap of their minimum, for the kernel that the features stand for"
    )
    coef: Array  # (k, m)
    intercept: Array  # (k,)
    spec: ClaimedLinearSvm
    features: FeatureMap
    tuning: FeatureMachineTuning = field(default_factory=FeatureMachineTuning)

    @property
    def shapes(self) -> list[ClaimedLinearSvm]:
        """Smooth losses whose slopes are dual points."""
        smooth = np.isfinite(self.spec.kappa)
        return [self.spec] if smooth else [self.spec._replace(kappa=0.5 / h, e=h) for h in self.tuning.widths]

    def runs(self, block: Block) -> Iterator[Block]:
        """The block in runs of a few rows."""
        for i in range(0, len(block.w), self.tuning.run_rows):
            part = slice(i, i + self.tuning.run_rows)
            yield Block(block.X[part], None if block.y is None else block.y[part], block.w[part], block.start + i)

    def sides(self, block: Block) -> tuple[Array, Array, Array]:
        """Features φ (rows, m), signs s (rows, k) and weights u (rows,) of the losses."""
        phi, k = self.features(block), len(self.coef)
        assert block.y is not None
        s = np.where(block.y[:, None] == (np.arange(k) if k > 1 else np.ones(1)), 1.0, -1.0)
        return phi, s, self.spec.C * block.w

    def slopes(self, phi: Array, s: Array, u: Array, shape: ClaimedLinearSvm) -> Array:
        """The dual point a (rows, k) that the slopes of a smooth loss give."""
        z = 1.0 - s * (phi @ self.coef.T + self.intercept)
        return u[:, None] * np.clip(shape.kappa * (z + shape.e), 0.0, shape.top)


@dataclass(frozen=True)
class FeatureDualSums(Sums):
    """Sums over rows by machine, smooth loss and sign s."""

    mass: Array  # (k, shapes, 2) Σ a
    soft: Array  # (k, shapes, 2) Σ a²/u
    v: Array  # (k, shapes, 2, m) Σ a s φ


def lower_bound(machines: FeatureMachines, kernel: TableKernel, rows: Rows) -> float:
    """Bound the sum of the optima with the kernel itself; y are class numbers, w include class weights."""
    spec = machines.spec
    sums = rows.sum(partial(_dual_sums, machines))
    share = np.ones_like(sums.mass)
    if spec.rho == 0:
        share = sums.mass.min(axis=2, keepdims=True) / np.where(sums.mass > 0, sums.mass, 1.0)
    linear = (1 + spec.e) * (share * sums.mass).sum(axis=2)  # (k, shapes)
    v = np.einsum("ijs,ijsm->ijm", share, sums.v)
    square = np.square(v).sum(axis=2) + (share**2 * sums.soft).sum(axis=2) / spec.kappa
    best = _scaled_bound(linear, square, spec).argmax(axis=1)
    each = np.arange(len(best))
    left = rows.sum(partial(_residual_lengths, machines, kernel, best, share[each, best]))
    found = _scaled_bound(linear[each, best], square[each, best] + left**2, spec)
    return float(found.sum())


def _scaled_bound(linear: Array, square: Array, spec: ClaimedLinearSvm) -> Array:
    """The bound at the best multiple of a dual point."""
    t = linear / np.where(square > 0, square, 1.0)
    t = np.minimum(t, 1.0) if np.isfinite(spec.top) else t
    return t * linear - 0.5 * t * t * square


def _dual_sums(machines: FeatureMachines, block: Block) -> FeatureDualSums:
    total: FeatureDualSums | None = None
    for run in machines.runs(block):
        phi, s, u = machines.sides(run)
        a = np.stack([machines.slopes(phi, s, u, shape) for shape in machines.shapes], axis=2)  # (rows, k, shapes)
        on = np.stack([a * (s > 0)[..., None], a * (s < 0)[..., None]], axis=3)
        v = np.tensordot(on, phi, (0, 0)) * np.array([1.0, -1.0])[:, None]
        soft = (on * on / np.where(u > 0, u, 1.0)[:, None, None, None]).sum(axis=0)
        found = FeatureDualSums(on.sum(axis=0), soft, v)
        total = found if total is None else total + found
    assert total is not None
    return total


def _residual_lengths(
    machines: FeatureMachines, kernel: TableKernel, best: Array, share: Array, block: Block
) -> Array:
    """Σ over runs of |Σ a s ψ'| for each machine (k,).

    best (k,) are the smooth losses to take, share (k, 2) factors for rows with s = 1 and s = -1.
    """
    total = np.zeros(len(best))
    for run in machines.runs(block):
        phi, s, u = machines.sides(run)
        a = np.stack([machines.slopes(phi, s, u, machines.shapes[j])[:, i] for i, j in enumerate(best)], axis=1)
        pull = a * np.where(s > 0, share[:, 0], -share[:, 1])
        used = np.flatnonzero(pull.any(axis=1))
        if len(used):
            X, pull = run.X[used], pull[used]
            whole = np.einsum("ij,ij->j", pull, kernel(X, X) @ pull)
            kept = np.square(phi[used].T @ pull).sum(axis=0)
            total += np.sqrt(np.maximum(whole - kept, 0.0) + machines.tuning.rounding * np.abs(whole))
    return total


def exact_kernel_fact(
    machines: FeatureMachines, kernel: TableKernel, rows: Rows, objective: float, error: float
) -> dict[str, float | str]:
    """What is proved about the kernel itself, as a fact; nothing where that is little.

    error is the mean of ψ'(x)·ψ'(x).
    """
    # Even if the lengths of runs added up like those of random signs, their sum would be too much.
    if objective * error > 2 * machines.tuning.run_rows:
        return {}
    gap = max(0.0, objective - lower_bound(machines, kernel, rows))
    if gap > 0.5 * objective:
        return {}
    return {"of the optimum with the kernel itself within": f"{gap:.3g} ({100 * gap / objective:.2g} %)"}
