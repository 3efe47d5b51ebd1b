"""Triangle inequalities for the relaxation of k-means in `semidefinite_bound`, which bring its bound much closer.

With Z_ij = s_i s_j / W_a where rows i and j are both in cluster a, and else 0, put z_ij = Z_ij / (s_i s_j). If row i
is in a cluster with j and with l, then j is with l, so that z_ij + z_il <= z_ii + z_jl for every clustering. There
are n³/2 of these: those that are violated most are added in rounds (Piccialli, Sudoso & Wiegele, SOS-SDP: an exact
solver for minimum sum-of-squares clustering, 2022).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from certifit.rows import Array


@dataclass(frozen=True)
class CutTuning:
    """How many inequalities are added, and how their multipliers are improved."""

    added: int = 1000  # inequalities added in a round at most
    added_per_row: int = 64  # of these, for any row i at most
    violation: float = 1e-4  # by which an inequality is violated at least, as a share of an average entry
    sweeps: int = 3  # steps of the multipliers in each step of the alternating directions


@dataclass
class TriangleCuts:
    """Inequalities A z <= 0, z the entries of a matrix (n, n), with their multipliers."""

    s: Array  # (n,) √w
    rows: Array  # (m, 3) the rows i, j, l of each inequality
    multipliers: Array  # (m,) at least 0
    tuning: CutTuning = CutTuning()

    def __post_init__(self) -> None:
        s, n, (i, j, k) = self.s, len(self.s), self.rows.T
        at = np.column_stack([i * n + j, j * n + i, i * n + k, k * n + i, j * n + k, k * n + j, i * n + i])
        sizes = np.column_stack([s[i] * s[j], s[i] * s[j], s[i] * s[k], s[i] * s[k], -s[j] * s[k], -s[j] * s[k]])
        values = np.column_stack([0.5 / sizes, -1.0 / s[i] ** 2])
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        self.A = sparse.csr_array((values.ravel(), at.ravel(), np.arange(len(i) + 1) * 7), shape=(len(i), n * n))
        # The step size is 1 / the largest eigenvalue of AAᵀ, by power iteration.
        x = np.ones(len(i))
        for _ in range(12):
            x = self.A @ (self.A.T @ (x / np.linalg.norm(x))) if len(i) else x
        self.step_size = 1.0 / np.linalg.norm(x) if len(i) else 0.0

    @classmethod
    def none(cls, w: Array, tuning: CutTuning = CutTuning()) -> TriangleCuts:
        """Return no inequalities for rows of these weights (n,)."""
        return cls(np.sqrt(w), np.empty((0, 3), dtype=np.int64), np.empty(0), tuning)

    def weighted_sum(self) -> Array:
        """Return Σ multiplier x inequality, as a matrix (n, n)."""
        n = len(self.s)
        return (self.A.T @ self.multipliers).reshape(n, n)

    def project(self, V: Array) -> tuple[Array, Array]:
        """Return about the nearest matrix to V without negative entries that satisfies all, and its multiplier."""
        for _ in range(self.tuning.sweeps if len(self.rows) else 0):
            N = np.maximum(V - self.weighted_sum(), 0.0)
            self.multipliers = np.maximum(self.multipliers + self.step_size * (self.A @ N.ravel()), 0.0)
        cuts = self.weighted_sum()
        rest = V - cuts
        return np.maximum(rest, 0.0), np.minimum(rest, 0.0) + cuts

    def renew(self, N: Array) -> TriangleCuts:
        """Drop the inequalities with multiplier 0 and add those that N (n, n) violates most."""
        s, n, most = self.s, len(self.s), self.tuning.added_per_row
        z = N / np.outer(s, s)
        found, size = [], []
        for i in range(n):
            v = np.triu((z[i][:, None] + z[i] - z[i, i] - z) * np.outer(s, s) * s[i], 1)
            v[i] = v[:, i] = 0.0
            worst = np.argpartition(v, -most, axis=None)[-most:] if v.size > most else np.arange(v.size)
            found.append(np.column_stack([np.full(len(worst), i), worst // n, worst % n]))
            size.append(v.ravel()[worst])
        rows, v = np.concatenate(found), np.concatenate(size)
        order = np.argsort(-v, kind="stable")[: self.tuning.added]
        rows = rows[order[v[order] > self.tuning.violation / n]]
        kept = self.multipliers > 0
        known = np.ravel_multi_index(self.rows[kept].T, (n, n, n))
        rows = rows[~np.isin(np.ravel_multi_index(rows.T, (n, n, n)), known)]
        multipliers = np.append(self.multipliers[kept], np.zeros(len(rows)))
        return TriangleCuts(s, np.concatenate([self.rows[kept], rows]), multipliers, self.tuning)
