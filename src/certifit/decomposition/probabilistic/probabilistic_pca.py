"""Probabilistic principal component analysis, certified, of complete rows or rows with missing entries.

    x = μ + W z + ε,  z ~ N(0, I_k),  ε ~ N(0, σ² I_d):   max over μ, W, σ² of Σ wᵢ log p(the observed entries of xᵢ)

| rows | method |
|---|---|
| complete | the global maximum from the covariance's eigenvectors (`closed_form`) |
| with missing entries, or n_components='ard' | EM on the observed entries (`em`) |

`choose_components` finds the number of components for 'bic' and 'ard'.
References: Tipping & Bishop, Probabilistic principal component analysis (1999); Bishop, Bayesian PCA (1999); Ilin &
Raiko, Practical approaches to PCA in the presence of missing values (2010).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.decomposition import probabilistic_pca as certificates
from certifit.core import Attributes, Estimator, Objective, Solution, fixed_point
from certifit.core.settings import LOOP, Setting, Settings
from certifit.decomposition.pca.linear_codes import LinearCodes, check_codes
from certifit.decomposition.pca.principal_axes import fix_signs
from certifit.decomposition.probabilistic.choose_components import (
    bic,
    choose_bic,
    count_parameters,
    relevant_parameters,
    search_bic,
)
from certifit.decomposition.probabilistic.closed_form import (
    ColumnSummary,
    PrincipalVariances,
    filled_variances,
    random_parameters,
    summarise_columns,
    variances,
)
from certifit.decomposition.probabilistic.em import (
    EMPath,
    accelerate,
    check_memory,
    measure,
    penalty,
    prune,
    update,
    update_relevant,
)
from certifit.decomposition.probabilistic.parameters import PPCAParameters, PPCATuning
from certifit.decomposition.probabilistic.posterior import (
    codes,
    covariances,
    impute,
    log_likelihood,
    weighted_likelihood,
)
from certifit.exceptions import DataError
from certifit.rows import Array, Rows

Loop = Callable[[PPCAParameters, Any], Solution[EMPath]]  # start, update
MODEL = ("components_", "explained_variance_", "mean_", "noise_variance_")  # attributes that are the model


class ProbabilisticPCA(LinearCodes, Estimator):
    """Probabilistic PCA by maximum likelihood; missing entries (NaN) are left out of the likelihood.

    Parameters
    ----------
    n_components : int, 'bic', 'ard' or None, default=None
        The number of components, fewer than columns. 'bic' takes the smallest Bayes' information criterion: of all
        numbers on complete rows; with missing entries of 0, 1, 2, … until two in a row are worse. 'ard' keeps the
        components that automatic relevance determination (Bayesian PCA) does not drop; these are often more. None is
        the largest number that leaves noise: one fewer than the directions in which the rows vary.
    solver : 'auto', 'closed' or 'em', default='auto'
        The closed form, which complete rows have, or EM. 'auto' takes EM where entries are missing.
    tol : float, default=1e-6
        In nats per row, how far the mean log-likelihood may be from its maximum (complete rows), or how much one more
        EM step may gain (missing entries, 'ard').
    max_iter : int, default=1000
        Most EM steps.
    max_time : float or None, default=None
        Seconds after which EM returns the best model so far.
    random_state : int, RandomState or None
        Seed of the start of EM on complete rows. With missing entries EM starts from the closed form for filled rows.
    warm_start : bool, default=False
        Start EM from the previous fit, if that had as many components.

    Attributes
    ----------
    components_ : (k, d) principal axes, orthonormal rows; the first of each one's largest entries is positive
    explained_variance_ : (k,) variance of the model along them, including noise; divided by Σ w, not by Σ w - 1
    noise_variance_ : float, σ²
    mean_ : (d,)
    loadings_ : (d, k) W along the principal axes
    n_components_ : int
    n_iter_ : int, EM steps; 1 for the closed form (diagnostic)
    loglikelihood_ : float, of all observed entries
    history_ : tuple of Mark, the objective and the gain still promised at each EM step (diagnostic)
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ProbabilisticPCA
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> X[::7, 2] = np.nan
    >>> model = ProbabilisticPCA(n_components=2).fit(X)
    >>> model.certificate_.kind, model.certificate_.holds
    ('stationary', True)
    >>> filled, error = model.impute(X, return_std=True)
    >>> print(f"{filled[0, 2]:.2f} ± {error[0, 2]:.2f}")  # it was 1.4
    1.60 ± 0.46
    """

    missing = True
    settings: ClassVar[Settings] = {
        **LOOP,
        "n_components": Setting(int, least=0, choices=("bic", "ard"), none=True),
        "solver": Setting(choices=("auto", "closed", "em")),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    _tuning: ClassVar[PPCATuning] = PPCATuning()

    def __init__(
        self,
        n_components=None,
        *,
        solver="auto",
        tol=1e-6,
        max_iter=1000,
        max_time=None,
        random_state=None,
        warm_start=False,
    ):
        self.n_components = n_components
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.warm_start = warm_start

    # ---------------------------------------------------------------------------------------------- fit
    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began = time.perf_counter()
        self._check_components(rows)
        columns = summarise_columns(rows)
        loop = partial(self._loop, rows, columns.weight, began)
        by_em = self.solver == "em" or not columns.complete
        if by_em and self.solver == "closed":
            raise DataError(
                got="solver='closed' and rows with missing entries",
                wanted="complete rows: with missing entries the maximum has no closed form",
                fix="Use solver='auto' or 'em'.",
            )
        if self.n_components == "ard":
            return self._fit_relevant(rows, columns, loop)
        if not by_em:
            return self._fit_closed(rows, columns)
        return self._fit_em(rows, columns, previous, loop)

    def _fit_closed(self, rows: Rows, columns: ColumnSummary) -> Attributes:
        d, k = rows.n_features, self.n_components
        v = variances(rows, d if isinstance(k, str) or k is None else int(k))
        if k is None:
            k = v.rank - 1
        elif k == "bic":
            k = choose_bic(v, columns.weight)
        return self._result(rows, columns, v.parameters(int(k)), v.S)

    def _fit_em(self, rows: Rows, columns: ColumnSummary, previous: Attributes, loop: Loop) -> Attributes:
        d, k = rows.n_features, self.n_components
        most = max(0, min(d, columns.rows - 1) - 1)
        k = most if k is None else k
        if not columns.complete:
            check_memory(d, 0 if k == "bic" else int(k), self._tuning.sum_numbers)
        v = None if columns.complete or d > self._tuning.start_columns else filled_variances(rows, columns)
        if k == "bic":
            worse = self._tuning.worse_in_a_row
            k = search_bic(
                lambda k: loop(self._start(columns, v, k, {}), update).objective, d, most, columns.weight, worse
            )
        found = loop(self._start(columns, v, int(k), previous), update)
        if not columns.complete and k:
            found = self._leave_saddles(rows, found, loop)
        return self._result(rows, columns, found.params.parameters, found=found)

    def _leave_saddles(self, rows: Rows, found: Solution[EMPath], loop: Loop) -> Solution[EMPath]:
        """Go on from a saddle, at which EM stays, along the way up that the checker finds."""
        for _ in range(self._tuning.most_saddles):
            model = certificates.PPCAModel(*(_attributes(found.params.parameters)[name] for name in MODEL))
            way = certificates.find_way_up(model, rows)
            if way.gain <= self._tuning.saddle_gain:
                break
            step = self._tuning.saddle_step * way.length * np.multiply.outer(way.u, way.v)
            more = loop(PPCAParameters(model.mean, model.W + step, model.noise), update)
            found = replace(more, n_iter=found.n_iter + more.n_iter, history=(*found.history, *more.history))
        return found

    def _start(
        self, columns: ColumnSummary, v: PrincipalVariances | None, k: int, previous: Attributes
    ) -> PPCAParameters:
        if self.warm_start and np.shape(previous.get("components_", ())) == (k, len(columns.mean)):
            return _parameters(**{name: previous[name] for name in MODEL})
        return random_parameters(columns, k, check_random_state(self.random_state)) if v is None else v.parameters(k)

    def _fit_relevant(self, rows: Rows, columns: ColumnSummary, loop: Loop) -> Attributes:
        v = variances(rows, rows.n_features) if columns.complete else filled_variances(rows, columns)
        at = relevant_parameters(v, columns.weight)
        if not columns.complete:
            check_memory(rows.n_features, at.W.shape[1], self._tuning.sum_numbers)
        while True:
            found = loop(at, update_relevant)
            at = prune(found.params.parameters, self._tuning)
            if at.W.shape == found.params.parameters.W.shape:
                return self._result(rows, columns, at, found=found)

    def _loop(self, rows: Rows, weight: float, began: float, start: PPCAParameters, step: Any) -> Solution[EMPath]:
        left = None if self.max_time is None else self.max_time - (time.perf_counter() - began)
        name = f"EM, {start.W.shape[1]} components"
        with self._watch.loop(name, self.max_iter, lambda at: _attributes(at.parameters)) as watch:
            return fixed_point(
                lambda at: measure(rows, at.parameters, self._tuning),
                partial(accelerate, partial(step, weight, tuning=self._tuning), self._tuning.longest_jump),
                EMPath(start),
                tol=self._tuning.tol_share * self.tol,
                max_iter=self.max_iter,
                max_time=left,
                watcher=watch,
            )

    def _result(
        self,
        rows: Rows,
        columns: ColumnSummary,
        at: PPCAParameters,
        S: Array | None = None,
        found: Solution[EMPath] | None = None,
    ) -> Attributes:
        """Return attributes and certificate; with the covariance S of complete rows, no more pass is needed.

        Where rows are so far from zero that the rounding of their mean is seen beside the noise, S is not the
        covariance about the mean that is stored: then the rows are read once more, as the audit does.
        """
        fitted, ard = _attributes(at), self.n_components == "ard"
        model = certificates.PPCAModel(*(fitted[name] for name in MODEL))._replace(n_components=self.n_components)
        near = np.finfo(float).eps * float(np.abs(at.mean).max()) <= self._tuning.mean_rounding * np.sqrt(at.noise)
        if S is not None and near:
            certificate = certificates.from_covariance(model, self.tol, S, at.mean, rows.n_rows)
        else:
            certificate = certificates.certify(model, self.tol, rows)
        return {
            **fitted,
            "n_iter_": 1 if found is None else found.n_iter,
            "history_": () if found is None else found.history,
            "loglikelihood_": (penalty(at.W) if ard else 0.0) - certificate.objective * columns.weight,
            "certificate_": certificate,
        }

    def _check_components(self, rows: Rows) -> None:
        k, most = self.n_components, rows.n_features - 1
        whole = isinstance(k, Integral) and not isinstance(k, bool) and 0 <= int(k) <= most
        if not (whole or k is None or k in ("bic", "ard")):
            raise DataError(
                got=f"n_components={k!r} with n_features={rows.n_features}",
                wanted=f"a whole number between 0 and {most} (at least one direction is noise), 'bic', 'ard' or None",
            )

    # ---------------------------------------------------------------------------------------------- use
    @property
    def loadings_(self) -> Array:
        check_is_fitted(self, "components_")
        return self._parameters().W

    def _parameters(self) -> PPCAParameters:
        return _parameters(self.components_, self.explained_variance_, self.mean_, self.noise_variance_)

    def transform(self, X: Any) -> Array:
        """Return the codes, the posterior means E[z | observed entries] (n, k). A row without entries has code 0."""
        rows = self._rows(X)
        return rows.map(partial(codes, self._parameters(), self._tuning))

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows of codes, x = mean + W z."""
        check_is_fitted(self)
        return check_codes(X, self.n_components_) @ self.loadings_.T + self.mean_

    def posterior(self, X: Any) -> tuple[Array, Array]:
        """Return the posterior means (n, k) and covariances (n, k, k) of codes given the observed entries."""
        parts = self._rows(X).each(partial(covariances, self._parameters(), self._tuning))
        return np.concatenate([z for z, _ in parts]), np.concatenate([C for _, C in parts])

    def impute(self, X: Any, return_std: bool = False) -> Any:
        """Return the rows with missing entries replaced by their expectation given the observed ones.

        Parameters
        ----------
        X : rows, NaN where an entry is missing
        return_std : whether to return the standard deviations of the missing entries too, 0 at observed ones

        Returns
        -------
        filled (n, d), or (filled, deviations)
        """
        parts = self._rows(X).each(partial(impute, self._parameters(), self._tuning, return_std))
        filled = np.concatenate([x for x, _ in parts])
        return (filled, np.concatenate([s for _, s in parts])) if return_std else filled

    def score_samples(self, X: Any) -> Array:
        """Return the log-likelihood of each row's observed entries (n,)."""
        rows = self._rows(X)
        return rows.map(partial(log_likelihood, self._parameters(), self._tuning))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a row's observed entries."""
        return float(self.score_samples(X).mean())

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the mean negative log-likelihood of the observed entries, plus the penalty per row for 'ard'."""
        rows = self._rows(X, sample_weight=sample_weight)
        total, weight = rows.sum(partial(weighted_likelihood, self._parameters(), self._tuning))
        extra = penalty(self.loadings_) / weight if self.n_components == "ard" else 0.0
        return Objective(extra - total / weight, -total / weight, extra)

    def bic(self, X: Any) -> float:
        """Return Bayes' information criterion on these rows; smaller is better."""
        ll = self.score_samples(X)
        return bic(float(ll.sum()), len(self.mean_), self.n_components_, len(ll))

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion on these rows; smaller is better."""
        return 2 * count_parameters(len(self.mean_), self.n_components_) - 2 * float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows from the model (n_samples, d), by the estimator's `random_state` where none is given."""
        check_is_fitted(self)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        z = rng.normal(size=(n_samples, self.n_components_))
        noise = rng.normal(size=(n_samples, len(self.mean_)))
        return self.mean_ + z @ self.loadings_.T + np.sqrt(self.noise_variance_) * noise

    def get_covariance(self) -> Array:
        """Return the model's covariance W Wᵀ + σ² I."""
        W = self.loadings_
        return W @ W.T + self.noise_variance_ * np.eye(len(W))

    def get_precision(self) -> Array:
        """Return the inverse of the model's covariance."""
        check_is_fitted(self)
        shrink = 1 / self.noise_variance_ - 1 / self.explained_variance_
        return np.eye(len(self.mean_)) / self.noise_variance_ - (self.components_.T * shrink) @ self.components_


def _parameters(
    components_: Array, explained_variance_: Array, mean_: Array, noise_variance_: float
) -> PPCAParameters:
    lengths = np.sqrt(np.maximum(explained_variance_ - noise_variance_, 0.0))
    return PPCAParameters(mean_, components_.T * lengths, float(noise_variance_))


def _attributes(at: PPCAParameters) -> Attributes:
    """Return the parameters along the principal axes, as fitted attributes."""
    left, lengths, _ = np.linalg.svd(at.W, full_matrices=False)
    values = (fix_signs(left.T), lengths**2 + at.noise, at.mean, at.noise)
    return dict(zip(MODEL, values, strict=True))
