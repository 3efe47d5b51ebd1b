"""What multi-layer perceptrons share: settings, training by any solver, going on, and the certificate.

A perceptron with weights W and biases b has the objective of scikit-learn:

    ( Σᵢ wᵢ loss(yᵢ, f(xᵢ)) + alpha/2 |W|² ) / Σᵢ wᵢ

A minibatch has the same with its own rows and weight. Reference: Rumelhart, Hinton & Williams, "Learning
representations by back-propagating errors" (1986).
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.neural_network.adapter import ACTIVATION, ALPHA, SOLVER, certify_perceptron, read_perceptron
from certifit.checkers.neural_network.network_loss import NetworkClaim
from certifit.checkers.neural_network.plain_columns import robust_columns
from certifit.checkers.neural_network.presets import PRESETS, setting_in_use
from certifit.core import Attributes, Certificate, Estimator, Objective, Setting, certified
from certifit.core.estimator import with_callbacks
from certifit.core.settings import Settings
from certifit.core.watch import Watch
from certifit.exceptions import DataError, NotANumberError, warn_caller
from certifit.files.checkpoint import Checkpoint, CheckpointTuning, arrays_digest, table_digest
from certifit.neural_network.layers.row_layers import Layer, LayerWeights
from certifit.neural_network.network import Network, perceptron
from certifit.neural_network.output_losses import OUTPUT_LOSSES, OutputLoss
from certifit.neural_network.tabular import draw_tabular, start_at_mean, tabular_groups, tabular_network
from certifit.neural_network.training.full_batch import FullBatchLimits, PenalisedLoss, RecordedLoss, minimise
from certifit.neural_network.training.network_rows import NetworkRows, dense_as, rows_at_hand
from certifit.neural_network.training.optimisers import SCHEDULES, Optimiser, OptimiserRules, OptimiserState
from certifit.neural_network.training.rows_on_workers import RowsOnWorkers
from certifit.neural_network.training.stochastic import EpochRules, train
from certifit.rows import Array, Block, Rows


class PerceptronTargets(NamedTuple):
    """Rows with targets that a network can learn, and what a fit keeps of them."""

    rows: Any  # Rows whose y are class numbers (n,), labels (n, k) or amounts; None where only targets matter
    attributes: dict[str, Any]
    output: str  # the loss of scores
    outputs: int  # scores


class InterruptedTraining(KeyboardInterrupt):
    """Ctrl-C in a fit that keeps what it has reached."""

    def __init__(self, words: str, attributes: Attributes) -> None:
        super().__init__(words)
        self.attributes = attributes


class Unwatched:
    """A watch of `partial_fit`, which has no callbacks."""

    def begin(self) -> None:
        pass

    def end(self, params: Any, step: Any, tol: float) -> bool:
        return False


def target_width(y: Any) -> int:
    """The columns of y: 1 where it is a vector, or one column by itself."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        shape = np.shape(y)
    return int(shape[1]) if shape is not None and len(shape) == 2 and shape[1] > 1 else 1


def _are_sizes(value: Any) -> bool:
    sizes = np.asarray(value)
    return sizes.ndim <= 1 and (sizes.size == 0 or (sizes.dtype.kind in "iu" and bool((sizes > 0).all())))


