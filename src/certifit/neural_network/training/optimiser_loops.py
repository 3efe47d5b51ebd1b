"""One step of an optimiser over the flat vector of all parameters, in one pass: compiled.

Slopes are those of a minibatch or of its first chunk; those of the second, if there are any, are added on the way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of
from certifit.rows import Array


class AdamRates(NamedTuple):
    """The numbers of one step of Adam."""

    rate: float  # with the correction of both means for their start at 0
    beta_1: float
    beta_2: float
    epsilon: float
    ridge: float  # times a parameter is added to its slope
    decay: float  # times a parameter is taken off it (AdamW)


class MomentumRates(NamedTuple):
    """The numbers of one step of gradient descent."""

    rate: float
    momentum: float
    ahead: bool  # whether the step is Nesterov's
    ridge: float


# To look for divisors of 0 would keep the loop from vector instructions; epsilon is above 0.
@called_from_python
def adam_step(params: Array, slopes: Array, second: Array, mean: Array, square: Array, rates: AdamRates) -> None:
    """Move parameters by Adam, and update the running means of slopes and of their squares."""
    one = params.dtype.type(1)
    rate, epsilon = params.dtype.type(rates.rate), params.dtype.type(rates.epsilon)
    beta_1, beta_2 = params.dtype.type(rates.beta_1), params.dtype.type(rates.beta_2)
    ridge, decay = params.dtype.type(rates.ridge), params.dtype.type(rates.decay)
    alone = len(second) == 0
    for i in range(len(params)):
        g = (slopes[i] if alone else slopes[i] + second[i]) + ridge * params[i]
        m = beta_1 * mean[i] + (one - beta_1) * g
        v = beta_2 * square[i] + (one - beta_2) * g * g
        mean[i], square[i] = m, v
        params[i] -= rate * m / (np.sqrt(v) + epsilon) + decay * params[i]


@twin_of(adam_step)
def _adam_step_of_arrays(
    params: Array, slopes: Array, second: Array, mean: Array, square: Array, rates: AdamRates
) -> None:
    rate, beta_1, beta_2, epsilon, ridge, decay = (params.dtype.type(x) for x in rates)
    one = params.dtype.type(1)
    g = (slopes + second if len(second) else slopes) + ridge * params
    mean[:] = beta_1 * mean + (one - beta_1) * g
    square[:] = beta_2 * square + (one - beta_2) * g * g
    params -= rate * mean / (np.sqrt(square) + epsilon) + decay * params


@called_from_python
def momentum_step(params: Array, slopes: Array, second: Array, velocity: Array, rates: MomentumRates) -> None:
    """Move parameters by gradient descent with momentum."""
    rate, momentum = params.dtype.type(rates.rate), params.dtype.type(rates.momentum)
    ridge = params.dtype.type(rates.ridge)
    alone = len(second) == 0
    for i in range(len(params)):
        push = rate * ((slopes[i] if alone else slopes[i] + second[i]) + ridge * params[i])
        v = momentum * velocity[i] - push
        velocity[i] = v
        params[i] += momentum * v - push if rates.ahead else v


@twin_of(momentum_step)
def _momentum_step_of_arrays(
    params: Array, slopes: Array, second: Array, velocity: Array, rates: MomentumRates
) -> None:
    rate, momentum, ridge = (params.dtype.type(x) for x in (rates.rate, rates.momentum, rates.ridge))
    push = rate * ((slopes + second if len(second) else slopes) + ridge * params)
    velocity[:] = momentum * velocity - push
    params += momentum * velocity - push if rates.ahead else velocity
