"""Images in, short codes out, images back: PCA as a compressor, with the error that no linear code can beat.

    python -m examples.compress_digits [--mnist DIR] [--out DIR]

For each M the folder gets `codes-M.npz` (M bytes per image, packed) and `model-M.certifit` (the basis); the two give
the images back. `rate_distortion.png` shows what codes cost and what they lose.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import certifit
from certifit.decomposition.pca.compression_plots import (
    RateDistortion,
    plot_images,
    plot_rate_distortion,
    rate_distortion,
)
from certifit.decomposition.pca.pca import PCA
from certifit.rows import Array
from examples.command import run
from examples.mnist import Digits

LEVELS = 255  # a code is one byte


def compress(X: Array, M: int, folder: Path) -> PCA:
    """Write the images X (n, d) as a basis of M directions and M bytes per image, packed."""
    model = PCA(M).fit(X)
    Z = model.transform(X)
    low = Z.min(axis=0)
    step = (float(np.ptp(Z, axis=0).max()) or 1.0) / LEVELS  # one for all: an error counts alike in every direction
    codes = np.rint((Z - low) / step).astype(np.uint8)
    certifit.save(model, folder / f"model-{M}.certifit")
    np.savez_compressed(folder / f"codes-{M}.npz", codes=codes, low=low, step=step)
    return model


def decompress(M: int, folder: Path) -> Array:
    """The images (n, d) back from the two files.

    >>> from tempfile import TemporaryDirectory
    >>> line = np.outer(np.linspace(0, 1, 11), [3.0, 4.0])  # 11 images of 2 pixels that one number tells apart
    >>> with TemporaryDirectory() as folder:
    ...     model = compress(line, 1, Path(folder))
    ...     bool(np.abs(decompress(1, Path(folder)) - line).max() <= 5 / 255)
    True
    """
    model = certifit.load(folder / f"model-{M}.certifit")
    with np.load(folder / f"codes-{M}.npz") as file:
        return model.inverse_transform(file["low"] + file["step"] * file["codes"])


def table(digits: Digits, curve: RateDistortion, folder: Path) -> str:
    """A line for each M: bytes on disk, how many times fewer, and mean squared errors per pixel in grey levels."""
    raw = digits.pixels.size
    lossless = len(zlib.compress(digits.pixels.tobytes()))
    lines = [
        ("M", "bytes", "ratio", "error, from file", "error, unseen", "PSNR", "proved least error"),
        ("pixels", raw, "1.0", 0, "", "", ""),
        ("packed", lossless, f"{raw / lossless:.1f}", 0, "", "", ""),
    ]
    for i, M in enumerate(curve.sizes.astype(int)):
        size = sum((folder / name).stat().st_size for name in (f"codes-{M}.npz", f"model-{M}.certifit"))
        error = ((decompress(M, folder) - digits.pixels) ** 2).mean()
        numbers = f"{error:.2f}", f"{curve.unseen[i]:.2f}", f"{curve.psnr(error):.1f} dB", f"{curve.bound[i]:.2f}"
        lines.append((M, size, f"{raw / size:.1f}", *numbers))
    return "\n".join("{:>6} {:>9} {:>6}  {:>16}  {:>13}  {:>8}  {:>18}".format(*line).rstrip() for line in lines)


def draw(digits: Digits, models: list[PCA], curve: RateDistortion) -> Figure:
    """The curve of errors, and ten unseen images after a round trip through codes of several lengths."""
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.1, 1])
    plot_rate_distortion(curve, left)
    first = [int(np.flatnonzero(digits.unseen_y == c)[0]) for c in np.unique(digits.unseen_y)]  # one of each digit
    originals = digits.unseen[first].astype(np.float64)
    rows = {"unseen image": originals}
    for model in models:
        rows[f"M = {model.n_components_}"] = model.inverse_transform(model.transform(originals))
    plot_images(rows, digits.shape, right)
    return figure


def show(digits: Digits, out: Path) -> None:
    """Compress with each M, print the table and write the picture."""
    out.mkdir(parents=True, exist_ok=True)
    X = digits.pixels.astype(np.float64)
    sizes = [2**i for i in range(1, 9) if 2**i <= X.shape[1] // 2]
    models = [compress(X, M, out) for M in sizes]
    curve = rate_distortion(models, digits.unseen.astype(np.float64), digits.peak)
    print(f"\n{table(digits, curve, out)}\n")
    failed = [model.n_components_ for model in models if not model.certificate_.holds]
    gap = max(model.certificate_.relative_gap for model in models)
    print(f"Certificates {f'FAIL for M = {failed}' if failed else 'hold for every M'}: ", end="")
    print(f"fitted errors are within {gap:.1g} of the least, relatively.")
    draw(digits, models, curve).savefig(out / "rate_distortion.png", dpi=100)
    print(f"files and picture: {out}")


if __name__ == "__main__":
    run(show, "Compress images of digits by PCA and see what is lost.", "compressed_digits")
