"""Random Fourier features: φ(x) = √(2/m) cos(xW + b) for k(x, z) = exp(-γ |x - z|²), so that φ(x)·φ(z) ≈ k(x, z).

Columns of W are drawn from N(0, 2γI). They are made orthogonal and come in pairs of a cosine and a sine: as unbiased
as independent ones, and closer to the kernel.
References: Rahimi & Recht, "Random features for large-scale kernel machines" (2007); Yu, Suresh, Choromanski,
Holtmann-Rice & Kumar, "Orthogonal random features" (2016); Sutherland & Schneider, "On the error of random Fourier
features" (2015).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from certifit.checkers.kernel_approximation import kernel_error as certificates
from certifit.core import Attributes, Certificate, certified
from certifit.kernel_approximation.base import KernelFeatures
from certifit.rows import Array, Block, Rows


class RBFSampler(KernelFeatures):
    """Random Fourier features of exp(-γ |x - z|²), with their error measured on pairs of rows.

    Parameters
    ----------
    gamma : float, 'scale' or 'auto', default=1.0
        'scale' and 'auto' as of SVC.
    n_components : int, default=100
    random_state : int, RandomState or None

    Attributes
    ----------
    random_weights_ : (d, m) frequencies, each for a cosine and a sine
    random_offset_ : (m,) 0 for the cosine, -π/2 for the sine; the last cosine of an odd number has a random one
    seed_ : int, from which the frequencies can be drawn again
    gamma_ : float
    certificate_ : Certificate; its objective is the mean error of kernel values, over 512 random pairs of rows; over
        4096 with `certifit.config(proof="best")`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import RBFSampler
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = RBFSampler(gamma="scale", n_components=1000, random_state=0).fit(X)
    >>> model.certificate_.kind, model.certificate_.holds, model.certificate_.objective < 0.02
    ('statistical', True, True)
    """

    def __init__(self, *, gamma=1.0, n_components=100, random_state=None):
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        gamma, seed = self._chosen_gamma(rows), self._seed()
        W, b = _draw_frequencies(np.random.default_rng(seed), gamma, rows.n_features, int(self.n_components))
        fitted = {"random_weights_": W, "random_offset_": b, "seed_": seed, "gamma_": gamma}
        return {**fitted, "certificate_": certified(_measured, certificates.FourierClaim(W, b, gamma), rows)}

    def feature_map(self) -> Callable[[Block], Array]:
        return partial(_fourier_features, self.random_weights_, self.random_offset_)

    def _certificate(self, rows: Rows) -> Certificate:
        return _measured(certificates.FourierClaim(self.random_weights_, self.random_offset_, self.gamma_), rows)

    @property
    def _n_features_out(self) -> int:
        return len(self.random_offset_)


def _draw_frequencies(rng: np.random.Generator, gamma: float, d: int, m: int) -> tuple[Array, Array]:
    """Draw frequencies (d, m) and offsets (m,): see RBFSampler."""
    half = (m + 1) // 2
    sizes = [min(d, half - first) for first in range(0, half, d)]
    drawn = [(rng.normal(size=(d, size)), rng.chisquare(d, size)) for size in sizes]
    whole = half // d
    W = np.hstack([_scaled_axes(gamma, drawn[:whole], d), _scaled_axes(gamma, drawn[whole:], d)])
    random = rng.uniform(0, 2 * np.pi)
    b = np.where(np.arange(m) < half, 0.0, -np.pi / 2)
    if m % 2:
        b[half - 1] = random
    return np.hstack([W, W[:, : m - half]]), b


def _scaled_axes(gamma: float, drawn: list[tuple[Array, Array]], d: int) -> Array:
    """Random orthogonal directions times random lengths (d, …), of draws of the same shape, all factored at once."""
    if not drawn:
        return np.empty((d, 0))
    Q, R = np.linalg.qr(np.stack([normal for normal, _ in drawn]))
    lengths = np.sqrt(2 * gamma * np.stack([squares for _, squares in drawn]))
    axes = Q * (np.sign(np.diagonal(R, axis1=1, axis2=2)) * lengths)[:, None]
    return np.hstack(list(axes))


def _fourier_features(W: Array, b: Array, block: Block) -> Array:
    phases = np.asarray(block.X @ W, dtype=np.float64)
    phases += b
    np.cos(phases, out=phases)
    phases *= np.sqrt(2 / len(b))
    return phases


def _measured(claim: certificates.FourierClaim, rows: Rows) -> Certificate:
    """The checker's own measurement, which looks at a few rows only."""
    tuning, origin = certificates.wanted_tuning(), certificates.FrequencyOrigin.SEEDED
    return certificates.certify_fourier(claim, tuning.feature_tol, rows, (), origin, tuning=tuning)
