"""Locally linear embedding re-checked from the data: neighbours, weights, coordinates, and that none are smoother.

With D the differences of a row's neighbours to it in the embedding Y, the objective is Σ tr(DᵀBD) = tr(YᵀMY), each B
(k, k) from the row's own weights. M - τ I is factored; its negative pivots count the eigenvalues of M below τ. Where
there are as many as columns in Q (orthonormal, the constant vector and Y among them), with Θ = QᵀMQ, C = MQ - QΘ,

    λ_j >= θ_j - |C|² / (μ - θ_j),     μ = τ - |C|² / (τ - θ_max),

since the Schur complement of Θ - τ I in M - τ I then has no negative eigenvalue (Haynsworth 1968).

A neighbour graph in parts makes M block-diagonal: each part has a constant vector of its own with the eigenvalue 0,
and coordinates of its own. All parts are then checked one by one, each scaled to its share of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from certifit.checkers.manifold.local_systems import EPS, LocalErrors, local_forms, unit_grams
from certifit.checkers.manifold.neighbour_graph import connected_parts, count_needless_joins, find_faults
from certifit.checkers.manifold.tangent_forms import TangentMethod, tangent_forms
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows


@dataclass(frozen=True)
class EmbeddingCheckTuning:
    """How much work the checker does where the coordinates alone prove too little."""

    dense_rows: int = 300  # up to which all eigenvectors are computed
    spare_vectors: int = 3  # computed beyond those wanted: τ is placed in a gap between their eigenvalues
    shift: float = 1e-12  # relative to M's largest diagonal entry, so that it can be inverted


NeighbourKind = Literal["nearest", "joined", "any"]


class EmbeddingSpec(NamedTuple):
    """The problem that was solved."""

    modified: bool
    reg: float
    neighbours: NeighbourKind = "nearest"  # joined: but for those that join parts
    by_parts: bool = True  # whether parts of the neighbour graph have coordinates of their own
    inclusive: bool = True  # modified: a share equal to the median of all rows counts as small
    eps: float = EPS  # relative precision of the coordinates
    signed: bool = True  # whether the first of each column's largest entries must be positive
    tangent: TangentMethod = ""  # which local forms of tangent spaces take the place of weights, if any


@dataclass(frozen=True)
class PartNumbers:
    """What checks and bound of one part of the neighbour graph are made of; its columns Y have unit length."""

    share: float  # of all rows
    values: Array  # (k,) diag YᵀMY
    residuals: Array  # (k,) |M y - value y|
    theta: Array  # (q,) eigenvalues of QᵀMQ, ascending
    leak: float  # |C|_F
    constant: float  # 1ᵀM1 / n
    tau: float
    below: int  # eigenvalues of M below τ
    rounding: float  # by which τ may be off
    size: float  # largest diagonal entry of M
    norm: float  # bound on M's largest eigenvalue: its largest row sum
    entries: int  # most entries of a row of M
    moved: float  # bound on |δF Y|, by rounding of the weights
    shaken: float  # bound on |δF|
    skew: float  # largest entry of YᵀY - I
    mean: float  # largest mean of a column, relative
    turned: int  # columns of which the first of the largest entries is negative

    @property
    def objective(self) -> float:
        """tr YᵀMY."""
        return float(self.values.sum())

    @property
    def allowance(self) -> float:
        """How much the objective may differ between two computations: of M's entries, and of the weights in it."""
        weights = 2 * np.sqrt(max(self.objective, 0.0)) * self.moved + self.moved**2
        entries = 16 * len(self.values) * EPS * self.size  # the bound is lowered by half of it
        # An objective that is nothing but the rounding of M cannot be told from any other such.
        floor = 2 * len(self.values) * self.entries * EPS * self.norm
        return float(entries + 2 * weights + (floor if self.objective <= floor else 0.0))

    @property
    def residual_allowance(self) -> float:
        """The same of M y - value y: of δFᵀ F Y and Fᵀ δF Y."""
        return float(np.sqrt(self.norm) * self.moved + self.shaken * (np.sqrt(max(self.objective, 0.0)) + self.moved))


