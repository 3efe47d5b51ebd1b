"""Reads fitted decision trees, ours and scikit-learn's, and certifies them on the rows they were fitted on."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.fitted import fitted_rows, row_counts
from certifit.checkers.linear_model.several_targets import only_column, target_columns
from certifit.checkers.plain.blocks import dense
from certifit.checkers.tree.bin_borders import BinBorders, check_borders, read_borders
from certifit.checkers.tree.categories import categorical_columns, encode_labels_of, learn_labels
from certifit.checkers.tree.greedy import NEVER_PARTED, GreedyTuning, GrowthClaim, check_greedy
from certifit.checkers.tree.midpoints import (
    DRAWN_ELSEWHERE,
    STRANGE,
    drawn_borders_elsewhere,
    drawn_elsewhere,
    off_middle_borders,
    strange_thresholds,
)
from certifit.checkers.tree.node_sums import NodeClaims, check_nodes
from certifit.checkers.tree.plain_tree import PlainTree, plain_tree
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, apply_class_weight, apply_class_weights, encode_label_columns, encode_labels
from certifit.rows.checks import TableTerms, Target

CLAIM = "every node says what its rows say, and every split that was scored again is the best of candidates"
CLAIM_OF_DRAWN = "every node says what its rows say; splits are the best of candidates drawn at random"
CLAIM_OF_NODES = "every node says what its rows say; splits of rows that are not in memory were not searched again"
CLAIM_OF_LOOKAHEAD = "every node says what its rows say; splits were chosen two levels ahead"


@np.errstate(under="ignore")
def certify_tree(
    tree: PlainTree, claims: NodeClaims, growth: GrowthClaim, rows: Rows, tol: float = 0.0,
    tuning: GreedyTuning = GreedyTuning(),
) -> Certificate:  # fmt: skip
    """Check a tree on rows whose y are class numbers or amounts."""
    checks = check_nodes(tree, claims, growth.criterion, growth.classes, rows)
    facts: dict[str, Any] = {}
    bins = growth.bins
    if bins is not None:
        checks += (Check("thresholds that are no border of a bin", float(bins.strange_thresholds(tree)), 0.0),)
        checks += () if rows.in_memory else check_borders(bins, (), np.zeros(0), False)
    if rows.in_memory:
        data = rows.load()
        kept = data.w > 0
        X = dense(data.X[kept]).astype(np.float64)
        if bins is not None:
            some = np.random.default_rng(tuning.seed).permutation(len(X))[: tuning.border_rows]
            checks += check_borders(bins, [*X[some].T], data.w[kept][some], len(some) == len(X))
        if bins is not None and growth.every_threshold:
            off = float(off_middle_borders(tree, X, bins.columns))
            checks += (Check("thresholds that are not the middle border of those that split alike", off, 0.0),)
        if growth.seed is not None and bins is not None:
            off = float(drawn_borders_elsewhere(tree, X, bins.columns, growth.seed))
            checks += (Check(DRAWN_ELSEWHERE, off, 0.0),)
        elif growth.seed is not None:
            checks += (Check(DRAWN_ELSEWHERE, float(drawn_elsewhere(tree, X, growth.seed)), 0.0),)
        if growth.midpoints:
            checks += (Check(STRANGE, float(strange_thresholds(tree, X)), 0.0),)
        more, facts = check_greedy(tree, growth, X, np.asarray(data.y)[kept], data.w[kept], tuning)
        checks += more
    leaf = tree.left < 0
    share = claims.weight[leaf] / claims.weight[0]
    words = CLAIM if growth.every_column and growth.every_threshold else CLAIM_OF_DRAWN
    words = CLAIM_OF_LOOKAHEAD if growth.ahead else words if rows.in_memory else CLAIM_OF_NODES
    return Certificate("greedy", words, float(share @ claims.impurity[leaf]), 0.0, tol, checks=checks, facts=facts)


def audit_tree(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted DecisionTreeClassifier or DecisionTreeRegressor."""
    classes = getattr(model, "classes_", None)
    target: Target = "numbers" if classes is None else "classes"
    y, targets = tree_targets(X, y, target)
    _check_outputs(model, targets)
    _check_labels(model, X, y, sample_weight)
    X = encode_labels_of(X, getattr(model, "category_labels_", {}))
    terms = TableTerms(target, targets, missing=True)
    own = isinstance(model, Estimator)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if targets > 1 and classes is not None:
        several = encode_label_columns(rows, [np.asarray(one) for one in classes])
        if not own:
            several = replace(several, weight=row_counts(several.rows, [len(one) for one in classes]))
        rows = apply_class_weights(several, model.class_weight)
    elif classes is not None:
        labels = encode_labels(rows, np.asarray(classes))
        if not own:
            labels = replace(labels, weight=row_counts(labels.rows, [len(classes)])[0])
        rows = apply_class_weight(labels, model.class_weight)
    # scikit-learn rounds values to float32 before it compares them.
    tree = plain_tree(model.tree_, rows.n_features, np.float64 if own else np.float32)
    growth = growth_claim(model, rows)
    if own:
        return certify_tree(tree, node_claims(model.tree_), growth, rows, tol)
    tree = replace(tree, clips=clipping_columns(model))
    found = certify_tree(tree, node_claims(model.tree_, cancelling=True), growth, rows, tol)
    return replace(found, facts={**found.facts, "rows that float32 sends the other way": _astray(tree, rows)})


