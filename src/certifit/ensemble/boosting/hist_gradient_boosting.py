"""Boosted trees on binned columns, certified.

Stage by stage a tree is grown on slopes and curvatures of the loss and added to the scores, times a learning rate.
Columns are binned once, a byte a value; sums are whole numbers, so that a fit has the same bits for any number of
threads and from any source. Reference: Friedman, Greedy function approximation (2001); Ke et al., LightGBM (2017).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.ensemble.boosting.box_gap import box_size, is_quick, is_shallow
from certifit.checkers.ensemble.boosting.plain_trees import plain_trees
from certifit.checkers.ensemble.boosting.stage_rules import best_constant, held_out_rows, learning_rate_of
from certifit.checkers.ensemble.boosting_adapter import certify_boosting
from certifit.checkers.plain.blocks import dense
from certifit.core import Attributes, Setting, certified
from certifit.core.loop import Step
from certifit.core.settings import Settings
from certifit.ensemble.boosting.binned_trees import BinnedTrees
from certifit.ensemble.boosting.boosted_model import (
    LOG_LINK,
    BoostedClassifier,
    BoostedModel,
    BoostedRegressor,
    refuse_negative_targets,
    refuse_several_exponential,
)
from certifit.ensemble.boosting.boosted_trees import BoostedTrees
from certifit.ensemble.boosting.column_rules import (
    categorical_mask,
    frame_categories,
    interaction_groups,
    monotone_directions,
)
from certifit.ensemble.boosting.corrective import corrected_trees
from certifit.ensemble.boosting.early_stopping import StageScorer, ValidationRows, is_stalled
from certifit.ensemble.boosting.refit import refitted
from certifit.ensemble.boosting.stagewise import StageRules, Stagewise
from certifit.ensemble.earlier_fit import earlier_fit
from certifit.exceptions import DataError
from certifit.losses.scores.score_losses import ScoreLoss
from certifit.rows import Array, Block, Rows, apply_class_weight, encode_labels
from certifit.tree.binned.bins import learn_bins
from certifit.tree.binned.growth import BinnedLimits


def _refuse_tiny_differences(y: Array) -> None:
    """Refuse amounts (n,) whose differences have no squares: no question would gain anything."""
    spread = float(np.ptp(y))
    if 0 < spread < np.sqrt(np.finfo(float).tiny):
        raise DataError(
            got=f"targets that differ by {spread:.3g} at most, whose square is 0",
            wanted=f"differences of at least {np.sqrt(np.finfo(float).tiny):.3g}",
            fix="Multiply the targets by a power of 2, say 2.0**500.",
        )


class HistGradientBoosting(BoostedModel):
    """What boostings of classes and of amounts share."""

    diagnostics = ("n_iter_", "train_score_", "validation_score_", "learning_rate_")
    ignored = ("verbose",)
    settings: ClassVar[Settings] = {
        "learning_rate": Setting(float, above=0, below=math.inf, choices=("auto",)),
        "max_iter": Setting(int, least=0),
        "max_leaf_nodes": Setting(int, least=2, none=True),
        "max_depth": Setting(int, least=1, none=True),
        "min_samples_leaf": Setting(int, least=1),
        "l2_regularization": Setting(float, least=0, below=math.inf),
        "max_features": Setting(float, above=0, most=1),
        "max_bins": Setting(int, least=2, most=255),
        "early_stopping": Setting(bool, choices=("auto",)),
        "validation_fraction": Setting(float, above=0, below=math.inf, none=True),
        "n_iter_no_change": Setting(int, least=1),
        "tol": Setting(float, least=0),
        "warm_start": Setting(bool),
        "refit_leaves": Setting(bool),
        "corrective": Setting(bool),
    }
    differences: ClassVar[dict[str, str]] = {
        "early_stopping": "Leaves then get their values from all rows; refit_leaves=False is scikit-learn's way.",
        "fit(X_val)": "Rows for validation are drawn from X.",
        "fit(y_val)": "Rows for validation are drawn from X.",
        "fit(sample_weight_val)": "Rows for validation are drawn from X.",
    }

    category_labels_: dict[str, list[Any]]

    # Rows ------------------------------------------------------------------------------------------------------

    def _as_rows(self, X: Any, y: Any, sample_weight: Any, target: Any, targets: int, reset: bool) -> Rows:
        known = None if reset else self.__dict__.get("category_labels_", {})
        if not reset or (isinstance(self.categorical_features, str) and self.categorical_features == "from_dtype"):
            X, labels = frame_categories(X, known)
        else:
            labels = {}
        if reset:
            self._labels = labels
        return super()._as_rows(X, y, sample_weight, target, targets, reset)

    def _limits(self, d: int, names: Array | None, categorical: Array) -> BinnedLimits:
        shared = max(1, int(float(self.max_features) * d)) if float(self.max_features) < 1 else None
        return BinnedLimits(
            self.max_leaf_nodes, self.max_depth, int(self.min_samples_leaf), float(self.l2_regularization), shared,
            monotone_directions(self.monotonic_cst, d, names, categorical),
            interaction_groups(self.interaction_cst, d, names),
        )  # fmt: skip

    # Fitting ---------------------------------------------------------------------------------------------------

    def _boost(self, rows: Rows, previous: Attributes, attributes: Attributes) -> Attributes:
        """All fitted attributes, from rows whose y are class numbers or amounts."""
        labels = self.__dict__.pop("_labels", {})
        categorical = categorical_mask(self.categorical_features, rows.n_features, rows.names, labels)
        limits = self._limits(rows.n_features, rows.names, categorical)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        bins = learn_bins(rows, int(self.max_bins), categorical)
        coded = bins.coded_rows(rows)
        y, w = coded.y, coded.w
        if self.target != "classes":
            _refuse_tiny_differences(y)
        stops = bool(self.early_stopping) if self.early_stopping != "auto" else int((w > 0).sum()) > 10_000
        held = None
        if stops and self.validation_fraction is not None:
            held = held_out_rows(y if self.target == "classes" else None, w, float(self.validation_fraction), seed)
        kept = w > 0 if held is None else (w > 0) & ~held
        if not kept.any():
            raise DataError(got="no row left to learn from", wanted="a smaller validation_fraction")
        if held is not None and not held.any():
            raise DataError(
                got=f"too few rows for validation_fraction={self.validation_fraction:g}",
                wanted="a share that leaves at least one row to validate with",
                fix="Raise validation_fraction, or set it to None: then the training rows decide.",
            )
        rate = learning_rate_of(self.learning_rate, int((w > 0).sum()))
        held_out = None if held is None else coded.only(held)
        training = coded if kept.all() else coded.moved_together(kept)
        # These hold all rows, and training holds what is needed of them.
        del coded, y, w
        loss = self._loss(attributes)
        rules = StageRules(
            rate, seed, float(self.l2_regularization), loss.scores(len(attributes.get("classes_", ()))),
            huber_share=float(getattr(self, "alpha", 0.9)),
        )  # fmt: skip
        boosting = Stagewise(training.y, training.w, loss, BinnedTrees(training.codes, bins, limits), rules)
        previous = earlier_fit(self, previous, rows.n_features, attributes.get("classes_"))
        old = previous.get("trees_")
        F = None if old is None else rows.map(old.scores)
        if old is not None and F is not None:
            boosting.resume(old, F[kept])
            boosting.levels = [*previous.get("huber_deltas_", ())]
        checked = None
        if held_out is not None:
            checked = ValidationRows(held_out.codes, held_out.y, held_out.w, boosting, decode=bins.decode)
        try:
            history = self._run(boosting, checked, stops, attributes, previous)
        finally:
            boosting.close()
        if held is not None and held_out is not None and self.refit_leaves:
            known = None if F is None else np.concatenate([F[kept], F[held]])
            held, boosting = None, refitted(boosting, training, held_out, known)
        found = {
            **attributes, "trees_": boosting.fitted(), "category_labels_": labels, "do_early_stopping_": stops,
            "validation_seed_": seed, "learning_rate_": rate, "train_score_": np.array(history[0]),
            "validation_score_": np.array(history[1]),
        }  # fmt: skip
        if loss.name == "huber":
            found["huber_deltas_"] = np.array(boosting.levels)
        if self.corrective:
            found |= self._corrected(found["trees_"], rows, loss, held)
        claim = {**self.get_params(deep=False), **found, "n_features_in_": rows.n_features}
        return {**found, "certificate_": certified(certify_boosting, claim, rows, held, float(self.tol))}

    def _corrected(self, trees: BoostedTrees, rows: Rows, loss: ScoreLoss, held: Array | None) -> Attributes:
        """The attributes that change when all coefficients are found together."""
        plain = plain_trees(trees)
        odd = {
            f"loss={loss.name!r}": loss.name not in ("squared_error", "log_loss", "poisson", "gamma"),
            "trees deeper than 2, or categories": not is_shallow(plain),
            "monotonic_cst": self.monotonic_cst is not None,
            f"{rows.n_rows} rows of {rows.n_features} columns": not is_quick(rows.n_rows, rows.n_features, plain),
        }
        met = [words for words, wrong in odd.items() if wrong]
        if met:
            raise DataError(
                got=f"corrective=True with {', '.join(met)}",
                wanted="one score with a curvature, and trees of depth 1 or 2 on numbers",
                fix="Set max_leaf_nodes=2 or max_depth=2, or corrective=False.",
            )
        data = rows.load()
        kept = data.w > 0 if held is None else (data.w > 0) & ~held
        X, y = trees.coded(dense(data.X[kept])), np.asarray(data.y, np.float64)[kept]
        best = corrected_trees(trees, X, y, data.w[kept], loss.plain)
        return {"trees_": best, "coefficient_size_": box_size(plain_trees(best))}

    def _run(
        self,
        boosting: Stagewise,
        checked: ValidationRows | None,
        stops: bool,
        attributes: Attributes,
        before: Attributes,
    ) -> tuple[list[float], list[float]]:
        """Add stages until there are enough, or none has got better for long; return the scores of all."""
        done = boosting.n_stages
        if done > self.max_iter:
            raise DataError(
                got=f"max_iter={self.max_iter} with warm_start, after a fit of {done} stages",
                wanted="at least as many stages as there are",
            )
        loss = boosting.first_loss()
        scorer = StageScorer(loss, self.scoring, attributes.get("classes_"), self._mean)
        train = [*before.get("train_score_", ())]
        valid = [*before.get("validation_score_", ())]

        def note() -> None:
            train.append(scorer(boosting.y, boosting.w, boosting.F))
            if checked is not None:
                valid.append(scorer(checked.y, checked.w, checked.F))

        if stops and not train:
            note()
        whole = StageScorer(loss, "loss", attributes.get("classes_"), self._mean)
        watched = bool(getattr(self, "_skl_callbacks", ()))

        def as_of_now(_: Any) -> Attributes:
            return {**attributes, "trees_": boosting.fitted(), "category_labels_": {}}

        with self._watch.loop("boosting", self.max_iter, as_of_now) as watch:
            for _ in range(done, self.max_iter):
                watch.begin()
                boosting.stage()
                if checked is not None:
                    checked.follow(boosting)
                if stops:
                    note()
                # The loss of all rows takes as long as a part of a stage: it is computed where somebody looks.
                now = -whole(boosting.y, boosting.w, boosting.F) if watched else math.nan
                if watch.end(None, Step(None, now, boosting.gradient_size), 0.0):
                    break
                if stops and is_stalled(valid or train, int(self.n_iter_no_change), float(self.tol)):
                    break
        return train, valid

    # What a fitted boosting says -------------------------------------------------------------------------------

    @property
    def n_iter_(self) -> int:
        """The number of stages."""
        check_is_fitted(self)
        return self.trees_.n_trees // max(1, len(self.trees_.baseline))

    @property
    def is_categorical_(self) -> Array | None:
        """Which columns hold categories (d,), or None where none does."""
        check_is_fitted(self)
        found = np.array([len(kinds) > 0 for kinds in self.trees_.categories])
        return found if found.any() else None


def _are_levels(value: Any) -> bool:
    """Whether several levels of quantiles ascend."""
    levels = np.asarray(value)
    if levels.ndim != 1 or not len(levels) or levels.dtype.kind not in "fiu":
        return False
    return bool(levels[0] >= 0 and levels[-1] <= 1 and (np.diff(levels) > 0).all())


def _float_targets(block: Block) -> Array:
    return np.asarray(block.y, np.float64)


def _weights(block: Block) -> Array:
    return block.w


class HistGradientBoostingRegressor(BoostedRegressor, HistGradientBoosting):
    """Boosted trees for amounts.

    Parameters
    ----------
    loss : 'squared_error', 'absolute_error', 'huber', 'gamma', 'poisson' or 'quantile'
        'gamma' and 'poisson' have a log link.
    quantile : float in [0, 1], an ascending list of these, or None
        The quantile that 'quantile' estimates. Of several, predictions are (n, q) and never cross: they are put in
        order, which cannot raise their loss (Chernozhukov, Fernández-Val & Galichon 2010).
    learning_rate : float or 'auto'
        Share of each step that is taken. 'auto': the more rows, the more.
    max_iter : int
        Stages.
    max_leaf_nodes : int or None
        Leaves of a tree; the leaf that gains most is split next.
    max_depth : int or None
    min_samples_leaf : int
        Fewest rows of a leaf.
    l2_regularization : float
        λ in a leaf's value -g / (h + λ).
    max_features : float in (0, 1]
        Share of the columns that each split looks at, drawn anew.
    max_bins : int up to 255
        Columns with more distinct values are binned by weighted quantiles. Of more categories than this, the rarest
        count as missing.
    categorical_features : 'from_dtype', numbers, names, a mask, or None
        'from_dtype': columns of pandas' type category.
    monotonic_cst : array (d,) or dict of names, of -1, 0, 1, or None
        1: predictions rise with the column; -1: they fall.
    interaction_cst : 'pairwise', 'no_interactions', list of sets of columns, or None
        Which columns may meet in a branch.
    warm_start : bool
        Whether fit adds stages to those that are there.
    early_stopping : 'auto' or bool
        'auto': beyond 10,000 rows.
    scoring : 'loss', None for the model's own score, or scikit-learn's scoring
    validation_fraction : float, int or None
        Rows kept for early stopping; None: it looks at the training rows.
    n_iter_no_change : int
    tol : float
        The fit stops when none of so many last scores is better by more than `tol`.
    verbose : accepted; progress is shown by callbacks (`ProgressBar`)
    random_state : int, RandomState or None
    refit_leaves : bool
        Whether, after early stopping, leaves get their values from all rows, also those kept for it.
    corrective : bool
        Whether, after the last stage, all coefficients are found together: the best sum of stumps, or of boxes of two
        conditions, of the size that the stages have reached. For trees of depth 1 or 2, and losses with a curvature.
    alpha : float in (0, 1)
        Of 'huber', the share of residuals that it squares, anew at each stage.

    Attributes
    ----------
    trees_ : BoostedTrees
    huber_deltas_ : (stages,) residuals beyond which 'huber' is linear; for that loss
    learning_rate_ : float
    n_iter_ : int, stages
    n_trees_per_iteration_ : int
    do_early_stopping_ : bool
    train_score_, validation_score_ : scores of each stage, where there is early stopping
    is_categorical_ : (d,) or None
    category_labels_ : labels of a frame's columns of categories, by name
    validation_seed_ : int, by which rows were kept for validation
    coefficient_size_ : float, Σ |β| of all boxes; with corrective=True, where trees are boxes and no stages
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import HistGradientBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 2))
    >>> model = HistGradientBoostingRegressor(max_leaf_nodes=2).fit(X, np.sin(6 * X[:, 0]) + X[:, 1])
    >>> model.certificate_.kind, model.certificate_.holds
    ('bounded', True)
    >>> round(model.score(X, np.sin(6 * X[:, 0]) + X[:, 1]), 2)
    0.97
    """

    settings: ClassVar[Settings] = {
        **HistGradientBoosting.settings,
        "loss": Setting(choices=("squared_error", "absolute_error", "huber", "gamma", "poisson", "quantile")),
        "alpha": Setting(float, above=0, below=1),
        "quantile": Setting(
            float,
            least=0,
            most=1,
            none=True,
            other=_are_levels,
            other_words="an ascending list of levels",
        ),
    }

    def __init__(
        self, loss="squared_error", *, quantile=None, learning_rate=0.1, max_iter=100, max_leaf_nodes=31,
        max_depth=None, min_samples_leaf=20, l2_regularization=0.0, max_features=1.0, max_bins=255,
        categorical_features="from_dtype", monotonic_cst=None, interaction_cst=None, warm_start=False,
        early_stopping="auto", scoring="loss", validation_fraction=0.1, n_iter_no_change=10, tol=1e-7, verbose=0,
        random_state=None, refit_leaves=True, corrective=False, alpha=0.9,
    ):  # fmt: skip
        self.loss = loss
        self.quantile = quantile
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.refit_leaves = refit_leaves
        self.corrective = corrective
        self.alpha = alpha

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.loss == "quantile" and self.quantile is None:
            raise DataError(got="loss='quantile' and quantile=None", wanted="a quantile between 0 and 1")

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        refuse_negative_targets(self.loss, rows)
        return self._boost(rows, previous, {})

    def _loss(self, attributes: Attributes) -> ScoreLoss:
        if self.loss != "quantile":
            levels = attributes.get("huber_deltas_", ())
            return ScoreLoss(self.loss, float(levels[-1]) if len(levels) else None)
        return (
            ScoreLoss("quantiles", tuple(map(float, self.quantile)))
            if np.ndim(self.quantile)
            else ScoreLoss("quantile", float(self.quantile))
        )

    def _mean(self, F: Array) -> Array:
        if self.loss == "quantile" and np.ndim(self.quantile):
            return np.sort(F, axis=1)
        return np.exp(F[:, 0]) if self.loss in LOG_LINK else F[:, 0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of the variance that predictions explain; of several quantiles, that of the pinball loss."""
        if not (self.loss == "quantile" and np.ndim(self.quantile)):
            return super().score(X, y, sample_weight)
        rows = self._rows(X, y, sample_weight, "numbers")
        y, w, plain = rows.map(_float_targets), rows.map(_weights), self._loss({}).plain
        alone = np.tile(best_constant(y[w > 0], w[w > 0], plain, len(self.quantile)), (len(y), 1))
        return 1.0 - float(w @ plain.value(y, np.sort(rows.map(self._scores), axis=1)) / (w @ plain.value(y, alone)))