class GraphNumbers(NamedTuple):
    """What is known of neighbours and local systems."""

    local: float  # largest residual of the local systems, relative
    parts: tuple[int, ...]  # number of rows of each part
    joins: int = 0  # rows whose last neighbour joins two parts
    # checks of the neighbours, by name; empty where a fit found them itself
    faults: tuple[tuple[str, float], ...] = ()
    disorder: float = 0.0  # share of rows whose neighbours are not nearest first
    open: int = 0  # rows whose weights the modified method leaves open


class ClaimedEmbedding(NamedTuple):
    """An embedding as its model states it."""

    Y: Array  # (n, k) coordinates
    error: float  # sum of squared local errors
    neighbours: Array  # (n, size) row numbers


def certify(
    claimed: ClaimedEmbedding,
    spec: EmbeddingSpec,
    tol: float,
    rows: Rows,
    tuning: EmbeddingCheckTuning = EmbeddingCheckTuning(),
) -> Certificate:
    """Check the coordinates, their error and the neighbours on these rows."""
    Y, error, neighbours = claimed
    X = _unit_size(rows.map(_dense_rows))
    n, k = Y.shape
    if len(X) != n:
        raise DataError(got=f"an embedding of {n} rows and a table of {len(X)}", wanted="the rows it was fitted on")
    if neighbours.shape[0] != n or neighbours.min() < 0 or neighbours.max() >= n:
        raise DataError(got=f"neighbours {neighbours.shape} of {n} rows", wanted="row numbers for each row")
    if spec.tangent:
        forms = tangent_forms(X, neighbours, k, spec.tangent)
    else:
        forms = local_forms(X, neighbours, spec.reg, (k, spec.inclusive) if spec.modified else None)
    label = connected_parts(neighbours)
    sizes = np.bincount(label)
    graph = _graph_numbers(X, neighbours, spec, float(np.finfo(rows.dtype).eps))
    graph = graph._replace(local=forms.residual, parts=tuple(int(s) for s in sizes), open=forms.open)
    label = label if spec.by_parts else np.zeros(n, int)
    found = []
    for p in range(int(label.max()) + 1):
        here = np.flatnonzero(label == p)
        place = np.empty(n, int)
        place[here] = np.arange(len(here))
        part = ClaimedPart(Y[here], place[neighbours[here]], X[here], len(here) / n)
        found.append(_measure_part(part, forms.B[here], forms.errors.at(here), tol, tuning))
    return assemble(found, graph, error, tol, spec)


def _dense_rows(block: Block) -> Array:
    return dense(block.X)


def _unit_size(X: Array) -> Array:
    """Rows scaled by a power of 2, which changes no digit: differences of close rows stay exact."""
    size = float(np.abs(X - X[0]).max())
    return X * 2.0 ** -float(np.frexp(size)[1])


def _graph_numbers(X: Array, neighbours: Array, spec: EmbeddingSpec, eps: float) -> GraphNumbers:
    found = find_faults(X, neighbours, eps)
    n = len(X)
    # a row whose last neighbour alone is too far may have it as a join of two parts
    joined = found.further & ~found.further_but_last if spec.neighbours == "joined" else np.zeros(n, bool)
    faults = [("share of rows with a neighbour twice or themselves", float(found.twice.mean()))]
    if spec.neighbours != "any":
        faults.append(("share of rows with a nearer row left out", float((found.further & ~joined).mean())))
    if spec.neighbours == "joined":
        faults.append(("joins of parts that were not needed", float(count_needless_joins(neighbours, joined))))
    disorder = 0.0 if spec.neighbours == "any" else float((found.disorder & ~joined).mean())
    return GraphNumbers(0.0, (), int(joined.sum()), tuple(faults), disorder)


class ClaimedPart(NamedTuple):
    """One part of the neighbour graph as its model states it."""

    Y: Array  # (m, k) coordinates
    neighbours: Array  # (m, size) in the part's own numbers
    X: Array  # (m, d) rows
    share: float  # of all rows