def _astray(tree: PlainTree, rows: Rows) -> float:
    """How many rows reach another leaf if their values are compared as they are."""
    as_they_are = replace(tree, dtype=np.float64)
    return float(rows.map(lambda block: tree.leaves(block) != as_they_are.leaves(block)).sum())


def clipping_columns(model: Any) -> Array | None:
    """The columns with which the first value of a scikit-learn tree's nodes rises (1) or falls (-1), (d,).

    Of two classes the first value is the share of the first, which falls where predictions of the second rise.
    """
    asked = getattr(model, "monotonic_cst", None)
    if asked is None or not np.any(asked):
        return None
    if model.criterion == "absolute_error":
        raise DataError(
            got="monotonic_cst with criterion='absolute_error'",
            wanted="nodes whose values are their medians",
            fix=f"certifit.{type(model).__name__} takes the same settings and is audited.",
        )
    return -np.asarray(asked) if hasattr(model, "classes_") else np.asarray(asked)


def tree_targets(X: Any, y: Any, target: Target) -> tuple[Any, int]:
    """The targets and how many there are; of an array with one column, that column."""
    words = isinstance(y, (list, tuple)) and len(y) > 0 and all(isinstance(name, str) for name in y)
    if words and target == "classes":
        # A list of words is labels, unless the table has columns of these names.
        names = getattr(X, "columns", None)
        named = isinstance(X, (str, os.PathLike)) if names is None else set(y) <= set(names)
        if not named:
            return y, 1
    width = None if sparse.issparse(y) else target_columns(y)
    if width is None:
        return y, 1
    return (only_column(y), 1) if width == 1 else (y, width)


def _check_outputs(model: Any, targets: int) -> None:
    """Refuse a model of another number of targets, or whose classes are not those of its nodes."""
    tree, classes = model.tree_, getattr(model, "classes_", None)
    found = np.asarray(tree.n_classes)
    kinds = classes if isinstance(classes, list) else [np.asarray(classes)]
    wanted = [1] * targets if classes is None else [np.size(one) for one in kinds]
    if len(found) != targets or found.tolist() != wanted:
        raise DataError(
            got=f"a tree of {len(found)} target(s) with {found.tolist()} classes",
            wanted=f"{targets} target(s) with {wanted}, as y and classes_ say",
            fix="Audit it with the y it was fitted on.",
        )


