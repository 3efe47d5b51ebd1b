"""The commands. Heavy imports wait until a command runs, so that `certifit --help` is quick.

Exit codes: 0 done; 1 a certificate does not hold, two models differ, or a checked script would not run; 2 the input
cannot be used (got, wanted, what to do: on stderr).
"""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from certifit.cli import options

NOT_PROVED, WOULD_NOT_RUN, DIFFERENT, BAD_INPUT, INTERRUPTED = 1, 1, 1, 2, 130


class Commands(TyperGroup):
    """Bad input ends in a message on stderr, not in a traceback; a bug of ours still shows its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (ValueError, OSError, RuntimeError, FloatingPointError) as error:
            from certifit.cli.errors import words

            message = words(error)
            if message is None:
                raise
            from certifit.cli.screen import wrap
            from certifit.exceptions import visible

            typer.echo(wrap(f"certifit: {visible(message)}", get_terminal_size().columns), err=True)
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt:
            typer.echo("certifit: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)

Table = Annotated[
    list[str],
    typer.Argument(
        help="CSV, TSV, Parquet, JSON lines, Feather, `file.db::table`, `-` for standard input; several are joined.",
        metavar="TABLE",
        show_default=False,
    ),
]
Model = Annotated[
    Path, typer.Argument(help="A model written by `certifit fit`.", metavar="MODEL", show_default=False)
]
Stream = Annotated[
    bool, typer.Option("--stream", help="Read CSV or Parquet block by block; done in any case where it is large.")
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Of text files, where they are neither UTF-8 nor Windows-1252.", show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"certifit {version('certifit')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Fit models that carry a proof of how good they are."""


