"""The example programs, on scikit-learn's digits and on small files in MNIST's formats."""

import gzip
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import certifit
from certifit.exceptions import DataError
from examples import compress_digits, mnist, mnist_pca
from examples.command import run

X, y = load_digits(return_X_y=True)
PIXELS = np.kron(X[:700].reshape(-1, 8, 8) * 15.9, np.ones((1, 3, 3))).astype(np.uint8)  # (700, 24, 24), to 254


@pytest.fixture(autouse=True)
def nothing_found(monkeypatch, tmp_path):
    """No MNIST on this computer, unless a test puts one there."""
    monkeypatch.delenv("CERTIFIT_MNIST", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit_learn_data"))


def write_idx(path, values, pack=True):
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    content = head + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if pack else content)


def folder_of_files(folder, pack=True):
    folder.mkdir(exist_ok=True)
    ending = ".gz" if pack else ""
    for name, values in zip(mnist.FILES, (PIXELS[:600], y[:600], PIXELS[600:], y[600:700]), strict=True):
        write_idx(folder / (name + ending), values, pack)
    return folder


# ------------------------------------------------------------------------------------------------- finding the data
def check_files(digits):
    np.testing.assert_array_equal(digits.pixels, PIXELS[:600].reshape(600, 576))
    np.testing.assert_array_equal(digits.unseen, PIXELS[600:].reshape(100, 576))
    np.testing.assert_array_equal(digits.y, y[:600])
    np.testing.assert_array_equal(digits.unseen_y, y[600:700])
    assert (digits.shape, digits.peak) == ((24, 24), 255)
    assert digits.words.startswith("MNIST from")


@pytest.mark.parametrize("pack", [True, False])
def test_a_folder_of_files(tmp_path, pack):
    check_files(mnist.load(folder_of_files(tmp_path / "mnist", pack)))


def test_the_environment_names_the_folder_and_the_argument_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("CERTIFIT_MNIST", str(folder_of_files(tmp_path / "mnist")))
    check_files(mnist.load())
    with pytest.raises(DataError, match="elsewhere"):
        mnist.load(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", mnist.OPENML)
def test_the_cache_of_fetch_openml(tmp_path, name):
    """The file as OpenML serves it: names, @DATA, then 784 pixels and the digit in each line."""
    path = tmp_path / "scikit_learn_data" / "openml" / "openml.org" / "data" / "v1" / "download" / name
    path.parent.mkdir(parents=True)
    values = np.column_stack([PIXELS.reshape(700, 576), y[:700]])
    names = "".join(f"@ATTRIBUTE pixel{j + 1} real\n" for j in range(576))
    lines = "\n".join(",".join(map(str, row)) for row in values)
    text = f"% a comment\n@RELATION mnist_784\n{names}@ATTRIBUTE class {{0,1,2,3,4,5,6,7,8,9}}\n\n@DATA\n{lines}\n"
    path.write_bytes(gzip.compress(text.encode()))
    check_files(mnist.load())


def test_scikit_learns_digits_otherwise(tmp_path):
    digits = mnist.load()
    assert digits.words.startswith("scikit-learn's digits (MNIST was not found")
    assert len(digits.y) + len(digits.unseen_y) == 1797
    together = np.concatenate([digits.pixels, digits.unseen])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))
    assert digits.grey(digits.pixels).max() == 1.0
    assert not (tmp_path / "scikit_learn_data").exists()  # looking leaves nothing behind


def test_damaged_files_are_refused(tmp_path):
    folder = folder_of_files(tmp_path / "mnist")
    labels = folder / "train-labels-idx1-ubyte.gz"
    whole = gzip.decompress(labels.read_bytes())
    for content in (labels.read_bytes()[:-20], whole[:-5], whole[:3], b"", b"\0\0\x0d" + whole[3:], b"<html>"):
        labels.write_bytes(content)
        with pytest.raises(DataError, match="damaged or not an IDX file"):
            mnist.load(folder)
    write_idx(labels, y[:599])
    with pytest.raises(DataError, match="600 images with 599 labels; wanted a label for each"):
        mnist.load(folder)
    labels.unlink()
    with pytest.raises(DataError, match=r"without train-labels-idx1-ubyte\(.gz\)"):
        mnist.load(folder)


# ---------------------------------------------------------------------------------------------- two components
def test_mnist_pca_on_digits_and_on_files(tmp_path, capsys):
    for arguments in ([], ["--mnist", str(folder_of_files(tmp_path / "mnist"))]):
        picture = tmp_path / "picture.png"
        run(mnist_pca.show, "", "unused", [*arguments, "--out", str(picture)])
        text = capsys.readouterr().out
        assert ("MNIST from" in text) == bool(arguments)
        assert "holds" in text
        assert text.count("95 % interval") == 3
        assert picture.read_bytes()[:4] == b"\x89PNG"
        picture.unlink()


