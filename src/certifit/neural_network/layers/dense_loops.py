"""What stands between the matrix products of dense layers, each one pass over memory: compiled."""

from __future__ import annotations

from certifit.numerics.compiled.compiling import called_from_python, twin_of
from certifit.rows import Array


@called_from_python
def add_biases(y: Array, biases: Array, clip: bool) -> None:
    """Add a bias (units,) to every row (n, units); with `clip` what is negative becomes 0 (ReLU)."""
    zero = y.dtype.type(0)
    for i in range(len(y)):
        for k in range(len(biases)):
            value = y[i, k] + biases[k]
            y[i, k] = zero if clip and value <= zero else value


@twin_of(add_biases)
def _add_biases_of_arrays(y: Array, biases: Array, clip: bool) -> None:
    y += biases
    if clip:
        y[y <= 0] = 0


@called_from_python
def stop_slopes(slopes: Array, y: Array) -> None:
    """Let no slope (n, units) pass where a ReLU's output is 0."""
    zero = slopes.dtype.type(0)
    for i in range(len(y)):
        for k in range(y.shape[1]):
            slopes[i, k] = slopes[i, k] if y[i, k] > zero else zero


@twin_of(stop_slopes)
def _stop_slopes_of_arrays(slopes: Array, y: Array) -> None:
    slopes[~(y > 0)] = 0


__all__ = ["add_biases", "stop_slopes"]
