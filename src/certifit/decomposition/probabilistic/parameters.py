"""The parameters of probabilistic PCA, x = μ + W z + ε, and the numbers that steer its solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from certifit.exceptions import DataError
from certifit.rows import Array


class PPCAParameters(NamedTuple):
    """The parameters of the model."""

    mean: Array  # (d,) μ
    W: Array  # (d, k) loadings
    noise: float  # σ²


@dataclass(frozen=True)
class PPCATuning:
    """Numbers that steer how probabilistic PCA is fitted, never what is fitted."""

    start_columns: int = 2048  # columns beyond which no covariance is formed for EM's start
    matrix_numbers: int = 2**22  # numbers that the matrices of rows with missing entries may fill at a time
    sum_numbers: int = 2**28  # numbers in the sums of one EM pass, at most
    tol_share: float = 1e-2  # of the tolerance at which EM stops, because the gains of all later steps add up
    smallest_noise: float = 1e-11  # noise variance relative to the entries' mean square at which EM gives up
    longest_jump: float = 3.0  # largest change of log σ² by a jump
    irrelevant: float = 1e-4  # |w_j|² relative to the noise variance at which 'ard' drops a column of W
    most_saddles: int = 16  # saddles that EM with missing entries leaves before it gives up
    saddle_gain: float = 1e-4  # nats a row that a way up from a saddle must promise
    saddle_step: float = 0.3  # of the way from a component to the direction of more variance
    mean_rounding: float = 1e-6  # of the noise's deviation: a mean rounded by more is measured again as it is stored
    worse_in_a_row: int = 2  # numbers of components worse than the best after which 'bic' tries no more


class ZeroNoiseError(DataError):
    """The error where σ² falls to 0, so that the likelihood grows without bound."""


def check_noise(noise: float, square: float, k: int, smallest: float = 1e-13) -> None:
    """Refuse a noise variance that is rounding, compared with the entries' mean square."""
    if not noise > smallest * square:
        raise ZeroNoiseError(
            got=f"rows that n_components={k} components reproduce without error: the noise variance falls to 0 and "
            "the likelihood grows without bound",
            wanted="fewer components than the rows have independent directions",
            fix="Lower n_components, or leave out columns that repeat others.",
        )
