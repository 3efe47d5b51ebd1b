"""The compiled loops of boosted stumps: the best split of all rows along one column, and the votes of fitted stumps.

Row weights are whole numbers here, so that their sums are exact: of equal splits the first wins, whatever the order
of the rows and the number of threads, and x and -x tie to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python, twin_of
from certifit.numerics.compiled.whole_arrays import running_total, sums_by_place

ROW = 0x7FFFFFFF  # the bits of an entry that hold the number of a row


class Cut(NamedTuple):
    """The best split of one column; `position` is -1 where there is none."""

    score: float  # how much the weighted Gini impurity falls, in the order of splits, not in its units
    position: int  # the rows with a value that go left, or the last bin that does
    missing_left: bool


@called_from_python
def best_cut_of_two(entries, known, signed):
    """Return the best split of a sorted column for two classes.

    Parameters
    ----------
    entries : (n,) uint32, numbers of rows in the order of their values, missing last; the highest bit marks the last
        row of each value
    known : rows with a value
    signed : (n,) float64, the weight of each row, a whole number, negative for the first class. Sums of whole numbers
        below 2⁵³ are exact in floating point too, and need no conversion to be scored
    """
    n = len(entries)
    total, whole, lost, lost_whole = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        v = signed[i]
        total += v
        whole += abs(v)
    for i in range(known, n):
        v = signed[entries[i] & ROW]
        lost += v
        lost_whole += abs(v)
    mean = total / whole
    best, per, position, missing_left = 0.0, 1.0, -1, False
    for side in range(2 if known < n else 1):  # missing rows go right, then left
        d, w = (lost, lost_whole) if side else (0.0, 0.0)
        end = known - 1 if side or known == n else known
        for i in range(end):
            entry = entries[i]
            v = signed[entry & ROW]
            d += v
            w += abs(v)
            if entry > ROW:
                # The lighter side is scored, so that a column and its mirror image have the same numbers.
                a, b = d, w
                if 2 * w > whole:
                    a, b = total - d, whole - w
                off = a - mean * b
                fall, size = off * off, b * (whole - b)
                if fall * per > best * size:
                    best, per, position, missing_left = fall, size, i + 1, side == 1
    return Cut(best / per, position, missing_left)


@twin_of(best_cut_of_two)
def _best_cut_of_two_of_arrays(entries, known, signed):
    n, rows, ends = len(entries), entries & ROW, entries > ROW
    total, whole = float(signed.sum()), float(np.abs(signed).sum())  # whole numbers: exact in any order
    lost, lost_whole = float(signed[rows[known:]].sum()), float(np.abs(signed[rows[known:]]).sum())
    mean = total / whole
    best, per, position, missing_left = 0.0, 1.0, -1, False
    for side in range(2 if known < n else 1):
        end = known - 1 if side or known == n else known
        v, at = signed[rows[:end]], np.flatnonzero(ends[:end])
        d, w = (lost if side else 0.0) + np.cumsum(v)[at], (lost_whole if side else 0.0) + np.cumsum(np.abs(v))[at]
        a, b = np.where(2 * w > whole, total - d, d), np.where(2 * w > whole, whole - w, w)
        off = a - mean * b
        falls, sizes = (off * off).tolist(), (b * (whole - b)).tolist()
        for place, fall, size in zip(at.tolist(), falls, sizes, strict=True):
            if fall * per > best * size:
                best, per, position, missing_left = fall, size, place + 1, side == 1
    return Cut(best / per, position, missing_left)


@called_from_python
def best_cut(entries, known, labels, weight, classes):
    """Return the best split of a sorted column for any number of classes; `weight` (n,) is int64."""
    n = len(entries)
    total, lost, sums = np.zeros(classes, np.int64), np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    for i in range(n):
        total[labels[i]] += weight[i]
    for i in range(known, n):
        r = entries[i] & ROW
        lost[labels[r]] += weight[r]
    whole, squares = np.int64(0), 0.0
    for c in range(classes):
        whole += total[c]
        squares += float(total[c]) * float(total[c])
    least = squares / whole
    best, position, missing_left = least, -1, False
    for side in range(2 if known < n else 1):
        w = np.int64(0)
        for c in range(classes):
            sums[c] = lost[c] if side else 0
            w += sums[c]
        end = known - 1 if side or known == n else known
        for i in range(end):
            entry = entries[i]
            r = entry & ROW
            sums[labels[r]] += weight[r]
            w += weight[r]
            if entry > ROW:
                score = _purity(sums, total, w, whole)
                if score > best:
                    best, position, missing_left = score, i + 1, side == 1
    return Cut(best - least, position, missing_left)


@called_by_loops
def _purity(sums, total, w, whole):
    """Return Σ S²/W of both sides: the larger, the purer."""
    left, right = 0.0, 0.0
    for c in range(len(sums)):
        a, b = float(sums[c]), float(total[c] - sums[c])
        left += a * a
        right += b * b
    return left / w + right / (whole - w)


@twin_of(best_cut)
def _best_cut_of_arrays(entries, known, labels, weight, classes):
    n, rows, ends = len(entries), entries & ROW, entries > ROW
    by_class = np.where(labels[:, None] == np.arange(classes), weight[:, None], 0)
    total, lost = by_class.sum(axis=0), by_class[rows[known:]].sum(axis=0)
    whole = total.sum()
    least = running_total(total.astype(np.float64) ** 2) / whole
    best, position, missing_left = least, -1, False
    for side in range(2 if known < n else 1):
        end = known - 1 if side or known == n else known
        at = np.flatnonzero(ends[:end])
        if not len(at):
            continue
        sums = (lost if side else 0) + np.cumsum(by_class[rows[:end]], axis=0)[at]
        w = sums.sum(axis=1)
        left, right = np.zeros(len(at)), np.zeros(len(at))
        for c in range(classes):
            a, b = sums[:, c].astype(np.float64), (total[c] - sums[:, c]).astype(np.float64)
            left += a * a
            right += b * b
        score = left / w + right / (whole - w)
        first = int(np.where(np.isnan(score), -np.inf, score).argmax())
        if score[first] > best:
            best, position, missing_left = score[first], int(at[first]) + 1, side == 1
    return Cut(best - least, position, missing_left)


@called_from_python
def add_class_histograms(keys, weight, found):
    """Add the weight of every row to its place in the histogram of every column: keys (d, n), found (d, places).

    Some thousand rows are added along all columns before the next, so that their weights stay in the cache.
    """
    n = keys.shape[1]
    for start in range(0, n, 4096):
        stop = min(start + 4096, n)
        for j in range(len(keys)):
            for i in range(start, stop):
                found[j, keys[j, i]] += weight[i]


@called_from_python
def best_bin(histogram, missing):
    """Return the best split after a bin; the last bin is that of missing values where `missing` is true."""
    bins, classes = histogram.shape
    total, sums = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    for b in range(bins):
        for c in range(classes):
            total[c] += histogram[b, c]
    whole, squares = np.int64(0), 0.0
    for c in range(classes):
        whole += total[c]
        squares += float(total[c]) * float(total[c])
    least = squares / whole
    best, position, missing_left = least, -1, False
    known = bins - 1 if missing else bins
    for side in range(2 if missing else 1):
        for c in range(classes):
            sums[c] = histogram[known, c] if side else 0
        for b in range(known - 1 if side or not missing else known):
            w = np.int64(0)
            for c in range(classes):
                sums[c] += histogram[b, c]
                w += sums[c]
            if 0 < w < whole:
                score = _purity(sums, total, w, whole)
                if score > best:
                    best, position, missing_left = score, b, side == 1
    return Cut(best - least, position, missing_left)


@called_from_python
def leaf_class_weights(left, labels, w, classes):
    """Return the weights (2, classes) and the numbers (2,) of the rows that go left and right."""
    weight, count = np.zeros((2, classes)), np.zeros(2, np.int64)
    for i in range(len(left)):
        side = 0 if left[i] else 1
        weight[side, labels[i]] += w[i]
        count[side] += 1
    return weight, count


@twin_of(leaf_class_weights)
def _leaf_class_weights_of_arrays(left, labels, w, classes):
    side = np.where(left, 0, 1)
    weight = sums_by_place(side * classes + labels, w, 2 * classes)
    return weight.reshape(2, classes), np.bincount(side, minlength=2)


@called_from_python
def weight_missed(left, labels, w, answers):
    """Return the weight of rows whose leaf answers another class than theirs."""
    total = 0.0
    for i in range(len(left)):
        # To add 0 is quicker than to guess whether there is anything to add.
        total += w[i] if labels[i] != answers[0 if left[i] else 1] else 0.0
    return total


@twin_of(weight_missed)
def _weight_missed_of_arrays(left, labels, w, answers):
    return running_total(w[labels != np.where(left, answers[0], answers[1])])


@called_from_python
def reweight(left, labels, w, answers, factors):
    """Multiply weights of rows told wrong by factors[1] and of the others by factors[0], then divide by the sum."""
    total = 0.0
    for i in range(len(left)):
        w[i] *= factors[1] if labels[i] != answers[0 if left[i] else 1] else factors[0]
        total += w[i]
    for i in range(len(left)):
        w[i] /= total


@twin_of(reweight)
def _reweight_of_arrays(left, labels, w, answers, factors):
    w *= np.where(labels != np.where(left, answers[0], answers[1]), factors[1], factors[0])
    w /= running_total(w)


@called_from_python
def add_votes(X, column, threshold, missing_left, answers, strength, votes):
    """Add to votes (n, k) of every row the strength (m,) of each stump, for the class that it answers.

    `answers` (m, 2) are the classes of the leaves; a stump with column -1 has one leaf, the left.
    """
    for i in range(len(X)):
        for m in range(len(column)):
            j = column[m]
            side = 0
            if j >= 0:
                x = X[i, j]
                goes_left = missing_left[m] != 0 if np.isnan(x) else x <= threshold[m]
                side = 0 if goes_left else 1
            votes[i, answers[m, side]] += strength[m]
