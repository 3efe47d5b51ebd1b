"""Reads LightGBM's boosters by their public dump: `dump_model()` for the trees, `model_to_string()` for the settings.

Values are compared in double precision. A first tree that was boosted from the average has the average in its leaves.
What the dump says of missing values: 'NaN' (they go where `default_left` says) or 'None' (they count as 0).
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from certifit.checkers.tree.sums.boosting_claim import BoostingSettings
from certifit.checkers.tree.sums.tree_sum import PlainNode, SummedTree, TreeSum, tree_of_nodes
from certifit.exceptions import DataError
from certifit.rows import Array

# By LightGBM's word: our loss, and what scores are of the answer.
OBJECTIVES = {
    "regression": ("squared_error", "identity"), "regression_l2": ("squared_error", "identity"),
    "binary": ("log_loss", "logit"), "multiclass": ("multinomial", "softmax"),
    "poisson": ("poisson", "log"), "gamma": ("gamma", "log"),
    "regression_l1": ("absolute_error", "identity"), "quantile": ("quantile", "identity"),
    "huber": ("huber", "identity"),
}  # fmt: skip


def read_lightgbm(booster: Any) -> TreeSum:
    """The trees of a booster."""
    dump = booster.dump_model()
    words = str(dump.get("objective", "")).split()
    if dump.get("average_output"):
        raise DataError(got="boosting='rf'", wanted="a sum of trees", fix="RandomForestClassifier is audited.")
    columns, k = int(dump["max_feature_idx"]) + 1, int(dump["num_tree_per_iteration"])
    link = OBJECTIVES.get(words[0] if words else "", ("", "identity"))[1]
    trees = [_tree(tree["tree_structure"], number % k, columns) for number, tree in enumerate(dump["tree_info"])]
    return TreeSum(tuple(trees), np.zeros(k), columns, link)


def _tree(root: dict[str, Any], score: int, columns: int) -> SummedTree:
    nodes: list[PlainNode] = []
    said: list[tuple[float, float, float]] = []

    def read(node: dict[str, Any]) -> int:
        here = len(nodes)
        nodes.append(PlainNode())
        if node.get("leaf_coeff"):  # beside a value, which stands for rows with a missing entry
            raise DataError(got="linear trees", wanted="leaves that are constant", fix="linear_tree=False")
        if "leaf_value" in node:
            mass, rows = node.get("leaf_weight", math.nan), node.get("leaf_count", math.nan)
            said.append((float(node["leaf_value"]), float(rows), float(mass)))
            return here
        said.append((0.0, float(node.get("internal_count", math.nan)), math.nan))
        left, right = read(node["left_child"]), read(node["right_child"])
        nodes[here] = _question(node, left, right)
        return here

    read(root)
    value, count, mass = np.array(said, np.float64).T
    return SummedTree(tree_of_nodes(nodes, columns), value, score, count, mass)


def _question(node: dict[str, Any], left: int, right: int) -> PlainNode:
    column, asked, missing = int(node["split_feature"]), node["decision_type"], node["missing_type"]
    if asked == "==":
        kinds = tuple(float(kind) for kind in str(node["threshold"]).split("||"))
        return PlainNode(left, right, column, 0.0, False, kinds)
    if asked != "<=" or missing == "Zero":
        raise DataError(
            got=f"a split {asked!r} with missing values {missing!r}", wanted="'<=' and 'NaN' or 'None'",
            fix="zero_as_missing=False",
        )  # fmt: skip
    threshold = _as_compared(float(node["threshold"]))
    gone_left = bool(node["default_left"]) if missing == "NaN" else threshold >= 0
    return PlainNode(left, right, column, threshold, gone_left)


def _as_compared(threshold: float, zero: float = float(np.float32(1e-35)), most: float = 1e300) -> float:
    """The threshold of the numbers that LightGBM compares: it cuts them off at 1e300, and takes up to 1e-35 for 0.

    A threshold of 1e300 parts missing values from all others, and one just below 0 all negative numbers from 0.
    """
    if threshold >= most:
        return math.inf
    return float(np.nextafter(-zero, -np.inf)) if -zero <= threshold < 0 else threshold


def lightgbm_settings(booster: Any) -> BoostingSettings:
    """What the settings in a booster's text say that every stage has done."""
    found = _parameters(booster)
    words = str(booster.dump_model().get("objective", "")).split()
    name, beside = (words[0] if words else "none"), dict(word.partition(":")[::2] for word in words[1:])
    if name not in OBJECTIVES or "sqrt" in beside or float(beside.get("sigmoid", 1)) != 1:
        raise DataError(got=f"objective {' '.join(words)!r}", wanted=f"one of {', '.join(OBJECTIVES)}")
    loss = OBJECTIVES[name][0]
    k = int(beside.get("num_class", 1))
    factor = {"multinomial": k / max(1, k - 1), "poisson": math.exp(_number(found, "poisson_max_delta_step", 0.7))}
    drawn = [
        word for word in ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction")
        if _number(found, word, 1.0) != 1 and _number(found, "bagging_freq", 0) > 0
    ]  # fmt: skip
    strange = [
        word for word, usual in (
            ("boosting", "gbdt"), ("data_sample_strategy", "bagging"), ("path_smooth", 0), ("max_delta_step", 0),
            ("is_unbalance", 0), ("use_quantized_grad", 0), ("linear_tree", 0),
        ) if not _is_usual(found.get(word, usual), usual)
    ]  # fmt: skip
    monotone = [int(way) for way in booster.dump_model().get("monotone_constraints") or ()]
    return BoostingSettings(
        loss,
        float(beside["alpha"]) if "alpha" in beside and loss in ("quantile", "huber") else None,
        _number(found, "learning_rate", 0.1),
        _number(found, "lambda_l2", 0.0),
        _number(found, "lambda_l1", 0.0),
        factor=factor.get(loss, 1.0),
        leaf_rows=int(_number(found, "min_data_in_leaf", 20)),
        leaf_mass=_number(found, "min_sum_hessian_in_leaf", 1e-3),
        positive_weight=_number(found, "scale_pos_weight", 1.0),
        counts_all=True,
        scores=k,
        directions=np.array(monotone) if any(monotone) else None,
        from_average=bool(_number(found, "boost_from_average", 1)),
        unfollowed=", ".join([*drawn, *strange]),
    )


def _parameters(booster: Any) -> dict[str, str]:
    """The settings that a booster's text ends with, one in each pair of brackets."""
    return dict(re.findall(r"^\[(\w+): (.*)\]$", str(booster.model_to_string()), re.MULTILINE))


def _number(found: dict[str, str], name: str, usual: float) -> float:
    return float(found.get(name) or usual)


def _is_usual(said: Any, usual: Any) -> bool:
    return said == usual if isinstance(usual, str) else float(said or 0) == usual


def lightgbm_scores(booster: Any, X: Array) -> Array:
    """The scores that the booster itself gives to rows (n, k)."""
    return np.asarray(booster.predict(X, raw_score=True), np.float64).reshape(len(X), -1)
