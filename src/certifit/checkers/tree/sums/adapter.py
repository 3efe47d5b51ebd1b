"""Audits boosted trees of other libraries, and the main effects of explainable boosting machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.ensemble.score_losses import plain_score_loss
from certifit.checkers.fitted import fitted_rows, row_counts
from certifit.checkers.plain.blocks import dense
from certifit.checkers.tree.sums.boosting_claim import BoostingSettings
from certifit.checkers.tree.sums.certify_sum import (
    ADDITIVE,
    FittedTable,
    additive_gap,
    certify_sum,
    scores_check,
    scores_of,
)
from certifit.checkers.tree.sums.exact_splits import check_exact_splits
from certifit.checkers.tree.sums.lightgbm_dump import lightgbm_settings
from certifit.checkers.tree.sums.read_model import booster_of, own_scores, read_tree_sum
from certifit.checkers.tree.sums.tree_sum import TreeSum
from certifit.checkers.tree.sums.xgboost_dump import xgboost_settings
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms


def audit_booster(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted booster of LightGBM or XGBoost, or the estimator around it."""
    booster = booster_of(model)
    plain = read_tree_sum(model)
    said = lightgbm_settings(booster) if hasattr(booster, "model_to_string") else xgboost_settings(booster)
    rows = _table(model, plain, X, y, sample_weight, said.loss, said.counts_all)
    if said.positive_weight != 1:
        rows = replace(rows, w=rows.w * np.where(rows.y == 1, said.positive_weight, 1.0))
    return certify_sum(plain, said, rows, own_scores(model, rows.X), tol)


def audit_foreign_gradient_boosting(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted GradientBoostingClassifier or GradientBoostingRegressor of scikit-learn."""
    plain = read_tree_sum(model)
    said = _settings_of_sklearn(model, plain)
    rows = _table(model, plain, X, y, sample_weight, said.loss)
    found = certify_sum(plain, said, rows, own_scores(model, rows.X), tol)
    if said.reason:
        return found
    checks, facts = check_exact_splits(model, plain, said, rows)
    kept = {name: value for name, value in found.facts.items() if not name.startswith("splits that another")}
    return replace(found, checks=(*found.checks, *checks), facts={**kept, **facts})


def _settings_of_sklearn(model: Any, plain: TreeSum) -> BoostingSettings:
    """What scikit-learn's settings say that every stage has done."""
    loss, k = str(model.loss), len(plain.baseline)
    loss = "multinomial" if loss == "log_loss" and k > 1 else loss
    strange = [name for name, usual in (("subsample", 1.0), ("n_iter_no_change", None), ("ccp_alpha", 0.0))
               if getattr(model, name) != usual]  # fmt: skip
    return BoostingSettings(
        loss, float(model.alpha) if loss == "quantile" else None, float(model.learning_rate),
        factor=k / (k - 1) if k > 1 else 1.0, scores=k, unfollowed=", ".join(strange), digits=1e-9,
    )  # fmt: skip


def _table(
    model: Any, plain: TreeSum, X: Any, y: Any, sample_weight: Any, loss: str, every: bool = False
) -> FittedTable:
    """The rows of positive weight, or every row, with class numbers where the loss is one of classes."""
    classes = getattr(model, "classes_", None)
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    rows = fitted_rows(model, plain.columns, X, y, sample_weight, terms)
    if classes is not None:
        labels = encode_labels(rows, np.asarray(classes))
        labels = replace(labels, weight=row_counts(labels.rows, [len(classes)])[0])
        rows = apply_class_weight(labels, getattr(model, "class_weight", None))
    data = rows.load()
    kept = (data.w > 0) | every
    found = FittedTable(dense(data.X[kept]).astype(np.float64), np.asarray(data.y, np.float64)[kept], data.w[kept])
    limits = {"log_loss": (0, 1), "multinomial": (0, len(plain.baseline) - 1), "poisson": (0, np.inf)}
    low, high = limits.get(loss, (-np.inf, np.inf))
    if not (len(found.y) and found.y.min() >= low and found.y.max() <= high):
        raise DataError(got=f"targets outside {low:g} to {high:g}", wanted=f"those of a {loss}")
    return found


def audit_ebm(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the main effects of interpret's explainable boosting machine against the best additive model."""
    plain = read_tree_sum(model)
    name = _loss_of_ebm(model)
    rows = _table(model, plain, X, y, sample_weight, name)
    loss = plain_score_loss(name)
    F = plain(rows.X)
    checks = [*scores_check(F, own_scores(model, rows.X), plain), *_bin_checks(model, rows)]
    total, gap = float(rows.w.sum()), additive_gap(plain, F, rows, loss)
    objective = float(rows.w @ loss.value(rows.y, scores_of(F, loss))) / total
    facts: dict[str, float | str] = {
        "size of the additive model": gap.size,
        "gap to the best of this size": max(0.0, objective - gap.bound / total),
    }
    words = f"the functions of single columns add up to the model's scores; {ADDITIVE}"
    return Certificate("bounded", words, objective, gap.bound / total, tol, checks=tuple(checks), facts=facts)


def _loss_of_ebm(model: Any) -> str:
    names = {
        "log_loss": "log_loss",
        "rmse": "squared_error",
        "poisson_deviance": "poisson",
        "gamma_deviance": "gamma",
    }
    asked = str(model.objective).partition(":")[0]
    if asked not in names:
        raise DataError(got=f"objective={model.objective!r} of an EBM", wanted=f"one of {', '.join(names)}")
    return names[asked]


def _bin_checks(model: Any, rows: FittedTable) -> list[Check]:
    """Whether the weights of bins are those of the rows."""
    off = 0.0
    for columns, weights in zip(model.term_features_, model.bin_weights_, strict=True):
        j = int(columns[0])
        cuts, said = np.asarray(model.bins_[j][0], np.float64), np.asarray(weights, np.float64)
        found = np.bincount(_bins(rows.X[:, j], cuts), rows.w, len(said))
        off = max(off, float(np.abs(found - said).max()) / float(rows.w.sum()))
    return [Check("weights of bins off by, of all", off, 1e-9)]


def _bins(x: Array, cuts: Array) -> Array:
    """The bin of each entry (n,): 0 where it is missing."""
    return np.where(np.isnan(x), 0, np.searchsorted(cuts, x, side="right") + 1)
