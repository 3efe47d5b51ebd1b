"""The checker of quadratic discriminant analysis, ours or scikit-learn's.

Priors, means and covariances C_c are compared with those of the rows. Rotations R_c and variances s_c, by which rows
are scored, must be those of C_c: R_c is orthogonal, and A = R_c s_c^(-1/2) has AᵀC_c A = I. In a fit of ours,
variances of C_c below `tol` are taken to be `tol`: the likeliest covariance with no smaller one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.discriminant_analysis.adapter import wanted_prior
from certifit.checkers.discriminant_analysis.class_covariances import (
    class_moments,
    column_deviations,
    estimated,
    ledoit_wolf,
    shrunk,
)
from certifit.checkers.discriminant_analysis.linear import DiscriminantCheckTuning
from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, setting
from certifit.core import Certificate, Check, Estimator, Setting, rounding_within
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, encode_labels


class QuadraticClaim(NamedTuple):
    """The fitted attributes of a quadratic discriminant analysis."""

    priors: Array  # (k,)
    means: Array  # (k, d)
    rotations: Array  # (k, d, d)
    scalings: Array  # (k, d)
    covariances: Array | None  # (k, d, d)
    eps: float  # of the precision that the fit worked in
    signed: bool = True  # whether the largest entry of each axis is positive, as our fits have it


class QuadraticMeasured(NamedTuple):
    """What the rows say."""

    priors: Array  # (k,)
    means: Array  # (k, d)
    covariances: Array  # (k, d, d), as the settings estimate them
    plain: Array  # (k, d, d) of the rows, before anything is added to them
    weight: Array  # (k,)

    def loss(self, priors: Array, means: Array, rotations: Array, scalings: Array) -> float:
        """Minus the log-likelihood of rows and classes with these parameters."""
        total = 0.0
        for c, w in enumerate(self.weight.tolist()):
            A = rotations[c] / np.sqrt(np.where(scalings[c] > 0, scalings[c], np.nan))
            square = np.sum(A * (self.plain[c] @ A)) + np.sum(((self.means[c] - means[c]) @ A) ** 2)
            spread = np.log(scalings[c]).sum() + len(A) * np.log(2 * np.pi)
            total += w * (0.5 * (square + spread) - np.log(priors[c]))
        return float(total)

    def best_loss(self) -> float:
        """The same with what the rows and the settings say."""
        found = [np.linalg.eigh(C) for C in self.covariances]
        return self.loss(self.priors, self.means, np.array([f[1] for f in found]), np.array([f[0] for f in found]))


def certify_quadratic(claim: QuadraticClaim, found: QuadraticMeasured, tol: float, held: int = 0) -> Certificate:
    """Check a fit against what the rows say; so many variances of all classes are held at the least allowed."""
    checks = [Check("priors_ differ by", float(np.abs(claim.priors - found.priors).max()), tol)]
    for c, C in enumerate(found.covariances):
        d, s, R = len(C), claim.scalings[c], claim.rotations[c]
        deviation = column_deviations(np.diag(C), np.abs(found.means[c]))
        # Stored means are rounded, each in its own last digits.
        stored = rounding_within(8 * claim.eps * np.abs(found.means[c]) / deviation, 1.0)
        off = _largest(np.maximum(np.abs(claim.means[c] - found.means[c]) / deviation - stored, 0.0))
        checks.append(Check(f"means_ of class {c} differ by, in standard deviations", off, tol))
        checks.append(
            Check(f"rotation of class {c} is no rotation by", _largest(R.T @ R - np.eye(d)), tol + 32 * d * claim.eps)
        )
        A = R / np.sqrt(np.where(s > 0, s, np.nan))
        # A mean that was rounded, or moved by as much, turns up in a covariance with its square.
        limit = tol + 64 * d * claim.eps * float(s.max() / s.min()) + float(stored.max()) ** 2
        limit = min(limit, 0.1)
        checks.append(Check(f"whitened rows of class {c} are not white by", _largest(A.T @ C @ A - np.eye(d)), limit))
        checks.append(Check(f"variances of class {c} that rise", float((np.diff(s) > 0).sum()), 0.0))
        if claim.signed:
            checks.append(Check(f"axes of class {c} whose largest entry is negative", _turned(R), 0.0))
        if claim.covariances is not None:
            scaled = (claim.covariances[c] - C) / np.outer(deviation, deviation)
            checks.append(Check(f"covariance_ of class {c} differs by", _largest(scaled), limit))
    words = "priors, means and covariances are those of the rows, and rows are scored by them"
    if held:
        words = (
            "priors and means are those of the rows, covariances the likeliest whose variances are all at least tol, "
            "and rows are scored by them"
        )
    objective = found.loss(claim.priors, claim.means, claim.rotations, claim.scalings)
    best = found.best_loss()
    rounding = 1e-10 * (abs(best) + float(found.weight.sum()))
    facts = {"variances held at the least allowed": float(held)} if held else {}
    return Certificate("exact", words, objective, best - rounding, tol, checks=tuple(checks), facts=facts)


def _largest(values: Array) -> float:
    """The largest size of an entry; infinite where one is not a number."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.inf if np.isnan(largest) else largest


