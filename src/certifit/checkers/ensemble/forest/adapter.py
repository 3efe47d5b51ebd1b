"""Reads our fitted forests and certifies them on the rows they were fitted on."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.ensemble.forest.certificate import (
    FittedForest,
    ForestCheckTuning,
    UnseenClaim,
    certify_forest,
)
from certifit.checkers.ensemble.forest.drawn_splits import SplitClaim
from certifit.checkers.ensemble.forest.plain_bootstrap import check_whole, drawn_counts, row_order
from certifit.checkers.ensemble.forest.plain_nodes import ClaimedTree, claimed_tree
from certifit.checkers.fitted import fitted_rows
from certifit.checkers.tree.adapter import share_of_rows
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, encode_labels
from certifit.rows.checks import TableTerms
from certifit.rows.labels import class_weight_vector

CRITERIA = {"log_loss": "entropy", "friedman_mse": "squared_error"}


def audit_own_forest(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check one of our own forests."""
    classes = getattr(model, "classes_", None)
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        rows = encode_labels(rows, np.asarray(classes)).rows
    return replace(certify_own(model, rows, ForestCheckTuning()), tol=tol)


def certify_own(model: Any, rows: Rows, tuning: ForestCheckTuning) -> Certificate:
    """Check a forest of ours on rows whose y are class numbers or amounts."""
    trees, k = model.trees_, len(getattr(model, "classes_", ()))
    w = rows.map(_weights)
    check_whole(model.draw_order_, trees.seed, trees.first, trees.children_left, trees.children_right)
    check_whole(trees.feature, trees.n_node_samples, trees.missing_go_to_left)
    columns = _columns(model.max_features, rows.n_features)
    if type(model.max_features_) is not int or model.max_features_ != columns:
        raise DataError(
            got=f"max_features_={model.max_features_!r}", wanted=f"{columns}, by max_features={model.max_features!r}"
        )
    if not rows.n_rows == len(model.draw_weight_) == len(model.draw_order_):
        raise DataError(
            got=f"{rows.n_rows} rows for a forest of {len(model.draw_weight_)}", wanted="the rows it was fitted on"
        )
    factor = _factor(model, rows, w)
    drawn_by = w * factor
    part, order, misplaced = _order_of_draws(model, rows, tuning)
    beside: tuple[Check, ...] = (
        Check("rows out of the order in which they are drawn", float(misplaced), 0.0),
        Check("weights of draws off by", float(np.abs(drawn_by - model.draw_weight_).max()), 1e-12 * drawn_by.max()),
        Check("seeds that random_state does not give", float(_strange_seeds(model)), 0.0),
        *_check_borders(model, part),
    )
    if len(trees.first) != len(trees.seed) + 1 or trees.first[0] != 0 or (np.diff(trees.first) < 1).any():
        raise DataError(got="trees that do not follow one another", wanted="a forest as its fit left it")
    if trees.first[-1] != len(trees.threshold) or len(trees.seed) != model.n_estimators:
        raise DataError(
            got=f"{len(trees.seed)} trees for n_estimators={model.n_estimators}", wanted="a forest as its fit left it"
        )
    if model.oob_score and not k:
        off = np.abs(rows.map(_targets) - model.oob_prediction_ - model.oob_residual_)
        off = np.where(np.isnan(model.oob_prediction_) & np.isnan(model.oob_residual_), 0.0, off)
        size = float(np.nanmax(np.abs(rows.map(_targets)), initial=1.0))
        beside += (Check("out-of-bag residuals off by", float(off.max(initial=0.0)), 1e-12 * size),)
    forest = FittedForest(
        len(trees), partial(_claimed, model, k), lambda t: int(trees.seed[t]),
        partial(_tree_weights, model, order, drawn_by, rows), _objective(trees), _split_claim(model, w),
        tuple(np.asarray(b, np.float64) for b in model.borders_),
    )  # fmt: skip
    return certify_forest(forest, rows, beside, _unseen_claim(model, w, k), tuning)


def _columns(asked: Any, d: int) -> int:
    """How many columns each node looks at, by the setting."""
    if asked is None:
        return d
    if isinstance(asked, str):
        return max(1, int(math.sqrt(d) if asked == "sqrt" else math.log2(d)))
    return min(d, int(asked)) if isinstance(asked, (int, np.integer)) else max(1, int(asked * d))


def _weights(block: Block) -> Array:
    return block.w


def _targets(block: Block) -> Array:
    return np.asarray(block.y)


def _factor(model: Any, rows: Rows, w: Array) -> Array:
    """The weight of each row's class (n,); ones for amounts, and where every tree finds its own."""
    asked = getattr(model, "class_weight", None)
    if asked is None or (asked == "balanced_subsample" and model.bootstrap):
        return np.ones(rows.n_rows)
    y = rows.map(_targets)
    total = np.bincount(y, w, len(model.classes_))
    named = "balanced" if asked == "balanced_subsample" else asked
    return class_weight_vector(np.asarray(model.classes_), total, named)[y]


def _tree_weights(model: Any, order: Array, drawn_by: Array, rows: Rows, t: int) -> Array:
    """How much each row counts in a tree (n,)."""
    if not model.bootstrap:
        return drawn_by
    counts = drawn_counts(int(model.trees_.seed[t]), draw_number(model, rows), order, drawn_by).astype(np.float64)
    if getattr(model, "class_weight", None) != "balanced_subsample":
        return counts
    y, k = rows.map(_targets), len(model.classes_)
    total = np.bincount(y, counts, k)
    here = np.where(total > 0, total, 1.0)
    return np.asarray(counts * (total.sum() / ((total > 0).sum() * here))[y])


