"""How much of a model's error is bias, and how much changes with the rows that it happens to be fitted to.

Models are fitted to rows drawn with replacement; each row is answered by those that did not draw it. Squared errors
are (y - mean answer)² plus the variance of answers (Geman, Bienenstock & Doursat, Neural networks and the
bias/variance dilemma, 1992); what the target itself varies by is part of the first. The share of wrong classes is
bias² plus variance, ½ Σ (1[y = k] - p_k)² + ½ (1 - Σ p_k²), with p_k the share of models that answer k (Kohavi &
Wolpert, Bias plus variance decomposition for zero-one loss functions, 1996).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.checkers.model_selection.bias_variance import DecompositionClaim, certify_decomposition, decompose
from certifit.core import Certificate, Setting
from certifit.core.config import config
from certifit.exceptions import DataError
from certifit.model_selection.assessment.assess import make_problem
from certifit.model_selection.assessment.held_out import take_rows
from certifit.model_selection.bootstrap.replicates import drawn_counts
from certifit.model_selection.result_table import ResultTable, TabledResult


@dataclass(frozen=True, repr=False)
class ErrorParts(TabledResult):
    """Bias and variance of a learner on one table; prints as a table."""

    picture = "plot_error_parts"

    model: str
    claim: DecompositionClaim
    certificate: Certificate

    @property
    def bias(self) -> float:
        """Return the squared bias, with what the target itself varies by."""
        return self.claim.bias

    @property
    def variance(self) -> float:
        """Return the variance over rows that may have been drawn."""
        return self.claim.variance

    def table(self) -> ResultTable:
        """Return the error and its two parts."""
        error = self.bias + self.variance
        kind = "squared errors" if self.claim.classes is None else "share of wrong classes"
        columns: dict[str, Any] = {
            "part": ["bias² and noise", "variance", "error"],
            "value": [self.bias, self.variance, error],
            "share": [self.bias / error if error else np.nan, self.variance / error if error else np.nan, 1.0],
        }
        note = (
            f"{len(self.claim.answers)} models, each fitted to rows drawn with replacement and asked about others, "
            f"so to 63 % of the rows. No interval is claimed: rows are also what models are fitted to."
        )
        return ResultTable(f"{self.model}: {kind}", columns, (note,))


def bias_and_variance(
    estimator: Any, X: Any, y: Any, *, n_replicates: int = 50, random_state: int = 0
) -> ErrorParts:  # fmt: skip
    """Say how much of an estimator's error is bias, and how much changes with the rows that it is fitted to.

    Much variance: more rows, a stronger penalty or a bag will help. Much bias: a richer model or other columns will.

    Parameters
    ----------
    estimator : a classifier or a regressor of any library, not fitted
    X, y : table and target, in memory
    n_replicates : models that are fitted, each to rows drawn with replacement
    random_state : a whole number from which the rows drawn follow

    Returns
    -------
    ErrorParts : `bias`, `variance`; prints as a table

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = bias_and_variance(DecisionTreeClassifier(random_state=0), X[:, :2], y)
    >>> 0.1 < found.bias < 0.3, found.certificate.holds
    (True, True)
    """
    Setting(int, least=10).check("n_replicates", n_replicates)
    Setting(int, least=0).check("random_state", random_state)
    problem = make_problem(estimator, X, y, {})
    n = len(problem.y)
    answers = np.full((n_replicates, n), np.nan)
    for first, counts in drawn_counts(n, random_state, n_replicates, 1):
        rows, left = np.repeat(np.arange(n), counts[0]), np.flatnonzero(counts[0] == 0)
        if not len(left):
            continue
        try:
            with config(certify="audit"):  # its answers are kept, not the model
                fitted = problem.fit(rows)
            said = np.asarray(fitted.predict(take_rows(problem.X, left)))
        except Exception as error:
            raise DataError(
                got=f"{type(estimator).__name__} that fails on replicate {first + 1} of {n_replicates} "
                f"({type(error).__name__}: {error})",
                wanted="an estimator that can be fitted to any rows drawn",
            ) from error
        answers[first, left] = said if problem.classes is None else np.searchsorted(problem.classes, said)
        if not np.isfinite(answers[first, left]).all():
            raise DataError(got=f"replicate {first + 1} with answers that are no numbers", wanted="finite ones")
    target = problem.y if problem.classes is None else np.searchsorted(problem.classes, problem.y)
    claim = DecompositionClaim(answers, target, problem.classes, np.nan, np.nan, random_state)
    bias, variance = decompose(claim)
    claim = replace(claim, bias=bias, variance=variance)
    return ErrorParts(type(estimator).__name__, claim, certify_decomposition(claim))
