"""Honest fits: every estimator on tables of all kinds; its fit and its audit must say the same, or refuse in words.

A case is one fit. It may raise a ValueError of certifit's or scikit-learn's own making, with a sentence; it may warn
that its certificate does not hold, and of little else; it must leave the data as they were, nothing half-fitted
after an error, and a certificate that `audit` writes again from the data: same kind, same verdict, same objective.
"""

from __future__ import annotations

import re
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning

from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.random_models import RandomModel, random_model
from benchmarks.hunts.random_tables import RandomTable, as_source, nasty_table, random_table
from certifit import RBF, CertificateWarning, NoSolutionError, audit
from certifit.core import Certificate
from certifit.discriminant_analysis.quadratic import SingularClassWarning
from certifit.exceptions import InseparableWarning
from certifit.linear_model.glm.glm import CollinearWarning
from certifit.manifold.neighbours import DisconnectedWarning
from certifit.svm.kernel.kernel_machine import IndefiniteKernelWarning
from certifit.svm.nu.nu_training import LargeNuWarning, SmallNuWarning

ALLOWED = (
    ConvergenceWarning,
    CollinearWarning,
    DisconnectedWarning,
    IndefiniteKernelWarning,
    InseparableWarning,
    LargeNuWarning,
    SingularClassWarning,
    SmallNuWarning,
    UndefinedMetricWarning,  # scikit-learn's, of folds with one row
)  # a CertificateWarning is a ConvergenceWarning
# What feature selection says of columns, scikit-learn's splitters and ours of classes with fewer rows than folds,
# kernel machines of weights that LIBSVM takes for 0, and convolutions of images that nobody has scaled.
SAYINGS = (
    "constant, with score 0",
    "The least populated class in y",
    "folds lack a class",
    "Rows of negative weight",
    "Got images with",
)
PRIVATE = re.compile(r"(?<![\w.'\"])_[a-z]\w*|\b\w+Error\b|NoneType|object at 0x")
LONGEST = 400


def try_fit(case: HuntCase) -> None:
    rng = case.rng
    chosen = random_model(rng)
    table = nasty_table(rng, chosen.kind) if rng.random() < 0.7 else random_table(rng, chosen.kind, 60, 6)
    n, d = table.shape
    model = chosen.make(rng if rng.random() < 0.6 else None, n, d)
    if "max_time" in model.get_params():
        model.set_params(max_time=5.0)
    with tempfile.TemporaryDirectory() as folder:
        form, X = as_source(rng, table, chosen.takes_sparse, Path(folder))
        _one_fit(case, chosen, model, table, X, form)


