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
from certifit.checkers.tree.adapter import share_of_rows, tree_targets
from certifit.checkers.tree.bin_borders import check_borders, read_borders
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, encode_label_columns, encode_labels
from certifit.rows.checks import TableTerms, Target
from certifit.rows.labels import class_weight_vector

CRITERIA = {"log_loss": "entropy", "friedman_mse": "squared_error"}


def audit_own_forest(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check one of our own forests."""
    rows = forest_rows(model, X, y, sample_weight)
    return replace(certify_own(model, rows, ForestCheckTuning()), tol=tol)


def forest_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """The rows of a fit, with class numbers as targets where there are classes."""
    kinds = model_classes(model)
    target: Target = "classes" if kinds else "numbers"
    y, targets = tree_targets(X, y, target)
    if targets != model.n_outputs_:
        raise DataError(
            got=f"{targets} target(s) for a forest of {model.n_outputs_}", wanted="the y that it was fitted on"
        )
    rows = fitted_rows(
        model, int(model.n_features_in_), X, y, sample_weight, TableTerms(target, targets, missing=True)
    )
    if targets > 1 and kinds:
        return encode_label_columns(rows, kinds).rows
    return encode_labels(rows, kinds[0]).rows if kinds else rows


def model_classes(model: Any) -> list[Array]:
    """The classes of each target; none for amounts."""
    found = getattr(model, "classes_", None)
    if found is None:
        return []
    return [np.asarray(one) for one in found] if isinstance(found, list) else [np.asarray(found)]


def certify_own(model: Any, rows: Rows, tuning: ForestCheckTuning) -> Certificate:
    """Check a forest of ours on rows whose y are class numbers or amounts."""
    trees, k = model.trees_, tuple(map(len, model_classes(model)))
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
        *_check_bins(model, part),
    )
    if len(trees.first) != len(trees.seed) + 1 or trees.first[0] != 0 or (np.diff(trees.first) < 1).any():
        raise DataError(got="trees that do not follow one another", wanted="a forest as its fit left it")
    if trees.first[-1] != len(trees.threshold) or len(trees.seed) != model.n_estimators:
        raise DataError(
            got=f"{len(trees.seed)} trees for n_estimators={model.n_estimators}", wanted="a forest as its fit left it"
        )
    if model.oob_score and not k:
        said, rest, y = np.asarray(model.oob_prediction_), np.asarray(model.oob_residual_), rows.map(_targets)
        if not said.shape == rest.shape == y.shape:
            raise DataError(got=f"out-of-bag answers of shape {said.shape}", wanted=f"{y.shape}, that of the targets")
        off = np.where(np.isnan(said) & np.isnan(rest), 0.0, np.abs(y - said - rest))
        size = float(np.nanmax(np.abs(y), initial=1.0))
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
    """The weight of each row's classes (n,); ones for amounts, and where every tree finds its own."""
    asked = getattr(model, "class_weight", None)
    found = np.ones(rows.n_rows)
    if asked is None or (asked == "balanced_subsample" and model.bootstrap):
        return found
    kinds, y = model_classes(model), rows.map(_targets).reshape(rows.n_rows, -1)
    named = "balanced" if asked == "balanced_subsample" else asked
    each = [named] * len(kinds) if isinstance(named, (str, dict)) else named
    for classes, codes, one in zip(kinds, y.T, each, strict=True):
        found = found * class_weight_vector(classes, np.bincount(codes, w, len(classes)), one)[codes]
    return found


def _tree_weights(model: Any, order: Array, drawn_by: Array, rows: Rows, t: int) -> Array:
    """How much each row counts in a tree (n,)."""
    if not model.bootstrap:
        return drawn_by
    counts = drawn_counts(int(model.trees_.seed[t]), draw_number(model, rows), order, drawn_by).astype(np.float64)
    if getattr(model, "class_weight", None) != "balanced_subsample":
        return counts
    return balanced_weights(rows.map(_targets).reshape(rows.n_rows, -1), counts)


def balanced_weights(y: Array, counts: Array) -> Array:
    """Weights (n,) by which the classes of every target (n, t) weigh the same in a sample, each target by itself."""
    found = counts
    for codes in y.T:
        total = np.bincount(codes, counts)
        here = np.where(total > 0, total, 1.0)
        found = found * (total.sum() / ((total > 0).sum() * here))[codes]
    return np.asarray(found)


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


def _claimed(model: Any, k: tuple[int, ...], t: int) -> ClaimedTree:
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


def _check_bins(model: Any, rows: Rows) -> tuple[Check, ...]:
    """Whether borders ascend and cut every column into bins that are single values or hold few of the rows."""
    bins, columns = read_borders(model.borders_, rows.n_features, 255), []
    if rows.in_memory:
        X: Any = rows.load().X
        sparse = hasattr(X, "toarray")
        columns = [X[:, [j]].toarray()[:, 0] if sparse else X[:, j] for j in range(rows.n_features)]
    return check_borders(bins, columns, rows.map(_weights), rows.n_rows == len(model.draw_weight_))


def _unseen_claim(model: Any, w: Array, k: tuple[int, ...]) -> UnseenClaim | None:
    if not model.oob_score:
        return None
    low, high = (float(end) for end in model.oob_interval_)
    measure = partial(_own_score, model) if callable(model.oob_score) else None
    return UnseenClaim(unseen_answers(model, k), float(model.oob_score_), (low, high), w, measure)


def unseen_answers(model: Any, k: tuple[int, ...]) -> Array:
    """The out-of-bag answers that a forest tells (n, t, k)."""
    found = np.asarray(model.oob_decision_function_ if k else model.oob_prediction_, np.float64)
    if k:
        return found.transpose(0, 2, 1) if len(k) > 1 else found[:, None]
    return found.reshape(len(found), -1, 1)


def _own_score(model: Any, answers: Array, y: Array) -> float:
    """What the user's own function says of out-of-bag answers (n, t, k)."""
    known, kinds = ~np.isnan(answers).any(axis=(1, 2)), model_classes(model)
    if kinds:
        said = np.stack([one[answers[:, t, : len(one)].argmax(axis=1)] for t, one in enumerate(kinds)], axis=1)
        true = np.stack([one[y[:, t]] for t, one in enumerate(kinds)], axis=1)
    else:
        said, true = answers[:, :, 0], y
    pair = (true[known], said[known]) if y.shape[1] > 1 else (true[known, 0], said[known, 0])
    return float(model.oob_score(*pair))
