"""What all forests share: growing trees on threads, answering with all of them, and out-of-bag answers.

A forest is the mean of trees that are each grown on a bootstrap sample of the rows, and in which each node looks at a
random few of the columns. Columns are binned once (at most 255 bins; exact where a column has no more values), a tree
is grown by one thread in one compiled call, and everything random follows from its seed: the same bits for any number
of threads. References: Breiman, Random forests (2001); Geurts, Ernst & Wehenkel, Extremely randomized trees (2006).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn import ensemble as sklearn_forests
from sklearn.base import clone
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.ensemble.forest.adapter import certify_own
from certifit.checkers.ensemble.forest.certificate import quick
from certifit.checkers.ensemble.forest.out_of_bag import summarise_targets, target_losses
from certifit.checkers.plain.blocks import dense
from certifit.checkers.tree.adapter import tree_targets
from certifit.core import Attributes, Estimator, Objective, Setting, certified
from certifit.core.estimator import with_callbacks
from certifit.core.settings import Settings
from certifit.ensemble.earlier_fit import earlier_fit
from certifit.ensemble.forest.bootstrap import Bootstrap, number_of_draws
from certifit.ensemble.forest.forest_trees import ForestTrees
from certifit.exceptions import DataError, warn_caller
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.tree.binned.seeded.grow_trees import coded_table, grow_trees, growth_plan, table_borders
from certifit.tree.binned.seeded.growing import GrowthPlan
from certifit.tree.decision_tree import DecisionTree
from certifit.tree.pruning import pruned
from certifit.tree.routing.coded_trees import CodingTuning
from certifit.tree.sklearn_copy import sklearn_tree, with_known_settings


def _is_share(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and 0 < float(value) <= 1


def _weights(block: Block) -> Array:
    return block.w


class Forest(Estimator):
    """What forests of classes and of amounts share."""

    sparse = True
    missing = True
    drawn_borders: ClassVar[bool] = False  # one border drawn for each column of a node, as extremely randomised trees
    ignored: ClassVar[tuple[str, ...]] = ("n_jobs", "verbose")
    settings: ClassVar[Settings] = {
        **{name: s for name, s in DecisionTree.settings.items() if name not in ("splitter", "lookahead")},
        "n_estimators": Setting(int, least=1),
        "bootstrap": Setting(bool),
        "oob_score": Setting(bool, other=callable, other_words="a function of targets and answers"),
        "warm_start": Setting(bool),
        "max_samples": Setting(
            int, least=1, none=True, other=lambda v: isinstance(v, float) and v > 0, other_words="a share of the rows"
        ),
    }
    differences: ClassVar[dict[str, str]] = {
        "criterion": "'absolute_error' is not there.",
        "fit(X)": "Columns of more than 255 distinct values are cut into 255 bins; thresholds lie between bins.",
        "oob_score": "Rows that every tree has drawn are left out (NaN), and counted in the certificate.",
        "estimator_": "Trees are grown together, from one table of codes; `estimators_` are made when asked for.",
        "fit(sample_weight)": "Rows are drawn in proportion to their weights: a row of weight 2 is a row twice.",
    }

    trees_: ForestTrees
    borders_: tuple[Array, ...]
    draw_order_: Array
    draw_weight_: Array
    max_features_: int

    # Growing --------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.oob_score and not self.bootstrap:
            raise DataError(
                got="oob_score without bootstrap", wanted="bootstrap=True",
                fix="Out of bag estimation only available if bootstrap=True: else every tree sees every row.",
            )  # fmt: skip
        if self.max_samples is not None and not self.bootstrap:
            raise DataError(
                got=f"max_samples={self.max_samples!r} without bootstrap", wanted="max_samples=None",
                fix="`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set "
                "`max_sample=None`.",
            )  # fmt: skip

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets (n,) or, for several targets at once, (n, t); or the names of these columns in X
        sample_weight : array of non-negative row weights, or the name of a column in X

        Returns
        -------
        self : the fitted forest; `certificate_` says what is proved about it
        """
        y, targets = tree_targets(X, y, self.target)
        return self._fit_rows(X, y, sample_weight, targets=targets)

    def _grow(
        self, rows: Rows, classes: tuple[int, ...], factor: Array, found: Attributes, previous: Attributes
    ) -> Attributes:
        """All fitted attributes, from rows whose y are class numbers or amounts; `factor` (n,) are class weights."""
        previous = earlier_fit(self, previous, rows.n_features, found.get("classes_"))
        table, w = coded_table(rows, self.monotonic_cst)
        bootstrap = Bootstrap.of(rows, w * factor, number_of_draws(self.max_samples, w))
        plan = growth_plan(self, table, classes, int((w > 0).sum()), self.drawn_borders)
        trees = self._trees(plan, bootstrap, previous)
        fitted: dict[str, Any] = {
            **found, "trees_": trees, "borders_": table_borders(table), "draw_order_": bootstrap.order,
            "draw_weight_": bootstrap.weight, "max_features_": plan.rules.columns,
        }  # fmt: skip
        if self.oob_score:
            fitted.update(self._out_of_bag(rows, fitted, bootstrap, plan, w))
        known = {"n_features_in_": rows.n_features, "drawn_borders": self.drawn_borders}
        claim = SimpleNamespace(**self.get_params(), **known, **fitted)
        fitted["certificate_"] = certified(certify_own, claim, rows, quick())
        return fitted

    def _trees(self, plan: GrowthPlan, bootstrap: Bootstrap, previous: Attributes) -> ForestTrees:
        """Grow the trees, or with `warm_start` those that are still missing."""
        before: ForestTrees | None = previous.get("trees_")
        before = None if before is not None and before.targets != plan.targets else before
        there = 0 if before is None else len(before)
        if there > self.n_estimators:
            raise DataError(
                got=f"n_estimators={self.n_estimators} with {there} trees grown before",
                wanted="at least as many with warm_start=True",
                fix=f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={there} when "
                "warm_start==True",
            )
        if there == self.n_estimators and before is not None:
            warn_caller("Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning)
            return before
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)[there:]
        trees = grow_trees(plan, partial(self._tree_weight, plan, bootstrap), seeds)
        if self.ccp_alpha > 0:
            trees = [pruned(tree, float(self.ccp_alpha)) for tree in trees]
        more = ForestTrees.of(trees, seeds)
        return more if before is None else before.joined(more)

    def _tree_weight(self, plan: GrowthPlan, bootstrap: Bootstrap, seed: int) -> Array:
        """What each row counts in a tree (n,)."""
        return self._reweighted(plan, bootstrap.counts(seed) if self.bootstrap else bootstrap.weight)

    def _reweighted(self, plan: GrowthPlan, weight: Array) -> Array:
        """What rows count in a tree that has drawn them so often."""
        return weight

    # Out of bag -----------------------------------------------------------------------------------------------

    def _out_of_bag(
        self, rows: Rows, fitted: Attributes, bootstrap: Bootstrap, plan: GrowthPlan, w: Array
    ) -> Attributes:
        """What trees say of the rows that they have not drawn, and how good that is."""
        trees: ForestTrees = fitted["trees_"]
        y, answers = plan.table.y, unseen_answers(trees, rows, bootstrap.unseen(trees.seed))
        found = summarise_targets(answers, y.T, w, plan.classes)
        score = found.score
        if callable(self.oob_score):
            known = ~np.isnan(answers).any(axis=(1, 2))
            score = float(self.oob_score(*self._scored(y.T[known], answers[known], fitted)))
        return {**self._told(answers, y.T), "oob_score_": score, "oob_interval_": np.array([found.low, found.high])}

    def _told(self, answers: Array, y: Array) -> Attributes:
        """Out-of-bag answers (n, t, k) as fitted attributes."""
        raise NotImplementedError

    def _scored(self, y: Array, answers: Array, fitted: Attributes) -> tuple[Array, Array]:
        """Targets and predictions, for the user's own score."""
        raise NotImplementedError

    def oob_permutation_importances(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_repeats: int = 5, random_state: Any = None
    ) -> Bunch:
        """How much worse the out-of-bag answers become when the values of a column change places (Breiman 2001).

        X, y and sample_weight are those of the fit. Returned are `importances` (d, n_repeats), the rise of the error
        rate or of the mean squared error, their `importances_mean` and `importances_std` (d,).
        """
        check_is_fitted(self)
        if not self.bootstrap:
            raise DataError(got="a forest whose trees see all rows", wanted="one with bootstrap=True")
        y, targets = tree_targets(X, y, self.target)
        rows = self._rows(X, y, sample_weight, self.target, targets).load()
        if rows.n_rows != len(self.draw_weight_):
            raise DataError(got=f"{rows.n_rows} rows", wanted=f"the {len(self.draw_weight_)} rows of the fit")
        table, unseen = np.array(dense(rows.X)), self._draws().unseen(self.trees_.seed)
        rng = check_random_state(random_state)
        before = self._unseen_error(table, rows, unseen)
        found = np.zeros((table.shape[1], n_repeats))
        for j, r in np.ndindex(found.shape):
            kept = table[:, j].copy()
            table[:, j] = kept[rng.permutation(len(kept))]
            found[j, r] = self._unseen_error(table, rows, unseen) - before
            table[:, j] = kept
        return Bunch(importances=found, importances_mean=found.mean(axis=1), importances_std=found.std(axis=1))

    def _unseen_error(self, table: Array, rows: Any, unseen: Array) -> float:
        """The mean error of out-of-bag answers on a table whose rows have the targets and weights of others."""
        y, classes = self._numbers(np.asarray(rows.y).reshape(len(table), -1))
        loss = target_losses(unseen_answers(self.trees_, ArrayRows(table), unseen), y, classes)
        known = ~np.isnan(loss) & (rows.w > 0)
        return float(np.average(loss[known], weights=rows.w[known]))

    def _numbers(self, y: Array) -> tuple[Array, tuple[int, ...]]:
        """Targets (n, t) as class numbers, with how many classes there are; or amounts."""
        return y, ()

    # What a fitted forest says ----------------------------------------------------------------------------------

    def _mean_value(self, block: Block) -> Array:
        """The mean over trees of the values of the leaves that each row of a block reaches (n, t, k)."""
        out = np.zeros((len(block.w), self.trees_.value.shape[1]))
        self.trees_.add_answers(block, out)
        return (out / len(self.trees_)).reshape(len(out), self.trees_.targets, -1)

    def _answers(self, X: Any, answer: Callable[[Block], Array], tuning: CodingTuning = CodingTuning()) -> Array:
        """`answer` of all rows, which are cut so that threads have equal shares: no row's depends on the others."""
        rows = self._rows(X)
        if isinstance(rows, ArrayRows) and rows.in_memory and not sparse.issparse(rows.X):
            rows = ArrayRows(rows.X, rows.y, rows.w, rows.names)
            rows.block_rows = min(rows.block_rows, max(tuning.fewest_rows, -(-rows.n_rows // tuning.shares)))
        return rows.map(answer)

    def _leaves(self, block: Block) -> Array:
        return self.trees_.leaves(block)

    def apply(self, X: Any) -> Array:
        """The number of the leaf that each row reaches in each tree (n, trees)."""
        return self._answers(X, self._leaves)

    def decision_path(self, X: Any) -> tuple[Any, Array]:
        """Which nodes of all trees each row passes, a sparse matrix (n, nodes), and where each tree's nodes begin."""
        X = dense(self._rows(X).load().X)
        d = X.shape[1]
        paths = [self.trees_.tree(t, d).decision_path(X) for t in range(len(self.trees_))]
        return sparse.hstack(paths).tocsr(), np.asarray(self.trees_.first)

    @property
    def n_outputs_(self) -> int:
        """The number of targets."""
        check_is_fitted(self)
        return self.trees_.targets

    @property
    def feature_importances_(self) -> Array:
        """How much the splits on each column lower the impurity, as shares of 1, mean over trees (d,)."""
        check_is_fitted(self)
        return self.trees_.importances(self.n_features_in_)

    @property
    def estimators_samples_(self) -> list[Array]:
        """The rows that each tree has drawn, each as often as it was."""
        check_is_fitted(self)
        n = len(self.draw_weight_)
        if not self.bootstrap:
            return [np.flatnonzero(self.draw_weight_ > 0) for _ in self.trees_.seed]
        draws = self._draws()
        return [np.repeat(np.arange(n), draws.counts(seed)) for seed in self.trees_.seed]

    def _draws(self) -> Bootstrap:
        first = self.trees_.weighted_n_node_samples[self.trees_.first[:-1]]
        return Bootstrap(self.draw_order_, self.draw_weight_, round(float(first[0])))

    @property
    def estimators_(self) -> list[DecisionTree]:
        """The trees, each as a fitted estimator of its own."""
        check_is_fitted(self)
        return [self._estimator(t) for t in range(len(self.trees_))]

    def _estimator(self, t: int) -> DecisionTree:
        raise NotImplementedError

    def _as_estimator(self, model: DecisionTree, t: int) -> DecisionTree:
        names = set(model.get_params()) & set(self.get_params()) - {"random_state", "class_weight"}
        model.set_params(**{name: getattr(self, name) for name in names}, random_state=int(self.trees_.seed[t]))
        model.n_features_in_, model.max_features_ = self.n_features_in_, self.max_features_
        model.category_labels_ = {}
        model.tree_, model.certificate_ = self.trees_.tree(t, self.n_features_in_), self.certificate_
        return model

    def to_sklearn(self) -> Any:
        """The forest of the same name in scikit-learn, with the same trees, for tools that take no other: SHAP."""
        check_is_fitted(self)
        copy = with_known_settings(getattr(sklearn_forests, type(self).__name__)(), self)
        copy.estimators_ = [sklearn_tree(tree, tree.tree_) for tree in self.estimators_]
        copy.n_outputs_, copy.estimator_ = self.n_outputs_, clone(copy.estimators_[0])
        return copy

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, t: int) -> DecisionTree:
        return self.estimators_[t]

    def _sample_objective(self, rows: Rows, factor: Array, impurity: Any) -> Objective:
        """The mean over trees of what `impurity(leaves, weights)` says of their bootstrap samples of these rows."""
        w = rows.map(_weights)
        bootstrap = Bootstrap.of(rows, w * factor, number_of_draws(self.max_samples, w))
        leaves = rows.map(self._leaves)
        found = []
        for t, seed in enumerate(self.trees_.seed):
            weight = bootstrap.counts(seed) if self.bootstrap else bootstrap.weight
            found.append(impurity(leaves[:, t], weight))
        total = float(np.mean(found))
        return Objective(total, total, 0.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags


def unseen_answers(trees: ForestTrees, rows: Rows, unseen: Array) -> Array:
    """The mean of the trees that did not see each row (n, t, k), NaN where there is none; `unseen` is (trees, n)."""
    return rows.map(partial(_unseen_block, trees, unseen))


def _unseen_block(trees: ForestTrees, unseen: Array, block: Block) -> Array:
    leaf = trees.leaves(block)
    out = np.zeros((len(leaf), trees.value.shape[1]))
    here = unseen[:, block.start : block.start + len(leaf)]
    for t, rows in enumerate(map(np.flatnonzero, here)):
        out[rows] += trees.value[trees.first[t] + leaf[rows, t]]
    count = here.sum(axis=0)
    found = np.where(count[:, None] > 0, out / np.maximum(count, 1)[:, None], np.nan)
    return found.reshape(len(leaf), trees.targets, -1)
