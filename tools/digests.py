"""Write down every number that every estimator fits, so that two versions of the code can be compared bit for bit.

    python tools/digests.py write before.npz      # in the old version
    python tools/digests.py write after.npz       # in the new one; names of estimators may follow, for these alone
    python tools/digests.py compare before.npz after.npz [1e-12]     # how far numbers may differ; 0 unless told
    python tools/digests.py save FOLDER           # a model file of every estimator, to be loaded by another version
    python tools/digests.py load FOLDER           # loads them and compares what they predict

Only public names are used, so that the script runs with any version. Each estimator is fitted with several settings
to dense rows, CSR rows, float32 rows and a Parquet file, small and large enough to take the compiled ways.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
import warnings
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from scipy import sparse

import certifit as cf

CENTRES = np.array([[0.0, 5.0, -1.0, 2.0], [3.0, 5.0, -1.0, 2.0], [0.0, 8.0, 1.0, 2.0]])
TIMED = ("seconds", "time", "elapsed")  # fields that differ from run to run


def groups(n: int, d: int, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) in three overlapping groups and a target of this kind."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    wide = np.resize(CENTRES, (3, d)) if d != 4 else CENTRES
    X = wide[group] + rng.normal(size=(n, d)) * np.resize([2.0, 1.5, 1.0, 0.5], d)
    score = 0.2 * X[:, 0] - 0.1 * X[:, -1] + 0.5
    y = {
        "none": group,
        "three": group,
        "two": (group > 0).astype(int),
        "counts": rng.poisson(np.exp(score)).astype(float),
        "amounts": rng.gamma(3.0, np.exp(score)),
        "numbers": score + rng.normal(size=n),
        "shares": (score + rng.normal(size=n) > 0).astype(float),
        "apart": (X @ np.resize([1.0, -1.0, 0.0, 1.0], d) > -3.0).astype(int),
    }[kind]
    if kind == "apart":
        X = X + np.outer(y - 0.5, np.resize([1.0, -1.0, 0.0, 1.0], d))
    return X, y


def tallies(n: int, d: int, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = groups(n, d, kind, seed)
    return np.abs(np.round(X + (np.asarray(y) % 3)[:, None])), y


LINES = ("weston-watkins", "crammer-singer")
# estimator, settings, target, maker of rows, sizes
SMALL, TALL, WIDE = (150, 4), (30_000, 6), (60, 200)
RECIPES: list[tuple[str, dict[str, Any], str, Any, tuple[tuple[int, int], ...]]] = [
    ("PCA", {}, "none", groups, (SMALL, TALL, WIDE)),
    ("PCA", {"n_components": 2, "whiten": True}, "none", groups, (SMALL, WIDE)),
    ("PCA", {"n_components": 2, "svd_solver": "randomized", "random_state": 0}, "none", groups, (SMALL, (3000, 50))),
    ("PCA", {"n_components": 0.9}, "none", groups, (SMALL,)),
    ("PCA", {"n_components": "mle"}, "none", groups, (SMALL,)),
    ("IncrementalPCA", {"n_components": 2}, "none", groups, (SMALL, TALL)),
    ("TruncatedSVD", {"n_components": 2}, "none", groups, (SMALL, TALL, WIDE)),
    ("ProbabilisticPCA", {"n_components": 2}, "none", groups, (SMALL, TALL)),
    ("ProbabilisticPCA", {"n_components": 2, "solver": "em", "random_state": 0}, "none", groups, (SMALL,)),
    ("KernelPCA", {"n_components": 2, "kernel": "rbf", "gamma": 0.1}, "none", groups, (SMALL,)),
    ("KernelPCA", {"n_components": 3, "fit_inverse_transform": True}, "none", groups, (SMALL,)),
    ("RobustPCA", {"lam": 0.1}, "none", groups, (SMALL, WIDE)),
    ("TrimmedPCA", {"random_state": 0}, "none", groups, (SMALL, (2000, 6))),
    ("LocallyLinearEmbedding", {"n_neighbors": 12, "disconnected": "join"}, "none", groups, (SMALL, (2000, 6))),
    ("LocallyLinearEmbedding", {"n_neighbors": 12, "method": "modified"}, "none", groups, (SMALL,)),
    ("LocallyLinearEmbedding", {"n_neighbors": 12, "method": "hessian"}, "none", groups, (SMALL,)),
    ("LocallyLinearEmbedding", {"n_neighbors": 12, "method": "ltsa"}, "none", groups, (SMALL,)),
    ("SelectFeatures", {}, "three", groups, (SMALL, TALL)),
    ("SelectFeatures", {"score_func": "correlation"}, "numbers", groups, (SMALL, TALL)),
    ("SelectFeatures", {"score_func": "chi2"}, "three", tallies, (SMALL, TALL)),
    ("SelectFeatures", {"score_func": "information"}, "three", tallies, (SMALL,)),
    ("SelectFeatures", {"score_func": "jeffreys"}, "three", groups, (SMALL,)),
    ("SelectKBest", {"k": 2}, "three", groups, (SMALL, TALL)),
    ("SelectPercentile", {"percentile": 50}, "three", groups, (SMALL,)),
    ("SelectFpr", {}, "three", groups, (SMALL,)),
    ("SelectFdr", {}, "three", groups, (SMALL,)),
    ("SelectFwe", {}, "three", groups, (SMALL,)),
    ("GenericUnivariateSelect", {"mode": "fdr", "param": 0.1}, "three", groups, (SMALL,)),
    ("VarianceThreshold", {}, "none", groups, (SMALL, TALL)),
    ("L1Selector", {}, "two", groups, (SMALL,)),
    ("L1Selector", {"loss": "squared"}, "numbers", groups, (SMALL,)),
    ("KMeans", {"n_clusters": 3, "random_state": 0}, "none", groups, (SMALL, TALL, (3000, 40))),
    ("KMeans", {"n_clusters": 3, "init": "random", "n_init": 3, "random_state": 1}, "none", groups, (SMALL,)),
    ("KMeans", {"n_clusters": 20, "random_state": 0}, "none", groups, (TALL,)),
    ("KMeans", {"n_clusters": 4, "random_state": 0}, "none", groups, ((500, 1), (3000, 1))),
    ("MiniBatchKMeans", {"n_clusters": 3, "random_state": 0}, "none", groups, (SMALL,)),
    ("GaussianMixture", {"n_components": 3, "random_state": 0}, "none", groups, (SMALL, TALL)),
    ("GaussianMixture", {"n_components": 2, "covariance_type": "diag", "random_state": 0}, "none", groups,
     (SMALL, TALL)),
    ("GaussianMixture", {"n_components": 2, "covariance_type": "tied", "random_state": 0}, "none", groups, (SMALL,)),
    ("GaussianMixture", {"n_components": 2, "covariance_type": "spherical", "random_state": 0}, "none", groups,
     (SMALL,)),
    ("BayesianGaussianMixture", {"n_components": 3, "random_state": 0}, "none", groups, (SMALL,)),
    ("BayesianGaussianMixture", {"n_components": 2, "covariance_type": "tied", "random_state": 0}, "none", groups,
     (SMALL,)),
    ("Mixture", {"family": "poisson", "n_components": 2, "random_state": 0}, "none", tallies, (SMALL, (5000, 4))),
    ("Mixture", {"family": "gaussian", "n_components": 2, "random_state": 0}, "none", groups, (SMALL,)),
    ("LogisticRegression", {}, "two", groups, (SMALL, TALL, WIDE)),
    ("LogisticRegression", {}, "three", groups, (SMALL, TALL, WIDE)),
    ("LogisticRegression", {"solver": "lbfgs", "C": 0.1}, "three", groups, (SMALL, TALL)),
    ("LogisticRegression", {"penalty": None}, "two", groups, (SMALL, TALL)),
    ("LogisticRegression", {"penalty": None}, "three", groups, (SMALL,)),
    ("LogisticRegression", {"penalty": "firth"}, "two", groups, (SMALL,)),
    ("LogisticRegression", {"penalty": "l1"}, "two", groups, (SMALL, TALL)),
    ("LogisticRegression", {"l1_ratio": 0.5}, "three", groups, (SMALL,)),
    ("LogisticRegression", {"class_weight": "balanced"}, "two", groups, (SMALL,)),
    ("LinearRegression", {}, "numbers", groups, (SMALL, TALL, WIDE)),
    ("Ridge", {"alpha": 2.0}, "numbers", groups, (SMALL, TALL, WIDE)),
    ("Ridge", {"positive": True}, "numbers", groups, (SMALL, TALL)),
    ("RidgeClassifier", {}, "two", groups, (SMALL, TALL)),
    ("RidgeClassifier", {}, "three", groups, (SMALL,)),
    ("RidgeCV", {}, "numbers", groups, (SMALL, TALL, WIDE)),
    ("RidgeCV", {"cv": 3}, "numbers", groups, (SMALL,)),
    ("RidgeClassifierCV", {}, "three", groups, (SMALL,)),
    ("LassoCV", {"alphas": 20}, "numbers", groups, (SMALL, TALL)),
    ("ElasticNetCV", {"alphas": 20}, "numbers", groups, (SMALL,)),
    ("LogisticRegressionCV", {"Cs": 4}, "three", groups, (SMALL,)),
    ("Lasso", {"alpha": 0.1}, "numbers", groups, (SMALL, TALL, WIDE)),
    ("ElasticNet", {"alpha": 0.1}, "numbers", groups, (SMALL, TALL)),
    ("PoissonRegressor", {"alpha": 0.1}, "counts", groups, (SMALL, TALL)),
    ("GammaRegressor", {"alpha": 0.1}, "amounts", groups, (SMALL, TALL)),
    ("TweedieRegressor", {"power": 1.5}, "amounts", groups, (SMALL, TALL)),
    ("GeneralizedLinearRegressor", {"family": "poisson"}, "counts", groups, (SMALL, TALL)),
    ("GeneralizedLinearRegressor", {"family": "gamma"}, "amounts", groups, (SMALL,)),
    ("GeneralizedLinearRegressor", {"family": "gaussian"}, "numbers", groups, (SMALL, TALL)),
    ("GeneralizedLinearRegressor", {"family": "inverse_gaussian"}, "amounts", groups, (SMALL,)),
    ("GeneralizedLinearRegressor", {"family": "binomial"}, "shares", groups, (SMALL, TALL)),
    ("GeneralizedLinearRegressor", {"family": "binomial", "link": "probit"}, "shares", groups, (SMALL,)),
    ("GeneralizedLinearRegressor", {"family": "binomial", "link": "cloglog"}, "shares", groups, (SMALL,)),
    ("GeneralizedLinearRegressor", {"family": "poisson", "alpha": 0.1, "l1_ratio": 0.5}, "counts", groups, (SMALL,)),
    ("LinearSVC", {}, "two", groups, (SMALL, TALL, WIDE)),
    ("LinearSVC", {}, "three", groups, (SMALL, TALL)),
    ("LinearSVC", {"loss": "hinge"}, "two", groups, (SMALL, TALL, WIDE, (40, 2500))),
    ("LinearSVC", {"loss": "hinge", "penalize_intercept": True}, "three", groups, (SMALL,)),
    ("LinearSVC", {"loss": "huberised_hinge"}, "two", groups, (SMALL, TALL)),
    *(("LinearSVC", {"multi_class": line}, "three", groups, (SMALL, (3000, 6))) for line in LINES),
    ("LinearSVR", {"epsilon": 0.5}, "numbers", groups, (SMALL, TALL)),
    ("LinearSVR", {"loss": "squared_epsilon_insensitive", "epsilon": 0.5}, "numbers", groups, (SMALL,)),
    ("SVC", {}, "two", groups, (SMALL, (3000, 6))),
    ("SVC", {}, "three", groups, (SMALL,)),
    ("SVC", {"kernel": "linear", "C": 0.1}, "two", groups, (SMALL,)),
    ("SVC", {"kernel": "poly", "multi_class": "ovr"}, "three", groups, (SMALL,)),
    ("SVC", {"probability": True}, "two", groups, (SMALL,)),
    *(("SVC", {"multi_class": line}, "three", groups, (SMALL, (1500, 6))) for line in LINES),
    ("SVR", {"epsilon": 0.5}, "numbers", groups, (SMALL, (2000, 6))),
    ("NuSVC", {}, "two", groups, (SMALL,)),
    ("NuSVR", {}, "numbers", groups, (SMALL,)),
    ("OneClassSVM", {}, "none", groups, (SMALL,)),
    ("HardMarginSVC", {}, "apart", groups, (SMALL, (1000, 6))),
    ("HardMarginSVC", {"kernel": "rbf"}, "apart", groups, (SMALL,)),
    ("Nystroem", {"n_components": 8, "random_state": 0}, "none", groups, (SMALL, (5000, 6))),
    ("RBFSampler", {"n_components": 51, "random_state": 0}, "none", groups, (SMALL, (5000, 6))),
    ("ApproximateSVC", {"n_components": 8, "random_state": 0}, "two", groups, (SMALL, (5000, 6))),
    ("QuadraticDiscriminantAnalysis", {"store_covariance": True}, "three", groups, (SMALL, TALL)),
    ("LinearDiscriminantAnalysis", {}, "three", groups, (SMALL, TALL)),
    ("LinearDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}, "three", groups, (SMALL, TALL)),
    ("DecisionTreeClassifier", {}, "three", groups, (SMALL, TALL)),
    ("DecisionTreeRegressor", {}, "numbers", groups, (SMALL, TALL)),
    ("OptimalTreeClassifier", {"max_bins": 16, "time_limit": 0.0}, "three", groups, (SMALL, TALL)),
    ("OptimalTreeRegressor", {"max_bins": 16, "time_limit": 0.0}, "numbers", groups, (SMALL, TALL)),
    ("AdaBoostClassifier", {"n_estimators": 10}, "two", groups, (SMALL, TALL)),
    ("AdaBoostClassifier", {"n_estimators": 10, "max_bins": 32}, "three", groups, (SMALL, TALL)),
    ("AdaBoostClassifier",
     {"n_estimators": 4, "corrective": "lpboost", "n_iter_no_change": 2, "random_state": 0}, "two",
     groups, (SMALL,)),
    ("AdaBoostClassifier", {"n_estimators": 4, "corrective": "lpboost", "n_iter_no_change": 2, "random_state": 0},
     "two", groups, (SMALL,)),
    ("AdaBoostRegressor", {"n_estimators": 4}, "numbers", groups, (SMALL, (3000, 6))),
    ("RandomForestClassifier", {"n_estimators": 5, "random_state": 0}, "three", groups, (SMALL, TALL)),
    ("RandomForestClassifier", {"n_estimators": 10, "oob_score": True, "random_state": 0}, "two", groups, (SMALL,)),
    ("RandomForestRegressor", {"n_estimators": 5, "random_state": 0}, "numbers", groups, (SMALL, TALL)),
    ("ExtraTreesClassifier", {"n_estimators": 5, "random_state": 0}, "three", groups, (SMALL, TALL)),
    ("ExtraTreesRegressor", {"n_estimators": 5, "random_state": 0}, "numbers", groups, (SMALL, TALL)),
    ("BaggingClassifier", {"n_estimators": 3, "random_state": 0}, "three", groups, (SMALL,)),
    ("BaggingRegressor", {"n_estimators": 3, "random_state": 0}, "numbers", groups, (SMALL,)),
    ("GradientBoostingClassifier", {"n_estimators": 6, "subsample": 0.5, "random_state": 0}, "three", groups,
     (SMALL, (3000, 6))),
    ("GradientBoostingRegressor", {"n_estimators": 6, "loss": "huber"}, "numbers", groups, (SMALL, (3000, 6))),
    ("HistGradientBoostingClassifier", {"max_iter": 10, "random_state": 0}, "three", groups, (SMALL, TALL)),
    ("HistGradientBoostingRegressor", {"max_iter": 10, "random_state": 0}, "numbers", groups, (SMALL, TALL)),
    ("AdditiveClassifier", {}, "two", groups, (SMALL, TALL)),
    ("AdditiveRegressor", {"alpha": 0.01}, "numbers", groups, (SMALL, TALL)),
    ("AdditiveRegressor", {"loss": "poisson", "alpha": 0.01}, "counts", groups, (SMALL,)),
    ("ConvNetClassifier", {"layers": [("conv", 3, 2), "relu"], "max_iter": 4, "random_state": 0}, "three", groups,
     (SMALL,)),
    ("MLPClassifier", {"hidden_layer_sizes": (5,), "max_iter": 8, "random_state": 0}, "three", groups, (SMALL, TALL)),
    ("MLPClassifier", {"solver": "lbfgs", "alpha": 5.0, "max_iter": 999, "random_state": 0}, "two", groups, (SMALL,)),
    ("MLPRegressor", {"hidden_layer_sizes": (5,), "max_iter": 8, "random_state": 0}, "numbers", groups, (SMALL,)),
    ("GaussianNB", {}, "three", groups, (SMALL, TALL)),
    ("BernoulliNB", {"binarize": 1.0}, "three", tallies, (SMALL, TALL)),
    ("MultinomialNB", {"alpha": 0.5}, "three", tallies, (SMALL, TALL)),
    ("ComplementNB", {}, "three", tallies, (SMALL, TALL)),
    ("CategoricalNB", {}, "three", tallies, (SMALL, TALL)),
    ("NaiveBayes", {}, "three", tallies, (SMALL, TALL)),
]  # fmt: skip

USES = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def cases(folder: Path, only: Collection[str] = ()) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Name, unfitted estimator, table to fit, target, and rows to use the fitted model on; of these only."""
    for name, settings, kind, make, sizes in RECIPES:
        if only and name not in only:
            continue
        cls = getattr(cf, name)
        words = ",".join(f"{k}={v}" for k, v in settings.items())
        for n, d in sizes:
            X, y = make(n, d, kind)
            label = f"{name}({words}) {kind} {n}x{d}"
            target = None if kind == "none" else y
            yield f"{label} dense", cls(**settings), X, target, X[:50]
            single = X.astype(np.float32)
            yield f"{label} float32", cls(**settings), single, target, single[:50]
            if cls.sparse:
                csr = sparse.csr_array(X)
                yield f"{label} csr", cls(**settings), csr, target, csr[:50]
            path = folder / f"{hashlib.sha1(label.encode()).hexdigest()}.parquet"
            columns = {f"x{j}": X[:, j] for j in range(d)}
            pa.parquet.write_table(pa.table({**columns, "y": y}), path)
            if target is None:
                pa.parquet.write_table(pa.table(columns), path)
            yield f"{label} parquet", cls(**settings), str(path), None if target is None else "y", X[:50]
    if only and not {"TableClassifier", "TableRegressor"} & set(only):
        return
    penguins = cf.datasets.penguins_table()
    rows = penguins.filter(pa.compute.is_valid(penguins["sex"]))
    for cls, target in ((cf.TableClassifier, "species"), (cf.TableRegressor, "body_mass_g")):
        if not only or cls.__name__ in only:
            yield f"{cls.__name__} penguins", cls(), rows, target, rows.drop_columns([target])


