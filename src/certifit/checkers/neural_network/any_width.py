"""How good any network with one hidden layer of ReLUs could be, of whatever width: a bound from the dual problem.

A unit with weights w and a, of penalty alpha/2 (|w|² + |a|²), can be rescaled to cost alpha |w| |a|. For slopes vᵢ of
the rows' losses that add up to 0, so that no bias of the scores gains anything, Fenchel's inequality gives

    Σ wᵢ loss(fᵢ) + penalty  >=  - Σ wᵢ loss*(vᵢ / wᵢ) + Σ over units (alpha - U(v)) |w| |a|,

where U(v) is at least |Σ vᵢ relu(w·xᵢ + b)| for every w of norm 1 and every b. Where U(v) <= alpha the last sum is no
less than 0 for any number of units. With relu(z) = (z + |z|) / 2, Σ vᵢ = 0 and ||w·xᵢ + b| - |b|| <= |w·xᵢ|,

    U(v) = ( |X'v| + sqrt(S λ) ) / 2,    S = Σ |vᵢ|,    λ the largest eigenvalue of Σ |vᵢ| (xᵢ - m)(xᵢ - m)',

for any point m, because b takes up what it shifts (Cauchy & Schwarz; the dual is Pilanci & Ergen's, 2020). Any v
gives a proof: those tried are the slopes at the fitted scores and at scores without rows, times the best factor.
Where U(v) is more than alpha, branch and bound over w (`unit_search`) finds a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, softmax, xlogy

from certifit.checkers.neural_network.adapter import perceptron_rows, read_perceptron
from certifit.checkers.neural_network.network_loss import NetworkClaim, network_scores, row_losses, target_table
from certifit.checkers.neural_network.plain_layers import PlainActivation, PlainDense
from certifit.checkers.neural_network.unit_search import searched_gain
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array


@dataclass(frozen=True)
class AnyWidthTuning:
    """What rounding may do."""

    terms: float = 1e-12  # to a sum, relative to the sizes of its terms
    gain: float = 1e-9  # to norms and eigenvalues, relative
    simplex: float = 1e-12  # to probabilities


def any_width_bound(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Bound from below the objective of every network with one hidden layer of ReLUs, of any width.

    The certificate is `bounded`: its `ratio` says how many times the best objective the model's can be at most. The
    larger the penalty, the closer it is to 1.

    Parameters
    ----------
    model : fitted MLPClassifier or MLPRegressor of certifit or scikit-learn, with one hidden layer and
        activation='relu', alpha above 0, and classes, labels or squared errors
    X, y, sample_weight : the rows that it was fitted on

    >>> from certifit import MLPClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> network = MLPClassifier((2,), solver="lbfgs", alpha=0.1, random_state=0).fit(X, y)
    >>> found = any_width_bound(network, X, y)
    >>> found.kind, found.ratio < 1.01  # no network of any width is better by a hundredth
    ('bounded', True)
    """
    claim = read_perceptron(model)
    _refuse_others(claim)
    data = perceptron_rows(model, claim, X, y, sample_weight).load()
    used = data.w > 0
    table, w = dense(data.X)[used], data.w[used]
    Y = target_table(claim, np.asarray(data.y)[used])
    scores = network_scores(claim, table)
    penalty = 0.5 * claim.alpha * sum(float((claim.weighted_layer(k).W ** 2).sum()) for k in claim.weighted)
    objective = float(w @ row_losses(claim.output, scores, Y)[0]) + penalty
    bound = max(_dual_value(claim, table, Y, w, v) for v in _slopes(claim, scores, Y, w))
    words = "no network with one hidden layer of ReLUs has a lower objective than the bound, however wide it is"
    total = float(w.sum())
    over = Check("the bound exceeds the objective by", max(0.0, bound - objective), 1e-9 * objective)
    return Certificate("bounded", words, objective / total, bound / total, checks=(over,))


def _refuse_others(claim: NetworkClaim) -> None:
    """Refuse what the bound does not speak of."""
    kinds = [type(layer) for layer in claim.layers]
    relu = kinds == [PlainDense, PlainActivation, PlainDense] and claim.layers[1] == PlainActivation("relu")
    if not relu or claim.output not in ("softmax", "logistic", "squared_error") or claim.alpha <= 0:
        raise DataError(
            got=f"{len(claim.weighted) - 1} hidden layers, the loss {claim.output!r}, a penalty of {claim.alpha:g}",
            wanted="one hidden layer of ReLUs, classes or squared errors, and a penalty above 0",
            fix="Fit with hidden_layer_sizes=(m,), activation='relu' and alpha > 0; solver='adamw' has no penalty.",
        )


