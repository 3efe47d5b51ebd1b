"""Boosted exact trees, certified.

Stage by stage a least-squares tree is grown on the slopes of the loss, over all thresholds of all columns; its leaves
then get the values that lower the loss, and the tree is added to the scores, times a learning rate. Reference:
Friedman, Greedy function approximation: a gradient boosting machine (2001); Stochastic gradient boosting (2002).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit.checkers.ensemble.boosting.exact_stages import quick
from certifit.checkers.ensemble.boosting.gradient_adapter import (
    certify_gradient_boosting,
    init_scores,
    validation_rows_of,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Attributes, Setting, certified
from certifit.core.loop import Step
from certifit.core.settings import Settings
from certifit.ensemble.boosting.boosted_model import (
    LOG_LINK,
    BoostedClassifier,
    BoostedModel,
    BoostedRegressor,
    refuse_negative_targets,
    refuse_several_exponential,
)
from certifit.ensemble.boosting.early_stopping import ValidationRows
from certifit.ensemble.boosting.exact_trees import ExactLimits, ExactTrees
from certifit.ensemble.boosting.stagewise import StageRules, Stagewise
from certifit.ensemble.earlier_fit import earlier_fit
from certifit.exceptions import DataError
from certifit.losses.scores.score_losses import ScoreLoss
from certifit.rows import Array, ArrayRows, Block, Rows, encode_labels
from certifit.tree.decision_tree import DecisionTree, DecisionTreeRegressor
from certifit.tree.exact.grown_tree import number_of_columns

DOUBLED = ("squared_error", "log_loss")  # losses of which scikit-learn reports twice the value


def _has_predictions(value: Any) -> bool:
    return hasattr(value, "fit") and hasattr(value, "predict")


class GradientBoosting(BoostedModel):
    """What boostings of exact trees share."""

    sparse = True
    diagnostics = ("train_score_", "oob_improvement_", "oob_scores_", "oob_score_")
    ignored = ("criterion", "verbose")
    settings: ClassVar[Settings] = {
        **{name: s for name, s in DecisionTree.settings.items() if name not in ("splitter", "lookahead")},
        "learning_rate": Setting(float, above=0, below=math.inf),
        "n_estimators": Setting(int, least=1),
        "subsample": Setting(float, above=0, most=1),
        "criterion": Setting(choices=("deprecated", "friedman_mse", "squared_error")),
        "init": Setting(choices=("zero",), none=True, other=_has_predictions, other_words="an estimator"),
        "warm_start": Setting(bool),
        "validation_fraction": Setting(float, above=0, below=1),
        "n_iter_no_change": Setting(int, least=1, none=True),
        "tol": Setting(float, least=0),
    }
    differences: ClassVar[dict[str, str]] = {
        "fit(monitor)": "Callbacks see every stage and may stop a fit (`set_callbacks`).",
        "fit(X)": "Thresholds are compared in float64, and missing values have a side.",
        "random_state": "Rows and columns are drawn from another stream of random numbers.",
        "estimators_": "The trees are certifit's, made when asked for.",
        "learning_rate": "No step is longer than the longest that surely lowers the loss.",
        "oob_improvement_": "There with subsample < 1 alone, as scikit-learn documents it.",
        "oob_scores_": "There with subsample < 1 alone, as scikit-learn documents it.",
        "oob_score_": "There with subsample < 1 alone, as scikit-learn documents it.",
    }

    draw_seed_: int
    init_estimator_: Any
    max_features_: int

    # Fitting ---------------------------------------------------------------------------------------------------

    def _boost(self, rows: Rows, previous: Attributes, attributes: Attributes) -> Attributes:
        """All fitted attributes, from rows whose y are class numbers or amounts."""
        before = earlier_fit(self, previous, rows.n_features, attributes.get("classes_"))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        columns = number_of_columns(self.max_features, rows.n_features)
        found: dict[str, Any] = {
            **attributes, "draw_seed_": before.get("draw_seed_", seed), "max_features_": columns,
        }  # fmt: skip
        data = rows.load()
        state = {**self.get_params(deep=False), **found, "n_features_in_": rows.n_features}
        classes = "classes_" in attributes
        held = None if self.n_iter_no_change is None else validation_rows_of(data, classes, state)
        kept = data.w > 0 if held is None else (data.w > 0) & ~held
        X, y, w = dense(data.X[kept]).astype(np.float64), np.asarray(data.y, np.float64)[kept], data.w[kept]
        self._check_part(y, attributes)
        if self.init is not None and not isinstance(self.init, str):
            known = before.get("init_estimator_")
            found["init_estimator_"] = self._first_fit(data, kept) if known is None else known
        boosting = self._engine(found, X, y, w)
        if before:
            self._go_on(boosting, before, X)
        checked = None
        if held is not None:
            rest = held & (data.w > 0)
            apart = Block(data.X[rest], None, data.w[rest], 0)
            checked = ValidationRows(
                dense(data.X[rest]), np.asarray(data.y, np.float64)[rest], data.w[rest], boosting,
                self._start_scores(found, apart),
            )  # fmt: skip
        found |= self._run(boosting, checked, found, before)
        found["trees_"] = boosting.fitted()
        if self.loss == "huber":
            found["huber_deltas_"] = np.array(boosting.levels)
        claim = {**state, **found}
        found["certificate_"] = certified(certify_gradient_boosting, claim, data, held, float(self.tol), quick())
        return found

    def _check_part(self, y: Array, attributes: Attributes) -> None:
        classes = len(attributes.get("classes_", ()))
        if not len(y) or (classes and len(np.unique(y)) < classes):
            raise DataError(
                got="no row left to learn from, or a class without any, beside those for validation",
                wanted="a smaller validation_fraction",
                fix="The training data after the early stopping split is missing some classes.",
            )

    def _engine(self, found: Attributes, X: Array, y: Array, w: Array) -> Stagewise:
        loss = self._loss(found)
        scores = len(found["classes_"]) if loss.name == "multinomial" else 1
        limits = ExactLimits(
            self.max_depth, self.max_leaf_nodes, self.min_samples_split, self.min_samples_leaf,
            float(self.min_weight_fraction_leaf), float(self.min_impurity_decrease), float(self.ccp_alpha),
            found["max_features_"],
        )  # fmt: skip
        rules = StageRules(
            float(self.learning_rate), found["draw_seed_"], 0.0, scores, (scores - 1) / scores if scores > 1 else 1.0,
            float(self.subsample), float(getattr(self, "alpha", 0.9)),
        )  # fmt: skip
        start = self._start_scores(found, Block(X, None, w, 0))
        return Stagewise(y, w, loss, ExactTrees(X, w, limits), rules, start)

    def _go_on(self, boosting: Stagewise, before: Attributes, X: Array) -> None:
        """Take over the stages of an earlier fit."""
        trees = before["trees_"]
        done = trees.n_trees // len(trees.baseline)
        if done > self.n_estimators:
            raise DataError(
                got=f"n_estimators={self.n_estimators} with warm_start, after a fit of {done} stages",
                wanted="at least as many stages as there are",
                fix=f"n_estimators={self.n_estimators} must be larger or equal to estimators_.shape[0]={done} when "
                "warm_start==True",
            )
        scores = trees.scores(Block(X, None, boosting.w, 0))
        boosting.resume(trees, scores if boosting.start is None else scores + boosting.start)
        boosting.levels = [*before.get("huber_deltas_", ())]

    def _first_fit(self, data: ArrayRows, kept: Array) -> Any:
        """The estimator whose scores stages are added to, fitted to the rows."""
        init, y, w = clone(self.init), np.asarray(data.y)[kept], data.w[kept]
        if (w == 1).all():
            return init.fit(data.X[kept], y)
        if not has_fit_parameter(init, "sample_weight"):
            raise DataError(
                got=f"init={type(init).__name__} and row weights",
                wanted="an estimator whose fit takes sample_weight",
                fix=f"The initial estimator {type(init).__name__} does not support sample weights.",
            )
        return init.fit(data.X[kept], y, sample_weight=w)

    def _start_scores(self, found: Attributes, block: Block) -> Array | None:
        """The scores (n, k) that `init` gives; None where it is None."""
        classes = found.get("classes_")
        scores = len(classes) if classes is not None and len(classes) > 2 else 1
        if self.init is None:
            return None
        if isinstance(self.init, str):
            return np.zeros((len(block.w), scores))
        return init_scores(found["init_estimator_"], block, self.loss, scores, classes is not None)

    def _start(self, block: Block) -> Array | float:
        found = self._start_scores(vars(self), block)
        return 0.0 if found is None else found

    def _run(
        self, boosting: Stagewise, checked: ValidationRows | None, found: Attributes, before: Attributes
    ) -> Attributes:
        """Add stages until there are enough, or the validation loss no longer falls; return the losses of all."""
        losses = {name: [*before.get(name, ())] for name in ("train_score_", "oob_improvement_", "oob_scores_")}
        recent = [math.inf] * (self.n_iter_no_change or 0)

        def as_of_now(_: Any) -> Attributes:
            return {**found, "trees_": boosting.fitted()}

        with self._watch.loop("boosting", self.n_estimators, as_of_now) as watch:
            for stage in range(boosting.n_stages, self.n_estimators):
                watch.begin()
                old = boosting.F.copy() if self.subsample < 1 and not losses["oob_scores_"] else None
                boosting.stage()
                self._note(boosting, losses, old)
                if watch.end(None, Step(None, losses["train_score_"][-1], boosting.gradient_size), 0.0):
                    break
                if checked is not None:
                    checked.follow(boosting)
                    now = self._reported(boosting, checked.y, checked.w, checked.F)
                    if not any(now + float(self.tol) < loss for loss in recent):
                        break
                    recent[stage % len(recent)] = now
        noted: dict[str, Any] = {name: np.array(values) for name, values in losses.items() if len(values)}
        if "oob_scores_" in noted:
            noted["oob_score_"] = float(noted["oob_scores_"][-1])
        return noted

    def _note(self, boosting: Stagewise, losses: dict[str, list[float]], old: Array | None) -> None:
        """Write down the losses in and out of the bag, after a stage that began the first with scores `old`."""
        bag = np.ones(len(boosting.y), bool) if boosting.bag is None else boosting.bag

        def reported(rows: Array, F: Array) -> float:
            return self._reported(boosting, boosting.y[rows], boosting.w[rows], F[rows])

        losses["train_score_"].append(reported(bag, boosting.F))
        if boosting.bag is not None and not bag.all():
            last = reported(~bag, old) if old is not None else losses["oob_scores_"][-1]
            losses["oob_scores_"].append(reported(~bag, boosting.F))
            losses["oob_improvement_"].append(last - losses["oob_scores_"][-1])

    def _reported(self, boosting: Stagewise, y: Array, w: Array, F: Array) -> float:
        """The mean loss in scikit-learn's units."""
        plain = boosting.loss.plain
        values = plain.value(y, F if plain.several else F[:, 0])
        return float(w @ values / w.sum()) * (2.0 if boosting.loss.name in DOUBLED else 1.0)

    # What a fitted boosting says -------------------------------------------------------------------------------

    @property
    def n_estimators_(self) -> int:
        """The number of stages."""
        check_is_fitted(self)
        return self.trees_.n_trees // self.n_trees_per_iteration_

    @property
    def init_(self) -> Any:
        """What stages are added to: a fitted estimator, or 'zero'."""
        check_is_fitted(self)
        if isinstance(self.init, str):
            return self.init
        return self._constant() if self.init is None else self.init_estimator_

    def _constant(self) -> Any:
        """The best constant as an estimator."""
        raise NotImplementedError

    @property
    def estimators_(self) -> Array:
        """The trees of all stages, each as a fitted estimator of its own (stages, k)."""
        check_is_fitted(self)
        found = np.empty(self.trees_.n_trees, object)
        for t in range(len(found)):
            found[t] = self._tree_estimator(t)
        return found.reshape(-1, self.n_trees_per_iteration_)

    def _tree_estimator(self, t: int) -> DecisionTreeRegressor:
        model = DecisionTreeRegressor()
        names = set(model.get_params()) & set(self.get_params()) - {"random_state", "criterion"}
        model.set_params(**{name: getattr(self, name) for name in names})
        model.n_features_in_, model.max_features_ = self.n_features_in_, self.max_features_
        model.tree_ = self.trees_.tree(t, self.n_features_in_, float(self.learning_rate))
        model.certificate_ = self.certificate_
        return model

    @property
    def feature_importances_(self) -> Array:
        """How much the splits on each column lower the squared error of slopes, as shares of 1 (d,)."""
        check_is_fitted(self)
        total = np.zeros(self.n_features_in_)
        for t in range(self.trees_.n_trees):
            tree = self.trees_.tree(t, self.n_features_in_, float(self.learning_rate))
            total += tree.compute_feature_importances(normalize=False)
        size = total.sum()
        return total / size if size > 0 else total

    def _leaves(self, block: Block) -> Array:
        """The numbers of the leaves of a block's rows in their trees (n, stages, k)."""
        X, trees = dense(block.X), self.trees_
        found = [trees.tree(t, self.n_features_in_, 1.0).apply(X) for t in range(trees.n_trees)]
        return np.stack(found, axis=1).reshape(len(X), -1, self.n_trees_per_iteration_).astype(np.float64)


