"""What must work where certifit has just been installed: `python tools/smoke.py VERSION`, from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import certifit


def main(version: str) -> None:
    assert certifit.__version__ == version, (certifit.__version__, version)
    assert "site-packages" in certifit.__file__, f"{certifit.__file__} is not what was installed"
    penguins = certifit.load_penguins().dropna()
    X, y = penguins[["bill_length_mm", "body_mass_g"]], penguins["species"]
    model = certifit.LogisticRegression().fit(X, y)
    assert model.certificate_.holds
    assert certifit.audit(model, X, y).holds
    with tempfile.TemporaryDirectory() as folder:
        certifit.save(model, Path(folder) / "model.certifit")
        again = certifit.load(Path(folder) / "model.certifit")
        assert (again.predict(X) == model.predict(X)).all()
        command = Path(sys.executable).parent / "certifit"
        surroundings = {**os.environ, "MPLBACKEND": "Agg"}
        subprocess.run([command, "demo"], check=True, cwd=folder, env=surroundings, stdout=subprocess.DEVNULL)
        saved = ["penguins-model.certifit", "penguins-report.html"]
        assert all((Path(folder) / name).exists() for name in saved), os.listdir(folder)
        table = Path(certifit.__file__).parent / "datasets" / "penguins.csv"
        audit = [command, "audit", saved[0], table]
        subprocess.run(audit, check=True, cwd=folder, env=surroundings, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(sys.argv[1])
