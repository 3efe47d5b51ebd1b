"""The compiled loop that grows a whole tree from codes of one byte, depth first, without the interpreter.

Each node looks at columns in an order that its own key decides (a shuffle that is undone afterwards), so that anyone
can say later which columns it was allowed to see. Columns that are constant in a node are constant below it too, and
are not looked at again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import (
    called_by_loops_uncounted,
    called_from_python,
    called_from_python_uncounted,
    written_into_loops_uncounted,
)
from certifit.numerics.compiled.random_bits import random_bits
from certifit.rows import Array
from certifit.tree.binned.seeded.candidate_loops import (
    ENTROPY,
    FIELD,
    FIELD_BITS,
    GINI,
    LABEL,
    MISSING,
    PACKED,
    POISSON,
    SQUARED,
    WEIGHT_BITS,
    CodeSplit,
    GrowingNode,
    SplitTerms,
    TreeRows,
    add_channels,
    best_of_channels,
    best_of_entries,
    best_of_list,
    list_codes,
    list_entries,
    whole_channels_score,
)


class CodedTable(NamedTuple):
    """The table that all trees share."""

    codes: Array  # (d, n) uint8: a column that a node looks at stays in the cache
    y: Array  # (t, n) float64: amounts, or class numbers, of every target
    first: Array  # (d + 1,) where the borders of each column begin
    borders: Array  # float64, those of one column after another: code <= k exactly where x <= border k
    monotone: Array  # (d,) int8: -1, 0 or 1


class CodeRules(NamedTuple):
    """By which rules a tree grows."""

    columns: int  # how many columns each node looks at
    split_rows: int  # fewest rows of a node that is split
    depth: int  # of the deepest leaf allowed
    decrease: float  # least gain in score
    drawn: bool  # one border drawn for each column instead of the best


class GrownNodes(NamedTuple):
    """Nodes in preorder: a left child follows its parent."""

    left: Array  # (m,) int32; -1 for a leaf
    right: Array  # (m,) int32
    column: Array  # (m,) int32; -2 for a leaf
    threshold: Array  # (m,) float64; -2 for a leaf
    missing_left: Array  # (m,) uint8
    start: Array  # (m,) int32: first of its rows
    end: Array  # (m,) int32


class WaitingNodes(NamedTuple):
    """Nodes that are still to be looked at, a stack."""

    start: Array  # int64
    end: Array  # int64
    depth: Array  # int64
    key: Array  # uint64
    parent: Array  # int64; -1 - parent for a right child
    constants: Array  # int64: how many columns were known to be constant
    limits: Array  # (·, 2) float64: values that monotone columns allow


class ColumnOrder(NamedTuple):
    """Scratch by which a node's columns are drawn, and those that are known to be constant."""

    order: Array  # (d,) int32: 0 … d - 1 between uses
    swapped: Array  # (d,) int32
    constant: Array  # (d,) uint8
    found: Array  # (d,) int32: the constant ones, in the order in which they were found


class Growth(NamedTuple):
    """All that growing one tree needs."""

    table: CodedTable
    rows: TreeRows
    terms: SplitTerms
    rules: CodeRules
    columns: ColumnOrder


# What targets need is one of three: `pair` for sums of two, `classes` for many, `channels` for several targets. The
# other two are None, and nothing of theirs is compiled.
@called_by_loops_uncounted
def growing_node(rows, terms, pair, classes, channels, run):
    """Return a node, the rows of a run, with what they add up to, and fill in the sum of each class or channel."""
    start, end, key, depth, low, high = run
    a, b, weight = 0, 0, 0
    if classes is not None:
        for c in range(len(classes.total)):
            classes.total[c] = 0.0
        for i in range(start, end):
            v = rows.a[i]
            classes.total[v >> LABEL] += v & WEIGHT_BITS
            weight += v & WEIGHT_BITS
    if pair is not None:
        for i in range(start, end):
            a += rows.a[i]
        if terms.form == PACKED:
            a, b = a & FIELD_BITS, (a >> FIELD) & FIELD_BITS
        else:
            for i in range(start, end):
                b += rows.b[i]
        weight = a + b if terms.score < SQUARED else b
    if channels is not None:
        for i in range(start, end):
            b += rows.b[i]
        weight = b
        total, each = channels.total, channels.rows
        for k in range(len(total)):
            total[k] = 0
            for i in range(start, end):
                total[k] += each[rows.row[i], k]
    return GrowingNode(start, end, key, depth, end - start, a, b, float(weight), low, high)


@called_by_loops_uncounted
def _is_pure(y, row, start, end):
    """Whether a node's rows have the same targets."""
    for t in range(len(y)):
        for i in range(start + 1, end):
            if y[t, row[i]] != y[t, row[start]]:
                return False
    return True


