"""What the names of a script stand for: scikit-learn's modules and classes, and variables that hold a model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from certifit.migration.counterparts import Counterpart, counterpart


@dataclass
class ScriptNames:
    """The names that a script imports from scikit-learn, and the variables that it keeps models in."""

    paths: dict[str, str] = field(default_factory=dict)  # local name -> dotted path, such as `sklearn.svm.SVC`
    models: dict[str, Counterpart] = field(default_factory=dict)  # variable -> the class of its model

    def path(self, node: ast.expr) -> str:
        """The dotted path of scikit-learn that an expression stands for; empty for any other."""
        if isinstance(node, ast.Name):
            return self.paths.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self.path(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def pair(self, node: ast.expr) -> Counterpart | None:
        """The class or function of both libraries that an expression stands for."""
        return pair_of_path(self.path(node))

    def model(self, node: ast.expr) -> Counterpart | None:
        """The class of the model that an expression is: a variable, a call of a class, or `….fit(…)` of these."""
        if isinstance(node, ast.Name):
            return self.models.get(node.id)
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Attribute) and re.fullmatch(r"(partial_)?fit|set_\w+", node.func.attr):
            return self.model(node.func.value)
        found = self.pair(node.func)
        return found if found is not None and found.is_class else None


def pair_of_path(path: str) -> Counterpart | None:
    parts = path.split(".")
    return counterpart(parts[1], parts[2]) if len(parts) == 3 and parts[0] == "sklearn" else None


def script_names(tree: ast.Module) -> ScriptNames:
    """Read a script's imports, then its assignments; a variable with two kinds of model stands for neither."""
    names = ScriptNames()
    for _, local, path in sklearn_imports(tree):
        names.paths[local] = path
    several: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        found = names.model(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                if target.id in names.models and names.models[target.id] is not found:
                    several.add(target.id)
                if found is not None:
                    names.models[target.id] = found
    for name in several:
        names.models.pop(name, None)
    return names


def sklearn_imports(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, local name and dotted path of everything that is imported from scikit-learn."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn" and not node.level:
            for alias in node.names:
                yield alias.lineno, alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "sklearn":
                    yield alias.lineno, alias.asname or "sklearn", alias.name if alias.asname else "sklearn"
