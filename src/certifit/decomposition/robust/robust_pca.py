"""Robust principal component analysis: a low-rank table plus a few gross errors, certified.

    min over L + S = X - centre of  |L|_* + λ |S|_1

Errors may be of any size: if few entries are wrong and L is spread over its rows and columns, the solution is the
true L exactly (Candès et al. 2011). The problem is convex, and a dual point gives a lower bound on its optimum. A row
of weight w counts as w equal rows: |diag(√w) L|_* + λ Σ wᵢ |S_ij|.
References: Candès, Li, Ma & Wright, Robust principal component analysis? (2011); for the method,
`principal_component_pursuit`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import svd
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.decomposition import robust_pca as certificates
from certifit.core import Attributes, Estimator, Objective, ResumableUpdate, certified, fixed_point
from certifit.core.settings import LOOP, Setting, Settings
from certifit.decomposition.pca.linear_codes import LinearCodes
from certifit.decomposition.pca.principal_axes import fix_signs
from certifit.decomposition.robust.principal_component_pursuit import Pursuit, PursuitState, PursuitTuning
from certifit.decomposition.robust.weighted_median import weighted_medians
from certifit.exceptions import DataError
from certifit.numerics.moments import check_overflow
from certifit.rows import Array, Block, Rows


class RobustPCA(LinearCodes, Estimator):
    """Principal component pursuit, which splits a table into a low-rank part and a sparse part.

    It needs about a dozen float64 arrays of the table's size. Where whole rows are wrong, or tables are long, use
    TrimmedPCA.

    Parameters
    ----------
    lam : float or None, default=None
        Weight of the sparse part in the objective. None is 1 / √max(n, d) with n the total weight, the choice for
        which recovery is proved.
    center : bool, default=True
        Split X minus its columns' medians (gross errors would change means), so that components are directions of
        variation. False splits X itself.
    tol : float, default=1e-6
        Stop when the objective is proved to be within this share of the optimum.
    max_iter : int, default=2000
    max_time : float or None, default=None
        Seconds after which the best split so far is returned.

    Attributes
    ----------
    low_rank_, sparse_ : (n, d); they add up to X, the centre being in the low-rank part
    components_ : (k, d) right singular vectors of the low-rank part about the centre; k, its rank, is found
    singular_values_, explained_variance_, explained_variance_ratio_ : (k,) of the low-rank part about the centre
    mean_ : (d,) the centre: medians, or zeros
    n_components_, n_samples_ : int
    n_iter_ : int (diagnostic)
    lam_ : float
    dual_ : (n, d) the dual point that proves the lower bound
    history_ : tuple of Mark, the objective and its proved gap (relative) at each iteration (diagnostic)
    certificate_ : Certificate

    Notes
    -----
    A row of weight 0 is left out of the problem; its low-rank part is its projection on the components. `transform`
    projects as PCA's does, so that gross errors in new rows change their codes. To clean new rows, fit them too.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import RobustPCA
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    >>> wrong = 100.0 * (rng.random((60, 40)) < 0.05)
    >>> model = RobustPCA(center=False).fit(truth + wrong)
    >>> model.n_components_, bool(np.allclose(model.low_rank_, truth, atol=0.01))
    (2, True)
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    """

    settings: ClassVar[Settings] = {
        **LOOP,
        "lam": Setting(float, above=0, below=math.inf, none=True, fix="None stands for 1 / sqrt(max(n, d))."),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    _tuning: ClassVar[PursuitTuning] = PursuitTuning()

    def __init__(self, lam=None, *, center=True, tol=1e-6, max_iter=2000, max_time=None):
        self.lam = lam
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        data = rows.load()
        table = _prepare(np.asarray(data.X, dtype=np.float64), data.w, self.lam, self.center)
        pursuit = Pursuit(table.Z, table.lam * table.root, table.size, self._tuning)
        attributes = partial(_attributes, table)
        with self._watch.loop("pursuit", self.max_iter, attributes) as watch:
            found = fixed_point(
                pursuit.measure,
                ResumableUpdate(pursuit.update),
                pursuit.start(table.mu),
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
                watcher=watch,
            )
        fitted = attributes(found.params)
        names = ("low_rank_", "sparse_", "components_", "singular_values_", "mean_", "dual_")
        L, S, B, sigma, centre, Y = (fitted[name] for name in names)
        settings = table.lam, bool(self.center), self.lam, fitted["explained_variance_"]
        parts = certificates.RobustPCAParts(L, S, B, sigma, centre, Y, *settings)
        return {
            **fitted,
            "n_iter_": found.n_iter,
            "history_": found.history,
            "certificate_": certified(certificates.certify, parts, self.tol, data),
        }

    @property
    def explained_variance_ratio_(self) -> Array:
        """The share of each component in the variance of the low-rank part."""
        check_is_fitted(self, "singular_values_")
        share = (self.singular_values_ / np.max(self.singular_values_, initial=np.finfo(float).tiny)) ** 2
        return share / (share.sum() or 1.0)

    @property
    def n_samples_(self) -> int:
        """The number of rows."""
        check_is_fitted(self, "low_rank_")
        return len(self.low_rank_)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return |L|_* + λ |S|_1 on the rows of the fit; other rows have no low-rank part."""
        rows = self._rows(X, sample_weight=sample_weight)
        if rows.n_rows != len(self.low_rank_):
            raise DataError(
                got=f"{rows.n_rows} rows", wanted=f"the {len(self.low_rank_)} rows that the model was fitted on"
            )
        data = rows.load()
        nuclear = float(svd(np.sqrt(data.w)[:, None] * (self.low_rank_ - self.mean_), compute_uv=False).sum())
        sizes = self.lam_ * float(data.w @ np.abs(data.X - self.low_rank_).sum(axis=1))
        return Objective(nuclear + sizes, sizes, nuclear)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean absolute error of rows rebuilt from their codes."""
        return -float(self._rows(X).map(partial(_mean_absolute_errors, self.mean_, self.components_)).mean())


class _PreparedTable(NamedTuple):
    """The rows that the pursuit works on: centred, with entries of size about 1, without rows of weight 0."""

    X: Array  # (n, d) as given
    centre: Array  # (d,)
    used: Array  # (n,) whether w > 0
    root: Array  # (m, 1) √w of the m rows in use
    size: float  # a power of two
    Z: Array  # (m, d) √w (x - centre) / size
    lam: float
    mu: float  # penalty parameter at the start
    weight: float  # Σ w


def _prepare(X: Array, w: Array, lam: float | None, center: bool) -> _PreparedTable:
    """Centre and scale the rows of positive weight, and choose λ and the first μ."""
    weight, d = float(w.sum()), X.shape[1]
    if not weight > 1:
        raise DataError(
            got=f"a total weight of {weight:g} (n_samples={len(X)})",
            wanted="more than 1 sample: a variance needs two",
            fix="Weights say how many times a row counts; do not normalise them.",
        )
    used = w > 0
    w = w[used]
    centre = weighted_medians(X[used], w) if center else np.zeros(d)
    with np.errstate(over="ignore"):
        Z = X[used] - centre
        largest = np.abs(Z).max()
        check_overflow(largest**2 * weight * d)
    size = 2.0 ** (math.frexp(largest)[1] - 1) if largest > 0 else 1.0
    Z /= size
    sizes = float(w @ np.abs(Z).sum(axis=1))
    # The choice of Candès et al. (2011).
    mu = weight * d / (4 * sizes) if sizes > 0 else 1.0
    lam = 1 / math.sqrt(max(weight, d)) if lam is None else float(lam)
    root = np.sqrt(w)[:, None]
    return _PreparedTable(X, centre, used, root, size, root * Z, lam, mu, weight)


def _attributes(table: _PreparedTable, at: PursuitState) -> Attributes:
    """Return the fitted attributes at a state of the pursuit."""
    _, sigma, turn = svd(at.L.left * table.size, full_matrices=False)
    rank = int((sigma > max(table.Z.shape) * np.finfo(float).eps * sigma.max(initial=0.0)).sum())
    sigma, B = sigma[:rank], fix_signs(turn[:rank] @ at.L.axes.T)
    L = (at.L.left @ at.L.axes.T) * table.size
    X, centre, used = table.X, table.centre, table.used
    low_rank, dual = np.empty_like(X), np.zeros_like(X)
    low_rank[used], dual[used] = centre + L / table.root, table.root * at.dual
    low_rank[~used] = centre + (X[~used] - centre) @ B.T @ B
    return {
        "low_rank_": low_rank,
        "sparse_": X - low_rank,
        "components_": B,
        "singular_values_": sigma,
        "explained_variance_": sigma**2 / (table.weight - 1),
        "mean_": centre,
        "lam_": table.lam,
        "dual_": dual,
    }


def _mean_absolute_errors(mean: Array, B: Array, block: Block) -> Array:
    """Return the mean absolute error of each row rebuilt from its code."""
    Z = block.X - mean
    return np.abs(Z - Z @ B.T @ B).mean(axis=1)
