"""Choose the number and shape of Gaussian components: fit every combination and keep the best by a criterion.

With ℓ the log-likelihood, m the number of free parameters and n = Σ w over the rows with any entry:
    BIC = m log n - 2 ℓ,   ICL = BIC + 2 Σ w H(posterior),   AIC = 2 m - 2 ℓ;   smaller is better.
References: Fraley & Raftery, Model-based clustering, discriminant analysis, and density estimation (2002); Biernacki,
Celeux & Govaert, Assessing a mixture model for clustering with the integrated completed likelihood (2000).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from certifit.core import Certificate
from certifit.core.settings import Setting
from certifit.core.text_table import html_table, text_table
from certifit.exceptions import DataError
from certifit.mixture.em import MixtureParameters, counted_rows, responsibilities
from certifit.mixture.gaussian.covariance_shapes import SHAPES
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.rows import Array, Block, as_rows


class MixtureCandidate(NamedTuple):
    """One number of components with one shape of covariances, fitted."""

    n_components: int
    covariance_type: str
    loglikelihood: float
    parameters: int
    bic: float
    icl: float
    aic: float
    converged: bool
    certificate: Certificate

    @property
    def sound(self) -> bool:
        """Whether its certificate holds and no component has collapsed."""
        return self.certificate.holds and not self.certificate.facts


class MixtureChoice(NamedTuple):
    """What `select_mixture` found."""

    criterion: str
    candidates: tuple[MixtureCandidate, ...]
    best: MixtureCandidate
    model: GaussianMixture  # the best one, fitted

    def table(self) -> list[tuple[str, ...]]:
        """Return the headings, then one line for each candidate."""
        lines: list[tuple[str, ...]] = [
            ("components", "covariances", "log-lik", "parameters", "BIC", "ICL", "AIC", "", "")
        ]
        for c in self.candidates:
            criteria = (f"{value:.3f}" for value in (c.bic, c.icl, c.aic))
            remarks = "" if c.sound else "not sound", "<- best" if c is self.best else ""
            size = str(c.n_components), c.covariance_type, f"{c.loglikelihood:.3f}", str(c.parameters)
            lines.append((*size, *criteria, *remarks))
        return lines

    def __str__(self) -> str:
        return text_table(self.table(), "rlrrrrrll")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(self.table(), "rlrrrrrll")


def select_mixture(
    X: Any,
    n_components: Iterable[int] = range(1, 10),
    covariance_types: Iterable[str] = tuple(SHAPES),
    criterion: str = "bic",
    sample_weight: Any = None,
    **params: Any,
) -> MixtureChoice:
    """Fit a GaussianMixture for each number of components and shape of covariances; keep the best.

    Parameters
    ----------
    X, sample_weight : the rows and their weights, in any form that `fit` takes
    n_components, covariance_types : what to try; a single shape may stand for itself
    criterion : 'bic', 'icl' or 'aic'
    **params : further settings of GaussianMixture

    Returns
    -------
    MixtureChoice : every candidate with its criteria and certificate, and the best model. A candidate with a
        collapsed component, or whose certificate does not hold, is chosen only where there is no other.

    >>> from sklearn.datasets import load_iris
    >>> choice = select_mixture(load_iris().data, range(1, 5), ["full", "diag"], random_state=0)
    >>> choice.best.n_components, choice.best.covariance_type, round(choice.best.bic, 1)
    (2, 'full', 574.0)
    """
    Setting(choices=("bic", "icl", "aic")).check("criterion", criterion)
    rows = as_rows(X, None, sample_weight, missing=True)
    numbers = [*n_components]
    kinds = [covariance_types] if isinstance(covariance_types, str) else [*covariance_types]
    found: list[MixtureCandidate] = []
    models: list[GaussianMixture] = []
    for kind in kinds:
        for k in numbers:
            model = GaussianMixture(k, covariance_type=kind, **params)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows it
                model.fit(rows)
            n, entropy = rows.sum(partial(_entropy, model._at()))
            m, ll = model.n_parameters(), model.loglikelihood_
            bic = m * float(np.log(n)) - 2 * ll
            criteria = bic, bic + 2 * float(entropy), 2 * m - 2 * ll
            found.append(MixtureCandidate(k, kind, ll, m, *criteria, model.converged_, model.certificate_))
            models.append(model)
    if not found:
        raise DataError(got="nothing to choose from", wanted="at least one number of components and one shape")
    order = [(not c.sound, getattr(c, criterion)) for c in found]
    best = order.index(min(order))
    return MixtureChoice(criterion, tuple(found), found[best], models[best])


def _entropy(at: MixtureParameters, block: Block) -> Array:
    """Return Σ w and Σ w H(posterior) over rows with a positive weight and any entry (2,)."""
    R, w = responsibilities(at, block), np.where(counted_rows(block.X, block.w)[0], block.w, 0.0)
    return np.array([w.sum(), -w @ xlogy(R, R).sum(axis=1)])
