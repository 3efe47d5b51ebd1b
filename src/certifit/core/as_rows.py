"""Any table as `Rows`. The only place where input is validated: dtype, shape, finite, names, weights, targets."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from certifit.core.errors import DataError
from certifit.core.rows import Array, ArrayRows, Block, Rows
from certifit.core.threads import parallel_map

Target = Literal["none", "classes", "numbers"]


def as_rows(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    estimator: BaseEstimator | None = None,
    target: Target = "none",
    sparse: bool = False,
    reset: bool = True,
) -> Rows:
    """Turn a table into rows.

    Parameters
    ----------
    X : NumPy array, SciPy sparse matrix, pandas or polars frame (also lazy), Arrow table or dataset,
        path to a Parquet file, a directory of them or a CSV file, Dask array or frame
    y, sample_weight : arrays, or names of columns of X
    estimator : whose `n_features_in_` and `feature_names_in_` are set (`reset`) or compared
    target : what y must be
    sparse : whether sparse X is accepted

    >>> rows = as_rows([[1, 2], [3, 4], [5, 6]])
    >>> rows.n_rows, rows.n_features, rows.dtype
    (3, 2, dtype('float64'))
    """
    if isinstance(X, Rows):
        return X
    return _array_rows(X, y, sample_weight, estimator, target, sparse, reset)


def _array_rows(
    X: Any,
    y: Any,
    sample_weight: Any,
    estimator: BaseEstimator | None,
    target: Target,
    sparse: bool,
    reset: bool,
) -> ArrayRows:
    estimator = BaseEstimator() if estimator is None else estimator
    options: dict[str, Any] = {
        "accept_sparse": "csr" if sparse else False,
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": False,  # checked below, on all threads
        "reset": reset,
    }
    if target == "none":
        X, y = validate_data(estimator, X, **options), None
    else:
        X, y = validate_data(estimator, X, y, y_numeric=target == "numbers", **options)
        if target == "classes":
            check_classification_targets(y)
    if sp.issparse(X):
        X.sum_duplicates()
    names = getattr(estimator, "feature_names_in_", None)
    rows = ArrayRows(X, y, check_weights(sample_weight, X.shape[0]), names)
    parallel_map(check_finite, rows)
    return rows


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Row weights as float64 (n_rows,): finite, none negative, not all zero. None means 1 for every row."""
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    w = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", ensure_min_samples=0
    )
    if w.ndim != 1:
        raise DataError(got=f"sample_weight with {w.ndim} dimensions", wanted="one number per row (1-D)")
    if len(w) != n_rows:
        raise DataError(got=f"sample_weight of {len(w)} entries", wanted=f"one for each of the {n_rows} rows")
    if (w < 0).any():
        raise DataError(
            got=f"negative sample_weight ({w.min():g} in row {int(w.argmin())})",
            wanted="weights of at least 0",
            fix="A weight says how many times a row counts.",
        )
    if not (w > 0).any():
        raise DataError(got="sample_weight that is zero for every row", wanted="at least one positive weight")
    return w


def check_finite(block: Block) -> None:
    """Refuse NaN and infinities, naming the first one."""
    values = block.X.data if sp.issparse(block.X) else block.X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(block.X):
        entry = int(np.flatnonzero(bad)[0])
        row, column = int(np.searchsorted(block.X.indptr, entry, "right")) - 1, int(block.X.indices[entry])
        value = values[entry]
    else:
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = values[row, column]
    raise DataError(
        got=f"{'NaN' if np.isnan(value) else 'infinity'} in row {block.start + row}, column {column} of X",
        wanted="finite numbers (no NaN, no inf)",
        fix="Drop these rows, fill the holes (for instance with sklearn.impute.SimpleImputer), "
        "or use a model that takes missing values.",
    )
