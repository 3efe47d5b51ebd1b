"""Numbers that steer how logistic regression is solved, never what it computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogisticTuning:
    """Sizes at which another method is taken."""

    newton_parameters: int = 800  # parameters up to which solver='auto' forms the Hessian
    descent_parameters: int = 200  # of several classes, from which L-BFGS leads Newton's method near the solution
    hessian_parameters: int = 4000  # parameters up to which it is formed where there is no other way
    sample_rows: int = 2**15  # of the subsample that gives shift, preconditioner and start; twice for two classes
    long_table: int = 2**18  # rows from which Newton starts at the subsample's solution
    sample_tol: float = 1e-3  # relative gap to which the subsample is solved
    error_share: float = (
        1e-6  # maximum likelihood is solved to this share of the standard errors, if those are wanted
    )
    factored_columns: int = 2048  # columns up to which L-BFGS's preconditioner is a factored matrix, else a diagonal
    curvature_share: float = 0.95  # share of a class's curvature that the rows in its preconditioner must carry
    strict_tol: float = 1e-7  # below which the checker is asked whether an L1-penalised fit is proved
    checked_entries: int = 2**17  # rows times parameters up to which the checker is asked for errors, if need be
    moved_score: float = 0.01  # how far the score of a row may move where coefficients are rounded to float32
