"""The adapter of variational Gaussian mixtures, ours or scikit-learn's: priors by the settings, and the posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.mixture.bayesian import PlainPosterior, PlainPrior, VariationalClaim, as_matrices, certify
from certifit.checkers.plain.blocks import dense_rows
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class _RowSums(Sums):
    weight: float
    z: Array
    zz: Array


def _row_sums(centre: Array, block: Block) -> _RowSums:
    used = block.w > 0
    Z, w = dense_rows(block.X, used) - centre, block.w[used]
    return _RowSums(float(w.sum()), w @ Z, (Z.T * w) @ Z)


def audit_bayesian_mixture(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the posterior of a BayesianGaussianMixture, its priors, and what it derives from them."""
    means = numbers(model, "means_")
    if means.ndim != 2:
        raise DataError(got=f"means_ of shape {means.shape}", wanted="a mean for each component and column")
    rows = fitted_rows(model, means.shape[1], X, None, sample_weight, "none")
    prior = prior_of(model, rows)
    at = _posterior(model)
    trace = numbers(model, "lower_bounds_") if isinstance(model, Estimator) else np.empty(0)
    claim = VariationalClaim(at, float(numbers(model, "lower_bound_").reshape(())), np.atleast_1d(trace))
    found = certify(claim, prior, rows, tol)
    # Ours compute weights and precisions from the posterior whenever they are read.
    derived = [] if isinstance(model, Estimator) else _derived_checks(model, at)
    return replace(found, checks=(*found.checks, *_prior_checks(model, prior), *derived))


def prior_of(model: Any, rows: Rows) -> PlainPrior:
    """The prior that the settings and the rows stand for."""
    kind, k, d = model.covariance_type, int(model.n_components), rows.n_features
    zero = rows.sum(partial(_row_sums, np.zeros(d)))
    centre = zero.z / zero.weight
    found = rows.sum(partial(_row_sums, centre))
    mean = centre + found.z / found.weight
    spread = found.zz - np.outer(found.z, found.z) / found.weight
    S = spread / (found.weight - 1) if found.weight > 1 else spread
    by_type = {"full": S, "tied": S, "diag": np.diag(S), "spherical": np.asarray(np.diag(S).mean())}
    given = model.covariance_prior
    return PlainPrior(
        kind,
        model.weight_concentration_prior_type == "dirichlet_process",
        1.0 / k if model.weight_concentration_prior is None else float(model.weight_concentration_prior),
        1.0 if model.mean_precision_prior is None else float(model.mean_precision_prior),
        mean if model.mean_prior is None else np.asarray(model.mean_prior, dtype=np.float64),
        float(d) if model.degrees_of_freedom_prior is None else float(model.degrees_of_freedom_prior),
        by_type[kind] if given is None else np.asarray(given, dtype=np.float64),
        float(model.reg_covar),
    )


def _posterior(model: Any) -> PlainPosterior:
    means, kind = numbers(model, "means_"), model.covariance_type
    k, d = means.shape
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    C, degrees = numbers(model, "covariances_"), numbers(model, "degrees_of_freedom_")
    beta = numbers(model, "mean_precision_")
    stored = model.weight_concentration_
    process = model.weight_concentration_prior_type == "dirichlet_process"
    concentration = np.asarray(stored, dtype=np.float64)
    concentration = concentration if process else np.atleast_2d(concentration)
    if k != model.n_components or C.shape != shapes[kind] or beta.shape != (k,) or concentration.shape[-1] != k:
        raise DataError(got=f"attributes that are not of {model.n_components} components", wanted="those of its fit")
    if degrees.shape != (() if kind == "tied" else (k,)):
        raise DataError(got=f"degrees_of_freedom_ of shape {degrees.shape}", wanted="one for each component")
    return PlainPosterior(concentration, beta, means, np.broadcast_to(degrees, (k,)), as_matrices(C, kind, k, d))


def _prior_checks(model: Any, prior: PlainPrior) -> list[Check]:
    deviation = np.sqrt(np.diag(prior.covariance)) if prior.covariance.ndim == 2 else np.sqrt(prior.covariance)
    deviation = np.where(deviation > 0, deviation, 1.0)  # of a column without spread
    rounding = 16 * np.finfo(np.float64).eps * np.abs(prior.mean) / deviation
    off = float(np.maximum(np.abs(numbers(model, "mean_prior_") - prior.mean) / deviation - rounding, 0.0).max())
    pairs = (
        ("weight_concentration_prior_", prior.concentration),
        ("mean_precision_prior_", prior.mean_precision),
        ("degrees_of_freedom_prior_", prior.degrees),
        ("covariance_prior_", prior.covariance),
    )
    checks = [Check("prior of the means, in deviations", off, 1e-6)]
    for name, wanted in pairs:
        size = float(np.abs(wanted).max()) or 1.0
        found = numbers(model, name)
        gap = np.inf if found.shape != np.shape(wanted) else float(np.abs(found - wanted).max())
        checks.append(Check(f"{name.rstrip('_').replace('_', ' ')}, off by, relative", gap / size, 1e-6))
    return checks


def _derived_checks(model: Any, at: PlainPosterior) -> list[Check]:
    """Check weights and precisions of models that store them."""
    if len(at.concentration) == 1:
        weights = at.concentration[0] / at.concentration[0].sum()
    else:
        share = at.concentration[0] / at.concentration.sum(axis=0)
        weights = np.array([share[j] * np.prod(1 - share[:j]) for j in range(len(share))])
        weights = weights / weights.sum()
    (k, d), kind = at.means.shape, model.covariance_type
    P, precisions = numbers(model, "precisions_cholesky_"), numbers(model, "precisions_")
    if P.shape != np.shape(model.covariances_) or precisions.shape != P.shape:
        raise DataError(got=f"precisions_ of shape {precisions.shape}", wanted="the shape of covariances_")
    products = P @ P.swapaxes(-1, -2) if kind in ("full", "tied") else P**2
    C = np.asarray(at.covariances)
    whole = as_matrices(precisions, kind, k, d), as_matrices(products, kind, k, d)
    off = [float(np.abs(C @ inverse - np.eye(d)).max()) for inverse in whole]
    triangle = float(np.abs(np.tril(P, -1)).max()) if kind in ("full", "tied") else float(max(0.0, -P.min()))
    limit = 1e-6
    return [
        Check("weights, off by", float(np.abs(numbers(model, "weights_") - weights).max()), 1e-8),
        Check("precisions times covariances, off the identity by", max(off), limit * float(np.linalg.cond(C).max())),
        Check("factors of the precisions that are not upper triangular", triangle, 0.0),
    ]