def draw_number(model: Any, rows: Rows) -> int:
    """How many rows a tree draws: a row of whole weight w counts as w rows."""
    w = rows.map(_weights)
    whole = (w == np.rint(w)).all()
    n = float(w.sum()) if whole else float((w > 0).sum())
    asked = model.max_samples
    if asked is None:
        return int(n)
    return int(asked) if isinstance(asked, (int, np.integer)) else max(1, round(asked * n))


def _strange_seeds(model: Any) -> int:
    """How many seeds are not those that a whole random_state gives; 0 where it is not a whole number."""
    if not isinstance(model.random_state, (int, np.integer)):
        return 0
    seeds = np.asarray(model.trees_.seed)
    return int((np.random.RandomState(model.random_state).randint(2**31 - 1, size=len(seeds)) != seeds).sum())


def _claimed(model: Any, k: int, t: int) -> ClaimedTree:
    criterion = CRITERIA.get(model.criterion, model.criterion)
    return claimed_tree(model.trees_.tree(t, int(model.n_features_in_)), int(model.n_features_in_), criterion, k)


def _objective(trees: Any) -> float:
    """The mean over trees of the impurity of their leaves."""
    leaf = trees.children_left < 0
    root = np.repeat(trees.weighted_n_node_samples[trees.first[:-1]], np.diff(trees.first))
    share = np.where(leaf, trees.weighted_n_node_samples / root, 0.0)
    return float(share @ trees.impurity) / len(trees.seed)


def _split_claim(model: Any, w: Array) -> SplitClaim:
    n = int((w > 0).sum())
    return SplitClaim(
        columns=int(model.max_features_),
        split_rows=max(2, share_of_rows(model.min_samples_split, n)),
        leaf_rows=share_of_rows(model.min_samples_leaf, n),
        leaf_share=float(model.min_weight_fraction_leaf),
        depth=math.inf if model.max_depth is None else model.max_depth,
        decrease=float(model.min_impurity_decrease),
        drawn=bool(model.drawn_borders),
        complete=model.max_leaf_nodes is None and model.ccp_alpha == 0,
        free=model.monotonic_cst is None,
    )


def _order_of_draws(model: Any, rows: Rows, tuning: ForestCheckTuning) -> tuple[Rows, Array, int]:
    """The rows on which what trees share is checked, the order of draws, and how many rows are not in their place."""
    told = np.asarray(model.draw_order_)
    if rows.n_rows <= tuning.shared_rows:
        order = row_order(rows)
        return rows, order, int((order != told).sum())
    place = np.random.default_rng(tuning.seed).permutation(rows.n_rows)[: tuning.shared_rows]
    index = np.sort(told[np.sort(place)])
    part = rows.take(index)
    # Of a few rows, the order by their hashes must be that of their places among all.
    expected = np.argsort(np.argsort(told, kind="stable")[index], kind="stable")
    return part, told, int((row_order(part) != expected).sum())


def _check_borders(model: Any, rows: Rows) -> tuple[Check, ...]:
    """Whether borders ascend and cut every column into bins that are single values or hold few of the rows."""
    borders = tuple(np.asarray(b, np.float64) for b in model.borders_)
    if len(borders) != rows.n_features or any(b.ndim != 1 or len(b) > 254 for b in borders):
        raise DataError(got="borders_ that are not at most 254 numbers for each column", wanted="those of the fit")
    unordered = sum(not (np.isfinite(b).all() and (np.diff(b) > 0).all()) for b in borders)
    coarse, w = 0, rows.map(_weights)
    some = rows.n_rows < len(model.draw_weight_)
    if rows.in_memory and not unordered:
        X: Any = rows.load().X
        for j, border in enumerate(borders):
            x = X[:, [j]].toarray()[:, 0] if hasattr(X, "toarray") else X[:, j]
            coarse += _is_coarse(np.asarray(x, np.float64), w, border, some)
    return (
        Check("columns whose borders do not ascend", float(unordered), 0.0),
        Check("columns with bins that are too coarse", float(coarse), 0.0),
    )


def _is_coarse(x: Array, w: Array, border: Array, some: bool) -> bool:
    """Whether a bin of several values holds more than a fiftieth of the rows, or a column of few has such a bin."""
    known = ~np.isnan(x) & (w > 0)
    x, w = x[known], w[known]
    if not len(x):
        return False
    code = np.searchsorted(border, x, side="left")
    low, high = np.full(len(border) + 1, np.inf), np.full(len(border) + 1, -np.inf)
    np.minimum.at(low, code, x)
    np.maximum.at(high, code, x)
    several = high > low
    if not several.any():
        return False
    # Of a few rows only, a column may seem to have few values.
    return (not some and len(np.unique(x)) <= 255) or bool(
        (np.bincount(code, w, len(low))[several] > w.sum() / 50).any()
    )


def _unseen_claim(model: Any, w: Array, k: int) -> UnseenClaim | None:
    if not model.oob_score:
        return None
    answers = np.asarray(model.oob_decision_function_ if k else model.oob_prediction_, np.float64)
    answers = answers if k else answers[:, None]
    low, high = (float(end) for end in model.oob_interval_)
    measure = partial(_own_score, model, k) if callable(model.oob_score) else None
    return UnseenClaim(answers, float(model.oob_score_), (low, high), w, measure)


def _own_score(model: Any, k: int, answers: Array, y: Array) -> float:
    """What the user's own function says of out-of-bag answers."""
    known = ~np.isnan(answers).any(axis=1)
    said = np.asarray(model.classes_)[answers.argmax(axis=1)] if k else answers[:, 0]
    true = np.asarray(model.classes_)[y] if k else y
    return float(model.oob_score(true[known], said[known]))
