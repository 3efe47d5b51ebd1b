"""The compiled loop of sequential minimal optimisation where each side's coefficients have a sum of their own."""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of
from certifit.svm.kernel.smo_loops import KERNEL_VALUES


@called_from_python
def solve_pairs_of_a_side(K, y, t, alpha, C, eps, max_steps):
    """Change alpha (q,) in place, two entries of one side at a time, until no pair of a side violates optimality.

    As `smo_loops.solve_pairs`, but both entries of a pair have the same y (+1 or -1), so that the sum of alpha over
    either side stays. Returns the number of steps taken.
    """
    q = y.shape[0]
    for step in range(max_steps):
        i, worst = -1, eps
        for side in (1.0, -1.0):
            top, bottom, first = -np.inf, np.inf, -1
            for k in range(q):
                if y[k] != side:
                    continue
                if (alpha[k] < C[k] if side > 0 else alpha[k] > 0) and t[k] > top:
                    top, first = t[k], k
                if (alpha[k] > 0 if side > 0 else alpha[k] < C[k]) and t[k] < bottom:
                    bottom = t[k]
            if first >= 0 and top - bottom > worst:
                i, worst = first, top - bottom
        if i < 0:
            return step
        row, top = K[i], t[i]
        j, best, curve = -1, 0.0, 1.0
        for k in range(q):
            may_fall = alpha[k] > 0 if y[k] > 0 else alpha[k] < C[k]
            if y[k] != y[i] or not may_fall or not top > t[k]:
                continue
            flat = 1e-14 * (abs(K[i, i]) + abs(K[k, k])) + 1e-300
            bend = max(K[i, i] + K[k, k] - 2 * row[k], flat)
            gain = (top - t[k]) * (top - t[k]) / bend
            if gain > best:
                j, best, curve = k, gain, bend
        room_i = C[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else C[j] - alpha[j]
        move = min((top - t[j]) / curve, room_i, room_j)
        alpha[i] += y[i] * move
        alpha[j] -= y[j] * move
        if move == room_i:
            alpha[i] = C[i] if y[i] > 0 else 0.0
        if move == room_j:
            alpha[j] = 0.0 if y[j] > 0 else C[j]
        other = K[j]
        for k in range(q):
            t[k] -= move * (row[k] - other[k])
    return max_steps


@twin_of(solve_pairs_of_a_side, KERNEL_VALUES)
def _solve_pairs_of_arrays(K, y, t, alpha, C, eps, max_steps):
    diagonal = K.diagonal().copy()
    sizes = np.abs(diagonal)
    for step in range(max_steps):
        may_rise, may_fall = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
        i, worst = -1, eps
        for side in (1.0, -1.0):
            rise = np.where((y == side) & may_rise, t, -np.inf)
            first = int(rise.argmax())
            spread = rise[first] - np.where((y == side) & may_fall, t, np.inf).min()
            if spread > worst:
                i, worst = first, spread
        if i < 0:
            return step
        row, top = K[i], t[i]
        curves = np.maximum(diagonal[i] + diagonal - 2 * row, 1e-14 * (sizes[i] + sizes) + 1e-300)
        allowed = (y == y[i]) & may_fall & (top > t)
        j = int(np.where(allowed, (top - t) * (top - t) / curves, 0.0).argmax())
        room_i = C[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else C[j] - alpha[j]
        move = min((top - t[j]) / curves[j], room_i, room_j)
        alpha[i] += y[i] * move
        alpha[j] -= y[j] * move
        if move == room_i:
            alpha[i] = C[i] if y[i] > 0 else 0.0
        if move == room_j:
            alpha[j] = 0.0 if y[j] > 0 else C[j]
        t -= move * (row - K[j])
    return max_steps
