"""Audits of boosters that LightGBM, XGBoost and interpret wrote, and of scikit-learn's gradient boosting."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier

from certifit import AdditiveClassifier, DataError, audit
from certifit.checkers.tree.sums.read_model import read_tree_sum
from tests.tree.sums.stand_ins import (
    WRITTEN,
    ExplainableBoostingClassifier,
    ExtremeBooster,
    LightBooster,
    leaves_of,
)
from tests.tree.sums.write_dumps import table, weights

X, LABEL, AMOUNT = table()
TARGETS = {"classes": LABEL, "stumps": LABEL, "rising": AMOUNT, "amounts": AMOUNT}
BOOSTERS = [(kind, name) for kind in (LightBooster, ExtremeBooster) for name in TARGETS]


@pytest.mark.parametrize(("kind", "name"), BOOSTERS)
def test_stand_ins_answer_as_the_libraries_did(kind, name):
    library = "lightgbm" if kind is LightBooster else "xgboost"
    model = kind(name)
    told = (
        model.predict(X, raw_score=True)
        if kind is LightBooster
        else model.inplace_predict(X, (0, 0), "margin", False)
    )
    assert np.abs(told - WRITTEN[f"{library} {name}"]["scores"]).max() < (1e-14 if kind is LightBooster else 5e-7)


@pytest.mark.parametrize(("kind", "name"), BOOSTERS)
def test_boosters_hold(kind, name):
    found = audit(kind(name), X, TARGETS[name], like="Booster")
    assert found.holds, found
    assert found.kind == ("bounded" if name == "stumps" else "greedy")
    refused = [check.name for check in found.checks if "monotone" in check.name]
    assert bool(refused) == (name == "rising")
    assert ("values of leaves not checked" in found.facts) == (name == "rising")


def test_rows_of_weight_0_and_heavier_positive_rows_of_lightgbm():
    # It counts rows of weight 0 in leaves, and its first constant leaves scale_pos_weight out.
    model = LightBooster("weights")
    found = audit(model, X, LABEL, weights(), like="Booster")
    assert found.holds, found
    assert not audit(model, X, LABEL, like="Booster").holds


def raise_leaf(model):
    if isinstance(model, LightBooster):
        leaves_of(model.written["dump"]["tree_info"][2]["tree_structure"])[0]["leaf_value"] += 0.01
    else:
        tree = model.written["raw"]["learner"]["gradient_booster"]["model"]["trees"][2]
        tree["split_conditions"][tree["left_children"].index(-1)] += 0.01


def move_threshold(model):
    if isinstance(model, LightBooster):
        model.written["dump"]["tree_info"][1]["tree_structure"]["threshold"] += 0.5
    else:
        model.written["raw"]["learner"]["gradient_booster"]["model"]["trees"][1]["split_conditions"][0] += 0.5


def drop_tree(model):
    if isinstance(model, LightBooster):
        del model.written["dump"]["tree_info"][1]
    else:
        found = model.written["raw"]["learner"]["gradient_booster"]["model"]
        del found["trees"][1], found["tree_info"][1]


def other_rate(model):
    if isinstance(model, LightBooster):
        model.written["parameters"] = model.written["parameters"].replace(
            "[learning_rate: 0.3]", "[learning_rate: 0.31]"
        )
    else:
        model.written["config"]["learner"]["gradient_booster"]["tree_train_param"]["learning_rate"] = "0.31"


def other_penalty(model):
    if isinstance(model, LightBooster):
        model.written["parameters"] = model.written["parameters"].replace("[lambda_l2: 0]", "[lambda_l2: 0.5]")
    else:
        model.written["config"]["learner"]["gradient_booster"]["tree_train_param"]["lambda"] = "0.5"


@pytest.mark.parametrize("harm", [raise_leaf, move_threshold, drop_tree, other_rate, other_penalty])
@pytest.mark.parametrize(("kind", "name"), [(LightBooster, "classes"), (LightBooster, "stumps"),
                                            (ExtremeBooster, "amounts"), (ExtremeBooster, "stumps")])  # fmt: skip
def test_boosters_that_were_changed_do_not_hold(kind, name, harm):
    model = kind(name)
    harm(model)
    assert not audit(model, X, TARGETS[name], like="Booster").holds


def test_a_dump_that_is_not_the_model_does_not_hold():
    """The trees say one thing, the object another."""
    model = LightBooster("rising")  # whose leaves are not checked
    model.predict = lambda X, raw_score: np.full(len(X), 0.1)
    assert not audit(model, X, AMOUNT, like="Booster").holds


def test_other_targets_or_weights_do_not_hold():
    assert not audit(LightBooster("classes"), X, 1 - LABEL, like="Booster").holds
    weight = np.linspace(1, 2, len(X))
    assert not audit(ExtremeBooster("classes"), X, LABEL, weight, like="Booster").holds


def test_a_fall_along_a_column_that_is_called_rising_does_not_hold():
    model = LightBooster("rising")
    for tree in model.written["dump"]["tree_info"]:
        for leaf in leaves_of(tree["tree_structure"]):
            leaf["leaf_value"] *= -1
    found = audit(model, X, AMOUNT, like="Booster")
    assert [c.name for c in found.checks if not c.passed] == ["monotone columns refuted by two rows"]


@pytest.mark.parametrize("model", [LightBooster("stumps"), ExtremeBooster("stumps"), ExplainableBoostingClassifier()])
def test_no_additive_model_of_the_size_is_below_the_bound(model):
    """Our additive models of many strengths, which are optimal for theirs, are the peers."""
    like = "Booster" if not hasattr(model, "term_scores_") else None
    found = audit(model, X, LABEL, like=like)
    size = found.facts["size of the additive model"]
    seen = 0
    for alpha in np.geomspace(5e-3, 1e-1, 6):
        peer = AdditiveClassifier(alpha).fit(X, LABEL)
        value = peer.objective(X, LABEL)
        if value.penalty / alpha <= size:
            assert value.data >= found.bound
            seen += 1
    assert seen >= 2
    assert found.bound < found.objective < np.log(2)


def test_explainable_boosting_machine_holds_and_falls():
    model = ExplainableBoostingClassifier()
    assert np.allclose(model.decision_function(X), WRITTEN["interpret classes"]["scores"], atol=1e-12)
    found = audit(model, X, LABEL)
    assert found.holds
    assert found.kind == "bounded"
    model.term_scores_[0][3] += 0.1
    assert audit(model, X, LABEL).holds  # another model of the same columns, and the bound says how good it is
    model.decision_function = lambda X: ExplainableBoostingClassifier().decision_function(X)
    assert not audit(model, X, LABEL).holds
    assert not audit(ExplainableBoostingClassifier(), X[1:], LABEL[1:]).holds  # bins of other rows


def test_leaves_that_are_linear_are_refused_in_words():
    """A leaf of LightGBM's linear trees has a value too, for rows with a missing entry; it is not what others get."""
    model = LightBooster("amounts")
    leaf = model.written["dump"]["tree_info"][1]["tree_structure"]
    while "left_child" in leaf:
        leaf = leaf["left_child"]
    leaf.update(leaf_const=leaf["leaf_value"], leaf_features=[], leaf_coeff=[])
    assert audit(model, X, AMOUNT, like="Booster").holds  # a leaf for which no line was found
    leaf.update(leaf_const=0.1, leaf_features=[0], leaf_coeff=[0.5])
    with pytest.raises(DataError, match="linear trees"):
        audit(model, X, AMOUNT, like="Booster")


