"""Trimmed principal component analysis: PCA of the rows that lie nearest to the plane, certified.

    min over planes (m, B) and row weights 0 <= v <= w, Σ v = keep Σ w, of  Σ vᵢ |(I - BᵀB)(xᵢ - m)|²

Up to a share 1 - keep of the rows may be anything at all and does not move the plane. Concentration steps: keep the
rows with the smallest errors, take their principal components, again; neither half can raise the objective. Each step
is two passes over the rows, which may be in memory, in files or on Dask; only one number per row is held.
References: Maronna, Principal components and orthogonal regression based on robust scales (2005); for concentration
steps and their starts, Rousseeuw & Van Driessen, A fast algorithm for the minimum covariance determinant estimator
(1999), and Computing LTS regression for large data sets (2006); for the first start, Locantore et al., Robust
principal component analysis for functional data (1999).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from certifit.checkers.decomposition import trimmed_pca as certificates
from certifit.core import Attributes, Certificate, Check, Estimator, Objective, Solution, Step, fixed_point
from certifit.core.settings import check_settings
from certifit.decomposition.pca.axes import LinearCodes
from certifit.decomposition.pca.spectrum import Ask, complete, decompose
from certifit.decomposition.robust.robust_pca import medians
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.rows.reweighted import ReweightedRows

SAMPLE, ENTRIES = 4096, 2**24  # rows on which starts are compared, fewer where they are very wide
STEPS = 2  # concentration steps of each start there
TIED = 1e-10  # errors this close, relative, are equal
FAR = 1e300  # an error too large to square


class TrimmedPCA(LinearCodes, Estimator):
    """PCA of the rows nearest to the plane: least trimmed squares.

    Parameters
    ----------
    n_components : int, default=2
    keep : float in (0, 1], default=0.75
        Share of the rows (of their weight) that counts. A row at the border may count in part.
    n_init : int, default=10
        Random starts, beside the one from the directions of the rows about their median. The best after two steps,
        on at most 4096 rows, is followed.
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
    weights_ : (n,) what each row counts: its sample weight if kept, 0 if not, something between at the border
    support_ : (n,) bool, whether a row counts at all
    errors_ : (n,) squared distance of each row to the plane
    threshold_ : float, the largest error of a row kept
    n_components_, n_samples_, n_iter_ : int
    history_ : tuple of Mark, the objective and the (relative) gain still promised at each pass
    certificate_ : Certificate, `stationary`: other starts may lead to a better plane

    Notes
    -----
    What counts is the distance to the plane. A tight cluster far away is near to a plane with an axis towards it, and
    is kept where the others lose less by that than the cluster saves: ask for no more components than are needed.

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
        self._check(rows)
        w = rows.map(_weight)
        if not self.keep * w.sum() > 1:
            raise DataError(
                got=f"a weight of {self.keep * w.sum():g} to keep (n_samples={rows.n_rows})",
                wanted="more than 1 sample: a variance needs two",
                fix="Weights say how many times a row counts; do not normalise them.",
            )
        steps = Concentration(rows, w, float(self.keep), int(self.n_components))
        start = steps.refit(_best_start(rows, w, steps, int(self.n_init), check_random_state(self.random_state)))
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
        e = rows.map(partial(_errors, found.params.plane.mean, found.params.plane.B))
        fitted = {
            **steps.attributes(found.params),
            "errors_": e,
            "threshold_": float(e[found.params.v > 0].max()),
        }
        return {
            **fitted,
            "n_samples_": rows.n_rows,
            "n_iter_": 1 + found.n_iter,  # the first led from the best start
            "history_": found.history,
            "certificate_": self._certificate(rows, fitted, found, steps.rounding(found.params.plane)),
        }

    def _check(self, rows: Rows) -> None:
        most = min(rows.n_rows, rows.n_features)
        check_settings(self, n_components=1, n_init=0, max_iter=0)
        if self.n_components > most:
            shape = f"n_samples={rows.n_rows}, n_features={rows.n_features}"
            raise DataError(
                got=f"n_components={self.n_components}",
                wanted=f"at most the smaller of the table's sides ({shape})",
                fix="Ask for fewer components.",
            )
        if not isinstance(self.keep, Real) or not 0 < float(self.keep) <= 1:
            raise DataError(got=f"keep={self.keep!r}", wanted="a share of the rows above 0 and at most 1")

    def _certificate(self, rows: Rows, fitted: Attributes, found: Solution[Point], rounding: float) -> Certificate:
        trace = np.array([mark.objective for mark in found.history])
        rise = float(((np.diff(trace) - rounding) / np.maximum(trace[:-1], np.finfo(float).tiny)).max(initial=0.0))
        limit = max(1e-9, 32 * float(np.finfo(rows.dtype).eps))
        names = ("components_", "mean_", "explained_variance_", "weights_", "errors_", "threshold_")
        parts = certificates.Parts(float(self.keep), *(fitted[name] for name in names))
        never_rose = Check("largest rise of the objective, relative", rise, limit)
        return certificates.certify(parts, self.tol, rows, (never_rose,))

    @property
    def support_(self) -> Array:
        return self.weights_ > 0

    def outlier_scores(self, X: Any) -> Array:
        """Squared distance of each row to the plane (n,); above `threshold_`, it would not have been kept."""
        return self._rows(X).map(partial(_errors, self.mean_, self.components_))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Mean squared reconstruction error of the share `keep` of these rows that lies nearest to the plane."""
        rows = self._rows(X, sample_weight=sample_weight)
        e, w = rows.map(partial(_errors, self.mean_, self.components_)), rows.map(_weight)
        v = nearest(e, w, float(self.keep))
        error = float(v @ e / v.sum())
        return Objective(error, error, 0.0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the objective on these rows."""
        return -self.objective(X, y, sample_weight).total


