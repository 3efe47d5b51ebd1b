"""The house in numbers: folders, names, constants, wide functions, tests that patch constants, the way of a fit.

    python tools/house.py [REPOSITORY]        # this one unless told; run it in two checkouts to compare them

Places to look at, not verdicts; tests/common/test_house.py holds the limits.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MANY_PARAMETERS, LONG_FUNCTION = 7, 70
PATCHED = re.compile(r"monkeypatch\.setattr\(\s*(?:[^()]*?[\"'.]|\w+,\s*[\"'])([A-Z][A-Z_0-9]+)[\"']")


@dataclass
class House:
    """What is found below src/certifit and tests."""

    files: int = 0
    lines: int = 0
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    constants: Counter[str] = field(default_factory=Counter)
    wide: list[tuple[int, str]] = field(default_factory=list)
    long: list[tuple[int, str]] = field(default_factory=list)
    folders: dict[str, int] = field(default_factory=dict)  # entries of every folder below the package
    patched: list[str] = field(default_factory=list)  # constants that tests replace

    @property
    def repeated(self) -> dict[str, list[str]]:
        return {name: paths for name, paths in self.classes.items() if len(paths) > 1}

    @property
    def constants_per_thousand(self) -> float:
        return 1000 * sum(self.constants.values()) / max(self.lines, 1)


def survey(root: Path) -> House:
    """Read every file of the package and of the tests."""
    house, package = House(), root / "src" / "certifit"
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        house.files += 1
        house.lines += text.count("\n")
        _look(house, str(path.relative_to(root)), ast.parse(text))
    for folder in (p for p in (package, *package.rglob("*")) if p.is_dir() and p.name != "__pycache__"):
        entries = [p for p in folder.iterdir() if p.name not in ("__pycache__", "__init__.py", "__init__.pyi")]
        house.folders[str(folder.relative_to(root))] = len(entries)
    for path in sorted((root / "tests").rglob("*.py")):
        house.patched += PATCHED.findall(path.read_text(encoding="utf-8"))
    return house


def _look(house: House, path: str, tree: ast.Module) -> None:
    for name in _assigned(tree):
        house.constants[path] += name.isupper()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            house.classes[node.name].append(path)
        if isinstance(node, ast.FunctionDef):
            a = node.args
            count = len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs)
            count -= bool(a.args) and a.args[0].arg in ("self", "cls")
            if count > MANY_PARAMETERS and node.name != "__init__":
                house.wide.append((count, f"{path}:{node.lineno} {node.name}"))
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONG_FUNCTION:
                house.long.append((length, f"{path}:{node.lineno} {node.name}"))


def _assigned(tree: ast.Module) -> Iterator[str]:
    """Names that are assigned at the top of a module."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def hops() -> list[str]:
    """The files that `KMeans(3).fit(X)` goes through, in the order of first use."""
    import numpy as np

    import certifit

    model, X = certifit.KMeans(3, n_init=1, random_state=0), np.random.default_rng(0).normal(size=(200, 4))
    model.fit(X)
    seen: dict[str, None] = {}

    def note(frame, event, _):  # type: ignore[no-untyped-def]
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("certifit."):
            seen.setdefault(name)

    sys.setprofile(note)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
    return [*seen]


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])
    house = survey(root)
    top = f"src{'/'}certifit"
    inner = {name: count for name, count in house.folders.items() if name != top}
    largest = max(inner, key=lambda name: inner[name])
    print(f"source: {house.files} files, {house.lines:,} lines")
    print(f"largest folder below the package: {largest} with {inner[largest]} entries ({house.folders[top]} rooms)")
    print(
        f"class names used more than once: {len(house.repeated)} of {len(house.classes)}",
        *sorted(house.repeated)[:12],
    )
    print(f"module constants: {sum(house.constants.values())}, {house.constants_per_thousand:.1f} per thousand lines")
    print("   " + "; ".join(f"{path} {count}" for path, count in house.constants.most_common(5)))
    print(f"constants patched by tests: {len(house.patched)}", *sorted(set(house.patched))[:12])
    print(f"functions with more than {MANY_PARAMETERS} parameters: {len(house.wide)}")
    print("   " + "; ".join(f"{where} ({count})" for count, where in sorted(house.wide, reverse=True)[:5]))
    print(f"functions over {LONG_FUNCTION} lines: {len(house.long)}")
    if root == Path(__file__).parents[1]:
        way = hops()
        print(f"KMeans(3).fit(X) goes through {len(way)} files: {' > '.join(name[9:] for name in way)}")


if __name__ == "__main__":
    main()
