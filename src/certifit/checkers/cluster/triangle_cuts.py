"""Triangle inequalities for the relaxation of k-means in `kmeans_sdp`, which bring its bound much closer.

With Z_ij = s_i s_j / W_a where rows i and j are both in cluster a, and else 0, put z_ij = Z_ij / (s_i s_j). If i goes
with j and with l, then j goes with l, so that z_ij + z_il <= z_ii + z_jl for every clustering. There are n³/2 of
these: those that are violated most are added as one goes (Piccialli, Sudoso & Wiegele, SOS-SDP: an exact solver for
minimum sum-of-squares clustering, 2022).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from certifit.rows import Array

MORE, EACH = 1000, 64  # inequalities added at a time, and of these most for any row i
VIOLATED = 1e-4  # by how much at least, as a share of an average entry
SWEEPS = 3  # steps of the multipliers between two of the rest


@dataclass
class Cuts:
    """Inequalities A z <= 0, z the entries of a matrix (n, n), with their multipliers."""

    s: Array  # (n,) √w
    rows: Array  # (m, 3) i, j, l
    multipliers: Array  # (m,) at least 0

    def __post_init__(self) -> None:
        s, n, (i, j, k) = self.s, len(self.s), self.rows.T
        at = np.column_stack([i * n + j, j * n + i, i * n + k, k * n + i, j * n + k, k * n + j, i * n + i])
        sizes = np.column_stack([s[i] * s[j], s[i] * s[j], s[i] * s[k], s[i] * s[k], -s[j] * s[k], -s[j] * s[k]])
        values = np.column_stack([0.5 / sizes, -1.0 / s[i] ** 2])
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        self.A = sparse.csr_array((values.ravel(), at.ravel(), np.arange(len(i) + 1) * 7), shape=(len(i), n * n))
        x = np.ones(len(i))
        for _ in range(12):  # towards the largest eigenvalue of AAᵀ
            x = self.A @ (self.A.T @ (x / np.linalg.norm(x))) if len(i) else x
        self.pace = 1.0 / np.linalg.norm(x) if len(i) else 0.0

    @classmethod
    def none(cls, w: Array) -> Cuts:
        return cls(np.sqrt(w), np.empty((0, 3), dtype=np.int64), np.empty(0))

    def pull(self) -> Array:
        """Σ multiplier x inequality, as a matrix (n, n)."""
        n = len(self.s)
        return (self.A.T @ self.multipliers).reshape(n, n)

    def project(self, V: Array) -> tuple[Array, Array]:
        """About the nearest matrix to V without negative entries that satisfies all, and the multiplier of that."""
        for _ in range(SWEEPS if len(self.rows) else 0):
            N = np.maximum(V - self.pull(), 0.0)
            self.multipliers = np.maximum(self.multipliers + self.pace * (self.A @ N.ravel()), 0.0)
        pull = self.pull()
        rest = V - pull
        return np.maximum(rest, 0.0), np.minimum(rest, 0.0) + pull

    def renew(self, N: Array) -> Cuts:
        """Without those that do nothing, with those that N (n, n) violates most."""
        s, n = self.s, len(self.s)
        z = N / np.outer(s, s)
        found, size = [], []
        for i in range(n):
            v = np.triu((z[i][:, None] + z[i] - z[i, i] - z) * np.outer(s, s) * s[i], 1)
            v[i] = v[:, i] = 0.0
            worst = np.argpartition(v, -EACH, axis=None)[-EACH:] if v.size > EACH else np.arange(v.size)
            found.append(np.column_stack([np.full(len(worst), i), worst // n, worst % n]))
            size.append(v.ravel()[worst])
        rows, v = np.concatenate(found), np.concatenate(size)
        order = np.argsort(-v, kind="stable")[:MORE]
        rows = rows[order[v[order] > VIOLATED / n]]
        kept = self.multipliers > 0
        known = np.ravel_multi_index(self.rows[kept].T, (n, n, n))
        rows = rows[~np.isin(np.ravel_multi_index(rows.T, (n, n, n)), known)]
        multipliers = np.append(self.multipliers[kept], np.zeros(len(rows)))
        return Cuts(s, np.concatenate([self.rows[kept], rows]), multipliers)
