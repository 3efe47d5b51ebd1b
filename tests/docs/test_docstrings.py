"""Every public class and function documents its parameters, every estimator its fitted attributes too (numpydoc)."""

import inspect
import re
from dataclasses import is_dataclass
from importlib import import_module

import pytest

from certifit import divergence, families, linalg
from certifit.registry import ESTIMATORS, PICTURES, PUBLIC
from tests.common.catalogue import CATALOGUE

# What every fit leaves: the base class's docstring, scikit-learn's validation and the certificate speak of them.
EVERYWHERE = {"certificate_", "history_", "n_features_in_", "feature_names_in_"}
CLASSES = [kind for kind in (entry.load() for entry in ESTIMATORS) if isinstance(kind, type)]
every_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)


def public():
    """Every public class and function by its name; errors, results and records are not made by users."""
    found = {name: entry.load() for name, entry in PUBLIC.items()}
    found |= {name: getattr(import_module(f"certifit.{module}"), name) for name, module in PICTURES.items()}
    for room in (linalg, divergence, families):
        found |= {f"{room.__name__.split('.')[-1]}.{name}": getattr(room, name) for name in room.__all__}
    return {name: one for name, one in found.items() if _is_called(one)}


def _is_called(one):
    if not inspect.isclass(one):
        return callable(one)
    return not issubclass(one, BaseException | tuple | float) and not is_dataclass(one)


def section(docstring, heading):
    """The lines below a heading of a docstring, up to the next heading."""
    text = inspect.cleandoc(docstring or "")
    match = re.search(rf"^{heading}\n-+\n(.*?)(?=\n\n?\w[\w ]*\n---|\Z)", text, flags=re.DOTALL | re.MULTILINE)
    return match[1] if match else ""


def names(text):
    """The names that a section explains: `alpha : …` or `tol, max_iter : …` at the beginning of a line."""
    text = re.sub(r",\n\s*", ", ", text)  # a list of names that goes on in the next line
    lines = re.findall(r"^([\w*][\w*, ]*?) ?(?::.*)?$", text, flags=re.MULTILINE)
    return {name.strip().lstrip("*") for line in lines for name in line.split(",")}


def parameters(one):
    return {name for name in inspect.signature(one).parameters if not name.startswith("_")}


@pytest.mark.parametrize(("name", "one"), public().items(), ids=public())
def test_parameters_are_documented(name, one):
    missing = parameters(one) - names(section(one.__doc__, "Parameters"))
    assert missing == set(), f"{name} says nothing of {sorted(missing)}"


@every_class
def test_what_is_documented_is_there(kind):
    """No section tells of a parameter that was taken away."""
    assert names(section(kind.__doc__, "Parameters")) - parameters(kind) == set()


@every_class
def test_fitted_attributes_are_documented(kind):
    """Those of the catalogue's fits that have a value: what is None does not belong to this problem."""
    models = [entry.fit(60) for entry in CATALOGUE if entry.cls is kind]
    fitted = {name for one in models for name, value in vars(one).items() if name.endswith("_") and value is not None}
    documented = names(section(kind.__doc__, "Attributes"))
    assert fitted - documented - EVERYWHERE == set()
    assert documented, "no section Attributes"


def test_the_sections_are_read():
    """The check itself finds what is there and what is not."""
    text = "A sentence.\n\n    Parameters\n    ----------\n    a, b : numbers\n        Words: more.\n    **c\n\n"
    text += "    Returns\n    -------\n    d : a number\n"
    assert names(section(text, "Parameters")) == {"a", "b", "c"}
    assert names(section(text, "Returns")) == {"d"}
    assert names(section(text, "Attributes")) == set()
