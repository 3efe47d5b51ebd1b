"""Linear machines on Nyström features N k(L, x), where N is applied to sums over rows and not to each row.

Scores β·N k(L, x) are those of coefficients Nᵀβ of the kernel values; Σ a N k(L, x) is N times a sum of these, and a
Hessian has N on both sides. A pass then costs little more than the kernel values themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.rows import Array, Matrix, Rows
from certifit.svm.linear.block_statistics import Answers, Ask, Near, Pass, measure
from certifit.svm.linear.solve import Problem


@dataclass(frozen=True, kw_only=True)
class NystroemProblem(Problem):
    """A linear machine's problem; `rows` are features, `kernel_rows` the kernel values k(L, x) they are made of."""

    kernel_rows: Rows
    N: Array  # (m, m)
    K: Array  # (m, m) of the landmarks

    def sums(self, asks: tuple[Ask, ...]) -> Answers:
        loss, C, _, shift = self.aim
        back = None if shift is None else self.K @ (self.N @ shift)  # N back = shift
        of_values = tuple(ask._replace(theta=self._applied(self.N.T, ask.theta)) for ask in asks)
        found = self.kernel_rows.sum(partial(measure, of_values, loss, C, back, self.aim.intercept))
        return Answers(tuple(map(self._of_features, found.passes)))

    def _of_features(self, s: Pass) -> Pass:
        """Turn sums of kernel values into sums of features."""
        apply = partial(self._applied, self.N)
        near = replace(s.near, A=apply(s.near.A)) if isinstance(s.near, Near) else s.near
        H = apply(apply(s.H).T) if isinstance(s.H, np.ndarray) else s.H
        return replace(s, v=apply(s.v), H=H, near=near)

    def _applied(self, N: Array, v: Array) -> Array:
        """N v for each v (…, d1), the intercept's part as it is."""
        m = len(N)
        return np.concatenate([v[..., :m] @ N.T, v[..., m:]], axis=-1)


def is_well_conditioned(N: Array, K: Matrix, most: float) -> bool:
    """Whether |N| √k(x, x) is so small that N may be applied to sums of kernel values without losing digits."""
    return bool(np.linalg.norm(N, 2) * np.sqrt(np.diag(K).max()) <= most)
