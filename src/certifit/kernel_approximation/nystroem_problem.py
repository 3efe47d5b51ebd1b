"""Linear machines on Nyström features N k(L, x), where N is applied to sums over rows and not to each row.

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


@dataclass(frozen=True, kw_only=True)
class NystroemProblem(PrimalSvmProblem):
    """A linear machine's problem; `rows` are features, `kernel_rows` the kernel values k(L, x) they are made of."""

    kernel_rows: Rows
    N: Array  # (m, m)
    K: Array  # (m, m) of the landmarks

    def sums(self, queries: tuple[PrimalQuery, ...], sized: bool = False) -> MachineSums:
        svm = self.goal.svm
        back = None if svm.shift is None else self.K @ (self.N @ svm.shift)  # N back = shift
        of_values = tuple(query._replace(theta=self._applied(self.N.T, query.theta)) for query in queries)
        found = self.kernel_rows.sum(partial(measure_block, of_values, svm._replace(shift=back), sized=sized))
        sizes = found.sizes
        if sizes is not None:  # |N k| <= |N| |k|, and so for the roundings of N Σ a k
            sizes = replace(sizes, rows=float(np.square(self.N).sum()) * sizes.rows)
        return MachineSums(tuple(map(self._of_features, found.each)), sizes)

    def _of_features(self, s: PrimalSums) -> PrimalSums:
        """Turn sums of kernel values into sums of features."""
        apply = partial(self._applied, self.N)
        working = replace(s.working, A=apply(s.working.A)) if isinstance(s.working, SvmWorkingSet) else s.working
        H = apply(apply(s.H).T) if isinstance(s.H, np.ndarray) else s.H
        return replace(s, v=apply(s.v), H=H, working=working)

    def _applied(self, N: Array, v: Array) -> Array:
        """N v for each v (…, d1), the intercept's part as it is."""
        m = len(N)
        return np.concatenate([v[..., :m] @ N.T, v[..., m:]], axis=-1)


def is_well_conditioned(N: Array, K: Matrix, most: float) -> bool:
    """Whether |N| √k(x, x) is so small that N may be applied to sums of kernel values without losing digits."""
    return bool(np.linalg.norm(N, 2) * np.sqrt(np.diag(K).max()) <= most)
