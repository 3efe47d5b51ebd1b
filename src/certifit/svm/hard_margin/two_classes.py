"""Two classes: the hyperplane half way between the nearest points of their hulls, or the point where these meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.plain.blocks import dense
from certifit.checkers.svm import hard_margin as certificates
from certifit.core import Solution
from certifit.exceptions import DataError, NoSolutionError
from certifit.rows import Array
from certifit.svm.hard_margin.nearest_points import HullPoints, NearestPointTuning, VectorSpace, separation
from certifit.svm.hard_margin.vector_spaces import ColumnSpace, KernelSpace, SpaceTuning
from certifit.svm.kernel.gram import KernelCache, gram_of
from certifit.svm.kernel.kernels import Linear
from certifit.svm.kernel.recheck import plain_of
from certifit.svm.kernel.training import TrainingRows


@dataclass(frozen=True)
class HardMarginTuning:
    """Numbers that steer how two classes are separated."""

    most_softened_rows: int = 5000  # of two classes that get a ridge where they cannot be separated
    soft_share: float = 1e-3  # the ridge, as a share of the mean square of these rows
    dense_columns: int = 1000  # up to which the rows of the working set are made dense where the table is sparse
    space: SpaceTuning = field(default_factory=SpaceTuning)
    hulls: NearestPointTuning = field(default_factory=NearestPointTuning)


@dataclass(frozen=True)
class SeparatedPair:
    """The machine of two classes, what it proves, and the loop that found it."""

    machine: certificates.HardMarginMachine
    findings: certificates.HardMarginFindings
    loop: Solution[Any] | None  # None while the loop runs
    softness: float  # the ridge of a row with weight 1


@dataclass(frozen=True)
class ClassPair:
    """The rows of two classes."""

    data: TrainingRows
    rows: Array  # (m,) their numbers among data's rows
    y: Array  # (m,) ±1
    softness: float  # the ridge of a row with weight 1
    linear: bool  # whether f is linear in the columns
    tuning: HardMarginTuning

    @property
    def ridge(self) -> Array:
        """What is added to k(x, x) of each row (m,)."""
        return self.softness / self.data.w[self.rows]

    def small_ridge(self) -> float:
        """A share of the mean square of the rows, about their mean where f is linear; 1 where they are all zero."""
        w = self.data.w[self.rows] / self.data.w[self.rows].sum()
        if not self.linear:
            gram = self.data.gram(self.rows, False)
            mean = float(w @ [float(gram.square(np.array([i]))[0, 0]) for i in range(len(w))])
        else:
            mean = _mean_square_about_mean(self.data.X[self.rows], w)
        return self.tuning.soft_share * mean if mean > 0 else 1.0

    def space(self, cache_size: float) -> VectorSpace:
        """The space of the columns where there is no ridge; else, and for kernels, that of inner products."""
        X, soft = self.data.X, self.softness > 0
        space = self.tuning.space
        if not self.linear or (sparse.issparse(X) and (soft or X.shape[1] > self.tuning.dense_columns)):
            return KernelSpace(KernelCache(self.data.gram(self.rows, False), cache_size), self.ridge, space)
        vectors = ColumnSpace(X[self.rows], space)
        if not soft:
            return vectors
        return KernelSpace(KernelCache(gram_of(vectors.X, Linear(), False), cache_size), self.ridge, space)

    def separate(self, space: VectorSpace, at: HullPoints, loop: Solution[Any] | None) -> SeparatedPair:
        """Make the machine of these points, scaled so that the nearest row of each class has y f + ridge y β = 1."""
        signed = self.y[at.rows] * at.share
        f, square = space.values(at.rows, signed)
        width, worst = separation(self.y, f)
        scale = 2.0 / (width if width > 0 else max(square, np.finfo(float).tiny))
        beta = np.zeros(len(self.rows))
        beta[at.rows] = scale * signed
        coef, level = None, scale * f[worst].sum()
        if self.linear:
            coef = scale * self._direction(space, at.rows, signed)
            level = (dense(self.data.X[self.rows[worst]]) @ coef).sum() + (self.ridge * beta)[worst].sum()
        machine = certificates.HardMarginMachine(self.rows, self.y, self.ridge, beta, -0.5 * float(level), coef)
        return SeparatedPair(machine, certificates.assess(machine, *self._table()), loop, self.softness)

    def _direction(self, space: VectorSpace, rows: Array, signed: Array) -> Array:
        """Σ signed x (d,) over these rows."""
        if isinstance(space, ColumnSpace):
            return space.direction(rows, signed)
        V = dense(self.data.X[self.rows[rows]])
        # Σ signed = 0: a common offset of the rows does not matter, and would cost digits
        return signed @ (V - V.mean(axis=0))

    def _table(self) -> tuple[Any, Callable[[Any, Any], Any] | None]:
        """The checker's table and kernel: rows and a function of them, or row numbers and a look-up of values."""
        X, kernel = plain_of(self.data)
        return X, None if self.linear else kernel

    def no_margin(self, space: VectorSpace, at: HullPoints, first: Any, second: Any) -> ValueError:
        """The error that shows where the hulls of classes `first` and `second` meet, or that nothing can be shown."""
        equal = self._equal_rows()
        rows, share = (at.rows, at.share) if equal is None else (equal, np.ones(2))
        sign, used = self.y[rows], self.data.used[self.rows]
        table, kernel = self._table()
        if self.linear and not isinstance(space, ColumnSpace):
            kernel = self.data.kernel
        witness = certificates.HullWitness(self.rows[rows], sign, share)
        proof = certificates.meeting_certificate(witness, table, self.rows, kernel, self.data.used)
        named = [_row_names(used[rows[sign == side]]) for side in (1.0, -1.0)]
        if equal is not None:
            got = f"{named[0]} of class {first!r} and {named[1]} of class {second!r}, which are the same"
        else:
            sure = proof.claim == certificates.HullClaim.MEET
            got = (
                f"classes {first!r} and {second!r} that cannot be separated"
                f"{'' if sure else ', or only by a margin that rounding hides'}: a convex combination of {named[0]} "
                f"{'meets' if sure else 'comes within rounding of'} one of {named[1]} (the certificate has shares)"
            )
        if not proof.proved:
            return DataError(
                got=f"classes {first!r} and {second!r} whose distance is lost in the rounding of inner products: "
                "neither a margin nor a point that they share can be shown",
                wanted="columns whose spread is not tiny beside their size",
                fix="Scale the columns to mean 0 and variance 1, or allow rows to miss their margin, by SVC(C=1.0) "
                "or ridge=1e-3.",
            )
        return NoSolutionError(
            f"Got {got}; wanted classes with a hyperplane between them. Allow rows to miss their margin, by "
            "SVC(C=1.0) or ridge=1e-3, or use more features or another kernel.",
            proof,
        )

    def _equal_rows(self) -> Array | None:
        """Two rows (2,) that are the same, one of each class, if there are any."""
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


def _mean_square_about_mean(X: Any, w: Array, entries: int = 2**21) -> float:
    """Σᵢ wᵢ |xᵢ - m|² of rows about their mean m, for weights of sum 1, in the digits of float64.

    So many entries at a time: sparse rows may have very many columns.
    """
    X, total, step = (sparse.csc_array(X) if sparse.issparse(X) else X), 0.0, max(1, entries // X.shape[0])
    for first in range(0, X.shape[1], step):
        columns = dense(X[:, first : first + step]).astype(np.float64)
        away = columns - w @ columns
        total += float((w @ away**2 - (w @ away) ** 2).sum())  # what means lost to rounding counts far from 0
    return total


def _row_names(rows: Array, shown: int = 6) -> str:
    """Row numbers in words, so many of them at most."""
    words = ", ".join(map(str, np.sort(rows)[:shown])) + (", …" if len(rows) > shown else "")
    return f"row {words}" if len(rows) == 1 else f"rows {words}"
