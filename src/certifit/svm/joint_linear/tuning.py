"""The numbers that steer how joint linear machines are solved, never what is solved."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class NewtonDirectionTuning:
    """Numbers that steer the conjugate gradients for one Newton direction."""

    gram_columns: int = 2000  # columns up to which the preconditioner has XᵀX; beyond, its diagonal
    preconditioner_rows: int = 4096  # rows that suffice for it
    fewest_steps: int = 5
    most_steps: int = 100


@dataclass(frozen=True)
class JointSvmTuning:
    """h is the weight of the proximal term, in units of the margin; gradients are measured by their squares."""

    # rounds
    widest: float = 3.0  # h at first, or more:
    first_curvature: float = 100.0  # the largest u |x|² / h of a row at first
    narrowest: float = 1e-5  # h at last
    solved_share: float = 0.5  # of what q has moved: a smooth problem with a smaller gap of its own counts as solved
    easy_steps: int = 2  # Newton steps within which a round counts as easy
    hard_steps: int = 12  # Newton steps from which a round counts as too hard
    easy_divisor: float = 3.0  # of h after an easy round
    usual_divisor: float = 1.5  # of h after any other
    hard_divisor: float = 0.5  # of h where a round is too hard
    free_bias_tau: float = 100.0  # τ of free biases, in units of |x|²

    # Newton steps
    few_parameters: int = 1000  # d k up to which Newton's equations are solved exactly and in float64
    exact_residual: float = 1e-12  # share of the gradient at which they then count as solved
    rough_residual: float = 0.1  # the same for more parameters
    float32_range: float = 1e15  # sizes up to which squares fit into float32
    passes: int = 8  # over all rows that one direction may cost
    flat_share: float = 0.5  # of the slope at which a line search ends
    line_search_trials: int = 8
    chunk_rows: int = 8192  # that a thread takes at a time
    renewal_share: float = 0.7  # of the free rows at which the preconditioner is renewed

    # more digits than asked for, where they are cheap
    small: int = 200_000  # n d k of tables for which they are
    sharp_gap: float = 1e-13  # the relative gap aimed at
    extra_steps: int = 30  # spent on it at most

    direction: NewtonDirectionTuning = field(default_factory=NewtonDirectionTuning)