class HistGradientBoostingClassifier(BoostedClassifier, HistGradientBoosting):
    """Boosted trees for classes.

    Parameters
    ----------
    loss : 'log_loss' or 'exponential'
        One score for two classes, their log-odds; a score for each of several classes. 'exponential' is AdaBoost's
        loss, of two classes; its score is half the log-odds.
    learning_rate, max_iter, max_leaf_nodes, max_depth : as in HistGradientBoostingRegressor
    min_samples_leaf, l2_regularization, max_features, max_bins : as in HistGradientBoostingRegressor
    categorical_features, monotonic_cst, interaction_cst, warm_start : as in HistGradientBoostingRegressor
    early_stopping, scoring, validation_fraction, n_iter_no_change, tol : as in HistGradientBoostingRegressor
    verbose, random_state, refit_leaves, corrective : as in HistGradientBoostingRegressor
    class_weight : dict, 'balanced' or None

    Attributes
    ----------
    classes_ : (k,)
    trees_ : BoostedTrees
    learning_rate_ : float
    n_iter_ : int, stages
    n_trees_per_iteration_ : int
    do_early_stopping_ : bool
    train_score_, validation_score_ : scores of each stage, where there is early stopping
    is_categorical_ : (d,) or None
    category_labels_ : labels of a frame's columns of categories, by name
    validation_seed_ : int, by which rows were kept for validation
    coefficient_size_ : float, Σ |β| of all boxes; with corrective=True, where trees are boxes and no stages
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certifit import HistGradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('greedy', True)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    settings: ClassVar[Settings] = {
        **HistGradientBoosting.settings,
        "loss": Setting(choices=("log_loss", "exponential")),
    }

    def __init__(
        self, loss="log_loss", *, learning_rate=0.1, max_iter=100, max_leaf_nodes=31, max_depth=None,
        min_samples_leaf=20, l2_regularization=0.0, max_features=1.0, max_bins=255,
        categorical_features="from_dtype", monotonic_cst=None, interaction_cst=None, warm_start=False,
        early_stopping="auto", scoring="loss", validation_fraction=0.1, n_iter_no_change=10, tol=1e-7, verbose=0,
        random_state=None, class_weight=None, refit_leaves=True, corrective=False,
    ):  # fmt: skip
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.refit_leaves = refit_leaves
        self.corrective = corrective
        self.class_weight = class_weight

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows)
        refuse_several_exponential(self.loss, len(labels.classes))
        if self.monotonic_cst is not None and len(labels.classes) > 2:
            raise DataError(
                got=f"monotonic_cst with {len(labels.classes)} classes", wanted="two classes",
                fix="Fit one model for each class against the others.",
            )  # fmt: skip
        return self._boost(apply_class_weight(labels, self.class_weight), previous, {"classes_": labels.classes})

    def _loss(self, attributes: Attributes) -> ScoreLoss:
        return ScoreLoss(str(self.loss) if len(attributes["classes_"]) == 2 else "multinomial")

    def _mean(self, F: Array) -> Array:
        # The score of the exponential loss is half the log-odds.
        return super()._mean(2 * F if self.loss == "exponential" else F)
