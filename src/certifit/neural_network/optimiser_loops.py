"""One step of an optimiser in one pass over the parameters."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def step_adam(theta, gradient, first, second, numbers):
    """Move theta (p,) by Adam; numbers = (rate, β₁, β₂, ε), the rate corrected for the start at 0."""
    rate, b1, b2, eps = numbers
    one = theta.dtype.type(1)
    for j in range(len(theta)):
        g = gradient[j]
        m = b1 * first[j] + (one - b1) * g
        v = b2 * second[j] + (one - b2) * g * g
        first[j], second[j] = m, v
        theta[j] -= rate * m / (np.sqrt(v) + eps)


@called_from_python
def step_momentum(theta, gradient, velocity, numbers):
    """Move theta (p,) by gradient descent with momentum; numbers = (rate, momentum, 1 for Nesterov's, else 0)."""
    rate, momentum, nesterov = numbers
    for j in range(len(theta)):
        v = momentum * velocity[j] - rate * gradient[j]
        velocity[j] = v
        theta[j] += nesterov * (momentum * v - rate * gradient[j] - v) + v
