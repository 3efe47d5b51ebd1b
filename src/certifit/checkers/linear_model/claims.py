"""The sentences that certificates of linear models may claim, for solvers and checkers alike."""

from __future__ import annotations

from typing import ClassVar


class LinearModelClaims:
    penalised: ClassVar[str] = "penalised negative log-likelihood within gap of its minimum"
    likelihood: ClassVar[str] = "negative log-likelihood within gap of its minimum, which exists"
    gradient: ClassVar[str] = "the gradient is small; with this many parameters and no penalty no distance is proved"
    held: ClassVar[str] = "deviance within gap of its minimum among coefficients of at least 0"
    penalised_held: ClassVar[str] = "penalised deviance within gap of its minimum among coefficients of at least 0"
    penalised_deviance: ClassVar[str] = "penalised deviance within gap of its minimum"
    deviance: ClassVar[str] = "deviance within gap of its minimum, which exists"
    stationary: ClassVar[str] = (
        "one more Newton step lowers the objective by at most the decrement; nothing is claimed about other optima"
    )
    firth: ClassVar[str] = (
        "the modified score equations hold: a further step moves no coefficient; nothing global is claimed"
    )
    separable: ClassVar[str] = (
        "the classes are separable: the likelihood rises for ever along the separating direction and has no maximum"
    )
    unbounded_penalised: ClassVar[str] = (
        "the penalised deviance falls for ever as the intercept, which is not penalised, goes one way: no minimum"
    )
    unbounded: ClassVar[str] = "the likelihood rises for ever along the direction below and has no maximum"

    @classmethod
    def of_deviance(cls, penalised: bool, positive: bool) -> str:
        """What is claimed of a convex deviance: beside a penalty, and among coefficients of at least 0."""
        if positive:
            return cls.penalised_held if penalised else cls.held
        return cls.penalised_deviance if penalised else cls.deviance
