"""What changes in a script when `sklearn` in its import lines becomes `certifit`: read from its text, nothing is run.

A finding says of a line that it would *fail*, that its result may *differ*, or that an argument is *ignored*.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certifit.exceptions import DataError
from certifit.migration.counterparts import Counterpart, counterparts, sklearn_room
from certifit.migration.differences import parameter_differences
from certifit.migration.script_names import ScriptNames, pair_of_path, script_names, sklearn_imports


@dataclass(frozen=True, order=True)
class Finding:
    """One line of a script that an import swap changes."""

    line: int
    subject: str  # what stands there, such as `KMeans(algorithm='elkan')`
    verdict: str  # fails, differs or ignored
    words: str  # one sentence


@dataclass(frozen=True)
class ScriptCheck:
    """What of a script moves to certifit, what stays scikit-learn's, and what changes on the way."""

    moves: tuple[tuple[int, str], ...]  # line and the import that takes its place
    stays: tuple[tuple[int, str], ...]  # line and dotted path
    findings: tuple[Finding, ...]

    @property
    def runs(self) -> bool:
        return all(one.verdict != "fails" for one in self.findings)

    def count(self, verdict: str) -> int:
        return sum(one.verdict == verdict for one in self.findings)


def check_script(source: str) -> ScriptCheck:
    """Read a script and say what an import swap would change in it.

    >>> found = check_script("from sklearn import cluster\\ncluster.DBSCAN()")
    >>> found.moves
    ((1, 'from certifit import cluster'),)
    >>> found.findings[0].words
    'certifit.cluster has no DBSCAN: import it from sklearn.cluster.'
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise DataError(
            got=f"{error.msg} in line {error.lineno}", wanted="a Python script", fix="Mend that line first."
        ) from error
    names, places = script_names(tree), [*sklearn_imports(tree)]
    moves = {(line, text) for line, local, path in places if (text := _replacement(local, path))}
    stays = {(line, path) for line, local, path in places if not _replacement(local, path) and path != "sklearn"}
    moves |= {*_whole_paths(tree, names)}
    found = _each_default_once(sorted(set(_findings(tree, names))))
    return ScriptCheck(tuple(sorted(moves)), tuple(sorted(stays)), tuple(found))


def _replacement(local: str, path: str) -> str:
    """The import line that takes the place of one of scikit-learn's; empty where it stays."""
    pair, parts = pair_of_path(path), path.split(".")
    if pair is not None:
        line = f"from certifit.{pair.room} import {pair.name}"
    elif len(parts) == 2 and parts[1] in _shared_rooms():
        line = f"from certifit import {parts[1]}"
    else:
        return ""
    return line if local == parts[-1] else f"{line} as {local}"


def _whole_paths(tree: ast.Module, names: ScriptNames) -> Iterator[tuple[int, str]]:
    """Names that are written out, `sklearn.svm.SVC`, below a plain `import sklearn`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == names.path(node):
            pair = names.pair(node)
            if pair is not None:
                yield node.lineno, f"certifit.{pair.room}.{pair.name}"


def _shared_rooms() -> set[str]:
    return {pair.room for pair in counterparts()}


def _findings(tree: ast.Module, names: ScriptNames) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            pair = names.pair(node.func)
            if pair is not None:
                yield from _call(pair, node)
            elif isinstance(node.func, ast.Attribute):
                yield from _method_arguments(names, node, node.func)
        elif isinstance(node, ast.Attribute):
            yield from _missing_name(names, node)
            yield from _missing_attribute(names, node)


def _call(pair: Counterpart, node: ast.Call) -> Iterator[Finding]:
    different = parameter_differences(pair)
    given = {word.arg: word.value for word in node.keywords if word.arg is not None}
    for name, value in given.items():
        one, subject = different.get(name), f"{pair.name}({name}={ast.unparse(value)})"
        if one is not None and one.ours == "not there":
            yield Finding(node.lineno, subject, "fails", one.reason or "This parameter is not there.")
        elif one is not None and one.ignored:
            yield Finding(node.lineno, subject, "ignored", one.reason or "It only steers scikit-learn's solver.")
        else:
            yield from _value(pair, name, value, node.lineno)
    if any(word.arg is None for word in node.keywords):
        return
    for name, one in different.items():
        if one.kind == "default" and name not in given:
            words = f"The default is {one.ours} here and {one.theirs} there. {one.reason}".strip()
            yield Finding(node.lineno, f"{pair.name}({name})", "differs", words)


def _value(pair: Counterpart, name: str, value: ast.expr, line: int) -> Iterator[Finding]:
    """A literal value that scikit-learn's class takes and ours refuses."""
    setting = getattr(pair.ours, "settings", {}).get(name)
    try:
        literal: Any = ast.literal_eval(value)
    except ValueError:
        return
    if setting is not None and not setting.accepts(literal):
        words = pair.reasons.get(name, "") or f"Wanted {setting.wanted}."
        yield Finding(line, f"{pair.name}({name}={literal!r})", "fails", words)


def _method_arguments(names: ScriptNames, node: ast.Call, func: ast.Attribute) -> Iterator[Finding]:
    pair = names.model(func.value)
    for word in node.keywords if pair is not None else ():
        reason = pair.reasons.get(f"{func.attr}({word.arg})") if pair is not None else None
        if reason:
            yield Finding(node.lineno, f"{func.attr}({word.arg}=…)", "fails", reason)


def _missing_name(names: ScriptNames, node: ast.Attribute) -> Iterator[Finding]:
    """A name that is read from a module, `linear_model.SGDClassifier`, and that certifit's module does not have."""
    parts = names.path(node).split(".")
    if len(parts) != 3 or pair_of_path(".".join(parts)) is not None:
        return
    _, room, name = parts
    if room in _shared_rooms() and hasattr(sklearn_room(room), name):
        words = f"certifit.{room} has no {name}: import it from sklearn.{room}."
        yield Finding(node.lineno, f"{room}.{name}", "fails", words)


def _missing_attribute(names: ScriptNames, node: ast.Attribute) -> Iterator[Finding]:
    """An attribute or method of a model that is not there: every one of them has a reason."""
    pair = names.model(node.value)
    if pair is not None and node.attr in pair.reasons and not _is_there(pair, node.attr):
        yield Finding(node.lineno, f"{pair.name}.{node.attr}", "fails", pair.reasons[node.attr])


def _is_there(pair: Counterpart, name: str) -> bool:
    return hasattr(pair.ours, name) or f"{name} :" in (pair.ours.__doc__ or "")


def _each_default_once(findings: list[Finding]) -> Iterator[Finding]:
    """A default that differs is said where the class is first used, not at every call."""
    seen: set[str] = set()
    for one in findings:
        if one.verdict != "differs" or one.subject not in seen:
            seen.add(one.subject)
            yield one


def read_script(path: Path) -> tuple[str, list[str]]:
    """The Python text of a script or of a notebook's cells, and for each of its lines where it is, in words."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        lines = text.splitlines()
        return text, [f"line {number}" for number in range(1, len(lines) + 1)]
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(got=f"{path.name}", wanted="a Jupyter notebook", fix="Save it again in Jupyter.") from error
    source: list[str] = []
    places: list[str] = []
    for number, cell in enumerate(cells, start=1):
        if cell.get("cell_type") == "code":
            lines = "".join(cell["source"]).splitlines()
            # Lines that are Jupyter's own, such as `%matplotlib inline`, are no Python.
            source += ["pass" if line.lstrip().startswith(("%", "!", "?")) else line for line in lines]
            places += [f"cell {number}, line {at}" for at in range(1, len(lines) + 1)]
    return "\n".join(source) + "\n", places
