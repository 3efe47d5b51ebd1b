"""Multilayer perceptrons with scikit-learn's parameters, trained by minibatches or by L-BFGS on all rows.

The certificate says what is true of the weights that training ended with: their loss and gradient on the training
rows, computed anew, and that back-propagation is the gradient of that loss. No training of a network proves that no
other weights are better.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.linear_model.several_targets import only_column, target_columns
from certifit.checkers.neural_network.adapter import certify_network, plain_network, training_mask
from certifit.checkers.neural_network.perceptron import PlainPerceptron
from certifit.checkers.neural_network.robustness import BOUNDED_ACTIVATIONS, certified_radii
from certifit.core import Attributes, Estimator, Objective, Setting, Step
from certifit.core.estimator import with_callbacks
from certifit.core.settings import Settings
from certifit.exceptions import DataError, warn_caller
from certifit.neural_network.descent import Descent, DescentSettings, DescentState
from certifit.neural_network.full_batch import minimise_on_all_rows
from certifit.neural_network.layers import GELU, Dense, Layer, ReLU, Sigmoid, Tanh
from certifit.neural_network.network import Network
from certifit.neural_network.optimisers import Adam, Momentum, Optimiser, Schedule
from certifit.neural_network.output_losses import (
    HuberLoss,
    LogisticCrossEntropy,
    OutputLoss,
    PoissonLoss,
    SoftmaxCrossEntropy,
    SquaredLoss,
)
from certifit.neural_network.training import (
    GradientSums,
    TrainingRows,
    TrainingTask,
    TrainingTuning,
    input_activations,
)
from certifit.rows import Array, Block, Matrix, Rows, apply_class_weight, encode_labels

ACTIVATION_LAYERS: dict[str, Layer | None] = {
    "identity": None, "logistic": Sigmoid(), "tanh": Tanh(), "relu": ReLU(), "leaky_relu": ReLU(leak=0.01),
    "gelu": GELU(),
}  # fmt: skip
SCHEDULES = ("constant", "invscaling", "adaptive", "cosine", "step", "warm_up", "flat_cosine")


def _are_sizes(sizes: Any) -> bool:
    return isinstance(sizes, (list, tuple, np.ndarray)) and all(Setting(int, least=1).accepts(s) for s in sizes)


class _Unwatched:
    """Watches a loop for nobody."""

    def begin(self) -> None: ...

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        return False


@dataclass
class Progress:
    """What a training that goes on starts from; empty for a new one."""

    coefs: list[Array] = field(default_factory=list)
    intercepts: list[Array] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    rows_seen: int = 0
    seed: int | None = None
    optimiser: Optimiser | None = None
    epochs: int | None = None  # how many to run; None for max_iter


class MultilayerPerceptron(Estimator):
    """What perceptrons of classes and of amounts share."""

    sparse = True
    diagnostics = ("loss_curve_", "validation_scores_", "n_iter_", "t_")
    ignored = ("verbose", "max_fun")
    _tuning: ClassVar[TrainingTuning] = TrainingTuning()
    settings: ClassVar[Settings] = {
        "hidden_layer_sizes": Setting(
            int, least=1, other=_are_sizes, other_words="a list of whole numbers of at least 1"
        ),
        "activation": Setting(choices=tuple(ACTIVATION_LAYERS)),
        "solver": Setting(choices=("adam", "adamw", "sgd", "lbfgs")),
        "alpha": Setting(float, least=0, below=math.inf),
        "batch_size": Setting(int, least=1, choices=("auto",)),
        "learning_rate": Setting(choices=SCHEDULES),
        "learning_rate_init": Setting(float, above=0, below=math.inf),
        "power_t": Setting(float, least=0, below=math.inf),
        "max_iter": Setting(int, least=1),
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
        "n_iter_no_change": Setting(int, least=1, other=lambda value: value == math.inf, other_words="infinity"),
        "weight_decay": Setting(float, least=0, below=math.inf),
        "clip_norm": Setting(float, above=0, none=True),
    }

    coefs_: list[Array]
    intercepts_: list[Array]
    loss_curve_: list[float]

    # Training --------------------------------------------------------------------------------------------------

    def _loss(self, targets: int) -> OutputLoss:
        """The loss of the scores, of so many classes or columns of y."""
        raise NotImplementedError

    def _held_out_score(self, predicted: Array, held: TrainingRows) -> float:
        """How good predictions (k, n) of the rows held out are."""
        raise NotImplementedError

    def _network(self, columns: int, outputs: int) -> Network:
        sizes = self.hidden_layer_sizes
        sizes = [sizes] if isinstance(sizes, (int, np.integer)) else [*sizes]
        start = "glorot" if self.activation in ("logistic", "tanh") else "he"
        between = ACTIVATION_LAYERS[self.activation]
        hidden = [layer for size in sizes for layer in (Dense(int(size), start), between) if layer is not None]
        return Network([*hidden, Dense(outputs, "glorot")], (columns,))

    def _earlier(self, previous: Attributes) -> Progress:
        """What a warm start starts from."""
        if not self.warm_start or "coefs_" not in previous:
            return Progress()
        return Progress(previous["coefs_"], previous["intercepts_"])

    def _train(self, rows: Rows, attributes: Attributes, targets: int, progress: Progress) -> Attributes:
        """All fitted attributes, from rows whose y are codes of classes or amounts."""
        loss = self._loss(targets)
        seed = progress.seed
        if seed is None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        stops = bool(self.early_stopping) and self.solver != "lbfgs"
        mask = training_mask(rows, "classes_" in attributes, float(self.validation_fraction) if stops else None, seed)
        task = TrainingTask(self._network(rows.n_features, loss.outputs(targets)), loss, rows, mask, seed)
        held = task.held_out() if stops else None
        if task.n < 1 or (held is not None and len(held.w) < 2):
            raise DataError(
                got=f"{task.n} rows to train on and {0 if held is None else len(held.w)} to validate on",
                wanted="at least one and two",
                fix="The validation set is too small. Increase validation_fraction, or the number of rows.",
            )
        theta = self._start(task, progress)
        if self.solver == "lbfgs":
            with GradientSums(task.network, loss, np.dtype(np.float64), self._tuning) as sums:
                state = minimise_on_all_rows(
                    task, sums, theta, float(self.alpha), float(self.tol), int(self.max_iter)
                )
        else:
            with GradientSums(task.network, loss, task.dtype, self._tuning) as sums:
                state = self._descend(task, sums, theta, held, (attributes, progress))
        if state.interrupted:
            warn_caller("Training interrupted by user: the weights so far are kept, and certified.")
        return self._publish(task, state, attributes)

    def _start(self, task: TrainingTask, progress: Progress) -> Array:
        """The weights to start from: those of the last fit, or random ones."""
        if not progress.coefs:
            return task.network.initial(np.random.default_rng(task.seed), task.dtype)
        old = [(W.T, b) for W, b in zip(progress.coefs, progress.intercepts, strict=True)]
        shapes, wanted = [W.shape for W, _ in old], [each[0] for each in task.network.tensors if each]
        if shapes != wanted:
            raise DataError(
                got=f"a fitted network with weights of shapes {shapes}",
                wanted=f"{wanted}, as hidden_layer_sizes and the rows ask for",
                fix="Set warm_start=False, or fit a new model.",
            )
        given = iter(old)
        return task.network.flat([next(given) if each else () for each in task.network.tensors], task.dtype)

    def _descend(
        self, task: TrainingTask, sums: GradientSums, theta: Array, held: TrainingRows | None,
        known: tuple[Attributes, Progress],
    ) -> DescentState:  # fmt: skip
        attributes, progress = known
        settings = self._descent_settings(task, progress.epochs)
        optimiser = progress.optimiser or self._new_optimiser(task)

        def score(theta: Array) -> float:
            assert held is not None
            a = input_activations(task.network, held.X, task.dtype)
            z, _ = task.network.forward(task.network.views(theta), a)
            return self._held_out_score(task.loss.predictions(z), held)

        def as_of_now(theta: Array) -> Attributes:
            return {**attributes, **self._weights(task.network, theta)}

        state = DescentState(theta, losses=[*progress.losses], rows_seen=progress.rows_seen)
        descent = Descent(sums, optimiser, settings, None if held is None else score)
        watched = getattr(self, "_watch", None)
        context = nullcontext(_Unwatched()) if watched is None else watched.loop("epochs", settings.epochs, as_of_now)
        with context as watch:
            descent.run(state, task.windows(self._tuning), watch)
        self._optimiser = optimiser
        return state

    def _descent_settings(self, task: TrainingTask, epochs: int | None) -> DescentSettings:
        batch = 200 if self.batch_size == "auto" else int(self.batch_size)
        if self.batch_size != "auto" and batch > task.n:
            warn_caller(f"Got batch_size={batch} and {task.n} rows. It is going to be clipped to {task.n}.")
        batch = min(batch, task.n)
        steps = math.ceil(task.n / batch) * int(self.max_iter)
        return DescentSettings(
            epochs=int(self.max_iter) if epochs is None else epochs, batch=batch, rate=float(self.learning_rate_init),
            schedule=Schedule(self.learning_rate, steps, float(self.power_t)),
            adaptive=self.learning_rate == "adaptive" and self.solver == "sgd",
            alpha=0.0 if self.solver == "adamw" else float(self.alpha), clip_norm=self.clip_norm,
            shuffle=bool(self.shuffle), tol=float(self.tol), patience=self.n_iter_no_change, seed=task.seed,
        )  # fmt: skip

    def _new_optimiser(self, task: TrainingTask) -> Optimiser:
        size, dtype = task.network.size, task.dtype
        if self.solver == "sgd":
            return Momentum(size, dtype, float(self.momentum), bool(self.nesterovs_momentum))
        decay = float(self.weight_decay) if self.solver == "adamw" else 0.0
        betas = float(self.beta_1), float(self.beta_2), float(self.epsilon)
        return Adam(size, dtype, *betas, task.network.n_weights, decay)

    def _weights(self, network: Network, theta: Array) -> Attributes:
        tensors = [each for each in network.views(theta) if each]
        return {
            "coefs_": [np.ascontiguousarray(W.T) for W, _ in tensors],
            "intercepts_": [b.copy() for _, b in tensors],
        }

    def _publish(self, task: TrainingTask, state: DescentState, attributes: Attributes) -> Attributes:
        """Fitted attributes by scikit-learn's names, with what is proved of them."""
        theta = state.theta if state.best_theta is None else state.best_theta
        found = {
            **attributes, **self._weights(task.network, theta), "loss_curve_": state.losses,
            "validation_scores_": state.scores, "validation_seed_": task.seed, "t_": state.rows_seen,
            "n_iter_": len(state.losses),
        }  # fmt: skip

        def gradient(rows: Rows, net: PlainPerceptron) -> Array:
            return self._back_propagated(task, rows, net, theta)

        claim = {**self.get_params(deep=False), **found, "n_features_in_": task.rows.n_features}
        certificate = certify_network(claim, task.rows, task.mask, gradient, float(self.tol))
        slope = certificate.facts["largest slope"]
        return {
            **found, "final_loss_": certificate.objective, "largest_slope_": slope, "certificate_": certificate
        }  # fmt: skip

    def _back_propagated(self, task: TrainingTask, rows: Rows, net: PlainPerceptron, theta: Array) -> Array:
        """The gradient that back-propagation finds on some rows, in the order of the checker."""
        some = TrainingTask(task.network, task.loss, rows, np.ones(rows.n_rows, bool), 0)
        wide = theta.astype(np.float64)
        with GradientSums(task.network, task.loss, np.dtype(np.float64), self._tuning) as sums:
            (window,) = some.windows(self._tuning)()
            weight, _, gradient = sums(wide, window, slice(0, rows.n_rows), 0)
        gradient = gradient / weight
        gradient[: task.network.n_weights] += net.shrinkage * wide[: task.network.n_weights]
        tensors = [each for each in task.network.views(gradient) if each]
        return np.concatenate([*(W.T.ravel() for W, _ in tensors), *(b for _, b in tensors)])

    # What a fitted network says --------------------------------------------------------------------------------

    @property
    def n_layers_(self) -> int:
        """The number of layers, input and output among them."""
        check_is_fitted(self)
        return len(self.coefs_) + 1

    @property
    def n_outputs_(self) -> int:
        check_is_fitted(self)
        return len(self.intercepts_[-1])

    @property
    def out_activation_(self) -> str:
        """What turns the last scores into predictions."""
        check_is_fitted(self)
        return self._fitted_loss().out_activation

    @property
    def loss_(self) -> float:
        """The mean loss of the last epoch's minibatches, as in scikit-learn; `final_loss_` is that of all rows."""
        check_is_fitted(self)
        return self.loss_curve_[-1]

    @property
    def best_loss_(self) -> float | None:
        """The smallest of `loss_curve_`; None with early stopping."""
        check_is_fitted(self)
        return None if self.early_stopping else min(self.loss_curve_)

    @property
    def best_validation_score_(self) -> float | None:
        check_is_fitted(self)
        return max(self.validation_scores_) if self.early_stopping and self.validation_scores_ else None

    def _fitted_loss(self) -> OutputLoss:
        return self._loss(len(self.classes_) if hasattr(self, "classes_") else len(self.intercepts_[-1]))

    def _scores(self, X: Any) -> Array:
        """The last layer's scores (k, n), block by block."""
        return self._rows(X).map(lambda block: self._network_scores(block.X)).T

    def _network_scores(self, X: Matrix) -> Array:
        """The last layer's scores (n, k) of rows in memory."""
        network = self._network(X.shape[1], len(self.intercepts_[-1]))
        given = iter([(W.T, b) for W, b in zip(self.coefs_, self.intercepts_, strict=True)])
        tensors = [next(given) if each else () for each in network.tensors]
        return network.forward(tensors, input_activations(network, X, self.coefs_[0].dtype))[0].T

    def _objective(self, rows: Rows) -> Objective:
        """The mean loss and the penalty on rows with codes of classes or amounts."""
        mask = rows.map(lambda block: block.w) > 0
        state = {**self.get_params(deep=False), **vars(self)}
        found = certify_network(state, rows, mask, None, float(self.tol))
        net = plain_network(state, int(mask.sum()), float(rows.map(lambda block: block.w).sum()))
        return Objective(found.objective, found.objective - net.penalty, net.penalty)

    def _partial_fit(self, rows: Rows, attributes: Attributes, targets: int) -> Self:
        """Run one epoch over these rows, from where the last call ended."""
        if self.early_stopping:
            raise DataError(got="early_stopping=True", wanted="early_stopping=False in partial_fit",
                            fix="partial_fit does not support early_stopping=True.")  # fmt: skip
        progress = Progress(epochs=1)
        if "coefs_" in vars(self):
            progress = Progress(
                self.coefs_, self.intercepts_, self.loss_curve_, int(self.t_), int(self.validation_seed_),
                vars(self).get("_optimiser"), 1,
            )  # fmt: skip
        self.__dict__.update(self._train(rows, attributes, targets, progress))
        return self


