"""The compiled loops that score the splits of a node along one column, from codes of one byte.

A column of a node becomes a short list of its codes, ascending: what the rows of each code add up to, in whole
numbers. Small nodes are sorted, large ones counted. Targets come in four forms: two classes packed in one number, a
pair of numbers (sums and weights of amounts; two classes of large weight), many classes, or several targets at once,
whose sums are kept channel by channel. Of the last two, what a tree does not need is None, and nothing of theirs is
compiled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops_uncounted, written_into_loops_uncounted
from certifit.rows import Array

GINI, ENTROPY, SQUARED, POISSON = 0, 1, 2, 3
PACKED, PAIR, MANY, SEVERAL = 0, 1, 2, 3  # the forms of targets
MISSING = 255  # the code of a missing value
FIELD = 21  # bits of each of the three numbers of PACKED: weight of class 0, of class 1, number of rows
LABEL = 40  # in MANY, a row is its label << 40 | its weight
FIELD_BITS, WEIGHT_BITS = (1 << FIELD) - 1, (1 << LABEL) - 1
SORTED_ROWS = 20  # up to so many rows, sorting them beats counting 256 codes


class TreeRows(NamedTuple):
    """The rows of a tree, rearranged while it grows: a node is a run of them."""

    row: Array  # (m,) uint32: number in the table; without a sign, indexing is quicker
    a: Array  # (m,) int64: PACKED: all; PAIR: first sum; MANY: label and weight; SEVERAL: 0
    b: Array  # (m,) int64: PAIR: second sum; SEVERAL: weight; else empty
    spare_row: Array  # (m,) scratch, as those above
    spare_a: Array
    spare_b: Array


class CodeList(NamedTuple):
    """What the rows of a node with each code of a column add up to, codes ascending; scratch."""

    code: Array  # (256,) int64
    a: Array  # (256,) int64
    b: Array  # (256,) int64
    rows: Array  # (256,) int64
    table: Array  # (1024,) int64: sums by code; 0 between uses


class ManyClasses(NamedTuple):
    """What the rows of a node are of many classes; scratch."""

    total: Array  # (k,) float64: weight of each class of the node in hand
    entry: Array  # uint64: code << 56 | label << 40 | weight
    place: Array  # (256,) int64: where the entries of each code begin
    counts: Array  # (256 k,) int64: weight by code and class; 0 between uses
    left: Array  # (k,) float64: weight of each class on the left
    right: Array  # (k,) float64


class TargetChannels(NamedTuple):
    """What rows add to the channels of several targets: weights of their classes, or amounts."""

    found: CodeList
    rows: Array  # (n, c) int64
    total: Array  # (c,) int64: of the node in hand
    counts: Array  # (256 c,) int64: sums by code; 0 between uses
    left: Array  # (c,) int64: scratch


class SplitTerms(NamedTuple):
    """What a split must satisfy, and how it is scored."""

    score: int  # GINI, ENTROPY, SQUARED or POISSON
    form: int  # PACKED, PAIR, MANY or SEVERAL
    classes: int  # of MANY
    leaf_rows: int  # fewest rows of a child
    leaf_weight: float  # least weight of a child, in units
    targets: int


class GrowingNode(NamedTuple):
    """A node: its run of rows, what they add up to, and the values that monotone columns leave to its children."""

    start: int
    end: int
    key: int  # uint64: random bits of this node
    depth: int
    rows: int
    a: int
    b: int
    weight: float  # in units
    low: float
    high: float


class CodeSplit(NamedTuple):
    """The best split along a column; `varies` says whether there is more than one code at all."""

    score: float
    border: int  # codes up to this one go left; 254 where only missing values go right
    missing_left: bool
    varies: bool
    met_missing: bool


@called_by_loops_uncounted
def _log_term(s):
    return s * math.log(s) if s > 0 else 0.0


@called_by_loops_uncounted
def _side_score(score, a, b):
    """Return the score of a child by its two sums: the larger, the purer."""
    if score == GINI:
        return (a * a + b * b) / (a + b)
    if score == SQUARED:
        return a * a / b
    if score == ENTROPY:
        return _log_term(a) + _log_term(b) - _log_term(a + b)
    return a * math.log(a / b) if a > 0 else -np.inf


@written_into_loops_uncounted
def list_codes(codes, rows, terms, node, found):
    """Fill in the list of a column's codes in a node of two sums; return its length."""
    if node.rows <= SORTED_ROWS:
        return _sorted_codes(codes, rows, terms, node, found)
    return _counted_codes(codes, rows, terms, node, found)


