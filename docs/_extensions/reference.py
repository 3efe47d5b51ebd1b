"""The reference: a page for every public name, written from the registry and the docstrings before Sphinx reads."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from certifit.registry import ESTIMATORS, PASSED_ON, PICTURES, PUBLIC, room_names

# Rooms in the order of the course, and the titles of their pages.
ROOMS = {
    "divergence": "Divergence",
    "families": "Exponential families",
    "losses": "Losses",
    "linalg": "Linear algebra",
    "decomposition": "Decomposition",
    "manifold": "Embeddings",
    "linear_model": "Linear and generalised linear models",
    "svm": "Support vector machines",
    "kernel_approximation": "Kernel approximation",
    "naive_bayes": "Naive Bayes",
    "discriminant_analysis": "Discriminant analysis",
    "tree": "Trees",
    "ensemble": "Ensembles",
    "neural_network": "Networks",
    "cluster": "Clusters",
    "mixture": "Mixtures",
    "feature_selection": "Feature selection",
    "model_selection": "Model selection",
    "table": "Tables of any columns",
    "plots": "Pictures",
}
LISTS = ("Parameters", "Attributes", "Returns", "Raises", "Yields", "Other Parameters")
PROVES = {entry.name: entry.proves for entry in ESTIMATORS}


def setup(app):
    app.connect("config-inited", lambda app, config: write(Path(app.srcdir) / "_generated" / "reference"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: Path) -> None:
    """Write every page that is not there yet as it should be, and remove those of names that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def public_names() -> dict[str, dict[str, Any]]:
    """Every room's public names and what they stand for; below "certifit" those of no room."""
    rooms = {room: names_of(room) for room in ROOMS}
    flat = {name for names in rooms.values() for name in names}
    return rooms | {"certifit": {name: entry.load() for name, entry in sorted(PUBLIC.items()) if name not in flat}}


def pages() -> dict[str, str]:
    """The text of every page by its file name."""
    rooms = public_names()
    titles = ROOMS | {"certifit": "Audit, files, rows and settings"}
    found = {"index.md": index_page(titles)}
    for room, names in rooms.items():
        found[f"{room}.md"] = room_page(room, titles[room], names)
        for name, value in names.items():
            found[f"{room}.{name}.md"] = name_page(room, name, value)
    return found


def names_of(room: str) -> dict[str, Any]:
    """A room's public names and what they stand for."""
    package = import_module(f"certifit.{room}")
    names = sorted(PICTURES) if room == "plots" else list(room_names(room)) or sorted(package.__all__)
    return {name: getattr(package, name) for name in names if callable(getattr(package, name))}


def index_page(titles: dict[str, str]) -> str:
    files = "\n".join(f"{title} <{room}>" for room, title in titles.items())
    return (
        "# Reference\n\nEvery public name by room. Rooms have the names of scikit-learn's modules; a name can be "
        "imported from its room or, of most rooms, from `certifit` itself.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n{files}\n```\n"
    )


def room_page(room: str, title: str, names: dict[str, Any]) -> str:
    module = import_module("certifit" if room == "certifit" else f"certifit.{room}")
    words = markdown(inspect.cleandoc(module.__doc__ or "")) if room != "certifit" else ""
    rows = [f"| [`{name}`]({room}.{name}.md) | {cell(first_sentence(value))} |" for name, value in names.items()]
    table = "\n".join(["| name | what it is |", "|---|---|", *rows])
    passed_on = ", ".join(f"`{name}`" for name in PASSED_ON.get(room, ()))
    more = f"\nPassed on from scikit-learn as they are: {passed_on}.\n" if passed_on else ""
    files = "\n".join(f"{name} <{room}.{name}>" for name in names)
    return f"# {title}\n\n{words}\n\n{table}\n{more}\n```{{toctree}}\n:hidden:\n{files}\n```\n"


def name_page(room: str, name: str, value: Any) -> str:
    """Signature, what is proved, the docstring's sections, and methods of a class."""
    is_flat = room == "certifit" or (name in PUBLIC and PUBLIC[name].room == room)
    where = "certifit" if is_flat else f"certifit.{room}"
    kind = "class" if inspect.isclass(value) else "function"
    lead, sections = split_docstring(inspect.getdoc(value) or "")
    parts = [f"# {name}", f"```{{py:{kind}}} {where}.{name}{signature(value)}\n```", markdown(lead)]
    if is_flat and name in PROVES:
        parts.append(f"**Its certificate proves:** {PROVES[name]}. [What that means](../../start/certificates.md)")
    if is_flat and room in ROOMS:
        parts.append(f"`from certifit.{room} import {name}`, or `certifit.{name}`.")
    for heading, text in sections.items():
        parts += [f"## {heading}", definitions(text) if heading in LISTS else markdown(text)]
    if getattr(value, "differences", None):
        found = [f"`{key}`\n: {text}" for key, text in value.differences.items()]
        parts += ["## Differences from scikit-learn", "\n\n".join(found)]
    if kind == "class" and methods(value):
        parts += ["## Methods", methods(value)]
    return "\n\n".join(part for part in parts if part) + "\n"


def signature(value: Any) -> str:
    """A signature without annotations; empty where there is none, as of built-in exceptions."""
    try:
        found = inspect.signature(value)
    except ValueError:
        return ""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return ""
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r"<(?:function|class) '?([\w.]+)'?[^>]*>", lambda match: match[1].rpartition(".")[2], text)


def split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The words before the first heading, and the text below each heading."""
    lead, *rest = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return lead.strip(), dict(zip(rest[::2], (part.rstrip() for part in rest[1::2]), strict=True))


def first_sentence(value: Any) -> str:
    paragraph = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.?!])\s", paragraph)[0]


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def markdown(text: str) -> str:
    """A docstring's words: they are Markdown already, but for examples."""
    return re.sub(
        r"^>>> .*?(?=\n\s*\n|\Z)", lambda match: f"```pycon\n{match[0]}\n```", text, flags=re.DOTALL | re.MULTILINE
    )


def definitions(text: str) -> str:
    """The list of a section: names, what they may be, and the indented words below them; then words, if any."""
    text, *words_after = re.split(r"\n\s*\n(?=\S)", text, maxsplit=1)
    found = []
    for entry in re.split(r"\n(?=\S)", re.sub(r",\n\s*", ", ", text)):
        head, _, words = entry.partition("\n")
        name, _, kind = head.partition(" : ")
        body = [part for part in (kind, inspect.cleandoc(words) if words.strip() else "") if part] or ["\\-"]
        found.append(f"`{name}`\n: " + "\n\n".join(body).replace("\n", "\n  "))
    return "\n\n".join([*found, *map(markdown, words_after)])


def methods(kind: type) -> str:
    """The public methods and properties of a class, each with the first sentence of its docstring."""
    found = []
    for name, value in inspect.getmembers_static(kind):
        routing = name.startswith(("set_", "get_metadata")) and name.endswith(("_request", "_routing"))
        if name.startswith("_") or routing or not getattr(value, "__doc__", None):
            continue
        if isinstance(value, property | cached_property):
            found.append(f"`{name}`\n: {first_sentence(value)}")
        elif callable(method := getattr(kind, name, None)) and inspect.isroutine(method):
            called = re.sub(r"^\(self(, )?", "(", signature(method))
            found.append(f"`{name}{called}`\n: {first_sentence(value)}")
    return "\n\n".join(found)
