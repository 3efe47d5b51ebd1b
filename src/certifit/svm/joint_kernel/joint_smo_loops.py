"""Compiled loops of `joint_smo`: rows solved for one after another, then the balance of the classes restored.

A row has a coefficient for every class; they sum to 0 and lie between `low` and `high`. Over all rows, those of each
class sum to 0 too: a transport problem, whose elementary moves are cycles through classes. G (n, k), or (k, q) within
a working set, is the derivative of the dual objective by the coefficients, at the present biases: a row gains by
moving from a class with a small G to one with a large G.
"""

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python


class CoefficientLimits(NamedTuple):
    """The smallest and the largest coefficients of n rows for k classes; either may be infinite."""

    low: np.ndarray  # (n, k)
    high: np.ndarray  # (n, k)


@called_from_python
def worst_pairs(G, beta, limits):
    """Return (k, k) the largest G[i, c] - G[i, e] over the rows i whose class c may rise and class e may fall."""
    n, k = G.shape
    low, high = limits.low, limits.high
    out = np.full((k, k), -np.inf)
    for i in range(n):
        for c in range(k):
            if beta[i, c] < high[i, c]:
                for e in range(k):
                    if e != c and beta[i, e] > low[i, e]:
                        out[c, e] = max(out[c, e], G[i, c] - G[i, e])
    return out


@called_from_python
def violations(G, beta, limits):
    """Return by how much each row violates optimality (n,), 0 where it does not, and by which two classes (n,).

    That is how much the largest G of a class c that may rise is above the smallest of a class e that may fall; the
    two classes are returned as the number c k + e.
    """
    n, k = G.shape
    low, high = limits.low, limits.high
    out, pair = np.zeros(n), np.zeros(n, np.int64)
    for i in range(n):
        best, worst = -1, -1
        for c in range(k):
            if beta[i, c] < high[i, c] and (best < 0 or G[i, c] > G[i, best]):
                best = c
            if beta[i, c] > low[i, c] and (worst < 0 or G[i, c] < G[i, worst]):
                worst = c
        if best >= 0 and worst >= 0:
            out[i], pair[i] = max(G[i, best] - G[i, worst], 0.0), best * k + worst
    return out, pair


@called_by_loops
def _project_row(v, low, high, out):
    """Set out (k,) to the point nearest v with sum 0 and low <= out <= high: clip(v - t, low, high) for one t.

    The sum falls with t in straight pieces: Newton's method, kept within a bracket, ends on the right piece. Either
    no entry has a finite `low` or one has no limits at all, so that never all of them are at a limit.
    """
    k = v.shape[0]
    left, right, t = -np.inf, np.inf, 0.0
    for c in range(k):
        t += v[c] / k
    for _ in range(100):
        total, size, free = 0.0, 0.0, 0
        for c in range(k):
            out[c] = min(max(v[c] - t, low[c]), high[c])
            free += low[c] < out[c] < high[c]
            total += out[c]
            size += abs(out[c])
        if abs(total) <= 4e-16 * size or free == 0:
            return
        if total > 0:
            left = t
        else:
            right = t
        step = t + total / free
        if step == t:
            return
        t = step if left < step < right else 0.5 * (left + right)


@called_from_python
def project_rows(V, limits):
    """Return every row of V (q, k) moved to the nearest point with sum 0 within its limits."""
    out = np.empty_like(V)
    for i in range(V.shape[0]):
        _project_row(V[i], limits.low[i], limits.high[i], out[i])
    return out


@called_from_python
def solve_rows(K, G, beta, limits, r, tau, eps, max_sweeps):
    """Change beta (q, k) in place, a row at a time, until no row violates optimality by more than eps.

    r (k,) are the sums of all coefficients of each class, which have to become 0. Biases are their multipliers: in
    a sweep they are tau r, which is why K (q, q) includes tau, and after it they keep that value for good (the method
    of multipliers). G (k, q) and r change with beta. Returns the largest violation of the last sweep.
    """
    q, k = beta.shape
    low, high = limits.low, limits.high
    v, new = np.empty(k), np.empty(k)
    skip = worst = 0.0
    for _ in range(max_sweeps):
        worst = 0.0
        for i in range(q):
            top, bottom = -np.inf, np.inf
            for c in range(k):
                if beta[i, c] < high[i, c]:
                    top = max(top, G[c, i])
                if beta[i, c] > low[i, c]:
                    bottom = min(bottom, G[c, i])
            worst = max(worst, top - bottom)
            if not top - bottom > skip:
                continue
            curvature = K[i, i] if K[i, i] > 0.0 else 1.0  # a row of zeros has none, and any step will do
            for c in range(k):
                v[c] = beta[i, c] + G[c, i] / curvature
            _project_row(v, low[i], high[i], new)
            row = K[i]
            for c in range(k):
                change = new[c] - beta[i, c]
                if change != 0.0:
                    beta[i, c] = new[c]
                    r[c] += change
                    for j in range(q):
                        G[c, j] -= change * row[j]
        skip = max(0.1 * worst, 0.1 * eps)  # rows with little to gain are left out of the next sweep
        for c in range(k):
            worst = max(worst, abs(tau * r[c]))
            for j in range(q):
                G[c, j] -= tau * r[c]
        if worst <= eps:
            break
    return worst


@called_from_python
def restore_balance(G, beta, limits, r, least):
    """Change beta (q, k) in place so that r (k,), the sums over all rows, become 0 up to `least`.

    What a class has too much of goes, along the shortest path of classes, to one that has too little: a row can pass
    on from c to e as much as c may fall and e may rise. Of rows that can pass on most, the one with the largest gain
    by G (k, q) does.
    """
    q, k = beta.shape
    low, high = limits.low, limits.high
    amount, value = np.empty((k, k)), np.empty((k, k))
    by = np.empty((k, k), np.int64)
    before, queue = np.empty(k, np.int64), np.empty(k, np.int64)
    for _ in range(4 * k * k):
        first = r.argmax()
        if not max(r[first], -r.min()) > least:
            return
        amount[:], value[:] = 0.0, -np.inf
        for i in range(q):
            for c in range(k):
                room = min(beta[i, c] - low[i, c], r[first])
                for e in range(k):
                    if e != c and room > 0:
                        can = min(room, high[i, e] - beta[i, e])
                        gain = G[e, i] - G[c, i]
                        if can > amount[c, e] or (can == amount[c, e] > 0 and gain > value[c, e]):
                            amount[c, e], value[c, e], by[c, e] = can, gain, i
        before[:] = -1
        before[first], queue[0] = first, first
        head, tail, last = 0, 1, -1
        while head < tail and last < 0:
            c = queue[head]
            head += 1
            for e in range(k):
                if amount[c, e] > 0 and before[e] < 0:
                    before[e], queue[tail] = c, e
                    tail += 1
                    if r[e] < 0:
                        last = e
                        break
        if last < 0:
            return
        move, e = min(r[first], -r[last]), last
        while e != first:
            move, e = min(move, amount[before[e], e]), before[e]
        e = last
        while e != first:
            c = before[e]
            beta[by[c, e], c] -= move
            beta[by[c, e], e] += move
            e = c
        r[first] -= move
        r[last] += move
