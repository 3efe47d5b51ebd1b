"""Proof that no maximum-likelihood fit exists: a direction along which no row's loss rises and some falls for ever.

| model | which way a row's scores may go for ever |
|---|---|
| logistic, softmax | the score of its own class above all others: the direction separates the classes |
| binomial | up for a success (y = 1), down for a failure (y = 0), neither for a share between |
| others with a log link | down for a target of 0 (or below, gaussian), neither for any other |

One linear program looks for the direction; whatever it finds is then checked row by row, and is the witness.
Reference: Albert & Anderson, "On the existence of maximum likelihood estimates in logistic regression models" (1984).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.optimize import linprog

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.logistic.dual_point import both_scores, onehot
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.response_columns import response_columns
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums

ROUNDING = 256 * np.finfo(float).eps  # of a row's score, relative to the sizes summed


@dataclass(frozen=True)
class RecessionTuning:
    """How large a table a linear program is tried on."""

    program_entries: int = 2**22  # rows times parameters


class ProgramRows(NamedTuple):
    """Rows moved and scaled so that the unknowns of the linear program are of size 1."""

    Z: Array  # (n, d1) the last column 1 where there is an intercept
    low: Array  # (d,) smallest entry of each column, or 0 without an intercept
    spread: Array  # (d,) largest entry of each column above `low`
    intercept: bool

    @classmethod
    def of(cls, X: Array, intercept: bool) -> ProgramRows:
        low = X.min(axis=0) if intercept else np.zeros(X.shape[1])
        spread = np.abs(X - low).max(axis=0)
        spread[spread == 0] = 1.0
        Z = (X - low) / spread
        return cls(np.column_stack([Z, np.ones(len(Z))]) if intercept else Z, low, spread, intercept)

    def direction(self, leads: Array, fixed: Array | None = None) -> Array | None:
        """A flat v (m,) with leads · v >= 0, > 0 for some row of `leads` (r, m), and fixed · v = 0; None if none."""
        zeros = None if fixed is None else np.zeros(len(fixed))
        found = linprog(
            -leads.sum(axis=0), A_ub=-leads, b_ub=np.zeros(len(leads)), A_eq=fixed, b_eq=zeros, bounds=(-1, 1)
        )
        return found.x if found.success and (leads @ found.x).max() >= 1e-6 else None

    def in_columns(self, v: Array) -> Array | None:
        """A direction (k, d1) of these rows as one of the given columns; None where it overflows."""
        d = len(self.spread)
        v = np.where(np.abs(v) < 1e-12, 0.0, v)  # rounding of the program, whose unknowns are of size 1
        with np.errstate(over="ignore", invalid="ignore"):
            v[:, :d] /= self.spread
            if self.intercept:
                v[:, d] -= v[:, :d] @ self.low
        return v if np.isfinite(v).all() else None


@dataclass(frozen=True)
class DirectionSides(Sums):
    """How far rows move the right and the wrong way along a direction."""

    wrong: Largest  # how far a row goes the wrong way, relative to the sizes summed in its score
    strict: int  # rows that strictly gain


def _no_maximum(
    claim: str, sides: DirectionSides, checks: tuple[str, str], facts: tuple[str, str], v: Array
) -> Certificate:
    """The certificate that no maximum exists; `checks` and `facts` are the names of its numbers."""
    return Certificate(
        "impossible",
        claim,
        checks=(
            Check(checks[0], float(sides.wrong.value), ROUNDING),
            Check(checks[1], float(sides.strict == 0), 0.0),
        ),
        facts={
            facts[0]: sides.strict,
            facts[1]: _in_words(v),
        },
        witness=tuple(map(tuple, np.atleast_2d(v).tolist())),
    )


def _in_words(v: Array, most: int = 12) -> str:
    """The numbers of a direction (d1,) or (k, d1), of many the first; the witness has them all."""
    flat = np.ravel(v)
    numbers = ", ".join(f"{x:.3g}" for x in flat[:most])
    if len(flat) > most:
        return f"[{numbers}, …] ({len(flat)} numbers)"
    if np.ndim(v) > 1 and len(v) > 1:
        return "[" + ", ".join(_in_words(row) for row in v) + "]"
    return f"[{numbers}]"


# Logistic and softmax regression. ------------------------------------------------------------------------------


def separation(rows: Rows, k: int, fit_intercept: bool) -> Array | None:
    """A direction v (k, d1) with z·(v_y - v_c) >= 0 for every row and class c, > 0 for some; None if there is none.

    Two classes have one score: v is (1, d1).
    """
    data = rows.load()
    X, y = dense(data.X)[data.w > 0], np.asarray(data.y)[data.w > 0]
    program = ProgramRows.of(X, fit_intercept)
    leads = []
    for c in range(k):  # each row's lead over class c, as a linear function of v
        other = y != c
        lead = np.zeros((int(other.sum()), k, program.Z.shape[1]))
        lead[np.arange(len(lead)), y[other]] = program.Z[other]
        lead[:, c] = -program.Z[other]
        leads.append(lead.reshape(len(lead), -1))
    found = program.direction(np.concatenate(leads))
    if found is None:
        return None
    v = found.reshape(k, -1)
    return program.in_columns(v[1:] - v[:1] if k == 2 else v)


def separable(
    rows: Rows, k: int, fit_intercept: bool, tuning: RecessionTuning = RecessionTuning()
) -> Certificate | None:
    """The proof that k classes are separable; None if they are not, or if the table is too large to look."""
    if rows.n_rows * (rows.n_features + fit_intercept) * (k if k > 2 else 1) > tuning.program_entries:
        return None
    direction = separation(rows, k, fit_intercept)
    certificate = None if direction is None else separated(direction, fit_intercept, rows)
    return certificate if certificate is not None and certificate.proved else None


def separated(v: Array, fit_intercept: bool, rows: Rows) -> Certificate:
    """Check that v (k, d1), or (1, d1) for two classes, separates the classes of these rows."""
    d = rows.n_features
    sides = rows.sum(partial(_class_sides, *both_scores(v[:, :d], v[:, d] if fit_intercept else np.zeros(len(v)))))
    return _no_maximum(
        LinearModelClaims.separable,
        sides,
        ("rows on the wrong side by", "direction separates no row (1: yes)"),
        ("rows that it separates strictly", "separating direction"),
        v,
    )


def _class_sides(beta: Array, b: Array, block: Block) -> DirectionSides:
    Z, y = dense(block.X)[block.w > 0], np.asarray(block.y)[block.w > 0]
    scores = Z @ beta.T + b
    own = np.take_along_axis(scores, y[:, None].astype(int), axis=1)
    rivals = np.where(onehot(y, len(b)) > 0, -np.inf, scores)
    size = (np.abs(Z) @ np.abs(beta).T + np.abs(b)).max(axis=1, initial=np.finfo(float).tiny)
    lead = (own[:, 0] - rivals.max(axis=1)) / size
    return DirectionSides(Largest(max(0.0, float(-lead.min(initial=0.0)))), int((lead > ROUNDING).sum()))


# Generalised linear models. ------------------------------------------------------------------------------------


def unbounded(rows: Rows, claim: GlmClaim, tuning: RecessionTuning = RecessionTuning()) -> Certificate | None:
    """The proof that a deviance has no minimum; None if it has one, or if the table is too large to look."""
    certificate = one_way(rows, claim)
    if certificate is not None or claim.alpha > 0:
        return certificate
    if rows.n_rows * (rows.n_features + 1) > tuning.program_entries:
        return None
    data = rows.load()
    X, way = _ways(claim, Block(data.X, data.y, data.w, 0))
    program = ProgramRows.of(X, claim.intercept)
    leads, fixed = program.Z[way != 0] * way[way != 0, None], program.Z[way == 0]
    if not len(leads):
        return None
    found = program.direction(leads, qr(fixed, mode="r")[0][: fixed.shape[1]] if len(fixed) else None)
    v = None if found is None else program.in_columns(found[None])
    certificate = None if v is None else falling(v[0], claim, rows)
    return certificate if certificate is not None and certificate.proved else None


def one_way(rows: Rows, claim: GlmClaim) -> Certificate | None:
    """The proof that there is no minimum, penalty or not, because every row gains as a free intercept goes one way.

    Targets that are all 0, say, beside a log link. None where some row would lose.
    """
    if not claim.intercept or (claim.family != "binomial" and claim.link != "log"):
        return None
    ways: set[float] = set()
    for block in rows:
        y, _, w = response_columns(claim.layout, block)
        way = _way(claim, y[w > 0])
        ways |= {float(way.min()), float(way.max())} if len(way) else set()
        if 0.0 in ways or len(ways) > 1:  # a few rows tell
            return None
    if not ways:
        return None
    v = np.zeros(rows.n_features + 1)
    v[-1] = ways.pop()
    certificate = falling(v, claim, rows)
    return certificate if certificate.proved else None


def falling(v: Array, claim: GlmClaim, rows: Rows) -> Certificate:
    """Check that no row's deviance rises along v (d1,), the intercept last, and that some row's falls for ever.

    Beside a penalty nothing but the intercept may move.
    """
    sides = rows.sum(partial(_deviance_sides, v, claim))
    if claim.alpha > 0 and v[: rows.n_features].any():
        sides = DirectionSides(Largest(np.inf), 0)
    return _no_maximum(
        LinearModelClaims.unbounded_penalised if claim.alpha > 0 else LinearModelClaims.unbounded,
        sides,
        ("rows that go the wrong way by", "the direction changes no row (1: yes)"),
        ("rows whose deviance falls for ever", "direction"),
        v,
    )


def _ways(claim: GlmClaim, block: Block) -> tuple[Array, Array]:
    """Rows (n, d) with a positive weight; +1 where a score may rise for ever, -1 where it may fall, 0 elsewhere."""
    y, _, w = response_columns(claim.layout, block)
    X, y = dense(block.X)[w > 0], y[w > 0]
    return X, _way(claim, y)


def _way(claim: GlmClaim, y: Array) -> Array:
    if claim.family == "binomial":
        return np.where(y == 1, 1.0, np.where(y == 0, -1.0, 0.0))
    low = y <= 0 if claim.family == "gaussian" else y == 0
    return np.where(low, -1.0, 0.0) if claim.link == "log" else np.zeros_like(y)


def _deviance_sides(v: Array, claim: GlmClaim, block: Block) -> DirectionSides:
    X, way = _ways(claim, block)
    Z = np.column_stack([X, np.ones(len(X))]) if claim.intercept else X
    size = np.abs(Z) @ np.abs(v) + np.finfo(float).tiny
    move = (Z @ v) / size
    wrong = np.where(way == 0, np.abs(move), -way * move)
    return DirectionSides(Largest(max(0.0, float(wrong.max(initial=0.0)))), int(((way * move) > ROUNDING).sum()))
