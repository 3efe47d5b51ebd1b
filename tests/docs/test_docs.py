"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import certifit

MODULES = sorted(m.name for m in pkgutil.walk_packages(certifit.__path__, "certifit.") if "__main__" not in m.name)


@pytest.mark.parametrize("name", ["certifit", *MODULES])
def test_examples_run(name):
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


def test_public_names_have_examples_or_are_errors():
    """What a user meets first shows how it is used."""
    for name in ("PCA", "KMeans", "LogisticRegression", "compare", "as_rows", "Certificate", "ProgressBar"):
        assert ">>>" in (getattr(certifit, name).__doc__ or ""), name
