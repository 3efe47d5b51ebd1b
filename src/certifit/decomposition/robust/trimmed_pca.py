"""Trimmed principal component analysis, certified: PCA of the rows that lie nearest to the plane.

    min over planes (m, B) and row weights 0 <= v <= w, Σ v = keep Σ w, of  Σ vᵢ |(I - BᵀB)(xᵢ - m)|²

A share 1 - keep of the rows may be arbitrary outliers without effect on the plane. `concentration_steps` lowers the
objective; rows may be in memory, in files or on Dask.
Reference: Maronna, Principal components and orthogonal regression based on robust scales (2005).
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.decomposition import pca as pca_certificates
from certifit.checkers.decomposition import trimmed_pca as certificates
from certifit.core import Attributes, Certificate, Check, Estimator, Objective, Solution, fixed_point
from certifit.core.settings import LOOP, Setting, Settings
from certifit.decomposition.pca.linear_codes import LinearCodes
from certifit.decomposition.robust.concentration_steps import (
    ConcentrationSteps,
    KeptRows,
    TrimmedTuning,
    best_start,
    nearest_weights,
    row_weights,
    squared_distances,
)
from certifit.exceptions import DataError
from certifit.rows import Array, Rows

PLANE = (
    "components_", "mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_",
)  # fmt: skip


class TrimmedPCA(LinearCodes, Estimator):
    """PCA of the rows nearest to the plane: least trimmed squares.

    Parameters
    ----------
    n_components : int, default=2
    keep : float in (0, 1], default=0.75
        Share of the total weight that is kept. A row at the border may be kept in part.
    n_init : int, default=10
        Random starts, besides the one from the directions of the rows about their median. The start that is best
        after two steps on at most 4096 rows is continued.
    tol : float, default=1e-9
        Stop when keeping other rows lowers the objective by at most this share.
    max_iter : int, default=100
        Most concentration steps after the first.
    max_time : float or None, default=None
        Seconds after which the best plane so far is returned.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_, noise_variance_ :
        as PCA's, of the rows kept. (Variances are those of the middle of the data, not scaled up.)
    weights_ : (n,) the sample weight of rows that are kept, 0 of others, a part of it at the border
    support_ : (n,) bool, whether a row is kept, at least in part
    errors_ : (n,) squared distance of each row to the plane
    threshold_ : float, the largest error of a row kept
    n_components_, n_samples_ : int
    n_iter_ : int (diagnostic)
    history_ : tuple of Mark, the objective and the (relative) gain still promised at each pass (diagnostic)
    certificate_ : Certificate, `stationary`: other starts may lead to a better plane

    Notes
    -----
    Rows are kept by their distance to the plane. A tight cluster far away lies near a plane with an axis towards it,
    and may be kept for that: ask for no more components than are needed.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import TrimmedPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)) * [5.0, 1.0, 0.1]
    >>> X[:40] += [0.0, 0.0, 50.0]  # a fifth of the rows is wrong
    >>> model = TrimmedPCA(n_components=1, random_state=0).fit(X)
    >>> np.abs(model.components_).round(1)
    array([[1., 0., 0.]])
    >>> bool(model.support_[:40].any()), model.certificate_.holds
    (False, True)
    """

    sparse = True
    settings: ClassVar[Settings] = {
        **LOOP,
        "n_components": Setting(int, least=1),
        "n_init": Setting(int, least=0),
        "keep": Setting(float, above=0, most=1, fix="It is the share of the rows to keep."),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    _tuning: ClassVar[TrimmedTuning] = TrimmedTuning()

    def __init__(
        self, n_components=2, *, keep=0.75, n_init=10, tol=1e-9, max_iter=100, max_time=None, random_state=None
    ):
        self.n_components = n_components
        self.keep = keep
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        self._check_components(rows)
        w = rows.map(row_weights)
        if not self.keep * w.sum() > 1:
            raise DataError(
                got=f"a weight of {self.keep * w.sum():g} to keep (n_samples={rows.n_rows})",
                wanted="more than 1 sample: a variance needs two",
                fix="Weights say how many times a row counts; do not normalise them.",
            )
        steps = ConcentrationSteps(rows, w, float(self.keep), int(self.n_components))
        random = check_random_state(self.random_state)
        start = steps.refit(best_start(steps, int(self.n_init), random, self._tuning))
        with self._watch.loop("concentration", self.max_iter, steps.attributes) as watch:
            found = fixed_point(
                steps.measure,
                partial(steps.update, self.tol),
                start,
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
                watcher=watch,
            )
        e = rows.map(partial(squared_distances, found.params.plane.mean, found.params.plane.B))
        fitted = {**steps.attributes(found.params), "errors_": e}
        return {
            **fitted,
            # The step from the best start counts too.
            "n_iter_": 1 + found.n_iter,
            "history_": found.history,
            "certificate_": self._certificate(rows, fitted, found, steps.rounding(found.params.plane)),
        }

    def _check_components(self, rows: Rows) -> None:
        most = min(rows.n_rows, rows.n_features)
        if self.n_components > most:
            shape = f"n_samples={rows.n_rows}, n_features={rows.n_features}"
            raise DataError(
                got=f"n_components={self.n_components}",
                wanted=f"at most the smaller of the table's sides ({shape})",
                fix="Ask for fewer components.",
            )

    def _certificate(self, rows: Rows, fitted: Attributes, found: Solution[KeptRows], rounding: float) -> Certificate:
        trace = np.array([mark.objective for mark in found.history])
        rise = float(((np.diff(trace) - rounding) / np.maximum(trace[:-1], np.finfo(float).tiny)).max(initial=0.0))
        limit = max(1e-9, 32 * float(np.finfo(rows.dtype).eps))
        parts = certificates.TrimmedPCAParts(
            float(self.keep),
            fitted["weights_"],
            fitted["errors_"],
            pca_certificates.PCAClaim(*(fitted[name] for name in PLANE)),
        )
        never_rose = Check("largest rise of the objective, relative", rise, limit)
        return certificates.certify(parts, self.tol, rows, (never_rose,))

    @property
    def support_(self) -> Array:
        """Whether each row is kept, at least in part."""
        check_is_fitted(self, "weights_")
        return self.weights_ > 0

    @property
    def threshold_(self) -> float:
        """The largest error of a row kept."""
        return float(self.errors_[self.support_].max())

    @property
    def n_samples_(self) -> int:
        """The number of rows."""
        check_is_fitted(self, "errors_")
        return len(self.errors_)

    def outlier_scores(self, X: Any) -> Array:
        """Return the squared distance of each row to the plane (n,); above `threshold_` a row is an outlier."""
        return self._rows(X).map(partial(squared_distances, self.mean_, self.components_))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the mean squared distance to the plane of the share `keep` of these rows that is nearest to it."""
        rows = self._rows(X, sample_weight=sample_weight)
        e, w = rows.map(partial(squared_distances, self.mean_, self.components_)), rows.map(row_weights)
        v = nearest_weights(e, w, float(self.keep))
        error = float(v @ e / v.sum())
        return Objective(error, error, 0.0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective on these rows."""
        return -self.objective(X, y, sample_weight).total