class Plane(NamedTuple):
    mean: Array  # (d,)
    B: Array  # (k, d)
    values: Array  # (k,) variances along B (divided by Σ v)
    total: float  # sum of all variances


class Point(NamedTuple):
    """Rows kept, and their plane."""

    v: Array  # (n,)
    plane: Plane


class Concentration:
    """The two halves of a step, on rows that may be anywhere."""

    def __init__(self, rows: Rows, w: Array, keep: float, k: int) -> None:
        self.rows, self.w, self.keep, self.k = rows, w, keep, k

    def errors(self, plane: Plane) -> Array:
        """Squared distances to a plane; none below what rounding makes of 0, so that rows in the plane tie."""
        return np.maximum(self.rows.map(partial(_errors, plane.mean, plane.B)), self.rounding(plane))

    def rounding(self, plane: Plane) -> float:
        """What may be computed as the squared distance of a row that lies in the plane."""
        digits, last = 16 * np.finfo(self.rows.dtype).eps, 16 * np.finfo(float).eps
        return min(float(digits**2 * plane.total + (last * np.linalg.norm(plane.mean)) ** 2), FAR)

    def refit(self, plane: Plane) -> Point:
        """Keep the rows nearest to a plane, and take theirs."""
        return self._kept(nearest(self.errors(plane), self.w, self.keep), plane)

    def _kept(self, v: Array, plane: Plane) -> Point:
        return Point(v, plane_of(ReweightedRows(self.rows, v, plane.mean), self.k))

    def measure(self, at: Point) -> Array:
        return self.errors(at.plane)

    def update(self, tol: float, at: Point, e: Array) -> Step[Point]:
        v = nearest(e, self.w, self.keep)
        here, best = float(at.v @ e), float(v @ e)
        gain = max(0.0, here - best) / here if here > 0 else 0.0
        following = at if gain <= tol else self._kept(v, at.plane)
        return Step(following, best / float(v.sum()), gain)

    def attributes(self, at: Point) -> Attributes:
        """The fitted attributes that need no pass over the rows."""
        mean, B, values, total = at.plane
        n = float(at.v.sum())
        unbiased = n / (n - 1)
        left = max(0.0, total - float(values.sum())) * unbiased
        others = min(self.rows.n_rows, self.rows.n_features) - self.k
        return {
            "components_": B,
            "explained_variance_": values * unbiased,
            "explained_variance_ratio_": values / (total or 1.0),
            "singular_values_": np.sqrt(values * n),
            "mean_": mean,
            "n_components_": self.k,
            "noise_variance_": left / others if others else 0.0,
            "weights_": at.v,
        }