def test_the_picture_has_four_images_joined_to_their_points():
    digits = mnist.small_digits()
    pair = digits.y <= 1
    rows, labels = digits.grey(digits.pixels[pair]), digits.y[pair]
    model = certifit.PCA(2).fit(rows)
    figure = mnist_pca.draw(model, digits, rows, labels)
    codes = model.transform(rows)
    chosen = mnist_pca.highlights(codes, labels)
    assert labels[chosen].tolist() == [0, 0, 1, 1]
    shown = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    assert len(shown) == len(figure.artists) == 4  # artists: the lines
    for i in chosen:
        assert any(np.array_equal(image, rows[i].reshape(8, 8)) for image in shown)
        assert any(np.array_equal(line.xy1, codes[i]) for line in figure.artists)
    figure.canvas.draw()


def test_spreads_are_traces_and_areas_of_covariances():
    """Against numpy.cov; and the interval covers the ratio the points were drawn with, 19 times in 20."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(300, 2)) @ [[2.0, 0.5], [0.0, 1.0]], rng.normal(size=(200, 2))
    total, area = mnist_pca.total_variance(A, B), mnist_pca.area(A, B)
    assert (total.first, total.second) == pytest.approx((np.trace(np.cov(A.T)), np.trace(np.cov(B.T))))
    dets = [np.pi * np.sqrt(np.linalg.det(np.cov(P.T))) for P in (A, B)]
    assert (area.first, area.second) == pytest.approx(dets)
    found = [mnist_pca.total_variance(3 * rng.normal(size=(150, 2)), rng.normal(size=(150, 2))) for _ in range(60)]
    covered = sum(ratio.low < 9 < ratio.high for ratio in found)
    assert 50 <= covered < 60


def test_the_ellipse_is_two_standard_deviations_away():
    Z = np.random.default_rng(1).normal(size=(50, 2)) @ [[3.0, 1.0], [0.0, 0.5]]
    away = mnist_pca._ellipse(Z) - Z.mean(axis=0)[:, None]
    np.testing.assert_allclose((away * np.linalg.solve(np.cov(Z.T), away)).sum(axis=0), 4)


# ------------------------------------------------------------------------------------------------- compression
def test_codes_come_back_as_the_projection_up_to_half_a_step(tmp_path):
    model = compress_digits.compress(X, 8, tmp_path)
    back = compress_digits.decompress(8, tmp_path)
    with np.load(tmp_path / "codes-8.npz") as file:
        codes, step = file["codes"], float(file["step"])
    assert codes.dtype == np.uint8
    assert codes.shape == (len(X), 8)
    away = model.transform(back) - model.transform(X)
    assert np.abs(away).max() <= step / 2 * (1 + 1e-9)
    error = ((X - back) ** 2).sum() / len(X)
    assert model.certificate_.bound <= error <= model.certificate_.objective + 8 * step**2 / 4
    assert certifit.audit(certifit.load(tmp_path / "model-8.certifit"), X).holds


def test_images_that_are_all_the_same(tmp_path):
    compress_digits.compress(np.full((5, 4), 7.0), 1, tmp_path)
    np.testing.assert_allclose(compress_digits.decompress(1, tmp_path), 7.0)


def test_the_table_says_what_is_in_the_folder(tmp_path, capsys):
    run(compress_digits.show, "", "unused", ["--out", str(tmp_path / "out")])
    text = capsys.readouterr().out
    digits = mnist.small_digits()
    line = next(line for line in text.splitlines() if line.split()[:1] == ["16"]).split()
    names = ("codes-16.npz", "model-16.certifit")
    size = sum((tmp_path / "out" / name).stat().st_size for name in names)
    assert line[1] == str(size)
    assert line[2] == f"{digits.pixels.size / size:.1f}"
    back = compress_digits.decompress(16, tmp_path / "out")
    assert line[3] == f"{((back - digits.pixels) ** 2).mean():.2f}"
    values = np.linalg.eigvalsh(np.cov(digits.pixels.T.astype(float), bias=True))
    assert line[-1] == f"{values[:-16].sum() / 64:.2f}"
    assert "Certificates hold for every M" in text
    assert (tmp_path / "out" / "rate_distortion.png").read_bytes()[:4] == b"\x89PNG"


# ------------------------------------------------------------------------------------------------- command line
def test_bad_input_ends_in_words(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        run(mnist_pca.show, "", "unused", ["--mnist", str(tmp_path)])
    assert end.value.code == 2
    assert "wanted the folder of MNIST's files. Name the folder" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        run(mnist_pca.show, "", "unused", ["--out", str(tmp_path / "no" / "such" / "picture.png")])
    assert end.value.code == 2
    assert "No such file" in capsys.readouterr().err


def test_as_a_program(tmp_path):
    command = [sys.executable, "-m", "examples.mnist_pca", "--out", str(tmp_path / "picture.png")]
    repository = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert "zeros and" in done.stdout
    assert (tmp_path / "picture.png").exists()