def _check_labels(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Refuse labels of categories that are not those of the table."""
    known = getattr(model, "category_labels_", {})
    beside = (*(y if isinstance(y, (list, tuple)) else [y]), sample_weight) if known else ()
    found = learn_labels(X, getattr(model, "categorical_features", None), beside) if known else {}
    if known and (list(known) != list(found) or any(known[name].tolist() != found[name].tolist() for name in found)):
        raise DataError(
            got=f"labels of categories in columns {list(known)} that are not those of the table",
            wanted="the table that the tree was fitted on",
        )


def node_claims(tree: Any, cancelling: bool = False) -> NodeClaims:
    """What a tree says of its nodes; other libraries' variances are `cancelling` differences of squares."""
    count, weight = np.asarray(tree.n_node_samples), np.asarray(tree.weighted_n_node_samples)
    return NodeClaims(count, weight, np.asarray(tree.value, np.float64), np.asarray(tree.impurity), cancelling)


def growth_claim(model: Any, rows: Rows) -> GrowthClaim:
    """The rules that a model's settings stand for, on these rows."""
    n, total = _positive_rows(rows)
    criterion = {"log_loss": "entropy", "friedman_mse": "squared_error"}.get(model.criterion, model.criterion)
    columns = getattr(model, "max_features_", None) or rows.n_features
    best = model.splitter == "best" and getattr(model, "lookahead", 1) == 1
    classes = getattr(model, "classes_", ())
    first = np.asarray(getattr(model.tree_, "category_first", ()))
    return GrowthClaim(
        criterion,
        tuple(map(len, classes)) if isinstance(classes, list) else (len(classes),) * (len(classes) > 0),
        ahead=getattr(model, "lookahead", 1) == 2,
        categories=_claimed_categories(model, rows, first) if len(first) else None,
        split_rows=max(2, share_of_rows(model.min_samples_split, n)),
        leaf_rows=share_of_rows(model.min_samples_leaf, n),
        leaf_weight=float(model.min_weight_fraction_leaf) * total,
        depth=math.inf if model.max_depth is None else model.max_depth,
        decrease=float(model.min_impurity_decrease),
        every_column=best and columns >= rows.n_features and model.monotonic_cst is None,
        every_threshold=best and model.monotonic_cst is None,
        complete=best and columns >= rows.n_features and model.max_leaf_nodes is None and model.ccp_alpha == 0
        and model.monotonic_cst is None,
        apart=0.0 if isinstance(model, Estimator) else NEVER_PARTED,
        bins=_claimed_bins(model, rows.n_features),
        midpoints=best and getattr(model, "max_bins", None) is None,
        seed=_drawing_seed(model),
    )  # fmt: skip


def _drawing_seed(model: Any) -> int | None:
    """The seed of a random splitter of ours; None where random_state does not say it, or nothing was drawn."""
    number = isinstance(model.random_state, (int, np.integer))
    if not (isinstance(model, Estimator) and model.splitter == "random" and number):
        return None
    return int(np.random.RandomState(model.random_state).randint(2**31 - 1))


def _claimed_bins(model: Any, d: int) -> BinBorders | None:
    """The bins that thresholds lie between, where a setting asks for them."""
    most = getattr(model, "max_bins", None)
    if most is None:
        return None
    if len(getattr(model.tree_, "category_first", ())):
        raise DataError(got=f"sets of categories with max_bins={most}", wanted="a fitted tree")
    return read_borders(getattr(model, "borders_", ()), d, int(most))


def _claimed_categories(model: Any, rows: Rows, first: Array) -> Array:
    """Which columns a tree holds for categories: those that its setting names."""
    found = np.diff(first) > 0
    asked = model.categorical_features
    if not isinstance(asked, str):
        wanted = categorical_columns(asked, rows.names, rows.n_features)
        if (found & ~wanted).any():
            raise DataError(got=f"sets of categories beside categorical_features={asked!r}", wanted="a fitted tree")
    return found


def share_of_rows(asked: Any, n: int) -> int:
    """A number of rows, or a share of all n of them, as scikit-learn reads it."""
    return int(asked) if isinstance(asked, (int, np.integer)) else math.ceil(asked * n)


def _positive_rows(rows: Rows) -> tuple[int, float]:
    found: Array = rows.sum(lambda block: np.array([(block.w > 0).sum(), block.w.sum()]))
    return int(found[0]), float(found[1])