def _one_fit(case: HuntCase, chosen: RandomModel, model: Any, table: RandomTable, X: Any, form: str) -> None:
    words = f"{model} on {table} as {form}, target {chosen.kind}"
    case.note(words)
    case.count("fits")
    data = (X, table.y) + ((table.weight,) if chosen.takes_weights else ())
    before = [np.array(a, copy=True) for a in (table.X, table.y, table.weight) if a is not None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(*data)
        except Exception as error:
            _check_refusal(case, words, model, error)
            return
        finally:
            after = [np.asarray(a) for a in (table.X, table.y, table.weight) if a is not None]
            if any(
                not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(before, after, strict=True)
            ):
                case.find("data changed by a fit", model, words)
    strange = [
        w
        for w in caught
        if not issubclass(w.category, ALLOWED) and not any(words in str(w.message) for words in SAYINGS)
    ]
    if strange:
        case.find("strange warning", model, f"{words}: {strange[0].category.__name__}: {strange[0].message}")
    if not np.isfinite(np.asarray(table.X, dtype=float)).all() and not (model.missing and "nan" in table.words):
        case.find("NaN or infinity was taken", model, words)
    case.count("fits that hold" if model.certificate_.holds else "fits that warn")
    timed = "max_time" in model.get_params()
    exact = model.certificate_.kind in ("exact", "greedy") and not hasattr(model, "estimator_") and not timed
    if exact and not model.certificate_.holds:  # there is no loop that may have stopped early
        case.find("an exact fit fails its certificate", model, f"{words}: {model.certificate_.failures()}")
    own = f"{type(model).__name__}: "  # a model of models lets those speak for themselves
    if model.certificate_.holds == any(w.category is CertificateWarning and own in str(w.message) for w in caught):
        case.find("warning and certificate disagree", model, words)
    rounding = max(rounding_of(table.X), rounding_of_covariances(model), rounding_of_landmarks(model, table.X))
    _check_audit(case, words, model, data, rounding)


def _check_refusal(case: HuntCase, words: str, model: Any, error: Exception) -> None:
    case.count("fits refused")
    case.note(f"{type(error).__name__}: {error}")
    problem = riddle(error)
    if problem:
        case.find(problem, model, f"{words}: {type(error).__name__}: {error}")
    if isinstance(error, NoSolutionError):
        case.count("fits proved impossible")
        if error.certificate.kind != "impossible" or not error.certificate.proved:
            case.find("no solution, without proof", model, f"{words}: {error}; {error.certificate}")
    left = [name for name in vars(model) if name.endswith("_") and not name.startswith("__")]
    if left:
        case.find("half-fitted after an error", model, f"{words}: {left}")


def riddle(error: Exception) -> str:
    """Why this error is none that a user should see; empty where it is."""
    if isinstance(error, TypeError) and "Sparse data was passed" in str(error):
        return ""  # scikit-learn's own words and type for rows that must be dense
    if not isinstance(error, ValueError) or isinstance(error, np.linalg.LinAlgError):
        return f"raised {type(error).__name__}"
    frames = traceback.extract_tb(error.__traceback__)
    if type(error) is ValueError and not any(part in frames[-1].filename for part in ("certifit", "sklearn")):
        return f"error from inside {Path(frames[-1].filename).parts[-2]}"
    if len(str(error)) > LONGEST:
        return "error of more than 400 characters"
    if PRIVATE.search(str(error)):
        return "error that names internals"
    return ""


def _check_audit(case: HuntCase, words: str, model: Any, data: tuple[Any, ...], rounding: float) -> None:
    fitted = model.certificate_
    try:
        again = audit(model, *data)
    except Exception as error:
        case.find("audit refuses an own fit", model, f"{words}: {type(error).__name__}: {error}")
        return
    case.note(fitted)
    case.note(again)
    if again.kind != fitted.kind and not _proves_more(model, fitted, again):
        case.find("fit and audit differ in kind", model, f"{words}: {fitted.kind}, {again.kind}")
    elif again.holds != fitted.holds:
        detail = f"fit {fitted.holds} {fitted.failures()}, audit {again.holds} {again.failures()}"
        case.find("fit and audit differ in verdict", model, f"{words}: {detail}")
    allowed = (1e-9 + rounding) * max(abs(fitted.objective), fitted.scale) + 1e-300
    # What both state as rounding of the objective, up to five digits, may differ.
    excused = min(c.limit - c.tol * abs(c.objective) for c in (fitted, again))
    allowed = max(allowed, min(excused, 1e-5 * abs(fitted.objective)))
    if abs(again.objective - fitted.objective) > allowed and again.holds:
        detail = f"{words}: {fitted.objective!r}, {again.objective!r}"
        case.find("fit and audit differ in objective", model, detail)


def _proves_more(model: Any, fitted: Certificate, again: Certificate) -> bool:
    """Whether an audit of k-means proved more than the fit, which leaves dear proofs out unless asked for them."""
    strength = ("stationary", "bounded", "optimal")
    if not hasattr(model, "inertia_") or not {fitted.kind, again.kind} <= {*strength}:
        return False
    return again.holds == fitted.holds and strength.index(again.kind) > strength.index(fitted.kind)


def rounding_of(X: Any) -> float:
    """How much of a sum may be rounding: eps, times how far the columns lie from 0 in sizes of their spread."""
    X = np.asarray(X)
    eps = float(np.finfo(X.dtype).eps) if X.dtype.kind == "f" else float(np.finfo(float).eps)
    X = X.astype(float)
    spread = X.std(axis=0)
    far = np.abs(X).max() / spread[spread > 0].min() if (spread > 0).any() else np.inf
    return float(min(1.0, 1000 * eps * far))


def rounding_of_covariances(model: Any) -> float:
    """How much of a Gaussian log-density may be rounding: eps, over the least eigenvalue of the correlations.

    Columns that an outlier makes nearly equal leave a covariance whose last digits are all that its inverse has. Of
    a probabilistic PCA it is eps times the largest variance, over the noise.
    """
    if type(model).__name__ == "ProbabilisticPCA":
        most = float(np.max(model.explained_variance_, initial=0.0))
        return min(1.0, 4 * float(np.finfo(float).eps) * most / max(float(model.noise_variance_), 1e-300))
    eps = float(np.finfo(float).eps)
    if type(model).__name__ == "QuadraticDiscriminantAnalysis":
        return min(1.0, max(64 * eps * float(np.max(s) / max(np.min(s), 1e-300)) for s in model.scalings_))
    C = np.asarray(getattr(model, "covariances_", 1.0))
    if C.ndim < 2 or C.shape[-1] != C.shape[-2] or getattr(model, "covariance_type", "diag") not in ("full", "tied"):
        return 0.0
    size = np.sqrt(np.diagonal(C, axis1=-2, axis2=-1))
    least = float(np.linalg.eigvalsh(C / (size[..., :, None] * size[..., None, :])).min())
    return min(1.0, 64 * eps / max(least, eps))


def rounding_of_landmarks(model: Any, X: Any) -> float:
    """How much of a kernel value of Nyström features may be rounding: eps, times γ |x - mean|² (up to `RBF.far`).

    The radial kernel of rows and landmarks is computed by products, |x|² + |z|² - 2 x·z, of which that is the size.
    """
    if not hasattr(model, "component_indices_") or model.kernel != "rbf":
        return 0.0
    X = np.asarray(X, float)
    size = float(model.gamma_) * float(((X - X.mean(axis=0)) ** 2).sum(axis=1).max())
    return float(np.finfo(float).eps) * 4 * (X.shape[1] + 4) * min(size, RBF.far)


HONEST_FITS = Hunt(
    "honest_fits",
    "Honest fits",
    "fits at default and random settings on plain and nasty tables: fit and audit agree, errors are sentences",
    try_fit,
    10.0,
)