@called_by_loops_uncounted
def _drawn_border(borders, first, j, key, low, high):
    """Return the border nearest to a number drawn between those next to the lowest and the highest code.

    Column j's borders are those from the first on.
    """
    share = float(random_bits(key ^ np.uint64(0xD1B54A32D192ED03), j) >> np.uint64(11)) / 2.0**53
    least, most = borders[first + low], borders[first + high - 1]
    drawn = least * (1 - share) + most * share
    k = low
    while k < high - 1 and borders[first + k + 1] <= drawn:
        k += 1
    if k < high - 1 and borders[first + k + 1] - drawn < drawn - borders[first + k]:
        k += 1
    return k


@written_into_loops_uncounted
def _drawn_of_list(table, j, key, code, m):
    """Return a border drawn between the lowest and the highest code of a list."""
    last = m - 2 if code[m - 1] == MISSING else m - 1
    return _drawn_border(table.borders, table.first[j], j, key, code[0], code[last]) if last > 0 else 254


@written_into_loops_uncounted
def _best_of_classes(table, rows, terms, drawing, classes, node, j):
    """Return the best split of a node of many classes along a column."""
    entry, drawn = classes.entry, -1
    m = list_entries(table.codes[j], rows, terms, node, classes)
    if drawing:
        last = m - 1
        while last > 0 and entry[last] >> np.uint64(56) == MISSING:
            last -= 1
        low, high = np.int64(entry[0] >> np.uint64(56)), np.int64(entry[last] >> np.uint64(56))
        if low < high < MISSING:
            drawn = _drawn_border(table.borders, table.first[j], j, node.key, low, high)
        else:
            drawn = 254
    return best_of_entries(classes, m, terms, node, drawn)


@written_into_loops_uncounted
def _best_of_pair(table, rows, terms, drawing, pair, node, j):
    """Return the best split of a node of two sums along a column."""
    drawn = -1
    m = list_codes(table.codes[j], rows, terms, node, pair)
    if drawing:
        drawn = _drawn_of_list(table, j, node.key, pair.code, m)
    return best_of_list(pair, m, terms, node, drawn, table.monotone[j])


@written_into_loops_uncounted
def _best_of_targets(table, rows, terms, drawing, channels, node, j):
    """Return the best split of a node of several targets along a column."""
    found, drawn = channels.found, -1
    m = list_codes(table.codes[j], rows, terms, node, found)
    if drawing:
        drawn = _drawn_of_list(table, j, node.key, found.code, m)
    if m < 2:
        return CodeSplit(-np.inf, -1, False, False, found.code[0] == MISSING)
    add_channels(table.codes[j], rows, channels, node)
    return best_of_channels(found, m, terms, node, channels, drawn)


@written_into_loops_uncounted
def find_split(growth, pair, classes, channels, node, known):
    """Return the best split of a node along the columns that its key draws, its column, and how many are constant."""
    table, rows, terms, rules, columns = growth
    most, drawing, key = rules.columns, rules.drawn, node.key
    d = len(columns.order)
    best, column = CodeSplit(-np.inf, -1, False, False, False), np.int64(-1)
    visited, varying, i = 0, 0, 0
    while i < d and (visited < most or varying == 0):
        at = i + int(random_bits(key, i) % np.uint64(d - i))
        j = np.int64(columns.order[at])
        columns.order[at], columns.order[i] = columns.order[i], j
        columns.swapped[i] = at
        i += 1
        visited += 1
        if columns.constant[j]:
            continue
        split = CodeSplit(-np.inf, -1, False, False, False)
        if pair is not None:
            split = _best_of_pair(table, rows, terms, drawing, pair, node, j)
        if classes is not None:
            split = _best_of_classes(table, rows, terms, drawing, classes, node, j)
        if channels is not None:
            split = _best_of_targets(table, rows, terms, drawing, channels, node, j)
        if not split.varies:
            columns.constant[j] = 1
            columns.found[known] = j
            known += 1
            continue
        varying += 1
        if split.score > best.score or (split.score == best.score and j < column and split.score > -np.inf):
            best, column = split, j
    while i > 0:
        i -= 1
        at = columns.swapped[i]
        columns.order[at], columns.order[i] = columns.order[i], columns.order[at]
    return best, column, known


@called_by_loops_uncounted
def part_rows(codes, rows, split, start, end):
    """Put the rows that go left before the others, each side in its order; return where the right side begins."""
    pair, border, missing_left = len(rows.b) > 0, split.border, int(split.missing_left)
    at, others = start, 0
    # Written to both sides, and one counted: a branch would be guessed wrong for half of the rows.
    for i in range(start, end):
        r, a = rows.row[i], rows.a[i]
        c = codes[r]
        left = missing_left if c == MISSING else int(c <= border)
        rows.row[at], rows.a[at] = r, a
        rows.spare_row[others], rows.spare_a[others] = r, a
        if pair:
            b = rows.b[i]
            rows.b[at] = b
            rows.spare_b[others] = b
        at += left
        others += 1 - left
    for i in range(others):
        rows.row[at + i], rows.a[at + i] = rows.spare_row[i], rows.spare_a[i]
        if pair:
            rows.b[at + i] = rows.spare_b[i]
    return at