def allowed_move(values: Array, tol: float) -> float:
    """How large |δF Y| may be for its effect on the objective to be small against the tolerance."""
    return tol / 50 * float(np.sqrt(max(values.sum(), 0.0)))


def _measure_part(
    part: ClaimedPart, B: Array, errors: LocalErrors, tol: float, tuning: EmbeddingCheckTuning
) -> PartNumbers:
    """Measure the coordinates of one part, with its local forms B (m, size, size)."""
    neighbours, (rows, k) = part.neighbours, part.Y.shape
    Y = np.asarray(part.Y, np.float64) / np.sqrt(part.share)
    M = assemble_matrix(B, neighbours)
    form = partial(_inner_products, B, neighbours)
    values = np.diag(form(Y))
    theta, leak = _ritz_values(M, form, np.column_stack([np.ones(rows), Y]))
    size = float(M.diagonal().max())
    counted = _count_below(M, 1.02 * float(theta[-1]) + 8 * EPS * size)
    found = PartNumbers(
        share=part.share,
        values=values,
        residuals=np.linalg.norm(M @ Y - Y * values, axis=0),
        theta=theta,
        leak=leak,
        constant=0.0,  # differences of a constant vector are 0
        tau=counted.tau,
        below=counted.below,
        rounding=counted.rounding,
        **sizes_of(M),
        moved=errors.moved(Y, neighbours, partial(unit_grams, part.X, neighbours), allowed_move(values, tol)),
        shaken=errors.norm(neighbours),
        **offsets_of(Y),
    )
    if found.objective - lower_bound(found, k) <= tol * found.objective:
        return found
    # Where Y is not what it should be, or other eigenvalues are close, a better basis than Y proves more.
    with suppress(ArpackNoConvergence, RuntimeError):
        for basis, tau in _smallest_vectors(M, k, tol, tuning):
            theta, leak = _ritz_values(M, form, basis)
            counted = _count_below(M, tau)
            better = replace(
                found, theta=theta, leak=leak, tau=counted.tau, below=counted.below, rounding=counted.rounding
            )
            found = max(found, better, key=lambda numbers: lower_bound(numbers, k))
    return found


def sizes_of(M: Any) -> dict[str, Any]:
    """The sizes of M (n, n), sparse, to which its rounding is relative."""
    return {
        "size": float(M.diagonal().max()),
        "norm": float(abs(M).sum(axis=0).max()),
        "entries": int(np.diff(M.indptr).max()),
    }


def offsets_of(Y: Array) -> dict[str, Any]:
    """How far the columns of Y (rows, k) are from orthonormal and centred ones with the usual signs."""
    rows, k = Y.shape
    size = np.abs(Y)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return {
        "turned": int((Y[first, np.arange(k)] < 0).sum()),
        "skew": float(np.abs(Y.T @ Y - np.eye(k)).max()),
        "mean": float(np.abs(Y.mean(axis=0)).max() * np.sqrt(rows)),
    }


def _inner_products(B: Array, neighbours: Array, Q: Array) -> Array:
    """QᵀMQ from differences, which keep the digits that products with M lose where M Q is small."""
    D = Q[neighbours] - Q[:, None]
    return np.einsum("iac,iae->ce", D, B @ D)


def _ritz_values(M: Any, form: Callable[[Array], Array], basis: Array) -> tuple[Array, float]:
    """Eigenvalues of QᵀMQ, ascending, and |C|_F, for an orthonormal Q with the span of the basis (n, q)."""
    Q = np.linalg.qr(basis)[0]
    inner = form(Q)
    return np.linalg.eigvalsh((inner + inner.T) / 2), float(np.linalg.norm(M @ Q - Q @ inner))


