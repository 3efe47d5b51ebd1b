"""`certifit audit`: does a saved model's certificate hold, recomputed from a table?"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from certifit.checkers.auditing import audit
from certifit.cli.files import TableFiles, check_writable, table_to_fit
from certifit.cli.foreign_model import foreign_data, is_foreign, load_foreign
from certifit.cli.junit import CheckedCase, certificate_cases, junit_xml
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen
from certifit.core import Certificate
from certifit.store import write_atomically


class AuditSettings(NamedTuple):
    """What `certifit audit` was asked to do."""

    target: str | None = None  # of a model that is not certifit's
    junit: Path | None = None  # where JUnit XML goes
    unsafe_pickle: bool = False


def run_audit(
    model_path: Path, table_path: TableFiles, screen: Screen, settings: AuditSettings = AuditSettings()
) -> bool:
    """Recompute the certificate from the table; True if it holds (and, for a CI server, the table is the fit's)."""
    if settings.junit is not None:
        check_writable(settings.junit, *table_path.paths, str(model_path))
    if is_foreign(model_path):
        certificate, document, cases = _audit_foreign(model_path, table_path, settings)
    else:
        certificate, document, cases = _audit_own(model_path, table_path, screen)
    screen.certificate(certificate)
    screen.document({**document, "certificate": certificate.to_dict()})
    if settings.junit is None:
        return certificate.holds
    cases += certificate_cases(certificate)
    suite = f"certifit audit {model_path.name} {table_path.name}"
    write_atomically(settings.junit, junit_xml(suite, cases, str(certificate)))
    screen.say(f"written: {settings.junit}")
    return not any(case.failure for case in cases)


def _audit_own(
    model_path: Path, table_path: TableFiles, screen: Screen
) -> tuple[Certificate, dict[str, object], list[CheckedCase]]:
    """A model of `certifit fit`, on its own table or another."""
    model = load_table_model(model_path)
    with warnings_as_notes(screen):
        found = table_to_fit(table_path)
        data = model.encode_labelled(found if isinstance(found, pa.Table) else model.stream(found))
    # Where the workers of a cluster fitted it, the hash is of their pieces: the rows' number and encoding tell.
    in_pieces = model.fingerprint_.startswith("pieces:")
    alike = data.data.n_rows == model.n_rows_ and not model.disagreements(data.data) if in_pieces else False
    same = alike if in_pieces else data.fingerprint == model.fingerprint_
    words = (
        f"{table_path.name} differs from the table the model was fitted to "
        f"({data.n_rows:,} rows here, {model.n_rows_:,} there)"
    )
    if same:
        screen.say(f"{table_path.name} has the {model.n_rows_:,} rows the model was fitted to")
    else:
        screen.say(f"{words}: the claim below is about this table")
    certificate = audit(model.model_, data) if not same else audit(model, data.data)
    cases = [CheckedCase("the table is the one that the model was fitted to", "" if same else words)]
    return certificate, {"same_table": same, "rows": data.n_rows}, cases


def _audit_foreign(
    model_path: Path, table_path: TableFiles, settings: AuditSettings
) -> tuple[Certificate, dict[str, object], list[CheckedCase]]:
    """A model of another library, on the rows that it is said to be fitted to."""
    model = load_foreign(model_path, settings.unsafe_pickle)
    X, y = foreign_data(model, table_path, settings.target)
    return audit(model, X, y), {"rows": len(y)}, []
