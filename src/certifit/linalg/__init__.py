"""Linear algebra whose answers prove themselves, and the products and factorisations that models stand on.

>>> from certifit import linalg
>>> linalg.eigen([[2.0, 1.0], [1.0, 2.0]]).certificate.holds
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Lazy, as the package is: models that import a module from here load no other.
_HOME = {
    "eigen": "certifit.linalg.eigenpairs",
    "Eigen": "certifit.linalg.eigenpairs",
    "svd": "certifit.linalg.singular",
    "SVD": "certifit.linalg.singular",
    "low_rank": "certifit.linalg.singular",
    "LowRank": "certifit.linalg.singular",
    "positive_definite": "certifit.linalg.definite",
    "Definite": "certifit.linalg.definite",
    "diagonalisable": "certifit.linalg.diagonal",
    "Diagonalisable": "certifit.linalg.diagonal",
}

__all__ = [
    "SVD",
    "Definite",
    "Diagonalisable",
    "Eigen",
    "LowRank",
    "diagonalisable",
    "eigen",
    "low_rank",
    "positive_definite",
    "svd",
]

if TYPE_CHECKING:
    from certifit.linalg.definite import Definite, positive_definite
    from certifit.linalg.diagonal import Diagonalisable, diagonalisable
    from certifit.linalg.eigenpairs import Eigen, eigen
    from certifit.linalg.singular import SVD, LowRank, low_rank, svd


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'certifit.linalg' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
