"""`certifit audit`: check a saved model's certificate again, from the table."""

from __future__ import annotations

from pathlib import Path

from certifit.checkers.auditing import audit
from certifit.cli.files import TableFiles, read_table
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen


def run_audit(model_path: Path, table_path: TableFiles, screen: Screen) -> bool:
    """Recompute the certificate from the table; True if it holds."""
    model = load_table_model(model_path)
    with warnings_as_notes(screen):
        data = model.encode_labelled(read_table(table_path))
    same = data.fingerprint == model.fingerprint_
    if same:
        screen.say(f"{table_path.name} has the {model.n_rows_:,} rows the model was fitted to")
    else:
        screen.say(
            f"{table_path.name} differs from the table the model was fitted to "
            f"({data.n_rows:,} rows here, {model.n_rows_:,} there): the claim below is about this table"
        )
    certificate = audit(model.model_, data) if not same else audit(model, data.data)
    screen.certificate(certificate)
    screen.document({"same_table": same, "rows": data.n_rows, "certificate": certificate.to_dict()})
    return certificate.holds
