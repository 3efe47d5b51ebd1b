"""Compression of images by PCA: how the error falls as codes get longer, and a bound for every linear code.

An image x becomes a code of M numbers z = B (x - m), and the code an image m + Bᵀ z. On the images that PCA was
fitted to, no linear code of M numbers has a smaller mean squared error than the bound that its certificate proves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.decomposition.pca.pca import PCA
from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable
from certifit.plots.style import BLUE, GREY, RED, images_side_by_side, new_axes, plain, shorten, tidy
from certifit.rows import Array


@dataclass(frozen=True)
class RateDistortion:
    """Errors of codes of several lengths: means over images and pixels, in squared grey levels."""

    sizes: Array  # (s,) M: numbers kept per image
    ratio: Array  # (s,) compression: numbers in the images / numbers kept, including the basis and the mean
    error: Array  # (s,) on the images that PCA was fitted to
    bound: Array  # (s,) proved: no linear code of this length has a smaller error on those images
    unseen: Array  # (s,) on other images
    peak: float  # the largest grey level

    def psnr(self, error: Array) -> Array:
        """Return the peak signal-to-noise ratio of an error in decibels, 10 log10(peak² / error)."""
        with np.errstate(divide="ignore"):
            return 10 * np.log10(self.peak**2 / np.asarray(error, dtype=np.float64))


def rate_distortion(models: Sequence[PCA] | PCA, unseen: Any, peak: float = 1.0) -> RateDistortion:
    """Return the errors of PCAs with several numbers of components, on the images of their fit and on unseen ones.

    Parameters
    ----------
    models : fitted PCAs of certifit
        Their certificates say which error no linear code can beat.
    unseen : images (n, height · width)
    peak : float, default=1.0
        The largest grey level.

    Returns
    -------
    RateDistortion

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> curve = rate_distortion([PCA(M).fit(X[:1000]) for M in (4, 16, 32)], X[1000:], peak=16.0)
    >>> curve.psnr(curve.error).round(1), bool((curve.bound <= curve.error).all())
    (array([14.3, 19.8, 26.3]), True)
    """
    models = [models] if isinstance(models, PCA) else list(models)
    for model in models:
        check_drawable(model, "fitted PCAs of certifit", "components_", "n_samples_", "certificate_")
    if not models:
        raise DataError(got="no models", wanted="at least one fitted PCA")
    lines = []
    for model in models:
        (M, d), n = model.components_.shape, model.n_samples_
        errors = model.certificate_.objective, model.certificate_.bound, model.objective(unseen).total
        lines.append((M, n * d / (n * M + (M + 1) * d), *(error / d for error in errors)))
    sizes, ratio, error, bound, new = np.array(lines).T
    return RateDistortion(sizes, ratio, error, bound, new, peak)


def plot_rate_distortion(curve: RateDistortion, ax: Axes | None = None) -> Axes:
    """Draw the peak signal-to-noise ratio against the numbers kept per image, and the limit of all linear codes.

    Parameters
    ----------
    curve : RateDistortion
        What `rate_distortion` returns.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> curve = RateDistortion(*np.array([[1, 3.0, 0.1, 0.1, 0.12], [2, 2.0, 0.05, 0.05, 0.07]]).T, 1.0)
    >>> ax = plot_rate_distortion(curve)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['images it was fitted to', 'no linear code does better there (proved)', 'images it has not seen']
    """
    check_drawable(curve, "what rate_distortion returns", "psnr", "sizes", "bound")
    ax = new_axes(ax, 6.4, 4.2)
    best, fitted, unseen = (curve.psnr(error) for error in (curve.bound, curve.error, curve.unseen))
    finite = [v for v in (*best, *fitted, *unseen) if np.isfinite(v)]
    top = max(finite) + 0.08 * (max(finite) - min(finite)) + 0.5
    ax.plot(curve.sizes, fitted, color=BLUE, marker="o", markersize=5, label="images it was fitted to", zorder=3)
    above, label = np.minimum(best, top), "no linear code does better there (proved)"
    ax.fill_between(curve.sizes, above, top, color=GREY, alpha=0.2, linewidth=0, label=label)
    ax.plot(curve.sizes, unseen, color=RED, marker="s", markersize=4, linestyle="--", label="images it has not seen")
    ax.set_ylim(min(finite) - 0.5, top)
    ax.set_xscale("log", base=2)
    ax.set_xticks(curve.sizes, [f"{M:g}\n{ratio:.3g}×" for M, ratio in zip(curve.sizes, curve.ratio, strict=True)])
    ax.minorticks_off()
    ax.set_xlabel("numbers kept per image, and compression (basis included)")
    ax.set_ylabel("peak signal-to-noise ratio (dB)")
    ax.legend(frameon=False, loc="upper left")
    tidy(ax)
    return ax


def plot_images(rows: Mapping[str, Any] | Any, shape: tuple[int, int], ax: Axes | None = None) -> Axes:
    """Draw several named rows of images (n, height · width), in the grey levels of the first row.

    Parameters
    ----------
    rows : mapping from a name to images (n, height · width), or such images alone
    shape : (height, width)
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_images({"original": np.eye(4), "blank": np.zeros((4, 4))}, (2, 2))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['original', 'blank']
    """
    rows = dict(rows) if isinstance(rows, Mapping) else {"": np.asarray(rows)}
    if not rows or np.ndim(shape) != 1 or len(shape) != 2:
        raise DataError(got=f"{len(rows)} rows of images, shape={shape!r}", wanted="images, and (height, width)")
    height, width = shape
    first = np.asarray(next(iter(rows.values())))
    n, space = len(first), max(1, height // 10)
    for name, images in rows.items():
        if np.shape(images) != (n, height * width):
            raise DataError(got=f"{name}: images of shape {np.shape(images)}", wanted=f"{(n, height * width)}")
    every = np.concatenate([np.asarray(images) for images in rows.values()]).reshape(-1, height, width)
    sheet = images_side_by_side(every, n, space)
    ax = new_axes(ax, 0.9 + 0.55 * n, 0.2 + 0.55 * len(rows))
    ax.imshow(sheet, cmap="gray_r", vmin=float(first.min()), vmax=float(first.max()), interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks((height + space) * np.arange(len(rows)) + (height - 1) / 2, [shorten(name) for name in rows])
    plain(*ax.get_yticklabels())
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax
