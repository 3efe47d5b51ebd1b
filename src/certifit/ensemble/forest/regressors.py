"""Forests for amounts: random forests, and extremely randomised trees, with prediction intervals and quantiles."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.tree.adapter import tree_targets
from certifit.core import Attributes, Objective, Setting
from certifit.core.settings import Settings
from certifit.ensemble.forest.base import Forest
from certifit.ensemble.forest.prediction_intervals import jackknife_intervals, leaf_quantiles
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows
from certifit.tree.decision_tree import DecisionTreeRegressor


class ForestRegressor(RegressorMixin, Forest):
    """What forests for amounts share."""

    target = "numbers"
    settings: ClassVar[Settings] = {
        **Forest.settings,
        "criterion": Setting(choices=("squared_error", "friedman_mse", "poisson")),
    }

    differences: ClassVar[dict[str, str]] = {
        **Forest.differences,
    }

    oob_prediction_: Array
    oob_residual_: Array

    def __init__(
        self, n_estimators=100, *, criterion="squared_error", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features=1.0, max_leaf_nodes=None, min_impurity_decrease=0.0,
        bootstrap=True, oob_score=False, n_jobs=None, random_state=None, verbose=0, warm_start=False,
        ccp_alpha=0.0, max_samples=None, monotonic_cst=None,
    ):  # fmt: skip
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        if self.criterion == "poisson":
            y = np.concatenate(rows.each(_counted_targets))
            if not (len(y) and y.min() >= 0 and (y.sum(axis=0) > 0).all()):
                raise DataError(
                    got=f"targets from {y.min():g} to {y.max():g}",
                    wanted="counts of at least 0, some of them above, for criterion='poisson'",
                )
        return self._grow(rows, (), np.ones(rows.n_rows), {}, previous)

    def _told(self, answers: Array, y: Array) -> Attributes:
        said = answers[:, :, 0]
        one = said.shape[1] == 1
        return {
            "oob_prediction_": said[:, 0] if one else said,
            "oob_residual_": y[:, 0] - said[:, 0] if one else y - said,
        }

    def _scored(self, y: Array, answers: Array, fitted: Attributes) -> tuple[Array, Array]:
        said = answers[:, :, 0]
        return (y[:, 0], said[:, 0]) if y.shape[1] == 1 else (y, said)

    def _estimator(self, t: int) -> DecisionTreeRegressor:
        model = DecisionTreeRegressor(splitter="random" if self.drawn_borders else "best")
        return self._as_estimator(model, t)

    def _mean(self, block: Block) -> Array:
        return self._mean_value(block)[:, :, 0]

    def predict(self, X: Any) -> Array:
        """The mean over trees of the means of the leaves that a row reaches (n,); (n, t) for several targets."""
        found = self._answers(X, self._mean)
        return found if found.shape[1] > 1 else found[:, 0]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Where the target of a new row lies, (n, 2), by the jackknife+ after the bootstrap; (n, t, 2) for several.

        For each row i of the fit, the trees that have not drawn it predict x and row i itself; the interval is made
        of quantiles of these predictions minus, and plus, the residual of row i. New rows like those of the fit are
        inside with a probability of at least 1 - 2 (1 - coverage), and usually about `coverage`, whatever the
        distribution (Kim, Xu & Barber 2020); of several targets, each by itself. Needs oob_score=True.
        """
        Setting(float, above=0, below=1).check("coverage", coverage)
        check_is_fitted(self)
        if not self.oob_score:
            raise DataError(
                got="a forest without out-of-bag answers", wanted="one that was fitted with oob_score=True",
                fix=f"{type(self).__name__}(oob_score=True)",
            )  # fmt: skip
        unseen = self._draws().unseen(self.trees_.seed)
        found = self._rows(X).map(partial(jackknife_intervals, self, unseen, float(coverage)))
        return found if self.n_outputs_ > 1 else found[:, 0]

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), *, fitted_on: tuple[Any, ...]) -> Array:
        """Quantiles of the target given x, (n, q), or (n, t, q) for several: a quantile forest (Meinshausen 2006).

        The rows of the fit, `fitted_on` = (X, y) or (X, y, sample_weight), are weighted by how often they share a
        leaf with x, and the quantiles are those of their targets.
        """
        check_is_fitted(self)
        levels = np.atleast_1d(np.asarray(quantiles, np.float64))
        if not ((levels >= 0) & (levels <= 1)).all():
            raise DataError(got=f"quantiles={quantiles!r}", wanted="numbers between 0 and 1")
        table, y, weight = (*fitted_on, None)[:3]
        y, targets = tree_targets(table, y, "numbers")
        if targets != self.n_outputs_:
            raise DataError(got=f"fitted_on with {targets} targets", wanted=f"the {self.n_outputs_} of the fit")
        known = self._rows(table, y, weight, "numbers", targets)
        if known.n_rows != len(self.draw_weight_):
            raise DataError(
                got=f"fitted_on with {known.n_rows} rows", wanted=f"the {len(self.draw_weight_)} rows of the fit"
            )
        y, at = known.map(_targets).reshape(known.n_rows, -1), known.map(self._leaves)
        draws = self._draws()
        drawn = [draws.counts(seed) if self.bootstrap else self.draw_weight_ for seed in self.trees_.seed]
        found = self._rows(X).map(partial(leaf_quantiles, self, levels, (y, at, np.stack(drawn, axis=1))))
        return found if self.n_outputs_ > 1 else found[:, 0]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The variance (or Poisson deviance) in the leaves, mean over trees, each on its bootstrap sample of rows."""
        y, targets = tree_targets(X, y, "numbers")
        rows = self._rows(X, y, sample_weight, "numbers", targets)
        target = rows.map(_targets).reshape(rows.n_rows, -1)
        impurity = partial(_spread, self, target.T, int(np.diff(self.trees_.first).max()))
        return self._sample_objective(rows, np.ones(rows.n_rows), impurity)


def _targets(block: Block) -> Array:
    return np.asarray(block.y)


def _counted_targets(block: Block) -> Array:
    return np.asarray(block.y)[block.w > 0]


def _spread(model: ForestRegressor, y: Array, m: int, at: Array, weight: Array) -> float:
    """The impurity of the leaves of one tree, weighted by what they hold; y (t, n) are amounts."""
    mass, total = np.bincount(at, weight, m), 0.0
    heavy = np.where(mass > 0, mass, 1.0)
    for amount in y:
        centre = np.average(amount, weights=weight)
        mean = centre + np.bincount(at, weight * (amount - centre), m) / heavy
        if model.criterion == "poisson":
            total += weight @ xlogy(amount, amount) - mass @ xlogy(mean, np.maximum(mean, 0))
        else:
            total += weight @ (amount - mean[at]) ** 2
    return float(total / mass.sum()) / len(y)


class RandomForestRegressor(ForestRegressor):
    """A random forest for amounts: the mean of trees on bootstrap samples.

    Parameters
    ----------
    n_estimators : int
        The number of trees.
    criterion : 'squared_error', 'friedman_mse' or 'poisson'
        Impurity of a node: the variance of its targets ('friedman_mse' chooses the same splits, and is another name),
        or half their Poisson deviance from the mean.
    max_features : int, float for a share, 'sqrt', 'log2' or None
        How many columns each node looks at, drawn anew; all by default.
    monotonic_cst : array (d,) of -1, 0, 1, or None
        1: predictions rise with the column; -1: they fall.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf : as in RandomForestClassifier
    max_leaf_nodes, min_impurity_decrease, bootstrap, oob_score, random_state : as in RandomForestClassifier
    warm_start, ccp_alpha, max_samples, n_jobs, verbose : as in RandomForestClassifier

    Attributes
    ----------
    trees_ : the nodes of all trees, with scikit-learn's names, and the trees' seeds
    estimators_ : list of DecisionTreeRegressor (made when asked for)
    n_outputs_ : int, the number of targets t
    max_features_ : int, the columns that each node looked at
    feature_importances_ : (d,) shares of the fall of impurity (computed when asked for)
    borders_ : tuple of arrays, the borders between the bins of each column: thresholds are among them
    draw_order_, draw_weight_ : (n,) the order in which rows stand for the bootstrap, and their weights in it
    estimators_samples_ : list of arrays, the rows that each tree has drawn (computed when asked for)
    oob_score_ : float, R² of the out-of-bag answers (with oob_score)
    oob_interval_ : (2,) where R² on new rows lies with 95 % confidence (with oob_score)
    oob_prediction_, oob_residual_ : (n,) or (n, t) out-of-bag answers, and targets minus these (with oob_score)
    certificate_ : Certificate

    `predict_interval` gives intervals that cover, `predict_quantiles` quantiles of the target.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(oob_score=True, random_state=0).fit(X, y)
    >>> bool(0.35 < model.oob_score_ < 0.5), model.predict_interval(X[:1]).shape
    (True, (1, 2))
    >>> model.certificate_.holds
    True
    """


class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomised trees for amounts: each node draws one border for each column that it looks at.

    Parameters
    ----------
    bootstrap : bool
        False by default: all trees see all rows.
    n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf : as in RandomForestRegressor
    min_weight_fraction_leaf, max_features, max_leaf_nodes, min_impurity_decrease : as in RandomForestRegressor
    oob_score, random_state, warm_start, ccp_alpha, max_samples : as in RandomForestRegressor
    monotonic_cst, n_jobs, verbose : as in RandomForestRegressor

    Attributes
    ----------
    trees_ : the nodes of all trees, with scikit-learn's names, and the trees' seeds
    estimators_ : list of DecisionTreeRegressor (made when asked for)
    n_outputs_ : int, the number of targets t
    max_features_ : int, the columns that each node looked at
    feature_importances_ : (d,) shares of the fall of impurity (computed when asked for)
    borders_ : tuple of arrays, the borders between the bins of each column: thresholds are among them
    draw_order_, draw_weight_ : (n,) the order in which rows stand for the bootstrap, and their weights in it
    estimators_samples_ : list of arrays, the rows that each tree has drawn (computed when asked for)
    oob_score_ : float, R² of the out-of-bag answers (with oob_score)
    oob_interval_ : (2,) where R² on new rows lies with 95 % confidence (with oob_score)
    oob_prediction_, oob_residual_ : (n,) or (n, t) out-of-bag answers, and targets minus these (with oob_score)
    certificate_ : Certificate

    Borders are drawn as in ExtraTreesClassifier.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ExtraTreesRegressor(random_state=0).fit(X, y).certificate_.holds
    True
    """

    drawn_borders: ClassVar[bool] = True

    def __init__(
        self, n_estimators=100, *, criterion="squared_error", max_depth=None, min_samples_split=2, min_samples_leaf=1,
        min_weight_fraction_leaf=0.0, max_features=1.0, max_leaf_nodes=None, min_impurity_decrease=0.0,
        bootstrap=False, oob_score=False, n_jobs=None, random_state=None, verbose=0, warm_start=False,
        ccp_alpha=0.0, max_samples=None, monotonic_cst=None,
    ):  # fmt: skip
        super().__init__(
            n_estimators, criterion=criterion, max_depth=max_depth, min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf, min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features, max_leaf_nodes=max_leaf_nodes, min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap, oob_score=oob_score, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
            warm_start=warm_start, ccp_alpha=ccp_alpha, max_samples=max_samples, monotonic_cst=monotonic_cst,
        )  # fmt: skip
