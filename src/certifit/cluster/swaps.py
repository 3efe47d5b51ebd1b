"""Out of a local optimum of k-means: one centre moves to where rows are far from theirs.

Rows drawn like k-means++ seeds are the places on offer; for each, every centre is tried as the one to go, by what
rows then pay at their nearest or second nearest of the others. Lloyd's algorithm starts again from the best pair.
References: Kanungo et al., A local search approximation algorithm for k-means clustering (2004); Lattanzi & Sohler, A
better k-means++ algorithm via local search (2019), whose number of such moves keeps within a constant of the optimum.
"""

from __future__ import annotations

import numpy as np

from certifit.cluster.seeding import Starts
from certifit.rows import Array

PLACES = 8  # rows on offer each time


def swapped(starts: Starts, C: Array) -> Array | None:
    """The centres (k, d) with the best of these moves, however good; None where every row is at a centre."""
    k, w = len(C), starts.sample.w
    D = starts.distances(C)
    labels = D.argmin(axis=1)
    near = D[np.arange(len(w)), labels]
    D[np.arange(len(w)), labels] = np.inf
    second = D.min(axis=1)
    if k == 1 or not (w * near).any():
        return None
    places = starts.pick(w * near, PLACES)
    E = starts.distances(places)
    best, move = np.inf, (0, 0)
    for t in range(PLACES):
        kept = np.minimum(E[:, t], near)
        lost = np.bincount(labels, w * (np.minimum(E[:, t], second) - kept), k)  # by each centre's going
        a = int(lost.argmin())
        total = float(w @ kept + lost[a])
        if total < best:
            best, move = total, (a, t)
    C = C.copy()
    C[move[0]] = places[move[1]]
    return C