def assemble(
    parts: list[PartNumbers], graph: GraphNumbers, error: float, tol: float, spec: EmbeddingSpec
) -> Certificate:
    """Make the certificate from the measured numbers of every part."""
    fine = 64 * spec.eps
    loose = max(tol, fine)
    k = len(parts[0].values)
    limits = [loose * m.objective + m.allowance for m in parts]
    objective, limit = _shared(parts, [m.objective for m in parts]), _shared(parts, limits)
    smooth = [np.sqrt(loose) * float(m.values.max()) + fine * m.size + m.residual_allowance for m in parts]
    falls = [float(np.maximum(-np.diff(m.values), 0.0).max(initial=0.0)) for m in parts]
    checks = [
        _worst("columns orthonormal to", [m.skew for m in parts], [max(1e-9, fine)] * len(parts)),
        _worst("columns' mean, relative", [m.mean for m in parts], [max(loose, 1e-9)] * len(parts)),
        _worst("eigenvector residuals", [float(m.residuals.max()) for m in parts], smooth),
        _worst("columns out of order: error falls by", falls, limits),
        Check("reconstruction error off by", abs(error - objective), limit),
        Check("local systems solved to", graph.local, 1e-9),
        *(Check(name, share, 0.0) for name, share in graph.faults),
    ]
    if graph.faults:
        checks.append(Check("share of rows whose neighbours are out of order", graph.disorder, 0.0))
    if spec.signed:
        checks.append(Check("columns with the other sign", float(sum(m.turned for m in parts)), 0.0))
    if not spec.by_parts:
        checks.append(Check("parts of the neighbour graph", float(len(graph.parts)), 1.0))
    bounds = [max(0.0, lower_bound(m, k) - 8 * k * EPS * m.size) for m in parts]
    # other neighbours make another problem, of which nothing is known
    bound = 0.0 if any(share > 0 for _, share in graph.faults) else _shared(parts, bounds)
    scale = _shared(parts, [max(m.objective, k * m.size) for m in parts])
    facts = _facts(parts, graph, spec)
    return Certificate(
        "optimal", _claim(graph, spec), objective, bound, tol, limit, tuple(checks), facts, scale=scale
    )


def _shared(parts: list[PartNumbers], numbers: list[float]) -> float:
    """The sum over parts of numbers about columns of unit length, each part scaled to its share of the rows."""
    return float(sum(m.share * number for m, number in zip(parts, numbers, strict=True)))


def _worst(name: str, residuals: list[float], limits: list[float]) -> Check:
    """The check of the part that comes nearest to failing it, or fails it most."""
    checks = [Check(name, r, limit) for r, limit in zip(residuals, limits, strict=True)]
    return max(checks, key=lambda c: (not c.passed, c.residual - c.limit))


def _claim(graph: GraphNumbers, spec: EmbeddingSpec) -> str:
    if spec.by_parts and len(graph.parts) > 1:
        return (
            f"in each of the {len(graph.parts)} parts of the neighbour graph, sum of squared local errors of the "
            "coordinates within gap of the smallest that orthonormal, centred ones of that part reach, each part "
            "scaled to its share of the rows; nothing is claimed of how the parts lie to each other"
        )
    return (
        "sum of squared local errors of the coordinates within gap of the smallest that orthonormal, centred ones "
        "reach"
    )


def _facts(parts: list[PartNumbers], graph: GraphNumbers, spec: EmbeddingSpec) -> dict[str, float | str]:
    facts: dict[str, float | str] = {}
    if len(parts) == 1:
        facts["eigenvalues below"] = f"{parts[0].below} below {parts[0].tau:.4g}"
    if len(graph.parts) > 1:
        largest = sorted(graph.parts, reverse=True)
        words = ", ".join(map(str, largest[:5])) + (", …" if len(largest) > 5 else "")
        facts["parts of the neighbour graph"] = f"{len(largest)}, of {words} rows"
    if spec.neighbours == "any":
        facts["neighbours"] = "approximate: the claim is for these, which need not be the nearest"
    if graph.joins:
        facts["neighbours"] = (
            f"{graph.joins} of them join parts: the claim is for these, which need not be the nearest"
        )
    if graph.open:
        what = "tangent space is" if spec.tangent else "weights the modified method leaves"
        facts[f"rows whose {what} open"] = float(graph.open)
    return facts