class GradientBoostingRegressor(BoostedRegressor, GradientBoosting):
    """Boosted exact trees for amounts.

    Parameters
    ----------
    loss : 'squared_error', 'absolute_error', 'huber', 'quantile', 'poisson' or 'gamma'
        'poisson' and 'gamma' have a log link.
    learning_rate : float
        Share of each step that is taken.
    n_estimators : int
        Stages.
    subsample : float in (0, 1]
        Share of the rows that each stage sees, drawn without repetition.
    criterion : accepted; trees are least-squares trees
    min_samples_split, min_samples_leaf, min_weight_fraction_leaf : as in DecisionTreeRegressor
    max_depth, max_leaf_nodes, max_features, min_impurity_decrease, ccp_alpha : as in DecisionTreeRegressor
    init : estimator, 'zero' or None
        What stages are added to: the predictions of an estimator, 0, or the best constant.
    random_state : int, RandomState or None
    alpha : float in (0, 1)
        The level of 'quantile'; of 'huber', the share of residuals that it squares, anew at each stage.
    verbose : accepted; progress is shown by callbacks (`ProgressBar`)
    warm_start : bool
        Whether fit adds stages to those that are there.
    validation_fraction : float in (0, 1)
        Share of the rows kept for early stopping, where there is any.
    n_iter_no_change : int or None
        With a number, the fit stops when the loss of these rows has not fallen by `tol` for so many stages.
    tol : float

    Attributes
    ----------
    trees_ : BoostedTrees
    estimators_ : (stages, 1) fitted DecisionTreeRegressor
    n_estimators_ : int, stages
    n_trees_per_iteration_ : int
    init_ : fitted estimator, or 'zero'
    init_estimator_ : the fitted estimator, where `init` is one
    train_score_ : (stages,) loss of the rows that each stage saw
    oob_improvement_, oob_scores_ : (stages,) and oob_score_ : float, loss of the other rows; where subsample < 1
    feature_importances_ : (d,)
    huber_deltas_ : (stages,) residuals beyond which 'huber' is linear; for that loss
    max_features_ : int, columns that each split looked at
    draw_seed_ : int, by which rows were drawn for stages and for validation
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(max_depth=1).fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('bounded', True)
    """

    settings: ClassVar[Settings] = {
        **GradientBoosting.settings,
        "loss": Setting(choices=("squared_error", "absolute_error", "huber", "quantile", *LOG_LINK)),
        "alpha": Setting(float, above=0, below=1),
    }

    def __init__(
        self, *, loss="squared_error", learning_rate=0.1, n_estimators=100, subsample=1.0, criterion="deprecated",
        min_samples_split=2, min_samples_leaf=1, min_weight_fraction_leaf=0.0, max_depth=3,
        min_impurity_decrease=0.0, init=None, random_state=None, max_features=None, alpha=0.9, verbose=0,
        max_leaf_nodes=None, warm_start=False, validation_fraction=0.1, n_iter_no_change=None, tol=1e-4,
        ccp_alpha=0.0,
    ):  # fmt: skip
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.alpha = alpha
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        refuse_negative_targets(self.loss, rows)
        return self._boost(rows, previous, {})

    def _loss(self, attributes: Attributes) -> ScoreLoss:
        if self.loss == "huber":
            levels = attributes.get("huber_deltas_", ())
            return ScoreLoss("huber", float(levels[-1]) if len(levels) else None)
        return ScoreLoss(self.loss, float(self.alpha) if self.loss == "quantile" else None)

    def _mean(self, F: Array) -> Array:
        return np.exp(F[:, 0]) if self.loss in LOG_LINK else F[:, 0]

    def _constant(self) -> Any:
        none, mean = np.zeros((1, self.n_features_in_)), float(self._mean(self.trees_.baseline[None])[0])
        return DummyRegressor(strategy="constant", constant=mean).fit(none, [0.0])

    def apply(self, X: Any) -> Array:
        """The number of the leaf that each row reaches in each tree (n, stages)."""
        return self._rows(X).map(self._leaves)[:, :, 0]


