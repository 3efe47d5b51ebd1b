"""Build wheel and source distribution, install each in a fresh environment, and see that the package works there.

    python tools/release_check.py [--pythons python3.11 python3.12 python3.13]

Pythons that are not at hand are named and left out. The wheel is installed for every Python; for the first one the
source distribution is, too, which must hold what `make test` and `make docs` need.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PIP = ("-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "-c", "constraints.txt")
IN_SOURCE = (
    "src/certifit/__init__.py",
    "tests/conftest.py",
    "docs/conf.py",
    "docs/index.md",
    "tools/smoke.py",
    "Makefile",
)


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


def environment(python: str, folder: Path) -> Path:
    """A fresh environment; its interpreter."""
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def build(python: Path, dist: Path) -> tuple[Path, Path]:
    """Wheel and source distribution, the wheel from the source distribution, as an installer would."""
    run(python, *PIP, "hatchling")
    make = "import sys, hatchling.build as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"
    run(python, "-c", make, "build_sdist", dist)
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(dist / "unpacked", filter="data")
    unpacked = dist / "unpacked" / f"certifit-{VERSION}"
    missing = [name for name in IN_SOURCE if not (unpacked / name).exists()]
    if missing:
        sys.exit(f"{source.name} lacks {missing}")
    run(python, "-c", make, "build_wheel", dist, cwd=unpacked)
    (wheel,) = dist.glob("*.whl")
    return wheel, source


def look_at(wheel: Path) -> None:
    """The wheel has the package and nothing else, with its sample tables and types."""
    names = zipfile.ZipFile(wheel).namelist()
    strange = [name for name in names if not name.startswith(("certifit/", f"certifit-{VERSION}.dist-info/"))]
    wanted = ("certifit/py.typed", "certifit/datasets/penguins.csv", "certifit/cluster/__init__.pyi")
    missing = [name for name in wanted if name not in names]
    if strange or missing:
        sys.exit(f"{wheel.name}: strange {strange[:5]}, missing {missing}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", nargs="+", default=["python3.11", "python3.12", "python3.13"])
    pythons = [found for name in parser.parse_args().pythons if (found := _find(name))]
    if not pythons:
        sys.exit("no Python to try: name one by --pythons")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = build(environment(pythons[0], folder / "build"), folder / "dist")
        look_at(wheel)
        print(
            f"{wheel.name} {wheel.stat().st_size / 1e6:.1f} MB, {source.name} {source.stat().st_size / 1e6:.1f} MB",
            flush=True,
        )
        for number, (python, what) in enumerate([*((python, wheel) for python in pythons), (pythons[0], source)]):
            fresh = environment(python, folder / f"fresh-{number}")
            run(fresh, *PIP, what)
            run(fresh, ROOT / "tools" / "smoke.py", VERSION, cwd=folder)
            print(f"{python}: {what.name} works", flush=True)
            shutil.rmtree(folder / f"fresh-{number}")


def _find(python: str) -> str | None:
    """A Python that runs: by its name, or where pyenv keeps it, whose shims refuse versions that are not chosen."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for candidate in (python, *sorted(root.glob(f"versions/*/bin/{python}"), reverse=True)):
        try:
            subprocess.run([candidate, "--version"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return str(candidate)
    print(f"{python} is not at hand", flush=True)
    return None


if __name__ == "__main__":
    main()
