"""The adapter of kernel PCA, ours or scikit-learn's: it reads settings and attributes, and makes the Gram matrix."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.decomposition.kernel_pca import (
    ComponentTerms,
    InverseClaim,
    KernelPCAClaim,
    PlainCosine,
    PlainPairs,
    certify,
    measure_gram,
    rounding_of,
    with_inverse,
)
from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, setting
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import PLAIN_KERNELS, ForeignKernel, PlainKernel, PlainLinear
from certifit.core import Certificate, Check, Estimator, Setting
from certifit.exceptions import DataError


def audit_kernel_pca(model: Any, X: Any, _y: Any, _sample_weight: Any, tol: float) -> Certificate:
    """Check eigenvalues, eigenvectors and everything that `transform` and `inverse_transform` compute with."""
    ours = isinstance(model, Estimator)
    values, V = numbers(model, "eigenvalues_"), numbers(model, "eigenvectors_")
    rows = fitted_rows(model, int(model.n_features_in_), X, None, None, "none")
    data = rows.load().X
    if V.ndim != 2 or values.shape != (V.shape[1],) or len(V) != data.shape[0]:
        raise DataError(
            got=f"eigenvectors_ of shape {V.shape}, {values.size} eigenvalues_ and {data.shape[0]} rows",
            wanted="a row for each row, and a column for each eigenvalue",
        )
    gamma = _gamma(model, data.shape[1])
    kernel = fitted_kernel(model, data, gamma)
    K = dense(data) if kernel is None else np.asarray(kernel(_double(data), _double(data)), np.float64)
    # scikit-learn works in the precision of the rows.
    eps = float(np.finfo(np.float64 if ours else np.asarray(model.eigenvectors_).dtype).eps)
    found = measure_gram(K, gram_rounding(kernel, data) * eps / float(np.finfo(np.float64).eps))
    claim = KernelPCAClaim(values, V, exact_shape(model, "gram_means_", (len(V),)) if ours else None)
    certificate = certify(claim, found, component_terms(model), tol)
    # scikit-learn centres a given Gram matrix in place, and has no use for it afterwards.
    off = 0.0 if kernel is None and not ours else _differing_entries(model.X_fit_, data)
    checks = (
        *certificate.checks,
        Check("entries of X_fit_ that are not the rows'", off, 0.0),
        Check("gamma_ differs from its meaning, relative", abs(float(model.gamma_) - gamma) / (gamma or 1.0), 1e-12),
    )
    certificate = replace(certificate, checks=checks)
    if not model.fit_inverse_transform:
        if ours and hasattr(model, "dual_coef_"):
            raise DataError(got="dual_coef_ with fit_inverse_transform=False", wanted="the settings of the fit")
        return certificate
    Z = V * np.sqrt(np.maximum(values, 0.0))
    coef = exact_shape(model, "dual_coef_", (len(V), data.shape[1]))
    if not ours:
        off = float(np.abs(numbers(model, "X_transformed_fit_") - Z).max())
        check = Check("coordinates kept for the inverse, off by", off, tol * float(np.abs(Z).max(initial=0.0)))
        certificate = replace(certificate, checks=(*certificate.checks, check))
    inverse = InverseClaim(coef, Z, data, float(setting(model, "alpha", Setting(float, least=0))))
    return with_inverse(certificate, inverse, plain_kernel(model, gamma))


def gram_rounding(kernel: PlainKernel | None, X: Any) -> float:
    """How far rounding may move the eigenvalues of the Gram matrix of these rows."""
    if kernel is not None:
        return rounding_of(kernel, X)
    return 8 * float(np.finfo(np.float64).eps) * float(np.abs(dense(X)).sum(axis=1).max())


def component_terms(model: Any) -> ComponentTerms:
    """What the settings say of the number of components."""
    asked = setting(model, "n_components", Setting(int, least=1, none=True))
    zeros = bool(setting(model, "remove_zero_eig", Setting(bool)))
    return ComponentTerms(None if asked is None else int(asked), asked is None or zeros, isinstance(model, Estimator))


def fitted_kernel(model: Any, X: Any, gamma: float) -> PlainKernel | None:
    """The kernel of the fitted rows, a linear one about their mean; None where the Gram matrix is given."""
    if _is(model, "precomputed"):
        return None
    if _is(model, "linear") and not sparse.issparse(X):
        return PlainLinear(np.asarray(X.mean(axis=0, dtype=np.float64)))
    return plain_kernel(model, gamma)


def plain_kernel(model: Any, gamma: float) -> PlainKernel:
    """The kernel that the settings name."""
    if callable(model.kernel):
        if hasattr(model.kernel, "valid"):  # a kernel of two tables, as certifit's algebra makes them
            return ForeignKernel(model.kernel)
        return PlainPairs(model.kernel, dict(model.kernel_params or {}))
    if model.kernel == "cosine":
        return PlainCosine()
    if model.kernel not in PLAIN_KERNELS:
        raise DataError(got=f"kernel={model.kernel!r}", wanted="one of " + ", ".join(PLAIN_KERNELS))
    return PLAIN_KERNELS[model.kernel](gamma, model.degree, float(model.coef0))


def _is(model: Any, name: str) -> bool:
    return isinstance(model.kernel, str) and model.kernel == name


def _gamma(model: Any, d: int) -> float:
    gamma = setting(model, "gamma", Setting(float, least=0, below=math.inf, none=True))
    return 1.0 / d if gamma is None else float(gamma)


def _double(X: Any) -> Any:
    return X.astype(np.float64)


def _differing_entries(kept: Any, X: Any) -> float:
    kept, X = dense(kept), dense(X)
    return float(np.inf) if kept.shape != X.shape else float((kept != X).sum())
