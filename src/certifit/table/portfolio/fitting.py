"""`certifit.fit`: from a table to a model that was chosen among many, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.core.settings import did_you_mean
from certifit.exceptions import CertificateWarning, DataError
from certifit.table.columns import pick
from certifit.table.cross_validation import CrossValidation
from certifit.table.labelled_table import LabelledTable, labelled_table
from certifit.table.portfolio.candidates import TableFacts, build
from certifit.table.portfolio.clock import read_budget
from certifit.table.portfolio.ledger import SearchLedger
from certifit.table.portfolio.search import RowOrder, SearchSettings, check_names, search, why_not_compared
from certifit.table.reading import as_table
from certifit.table.table_model import TableModel


@dataclass(frozen=True)
class TableRoles:
    """What columns of a table are for."""

    target: str
    weight: str | None = None  # row weights
    group: str | None = None  # whose rows stay on one side of a fold
    time: str | None = None  # by which later rows are tested
    drop: tuple[str, ...] = ()  # not to be used
    keep: tuple[str, ...] = ()  # to be used though they only tell the rows apart
    categorical: tuple[str, ...] = ()  # numbers that are categories
    missing_words: tuple[str, ...] = ()  # that stand for missing entries, beside the usual ones


@dataclass(frozen=True)
class PreparedTable:
    """Labelled rows, and the columns that say which belong together or come later."""

    data: LabelledTable
    order: RowOrder


def prepare(X: Any, roles: TableRoles, task: Any = "auto") -> PreparedTable:
    """Give every column its role; what cannot be is refused."""
    table = as_table(X)
    taken = {roles.target, roles.weight, roles.group, roles.time} - {None}
    for name in roles.drop:
        pick(table, name, "column to drop")
        if name in taken:
            raise DataError(
                got=f"{name!r} to be dropped, which is also the target, weight, group or time",
                wanted="another column",
            )
    for role, column in (("group", roles.group), ("time", roles.time)):
        if column is not None and column in (roles.target, roles.weight):
            raise DataError(got=f"{column!r} as the {role} and as the target or weight", wanted="another column")
    table = table.drop_columns(list(roles.drop))
    for role, column in (("group", roles.group), ("time", roles.time)):
        if column is not None:
            pick(table, column, f"{role} column")
    reading = {name: getattr(roles, name) for name in ("keep", "categorical", "missing_words")}
    data = labelled_table(table, roles.target, roles.weight, task=task, **reading)
    groups, times = (_codes(data.table, name) for name in (roles.group, roles.time))
    for role, codes in (("groups", groups), ("times", times)):
        if codes is not None and codes.max() == 0:
            raise DataError(got=f"one value only in the column of {role}", wanted="at least two different ones")
    data = replace(data, table=data.table.drop_columns([*{roles.group, roles.time} - {None}]))
    return PreparedTable(data, RowOrder(groups, times, roles.group or "", roles.time or ""))


def _codes(table: pa.Table, name: str | None) -> Any:
    """Whole numbers (n,) in the order of a column's values."""
    if name is None:
        return None
    column = table[name]
    if column.null_count:
        raise DataError(got=f"{column.null_count} missing value(s) in column {name!r}", wanted="one in every row")
    return np.unique(column.combine_chunks().to_numpy(zero_copy_only=False), return_inverse=True)[1]


def fit_prepared(
    table: PreparedTable,
    settings: SearchSettings,
    tell: Callable[..., Any] = lambda contest, trial: None,
    replay: SearchLedger | None = None,
) -> tuple[TableModel, CrossValidation | str]:
    """The chosen model and its cross-validation; where rows are too few to compare, the linear one and why."""
    data = table.data
    why = "as asked" if settings.folds == 0 else why_not_compared(data, settings)
    if not why:
        found = search(data, settings, table.order, tell, replay)
        return found.model, found.assessment
    check_names(settings)
    name = settings.kinds[0]
    model = build(
        name, settings.settings or {}, TableFacts.of(data, settings.seed, settings.class_weight, settings.family)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        model.fit(data)
    return model, f"not cross-validated: {why}" if settings.folds else "not cross-validated, as asked"


_OPTIONS = (
    "task", "metric", "cv", "weight", "group", "time", "drop", "keep", "categorical", "missing_words",
    "class_weight", "family",
)  # fmt: skip


def fit(
    X: Any,
    target: str,
    *,
    model: str = "auto",
    budget: str | float = 20,
    seed: int = 0,
    replay: Any = None,
    **options: Any,
) -> TableModel:
    """Compare models of a table within a budget of time, and return the one that was chosen, fitted to all rows.

    What is in the table, and whether the target is a class, a count or an amount, is found out. Models are compared
    on the same folds, the simplest first; of those whose difference from the best is at most its standard error, the
    simplest is taken, and its score is corrected for the choice. `search_` is the ledger of all that was decided.

    Parameters
    ----------
    X : a data frame, an Arrow table, the path of a CSV or Parquet file
    target : the name of the column to predict
    model : 'auto', or one kind alone: linear, least_squares, naive_bayes, linear_svm, additive, kernel_svm,
        forest, network or boosting; or several: 'linear, forest'
    budget : seconds for comparing models, or '2m'; the fit to all rows comes after it
    seed : of folds and of models that draw
    replay : a model of `fit`, to be fitted again by its ledger: without a clock, and with the same bits
    **options : task ('classification' or 'regression'), metric (accuracy, log_loss, brier; r2, mae), cv (5 folds),
        weight, group and time (names of columns), drop, keep and categorical (lists of names), missing_words (a
        list), class_weight, family

    Returns
    -------
    TableClassifier or TableRegressor : shows a leaderboard; `predict_set` or `predict_interval` says how sure it is

    Examples
    --------
    >>> from certifit import fit, load_penguins
    >>> model = fit(load_penguins(), "species", model="naive_bayes")
    >>> model.certificate_.kind, model.search_.winner.name
    ('exact', 'naive_bayes')
    """
    for name in options:
        if name not in _OPTIONS:
            raise DataError(
                got=f"the option {name!r}", wanted=f"one of {', '.join(_OPTIONS)}", fix=did_you_mean(name, _OPTIONS)
            )
    ledger = _ledger_of(replay)
    settings = SearchSettings(
        read_budget(budget), model, options.get("metric", "auto"), options.get("cv", 5), seed,
        options.get("class_weight"), options.get("family", "auto"), tunes=model == "auto" or "," in model,
    )  # fmt: skip
    if ledger is not None:
        settings = replayed_settings(settings, ledger)
    table = prepare(X, _roles(target, options), options.get("task", "auto"))
    return fit_prepared(table, settings, replay=ledger)[0]


def replayed_settings(settings: SearchSettings, ledger: SearchLedger) -> SearchSettings:
    """The settings of the run that a ledger tells of."""
    return replace(
        settings, budget=ledger.budget, model=ledger.asked, metric=ledger.metric_word, folds=ledger.asked_folds,
        seed=ledger.seed, class_weight=ledger.class_weight or None, family=ledger.family, rule=ledger.rule,
    )  # fmt: skip


def _ledger_of(model: Any) -> SearchLedger | None:
    if model is not None and not hasattr(model, "search_"):
        raise DataError(got=f"a {type(model).__name__} to replay", wanted="a model of certifit.fit")
    return None if model is None else model.search_


def _roles(target: str, options: Mapping[str, Any]) -> TableRoles:
    lists = [tuple(options.get(name, ())) for name in ("drop", "keep", "categorical", "missing_words")]
    return TableRoles(target, options.get("weight"), options.get("group"), options.get("time"), *lists)