def known_classes(classes: Any, before: Array | None) -> Array:
    """Every class there will be: those given in the first call to partial_fit, or those known since."""
    if classes is None:
        if before is None:
            raise DataError(
                got="no classes in the first call to partial_fit", wanted="every label there will be",
                fix="classes must be passed on the first call to partial_fit; later calls do not need it.",
            )  # fmt: skip
        return before
    known = np.unique(np.asarray(classes))
    if before is not None and not np.array_equal(known, before):
        raise DataError(
            got=f"classes={known.tolist()}", wanted=f"those of the first call to partial_fit, {before.tolist()}",
            fix="What is given is not the same as on last call to partial_fit.",
        )  # fmt: skip
    return known


def _has_minibatches(model: MultilayerPerceptron) -> bool:
    if model.solver == "lbfgs":
        raise AttributeError("partial_fit is only available for stochastic optimizers. lbfgs is not stochastic.")
    return True


class MLPClassifier(ClassifierMixin, MultilayerPerceptron):
    """A multilayer perceptron that predicts classes.

    Two classes have one score, the log-odds of the second; several have a score each, made probabilities by softmax.
    The mean cross-entropy of the rows plus α |W|² / (2 m), m the weight of a minibatch, is minimised.

    Parameters
    ----------
    hidden_layer_sizes : int or list of int
        Units of every hidden layer.
    activation : 'identity', 'logistic', 'tanh', 'relu', 'leaky_relu' or 'gelu'
    solver : 'adam', 'adamw', 'sgd' or 'lbfgs'
        'lbfgs' works on all rows at once, in float64; the others on minibatches.
    alpha : float
        Penalty on squared weights; not of 'adamw', which has `weight_decay`.
    batch_size : int or 'auto'
        Rows of a minibatch; 'auto': 200, or all.
    learning_rate : 'constant', 'invscaling', 'adaptive', 'cosine', 'step', 'warm_up' or 'flat_cosine'
        How the rate changes over max_iter epochs; 'invscaling' and 'adaptive' as in scikit-learn.
    learning_rate_init : float
    power_t : float
        Exponent of 'invscaling'.
    max_iter : int
        Epochs; iterations of 'lbfgs'.
    shuffle : bool
        Whether rows are put in a new order in every epoch.
    random_state : int, RandomState or None
    tol : float
        An epoch that lowers the loss (or raises the validation score) by less counts as no gain.
    verbose, max_fun : accepted; progress is shown by callbacks (`ProgressBar`)
    warm_start : bool
        Whether fit starts from the weights of the last one.
    momentum, nesterovs_momentum : of 'sgd'
    early_stopping : bool
        Whether rows are held out; the weights that score best on them are kept.
    validation_fraction : float
        Share of the rows held out.
    beta_1, beta_2, epsilon : of 'adam' and 'adamw'
    n_iter_no_change : int
        Epochs without a gain after which training ends.
    class_weight : dict, 'balanced' or None
    weight_decay : float
        Share of the learning rate by which 'adamw' shrinks weights at every step.
    clip_norm : float or None
        Longest gradient of a minibatch; longer ones are shortened.
    label_smoothing : float in [0, 1)
        Share of every label that is spread evenly over all classes.

    Attributes
    ----------
    classes_ : (k,)
    coefs_ : list of (in, out), the weights of every layer
    intercepts_ : list of (out,)
    final_loss_ : float, the loss of these weights on all training rows, penalty included
    largest_slope_ : float, the largest slope of that loss in any weight or bias
    loss_, best_loss_, loss_curve_ : means over the minibatches of epochs, as in scikit-learn
    validation_scores_, best_validation_score_ : with early stopping
    validation_seed_ : int, by which rows were held out and put in order
    n_iter_, t_ : epochs, and rows seen
    n_layers_, n_outputs_ : int
    out_activation_ : str
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MLPClassifier(20, solver="lbfgs", alpha=1.0, max_iter=1000, random_state=0).fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('stationary', True)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    target = "classes"
    settings: ClassVar[Settings] = {
        **MultilayerPerceptron.settings,
        "label_smoothing": Setting(float, least=0, below=1),
    }

    classes_: Array

    def __init__(
        self, hidden_layer_sizes=(100,), activation="relu", *, solver="adam", alpha=0.0001, batch_size="auto",
        learning_rate="constant", learning_rate_init=0.001, power_t=0.5, max_iter=200, shuffle=True,
        random_state=None, tol=1e-4, verbose=False, warm_start=False, momentum=0.9, nesterovs_momentum=True,
        early_stopping=False, validation_fraction=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-8, n_iter_no_change=10,
        max_fun=15000, class_weight=None, weight_decay=0.01, clip_norm=None, label_smoothing=0.0,
    ):  # fmt: skip
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.class_weight = class_weight
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.label_smoothing = label_smoothing

    def _loss(self, targets: int) -> OutputLoss:
        kind = LogisticCrossEntropy if targets == 2 else SoftmaxCrossEntropy
        return kind(float(self.label_smoothing))

    def _held_out_score(self, predicted: Array, held: TrainingRows) -> float:
        return float(accuracy_score(held.targets, predicted.argmax(axis=0), sample_weight=held.w))

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        known = previous.get("classes_") if self.warm_start else None
        labels = encode_labels(rows, known)
        weighted = apply_class_weight(labels, self.class_weight)
        return self._train(weighted, {"classes_": labels.classes}, len(labels.classes), self._earlier(previous))

    @available_if(_has_minibatches)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Self:
        """Run one epoch over these rows, from where the last call ended; the certificate is about these rows.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : array of every class there will be; needed in the first call only
        """
        first = not hasattr(self, "classes_")
        known = known_classes(classes, None if first else self.classes_)
        with self._all_or_nothing(first):
            self._check_settings()
            labels = encode_labels(self._rows_to_fit(X, y, sample_weight, reset=first), known)
            rows = apply_class_weight(labels, self.class_weight)
            return self._partial_fit(rows, {"classes_": known}, len(known))

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class (n, k)."""
        return np.ascontiguousarray(self._fitted_loss().predictions(self._scores(X)).T)

    def certified_radius(self, X: Any) -> Array:
        """The largest eps found (n,) such that no change of the columns by up to eps changes the predicted class.

        Proved row by row, by linear bounds through the layers; the true radius may be larger. Changes are in the
        units of the columns, so columns should have one scale. Not of activation='gelu'.
        """
        if self.activation not in BOUNDED_ACTIVATIONS:
            raise DataError(
                got=f"activation={self.activation!r}", wanted=f"one of {', '.join(BOUNDED_ACTIVATIONS)}"
            )  # fmt: skip
        rows = self._rows(X)
        weights, biases = ([np.asarray(t, np.float64) for t in ts] for ts in (self.coefs_, self.intercepts_))
        loss = "logistic" if len(self.classes_) == 2 else "softmax"
        net = PlainPerceptron(tuple(weights), tuple(biases), self.activation, loss, 0.0)

        def radii(block: Block) -> Array:
            X = np.asarray(block.X.toarray() if hasattr(block.X, "toarray") else block.X, np.float64)
            z = self._network_scores(X)
            classes = (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)
            parts = range(0, len(X), 64)
            return np.concatenate([certified_radii(net, X[i : i + 64], classes[i : i + 64]) for i in parts])

        return rows.map(radii)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities (n, k)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row (n,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean cross-entropy and the penalty on these rows."""
        labels = encode_labels(self._rows(X, y, sample_weight, "classes"), self.classes_)
        return self._objective(apply_class_weight(labels, self.class_weight))


class MLPRegressor(RegressorMixin, MultilayerPerceptron):
    """A multilayer perceptron that predicts amounts; y may have several columns.

    Parameters
    ----------
    loss : 'squared_error', 'huber' or 'poisson'
        'huber' is linear beyond residuals of 1; 'poisson' has a log link.
    hidden_layer_sizes, activation, solver, alpha, batch_size : as in MLPClassifier
    learning_rate, learning_rate_init, power_t, max_iter, shuffle : as in MLPClassifier
    random_state, tol, verbose, warm_start, momentum, nesterovs_momentum : as in MLPClassifier
    early_stopping, validation_fraction, beta_1, beta_2, epsilon : as in MLPClassifier
    n_iter_no_change, max_fun, weight_decay, clip_norm : as in MLPClassifier

    Attributes
    ----------
    coefs_ : list of (in, out), the weights of every layer
    intercepts_ : list of (out,)
    final_loss_ : float, the loss of these weights on all training rows, penalty included
    largest_slope_ : float, the largest slope of that loss in any weight or bias
    loss_, best_loss_, loss_curve_ : means over the minibatches of epochs, as in scikit-learn
    validation_scores_, best_validation_score_ : with early stopping
    validation_seed_ : int, by which rows were held out and put in order
    n_iter_, t_ : epochs, and rows seen
    n_layers_, n_outputs_ : int
    out_activation_ : str
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MLPRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = MLPRegressor(hidden_layer_sizes=20, activation="tanh", solver="lbfgs", max_iter=2000, random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    target = "numbers"
    settings: ClassVar[Settings] = {
        **MultilayerPerceptron.settings,
        "loss": Setting(choices=("squared_error", "huber", "poisson")),
    }

    def __init__(
        self, loss="squared_error", hidden_layer_sizes=(100,), activation="relu", *, solver="adam", alpha=0.0001,
        batch_size="auto", learning_rate="constant", learning_rate_init=0.001, power_t=0.5, max_iter=200,
        shuffle=True, random_state=None, tol=1e-4, verbose=False, warm_start=False, momentum=0.9,
        nesterovs_momentum=True, early_stopping=False, validation_fraction=0.1, beta_1=0.9, beta_2=0.999,
        epsilon=1e-8, n_iter_no_change=10, max_fun=15000, weight_decay=0.01, clip_norm=None,
    ):  # fmt: skip
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm

    def _loss(self, targets: int) -> OutputLoss:
        return {"squared_error": SquaredLoss, "huber": HuberLoss, "poisson": PoissonLoss}[self.loss]()

    def _held_out_score(self, predicted: Array, held: TrainingRows) -> float:
        return float(r2_score(held.targets, predicted.T, sample_weight=held.w))

    def _target_count(self, y: Any) -> tuple[Any, int]:
        """y, and how many columns it has: a single one is taken out of its table."""
        columns = target_columns(y)
        return (only_column(y), 1) if columns == 1 else (y, columns or 1)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of amounts (n,) or (n, targets), or the name or names of these columns in X
        sample_weight : array of non-negative row weights, or the name of a column in X
        columns : names of the columns of X to learn from; by default all but y and sample_weight
        """
        y, targets = self._target_count(y)
        return self._fit_rows(X, y, sample_weight, targets=targets)

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        return self._train(self._checked(rows), {}, _width(rows), self._earlier(previous))

    def _checked(self, rows: Rows) -> Rows:
        if self.loss == "poisson" and rows.map(_least_target).min() < 0:
            raise DataError(got="targets below 0", wanted="targets of at least 0 for loss='poisson'")
        return rows

    @available_if(_has_minibatches)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Run one epoch over these rows, from where the last call ended; the certificate is about these rows.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        """
        first = "coefs_" not in vars(self)
        y, targets = self._target_count(y)
        with self._all_or_nothing(first):
            self._check_settings()
            rows = self._checked(self._rows_to_fit(X, y, sample_weight, reset=first, targets=targets))
            return self._partial_fit(rows, {}, _width(rows))

    def predict(self, X: Any) -> Array:
        """The predicted amounts of each row (n,), or (n, targets)."""
        found = self._fitted_loss().predictions(self._scores(X))
        return found[0] if len(found) == 1 else np.ascontiguousarray(found.T)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean loss and the penalty on these rows."""
        y, targets = self._target_count(y)
        return self._objective(self._rows(X, y, sample_weight, "numbers", targets))


def _width(rows: Rows) -> int:
    """How many columns y has."""
    y = next(iter(rows)).y
    return 1 if y is None or y.ndim == 1 else y.shape[1]


def _least_target(block: Block) -> Array:
    y = np.asarray(block.y, np.float64)
    return np.where(block.w > 0, y if y.ndim == 1 else y.min(axis=1), 0.0)