def fit(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X) if y is None else model.fit(X, y)


def numbers(value: Any, where: str, out: dict[str, np.ndarray]) -> None:
    """Every array, number and word inside a fitted attribute, by its path."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            value = np.array([repr(item) for item in value.flat])
        out[where] = value
    elif sparse.issparse(value):
        for part in ("data", "indices", "indptr"):
            out[f"{where}.{part}"] = getattr(value, part)
    elif isinstance(value, (bool, int, float, np.generic)):
        out[where] = np.asarray(value)
    elif isinstance(value, str):
        out[where] = np.array([value])
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            if f.name not in TIMED:
                numbers(getattr(value, f.name), f"{where}.{f.name}", out)
    elif hasattr(value, "_fields"):
        for name in value._fields:
            if name not in TIMED:
                numbers(getattr(value, name), f"{where}.{name}", out)
    elif isinstance(value, dict):
        for key, item in value.items():
            numbers(item, f"{where}[{key}]", out)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            numbers(item, f"{where}[{i}]", out)
    elif hasattr(value, "get_params"):
        for name, item in sorted(vars(value).items()):
            if name.endswith("_") and not name.startswith("__"):
                numbers(item, f"{where}.{name}", out)


def found(model: Any, new: Any) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    numbers(model, "", out)
    if hasattr(model, "feature_names_in_") and isinstance(new, np.ndarray):
        new = pa.table({str(name): column for name, column in zip(model.feature_names_in_, new.T, strict=True)})
    for use in USES:
        try:
            numbers(getattr(model, use)(new), f"{use}()", out)
        except (AttributeError, ValueError, NotImplementedError):
            continue
    return out


def write(path: str, only: list[str]) -> None:
    everything: dict[str, np.ndarray] = {}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for name, model, X, y, new in cases(Path(folder), only):
            count += 1
            try:
                values = found(fit(model, X, y), new)
            except Exception as error:  # an error is an answer, too
                values = {"error": np.array([f"{type(error).__name__}: {error}".replace(folder, "")])}
            everything.update({f"{name} | {where}": value for where, value in values.items()})
    np.savez_compressed(
        path,
        only=np.array(only),
        **{str(i): v for i, v in enumerate(everything.values())},
        names=np.array([*everything]),
    )
    print(f"{count} fits, {len(everything)} arrays and numbers in {time.perf_counter() - start:.0f} s -> {path}")


def read(path: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Arrays by name, and the estimators that they are restricted to."""
    with np.load(path) as file:
        only = file["only"].tolist() if "only" in file else []
        return {today(str(name)): file[str(i)] for i, name in enumerate(file["names"])}, only


