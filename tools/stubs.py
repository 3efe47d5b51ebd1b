"""Write the type stubs of the public names from the registry: `python tools/stubs.py` (`--check` only compares)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from certifit.registry import PASSED_ON, PICTURES, PUBLIC, room_names

PACKAGE = Path(__file__).parents[1] / "src" / "certifit"
# Packages whose public names come from the registry alone.
ROOMS = (
    "cluster",
    "decomposition",
    "discriminant_analysis",
    "ensemble",
    "feature_selection",
    "kernel_approximation",
    "linear_model",
    "manifold",
    "mixture",
    "model_selection",
    "naive_bayes",
    "neural_network",
    "svm",
    "table",
    "tree",
)
OTHERS = ("datasets", "divergence", "exceptions", "families", "linalg", "losses", "plots")
HEADER = "# Written by tools/stubs.py from certifit/registry.py.\n"


def stub(names: Mapping[str, str]) -> str:
    """A stub that exports these names from the modules that define them, and nothing else."""
    return HEADER + "\n".join(_line(name, module) for name, module in sorted(names.items())) + "\n"


def _line(name: str, module: str) -> str:
    """An import as the formatter writes it."""
    line = f"from certifit.{module} import {name} as {name}"
    return line if len(line) <= 118 else f"from certifit.{module} import (\n    {name} as {name},\n)"


def stubs() -> dict[Path, str]:
    """The text of every stub by its path."""
    packages = [f"from certifit import {name} as {name}" for name in sorted((*ROOMS, *OTHERS))]
    flat = stub({name: entry.module for name, entry in PUBLIC.items()}) + "\n".join(packages)
    found = {PACKAGE / "__init__.pyi": flat + "\n\n__all__: list[str]\n__version__: str\n"}
    found[PACKAGE / "plots" / "__init__.pyi"] = stub(PICTURES)
    return found | {PACKAGE / room / "__init__.pyi": room_stub(room) for room in ROOMS}


def room_stub(room: str) -> str:
    """A room's own names, then those that it passes on from scikit-learn."""
    passed_on = [f"from sklearn.{room} import {name} as {name}\n" for name in PASSED_ON.get(room, ())]
    return stub(room_names(room)) + "".join(passed_on)


def main() -> int:
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path} does not match the registry; run python tools/stubs.py")
        return int(bool(stale))
    for path in stale:
        path.write_text(stubs()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
