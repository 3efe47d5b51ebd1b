"""The kernel that a fitted model says it used, in plain NumPy, and whether it is one.

A kernel with a name is known to be positive semidefinite or not (`PlainKernel.valid`). Of any other function a Gram
matrix of the fitted rows is looked at, all of them or a sample: `semidefinite_on` proves it positive semidefinite by
a factor, refutes it by a witness (`checkers.linalg.definite`), or says that neither was possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from certifit.checkers.fitted import numbers
from certifit.checkers.kernel_approximation.kernel_error import KernelErrorTuning, same, scale_gamma
from certifit.checkers.linalg import definite
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import PLAIN_KERNELS, ForeignKernel, GivenKernel, PlainKernel
from certifit.core import Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Rows

PROVED = "positive semidefinite by construction"


@dataclass(frozen=True)
class GramCheckTuning:
    """How much of a Gram matrix is looked at."""

    sampled_rows: int = 1500  # rows on which a kernel that is not proved valid is tried
    symmetric: float = 1e-5  # k(x, z) - k(z, x), relative: kernel values may come in float32


def kernel_of(model: Any, data: ArrayRows) -> tuple[PlainKernel, tuple[Check, ...]]:
    """The kernel of a machine fitted on these rows, and whether its gamma is what it is set to be."""
    own_gamma(model)
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        return GivenKernel(dense(data.X)), ()
    if callable(model.kernel):
        return ForeignKernel(model.kernel), ()
    rows = data if isinstance(model, Estimator) else ArrayRows(data.X)  # scikit-learn counts every row alike
    degree, coef0 = getattr(model, "degree", 3), getattr(model, "coef0", 0.0)
    if model.kernel == "linear":  # which has no use for gamma: of tiny rows 'scale' may be infinite
        return named_kernel(model.kernel, 1.0, degree, coef0), ()
    checks = gamma_check(model, rows)
    # Where the number kept is not the one that is set, the claim is about the one that is set.
    gamma = fitted_gamma(model, rows) if all(check.passed for check in checks) else _set_gamma(model, rows)
    return named_kernel(model.kernel, gamma, degree, coef0), checks


def named_kernel(kernel: Any, gamma: float, degree: Any, coef0: Any) -> PlainKernel:
    """The kernel of this name."""
    if kernel not in PLAIN_KERNELS:
        known = ", ".join(PLAIN_KERNELS)
        raise DataError(got=f"kernel={kernel!r}", wanted=f"one of {known}, 'precomputed' or a callable")
    return PLAIN_KERNELS[kernel](gamma, degree, float(coef0))


def fitted_gamma(model: Any, rows: Rows) -> float:
    """Gamma as fitted, where the model keeps it; else as it is set."""
    own_gamma(model)
    for name in ("gamma_", "_gamma"):
        if isinstance(getattr(model, name, None), Real):
            return _checked_gamma(float(numbers(model, name)))
    return _checked_gamma(_set_gamma(model, rows))


def own_gamma(model: Any) -> None:
    """Refuse a model of ours whose gamma is no number."""
    if isinstance(model, Estimator) and not isinstance(model.gamma_, Real):
        got = f"gamma_ = {model.gamma_!r} in a {type(model).__name__}"
        raise DataError(got=got, wanted="a number", fix="Leave its attributes as the fit left them.")


def _checked_gamma(gamma: float) -> float:
    if not 0 <= gamma < np.inf:
        raise DataError(got=f"gamma = {gamma:g}", wanted="a finite number, at least 0")
    return gamma


def _set_gamma(model: Any, rows: Rows) -> float:
    if isinstance(model.gamma, Real):
        return float(model.gamma)
    return scale_gamma(rows) if model.gamma == "scale" else 1.0 / rows.n_features


def gamma_check(model: Any, rows: Rows) -> tuple[Check, ...]:
    """Whether gamma='scale' is the number that the rows give; a linear kernel has no use for it."""
    kernel = getattr(model, "kernel", "rbf")
    if callable(kernel) or kernel == "linear":
        return ()
    found, wanted = np.array(fitted_gamma(model, rows)), np.array(_set_gamma(model, rows))
    # Others may have computed it in float32; a fit of ours never does.
    limit = 1e-9 if isinstance(model, Estimator) else KernelErrorTuning.same
    return (same("gamma differs from its meaning", found, wanted, limit),)


def semidefinite_on(
    kernel: Callable[[Array, Array], Array], X: Any, used: Array, tuning: GramCheckTuning = GramCheckTuning()
) -> tuple[bool, str]:
    """Whether the Gram matrix of the rows `used` (n,) is proved positive semidefinite, and what was found."""
    rows = np.flatnonzero(used)
    places = np.linspace(0, len(rows) - 1, min(len(rows), tuning.sampled_rows))
    sample = rows[np.unique(places.astype(np.int64))]
    part = dense(X[sample])
    G = np.asarray(kernel(part, part), np.float64)
    if np.abs(G - G.T).max() > tuning.symmetric * np.abs(G).max():
        return False, "not symmetric: the objective has no bound"
    verdict = is_semidefinite((G + G.T) / 2)
    if verdict == "no":
        return False, "not positive semidefinite: the objective has no bound"
    if verdict == "yes" and len(sample) == len(rows):
        return True, "positive semidefinite on these rows"
    return False, f"not refuted on {len(sample)} of {len(rows)} rows"


def is_semidefinite(G: Array) -> Literal["yes", "no", "undecided"]:
    """Whether a symmetric G (n, n) is positive semidefinite to rounding, proved either way or not at all.

    >>> is_semidefinite(np.ones((2, 2))), is_semidefinite(np.array([[1.0, 2.0], [2.0, 1.0]]))
    ('yes', 'no')
    """
    diagonal = np.diag(G)
    units = np.sqrt(np.where(diagonal > 0, diagonal, np.abs(G).max() or 1.0))  # (n,) of the rows
    scaled = G / units / units[:, None]
    try:
        factor = cholesky(scaled, lower=True)
    except LinAlgError:  # the factor of the nearest semidefinite matrix, which is not triangular
        values, vectors = eigh(scaled)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
    if definite.certify_factor(G, units[:, None] * factor, strict=False).holds:
        return "yes"
    worst = int(diagonal.argmin())
    v = np.eye(len(G))[worst]
    if diagonal[worst] >= 0 and G[worst].any():
        v = eigh(scaled, subset_by_index=[0, 0])[1][:, 0] / units  # the direction in which vᵀGv is least
    if definite.certify_witness(G, v / np.abs(v).max(), strict=False).proved:
        return "no"
    if len(G) > 32:  # beyond this order elimination in rational numbers takes long
        return "undecided"
    found = definite.eliminate(G)
    if not found.semidefinite:
        return "no"
    return "yes" if found.definite else "undecided"
