"""The options of `certifit fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TargetOption = Annotated[str, typer.Option(help="Column to predict.", show_default=False)]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "--out", "-o", help="Where the model goes.  [default: TABLE-model.certifit]"),
]
ReportOption = Annotated[Path | None, typer.Option(help="Where the HTML report goes.  [default: TABLE-report.html]")]
NoReportOption = Annotated[bool, typer.Option("--no-report", help="Write no report.")]
ModelOption = Annotated[
    str,
    typer.Option(
        help="`auto` compares all: `linear`, `least_squares`, `naive_bayes`, `linear_svm`, `additive`, `kernel_svm`, "
        "`forest`, `network`, `boosting`; or name some, with commas."
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option(help="Time for comparing and fitting: 60s, 2m.  [default: 20s]", show_default=False)
]
MetricOption = Annotated[
    str, typer.Option(help="`accuracy`, `log_loss`, `brier`; of a quantity `r2`, `mae`, `deviance`.")
]
FoldsOption = Annotated[int, typer.Option("--cv", "--folds", min=0, help="Folds of the comparison; 0 for none.")]
TaskOption = Annotated[str, typer.Option(help="`classification` or `regression`; `auto` decides by the target.")]
FamilyOption = Annotated[
    str,
    typer.Option(help="Of a quantity: `gaussian`, `poisson`, `negative_binomial` or `gamma`; `auto` decides by it."),
]
COption = Annotated[
    float | None,
    typer.Option("--C", help="Inverse strength of the penalty of the linear model.", show_default=False),
]
ClassWeightOption = Annotated[
    str | None, typer.Option(help="`balanced`: every class counts the same.", show_default=False)
]
WeightOption = Annotated[str | None, typer.Option(help="Column of row weights.", show_default=False)]
GroupOption = Annotated[
    str | None, typer.Option(help="Column whose equal rows stay in one fold.", show_default=False)
]
TimeOption = Annotated[str | None, typer.Option(help="Column by which later rows are tested.", show_default=False)]
DropOption = Annotated[
    list[str] | None,
    typer.Option("--drop", "--id", help="Column not to use; may be repeated.", show_default=False),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(help="Column to use though it only tells the rows apart; may be repeated.", show_default=False),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Shuffles the rows into folds, and of models that draw.")]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Threads.  [default: all]", show_default=False)]
ReplayOption = Annotated[
    Path | None,
    typer.Option(help="A model to fit again by its ledger: no clock, the same bits.", show_default=False),
]
CategoricalOption = Annotated[
    list[str] | None,
    typer.Option(help="Column of numbers that are categories; may be repeated.", show_default=False),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(help="Word or number for a missing entry, beside ?, - and n/a; repeatable.", show_default=False),
]
StreamOption = Annotated[
    bool,
    typer.Option("--stream", help="Read files block by block; large ones are in any case."),
]
DateOption = Annotated[
    list[str] | None,
    typer.Option(help="Column of text to read as dates, NAME or NAME=%d/%m/%Y; repeatable.", show_default=False),
]
DaskOption = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler, whose workers read the files.", show_default=False),
]