def today(name: str) -> str:
    """The path of a number under the names that attributes have now."""
    return name.replace("marks_holes", "marks_missing").replace(".holes", ".missing")


def compare(before: str, after: str, within: float) -> int:
    """Print every difference; 0 where there is none beyond `within` (relative to the largest entry)."""
    (a, _), (b, only) = read(before), read(after)
    a = {name: value for name, value in a.items() if not only or name.startswith(tuple(f"{cls}(" for cls in only))}
    worst, bits = 0, 0
    for name in [*a, *(set(b) - set(a))]:
        if name not in a or name not in b:
            print(f"only {'before' if name in a else 'after'}: {name}")
            worst += 1
            continue
        x, y = a[name], b[name]
        if x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes():
            bits += 1
            continue
        if x.dtype.kind in "fiub" and x.shape == y.shape and y.dtype == x.dtype:
            u, v = x.astype(float), y.astype(float)
            size = np.nanmax(np.abs(u), initial=0.0) or 1.0
            off = np.nanmax(np.where((u == v) | (np.isnan(u) & np.isnan(v)), 0.0, np.abs(u - v)), initial=0.0) / size
            if off <= within:
                print(f"differs by {off:.1e}: {name}")
                continue
            print(f"DIFFERS by {off:.1e}: {name}")
        else:
            print(f"DIFFERS: {name}: {str(x)[:90]} -> {str(y)[:90]}")
        worst += 1
    print(f"{bits} of {len(a)} equal bit for bit; {worst} beyond {within:g}")
    return int(worst > 0)