@called_by_loops_uncounted
def _whole_pair_score(score, a, b):
    """Return the score of a node of two sums that is not split."""
    if score == GINI:
        return (a * a + b * b) / (a + b)
    if score == POISSON:
        return a * math.log(a / b) if a > 0 else 0.0
    if score == ENTROPY:
        found = -(a + b) * math.log(a + b)
        found += a * math.log(a) if a > 0 else 0.0
        return found + (b * math.log(b) if b > 0 else 0.0)
    return a * a / b


@called_by_loops_uncounted
def _whole_class_score(score, totals, weight):
    """Return the score of a node of many classes that is not split."""
    found = 0.0
    for c in range(len(totals)):
        s = totals[c]
        found += s * s if score == GINI else (s * math.log(s) if s > 0 else 0.0)
    return found / weight if score == GINI else found - weight * math.log(weight)


@written_into_loops_uncounted
def whole_score(terms, pair, classes, channels, node):
    """Return the score of a node that is not split."""
    found = 0.0
    if pair is not None:
        found = _whole_pair_score(terms.score, float(node.a), float(node.b))
    if classes is not None:
        found = _whole_class_score(terms.score, classes.total, node.weight)
    if channels is not None:
        found = whole_channels_score(terms, channels, node.weight)
    return found


@written_into_loops_uncounted
def may_split(y, row, terms, rules, node):
    """Whether a node is one that the rules let be split, whatever its best split is."""
    if node.depth >= rules.depth or node.rows < rules.split_rows or node.rows < 2 * terms.leaf_rows:
        return False
    if node.weight < 2 * terms.leaf_weight:
        return False
    if terms.form == PACKED:
        return node.a > 0 and node.b > 0
    return not _is_pure(y, row, node.start, node.end)


@written_into_loops_uncounted
def _waiting_node(rows, terms, pair, classes, channels, waiting, p):
    """Return the waiting node at place p."""
    low, high = waiting.limits[p, 0], waiting.limits[p, 1]
    run = (waiting.start[p], waiting.end[p], waiting.key[p], waiting.depth[p], low, high)
    return growing_node(rows, terms, pair, classes, channels, run)


@written_into_loops_uncounted
def _new_node(nodes, waiting, top, k):
    """Write down node k, a leaf so far, and tell its parent."""
    parent = waiting.parent[top]
    if k > 0 and parent >= 0:
        nodes.left[parent] = k
    elif k > 0:
        nodes.right[-1 - parent] = k
    nodes.start[k], nodes.end[k] = waiting.start[top], waiting.end[top]
    nodes.left[k] = nodes.right[k] = -1
    nodes.column[k], nodes.threshold[k], nodes.missing_left[k] = -2, -2.0, 0


@written_into_loops_uncounted
def _split_node(table, rows, nodes, node, k, split, j):
    """Write down the split of node k and part its rows; return where those of the right child begin."""
    middle = part_rows(table.codes[j], rows, split, node.start, node.end)
    nodes.column[k] = j
    nodes.threshold[k] = np.inf if split.border == 254 else table.borders[table.first[j] + split.border]
    # Where the node met no missing value, later ones go to the side with more rows.
    larger = middle - node.start > node.end - middle
    nodes.missing_left[k] = split.missing_left if split.met_missing else larger
    return middle


@called_by_loops_uncounted
def _child_limits(rows, terms, pair, node, middle, direction):
    """Return the values that descendants of both children may have: neither side crosses the middle of the two."""
    low, high = node.low, node.high
    one = growing_node(rows, terms, pair, None, None, (node.start, middle, node.key, node.depth, low, high))
    two = growing_node(rows, terms, pair, None, None, (middle, node.end, node.key, node.depth, low, high))
    if terms.score < SQUARED:
        between = (one.b / one.weight + two.b / two.weight) / 2
    else:
        between = (one.a / one.b + two.a / two.b) / 2
    below, above = (low, between), (between, high)
    return (below, above) if direction > 0 else (above, below)


@written_into_loops_uncounted
def _limits_of_children(monotone, rows, terms, pair, node, middle, j):
    """Return the values that descendants of both children may have after a split along column j."""
    found = (node.low, node.high), (node.low, node.high)
    if pair is not None:  # else no column is monotone
        direction = monotone[j]
        if direction != 0:
            found = _child_limits(rows, terms, pair, node, middle, direction)
    return found