@app.command()
def fit(
    table: Table,
    target: options.TargetOption,
    output: options.OutputOption = None,
    report: options.ReportOption = None,
    no_report: options.NoReportOption = False,
    model: options.ModelOption = "auto",
    budget: options.BudgetOption = None,
    metric: options.MetricOption = "auto",
    folds: options.FoldsOption = 5,
    task: options.TaskOption = "auto",
    family: options.FamilyOption = "auto",
    C: options.COption = None,
    class_weight: options.ClassWeightOption = None,
    weight: options.WeightOption = None,
    group: options.GroupOption = None,
    time: options.TimeOption = None,
    drop: options.DropOption = None,
    keep: options.KeepOption = None,
    categorical: options.CategoricalOption = None,
    missing: options.MissingOption = None,
    date: options.DateOption = None,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    replay: options.ReplayOption = None,
    stream: options.StreamOption = False,
    dask: options.DaskOption = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare models of a table and fit the best, certified.

    Says what is in the table and whether the target is a class or a quantity, compares models on the same folds
    within a budget of time, fits the chosen one to all rows, proves, saves it and writes an HTML report. Ctrl-C ends
    the comparison with the best so far.
    """
    from certifit.cli.commands.fit import FitPlaces, FitSettings, run_fit
    from certifit.cli.files import TableFiles

    settings = FitSettings(
        target, folds, C, class_weight, weight, tuple(drop or ()), seed, task, family, tuple(keep or ()), model,
        metric, budget, group, time, replay, jobs, tuple(categorical or ()), tuple(missing or ()), stream, dask,
        tuple(date or ()),
    )  # fmt: skip
    files = TableFiles(tuple(table), encoding)
    page = None if no_report else report or Path(f"{files.stem}-report.html")
    places = FitPlaces(output or Path(f"{files.stem}-model.certifit"), page)
    if not run_fit(files, settings, places, _screen(quiet, json)):
        raise typer.Exit(NOT_PROVED)


@app.command()
def audit(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model of `certifit fit`, a network (.onnx), scikit-learn's (.skops, .pkl, .joblib).",
            metavar="MODEL",
            show_default=False,
        ),
    ],
    table: Table,
    target: Annotated[
        str | None, typer.Option(help="Target column, of a model that is not certifit's.", show_default=False)
    ] = None,
    ci: Annotated[
        bool, typer.Option("--ci", help="Write JUnit XML, MODEL-audit.xml; another table than the fit's fails too.")
    ] = False,
    unsafe_pickle: Annotated[
        bool, typer.Option("--unsafe-pickle", help="Load a pickle, which runs the code inside it.")
    ] = False,
    encoding: Encoding = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check a saved model's certificate again.

    It is recomputed from the table by an independent implementation. Ends with 0 if it holds, 1 if not, 2 where the
    input cannot be used.
    """
    from certifit.cli.commands.audit import AuditSettings, run_audit
    from certifit.cli.files import TableFiles

    settings = AuditSettings(target, Path(f"{model.stem}-audit.xml") if ci else None, unsafe_pickle)
    if not run_audit(model, TableFiles(tuple(table), encoding), _screen(quiet, json), settings):
        raise typer.Exit(NOT_PROVED)


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(help="A model of `certifit fit`.", metavar="A", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another one.", metavar="B", show_default=False)],
    table: Annotated[
        str | None, typer.Argument(help="Rows to compare them on.", metavar="[TABLE]", show_default=False)
    ] = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say why two models of a table differ.

    Data, settings, seeds, and how much of the difference may be the solvers' own: what their gaps leave open. With a
    table, read block by block, also which rows are judged otherwise, and whether the score is. Ends with 1 where they
    differ.
    """
    from certifit.cli.commands.diff import run_diff
    from certifit.cli.files import TableFiles

    files = None if table is None else TableFiles((table,), encoding)
    if not run_diff(first, second, files, _screen(quiet, json)):
        raise typer.Exit(DIFFERENT)


@app.command()
def explore(
    table: Table,
    report: Annotated[
        Path | None, typer.Option(help="Where the HTML page goes.  [default: TABLE-explored.html]")
    ] = None,
    groups: Annotated[int, typer.Option(min=0, help="Number of groups; 0 chooses it.")] = 0,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column not to use; may be repeated.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Where clusterings start.")] = 0,
    rows: Annotated[
        int,
        typer.Option(min=0, help="Rows to look at, drawn at random; 0: all, or 50,000 where memory is too small."),
    ] = 0,
    encoding: Encoding = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Look at a table without a target.

    A map of its rows (principal components), groups with what is proved of them, which columns drive these, holes
    and outliers, on the screen and on a page.
    """
    from certifit.cli.commands.explore import ExploreSettings, run_explore
    from certifit.cli.files import TableFiles

    files, settings = TableFiles(tuple(table), encoding), ExploreSettings(groups, tuple(drop or ()), seed, rows)
    run_explore(files, settings, report or Path(f"{files.stem}-explored.html"), _screen(quiet, json))


@app.command()
def show(model: Model, quiet: Quiet = False, json: Json = False) -> None:
    """Say what is in a model file: columns, settings, and the certificate that it carries."""
    from certifit.cli.commands.show import run_show

    if not run_show(model, _screen(quiet, json)):
        raise typer.Exit(NOT_PROVED)


@app.command()
def report(
    model: Model,
    table: Table,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Where it goes.  [default: MODEL-report.html]")
    ] = None,
    stream: Stream = False,
    encoding: Encoding = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the HTML page of a saved model again."""
    from certifit.cli.commands.show import run_report
    from certifit.cli.files import TableFiles

    page = output or Path(f"{model.stem}-report.html")
    run_report(model, TableFiles(tuple(table), encoding), page, _screen(quiet, json), stream)


@app.command()
def predict(
    model: Model,
    table: Table,
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", help="CSV or Parquet file.  [default: CSV on standard output]"),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add intervals around a quantity, or sets of classes.")
    ] = False,
    coverage: Annotated[float, typer.Option(help="Share of new rows that intervals or sets hold.")] = 0.9,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", "--id", help="Column to write too; may be repeated.", show_default=False),
    ] = None,
    encoding: Encoding = None,
) -> None:
    """Predict the class or the quantity of each row, as CSV or Parquet.

    One line for each row: the prediction and, of a class, the probability of every class. The table is read block by
    block, so that it may be larger than memory.
    """
    from certifit.cli.commands.predict import PredictSettings, run_predict
    from certifit.cli.files import TableFiles

    settings = PredictSettings(coverage if intervals else None, tuple(keep or ()))
    run_predict(model, TableFiles(tuple(table), encoding), output, _screen(False, False), settings)


@app.command()
def check(
    script: Annotated[
        Path, typer.Argument(help="Python (.py) or notebook (.ipynb).", metavar="SCRIPT", show_default=False)
    ],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say what certifit would change in a script.

    Lists what changes when the script's imports come from certifit instead of scikit-learn: which names are there,
    which arguments are ignored or missing, which defaults differ. The script is read, not run.
    """
    from certifit.cli.commands.check import run_check

    if not run_check(script, _screen(quiet, json)):
        raise typer.Exit(WOULD_NOT_RUN)


@app.command()
def demo(
    table: Annotated[
        str, typer.Argument(help="penguins (a class), or visits (a count).", metavar="[TABLE]", show_default=False)
    ] = "penguins",
    budget: Annotated[
        str | None, typer.Option(help="Time for comparing models.  [default: 20s]", show_default=False)
    ] = None,
) -> None:
    """Run the whole job on a bundled table.

    Compares models of the Palmer penguins (344 birds, some measurements missing), or of visits to a doctor (20,190
    people's years), fits the best, saves it and its report in the current folder and checks the saved model again.
    """
    from certifit.cli.commands.audit import run_audit
    from certifit.cli.commands.fit import FitPlaces, FitSettings, run_fit
    from certifit.cli.files import TableFiles
    from certifit.datasets import penguins_path, visits_path
    from certifit.exceptions import DataError

    known = {"penguins": (penguins_path(), "species"), "visits": (visits_path(), "visits")}
    if table not in known:
        raise DataError(got=f"demo {table}", wanted=f"one of {', '.join(known)}")
    path, target = known[table]
    screen, files = _screen(False, False), TableFiles((str(path),))
    model, report = Path(f"{table}-model.certifit"), Path(f"{table}-report.html")
    holds = run_fit(files, FitSettings(target, budget=budget), FitPlaces(model, report), screen)
    screen.heading("Checking the saved model again")
    holds = run_audit(model, files, screen) and holds
    screen.heading("Try next")
    screen.say(f"open {report} in a browser")
    screen.say(f"certifit predict {model} YOUR_TABLE.csv")
    screen.say("certifit fit YOUR_TABLE.csv --target COLUMN")
    screen.say("the sample table is at")
    screen.say(f"  {files}")
    if not holds:
        raise typer.Exit(NOT_PROVED)


@app.command("warm-up")
def warm_up(
    names: Annotated[list[str] | None, typer.Argument(help="Estimators, such as KMeans; all by default.")] = None,
) -> None:
    """Compile the fast loops of these estimators once, or those of all.

    Later fits, also in other processes, then start at once.
    """
    from certifit.cli.commands.warm_up import run_warm_up

    run_warm_up(_screen(False, False), names or [])


def _screen(quiet: bool, json: bool) -> Any:
    from certifit.cli.screen import Screen

    return Screen(quiet=quiet, json=json, file=sys.stdout)
