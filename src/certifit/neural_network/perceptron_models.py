"""Multi-layer perceptrons for classes and for amounts, certified."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from certifit.checkers.neural_network.adapter import LOSS
from certifit.checkers.neural_network.presets import PRESET
from certifit.core import Attributes, Objective
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.neural_network.multilayer_perceptron import MultilayerPerceptron, PerceptronTargets, target_width
from certifit.neural_network.network_classifier import NetworkClassifier, learns_in_minibatches
from certifit.neural_network.output_losses import OutputLoss
from certifit.rows import Array, Rows


class MLPClassifier(NetworkClassifier):
    """A multi-layer perceptron for classes.

    Parameters
    ----------
    hidden_layer_sizes : whole numbers, default=(100,)
        Units of each hidden layer.
    activation : 'relu', 'identity', 'logistic', 'tanh', 'leaky_relu' or 'gelu'
        The function between layers.
    solver : 'adam', 'adamw', 'sgd' or 'lbfgs'
        'lbfgs' minimises over all rows at once and proves that the gradient is small; the others learn in
        minibatches. 'adamw' takes alpha off the weights at every step in place of a penalty.
    alpha : float, default=0.0001
        Strength of the penalty alpha/2 |W|², of all rows together; biases have none.
    batch_size : int or 'auto'
        Rows of a minibatch; 'auto': 200, or all.
    learning_rate : 'constant', 'invscaling', 'adaptive', 'cosine', 'step', 'warm_up' or 'flat_cosine'
        How the rate changes from epoch to epoch. 'adaptive' is divided by five when nothing improves; 'cosine' falls
        to 0 over max_iter epochs, after a linear rise ('warm_up') or after half of them ('flat_cosine'); 'step' is
        divided by ten after half and after three quarters.
    learning_rate_init : float, default=0.001
    power_t : float, default=0.5
        The power of the rows seen by which 'invscaling' divides.
    max_iter : int, default=200
        Most epochs, or steps of 'lbfgs'.
    shuffle : bool, default=True
        Whether rows are put in another order in every epoch.
    random_state : int, RandomState or None
        Draws first weights, orders of rows and validation rows.
    tol : float, default=1e-4
        Minibatches: the fit ends when the loss, or the validation score, has not improved by this for
        n_iter_no_change epochs. 'lbfgs': it ends when no entry of the gradient is larger.
    verbose : accepted; progress is shown by callbacks (`ProgressBar`)
    warm_start : bool, default=False
        Whether fit starts from the weights that are there.
    momentum, nesterovs_momentum : float, bool
        Of 'sgd'.
    early_stopping : bool, default=False
        Whether validation rows say when to end; the weights with their best score are then taken.
    validation_fraction : float in (0, 1), default=0.1
    beta_1, beta_2, epsilon : float
        Of 'adam' and 'adamw'.
    n_iter_no_change : int, default=10
    max_fun : int, default=15000
        Most evaluations of the loss by 'lbfgs'.
    class_weight : dict, 'balanced' or None
    clip_norm : float above 0, or None
        The slopes of a minibatch are shortened to this norm where they are longer (Pascanu et al. 2013), before the
        penalty's are added.
    label_smoothing : float in [0, 1), default=0.0
        The share of a target that is spread over all classes, so that no score need grow without end; `loss_` is that
        of these targets.
    checkpoint : path or None
        A file in which `fit` writes down where it stands, about every second: after the program was killed, the same
        call goes on from there and ends with the same bits. It is removed when the fit is complete. With
        'lbfgs' it grows by the size of all weights with every evaluation of the loss.
    preset : 'tabular' or None
        Settings that suit tables of numbers, after RealMLP (Holzmüller, Grinsztajn & Steinwart 2024): columns are
        scaled by their quartiles, smoothly clipped and embedded; every setting that is left at its default has the
        value that is good for such a network (`certifit.checkers.neural_network.presets` lists them), and dropout is
        between layers.

    Attributes
    ----------
    classes_ : (k,)
    coefs_ : list of (inputs, outputs), the weights of each layer
    intercepts_ : list of (outputs,), the biases
    loss_ : float, the objective of these weights on all rows; not there after Ctrl-C, which keeps the weights
    certificate_ : Certificate
        'stationary' with 'lbfgs', else 'exact': loss_ is what it says, and the gradient's largest entry.
    multilabel_ : bool, whether rows have any number of labels
    center_, scale_ : (d,), medians of the columns and distances of their quartiles; with preset='tabular'
    training_state_ : OptimiserState, from which partial_fit goes on; without 'lbfgs'
    n_layers_, n_outputs_, out_activation_, t_ : as in scikit-learn; they follow from the above
    n_iter_, loss_curve_, best_loss_, validation_scores_, best_validation_score_, history_ : how it went (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MLPClassifier((8,), "tanh", solver="lbfgs", alpha=1.0, max_iter=1000, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.97, model.certificate_.kind, model.certificate_.holds
    (True, 'stationary', True)
    >>> print(model.summary())
    layer  output  parameters
    Dense       8          40
    Tanh        8           0
    Dense       3          27
    all                    67
    """

    settings: ClassVar[Settings] = {**NetworkClassifier.settings, "preset": PRESET}

    def __init__(
        self, hidden_layer_sizes=(100,), activation="relu", *, solver="adam", alpha=0.0001, batch_size="auto",
        learning_rate="constant", learning_rate_init=0.001, power_t=0.5, max_iter=200, shuffle=True,
        random_state=None, tol=1e-4, verbose=False, warm_start=False, momentum=0.9, nesterovs_momentum=True,
        early_stopping=False, validation_fraction=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-8, n_iter_no_change=10,
        max_fun=15000, class_weight=None, clip_norm=None, label_smoothing=0.0, checkpoint=None,
        preset=None,
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
        self.clip_norm = clip_norm
        self.label_smoothing = label_smoothing
        self.checkpoint = checkpoint
        self.preset = preset


class MLPRegressor(RegressorMixin, MultilayerPerceptron):
    """A multi-layer perceptron for amounts, one or several for each row.

    Parameters
    ----------
    loss : 'squared_error', 'huber' or 'poisson'
        Half the squared error, the same up to a residual of 1 and linear beyond, or half the Poisson deviance of
        means exp(score); summed over targets.
    hidden_layer_sizes, activation, solver, alpha, batch_size, learning_rate, learning_rate_init, power_t, max_iter,
    shuffle, random_state, tol, verbose, warm_start, momentum, nesterovs_momentum, early_stopping,
    validation_fraction, beta_1, beta_2, epsilon, n_iter_no_change, max_fun,
    clip_norm, checkpoint, preset : as in MLPClassifier
        Validation rows are scored by R².

    Attributes
    ----------
    coefs_ : list of (inputs, outputs), the weights of each layer
    intercepts_ : list of (outputs,), the biases
    loss_ : float, the objective of these weights on all rows; not there after Ctrl-C, which keeps the weights
    certificate_ : Certificate
        'stationary' with 'lbfgs', else 'exact': loss_ is what it says, and the gradient's largest entry.
    center_, scale_ : (d,), medians of the columns and distances of their quartiles; with preset='tabular'
    training_state_ : OptimiserState, from which partial_fit goes on; without 'lbfgs'
    n_layers_, n_outputs_, out_activation_, t_ : as in scikit-learn; they follow from the above
    n_iter_, loss_curve_, best_loss_, validation_scores_, best_validation_score_, history_ : how it went (diagnostic)

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MLPRegressor
    >>> x = np.linspace(-2, 2, 200)[:, None]
    >>> model = MLPRegressor("squared_error", (10,), "tanh", solver="lbfgs", max_iter=5000, random_state=0)
    >>> round(model.fit(x, np.sin(2 * x[:, 0])).score(x, np.sin(2 * x[:, 0])), 2)
    1.0
    """

    target = "numbers"
    settings: ClassVar[Settings] = {**MultilayerPerceptron.settings, "loss": LOSS, "preset": PRESET}
    differences: ClassVar[dict[str, str]] = {
        **MultilayerPerceptron.differences,
        "loss": "Of several targets the sum; scikit-learn steps by the sum's gradient and reports the mean.",
    }

    def __init__(
        self, loss="squared_error", hidden_layer_sizes=(100,), activation="relu", *, solver="adam", alpha=0.0001,
        batch_size="auto", learning_rate="constant", learning_rate_init=0.001, power_t=0.5, max_iter=200,
        shuffle=True, random_state=None, tol=1e-4, verbose=False, warm_start=False, momentum=0.9,
        nesterovs_momentum=True, early_stopping=False, validation_fraction=0.1, beta_1=0.9, beta_2=0.999,
        epsilon=1e-8, n_iter_no_change=10, max_fun=15000, clip_norm=None, checkpoint=None,
        preset=None,
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
        self.clip_norm = clip_norm
        self.checkpoint = checkpoint
        self.preset = preset

    @available_if(learns_in_minibatches)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on for one epoch with these rows; the certificate is then about them.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        """
        return self._go_on(X, y, sample_weight, target_width(y), {})

    def _targets(self, rows: Rows, several: int, known: Attributes) -> PerceptronTargets:
        if self.loss == "poisson" and any((np.asarray(block.y)[block.w > 0] < 0).any() for block in rows):
            raise DataError(
                got="a negative amount in y with loss='poisson'", wanted="amounts of at least 0",
                fix="Use loss='squared_error' or 'huber'.",
            )  # fmt: skip
        return PerceptronTargets(rows, {}, self.loss, several)

    def _table(self, targets: PerceptronTargets, y: Array) -> Array:
        return np.asarray(y, dtype=np.float64).reshape(len(y), -1)

    def _validation_score(self, loss: OutputLoss, scores: Array, Y: Array, w: Array) -> float:
        """R², the mean of all targets."""
        rest = w @ (Y - loss.answers(scores)) ** 2
        spread = w @ (Y - w @ Y / w.sum()) ** 2
        share = rest / np.where(spread > 0, spread, 1)
        return float(np.mean(np.where(spread > 0, 1 - share, rest == 0)))

    def _output(self) -> str:
        return str(self.loss)

    def predict(self, X: Any) -> Array:
        """The predicted amount of each row (n,); of several targets (n, k)."""
        scores = self._scores(X)
        answers = np.exp(scores) if self.loss == "poisson" else scores
        return answers[:, 0] if answers.shape[1] == 1 else answers

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean loss of these rows (data term) plus the penalty."""
        several = target_width(y)
        rows = self._rows(X, y, sample_weight, target="numbers", targets=several)
        return self._objective_of(self._targets(rows, several, {}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


__all__ = ["MLPClassifier", "MLPRegressor"]
