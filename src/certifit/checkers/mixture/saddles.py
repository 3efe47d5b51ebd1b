"""Components of a mixture that are equal: EM never parts them, though parted they may be likelier by far.

Where all components, or some, have the same density, one more EM step gains nothing: the mixture is at rest, but at a
saddle. The test is the same for fits and for audits. Rows of equal components are dealt out among them, in slices
along the leading axis of these rows; if a few EM steps from there climb above the fitted mixture, it was a saddle.
Components without rows are tested together with the heaviest one, which they could share. Components whose densities
differ are not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import logsumexp

from certifit.core import Check
from certifit.rows import Array, Rows

P = TypeVar("P")


@dataclass(frozen=True)
class SaddleTuning:
    """Which components count as equal, and how far they are followed after they were parted."""

    equal: float = 0.2  # nats by which the densities of equal components differ on average, on their rows
    no_weight: float = 1e-9  # weight of a component without rows
    own: float = 0.9  # part of a row that its slice's component gets; the rest is shared
    steps: int = 12  # EM steps after components were parted
    falling: float = 1e-3  # share of what was gained that a last step may take back
    sample_rows: int = 2048  # rows from which slices are found


class ComponentSlices(NamedTuple):
    """Equal components, and how rows are dealt out among them."""

    members: Array  # (m,) their numbers
    centre: Array  # (d,)
    axis: Array  # (d,)
    cuts: Array  # (m - 1,) between slices, ascending
    own: float

    def deal(self, X: Array, R: Array) -> Array:
        """Return responsibilities (k, n) in which rows X (n, d) of the members belong to those of their slices."""
        m = len(self.members)
        place = np.nan_to_num(np.asarray(X, np.float64) - self.centre) @ self.axis
        mine = np.arange(m)[:, None] == np.searchsorted(self.cuts, place)
        out = R.copy()
        out[self.members] = R[self.members].sum(axis=0) * ((1 - self.own) / m + self.own * mine)
        return out

    @property
    def words(self) -> str:
        return " and ".join([", ".join(map(str, self.members[:-1])), str(self.members[-1])])


def least_gain(tol: float, objective: float, rounding: float, tuning: SaddleTuning = SaddleTuning()) -> float:
    """Return what parting has to gain, nats a row: more than as many EM steps of at most `tol` could without it.

    It is the difference of two objectives of about this size, which are known to 11 digits and up to `rounding`, what
    the last digits of the parameters may change.
    """
    return (tuning.steps + 1) * tol + 1e-10 + min(1e-11 * abs(objective) + rounding, 0.01)


def saddle_sample(rows: Rows, tuning: SaddleTuning = SaddleTuning()) -> tuple[Array, Array]:
    """Return evenly spaced rows (n, d) and their weights (n,), of which those that count."""
    sample = rows.load() if rows.n_rows <= tuning.sample_rows else rows.thin(-(-rows.n_rows // tuning.sample_rows))
    X = np.asarray(sample.X.toarray() if hasattr(sample.X, "toarray") else sample.X, np.float64)
    some = (sample.w > 0) & ~np.isnan(X).all(axis=1)
    return X[some], sample.w[some]


def equal_components(
    log_f: Array, weights: Array, X: Array, w: Array, tuning: SaddleTuning = SaddleTuning()
) -> list[ComponentSlices]:
    """Find groups of equal components, given log f_k (n, k) of rows X (n, d) with weights w (n,)."""
    if len(weights) == 1 or len(X) < 2:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = np.maximum(log_f, -1e300) + np.log(weights)
        R = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)) * w[:, None]
    empty = weights <= tuning.no_weight
    left, found = [int(a) for a in np.flatnonzero(~empty)], []
    heaviest = int(weights.argmax())
    while left:
        first = left[0]
        group = [b for b in left if b == first or _is_equal(log_f, R, first, b, tuning.equal)]
        left = [b for b in left if b not in group]
        members = np.array(sorted([*group, *np.flatnonzero(empty)] if heaviest in group else group))
        if len(members) > 1:
            found += _slices(members, R[:, members].sum(axis=1), X, tuning.own)
    return found


def _is_equal(log_f: Array, R: Array, a: int, b: int, most: float) -> bool:
    r = R[:, a] + R[:, b]
    with np.errstate(invalid="ignore"):
        apart = np.abs(log_f[:, a] - log_f[:, b])
    some = r > 0
    return bool(some.any() and r[some] @ apart[some] <= most * r.sum())


def _slices(members: Array, r: Array, X: Array, own: float) -> list[ComponentSlices]:
    """Cut the rows, weighted by r (n,), along their leading axis into as many slices as there are members."""
    here = ~np.isnan(X)
    n = np.maximum(r @ here, 1e-300)
    centre = r @ np.where(here, X, 0.0) / n
    Z = np.where(here, X - centre, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.sqrt(r @ Z**2 / n)
    scale = np.where((spread > 0) & np.isfinite(spread), 1 / np.where(spread > 0, spread, 1.0), 0.0)
    if not scale.any():
        return []
    U = Z * scale
    axis = np.linalg.eigh((U.T * r) @ U)[1][:, -1] * scale
    place = Z @ axis
    order = np.argsort(place, kind="stable")
    mass = np.cumsum(r[order])
    at = np.searchsorted(mass, mass[-1] * np.arange(1, len(members)) / len(members))
    return [ComponentSlices(members, centre, axis, place[order][np.minimum(at, len(order) - 1)], own)]


class PartedMixture(NamedTuple):
    """What parting components led to."""

    slices: ComponentSlices | None
    gain: float  # of the objective to be maximised, nats a row
    mixture: object


def best_parting(
    groups: Sequence[ComponentSlices],
    fitted: float,
    part: Callable[[ComponentSlices], P],
    step: Callable[[P], tuple[float, P]],
    enough: float,
    climbs: bool = True,
    tuning: SaddleTuning = SaddleTuning(),
) -> PartedMixture:
    """Part each group in turn and climb; return the first that climbs by more than `enough`, or else the best.

    `part` gives the mixture after rows were dealt out, `step` the objective of a mixture and its next EM step. Steps
    that do not always climb count where they end, and only if they do not fall back from there.
    """
    best = PartedMixture(None, 0.0, None)
    for slices in groups:
        at, before = part(slices), np.inf
        for i in range(tuning.steps):
            value, after = step(at)
            gain = value - fitted
            counts = climbs or (i == tuning.steps - 1 and before - value <= tuning.falling * gain)
            if counts and gain > best.gain:
                best = PartedMixture(slices, gain, at)
            if best.gain > enough:
                return best
            at, before = after, value
    return best


def saddle_check(found: PartedMixture, limit: float) -> Check:
    """Return the check that moving equal components apart gains nothing."""
    if found.slices is not None and found.gain > limit:
        return Check(f"a saddle: moving components {found.slices.words} apart gains, nats a row", found.gain, limit)
    return Check("gain from moving equal components apart, nats a row", found.gain, limit)
