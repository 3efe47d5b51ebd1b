"""Machines on Nyström features N k(L, x), measured on kernel values: N is applied to sums over rows, not to each row.

Scores β·N k(L, x) are those of coefficients Nᵀβ of the kernel values; Σ a N k(L, x) is N times a sum of these, and a
Hessian has N on both sides. A pass then costs little more than the kernel values themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.rows import Array, Matrix, Rows
from certifit.svm.linear.primal_sums import MachineSums, PrimalQuery, PrimalSums, SvmWorkingSet, measure_block
from certifit.svm.linear.solve import PrimalSvmProblem

TAME = 1e3  # |N| √k(x, x) up to which nothing cancels in N times a sum


@dataclass(frozen=True, kw_only=True)
class NystroemProblem(PrimalSvmProblem):
    """`rows` are features, `kernel_rows` the kernel values they are made of."""

    kernel_rows: Rows
    N: Array  # (m, m)
    K: Array  # (m, m) of the landmarks

    def sums(self, queries: tuple[PrimalQuery, ...]) -> MachineSums:
        svm = self.goal.svm
        back = None if svm.shift is None else self.K @ (self.N @ svm.shift)  # N back = shift
        pulled = tuple(query._replace(theta=self._applied(self.N.T, query.theta)) for query in queries)
        found = self.kernel_rows.sum(partial(measure_block, pulled, svm._replace(shift=back)))
        return MachineSums(tuple(map(self._pushed, found.each)))

    def _pushed(self, s: PrimalSums) -> PrimalSums:
        apply = partial(self._applied, self.N)
        working = replace(s.working, A=apply(s.working.A)) if isinstance(s.working, SvmWorkingSet) else s.working
        H = apply(apply(s.H).T) if isinstance(s.H, np.ndarray) else s.H
        return replace(s, v=apply(s.v), H=H, working=working)

    def _applied(self, N: Array, v: Array) -> Array:
        """N v for each v (…, d1), the intercept's part as it is."""
        m = len(N)
        return np.concatenate([v[..., :m] @ N.T, v[..., m:]], axis=-1)


def is_tame(N: Array, K: Matrix) -> bool:
    """Whether sums of kernel values lose too few digits to matter where N is applied to them."""
    return bool(np.linalg.norm(N, 2) * np.sqrt(np.diag(K).max()) <= TAME)