@called_by_loops_uncounted
def _sorted_codes(codes, rows, terms, node, found):
    """The list by insertion: rows of a code that is there already are added to it."""
    code, a, b, count = found.code, found.a, found.b, found.rows
    packed = terms.form == PACKED
    m = 0
    for i in range(node.start, node.end):
        c = np.int64(codes[rows.row[i]])
        p = m
        while p > 0 and code[p - 1] > c:
            p -= 1
        if p > 0 and code[p - 1] == c:
            a[p - 1] += rows.a[i]
            if not packed:
                b[p - 1] += rows.b[i]
                count[p - 1] += 1
            continue
        for q in range(m, p, -1):
            code[q], a[q] = code[q - 1], a[q - 1]
            if not packed:
                b[q], count[q] = b[q - 1], count[q - 1]
        code[p], a[p] = c, rows.a[i]
        if not packed:
            b[p], count[p] = rows.b[i], 1
        m += 1
    if packed:
        for p in range(m):
            v = a[p]
            a[p], b[p], count[p] = v & FIELD_BITS, (v >> FIELD) & FIELD_BITS, v >> (2 * FIELD)
    return m


@called_by_loops_uncounted
def _counted_codes(codes, rows, terms, node, found):
    """The list by sums for every code."""
    code, a, b, count, table = found.code, found.a, found.b, found.rows, found.table
    m = 0
    if terms.form == PACKED:
        for i in range(node.start, node.end):
            table[codes[rows.row[i]]] += rows.a[i]
        for c in range(256):
            v = table[c]
            if v != 0:
                code[m] = c
                a[m], b[m], count[m] = v & FIELD_BITS, (v >> FIELD) & FIELD_BITS, v >> (2 * FIELD)
                m += 1
                table[c] = 0
        return m
    for i in range(node.start, node.end):
        place = 4 * np.int64(codes[rows.row[i]])
        table[place] += rows.a[i]
        table[place + 1] += rows.b[i]
        table[place + 2] += 1
    for c in range(256):
        if table[4 * c + 2] != 0:
            code[m], a[m], b[m], count[m] = c, table[4 * c], table[4 * c + 1], table[4 * c + 2]
            m += 1
            table[4 * c] = table[4 * c + 1] = table[4 * c + 2] = 0
    return m


@called_by_loops_uncounted
def _breaks_monotony(terms, direction, node, a, b):
    """Whether the children's values are in the wrong order, or beyond what ancestors' splits leave them."""
    oa, ob = node.a - a, node.b - b
    if terms.score < SQUARED:
        left, right = b / (a + b), ob / (oa + ob)
    else:
        left, right = a / b, oa / ob
    if (left - right) * direction > 0:
        return True
    return not (node.low <= left <= node.high and node.low <= right <= node.high)


@called_by_loops_uncounted
def best_of_list(found, m, terms, node, drawn, direction):
    """Return the best split along a column from the list of its codes; `drawn` >= 0 is the only border allowed."""
    score, leaf_rows, leaf_weight = terms.score, terms.leaf_rows, terms.leaf_weight
    code, listed_a, listed_b, listed_rows = found.code, found.a, found.b, found.rows
    with_missing = m > 0 and code[m - 1] == MISSING
    known = m - 1 if with_missing else m
    if m < 2 or known == 0:
        return CodeSplit(-np.inf, -1, False, m > 1, with_missing)
    best, border, side = -np.inf, -1, False
    constrained = direction != 0 or node.low > -np.inf or node.high < np.inf
    classes = score < SQUARED
    for missing_left in range(2 if with_missing else 1):
        a, b, rows = 0, 0, 0
        if missing_left:
            a, b, rows = listed_a[m - 1], listed_b[m - 1], listed_rows[m - 1]
        for p in range(known if with_missing and not missing_left else known - 1):
            a += listed_a[p]
            b += listed_b[p]
            rows += listed_rows[p]
            if drawn >= 0 and p + 1 < known and not code[p] <= drawn < code[p + 1]:
                continue
            if rows < leaf_rows or node.rows - rows < leaf_rows:
                continue
            weight = float(a + b) if classes else float(b)
            if weight < leaf_weight or node.weight - weight < leaf_weight:
                continue
            value = _side_score(score, float(a), float(b)) + _side_score(score, float(node.a - a), float(node.b - b))
            if value > best:
                if constrained and _breaks_monotony(terms, direction, node, a, b):
                    continue
                best, side = value, missing_left == 1
                border = 254 if p + 1 == known else drawn if drawn >= 0 else (code[p] + code[p + 1] - 1) // 2
    return CodeSplit(best, border, side, True, with_missing)


