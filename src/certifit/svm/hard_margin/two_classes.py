"""Two classes: the machine half way between the nearest points of their hulls, or the point where the hulls meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.plain.blocks import dense
from certifit.checkers.svm import hard_margin as certificates
from certifit.core import Solution
from certifit.exceptions import NoSolutionError
from certifit.rows import Array
from certifit.svm.hard_margin.kernel_vectors import KernelSpace, Vectors
from certifit.svm.hard_margin.nearest_points import Point, Space, between
from certifit.svm.kernel.gram import KernelCache, gram_of
from certifit.svm.kernel.kernels import Linear
from certifit.svm.kernel.recheck import plain_of
from certifit.svm.kernel.training import CheckedMachine, TrainingRows

WIDE = 1000  # columns of sparse rows, up to which those that matter are made dense
SHOWN = 6  # row numbers of a witness that are named


Separated = CheckedMachine[certificates.Machine, certificates.Judged]


@dataclass(frozen=True)
class Pair:
    """The rows of two classes."""

    data: TrainingRows
    rows: Array  # (m,) their numbers among data's rows
    y: Array  # (m,) ±1
    ridge: Array  # (m,)
    linear: bool  # in the space of the columns

    def space(self, cache_size: float) -> Space:
        X, soft = self.data.X, bool(self.ridge.any())
        if not self.linear or (sparse.issparse(X) and (soft or X.shape[1] > WIDE)):
            return KernelSpace(KernelCache(self.data.gram(self.rows, False), cache_size), self.ridge)
        vectors = Vectors(X[self.rows])
        if not soft:
            return vectors
        return KernelSpace(KernelCache(gram_of(vectors.X, Linear(), False), cache_size), self.ridge)

    def separated(self, space: Space, at: Point, loop: Solution[Any] | None) -> Separated:
        """The machine at these shares, scaled so that the nearest row of each class has y f = 1 (with its ridge)."""
        signed = self.y[at.rows] * at.share
        f, square = space.values(at.rows, signed)
        width, worst = between(self.y, f)
        scale = 2.0 / (width if width > 0 else max(square, np.finfo(float).tiny))
        beta = np.zeros(len(self.rows))
        beta[at.rows] = scale * signed
        coef, level = None, scale * f[worst].sum()
        if self.linear:
            coef = scale * self._direction(space, at.rows, signed)
            level = (dense(self.data.X[self.rows[worst]]) @ coef).sum() + (self.ridge * beta)[worst].sum()
        machine = certificates.Machine(self.rows, self.y, self.ridge, beta, -0.5 * float(level), coef)
        return Separated(machine, certificates.judge(machine, *self._table()), loop)

    def _direction(self, space: Space, rows: Array, signed: Array) -> Array:
        """Σ signed x."""
        if isinstance(space, Vectors):
            return space.direction(rows, signed)
        V = dense(self.data.X[self.rows[rows]])
        return signed @ (V - V.mean(axis=0))  # Σ signed = 0: an offset does not matter, and must not cancel

    def _table(self) -> tuple[Any, Callable[[Any, Any], Any] | None]:
        """What the checker looks at: rows and their kernel, or row numbers and where to look up a kernel value."""
        X, kernel = plain_of(self.data)
        return X, None if self.linear else kernel

    def inseparable(self, space: Space, at: Point, first: Any, second: Any) -> NoSolutionError:
        """The error that shows where the hulls of classes `first` and `second` meet."""
        twins = self._twins()
        rows, share = (at.rows, at.share) if twins is None else (twins, np.ones(2))
        sign, used = self.y[rows], self.data.used[self.rows]
        table, kernel = self._table()
        if self.linear and not isinstance(space, Vectors):
            kernel = self.data.kernel
        proof = certificates.meeting(self.rows[rows], sign, share, table, self.rows, kernel, self.data.used)
        named = [_named(used[rows[sign == side]]) for side in (1.0, -1.0)]
        if twins is not None:
            got = f"{named[0]} of class {first!r} and {named[1]} of class {second!r}, which are the same"
        else:
            sure = proof.claim == certificates.MEET
            got = (
                f"classes {first!r} and {second!r} that cannot be separated"
                f"{'' if sure else ', or only by a margin that rounding hides'}: a convex combination of {named[0]} "
                f"{'meets' if sure else 'comes within rounding of'} one of {named[1]} (the certificate has shares)"
            )
        return NoSolutionError(
            f"Got {got}; wanted classes with a hyperplane between them. Allow rows to miss their margin, by "
            "SVC(C=1.0) or ridge=1e-3, or use more features or another kernel.",
            proof,
        )

    def _twins(self) -> Array | None:
        """Two rows that are the same, one of each class, if there are any."""
        X = self.data.X[self.rows]
        if sparse.issparse(X):
            X = X.tocsr()
            X.sort_indices()
            keys = [
                (X.indices[a:b].tobytes(), X.data[a:b].tobytes())
                for a, b in zip(X.indptr, X.indptr[1:], strict=False)
            ]
        else:
            keys = [row.tobytes() for row in np.ascontiguousarray(X + 0.0)]  # + 0.0: -0.0 is 0.0
        seen: dict[Any, int] = {}
        for i, key in enumerate(keys):
            other = seen.setdefault(key, i)
            if self.y[other] != self.y[i]:
                return np.array([other, i])
        return None


def _named(rows: Array) -> str:
    words = ", ".join(map(str, np.sort(rows)[:SHOWN])) + (", …" if len(rows) > SHOWN else "")
    return f"row {words}" if len(rows) == 1 else f"rows {words}"
