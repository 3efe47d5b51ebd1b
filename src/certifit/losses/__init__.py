"""The one home of loss mathematics.

Public are losses of a margin y f or a residual y - f: values, slopes, conjugates, proximal steps and calibration.
Generalised linear models take theirs from `response_losses` (a family of `response_families` with a link of `links`),
logistic regression from `softmax_loops` and `softmax`. The checkers' second, plain form of the same formulas is
`checkers.plain.response_losses`.

>>> from certifit.losses import Hinge, Logistic
>>> Hinge().value([-1.0, 0.5, 2.0]).tolist()
[2.0, 0.5, 0.0]
>>> Logistic().bounds_zero_one, Logistic(base=2).bounds_zero_one
(False, True)
"""

from certifit.losses.hinges import Hinge, HuberisedHinge, Quadratic, SquaredHinge
from certifit.losses.likelihoods import ExponentialLoss as Exponential
from certifit.losses.likelihoods import Logistic
from certifit.losses.loss import Loss
from certifit.losses.margin import MarginLoss, ZeroOne
from certifit.losses.residual import EpsilonInsensitive, SquaredEpsilonInsensitive

__all__ = [
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "HuberisedHinge",
    "Logistic",
    "Loss",
    "MarginLoss",
    "Quadratic",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "ZeroOne",
]
