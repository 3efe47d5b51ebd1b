"""Reads XGBoost's boosters by their public dump: `save_raw("json")` for the trees, `save_config()` for the settings.

A row goes left where its value, rounded to float32, is below the threshold, a float32 too. Scores are float32 sums in
the library, and sums of the same leaves in double precision here.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from certifit.checkers.tree.sums.boosting_claim import BoostingSettings
from certifit.checkers.tree.sums.tree_sum import PlainNode, SummedTree, TreeSum, tree_of_nodes
from certifit.exceptions import DataError
from certifit.rows import Array

# By XGBoost's word: our loss, and what scores are of the answer.
OBJECTIVES = {
    "reg:squarederror": ("squared_error", "identity"), "binary:logistic": ("log_loss", "logit"),
    "reg:logistic": ("log_loss", "logit"), "binary:logitraw": ("log_loss", "identity"),
    "multi:softprob": ("multinomial", "softmax"), "multi:softmax": ("multinomial", "softmax"),
    "count:poisson": ("poisson", "log"), "reg:gamma": ("gamma", "log"),
    "reg:absoluteerror": ("absolute_error", "identity"), "reg:quantileerror": ("quantile", "identity"),
}  # fmt: skip


def read_xgboost(booster: Any, stages: int = 0) -> TreeSum:
    """The trees of a booster, or of its first stages."""
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    if learner["gradient_booster"]["name"] != "gbtree":
        raise DataError(
            got=f"booster={learner['gradient_booster']['name']!r}", wanted="'gbtree', a sum of trees",
            fix="booster='gbtree'",
        )  # fmt: skip
    said, found = learner["learner_model_param"], learner["gradient_booster"]["model"]
    columns, k = int(said["num_feature"]), max(1, int(said["num_class"]), int(said.get("num_target", 1)))
    link = OBJECTIVES.get(learner["objective"]["name"], ("", "identity"))[1]
    if any(int(tree["tree_param"].get("size_leaf_vector", 1)) > 1 for tree in found["trees"]):
        raise DataError(got="leaves of several values", wanted="one tree for each score")
    last = found["iteration_indptr"][stages] if stages else len(found["trees"])
    pairs = list(zip(found["trees"], found["tree_info"], strict=True))[:last]
    trees = tuple(_tree(tree, int(score), columns) for tree, score in pairs)
    return TreeSum(trees, _baseline(said["base_score"], link, k), columns, link, True)


def _baseline(text: str, link: str, k: int) -> Array:
    """The scores before the first tree; the dump has them as answers."""
    answer = np.atleast_1d(np.asarray(json.loads(text), np.float32)).astype(np.float64)
    if link == "logit":
        answer = np.log(answer / (1 - answer))
    elif link == "log":
        answer = np.log(answer)
    return np.broadcast_to(answer, (k,)).astype(np.float64)


def _tree(tree: dict[str, Any], score: int, columns: int) -> SummedTree:
    left, right = tree["left_children"], tree["right_children"]
    below = np.asarray(tree["split_conditions"], np.float32)
    # x < t is x <= the double before t.
    at_most = np.nextafter(below.astype(np.float64), -np.inf)
    if tree["categories_nodes"]:
        raise DataError(got="splits of categories", wanted="columns of numbers", fix="Encode them, or use LightGBM.")
    order = _from_root(left, right)
    place = {old: new for new, old in enumerate(order)}
    nodes, value = [], np.zeros(len(order))
    for new, k in enumerate(order):
        if left[k] < 0:
            nodes.append(PlainNode())
            value[new] = float(below[k])
            continue
        column, gone = int(tree["split_indices"][k]), bool(tree["default_left"][k])
        nodes.append(PlainNode(place[left[k]], place[right[k]], column, float(at_most[k]), gone))
    mass = np.asarray(tree["sum_hessian"], np.float64)[order]
    return SummedTree(tree_of_nodes(nodes, columns, np.float32), value, score, None, mass)


def _from_root(left: list[int], right: list[int]) -> list[int]:
    """The nodes that are reached, parents first."""
    found: list[int] = []
    stack = [0]
    while stack and len(found) <= len(left):
        k = stack.pop()
        found.append(k)
        if left[k] >= 0:
            stack += [right[k], left[k]]
    return found


def xgboost_settings(booster: Any) -> BoostingSettings:
    """What a booster's configuration says that every stage has done."""
    learner = json.loads(booster.save_config())["learner"]
    name = learner["objective"]["name"]
    if name not in OBJECTIVES:
        raise DataError(got=f"objective {name!r}", wanted=f"one of {', '.join(OBJECTIVES)}")
    loss, trees = OBJECTIVES[name][0], learner["gradient_booster"]
    grown = trees.get("tree_train_param") or trees["updater"][0]["train_param"]
    k = int(learner["learner_model_param"]["num_class"])
    longest = float(grown["max_delta_step"])
    factor = {"multinomial": 2.0, "poisson": math.exp(longest)}
    ways = [int(way) for way in grown["monotone_constraints"].strip("()[]").split(",") if way.strip()]
    strange = [
        word for word, usual in (("subsample", 1.0), ("num_parallel_tree", 1.0))
        if float(grown.get(word, trees["gbtree_model_param"].get(word, usual))) != usual
    ]  # fmt: skip
    weight = learner["objective"].get("reg_loss_param", {}).get("scale_pos_weight", 1.0)
    alpha = learner["objective"].get("quantile_loss_param", {}).get("quantile_alpha")
    return BoostingSettings(
        loss,
        float(np.ravel(json.loads(alpha))[0]) if alpha else None,
        float(grown["learning_rate"]),
        float(grown["lambda"]),
        float(grown["alpha"]),
        factor=factor.get(loss, 1.0),
        leaf_mass=float(grown["min_child_weight"]),
        longest=longest or math.inf,
        positive_weight=float(weight),
        scores=max(1, k),
        directions=np.array(ways) if any(ways) else None,
        unfollowed=", ".join(strange),
        digits=1e-4,
    )


def xgboost_scores(booster: Any, X: Array, stages: int = 0) -> Array:
    """The scores that the booster itself gives to rows (n, k)."""
    used = (0, stages)
    found = booster.inplace_predict(X, iteration_range=used, predict_type="margin", validate_features=False)
    return np.asarray(found, np.float64).reshape(len(X), -1)