def _answers(output: str, scores: Array) -> Array:
    """Probabilities or means."""
    if output == "softmax":
        return np.asarray(softmax(scores, axis=1))
    return np.asarray(expit(scores)) if output == "logistic" else scores


def _slopes(claim: NetworkClaim, scores: Array, Y: Array, w: Array) -> list[Array]:
    """Slopes (n, k) of the rows' losses, each adding up to 0: at the fitted scores, and without rows."""

    def loss(bias: Array) -> tuple[float, Array]:
        values, slopes = row_losses(claim.output, scores + bias, Y)
        return float(w @ values), w @ slopes

    bias = minimize(loss, np.zeros(Y.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9 * float(w.sum())}).x
    answers = _answers(claim.output, scores + bias)
    rest = w @ (answers - Y)
    # What is left of the sum is taken off rows in proportion to how far their answers are from 0 and 1.
    room = answers.min(axis=1) * (answers.min(axis=1) > 0) if claim.output != "squared_error" else np.ones(len(w))
    if claim.output == "logistic":
        room = (answers * (1 - answers)).min(axis=1)
    answers = answers - np.outer(room / max(float(w @ room), 1e-300), rest)
    return [w[:, None] * (answers - Y), w[:, None] * ((w @ Y) / w.sum() - Y)]


def unit_gain(X: Array, v: Array, tuning: AnyWidthTuning = AnyWidthTuning()) -> float:
    """At least |Σ vᵢ relu(w·xᵢ + b)| for every w of norm 1 and every b, for slopes v (n, k) that add up to 0."""
    size = np.linalg.norm(v, axis=1)
    total = float(size.sum())
    centred = X - (size @ X) / max(total, 1e-300)
    spread = float(np.linalg.eigvalsh((centred * size[:, None]).T @ centred)[-1])
    linear = float(np.linalg.norm(centred.T @ v, 2))
    return 0.5 * (linear + float(np.sqrt(total * max(spread, 0.0)))) * (1 + tuning.gain)


def _dual_value(claim: NetworkClaim, X: Array, Y: Array, w: Array, v: Array) -> float:
    """The best proved bound from slopes v times any factor that they allow; 0 where they allow none.

    Slopes that do not add up to 0 prove nothing: a bias of the scores would gain without end.
    """
    if np.abs(v.sum(axis=0)).max() > AnyWidthTuning().terms * float(np.abs(v).sum()):
        return 0.0
    gain = unit_gain(X, v)
    if gain > claim.alpha:  # the factor is below 1: worth some work
        gain = min(gain, searched_gain(X, v, claim.alpha))
    most = claim.alpha / max(gain, 1e-300)
    if claim.output != "squared_error":
        most = min(1.0, most)  # answers between targets and answers are probabilities
    most = min(most, 1e12)
    found = minimize_scalar(
        lambda t: -_conjugate_sum(claim.output, t * v, Y, w), bounds=(0.0, most), method="bounded"
    )
    values = [_conjugate_sum(claim.output, t * v, Y, w) for t in (float(found.x), most)]
    return max([0.0, *(value for value in values if np.isfinite(value))])


def _conjugate_sum(output: str, v: Array, Y: Array, w: Array, tuning: AnyWidthTuning = AnyWidthTuning()) -> float:
    """- Σ wᵢ loss*(vᵢ / wᵢ), less what rounding can do; minus infinity where slopes are no loss's."""
    slope = v / w[:, None]
    if output == "squared_error":
        terms = 0.5 * slope**2 + slope * Y
    else:
        p = slope + Y
        off = np.abs(p.sum(axis=1) - 1).max() if output == "softmax" else 0.0
        if max(-p.min(), p.max() - 1, off) > tuning.simplex:
            return -np.inf
        p = np.clip(p, 0.0, 1.0)
        terms = xlogy(p, p) if output == "softmax" else xlogy(p, p) + xlogy(1 - p, 1 - p)
    each = terms.sum(axis=1)
    return -float(w @ each) - tuning.terms * float(w @ np.abs(terms).sum(axis=1))
