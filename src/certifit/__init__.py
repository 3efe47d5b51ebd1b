"""Statistical learning in which every fit carries a proof of how good it is.

>>> from certifit import PCA
>>> PCA(n_components=1).fit([[1.0, 2.0], [3.0, 5.0], [5.0, 9.0]]).certificate_.holds
True
"""

from importlib import import_module
from typing import Any

from certifit.registry import PUBLIC

# What type checkers see is in __init__.pyi, which tools/stubs.py writes from the registry.
_ROOMS = (
    "cluster",
    "datasets",
    "decomposition",
    "discriminant_analysis",
    "divergence",
    "exceptions",
    "families",
    "feature_selection",
    "kernel_approximation",
    "linalg",
    "linear_model",
    "losses",
    "manifold",
    "mixture",
    "naive_bayes",
    "neural_network",
    "plots",
    "svm",
    "table",
    "tree",
)

__all__ = sorted(PUBLIC)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # a tenth of a second, so only when asked

        return version("certifit")
    if name in _ROOMS:
        return import_module(f"certifit.{name}")
    if name not in PUBLIC:
        raise AttributeError(f"module 'certifit' has no attribute {name!r}")
    value = PUBLIC[name].load()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS, "__version__"]