class MultilayerPerceptron(Estimator):
    """Base of MLPClassifier and MLPRegressor."""

    sparse = True
    diagnostics = (
        "history_", "n_iter_", "loss_curve_", "best_loss_", "validation_scores_", "best_validation_score_",
    )  # fmt: skip
    ignored = ("verbose",)
    settings: ClassVar[Settings] = {
        "hidden_layer_sizes": Setting(other=_are_sizes, other_words="whole numbers of at least 1"),
        "activation": ACTIVATION,
        "solver": SOLVER,
        "alpha": ALPHA,
        "batch_size": Setting(int, least=1, choices=("auto",)),
        "learning_rate": Setting(choices=SCHEDULES),
        "learning_rate_init": Setting(float, above=0, below=math.inf),
        "power_t": Setting(float, least=0, below=math.inf),
        "max_iter": Setting(int, least=0),
        "shuffle": Setting(bool),
        "tol": Setting(float, least=0),
        "warm_start": Setting(bool),
        "momentum": Setting(float, least=0, most=1),
        "nesterovs_momentum": Setting(bool),
        "early_stopping": Setting(bool),
        "validation_fraction": Setting(float, above=0, below=1),
        "beta_1": Setting(float, least=0, below=1),
        "beta_2": Setting(float, least=0, below=1),
        "epsilon": Setting(float, above=0, below=math.inf),
        "n_iter_no_change": Setting(int, least=1, choices=(), other=lambda v: v == math.inf, other_words="infinity"),
        "max_fun": Setting(int, least=1),
        "clip_norm": Setting(float, above=0, none=True),
        "checkpoint": Setting(none=True, path=True),
    }
    differences: ClassVar[dict[str, str]] = {
        "loss_": "The loss of the fitted weights on all rows, which a checker recomputes; not a mean over an epoch.",
        "random_state": "First weights are scikit-learn's; the order of rows is from another stream.",
        "solver": "'lbfgs' goes on until the gradient is at most tol, not until the loss hardly falls.",
        "t_": "Follows from training_state_.",
    }

    _tuning: ClassVar[CheckpointTuning] = CheckpointTuning()
    _usual_batch: ClassVar[int] = 200  # rows of a minibatch with batch_size='auto'

    coefs_: list[Array]
    intercepts_: list[Array]
    loss_: float
    preset: str | None = None
    center_: Array  # (d,) medians of the columns, with preset='tabular'
    scale_: Array  # (d,) and distances of their quartiles
    training_state_: OptimiserState

    # What a subclass says ----------------------------------------------------------------------------------------

    @abstractmethod
    def _targets(self, rows: Rows, several: int, known: Attributes) -> PerceptronTargets:
        """Targets of rows with so many columns of y; `known` are attributes of an earlier fit to go on from."""

    @abstractmethod
    def _table(self, targets: PerceptronTargets, y: Array) -> Array:
        """Targets as wide as the scores (n, k)."""

    @abstractmethod
    def _validation_score(self, loss: OutputLoss, scores: Array, Y: Array, w: Array) -> float:
        """How good scores are for rows that training did not see."""

    # Fitting ------------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows and their targets; several columns are amounts, or labels of which a row has any number.

        Parameters
        ----------
        X, y, sample_weight : as in every `fit` of certifit
        """
        several = target_width(y)
        return self._fit_rows(X, y, sample_weight, targets=several, several=several)

    def _fit(self, rows: Rows, previous: Attributes, several: int = 1) -> Attributes:
        before = previous if self.warm_start and "coefs_" in previous else {}
        return self._in_use()._learn(rows, several, before, self._watch)

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, targets: int = 1, **more: Any) -> Self:
        try:
            return super()._fit_rows(X, y, sample_weight, targets, **more)
        except InterruptedTraining as interrupt:
            self.__dict__.update(interrupt.attributes)
            raise

    def _keep_interrupted(self, found: dict[str, Any]) -> None:
        """Raise the interrupt of a training under way, with the fitted attributes that it has reached."""
        if self.warm_start and self.checkpoint is not None:
            raise KeyboardInterrupt  # the file has it; to go on from there, first weights must be those of before
        kind, n = type(self).__name__, found["n_iter_"]
        unit = "steps" if self.solver == "lbfgs" else "whole epochs"
        best = "those with the best validation score" if found.get("validation_scores_") else "those of that moment"
        words = f"interrupted after {n} {unit}; its weights are {best}"
        noted = {name: value for name, value in vars(self).items() if name in ("n_features_in_", "feature_names_in_")}
        claim = f"{words}; nothing is proved: audit(model, X, y) tells what can be"
        if (n := found.pop("sampled", None)) is not None:
            claim += f"; moments_ are those of {n} of the rows alone, and an audit will say so"
        certificate = Certificate("unproved", claim)
        attributes = {**noted, **found, "certificate_": certificate}
        more = "partial_fit goes on, and so does " if self.solver != "lbfgs" else "to go on, use "
        raise InterruptedTraining(f"{kind} was {words}. {more}fit with warm_start=True.", attributes)

    def _in_use(self) -> Self:
        """This estimator with the settings of its preset in place of those that were left at their defaults."""
        if self.preset is None:
            return self
        found = copy.copy(self)
        for name in set(PRESETS[self.preset]) & set(self.get_params(deep=False)):
            setattr(found, name, setting_in_use(self, name))
        return found

    def _learn(
        self, rows: Rows, several: int, before: Attributes, watch: Watch | Unwatched, incremental: bool = False
    ) -> Attributes:
        """All fitted attributes; `before` are those to start from."""
        targets = self._targets(rows, several, before)
        rows = targets.rows
        targets = targets._replace(attributes={**targets.attributes, **self._structure(rows)})
        full = self.solver == "lbfgs"
        dtype = np.dtype(np.float64) if full else rows.dtype
        table = self._network_rows(targets, dtype)
        random = check_random_state(self.random_state)
        network = self._build(targets)
        params = self._start(network, before, random, dtype)
        loss = self._loss(targets.output)

        def as_of_now(flat: Array) -> Attributes:
            return {**targets.attributes, **_tensors(network, flat), **self._settle(network, flat, rows)[1]}

        if full:
            measure = PenalisedLoss(network, loss, table, float(self.alpha))
            checkpoint = self._checkpoint(targets, network, before)
            measure = measure if checkpoint is None else RecordedLoss(measure, checkpoint, params)
            found = self._minimise(network, measure, params, as_of_now)
        else:
            state = before.get("training_state_") if incremental else None
            seed = int(random.randint(2**31 - 1)) if state is None else 0
            rules = self._optimiser_rules()
            optimiser = (
                Optimiser.begin(rules, params, network.n_weights, seed)
                if state is None
                else Optimiser(rules, params, network.n_weights, state)
            )
            if self.preset is not None:
                spread = start_at_mean(
                    network.parts(params)[-1], table.Y, table.w, targets.output, "coefs_" in before
                )
                optimiser.groups = tabular_groups(network, spread)
            checkpoint = None if incremental else self._checkpoint(targets, network, before)
            found = self._descend(network, loss, (table, rows), optimiser, (watch, checkpoint, as_of_now))
            if incremental:
                found["loss_curve_"] = [*before.get("loss_curve_", ()), *found["loss_curve_"]]
                found["best_loss_"] = min(found["loss_curve_"])
        interrupted, found = found.pop("interrupted"), {**targets.attributes, **found}
        if interrupted:
            self._keep_interrupted(found)
        try:
            found = {**found, **self._proof({**found, "loss_": 0.0}, targets)}
        except KeyboardInterrupt:
            if incremental:
                raise  # there is an earlier fit
            self._keep_interrupted(found)
        if not incremental and self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)  # the fit is complete
        return found

    def _checkpoint(self, targets: PerceptronTargets, network: Network, before: Attributes) -> Checkpoint | None:
        """The file in which this fit is written down, known by its rows, layers, first weights and settings."""
        if self.checkpoint is None:
            return None
        settings = self.get_params(deep=False)
        for name in ("checkpoint", "max_iter", "verbose", "warm_start"):
            settings.pop(name)
        if not isinstance(self.random_state, (int, np.integer)):
            settings["random_state"] = "drawn"
        start = [np.asarray(part) for name in ("coefs_", "intercepts_") for part in before.get(name, ())]
        fit = {"layers": str(network), "rows": table_digest(targets.rows), "first weights": arrays_digest(*start)}
        return Checkpoint(self.checkpoint, {"model": type(self).__name__, **fit, **_words(settings)}, self._tuning)

    def _network_rows(self, targets: PerceptronTargets, dtype: np.dtype) -> Any:
        """Rows and targets for training: on the workers of a cluster, in memory, or in a temporary file."""
        # Workers get the settings alone, and not what this fit has at hand.
        plain = type(self)(**self.get_params(deep=False))
        as_table = partial(plain._table, targets._replace(rows=None))
        if not targets.rows.distributed:
            return rows_at_hand(targets.rows, as_table, dtype)
        there = RowsOnWorkers.of(targets.rows, as_table, dtype)
        return there.on_disk() if self.solver == "lbfgs" else there

    def _structure(self, rows: Rows) -> dict[str, Any]:
        """Fitted attributes that say what the network is made of, beside its weights and the settings."""
        if self.preset is None:
            return {}
        center, scale = robust_columns(rows)
        return {"center_": center, "scale_": scale}

    def _build(self, targets: PerceptronTargets) -> Network:
        """The network that the settings ask for, for these rows."""
        hidden = tuple(np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=int)).tolist())
        if self.preset is not None:
            scaling = targets.attributes["center_"], targets.attributes["scale_"]
            return tabular_network(scaling, hidden, targets.outputs, self.activation).clipped
        return perceptron(targets.rows.n_features, hidden, targets.outputs, self.activation).clipped

    def _start(self, network: Network, before: Attributes, random: Any, dtype: np.dtype) -> Array:
        """The parameters (p,) of an earlier fit, or first ones, drawn."""
        params = np.empty(network.n_parameters, dtype)
        parts = [part for part in network.parts(params) if part.W.size]
        if "coefs_" in before:
            old = [*zip(before["coefs_"], before["intercepts_"], strict=True)]
            if [W.shape for W, _ in old] != [part.W.shape for part in parts]:
                raise DataError(
                    got=f"layers {[part.W.shape for part in parts]} after a fit with {[W.shape for W, _ in old]}",
                    wanted="the layers of the earlier fit, to go on from its weights",
                    fix="Set warm_start=False, or call fit on a new estimator.",
                )
            for part, (W, b) in zip(parts, old, strict=True):
                part.W[...], part.b[...] = W, b
            return params
        pairs = zip(network.layers, network.shapes, strict=True)
        every = [(layer, one.fans) for layer, one in pairs if np.prod(one.weights) > 0]
        for part, (layer, fans) in zip(parts, every, strict=True):
            self._draw(layer, part, fans, random)
        return params

    def _draw(self, layer: Layer, part: LayerWeights, fans: tuple[int, int], random: Any) -> None:
        """Draw a layer's first weights as scikit-learn does (Glorot & Bengio 2010), or as the preset has them."""
        if self.preset is not None:
            draw_tabular(layer, part, random)
            return
        bound = math.sqrt((2.0 if self.activation == "logistic" else 6.0) / sum(fans))
        part.W[...] = random.uniform(-bound, bound, part.W.shape)
        part.b[...] = random.uniform(-bound, bound, part.b.shape)

    def _minimise(self, network: Network, measure: PenalisedLoss, params: Array, as_of_now: Any) -> dict[str, Any]:
        limits = FullBatchLimits(float(self.tol), self.max_iter, self.max_fun)
        with self._watch.loop("L-BFGS", self.max_iter, as_of_now) as watch:
            end = minimise(measure, params, limits, watch)
        return {
            **_tensors(network, end.params),
            "n_iter_": end.n_iter,
            "history_": end.history,
            "interrupted": end.interrupted,
        }

    def _unlimited_words(self) -> str:
        if setting_in_use(self, "activation") not in ("relu", "leaky_relu"):
            return "no step along a line found less: scale the columns (StandardScaler)"
        return (
            "no step along a line found less, as at a kink of a ReLU, where no gradient need be small: "
            "scale the columns (StandardScaler), or take 'tanh' or 'gelu', which have no kinks"
        )

    def _optimiser_rules(self) -> OptimiserRules:
        return OptimiserRules(
            self.solver, float(self.learning_rate_init), self.learning_rate, float(self.momentum),
            bool(self.nesterovs_momentum), float(self.power_t), float(self.beta_1), float(self.beta_2),
            float(self.epsilon), float(self.alpha), math.inf if self.clip_norm is None else float(self.clip_norm),
        )  # fmt: skip

    def _loss(self, output: str) -> OutputLoss:
        """The loss of scores, by its name."""
        return OUTPUT_LOSSES[output]

    def _descend(
        self,
        network: Network,
        loss: OutputLoss,
        data: tuple[Any, Rows],
        optimiser: Optimiser,
        reports: tuple[Any, Checkpoint | None, Any],
    ) -> dict[str, Any]:
        """Train in minibatches; reports go to a watch, a checkpoint and whoever wants attributes as of now."""
        (table, rows), (watch, checkpoint, as_of_now) = data, reports
        incremental, score = isinstance(watch, Unwatched), None
        if self.early_stopping:
            table, held = self._split(table, loss, optimiser.seed)
            score = partial(self._score_of, network, loss, held, rows)
        rules = EpochRules(
            self._batch(len(table)), bool(self.shuffle), self.max_iter, float(self.tol), self.n_iter_no_change,
            incremental, checkpoint,
        )  # fmt: skip
        if incremental:
            end = train(network, loss, table, optimiser, rules, watch, score)
        else:
            with watch.loop("epochs", self.max_iter, as_of_now) as inner:
                end = train(network, loss, table, optimiser, rules, inner, score)
        interrupted = end.interrupted
        try:
            settled = {} if interrupted else self._settle(network, end.params, rows)[1]
        except KeyboardInterrupt:
            if incremental:
                raise
            interrupted = True
        if interrupted:
            settled = self._settle_at_once(network, end.params, table)
        return {
            **_tensors(network, end.params),
            **settled,
            "training_state_": end.state,
            "loss_curve_": end.losses,
            "best_loss_": min(end.losses, default=math.inf) if score is None else None,
            "validation_scores_": None if score is None else end.scores,
            "best_validation_score_": None if score is None else end.best_score,
            "n_iter_": len(end.losses),
            "interrupted": interrupted,
        }

    def _settle_at_once(self, network: Network, flat: Array, table: Any) -> Attributes:
        """The same attributes within a moment, if need be from some of the rows: `sampled` is then their number."""
        return {}

    def _settle(self, network: Network, flat: Array, rows: Rows) -> tuple[Network, Attributes]:
        """The network as it answers once it is fitted, and attributes that follow from weights and rows."""
        return network, {}

    def _score_of(self, network: Network, loss: OutputLoss, held: NetworkRows, rows: Rows, flat: Array) -> float:
        """How good the network with these parameters is for rows held out."""
        network, parts = self._settle(network, flat, rows)[0], network.parts(flat)
        scores = np.concatenate([network.scores(parts, dense_as(some.X, flat.dtype)) for some in held.pieces()])
        return self._validation_score(loss, scores, held.Y, held.w)

    def _batch(self, rows: int) -> int:
        if isinstance(self.batch_size, str):
            return min(self._usual_batch, rows)
        if self.batch_size > rows:
            warn_caller(f"Got batch_size={self.batch_size} for {rows} rows: every minibatch is all of them.")
        return min(self.batch_size, rows)

    def _split(self, table: Any, loss: OutputLoss, seed: int) -> tuple[Any, NetworkRows]:
        """Rows to learn from, and rows for validation; of every class its share."""
        kinds = self._strata(loss, table.Y)
        split = {"test_size": self.validation_fraction, "random_state": seed, "stratify": kinds}
        try:
            learnt, held = train_test_split(np.arange(len(table)), **split)
        except ValueError as error:
            raise DataError(
                got=f"early_stopping with {len(table)} rows, too few to hold some back ({error})",
                wanted="rows of every class on both sides",
                fix="Increase 'validation_fraction' or the size of your dataset, or set early_stopping=False.",
            ) from error
        if len(held) < 2:
            raise DataError(
                got=f"{len(held)} rows for validation", wanted="at least 2",
                fix="The validation set is too small. Increase 'validation_fraction' or the size of your dataset.",
            )  # fmt: skip
        validation = table.part(np.sort(held))
        return table.part(np.sort(learnt)), validation if isinstance(
            validation, NetworkRows
        ) else validation.on_disk()

    def _strata(self, loss: OutputLoss, Y: Array) -> Array | None:
        """The groups of which each has its share of validation rows; None for none."""
        return None

    def _proof(self, found: dict[str, Any], targets: PerceptronTargets) -> dict[str, Any]:
        """The loss of the fitted weights by this room's code, and what the checker makes of it by its own."""
        state = type(self)(**self.get_params(deep=False))
        for name, value in found.items():
            setattr(state, name, value)
        state.loss_ = float(state._objective_of(targets).total)
        tol = min(float(self.tol), 1e-2)
        return {"loss_": state.loss_, "certificate_": certified(self._certify, state._claim(), targets.rows, tol)}

    def _certify(self, claim: NetworkClaim, rows: Rows, tol: float) -> Certificate:
        return certify_perceptron(claim, rows, tol)

    def _claim(self) -> NetworkClaim:
        """What the checker reads of a fitted network."""
        return read_perceptron(self)

    # Going on -----------------------------------------------------------------------------------------------------

    def _go_on(self, X: Any, y: Any, sample_weight: Any, several: int, known: Attributes) -> Any:
        """One epoch on these rows, from where the last fit or epoch ended."""
        if self.early_stopping:
            raise DataError(got="early_stopping=True in partial_fit", wanted="False",
                            fix="partial_fit does not support early_stopping=True.")  # fmt: skip
        if self.preset is not None:
            raise DataError(
                got=f"preset={self.preset!r} in partial_fit",
                wanted="fit, or preset=None",
                fix="It scales columns by the quartiles of all rows, which partial_fit does not see.",
            )
        first = not hasattr(self, "coefs_")
        before = {**known, **({} if first else {k: v for k, v in vars(self).items() if k.endswith("_")})}
        with self._all_or_nothing(first):
            self._check_settings()
            rows = self._rows_to_fit(X, y, sample_weight, reset=first, targets=several)
            attributes = self._learn(rows, several, before, Unwatched(), incremental=True)
        self.__dict__.update(attributes)
        return self

    # What a fitted perceptron says ----------------------------------------------------------------------------

    def summary(self) -> Network:
        """The list of layers, which prints with shapes and counts of parameters."""
        check_is_fitted(self)
        return self._listed_network()

    @property
    def n_layers_(self) -> int:
        """Layers, input and output among them."""
        check_is_fitted(self)
        return len(self.coefs_) + 1

    @property
    def n_outputs_(self) -> int:
        """Scores of a row."""
        check_is_fitted(self)
        return len(self.intercepts_[-1])

    @property
    def out_activation_(self) -> str:
        """What makes answers of scores."""
        check_is_fitted(self)
        return OUTPUT_LOSSES[self._output()].name

    @property
    def t_(self) -> int:
        """Rows that minibatches have shown so far."""
        check_is_fitted(self)
        return self.training_state_.rows if hasattr(self, "training_state_") else 0

    @abstractmethod
    def _output(self) -> str:
        """The loss of scores, from settings and attributes."""

    def _listed_network(self) -> Network:
        """The network layer by layer, from settings and attributes."""
        hidden = tuple(len(b) for b in self.intercepts_[:-1] if b.ndim == 1)
        outputs, activation = len(self.intercepts_[-1]), setting_in_use(self, "activation")
        if self.preset is not None:
            return tabular_network((self.center_, self.scale_), hidden, outputs, activation)
        return perceptron(len(self.coefs_[0]), hidden, outputs, activation)

    def _fitted_network(self) -> Network:
        """The same in fewer passes over memory, as it answers."""
        return self._listed_network().clipped

    def _network(self) -> tuple[Network, list[LayerWeights]]:
        if "coefs_" not in vars(self):  # else it is fitted: scikit-learn's question takes a while
            check_is_fitted(self)
        network = self._fitted_network()
        return network, network.tensors(self.coefs_, self.intercepts_)

    def _scores(self, X: Any) -> Array:
        """Scores (n, k) of rows."""
        network, parts = self._network()
        return self._rows(X).map(partial(_block_scores, network, parts))

    def _objective_of(self, targets: PerceptronTargets) -> Objective:
        network, parts = self._network()
        exact = [LayerWeights(part.W.astype(np.float64), part.b.astype(np.float64)) for part in parts]
        sums = targets.rows.sum(partial(_block_loss, self, network, exact, targets._replace(rows=None)))
        adamw = setting_in_use(self, "solver") == "adamw"
        alpha = 0.0 if adamw else float(setting_in_use(self, "alpha"))
        penalty = 0.5 * alpha * sum(float((part.W**2).sum()) for part in exact) / sums[1]
        return Objective(sums[0] / sums[1] + penalty, sums[0] / sums[1], penalty)