def save(folder: str) -> None:
    """One model file of every estimator and setting that can be stored, with what it predicts beside it."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for i, (name, model, X, y, new) in enumerate(cases(Path(scratch))):
            if not name.endswith(("150x4 dense", "penguins")):
                continue
            try:
                fit(model, X, y)
                cf.save(model, f"{folder}/{i}.certifit")
            except Exception as error:
                print(f"not saved: {name}: {error}")
                continue
            values = found(model, new)
            np.savez(f"{folder}/{i}.npz", names=np.array([name, *values]),
                     **{str(j): v for j, v in enumerate(values.values())})  # fmt: skip


def load(folder: str) -> int:
    bad = 0
    files = sorted(Path(folder).glob("*.certifit"), key=lambda p: int(p.stem))
    with tempfile.TemporaryDirectory() as scratch:
        tables = {name: new for name, _, _, _, new in cases(Path(scratch))}
    for path in files:
        with np.load(path.with_suffix(".npz")) as file:
            name, *where = file["names"].tolist()
            values = [file[str(j)] for j in range(len(where))]
        try:
            again = found(cf.load(path), tables[name])
        except Exception as error:
            print(f"DOES NOT LOAD: {name}: {type(error).__name__}: {error}")
            bad += 1
            continue
        pairs = [(today(w), v) for w, v in zip(where, values, strict=True)]
        odd = [w for w, v in pairs if w not in again or again[w].tobytes() != v.tobytes()]
        if odd:
            print(f"DIFFERS: {name}: {odd[:5]}")
            bad += 1
    print(f"{len(files) - bad} of {len(files)} model files load and say the same")
    return int(bad > 0)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["write", path, *only]:
            write(path, only)
        case ["compare", before, after, *rest]:
            return compare(before, after, float(rest[0]) if rest else 0.0)
        case ["save", folder]:
            save(folder)
        case ["load", folder]:
            return load(folder)
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
