"""What all mixtures share: EM from several starts, the certificate of the best, and the use of a fitted mixture."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.mixture.saddles import PartedMixture, least_gain, saddle_check
from certifit.core import Attributes, Estimator, Objective, Solution, fixed_point
from certifit.core.settings import LOOP, Setting, Settings
from certifit.exceptions import DataError, warn_caller
from certifit.mixture.em import (
    EMPoint,
    MixtureEM,
    MixtureParameters,
    check_finite,
    compare_mixtures,
    fit_certificate,
    labels,
    likelihood,
    log_density,
    responsibilities,
)
from certifit.mixture.starting_groups import STARTING_GROUPS
from certifit.rows import Array, Rows


class MixtureModel(DensityMixin, Estimator):
    """A mixture with `weights_` (k,), fitted by EM; entries may be missing (NaN)."""

    missing = True
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "converged_", "history_")
    settings: ClassVar[Settings] = {
        **LOOP,
        "n_components": Setting(int, least=1),
        "n_init": Setting(int, least=1),
        "init_params": Setting(choices=tuple(STARTING_GROUPS)),
    }

    @abstractmethod
    def _at(self) -> MixtureParameters:
        """Return the parameters of the fitted mixture."""

    @abstractmethod
    def n_parameters(self) -> int:
        """Return the number of free parameters."""

    @abstractmethod
    def _draw(self, component: int, n: int, rng: np.random.RandomState) -> Array:
        """Draw rows (n, d) of one component."""

    # ---------------------------------------------------------------------------------------------- fit
    def _run_em(
        self, rows: Rows, start: Callable[[], MixtureParameters], attributes: Callable[[EMPoint], Attributes]
    ) -> tuple[Solution[EMPoint], MixtureEM]:
        """Run EM from each of `n_init` starts and return the best result, with the EM that found it.

        `attributes` gives what callbacks see of a point.
        """
        began = time.perf_counter()
        best: tuple[Solution[EMPoint], MixtureEM] | None = None
        for i in range(self.n_init):
            at, em = start(), MixtureEM(rows)
            left = None if self.max_time is None else self.max_time - (time.perf_counter() - began)
            with self._watch.loop(f"start {i + 1} of {self.n_init}", self.max_iter, attributes) as watch:
                found = fixed_point(
                    em.measure,
                    em.update,
                    EMPoint(at),
                    tol=self.tol,
                    max_iter=self.max_iter,
                    max_time=left,
                    watcher=watch,
                )
            if best is None or found.objective < best[0].objective:
                best = found, em
            if found.status in ("stopped", "max_time"):
                break
        assert best is not None
        return self._leave_saddles(*best, attributes, began)

    def _leave_saddles(
        self,
        found: Solution[EMPoint],
        em: MixtureEM,
        attributes: Callable[[EMPoint], Attributes],
        began: float,
    ) -> tuple[Solution[EMPoint], MixtureEM]:
        """Go on from where equal components were parted, as long as that climbs; EM alone would never part them."""
        for _ in range(self.n_components):
            left = None if self.max_time is None else self.max_time - (time.perf_counter() - began)
            if found.status != "converged" or self.n_components == 1 or (left is not None and left <= 0):
                break
            enough = self._least_gain(found)
            parted = em.part(found.params.mixture, enough)
            if parted.gain <= enough:
                break
            higher = MixtureEM(em.rows)
            with self._watch.loop("components parted", self.max_iter, attributes) as watch:
                found = fixed_point(
                    higher.measure,
                    higher.update,
                    EMPoint(cast("MixtureParameters", parted.mixture)),
                    tol=self.tol,
                    max_iter=self.max_iter,
                    max_time=left,
                    watcher=watch,
                )
            em = higher
        return found, em

    def _least_gain(self, found: Solution[EMPoint]) -> float:
        """What parting equal components has to gain, nats a row; as the audit has it."""
        rounding = found.params.mixture.components.stored_rounding()
        return least_gain(min(self.tol, 1e-2), found.objective, rounding)

    def _fit_report(
        self,
        rows: Rows,
        found: Solution[EMPoint],
        em: MixtureEM,
        least: Callable[[float], float],
        wrong: Mapping[str, str],
        advice: str,
    ) -> Attributes:
        """Return the attributes that report what EM did, the certificate among them.

        Warns of components with something `wrong`, each in words, and ends the warning with `advice`. `least`, given
        Σ w, is a number below which no mixture's objective can be.
        """
        if wrong:
            words = "; ".join(f"{name} {value}" for name, value in wrong.items())
            warn_caller(f"{type(self).__name__}: {words}. {advice}", ConvergenceWarning)
        at, after, trace = found.params.mixture, em.after(found.params), em.table()
        compared = rows.sum(partial(compare_mixtures, at, after))
        bound = least(compared.weight)
        enough = self._least_gain(found)
        parted = em.part(at, enough) if len(at.weights) > 1 else PartedMixture(None, 0.0, None)
        certificate = fit_certificate(at, after, compared, trace["loglik"], bound, self.tol, wrong)
        checks = (*certificate.checks, saddle_check(parted, enough))
        return {
            "converged_": found.status == "converged",
            "n_iter_": found.n_iter,
            "lower_bound_": -found.objective,
            "lower_bounds_": trace["loglik"].copy(),
            "loglikelihood_": compared.before,
            "em_trace_": trace,
            "history_": found.history,
            "certificate_": replace(certificate, checks=checks),
        }

    def _check_rows(self, rows: Rows) -> None:
        if rows.n_rows < self.n_components:
            raise DataError(
                got=f"fewer rows than components (n_samples={rows.n_rows} should be >= "
                f"n_components={self.n_components})",
                wanted="at least one row for each component",
                fix=f"Expected n_samples >= n_components: ask for at most {rows.n_rows} components.",
            )

    # ---------------------------------------------------------------------------------------------- use
    def _per_row(self, X: Any, f: Any) -> Array:
        """Return f(fitted parameters, block) for all rows."""
        return self._rows(X).map(partial(f, self._at()))

    def predict(self, X: Any) -> Array:
        """Return the likeliest component of each row (n,)."""
        return self._per_row(X, labels)

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior probabilities of the components (n, k): the weights, for a row without entries."""
        return self._per_row(X, responsibilities)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the likeliest component of each row (n,)."""
        return self.fit(X, y, sample_weight).predict(X)

    def score_samples(self, X: Any) -> Array:
        """Return the log-likelihood of each row's observed entries (n,)."""
        return self._per_row(X, log_density)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows with any entry."""
        loglik, n = self._likelihood(self._rows(X), self._at())
        return loglik / n

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the mean negative log-likelihood of the rows with any entry, and the penalty."""
        rows, at = self._rows(X, sample_weight=sample_weight), self._at()
        loglik, n = self._likelihood(rows, at)
        penalty = at.components.penalty()
        return Objective(penalty - loglik / n, -loglik / n, penalty)

    def _likelihood(self, rows: Rows, at: MixtureParameters) -> tuple[float, float]:
        """Return Σ w log p(x) and Σ w over rows with a positive weight and any entry."""
        loglik, n = rows.sum(partial(likelihood, at)).tolist()
        check_finite(loglik, n)
        return loglik, n

    def bic(self, X: Any) -> float:
        """Return Bayes' information criterion on the rows with any entry: smaller is better."""
        loglik, n = self._likelihood(self._rows(X), self._at())
        return self.n_parameters() * float(np.log(n)) - 2 * loglik

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion on the rows with any entry: smaller is better."""
        return 2 * self.n_parameters() - 2 * self._likelihood(self._rows(X), self._at())[0]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw rows (n_samples, d), component after component, and return them with their components (n_samples,).

        Draws depend on `random_state` here or, without it, on the estimator's own.
        """
        check_is_fitted(self)
        Setting(int, least=1, fix="Invalid value for 'n_samples'.").check("n_samples", n_samples)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        X = [self._draw(j, n, rng) for j, n in enumerate(counts)]
        return np.concatenate(X), np.repeat(np.arange(len(counts)), counts)