def lower_bound(m: PartNumbers, k: int) -> float:
    """A lower bound on the objective of any k orthonormal columns that are orthogonal to the constant vector."""
    tau = m.tau - m.rounding
    room = tau - m.theta[-1]
    plain = max(0, k + 1 - m.below) * max(0.0, tau) - m.constant
    if m.below == len(m.theta) and room > 0:
        known = m.theta[: k + 1]
        rest = tau - m.leak**2 / room - known
        if rest[-1] > 0:
            # those that were not found are at least τ
            return max(plain, float((known - m.leak**2 / rest).sum()) + (k + 1 - len(known)) * tau - m.constant)
    return plain


def assemble_matrix(B: Array, neighbours: Array) -> Any:
    """M (n, n) in CSC with yᵀMy = Σ dᵀBd, d the differences of a row's neighbours to it."""
    n, size = neighbours.shape
    own = np.arange(n)[:, None]
    every = np.concatenate([own, neighbours], axis=1)
    to_own = -B.sum(axis=1)
    full = np.empty((n, size + 1, size + 1))
    full[:, 1:, 1:], full[:, 0, 1:], full[:, 1:, 0], full[:, 0, 0] = B, to_own, to_own, -to_own.sum(axis=1)
    i, j = np.repeat(every, size + 1, axis=1), np.tile(every, (1, size + 1))
    return sparse.csc_array((full.ravel(), (i.ravel(), j.ravel())), shape=(n, n))


def _smallest_vectors(M: Any, k: int, tol: float, tuning: EmbeddingCheckTuning) -> list[tuple[Array, float]]:
    """Eigenvectors (n, q) with the q smallest eigenvalues of M, and τ in the gap above them, for two q.

    The first q takes in all that are wanted and lies at the widest gap. The second stops before eigenvalues that are
    equal to the last one wanted, of which there may be any number.
    """
    n = M.shape[0]
    most = min(n, k + 2 + tuning.spare_vectors)
    if n <= tuning.dense_rows or most >= n:
        values, vectors = eigh(M.toarray(), subset_by_index=[0, most - 1])
    else:
        shift = tuning.shift * float(M.diagonal().max())
        lu = splu((M + shift * sparse.eye_array(n)).tocsc(), permc_spec="MMD_AT_PLUS_A")
        inverse = LinearOperator((n, n), matvec=lu.solve, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=n)
        values, vectors = eigsh(M, most, sigma=-shift, which="LM", OPinv=inverse, v0=start)
        order = np.argsort(values)
        values, vectors = values[order], vectors[:, order]
    if most == n:  # no eigenvalue is larger than the trace
        values = np.append(values, 2 * float(M.diagonal().sum()) + 1.0)
    gaps = np.diff(values)[k:]
    q = k + 1 + int(gaps.argmax())
    above = vectors[:, :q], float(values[q - 1] + gaps.max() / 2)
    q = max(1, min(k, int(np.searchsorted(values, values[k] * (1 - tol / 8)))))
    room = min(tol / 16 * values[q], (values[q] - values[q - 1]) / 2)
    return [above, (vectors[:, :q], float(values[q] - room))]


@dataclass(frozen=True)
class EigenvalueCount:
    """How many eigenvalues of M lie below τ, and by how much τ may be off."""

    tau: float
    below: int
    rounding: float


def _count_below(M: Any, tau: float) -> EigenvalueCount:
    """Count the eigenvalues of M (n, n) below τ by the negative pivots of M - τ I (Sylvester's law of inertia)."""
    n = M.shape[0]
    try:
        lu = splu(
            (M - tau * sparse.eye_array(n)).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # a pivot that is exactly 0: nothing is known but that there are at most n
        return EigenvalueCount(tau, n, 0.0)
    L, U = lu.L, lu.U
    longest = int(np.diff(L.indptr).max())
    rounding = 2 * longest * EPS * float((abs(L) @ (abs(U) @ np.ones(n))).max())
    kept = bool((lu.perm_r == lu.perm_c).all())  # where rows were exchanged, the pivots' signs say nothing
    return EigenvalueCount(tau, int((U.diagonal() < 0).sum()) if kept else n, rounding)