def nearest(e: Array, w: Array, keep: float) -> Array:
    """Weights of the rows with the smallest errors, a share `keep` of all weight; rows that tie at the border share.

    >>> nearest(np.array([3.0, 1.0, 2.0, 2.0]), np.ones(4), 0.5)
    array([0. , 1. , 0.5, 0.5])
    """
    order = np.argsort(e, kind="stable")
    weight = np.cumsum(w[order])
    h = keep * weight[-1]
    border = e[order[np.searchsorted(weight, h * (1 - 1e-12))]]
    inside, tied = e < (1 - TIED) * border, np.abs(e - border) <= TIED * border
    share = np.clip((h - w[inside].sum()) / w[tied].sum(), 0.0, 1.0)
    return np.where(inside, w, np.where(tied, share * w, 0.0))


def plane_of(rows: Rows, k: int, centred: bool = True) -> Plane:
    """Principal axes of weighted rows."""
    s = decompose(rows, "auto", Ask(k, 1e-12, 0, centred))
    values, B = complete(s.values, s.vectors, k)
    return Plane(s.mean, B, values, s.total)


def _best_start(rows: Rows, w: Array, steps: Concentration, n_init: int, random: np.random.RandomState) -> Plane:
    """The best of several planes after a few steps, all on a part of the rows."""
    used = np.flatnonzero(w > 0)
    most = max(8 * (steps.k + 1), min(SAMPLE, ENTRIES // rows.n_features))
    sample = rows.take(used[:: -(-len(used) // most)])
    trial = Concentration(sample, sample.w, steps.keep, steps.k)
    best = _follow(trial, _spatial_start(sample, steps.k))
    weight = np.cumsum(sample.w)
    for _ in range(n_init):
        drawn = np.searchsorted(weight, random.random_sample(steps.k + 1) * weight[-1], side="right")
        with suppress(DataError):  # rows too far away to square: no start
            best = min(best, _follow(trial, plane_of(sample.take(drawn), steps.k)), key=lambda pair: pair[0])
    return best[1]


def _follow(trial: Concentration, plane: Plane) -> tuple[float, Plane]:
    for _ in range(STEPS):
        plane = trial.refit(plane).plane
    e = trial.errors(plane)
    return float(nearest(e, trial.w, trial.keep) @ e), plane


def _spatial_start(sample: ArrayRows, k: int) -> Plane:
    """Axes of the rows' directions about their medians: however far away, a row counts once."""
    X = _dense(sample.X).astype(np.float64)
    m = medians(X, sample.w)
    Z = X - m
    Z /= np.maximum(np.abs(Z).max(axis=1, keepdims=True), np.finfo(float).tiny)
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(float).tiny)
    return plane_of(ArrayRows(Z, None, sample.w), k, centred=False)._replace(mean=m, total=0.0)


def _errors(mean: Array, B: Array, block: Block) -> Array:
    """Squared distance of each row to the plane, a few rows at a time so that sparse ones can be made dense."""
    step = max(1, 2**21 // len(mean))
    parts = (block.X[i : i + step] for i in range(0, len(block.w), step))
    return np.concatenate([_distances(mean, B, _dense(X)) for X in parts])


def _distances(mean: Array, B: Array, X: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        Z = X - mean
        e = ((Z - Z @ B.T @ B) ** 2).sum(axis=1)
    return np.nan_to_num(e, nan=FAR, posinf=FAR)


def _weight(block: Block) -> Array:
    return block.w


def _dense(X: Any) -> Array:
    return X if isinstance(X, np.ndarray) else X.toarray()
