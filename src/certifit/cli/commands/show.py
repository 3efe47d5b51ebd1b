"""`certifit show` and `certifit report`: what a saved model is, on the screen or on a page."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow as pa

from certifit.cli.files import TableFiles, check_writable, table_to_fit
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen
from certifit.report import Report, render
from certifit.store import write_atomically
from certifit.table.alerts import kept_alerts, table_alerts
from certifit.table.portfolio.leaderboard import choice_words
from certifit.table.streaming.streamed_table import StreamedTable


def run_show(model_path: Path, screen: Screen) -> bool:
    """Say what is in a model file; True if the certificate that it carries holds."""
    model = load_table_model(model_path)
    screen.say(f"{type(model.model_).__name__} of {model.target_}, fitted to {model.n_rows_:,} rows")
    screen.table(
        ["column", "type", "used as", "missing", "distinct", "what is done"],
        [(c.name, c.type, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.done) for c in model.columns_],
        right=(3, 4),
    )
    if hasattr(model, "search_"):
        screen.say(choice_words(model.search_))
    for alert in kept_alerts(model):
        screen.say(f"! {alert.words}", style="yellow")
    screen.heading("Certificate, as the file carries it (certifit audit checks it again)")
    screen.certificate(model.certificate_)
    screen.heading("Settings")
    settings = {name: str(value) for name, value in model.get_params().items()}
    screen.pairs([*settings.items(), ("rows (SHA-256)", model.fingerprint_)])
    screen.document(
        {
            "model": type(model.model_).__name__,
            "target": model.target_,
            "rows": model.n_rows_,
            "settings": settings,
            "fingerprint": model.fingerprint_,
            "certificate": model.certificate_.to_dict(),
            "alerts": [alert._asdict() for alert in kept_alerts(model)],
        }
    )
    return model.certificate_.holds


def run_report(model_path: Path, table: TableFiles, report: Path, screen: Screen, stream: bool = False) -> None:
    """Write the page of a saved model and the table that it was fitted to."""
    check_writable(report, *table.paths, model_path)
    model = load_table_model(model_path)
    with warnings_as_notes(screen):
        found = table_to_fit(table, stream)
        rows = model.encode_labelled(found if isinstance(found, pa.Table) else model.stream(found))
        data, drawn = rows.data, None
        if isinstance(data, StreamedTable):
            drawn = data.sample_numbers
            data = data.sample
            screen.say(f"read block by block; pictures are drawn from {data.n_rows:,} rows drawn at random")
    if rows.fingerprint != model.fingerprint_:
        screen.note("this is not the table that the model was fitted to: its certificate is about another one")
    recheck = shlex.join(["certifit", "audit", str(model_path), *table.typed])
    why = "not tested here: the page was made from the saved model"
    alerts = kept_alerts(model) or tuple(table_alerts(data))
    page = render(Report(model, data, why, table.name, model.get_params(), recheck, alerts, drawn=drawn))
    write_atomically(report, page.encode())
    screen.pairs([("page", str(report))])
    screen.document({"page": str(report)})