# Many classes ---------------------------------------------------------------------------------------------------


@called_by_loops_uncounted
def list_entries(codes, rows, terms, node, classes):
    """Fill in the entries of a column in a node of many classes, in the order of codes; return how many."""
    start, end, n, k = node.start, node.end, node.rows, terms.classes
    entry = classes.entry
    if n <= SORTED_ROWS:
        for i in range(start, end):
            e = (np.uint64(codes[rows.row[i]]) << np.uint64(56)) | np.uint64(rows.a[i])
            p = i - start
            while p > 0 and entry[p - 1] > e:
                entry[p] = entry[p - 1]
                p -= 1
            entry[p] = e
        return n
    if terms.leaf_rows == 1 and n > 64 * k:
        return _merged_entries(codes, rows, k, node, classes)
    place = classes.place
    for c in range(256):
        place[c] = 0
    for i in range(start, end):
        place[codes[rows.row[i]]] += 1
    before = 0
    for c in range(256):
        here = place[c]
        place[c] = before
        before += here
    for i in range(start, end):
        c = codes[rows.row[i]]
        entry[place[c]] = (np.uint64(c) << np.uint64(56)) | np.uint64(rows.a[i])
        place[c] += 1
    return n


@called_by_loops_uncounted
def _merged_entries(codes, rows, k, node, classes):
    """One entry for each code and class that occur, with the weight of all their rows."""
    counts, entry = classes.counts, classes.entry
    for i in range(node.start, node.end):
        v = rows.a[i]
        counts[np.int64(codes[rows.row[i]]) * k + (v >> LABEL)] += v & WEIGHT_BITS
    m = 0
    for c in range(256):
        for label in range(k):
            w = counts[c * k + label]
            if w != 0:
                entry[m] = (np.uint64(c) << np.uint64(56)) | np.uint64((label << LABEL) | w)
                m += 1
                counts[c * k + label] = 0
    return m


@called_by_loops_uncounted
def best_of_entries(classes, m, terms, node, drawn):
    """Return the best split along a column from its entries."""
    totals, entry, left, right = classes.total, classes.entry, classes.left, classes.right
    gini, leaf_rows, leaf_weight = terms.score == GINI, terms.leaf_rows, terms.leaf_weight
    known = m
    while known > 0 and entry[known - 1] >> np.uint64(56) == MISSING:
        known -= 1
    with_missing = known < m
    if known == 0 or entry[0] >> np.uint64(56) == entry[m - 1] >> np.uint64(56):
        return CodeSplit(-np.inf, -1, False, False, with_missing)
    best, border, side = -np.inf, -1, False
    for missing_left in range(2 if with_missing else 1):
        of_left, of_right, weight, rows = 0.0, 0.0, 0.0, 0
        for c in range(len(totals)):
            left[c], right[c] = 0.0, totals[c]
            of_right += totals[c] * totals[c]
        for q in range(known if missing_left else m, m):
            label = np.int64((entry[q] >> np.uint64(LABEL)) & np.uint64(0xFFFF))
            w = float(entry[q] & np.uint64(WEIGHT_BITS))
            of_left, of_right = _moved(left, right, label, w, of_left, of_right)
            weight += w
            rows += 1
        for p in range(known):
            label = np.int64((entry[p] >> np.uint64(LABEL)) & np.uint64(0xFFFF))
            w = float(entry[p] & np.uint64(WEIGHT_BITS))
            of_left, of_right = _moved(left, right, label, w, of_left, of_right)
            weight += w
            rows += 1
            code = entry[p] >> np.uint64(56)
            if p + 1 < known:
                above = entry[p + 1] >> np.uint64(56)
                if above == code or (drawn >= 0 and not np.int64(code) <= drawn < np.int64(above)):
                    continue
            elif missing_left or not with_missing:
                break
            rest = node.weight - weight
            if leaf_rows > 1 and (rows < leaf_rows or node.rows - rows < leaf_rows):
                continue
            if weight < leaf_weight or rest < leaf_weight:
                continue
            if gini:
                value = of_left / weight + of_right / rest
            else:
                value = _log_score(left, right, weight, rest)
            if value > best:
                best, side = value, missing_left == 1
                border = 254
                if p + 1 < known:
                    # Half way between the codes on its sides, so that rows with codes between them go either way.
                    middle = (int(code) + int(entry[p + 1] >> np.uint64(56)) - 1) // 2
                    border = drawn if drawn >= 0 else middle
    return CodeSplit(best, border, side, True, with_missing)


