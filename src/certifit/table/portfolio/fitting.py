"""`certifit.fit`: from a table to a model that was chosen among many, in one call."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.core.progress import Advance, counted
from certifit.core.settings import did_you_mean
from certifit.exceptions import CertificateWarning, DataError
from certifit.rows import Array
from certifit.rows.sources.open_source import open_source
from certifit.rows.sources.table import Source
from certifit.table.alerts import keep_alerts, later_alerts, table_alerts
from certifit.table.columns import pick
from certifit.table.cross_validation import CrossValidation
from certifit.table.labelled_table import READING, LabelledTable, labelled_table
from certifit.table.portfolio.candidates import TableFacts, build
from certifit.table.portfolio.clock import read_budget
from certifit.table.portfolio.contest import Contest, Trial
from certifit.table.portfolio.ledger import SearchLedger
from certifit.table.portfolio.search import (
    RowOrder,
    SearchSettings,
    check_names,
    in_memory,
    search,
    why_not_compared,
)
from certifit.table.reading import as_table
from certifit.table.streaming.learning_pass import StreamPlan
from certifit.table.streaming.memory import is_large
from certifit.table.streaming.streamed_table import StreamedTable, streamed_table
from certifit.table.table_model import LabelledData, TableModel
from certifit.table.text.dates import choose_date, date_formats, is_date_reading
from certifit.table.text.holes import with_holes
from certifit.table.text.numbers import units_of
from certifit.table.text.readings import choose_reading, fitting_readings, read_text


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
    dates: tuple[str, ...] = ()  # text to read as dates, with "=format" where it is known

    @property
    def reading(self) -> dict[str, Any]:
        """How columns are read, as a table model takes it; the model does not see those that are beside."""
        dates = tuple(word for word in self.dates if not date_formats([word]).keys() & {*self.beside})
        return {name: getattr(self, name) for name in READING} | {"dates": dates}

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns that say how rows belong together, and are not learnt from."""
        return tuple({name: None for name in (self.group, self.time) if name is not None})


@dataclass(frozen=True)
class PreparedTable:
    """Labelled rows, and the columns that say which belong together or come later."""

    data: LabelledData
    order: RowOrder

    @property
    def sample(self) -> LabelledTable:
        """The rows, or some of them where they are read block by block."""
        return in_memory(self.data)

    @property
    def drawn(self) -> Array | None:
        """The numbers of those rows, where they are some of them."""
        return self.data.sample_numbers if isinstance(self.data, StreamedTable) else None


@dataclass(frozen=True)
class StreamSettings:
    """Whether a table is read block by block, and how many rows are drawn from it on the way."""

    asked: bool = False  # else only where its files are large beside the memory available
    dask: bool = False  # whether the workers of the current Dask cluster read it
    sample_rows: int = 10_000
    seed: int = 0


def prepare(
    X: Any, roles: TableRoles, task: Any = "auto", stream: StreamSettings = StreamSettings()
) -> PreparedTable:
    """Give every column its role; what cannot be is refused."""
    if stream.asked or is_large(X):
        return _prepare_stream(X, roles, task, stream)
    table = as_table(X)
    _check_roles(table, roles)
    if not {*table.column_names} - {roles.target, roles.weight, *roles.beside, *roles.drop}:
        raise DataError(got="no column to learn from beside the target", wanted="at least one that varies")
    table = table.drop_columns(list(roles.drop))
    data = labelled_table(table, roles.target, roles.weight, task=task, **roles.reading)
    order = _row_order(data.table, roles)
    data = replace(data, table=data.table.drop_columns([*roles.beside]))
    return PreparedTable(data, order)


