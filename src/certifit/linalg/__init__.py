"""Certified answers about matrices: eigenvalues, singular values, low rank, definiteness, diagonalisation.

>>> from certifit import linalg
>>> linalg.eigen([[2.0, 1.0], [1.0, 2.0]]).certificate.holds
True
"""

from certifit.linalg.definite import Definite, positive_definite
from certifit.linalg.diagonalisation import Diagonalisable, diagonalisable
from certifit.linalg.eigenpairs import Eigen, eigen
from certifit.linalg.singular_values import SVD, LowRank, low_rank, svd

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