@written_into_loops_uncounted
def _moved(left, right, label, w, of_left, of_right):
    """Move weight of a class from right to left; return the sums of squares on both sides."""
    before, rest = left[label], right[label]
    left[label], right[label] = before + w, rest - w
    return of_left + w * (2 * before + w), of_right - w * (2 * rest - w)


@called_by_loops_uncounted
def _log_score(left, right, weight, rest):
    """Return the score of two children by their entropies, from the weights of classes, whatever order made them."""
    found = -_log_term(weight) - _log_term(rest)
    for c in range(len(left)):
        found += _log_term(left[c]) + _log_term(right[c])
    return found


# Several targets ------------------------------------------------------------------------------------------------


@called_by_loops_uncounted
def add_channels(codes, rows, channels, node):
    """Add what the rows of a node put into each channel to the sums of their codes."""
    counts, c = channels.counts, len(channels.total)
    for i in range(node.start, node.end):
        r = rows.row[i]
        at = np.int64(codes[r]) * c
        for k in range(c):
            counts[at + k] += channels.rows[r, k]


@called_by_loops_uncounted
def best_of_channels(found, m, terms, node, channels, drawn):
    """Return the best split along a column from the list of its codes and the channels' sums, which become 0."""
    code, counts, left, c = found.code, channels.counts, channels.left, len(channels.total)
    with_missing = code[m - 1] == MISSING
    known = m - 1 if with_missing else m
    best, border, side = -np.inf, -1, False
    for missing_left in range(2 if with_missing else 1):
        weight, rows = 0, 0
        for k in range(c):
            left[k] = counts[MISSING * c + k] if missing_left else 0
        if missing_left:
            weight, rows = found.b[m - 1], found.rows[m - 1]
        for p in range(known if with_missing and not missing_left else known - 1):
            weight += found.b[p]
            rows += found.rows[p]
            for k in range(c):
                left[k] += counts[code[p] * c + k]
            if drawn >= 0 and p + 1 < known and not code[p] <= drawn < code[p + 1]:
                continue
            if rows < terms.leaf_rows or node.rows - rows < terms.leaf_rows:
                continue
            rest = node.weight - weight
            if weight < terms.leaf_weight or rest < terms.leaf_weight:
                continue
            value = _channels_score(terms, channels, float(weight), rest)
            if value > best:
                best, side = value, missing_left == 1
                border = 254 if p + 1 == known else drawn if drawn >= 0 else (code[p] + code[p + 1] - 1) // 2
    for p in range(m):
        for k in range(c):
            counts[code[p] * c + k] = 0
    return CodeSplit(best, border, side, True, with_missing)


@called_by_loops_uncounted
def _channels_score(terms, channels, weight, rest):
    """Return the score of two children by the channels' sums on the left and in all."""
    one, two = 0.0, 0.0
    for k in range(len(channels.left)):
        a, b = float(channels.left[k]), float(channels.total[k] - channels.left[k])
        if terms.score == POISSON:
            if a <= 0 or b <= 0:
                return -np.inf
            one += a * math.log(a / weight)
            two += b * math.log(b / rest)
        elif terms.score == ENTROPY:
            one += _log_term(a)
            two += _log_term(b)
        else:
            one += a * a
            two += b * b
    if terms.score == POISSON:
        return one + two
    if terms.score == ENTROPY:
        return one + two - terms.targets * (_log_term(weight) + _log_term(rest))
    return one / weight + two / rest


@called_by_loops_uncounted
def whole_channels_score(terms, channels, weight):
    """Return the score of a node of several targets that is not split."""
    found = 0.0
    for k in range(len(channels.total)):
        a = float(channels.total[k])
        if terms.score == POISSON:
            found += a * math.log(a / weight) if a > 0 else 0.0
        else:
            found += _log_term(a) if terms.score == ENTROPY else a * a
    if terms.score == POISSON:
        return found
    return found - terms.targets * _log_term(weight) if terms.score == ENTROPY else found / weight