class GradientBoostingClassifier(BoostedClassifier, GradientBoosting):
    """Boosted exact trees for classes.

    Parameters
    ----------
    loss : 'log_loss' or 'exponential'
        'exponential' is AdaBoost's loss, of two classes; its score is half the log-odds.
    learning_rate, n_estimators, subsample, criterion : as in GradientBoostingRegressor
    min_samples_split, min_samples_leaf, min_weight_fraction_leaf : as in DecisionTreeRegressor
    max_depth, max_leaf_nodes, max_features, min_impurity_decrease, ccp_alpha : as in DecisionTreeRegressor
    init, random_state, verbose, warm_start : as in GradientBoostingRegressor
    validation_fraction, n_iter_no_change, tol : as in GradientBoostingRegressor

    Attributes
    ----------
    classes_ : (k,)
    n_classes_ : int
    trees_ : BoostedTrees
    estimators_ : (stages, trees of a stage) fitted DecisionTreeRegressor
    n_estimators_ : int, stages
    n_trees_per_iteration_ : int, 1 for two classes
    init_ : fitted estimator, or 'zero'
    init_estimator_ : the fitted estimator, where `init` is one
    train_score_ : (stages,) loss of the rows that each stage saw
    oob_improvement_, oob_scores_ : (stages,) and oob_score_ : float, loss of the other rows; where subsample < 1
    feature_importances_ : (d,)
    max_features_ : int, columns that each split looked at
    draw_seed_ : int, by which rows were drawn for stages and for validation
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certifit import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('greedy', True)
    """

    settings: ClassVar[Settings] = {
        **GradientBoosting.settings,
        "loss": Setting(choices=("log_loss", "exponential")),
    }

    def __init__(
        self, *, loss="log_loss", learning_rate=0.1, n_estimators=100, subsample=1.0, criterion="deprecated",
        min_samples_split=2, min_samples_leaf=1, min_weight_fraction_leaf=0.0, max_depth=3,
        min_impurity_decrease=0.0, init=None, random_state=None, max_features=None, verbose=0, max_leaf_nodes=None,
        warm_start=False, validation_fraction=0.1, n_iter_no_change=None, tol=1e-4, ccp_alpha=0.0,
    ):  # fmt: skip
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha

    def _check_settings(self) -> None:
        super()._check_settings()
        if _has_predictions(self.init) and not hasattr(self.init, "predict_proba"):
            raise DataError(got=f"init={self.init!r}", wanted="a classifier with predict_proba, 'zero' or None")

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows)
        refuse_several_exponential(self.loss, len(labels.classes))
        return self._boost(labels.rows, previous, {"classes_": labels.classes})

    def _loss(self, attributes: Attributes) -> ScoreLoss:
        return ScoreLoss("multinomial" if len(attributes["classes_"]) > 2 else self.loss)

    def _mean(self, F: Array) -> Array:
        # The score of the exponential loss is half the log-odds.
        return super()._mean(2 * F if self.loss == "exponential" else F)

    @property
    def n_classes_(self) -> int:
        check_is_fitted(self)
        return len(self.classes_)

    def _constant(self) -> Any:
        shares = self._mean(self.trees_.baseline[None])[0]
        columns = np.zeros((len(shares), self.n_features_in_))
        return DummyClassifier(strategy="prior").fit(columns, self.classes_, sample_weight=shares)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def apply(self, X: Any) -> Array:
        """The number of the leaf that each row reaches in each tree (n, stages, trees of a stage)."""
        return self._rows(X).map(self._leaves)