def _tensors(network: Network, flat: Array) -> dict[str, list[Array]]:
    """The flat vector as scikit-learn's attributes, arrays of their own."""
    parts = [part for part in network.parts(flat.copy()) if part.W.size]
    return {"coefs_": [part.W.copy() for part in parts], "intercepts_": [part.b.copy() for part in parts]}


def _words(settings: dict[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in settings.items()}


def _block_scores(network: Network, parts: list[LayerWeights], block: Block) -> Array:
    """The scores of a block's rows; refused where one overflows, because no answer could be made of it."""
    dtype = parts[0].W.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        scores = network.scores(parts, dense_as(block.X, dtype))
    finite = np.isfinite(scores)
    if not finite.all():
        raise NotANumberError(
            got=f"row {block.start + int((~finite).any(axis=1).argmax())}, whose scores overflow in {dtype}",
            wanted="rows whose numbers are about as large as those that the network learnt from",
            fix="Drop such rows, or scale the columns before fit and predict alike.",
        )
    return scores


def _block_loss(
    model: MultilayerPerceptron, network: Network, parts: list[LayerWeights], targets: PerceptronTargets, block: Block
) -> Array:
    """The summed loss of a block's rows with a positive weight, and their weight (2,)."""
    used = block.w > 0
    assert block.y is not None
    scores = network.scores(parts, dense_as(block.X[used], np.dtype(np.float64)))
    losses = (
        model._in_use()._loss(targets.output).values(scores, model._table(targets, block.y[used]).astype(np.float64))
    )
    return np.array([block.w[used] @ losses, block.w[used].sum()])