def _prepare_stream(X: Any, roles: TableRoles, task: Any, stream: StreamSettings) -> PreparedTable:
    """The same for a table that is read block by block; groups and times are those of its sample."""
    source = open_source(X)
    if isinstance(source, Source):
        _check_roles(source.schema.empty_table(), roles)
    plan = StreamPlan(
        roles.target, roles.weight, task, roles.beside, roles.drop, **roles.reading, sample_rows=stream.sample_rows,
        seed=stream.seed,
    )  # fmt: skip
    if stream.dask:
        from certifit.table.streaming.distributed_table import distributed_table

        data: StreamedTable = distributed_table(X, plan)
    else:
        data = streamed_table(X, plan)
    return PreparedTable(data, _row_order(data.sample_table, roles))


def _check_roles(table: pa.Table, roles: TableRoles) -> None:
    """Refuse columns that are not there, and those that would be two things."""
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
    for role, column in (("group", roles.group), ("time", roles.time)):
        if column is not None:
            pick(table, column, f"{role} column")


def _row_order(table: pa.Table, roles: TableRoles) -> RowOrder:
    """Which rows belong together, and which come later."""
    groups = None if roles.group is None else _codes(table[roles.group], roles.group)
    times = None if roles.time is None else _codes(_in_order(table[roles.time], roles), roles.time)
    for role, codes in (("groups", groups), ("times", times)):
        if codes is not None and codes.max() == 0:
            raise DataError(got=f"one value only in the column of {role}", wanted="at least two different ones")
    return RowOrder(groups, times, roles.group or "", roles.time or "")


def _in_order(column: pa.ChunkedArray, roles: TableRoles) -> pa.ChunkedArray:
    """Times as values whose order is that of time: text as dates or numbers; text that may be neither is refused."""
    kind, name = column.type, str(roles.time)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    text, named = with_holes(column.cast(pa.string())), date_formats(roles.dates).get(name)
    fitting = fitting_readings(text.drop_null())
    reading = named or (choose_date(fitting) if named == "" else choose_reading(fitting, units_of(text.drop_null())))
    times = read_text(text, reading) if reading else text
    year_first = pc.all(pc.match_substring_regex(text, r"^[0-9]{4}([^0-9]|$)")).as_py()
    # Text such as 2024-03 or 2024Q1 has the order of time as it is.
    if times.null_count == text.null_count and (
        reading or (year_first and pc.count_distinct(pc.utf8_length(text)).as_py() == 1)
    ):
        return times
    doubt = f"are not all in {named}" if named else "are text"
    doubt = "may be day or month first" if not reading and sum(map(is_date_reading, fitting)) > 1 else doubt
    raise DataError(
        got=f"times in column {name!r} that {doubt}, such as {text.drop_null()[0].as_py()[:40]!r}",
        wanted="dates, or numbers, so that it is known which rows are later",
        fix=f"--date {name}=%d/%m/%Y names the format; in Python dates=['{name}=%d/%m/%Y'].",
    )


