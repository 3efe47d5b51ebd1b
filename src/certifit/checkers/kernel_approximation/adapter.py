"""Fitted kernel features, ours or scikit-learn's, and machines on them, as what they claim to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, setting
from certifit.checkers.kernel_approximation import approximate_svc
from certifit.checkers.kernel_approximation import kernel_error as checker
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import ForeignKernel, PlainKernel, PlainRadial, table_function
from certifit.checkers.svm.kernel_adapter import fitted_gamma, gamma_check, named_kernel, own_gamma
from certifit.checkers.svm.linear_machines import linear as linear_svm
from certifit.checkers.svm.linear_machines.linear_adapter import claimed_linear_svm
from certifit.core import Certificate, Check, Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, apply_class_weight, encode_labels
from certifit.rows.mapped import MappedRows


def audit_nystroem(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a Nystroem, with any kernel that SVC takes."""
    rows = fitted_rows(model, _columns(model, "components_", 1), X, None, sample_weight, "none")
    return _nystroem(model, rows, tol)


def audit_fourier(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check an RBFSampler."""
    rows = fitted_rows(model, _columns(model, "random_weights_", 0), X, None, sample_weight, "none")
    return _fourier(model, rows, tol)


def _columns(model: Any, name: str, axis: int) -> int:
    """Columns of the rows it was fitted on, by an attribute of two axes."""
    shape = np.shape(getattr(model, name))
    if len(shape) != 2:
        raise DataError(got=f"{name} of shape {shape} in a {type(model).__name__}", wanted="a table of numbers")
    return int(shape[axis])


def audit_approximate_svc(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check an ApproximateSVC: its features, and the linear machine on them."""
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    features, spec = model.features_, claimed_linear_svm(model)
    scores = len(labels.classes) if len(labels.classes) > 2 else 1
    coef = exact_shape(model, "coef_", (scores, _n_features(features)))
    intercept = exact_shape(model, "intercept_", (scores,))
    check = _nystroem if hasattr(features, "components_") else _fourier
    own = check(features, labels.rows, checker.KernelErrorTuning().feature_tol)
    phi, kernel = _feature_map(features, labels.rows)
    rows = apply_class_weight(labels, model.class_weight)
    found = linear_svm.certify(coef, intercept, spec, tol, MappedRows(rows, phi, coef.shape[1]))
    facts = dict(own.facts)
    if facts.get("kernel") == checker.KernelStatus.PROVED:
        machines = approximate_svc.FeatureMachines(coef, intercept, spec, phi)
        of_tables = partial(_values_of_tables, kernel)
        exact = approximate_svc.exact_kernel_fact(machines, of_tables, rows, found.objective, own.objective)
        facts = {**exact, **facts}
    checks = (*found.checks, *own.checks, _settings_check(model, features))
    return replace(found, claim=approximate_svc.FeatureMachines.claim, checks=checks, facts=facts)


def _n_features(features: Any) -> int:
    """How many features there are."""
    if hasattr(features, "components_"):
        return int(np.shape(features.normalization_)[0])
    return len(numbers(features, "random_offset_"))


def _settings_check(model: Any, features: Any) -> Check:
    """Check that the features have the settings of the machine."""
    kind = "nystroem" if hasattr(features, "components_") else "fourier"
    set_to = {"features": kind, "kernel": "rbf", **features.get_params()}
    names = ("features", "kernel", "gamma", "degree", "coef0", "n_components")
    other = [name for name in names if name in set_to and set_to[name] != getattr(model, name)]
    return Check("settings of the features that are not the machine's", float(len(other)), 0.0)


def _nystroem(model: Any, rows: Rows, tol: float) -> Certificate:
    own_gamma(model)
    kernel = _kernel(model, rows)
    index = np.asarray(model.component_indices_)
    status = checker.KernelStatus.PROVED if kernel.valid else checker.KernelStatus.UNREFUTED
    N = numbers(model, "normalization_")
    claim = checker.NystroemClaim(dense(model.components_), N, index)
    most = int(setting(model, "n_components", Setting(int, least=1)))
    checks = (
        *gamma_check(model, rows),
        Check("landmarks beyond n_components", float(max(0, len(claim.L) - most)), 0.0),
        *(_root_checks(N, tol) if isinstance(model, Estimator) else ()),
    )
    # Ours are the rows themselves; others may have stored them as float32.
    close = 0.0 if isinstance(model, Estimator) else checker.KernelErrorTuning.same
    return checker.certify_nystroem(
        claim, kernel, status, tol, rows, (checker.landmark_check(claim, rows, close), *checks)
    )


def _root_checks(N: Array, tol: float) -> tuple[Check, ...]:
    """Whether N (m, m) is the one root of k(L, L)⁻¹ that is symmetric and positive semidefinite, as ours is.

    Any rotation of the features stands for the same kernel; scikit-learn's root has noise where k(L, L) is singular.
    """
    if N.ndim != 2 or N.shape[0] != N.shape[1]:
        raise DataError(got=f"a normalization_ of shape {N.shape}", wanted="a square matrix, a row for each landmark")
    size = float(np.abs(N).max()) or 1.0
    lowest = float(np.linalg.eigvalsh((N + N.T) / 2)[0])
    return (
        Check("normalisation that is not symmetric, relative", float(np.abs(N - N.T).max()) / size, tol),
        Check("negative eigenvalue of the normalisation, relative", max(0.0, -lowest) / size, tol),
    )


def _fourier(model: Any, rows: Rows, tol: float) -> Certificate:
    W, b, gamma = numbers(model, "random_weights_"), numbers(model, "random_offset_"), fitted_gamma(model, rows)
    drawn = _draw_again(model, gamma, *W.shape)
    checks, origin = gamma_check(model, rows), checker.FrequencyOrigin.UNKNOWN
    most = int(setting(model, "n_components", Setting(int, least=1)))
    if b.shape != (W.shape[1],):
        raise DataError(got=f"{W.shape[1]} frequencies and {b.size} offsets", wanted="an offset for each frequency")
    checks += (
        Check("features beyond or short of n_components", float(abs(len(b) - most)), 0.0),
        checker.frequency_check(W, gamma, isinstance(model, Estimator)),
    )
    if drawn is not None:
        pairs = zip(("frequencies", "offsets"), (W, b), drawn, strict=True)
        # Far from 0 the last digits of frequencies move phases; ours are drawn in float64 whatever the rows are.
        limit = 1e-12 if isinstance(model, Estimator) else checker.KernelErrorTuning.same
        checks += tuple(
            checker.same(f"{name} differ from their seed's", ours, seeded, limit) for name, ours, seeded in pairs
        )
        origin = checker.FrequencyOrigin.SEEDED
    return checker.certify_fourier(checker.FourierClaim(W, b, gamma), tol, rows, checks, origin)


def _draw_again(model: Any, gamma: float, d: int, m: int) -> tuple[Array, Array] | None:
    """Frequencies and offsets drawn again, ours or as scikit-learn draws them, where the seed is known."""
    if hasattr(model, "seed_"):
        return checker.draw_again(int(model.seed_), gamma, d, m)
    if not isinstance(model.random_state, (int, np.integer)):
        return None
    rng = np.random.RandomState(model.random_state)
    W = np.sqrt(2 * gamma) * rng.normal(size=(d, m))
    return W, rng.uniform(0, 2 * np.pi, size=m)


def _kernel(model: Any, rows: Rows) -> PlainKernel:
    """The kernel by its settings; scikit-learn's None stands for the defaults of its kernels."""
    if callable(model.kernel):
        return ForeignKernel(table_function(model.kernel, getattr(model, "kernel_params", None)))
    coef0, degree = (1.0 if model.coef0 is None else model.coef0), (3 if model.degree is None else model.degree)
    return named_kernel(model.kernel, fitted_gamma(model, rows), degree, coef0)


def _feature_map(model: Any, rows: Rows) -> tuple[Callable[[Block], Array], checker.PlainKernelFunction]:
    """Features of a block, and the kernel they approximate."""
    if hasattr(model, "random_weights_"):
        W, b = numbers(model, "random_weights_"), numbers(model, "random_offset_")
        return partial(checker.fourier_features, W, b), PlainRadial(fitted_gamma(model, rows))
    kernel = _kernel(model, rows)
    L, N = dense(model.components_), numbers(model, "normalization_")
    return partial(checker.nystroem_features, kernel, L, N), kernel


def _values_of_tables(kernel: checker.PlainKernelFunction, A: Any, B: Any) -> Array:
    return kernel(dense(A), dense(B))
