"""The exact minimum of a quadratic with an L1 penalty, by searching for the signs of its coefficients.

With the signs given, the minimum is the solution of linear equations. Going towards it, the first coefficient that
reaches 0 leaves; at the solution, the coefficient at 0 whose slope exceeds the penalty most enters. Every step gains,
so no signs are solved for twice; where rounding brings some back, it hides what is left to gain. Collinear columns,
where coordinate descent creeps, take a few steps more: what the equations leave free is followed downhill until a
coefficient is 0.
Reference: Lee, Battle, Raina & Ng, Efficient sparse coding algorithms (2007), algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from certifit.rows import Array


@dataclass(frozen=True)
class SignSearchTuning:
    """How long the search goes on, and what it takes for rounding."""

    work: float = 3e9  # multiplications
    optimal: float = 1e-12  # of the penalty, by which a slope at 0 may exceed it
    regular: float = 1e-6  # smallest entry on the diagonal of a Cholesky factor, relative to the largest
    collinear: float = 1e-12  # eigenvalues below this share of the largest are 0
    downhill: float = 1e-8  # share of the slopes along collinear directions that is more than rounding


def search_signs(
    G: Array,
    c: Array,
    lam: Array,
    start: Array,
    positive: bool = False,
    tuning: SignSearchTuning = SignSearchTuning(),
) -> Array | None:
    """The β (d,) that minimises β'Gβ/2 - c·β + Σ λ|β|, from any start; `positive` allows no negative ones.

    None where the search does not end in time.
    """
    beta, sign, work, solved = start.copy(), np.sign(start), 0.0, set[bytes]()
    while work < tuning.work:
        here = np.flatnonzero(sign)
        work += float(len(here)) ** 3 + G.size
        H, x, s = G[np.ix_(here, here)], beta[here], sign[here]
        move, ends = _direction(H, c[here] - lam[here] * s - H @ x, tuning)
        falling = np.flatnonzero(s * move < 0)
        reach = -x[falling] / move[falling]
        step = min(reach.min(initial=np.inf), 1.0 if ends else np.inf)
        if not np.isfinite(step):
            return None
        gone = here[falling[reach <= step]]
        beta[here] = x + step * move
        beta[gone] = sign[gone] = 0.0
        if len(gone):
            continue
        signs = np.sign(beta).tobytes()
        if signs in solved:
            return beta
        solved.add(signs)
        slopes = c - G @ beta
        excess = np.where(sign == 0, slopes if positive else np.abs(slopes), 0.0) - lam
        excess[G.diagonal() <= 0] = -np.inf  # a column without spread stays at 0
        j = int(np.argmax(excess))
        if excess[j] <= tuning.optimal * (lam[j] + abs(c[j])):
            return beta
        sign[j] = np.sign(slopes[j])
    return None


def _direction(H: Array, g: Array, tuning: SignSearchTuning) -> tuple[Array, bool]:
    """A direction downhill from slopes g (a,), and whether the minimum lies at its end."""
    if not len(g):
        return g, True
    try:
        factor = cho_factor(H)
        sizes = np.abs(factor[0].diagonal())
        if sizes.min() > tuning.regular * sizes.max():
            return cho_solve(factor, g), True
    except LinAlgError:
        pass
    values, vectors = eigh(H)
    flat = values <= tuning.collinear * values[-1]
    along = vectors.T @ g
    if np.abs(along[flat]).max(initial=0.0) > tuning.downhill * np.abs(g).max():
        return vectors[:, flat] @ along[flat], False
    return vectors[:, ~flat] @ (along[~flat] / values[~flat]), True
