"""Questions about a network's robustness as VNN-LIB files, which other provers answer."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from certifit.checkers.neural_network.network_loss import network_scores
from certifit.checkers.neural_network.robustness import read_network
from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.files.atomic_file import write_atomically


def save_vnnlib(model: Any, x: Any, eps: float, path: str | os.PathLike[str]) -> None:
    """Write the question whether any row within eps of x, number by number, can get another class than x.

    Provers such as alpha,beta-CROWN answer it for the network of `save_onnx(model, …, scores=True)`: `unsat` proves
    that the class cannot change, `sat` comes with a row that changes it. Scores may be probabilities just as well,
    since their order is all that is asked about.

    Parameters
    ----------
    model : fitted MLPClassifier or ConvNetClassifier, scikit-learn's MLPClassifier, or network read by `load_onnx`
    x : one row (d,), or one image
    eps : at least 0
    path : where to write, by custom with the ending .vnnlib

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import MLPClassifier, save_vnnlib
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MLPClassifier((8,), max_iter=20, random_state=0).fit(X, y)
    >>> save_vnnlib(model, X[0], 0.1, "first.vnnlib")  # doctest: +SKIP
    """
    Setting(float, least=0, below=np.inf).check("eps", eps)
    claim = read_network(model)
    row = np.asarray(x, dtype=np.float64).ravel()
    if len(row) != model.n_features_in_ or not np.isfinite(row).all():
        raise DataError(got=f"a row of {len(row)} numbers", wanted=f"{model.n_features_in_} finite ones")
    if claim.output not in ("softmax", "logistic") or (claim.output == "logistic" and claim.outputs > 1):
        raise DataError(got=f"a {type(model).__name__}", wanted="a network of classes, one for each row")
    scores = network_scores(claim, row[None])[0]
    scores = np.array([-scores[0], scores[0]]) if len(scores) == 1 else scores
    chosen, k = int(scores.argmax()), len(scores)
    lines = [f"; Can a row within {eps!r} of this one get another class than number {chosen}?"]
    lines += [f"(declare-const X_{j} Real)" for j in range(len(row))]
    lines += [f"(declare-const Y_{j} Real)" for j in range(k)]
    for j, value in enumerate(row.tolist()):
        lines += [f"(assert (>= X_{j} {_decimal(value - eps)}))", f"(assert (<= X_{j} {_decimal(value + eps)}))"]
    others = " ".join(f"(and (>= Y_{j} Y_{chosen}))" for j in range(k) if j != chosen)
    lines.append(f"(assert (or {others}))")
    write_atomically(path, "\n".join([*lines, ""]).encode())


def _decimal(value: float) -> str:
    """A number without an exponent, which some readers do not know."""
    return np.format_float_positional(value, trim="0")
