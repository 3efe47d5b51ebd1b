"""Fully corrective boosting: all coefficients of an ensemble of stumps or boxes at once, until its gap closes.

Stagewise coefficients are never looked at again. Here the loss is minimised over all sums of boxes whose
coefficients have the same total size Λ as those that the stages have found,

    min  Σ w φ(y, b + Σ βₕ h(x))    over b and Σ |βₕ| <= Λ,

by column generation: the problem over the boxes at hand is solved by Newton's method with the ball as constraint,
then the boxes with the largest edge join. Reference: Shalev-Shwartz, Srebro & Zhang, Trading accuracy for sparsity in
optimization problems with sparsity constraints (2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.ensemble.boosting.box_gap import (
    BoxTuning,
    Condition,
    ConditionBox,
    GridTable,
    asked_borders,
    border_grid,
    boxes_of,
)
from certifit.checkers.ensemble.boosting.plain_trees import plain_trees
from certifit.checkers.ensemble.score_losses import PlainScoreLoss
from certifit.checkers.ensemble.stump_gap import best_shift
from certifit.ensemble.boosting.boosted_trees import BoostedTrees, FinishedTree, joined_trees
from certifit.rows import Array


@dataclass(frozen=True)
class CorrectiveTuning:
    """When to stop, and how much is done in between."""

    tol: float = 2e-5  # of the loss of the best constant, that the gap may be at the end
    rounds: int = 100  # most, in which boxes join
    joining: int = 24  # boxes of a round
    newton_steps: int = 20  # most, of a round
    inner_steps: int = 3000  # most, of the projected gradient in a Newton step


@dataclass
class BoxModel:
    """b + Z β, with the columns of Z (n, m) the boxes' indicators."""

    boxes: list[ConditionBox]
    Z: Array
    beta: Array
    intercept: float

    @property
    def scores(self) -> Array:
        return self.intercept + self.Z @ self.beta


def corrected_trees(trees: BoostedTrees, X: Array, y: Array, w: Array, loss: PlainScoreLoss) -> BoostedTrees:
    """The best sum of stumps, or of boxes on a grid where trees have depth 2, of the size of these trees.

    X (n, d) are coded rows with weights w > 0; the loss has one score and a curvature.
    """
    tuning, plain = CorrectiveTuning(), plain_trees(trees)
    found = boxes_of(plain)
    size = float(sum(map(abs, found.values())))
    boxes = [box for _, box in found]
    pairs = bool((np.diff(plain.first) > 3).any())
    model = BoxModel(boxes, _indicators(boxes, X), np.array([*found.values()]), float(plain.baseline[0]))
    borders = BoxTuning().borders if pairs else len(X)
    table = GridTable(X, border_grid(X, asked_borders(plain, X.shape[1]), borders))
    scale = float(w @ loss.value(y, np.full(len(y), _best_intercept(y, w, loss))))
    for _ in range(tuning.rounds):
        _minimise(model, (y, w), loss, size, tuning)
        slope = w * loss.slope(y, model.scores)
        joining = _best_boxes(table, slope, pairs, tuning.joining)
        edge = max((abs(float(slope @ _holds(box, X))) for box in joining), default=0.0)
        if size * edge + float(slope @ (model.Z @ model.beta)) <= 0.3 * tuning.tol * scale:
            break
        known = set(model.boxes)
        fresh = [box for box in joining if box not in known]
        kept = np.flatnonzero(model.beta)
        model.boxes = [model.boxes[i] for i in kept] + fresh
        model.Z = np.column_stack([model.Z[:, kept], _indicators(fresh, X)])
        model.beta = np.append(model.beta[kept], np.zeros(len(fresh)))
    used = np.flatnonzero(model.beta)
    finished = [_box_tree(model.boxes[i], float(model.beta[i]), X) for i in used]
    return joined_trees(finished, trees.categories, np.array([model.intercept]))


def _best_intercept(y: Array, w: Array, loss: PlainScoreLoss) -> float:
    start = float(np.average(y, weights=w)) if loss.translates else 0.0
    return start + float(best_shift(y, w, np.full(len(y), start), loss))


def _holds(box: ConditionBox, X: Array) -> Array:
    inside = np.ones(len(X), bool)
    for condition in box:
        inside &= condition.holds(X)
    return inside


def _indicators(boxes: list[ConditionBox], X: Array) -> Array:
    return np.column_stack([_holds(box, X) for box in boxes]).astype(np.float64) if boxes else np.empty((len(X), 0))


# The problem over the boxes at hand -----------------------------------------------------------------------------


def _minimise(
    model: BoxModel, rows: tuple[Array, Array], loss: PlainScoreLoss, size: float, tuning: CorrectiveTuning
) -> None:
    """Move β within its ball, and the intercept, by Newton's method until the gap over these boxes is small."""
    y, w = rows
    for _ in range(tuning.newton_steps):
        model.intercept += float(best_shift(y, w, model.scores, loss))
        F = model.scores
        now = float(w @ loss.value(y, F))
        slope, curve = w * loss.slope(y, F), w * loss.curvature(y, F)
        pull = model.Z.T @ slope
        left = float(pull @ model.beta + size * np.abs(pull).max(initial=0.0))
        if left <= 0.1 * tuning.tol * abs(now):
            return
        centre = (curve @ model.Z) / curve.sum()
        hessian = (model.Z * curve[:, None]).T @ model.Z - curve.sum() * np.outer(centre, centre)
        target = _quadratic_minimum(hessian, pull, model.beta, size, tuning.inner_steps)
        step = target - model.beta
        shift = -float(centre @ step)
        share, moved = 1.0, model.Z @ step + shift
        while share > 1e-8 and float(w @ loss.value(y, F + share * moved)) > now + 1e-4 * share * float(pull @ step):
            share /= 2
        if share <= 1e-8:
            return
        model.beta = model.beta + share * step
        model.intercept += share * shift


