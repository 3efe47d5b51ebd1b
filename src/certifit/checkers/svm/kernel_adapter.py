"""The kernel that a fitted model says it used, in plain NumPy, and whether it is one."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.kernel_approximation.kernel_error import same, scale_gamma
from certifit.checkers.plain import kernels as plain_kernels
from certifit.checkers.plain.blocks import dense
from certifit.core import Check, Estimator
from certifit.exceptions import DataError
from certifit.linalg import positive_definite
from certifit.rows import Array, ArrayRows, Rows

SAMPLE = 1500  # rows on which a kernel that is not proved valid is tried
SYMMETRIC = 1e-5  # k(x, z) - k(z, x), relative: kernel values may come in float32
PROVED = "positive semidefinite by construction"


class KernelValues(NamedTuple):
    values: plain_kernels.Plain
    valid: bool  # positive semidefinite, whatever the rows


def kernel_of(model: Any, data: ArrayRows) -> tuple[KernelValues, tuple[Check, ...]]:
    """Of a machine fitted on these rows, and whether its gamma is what it is set to be."""
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        return KernelValues(plain_kernels.Given(dense(data.X)), False), ()
    if callable(model.kernel):
        return own_kernel(model.kernel), ()
    rows = data if isinstance(model, Estimator) else ArrayRows(data.X)  # scikit-learn counts every row alike
    degree, coef0 = getattr(model, "degree", 3), getattr(model, "coef0", 0.0)
    return named_kernel(model.kernel, fitted_gamma(model, rows), degree, coef0), gamma_check(model, rows)


def own_kernel(kernel: Callable[[Any, Any], Any]) -> KernelValues:
    """A function of the user's."""
    return KernelValues(plain_kernels.Foreign(kernel), bool(getattr(kernel, "valid", False)))


def named_kernel(kernel: Any, gamma: float, degree: Any, coef0: Any) -> KernelValues:
    coef0 = float(coef0)
    known = {
        "linear": KernelValues(plain_kernels.Linear(), True),
        "rbf": KernelValues(plain_kernels.Radial(gamma), gamma >= 0),
        "poly": KernelValues(
            plain_kernels.Polynomial(degree, gamma, coef0), min(gamma, coef0) >= 0 and degree == int(degree)
        ),
        "sigmoid": KernelValues(plain_kernels.Sigmoid(gamma, coef0), False),
    }
    if kernel not in known:
        raise DataError(got=f"kernel={kernel!r}", wanted=f"one of {', '.join(known)}, 'precomputed' or a callable")
    return known[kernel]


def fitted_gamma(model: Any, rows: Rows) -> float:
    """As fitted, where the model says so; else as it is set."""
    for name in ("gamma_", "_gamma"):
        if isinstance(getattr(model, name, None), Real):
            return float(getattr(model, name))
    return _set_gamma(model, rows)


def _set_gamma(model: Any, rows: Rows) -> float:
    if isinstance(model.gamma, Real):
        return float(model.gamma)
    return scale_gamma(rows) if model.gamma == "scale" else 1.0 / rows.n_features


def gamma_check(model: Any, rows: Rows) -> tuple[Check, ...]:
    """'scale' means a number that the rows give; a linear kernel has no use for it."""
    kernel = getattr(model, "kernel", "rbf")
    if callable(kernel) or kernel == "linear":
        return ()
    found, wanted = np.array(fitted_gamma(model, rows)), np.array(_set_gamma(model, rows))
    return (same("gamma differs from its meaning", found, wanted),)


def tried(kernel: Callable[[Array, Array], Array], X: Any, used: Array) -> tuple[bool, str]:
    """Whether the Gram matrix is proved positive semidefinite, and how far that was looked into."""
    rows = np.flatnonzero(used)
    sample = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64))]
    part = dense(X[sample])
    G = np.asarray(kernel(part, part), np.float64)
    if np.abs(G - G.T).max() > SYMMETRIC * np.abs(G).max():
        return False, "not symmetric: the objective has no bound"
    answer = positive_definite((G + G.T) / 2, strict=False)
    if answer.verdict == "no":
        return False, "not positive semidefinite: the objective has no bound"
    if answer and len(sample) == len(rows):
        return True, "positive semidefinite on these rows"
    return False, f"not refuted on {len(sample)} of {len(rows)} rows"