def test_interactions_are_refused_in_words():
    model = ExplainableBoostingClassifier()
    model.term_features_[1] = (0, 1)
    with pytest.raises(DataError, match="main effects"):
        audit(model, X, LABEL)


FULL = np.nan_to_num(X)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error", "several"])
def test_gradient_boosting_of_scikit_learn_holds(loss, depth):
    y = {"squared_error": AMOUNT, "several": np.digitize(AMOUNT, [0.0, 1.0])}.get(loss, LABEL)
    kind = GradientBoostingRegressor if loss == "squared_error" else GradientBoostingClassifier
    kwargs = {} if loss == "several" else {"loss": loss}
    model = kind(n_estimators=6, max_depth=depth, random_state=0, **kwargs).fit(FULL, y)
    found = audit(model, FULL, y)
    assert found.holds, found
    assert found.kind == ("bounded" if depth == 1 else "greedy")


def test_gradient_boosting_that_was_changed_does_not_hold():
    def fitted():
        return GradientBoostingRegressor(n_estimators=4, max_depth=2, random_state=0).fit(FULL, AMOUNT)

    assert not audit(fitted().set_params(learning_rate=0.2), FULL, AMOUNT).holds
    model = fitted()
    model.estimators_[1, 0].tree_.value[-1] += 1e-3
    assert not audit(model, FULL, AMOUNT).holds
    model = fitted()
    model.estimators_[2, 0].tree_.threshold[0] += 0.3
    assert not audit(model, FULL, AMOUNT).holds
    model = GradientBoostingRegressor(n_estimators=4, max_features=1, random_state=0).fit(FULL, AMOUNT)
    assert audit(model, FULL, AMOUNT).holds
    model.max_features_ = 3  # the best of all columns, it says
    assert not audit(model, FULL, AMOUNT).holds


def test_rows_that_float32_sends_the_other_way_are_counted():
    """The threshold lies between a value and its float32."""
    model = ExtremeBooster("stumps")
    tree = model.written["raw"]["learner"]["gradient_booster"]["model"]["trees"][0]
    t, j = np.float32(tree["split_conditions"][0]), tree["split_indices"][0]
    below = np.zeros((2, 3))
    below[0, j] = float(t) - 1e-12  # below the threshold, but rounded to it
    below[1, j] = float(t) - 0.1
    plain = read_tree_sum(model)
    assert plain.astray(below) == 1
    told = model.inplace_predict(below, (0, 0), "margin", False)
    assert np.allclose(plain(below)[:, 0], told, atol=1e-6)
    assert read_tree_sum(LightBooster("stumps")).astray(below) == 0


def test_rows_that_float32_sends_the_other_way_in_a_tree_of_scikit_learn():
    """Two values that are neighbours as float32, and a third between them that is rounded to the upper one."""
    low, high = np.float32(8.0), np.nextafter(np.float32(8.0), np.float32(9.0))
    model = DecisionTreeClassifier().fit([[low], [high]], [0, 1])
    middle = (float(low) + float(high)) / 2
    rows, labels = [[low], [high], [np.nextafter(middle, 9.0)]], [0, 1, 1]
    assert audit(model, rows[:2], labels[:2]).facts["rows that float32 sends the other way"] == 0
    # The threshold is the middle: moved a little up, it lies above a value that float32 rounds up.
    model.tree_.threshold[0] = middle + 0.25 * (float(high) - float(low))
    assert audit(model, rows, labels).facts["rows that float32 sends the other way"] == 1