def _turned(R: Array) -> float:
    """The number of axes of which no largest entry, of those that rounding may have tied, is positive."""
    size = np.abs(R)
    return float((~((size >= (1 - 1e-9) * size.max(axis=0)) & (R > 0)).any(axis=0)).sum())


def audit_quadratic_discriminants(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every attribute of a quadratic discriminant analysis against the rows and its settings."""
    means = numbers(model, "means_")
    if means.ndim != 2:
        raise DataError(got=f"means_ of shape {means.shape}", wanted="a mean for each class and column")
    k, d = means.shape
    rows = fitted_rows(model, d, X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    if len(labels.weight) != k or not labels.weight.all():
        raise DataError(got=f"{len(labels.weight)} classes_ and {k} means_", wanted="rows of every class")
    ours = isinstance(model, Estimator)
    if ours:
        for name, shape in (("rotations_", (k, d, d)), ("scalings_", (k, d)), ("priors_", (k,))):
            exact_shape(model, name, shape)
        if hasattr(model, "covariance_") != bool(model.store_covariance):
            raise DataError(
                got=f"store_covariance={model.store_covariance!r}", wanted="the settings that it was fitted with"
            )
    parts = {name: _stacked(model, name, shape) for name, shape in _shapes(k, d).items()}
    stored = _stacked(model, "covariance_", (k, d, d)) if bool(model.store_covariance) else None
    eps = float(np.finfo(np.float64 if ours else rows.dtype).eps)
    claim = QuadraticClaim(parts["priors_"], means, parts["rotations_"], parts["scalings_"], stored, eps, ours)
    found = _measured(model, labels.rows, wanted_prior(model, labels.weight))
    if not ours:
        return certify_quadratic(claim, found, tol)
    least = float(setting(model, "tol", Setting(float, least=0, below=np.inf)))
    held = [_held_variances(C, least) for C in found.covariances]
    found = found._replace(covariances=np.array([C for C, _ in held]))
    return certify_quadratic(claim, found, min(tol, DiscriminantCheckTuning().exact), sum(n for _, n in held))


def _held_variances(C: Array, least: float) -> tuple[Array, int]:
    """A covariance (d, d) whose smaller variances are made `least`, and how many of them there are."""
    s, R = np.linalg.eigh(C)
    small = s <= least
    return (C + (R * np.where(small, least - s, 0.0)) @ R.T, int(small.sum())) if small.any() else (C, 0)


def _shapes(k: int, d: int) -> dict[str, tuple[int, ...]]:
    return {"priors_": (k,), "rotations_": (k, d, d), "scalings_": (k, d)}


def _stacked(model: Any, name: str, shape: tuple[int, ...]) -> Array:
    """A fitted attribute, an array or a list of arrays of each class, refused in another shape."""
    value = getattr(model, name)
    sizes = {np.shape(part) for part in value}
    if len(sizes) != 1 or (len(value), *sizes.pop()) != shape:
        raise DataError(got=f"{name} of {len(value)} parts", wanted=f"numbers of shape {shape}")
    return np.asarray(value, dtype=np.float64)


def _measured(model: Any, rows: Rows, prior: Array) -> QuadraticMeasured:
    """What the settings make of the rows."""
    svd = setting(model, "solver", Setting(choices=("svd", "eigen")), "svd") == "svd"
    share = float(setting(model, "reg_param", Setting(float, least=0, most=1))) if svd else 0.0
    means, covariances, plain, weight = [], [], [], []
    for c in range(len(prior)):
        one = class_moments(rows, c)
        means.append(one.mean)
        plain.append(one.covariance)
        weight.append(one.weight)
        if svd:
            C = (1 - share) * one.covariance + share * np.eye(len(one.mean))
        elif getattr(model, "covariance_estimator", None) is not None:
            C = estimated(rows, c, model.covariance_estimator)
        elif isinstance(model.shrinkage, str):
            C = ledoit_wolf(rows, c, one)
        else:
            C = shrunk(one.covariance, float(model.shrinkage or 0.0))
        covariances.append(C)
    return QuadraticMeasured(prior, np.array(means), np.array(covariances), np.array(plain), np.array(weight))
