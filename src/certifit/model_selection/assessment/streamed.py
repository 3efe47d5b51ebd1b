"""Assessment of rows that stay where they are: files and Dask data, split by a hash of the row number."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from certifit.core import Setting
from certifit.core.config import config
from certifit.core.estimator import Estimator
from certifit.exceptions import DataError
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.plans import AssessmentPlan
from certifit.model_selection.splitting.hashed_split import HashedKFold, HashedSplit
from certifit.rows import Rows, as_rows


def is_streamed(X: Any) -> bool:
    """Say whether a table is a path, `Rows` or Dask's, and is read in blocks."""
    return isinstance(X, str | PathLike | Rows) or type(X).__module__.partition(".")[0].startswith("dask")


def hold_out_streamed(
    estimator: Any, X: Any, y: Any, method: Any, options: dict[str, Any]
) -> tuple[AssessedProblem, AssessmentPlan, list[UnseenAnswers]]:
    """Fit copies to the rows that a hash chooses, and keep what they answer for the others, block by block."""
    if not isinstance(estimator, Estimator) or not (is_classifier(estimator) or is_regressor(estimator)):
        raise DataError(
            got=f"a {type(estimator).__name__} for rows that are read in blocks",
            wanted="an estimator of certifit's that classifies or predicts, which takes them",
            fix="Load the table to assess other estimators.",
        )
    known = {"auto": "test_size", "holdout": "test_size", "k-fold": "n_splits"}
    if not isinstance(method, str) or method not in known or set(options) - {known[method], "salt"}:
        raise DataError(
            got=f"method={method!r} with {', '.join(options) or 'no options'} for rows that are read in blocks",
            wanted="method='holdout' with test_size and salt, or 'k-fold' with n_splits and salt",
        )
    classes = is_classifier(estimator)
    rows = as_rows(X, y, target="classes" if classes else "numbers")
    salt = options.get("salt", 0)
    if method == "k-fold":
        folds = HashedKFold(options.get("n_splits", 5), salt)
        sides, splits = [*folds.split_rows(rows)], [*folds.split(rows)]
        chosen: dict[str, Any] = {"n_splits": folds.n_splits}
    else:
        Setting(float, above=0, below=1).check("test_size", options.get("test_size", 0.25))
        cut = HashedSplit(options.get("test_size", 0.25), salt)
        sides, splits = [cut.split_rows(rows)], [*cut.split(rows)]
        chosen = {"test_size": cut.test_size}
    target = np.concatenate([np.asarray(block.y) for block in rows])
    problem = AssessedProblem(estimator, rows, target, np.unique(target) if classes else None)
    held_out = []
    for (train, test), (fitted_rows, tested_rows) in zip(sides, splits, strict=True):
        with config(certify="audit"):  # its answers are kept, not the model
            fitted = clone(estimator).fit(train)
        answers = {"predict": np.asarray(fitted.predict(test))}
        for name in ("predict_proba", "decision_function"):
            if classes and hasattr(fitted, name):
                answers[name] = np.asarray(getattr(fitted, name)(test))
        held_out.append(UnseenAnswers(tested_rows, len(fitted_rows), answers))
    why = "rows are read in blocks, and a hash of the row number chooses those to test"
    return problem, AssessmentPlan("k-fold" if method == "k-fold" else "holdout", why, splits, chosen), held_out
