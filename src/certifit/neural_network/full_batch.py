"""Training on all rows at once by L-BFGS, in float64: for small tables, where it ends at a vanishing gradient."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from certifit.neural_network.descent import DescentState
from certifit.neural_network.training import GradientSums, TrainingTask, check_finite
from certifit.rows import Array


def minimise_on_all_rows(
    task: TrainingTask, sums: GradientSums, theta: Array, alpha: float, tol: float, max_iter: int
) -> DescentState:
    """Minimise the mean loss plus α |W|² / (2 Σ w) until no slope is larger than `tol`."""
    state = DescentState(theta)
    windows = task.windows(sums.tuning)
    m = task.network.n_weights

    def objective(x: Array) -> tuple[float, Array]:
        weight = value = 0.0
        gradient = np.zeros_like(x)
        for window in windows():
            some_weight, some_value, some_gradient = sums(x, window, slice(0, len(window.w)), 0)
            weight, value, gradient = weight + some_weight, value + some_value, gradient + some_gradient
        gradient[:m] += alpha * x[:m]
        value = (value + 0.5 * alpha * float(x[:m] @ x[:m])) / weight
        check_finite(task.network, x, value, 1, len(state.losses) + 1)
        return value, gradient / weight

    def note(intermediate_result: object) -> None:
        state.losses.append(float(intermediate_result.fun))  # type: ignore[attr-defined]
        state.theta = intermediate_result.x.astype(task.dtype)  # type: ignore[attr-defined]

    try:
        options = {"maxiter": max_iter, "gtol": tol, "maxfun": 15 * max_iter, "ftol": 0.0}
        found = minimize(
            objective, theta.astype(np.float64), jac=True, method="L-BFGS-B", callback=note, options=options
        )
    except KeyboardInterrupt:
        state.interrupted = True
        return state
    state.theta = found.x.astype(task.dtype)
    state.losses = state.losses or [float(found.fun)]
    return state
