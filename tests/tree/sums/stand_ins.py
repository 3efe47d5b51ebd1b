"""Objects that answer as LightGBM's and XGBoost's boosters and interpret's EBM do, from what these libraries wrote.

Their predictions are computed here by the libraries' published rules, one row and one tree at a time.
"""

import copy
import json
import math

import numpy as np

from tests.tree.sums.write_dumps import DUMPS

WRITTEN = json.loads(DUMPS.read_text())


class Booster:
    """What the two libraries' boosters have in common is their name."""


class LightBooster(Booster):
    """LightGBM's: x <= threshold goes left; missing entries where default_left says so, or as 0."""

    def __init__(self, name):
        self.written = copy.deepcopy(WRITTEN[f"lightgbm {name}"])

    def dump_model(self):
        return self.written["dump"]

    def model_to_string(self):
        return "tree\nparameters:\n" + self.written["parameters"]

    def predict(self, X, raw_score=False):
        assert raw_score
        return np.array([sum(self._leaf(tree["tree_structure"], x) for tree in self._trees()) for x in X])

    def _trees(self):
        return self.written["dump"]["tree_info"]

    def _leaf(self, node, x):
        while "leaf_value" not in node:
            value = x[node["split_feature"]]
            if math.isnan(value) and node["missing_type"] == "NaN":
                left = node["default_left"]
            else:
                left = (0.0 if math.isnan(value) else value) <= node["threshold"]
            node = node["left_child" if left else "right_child"]
        return node["leaf_value"]


class ExtremeBooster(Booster):
    """XGBoost's: float32(x) < threshold goes left; sums are float32."""

    def __init__(self, name):
        self.written = copy.deepcopy(WRITTEN[f"xgboost {name}"])

    def save_raw(self, form):
        assert form == "json"
        return bytearray(json.dumps(self.written["raw"]).encode())

    def save_config(self):
        return json.dumps(self.written["config"])

    def inplace_predict(self, X, iteration_range, predict_type, validate_features):
        assert predict_type == "margin"
        assert iteration_range == (0, 0)
        return np.array([self._score(x) for x in np.asarray(X, np.float32)], np.float32)

    def _score(self, x):
        learner = self.written["raw"]["learner"]
        answer = json.loads(learner["learner_model_param"]["base_score"])[0]
        logistic = learner["objective"]["name"] == "binary:logistic"
        total = np.float32(math.log(answer / (1 - answer)) if logistic else answer)
        for tree in learner["gradient_booster"]["model"]["trees"]:
            k = 0
            while tree["left_children"][k] >= 0:
                value = x[tree["split_indices"][k]]
                left = (
                    tree["default_left"][k] if math.isnan(value) else value < np.float32(tree["split_conditions"][k])
                )
                k = tree["left_children" if left else "right_children"][k]
            total = np.float32(total + np.float32(tree["split_conditions"][k]))
        return total


class ExplainableBoostingClassifier:
    """interpret's, of two classes: one score for missing entries, one for each bin, one for the unknown."""

    objective, link_ = "log_loss", "logit"

    def __init__(self):
        written = copy.deepcopy(WRITTEN["interpret classes"])
        self.term_scores_ = [np.array(scores) for scores in written["term_scores_"]]
        self.bin_weights_ = [np.array(weights) for weights in written["bin_weights_"]]
        self.bins_ = [[np.array(cuts)] for cuts in written["bins_"]]
        self.intercept_, self.classes_ = np.array(written["intercept_"]), np.array([0, 1])
        self.term_features_, self.n_features_in_ = [(0,), (1,), (2,)], 3

    def decision_function(self, X):
        total = np.full(len(X), self.intercept_[0])
        for j, scores in enumerate(self.term_scores_):
            for i, value in enumerate(X[:, j]):
                place = 0 if math.isnan(value) else 1 + sum(value >= cut for cut in self.bins_[j][0])
                total[i] += scores[place]
        return total


def leaves_of(node):
    """The leaves of a tree of LightGBM's dump."""
    if "leaf_value" in node:
        return [node]
    return leaves_of(node["left_child"]) + leaves_of(node["right_child"])