def _quadratic_minimum(H: Array, g: Array, beta: Array, size: float, steps: int) -> Array:
    """The point of the ball with the least g'(x - β) + (x - β)'H(x - β)/2, by projected gradients with momentum."""
    longest = float(np.linalg.eigvalsh(H)[-1]) * (1 + 1e-9)
    if longest <= 0:
        return beta
    x = previous = beta
    momentum = 1.0
    for step in range(steps):
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        z = x + (momentum - 1) / grown * (x - previous)
        new = _project_to_ball(z - (g + H @ (z - beta)) / longest, size)
        if float((z - new) @ (new - x)) > 0:  # the momentum leads astray: begin anew
            grown = 1.0
        previous, x, momentum = x, new, grown
        if step % 50 == 49:
            q = g + H @ (x - beta)
            gain = -float(g @ (x - beta) + 0.5 * (x - beta) @ H @ (x - beta))
            if float(q @ x + size * np.abs(q).max()) <= 0.05 * max(gain, 0.0):
                break
    return x


def _project_to_ball(x: Array, size: float) -> Array:
    """The nearest point with Σ |x| <= size."""
    if np.abs(x).sum() <= size:
        return x
    falling = np.sort(np.abs(x))[::-1]
    over = (np.cumsum(falling) - size) / np.arange(1, len(x) + 1)
    shrink = over[np.flatnonzero(falling > over)[-1]]
    return np.sign(x) * np.maximum(np.abs(x) - shrink, 0.0)


# Boxes that join ------------------------------------------------------------------------------------------------


def _best_boxes(table: GridTable, slope: Array, pairs: bool, most: int) -> list[ConditionBox]:
    """Boxes of each column, or pair of columns, with a large |Σ slope|; the largest of all."""
    d = len(table.codes)
    found: list[tuple[float, ConditionBox]] = []
    for j in range(d):
        if not pairs:
            found += _best_halves(table, slope, j)
            continue
        for k in range(j, d):
            for turn, sums in enumerate(np.abs(table.quadrants(slope, j, k))):
                row, column = np.unravel_index(int(sums.argmax()), sums.shape)
                first = _side(table, j, int(row), turn in (0, 1))
                second = _side(table, k, int(column), turn in (0, 2))
                found.append((float(sums[row, column]), tuple(c for c in (first, second) if c is not None)))
    found.sort(key=lambda pair: -pair[0])
    return [box for _, box in found[:most]]


def _best_halves(table: GridTable, slope: Array, j: int) -> list[tuple[float, ConditionBox]]:
    """The stumps of one column with the largest sum and with the least."""
    borders = len(table.grid[j])
    sums = np.bincount(table.codes[j], slope, borders + 2)
    up_to = np.cumsum(sums[:-1])
    sides = np.concatenate([up_to, up_to + sums[-1]]) if table.missing[j] else up_to
    found: list[tuple[float, ConditionBox]] = []
    for place in {int(sides.argmax()), int(sides.argmin())}:
        side = _side(table, j, place, True)
        found += [(abs(float(sides[place])), (side,))] if side is not None else []
    return found


def _side(table: GridTable, j: int, place: int, left: bool) -> Condition | None:
    """The condition of one side of a border; None where all rows satisfy it."""
    borders = len(table.grid[j])
    with_missing, at = divmod(place, borders + 1)
    if at == borders and left and (with_missing or not table.missing[j]):
        return None
    threshold = float(table.grid[j][at]) if at < borders else np.inf
    return Condition(j, threshold, bool(with_missing), left)


def _box_tree(box: ConditionBox, height: float, X: Array) -> FinishedTree:
    """A box as a tree: its conditions one below the other, and its height in the last leaf."""
    m = 2 * len(box) + 1
    left, right, column = (np.full(m, -1) for _ in range(3))
    threshold, value, count = np.zeros(m), np.zeros(m), np.zeros(m, np.int64)
    missing = np.zeros(m, np.uint8)
    at, inside = 0, np.ones(len(X), bool)
    count[0] = len(X)
    for i, condition in enumerate(box):
        left[at], right[at], column[at] = 2 * i + 1, 2 * i + 2, condition.column
        threshold[at], missing[at] = condition.threshold, condition.missing_left
        inside = inside & condition.holds(X)
        nearer, other = (left[at], right[at]) if condition.left else (right[at], left[at])
        count[nearer], count[other] = inside.sum(), count[at] - inside.sum()
        at = int(nearer)
    value[at] = height
    free = np.full(m, np.inf)
    none = np.empty((0, 256), np.uint8)
    return FinishedTree(left, right, column, threshold, missing, none, np.full(m, -1), count, value, -free, free)