def _codes(column: pa.ChunkedArray, name: str) -> Any:
    """Whole numbers (n,) in the order of a column's values."""
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
    _check_target(data)
    why = "as asked" if settings.folds == 0 else why_not_compared(table.sample, settings)
    if not why:
        found = search(data, settings, table.order, tell, replay)
        return found.model, found.assessment
    check_names(settings)
    name = settings.kinds[0]
    model = build(
        name,
        settings.settings or {},
        TableFacts.of(table.sample, settings.seed, settings.class_weight, settings.family),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        model.fit(data)
    return model, f"not cross-validated: {why}" if settings.folds else "not cross-validated, as asked"


def _check_target(data: LabelledData) -> None:
    """Refuse a target of which nothing can be learnt: the same in every row, or a class of its own in each."""
    if data.choice.task == "regression":
        low, _, high = data.spread
        if low == high:
            raise DataError(got=f"a target that is {low:g} in every row", wanted="a target that varies")
    elif len(data.labels) == 1:
        raise DataError(
            got=f"a target with one class: {str(data.labels[0])!r}",
            wanted="at least two classes",
            fix="Check that the right column is the target and that no filter removed the other classes.",
        )
    elif len(data.labels) == data.n_rows > 2:
        raise DataError(
            got=f"a target that is different in each of {data.n_rows:,} rows",
            wanted="classes that come more than once",
            fix="Name another column; one that only tells the rows apart cannot be predicted.",
        )


_OPTIONS = (
    "task", "metric", "cv", "weight", "group", "time", "drop", "keep", "categorical", "missing_words", "dates",
    "class_weight", "family", "stream", "dask",
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
    budget : seconds for comparing models and for fitting the chosen one to all rows, or '2m'
    seed : of folds and of models that draw
    replay : a model of `fit`, to be fitted again by its ledger: without a clock, and with the same bits
    **options : task ('classification' or 'regression'), metric (accuracy, log_loss, brier; r2, mae, deviance, the
        usual one of counts), cv (5 folds), weight, group and time (names of columns), drop, keep and categorical
        (lists of names), missing_words and dates (lists), class_weight, family; stream=True reads files block by
        block even where they are small: those that are large beside the memory available are read so in any case, and
        models are compared on rows drawn from them; dask=True has the workers of the current dask.distributed.Client
        read them

    Returns
    -------
    TableClassifier or TableRegressor : shows alerts and a leaderboard; `predict_set` or `predict_interval` says how
        sure it is

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
    how = streaming(settings, ledger, options.get("stream"), options.get("dask"))
    table = prepare(X, _roles(target, options), options.get("task", "auto"), how)
    seconds = None if ledger is not None else max(1, round(settings.budget))
    with counted("comparing models, seconds", seconds) as advance:
        found, assessment = fit_prepared(table, settings, _shown_trials(advance, seconds), ledger)
    keep_alerts(found, [*later_alerts(found, table.sample, assessment), *table_alerts(table.sample)])
    return found


def _shown_trials(advance: Advance, seconds: int | None) -> Callable[[Contest, Trial], None]:
    """What tells a line of progress which model is being compared, and of how many seconds how many are gone."""
    began = time.monotonic()

    def tell(_contest: Contest, trial: Trial) -> None:
        fold = f", fold {trial.folds + 1}" if trial.fate == "running" else ""
        advance(min(int(time.monotonic() - began), seconds or 10**9), seconds, f"{trial.words[:20]}{fold}, seconds")

    return tell


def replayed_settings(settings: SearchSettings, ledger: SearchLedger) -> SearchSettings:
    """The settings of the run that a ledger tells of."""
    return replace(
        settings, budget=ledger.budget, model=ledger.asked, metric=ledger.metric_word, folds=ledger.asked_folds,
        seed=ledger.seed, class_weight=ledger.class_weight or None, family=ledger.family, rule=ledger.rule,
    )  # fmt: skip


def streaming(
    settings: SearchSettings, ledger: SearchLedger | None = None, asked: Any = None, dask: Any = None
) -> StreamSettings:
    """How a table is read for such a comparison, or for the one that a ledger tells of."""
    if ledger is not None and (ledger.streamed == "dask") != bool(dask):
        raise DataError(
            got=f"a replay {'with' if dask else 'without'} a Dask cluster",
            wanted=f"one {'without' if dask else 'with'} it, as in the first run: other pieces have other last bits",
        )
    again = ledger is not None and ledger.streamed != ""
    return StreamSettings(bool(asked or dask) or again, bool(dask), settings.most_rows, settings.seed)


def _ledger_of(model: Any) -> SearchLedger | None:
    if model is not None and not hasattr(model, "search_"):
        raise DataError(got=f"a {type(model).__name__} to replay", wanted="a model of certifit.fit")
    return None if model is None else model.search_


def _roles(target: str, options: Mapping[str, Any]) -> TableRoles:
    lists = [tuple(options.get(name, ())) for name in ("drop", *READING)]
    return TableRoles(target, options.get("weight"), options.get("group"), options.get("time"), *lists)
