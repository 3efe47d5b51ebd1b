"""Compiled loops of sequential minimal optimisation: a dense working set, and the update of all rows after it."""

import numpy as np

from certifit.numerics.compiled.compiling import TwinTuning, called_from_python, twin_of

# The kernel values of a small table are many numbers, but a step of a twin reads two of their rows.
KERNEL_VALUES = TwinTuning(most_entries=2_000_000)


@called_from_python
def working_square(K, slots, columns):
    """Return K[slots][:, columns] as float64 (q, q)."""
    q = slots.shape[0]
    out = np.empty((q, q))
    for i in range(q):
        row = K[slots[i]]
        for j in range(q):
            out[i, j] = row[columns[j]]
    return out


@twin_of(working_square, KERNEL_VALUES)
def _working_square_of_arrays(K, slots, columns):
    return K[np.ix_(slots, columns)].astype(np.float64)


@called_from_python
def solve_pairs(K, y, t, alpha, C, eps, max_steps):
    """Change alpha (q,) in place, two entries at a time, until no pair violates optimality by more than eps.

    K (q, q) are kernel values; y (q,) is +1 or -1; t (q,) = -y p - f, changed in place as f changes; C (q,) are the
    upper bounds of alpha. A pair moves so that y·alpha stays: y alpha rises by `move` for its first entry and falls
    as much for the second. The first is the entry that may rise with the largest t; the second is one that may fall
    and promises the largest gain with it (Fan, Chen & Lin 2005). Returns the number of steps taken.
    """
    q = y.shape[0]
    diagonal = np.empty(q)
    rise = np.empty(q)  # t where y alpha may rise, else -inf
    fall = np.empty(q)  # t where y alpha may fall, else +inf
    for i in range(q):
        diagonal[i] = K[i, i]
        rise[i] = t[i] if (alpha[i] < C[i] if y[i] > 0 else alpha[i] > 0) else -np.inf
        fall[i] = t[i] if (alpha[i] > 0 if y[i] > 0 else alpha[i] < C[i]) else np.inf
    for step in range(max_steps):
        i, top = -1, -np.inf
        bottom = np.inf
        for k in range(q):
            if rise[k] > top:
                i, top = k, rise[k]
            bottom = min(bottom, fall[k])
        if not top - bottom > eps:
            return step
        row = K[i]
        j, best = -1, 0.0
        for k in range(q):
            above = top - fall[k]
            # rows that coincide have no curvature, those of a function that is no kernel may have less:
            # only the bounds stop them, and nothing is divided by 0
            flat = 1e-14 * (abs(diagonal[i]) + abs(diagonal[k])) + 1e-300
            curve = max(diagonal[i] + diagonal[k] - 2 * row[k], flat)
            gain = above * above / curve
            if above > 0 and gain > best:
                j, best = k, gain
        flat = 1e-14 * (abs(diagonal[i]) + abs(diagonal[j])) + 1e-300
        curve = max(diagonal[i] + diagonal[j] - 2 * row[j], flat)
        move = (top - t[j]) / curve
        room_i = C[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else C[j] - alpha[j]
        move = min(move, room_i, room_j)
        alpha[i] += y[i] * move
        alpha[j] -= y[j] * move
        if move == room_i:
            alpha[i] = C[i] if y[i] > 0 else 0.0
        if move == room_j:
            alpha[j] = 0.0 if y[j] > 0 else C[j]
        other = K[j]
        for k in range(q):
            change = move * (row[k] - other[k])
            t[k] -= change
            rise[k] -= change
            fall[k] -= change
        for k in (i, j):
            rise[k] = t[k] if (alpha[k] < C[k] if y[k] > 0 else alpha[k] > 0) else -np.inf
            fall[k] = t[k] if (alpha[k] > 0 if y[k] > 0 else alpha[k] < C[k]) else np.inf
    return max_steps


@twin_of(solve_pairs, KERNEL_VALUES)
def _solve_pairs_of_arrays(K, y, t, alpha, C, eps, max_steps):
    diagonal = K.diagonal().copy()
    sizes = np.abs(diagonal)
    rise = np.where(np.where(y > 0, alpha < C, alpha > 0), t, -np.inf)
    fall = np.where(np.where(y > 0, alpha > 0, alpha < C), t, np.inf)
    for step in range(max_steps):
        i = int(rise.argmax())
        top = rise[i]
        if not top - fall.min() > eps:
            return step
        row, above = K[i], top - fall
        curves = np.maximum(diagonal[i] + diagonal - 2 * row, 1e-14 * (sizes[i] + sizes) + 1e-300)
        gain = np.where(above > 0, above * above / curves, 0.0)
        j = int(gain.argmax())
        room_i = C[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else C[j] - alpha[j]
        move = min((top - t[j]) / curves[j], room_i, room_j)
        alpha[i] += y[i] * move
        alpha[j] -= y[j] * move
        if move == room_i:
            alpha[i] = C[i] if y[i] > 0 else 0.0
        if move == room_j:
            alpha[j] = 0.0 if y[j] > 0 else C[j]
        change = move * (row - K[j])
        t -= change
        rise -= change
        fall -= change
        for k in (i, j):
            rise[k] = t[k] if (alpha[k] < C[k] if y[k] > 0 else alpha[k] > 0) else -np.inf
            fall[k] = t[k] if (alpha[k] > 0 if y[k] > 0 else alpha[k] < C[k]) else np.inf
    return max_steps


@called_from_python
def add_rows(f, K, slots, change, start, stop):
    """Return f[start:stop] + Σⱼ change[j] K[slots[j], start:stop] as a new array, summed in float64."""
    out = f[start:stop].copy()
    for j in range(slots.shape[0]):
        c = change[j]
        if c != 0.0:
            row = K[slots[j], start:stop]
            for i in range(stop - start):
                out[i] += c * row[i]
    return out


@twin_of(add_rows, KERNEL_VALUES)
def _add_rows_of_arrays(f, K, slots, change, start, stop):
    out = f[start:stop].copy()
    for slot, c in zip(slots, change, strict=True):
        if c != 0.0:
            out += c * K[slot, start:stop].astype(np.float64)
    return out
