"""Intervals and sets around predictions, from how strange rows looked to models that had not seen them.

Every row was answered for by a model of the other folds. A quantity's interval reaches as far as the k-th smallest of
those errors, k = ⌈(n + 1) coverage⌉; a set holds every class that looks no stranger than the k-th true class did. The
model itself is fitted to all rows: the coverage holds as stated where a fold's rows change its predictions little
(Barber, Candès, Ramdas & Tibshirani, Predictive inference with the jackknife+, 2021), and is not proved elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from certifit.checkers.model_selection.conformal import rows_needed, smallest_rank
from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array


def strangeness(answers: Mapping[str, Array]) -> Array:
    """How strange each class is to each row (n, k): 1 - its probability, or minus its margin."""
    if "predict_proba" in answers:
        return 1 - answers["predict_proba"]
    margin = answers["decision_function"]
    return -margin if margin.ndim == 2 else np.column_stack([margin, -margin])


def unseen_errors(y: Array, classes: Array | None, answers: Mapping[str, Array]) -> Array:
    """How strange rows looked (n,), ascending: those of y to models that had not seen them."""
    if classes is None:
        return np.sort(np.abs(y - answers["predict"]))
    own = strangeness(answers)[np.arange(len(y)), np.searchsorted(classes, y)]
    return np.sort(own)


def radius(errors: Array, coverage: float) -> float:
    """The error that so large a share of new rows stays within.

    >>> radius(np.arange(1.0, 20.0), 0.9)
    18.0
    """
    Setting(float, above=0, below=1).check("coverage", coverage)
    if len(errors) < rows_needed(coverage):
        raise DataError(
            got=f"{len(errors)} rows for a coverage of {coverage:g}", wanted=f"at least {rows_needed(coverage)}"
        )
    return float(errors[smallest_rank(len(errors), coverage) - 1])