@written_into_loops_uncounted
def _push_children(d, waiting, top, node, k, middle, limits):
    """Put both children on the stack, from place `top` on: the left one on top, to be looked at first."""
    one, two = limits
    waiting.start[top], waiting.end[top] = middle, node.end
    waiting.start[top + 1], waiting.end[top + 1] = node.start, middle
    waiting.parent[top], waiting.parent[top + 1] = -1 - k, k
    waiting.key[top], waiting.key[top + 1] = random_bits(node.key, d + 1), random_bits(node.key, d)
    waiting.limits[top, 0], waiting.limits[top, 1] = two
    waiting.limits[top + 1, 0], waiting.limits[top + 1, 1] = one
    waiting.depth[top] = waiting.depth[top + 1] = node.depth + 1


@called_from_python_uncounted
def grow_tree(growth, pair, classes, channels, nodes, waiting):
    """Grow from node 0, all rows, until no node may be split; return how many nodes there are."""
    table, rows, terms, rules, columns = growth
    constants, made, top = 0, 0, 1
    while top > 0:
        top -= 1
        while constants > waiting.constants[top]:  # found below another node
            constants -= 1
            columns.constant[columns.found[constants]] = 0
        k = made
        made += 1
        _new_node(nodes, waiting, top, k)
        node = _waiting_node(rows, terms, pair, classes, channels, waiting, top)
        if not may_split(table.y, rows.row, terms, rules, node):
            continue
        split, j, constants = find_split(growth, pair, classes, channels, node, constants)
        if j < 0 or split.score - whole_score(terms, pair, classes, channels, node) < rules.decrease:
            continue
        middle = _split_node(table, rows, nodes, node, k, split, j)
        limits = _limits_of_children(table.monotone, rows, terms, pair, node, middle, j)
        _push_children(len(columns.order), waiting, top, node, k, middle, limits)
        waiting.constants[top] = waiting.constants[top + 1] = constants
        top += 2
    while constants > 0:
        constants -= 1
        columns.constant[columns.found[constants]] = 0
    return made


@called_from_python
def grow_best_first(growth, pair, classes, channels, nodes, waiting, most_leaves):
    """Grow by splitting the leaf that gains most, until there are so many; return how many nodes there are.

    Nodes are numbered in the order in which they were made, and `waiting` keeps each of them at its own number.
    """
    table, rows, terms, rules, columns = growth
    gain = np.full(len(nodes.left), -np.inf)
    border, side, met = np.zeros(len(gain), np.int64), np.zeros(len(gain), np.bool_), np.zeros(len(gain), np.bool_)
    column = np.full(len(gain), -1)
    made, fresh, leaves = 1, 0, 1
    _new_node(nodes, waiting, 0, 0)
    while True:
        for k in range(fresh, made):
            node = _waiting_node(rows, terms, pair, classes, channels, waiting, k)
            if not may_split(table.y, rows.row, terms, rules, node):
                continue
            split, j, constants = find_split(growth, pair, classes, channels, node, 0)
            while constants > 0:
                constants -= 1
                columns.constant[columns.found[constants]] = 0
            if j >= 0:
                found = split.score - whole_score(terms, pair, classes, channels, node)
                if found >= rules.decrease:
                    gain[k], column[k] = found, j
                    border[k], side[k], met[k] = split.border, split.missing_left, split.met_missing
        fresh = made
        k = int(np.argmax(gain[:made]))
        if leaves >= most_leaves or gain[k] == -np.inf:
            return made
        node = _waiting_node(rows, terms, pair, classes, channels, waiting, k)
        split = CodeSplit(gain[k], border[k], side[k], True, met[k])
        gain[k] = -np.inf
        middle = _split_node(table, rows, nodes, node, k, split, column[k])
        # Children come as right, then left from the stack; here the left one has the lower number.
        limits = _limits_of_children(table.monotone, rows, terms, pair, node, middle, column[k])
        _push_children(len(columns.order), waiting, made, node, k, middle, limits)
        _swap_waiting(waiting, made, made + 1)
        for child in range(made, made + 2):
            _new_node(nodes, waiting, child, child)
        made += 2
        leaves += 1


@called_by_loops_uncounted
def _swap_waiting(waiting, p, q):
    """Let two waiting nodes change places."""
    waiting.start[p], waiting.start[q] = waiting.start[q], waiting.start[p]
    waiting.end[p], waiting.end[q] = waiting.end[q], waiting.end[p]
    waiting.parent[p], waiting.parent[q] = waiting.parent[q], waiting.parent[p]
    waiting.key[p], waiting.key[q] = waiting.key[q], waiting.key[p]
    for c in range(2):
        waiting.limits[p, c], waiting.limits[q, c] = waiting.limits[q, c], waiting.limits[p, c]
