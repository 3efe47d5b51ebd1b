"""Saved models: identical bits after a round trip, damage is detected, writing is all or nothing."""

import errno
import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA as ScikitPCA
from sklearn.exceptions import NotFittedError

import certifit
from certifit import PCA, SVC, Certificate, KMeans, LogisticRegression, Mixture, load, save
from certifit.datasets import penguins_table
from certifit.exceptions import DataError
from certifit.families import Gamma, Gaussian, GaussianFixedVariance
from certifit.files import atomic_file
from certifit.svm.kernel.kernels import RBF, Kernel, Linear, Polynomial
from certifit.table.table_classifier import TableClassifier

X, y = load_iris(return_X_y=True)


def same(a, b):
    """Equal values of equal types, to the last bit."""
    if isinstance(a, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and (a == b).all()
    if sparse.issparse(a):
        parts = ("data", "indices", "indptr", "shape")
        return type(a) is type(b) and all(same(getattr(a, name), getattr(b, name)) for name in parts)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if hasattr(a, "get_params"):
        return type(a) is type(b) and same_model(a, b)
    if isinstance(a, Certificate):  # a claim without a bound has NaN in its place
        return type(a) is type(b) and a.to_dict() == b.to_dict()
    return type(a) is type(b) and (a == b or a != a)


def same_model(a, b):
    fitted = {name for name in vars(a) if "callback" not in name}
    return fitted == set(vars(b)) and all(same(getattr(a, name), getattr(b, name)) for name in fitted)


MODELS = {
    "pca": lambda: PCA(n_components=2, whiten=True).fit(X),
    "kmeans": lambda: KMeans(3, random_state=0).fit(X),
    "logistic": lambda: LogisticRegression(C=0.1, class_weight={0: 2.0, 2: 0.5}).fit(X, y),
    "text labels": lambda: LogisticRegression().fit(X, np.array(["a", "bb", "ccc"], dtype=object)[y]),
    "float32": lambda: LogisticRegression(tol=np.float64(1e-4)).fit(X.astype(np.float32), y == 1),
    "sparse": lambda: SVC(probability=True).fit(sparse.csr_array(X), y),
    "sparse matrix": lambda: SVC(kernel="linear", probability=True).fit(
        sparse.csr_matrix(X.astype(np.float32)), y > 0
    ),
    "kernel": lambda: SVC(
        kernel=2.0 * RBF(0.1) * Linear() + (0.01 * Polynomial(2, 0.1, 1.0)).exp(), probability=True
    ).fit(X, y),
    "families": lambda: Mixture([Gamma, Gaussian, "gamma", Gaussian], 2, random_state=0).fit(X),
    "table": lambda: TableClassifier().fit(penguins_table(), "species"),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "model.certifit"
    save(MODELS["table"](), path)
    return path


def test_round_trip_is_exact(model, tmp_path):
    save(model, tmp_path / "model.certifit")
    again = load(tmp_path / "model.certifit")
    assert same_model(model, again)
    assert again.certificate_.to_dict() == model.certificate_.to_dict()
    data = penguins_table() if isinstance(model, TableClassifier) else X
    use = "predict_proba" if hasattr(model, "predict_proba") else "transform"
    assert (getattr(model, use)(data) == getattr(again, use)(data)).all()


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = MODELS["pca"]()
    for name in "ab":
        save(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_flipped_bit_anywhere_is_detected(saved, tmp_path):
    content = bytearray(saved.read_bytes())
    damaged = tmp_path / "damaged.certifit"
    header = content.index(b"\n") + 1
    # every bit of the header; one bit in every fifth byte of the rest, which the hash covers as a whole
    places = [(i, bit) for i in range(header) for bit in range(8)]
    places += [(i, i % 8) for i in range(header, len(content), 5)]
    for i, bit in places:
        content[i] ^= 1 << bit
        damaged.write_bytes(content)
        with pytest.raises(DataError):
            load(damaged)
        content[i] ^= 1 << bit


@pytest.mark.parametrize("length", [0, 10, 80, 85, 1000, -1])
def test_a_truncated_file_is_detected(saved, tmp_path, length):
    (tmp_path / "cut").write_bytes(saved.read_bytes()[:length])
    with pytest.raises(DataError, match="damaged"):
        load(tmp_path / "cut")


def rewritten(saved, path, change):
    """A file with a valid checksum whose JSON went through `change`."""
    payload = saved.read_bytes().partition(b"\n")[2]
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "model.json":
                document = json.loads(content)
                change(document)
                content = json.dumps(document)
            new.writestr(name, content)
    path.write_bytes(f"certifit-model 1 {hashlib.sha256(out.getbuffer()).hexdigest()}\n".encode() + out.getvalue())
    return path


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "DataError", "audit", "load", "GridSearchCV"])
def test_only_public_estimators_are_built(saved, tmp_path, name):
    def change(document):
        document["model"]["estimator"] = name

    with pytest.raises(DataError, match="cannot read"):
        load(rewritten(saved, tmp_path / "crafted", change))


def test_unknown_records_kinds_and_settings_are_refused(saved, tmp_path):
    for key, value in (("record", "Popen"), ("code", "1 + 1"), ("array", 10**6)):

        def change(document, key=key, value=value):
            document["model"]["fitted"]["certificate_"] = {key: value, "fields": {}}

        with pytest.raises(DataError, match="cannot read"):
            load(rewritten(saved, tmp_path / "crafted", change))

    def unknown_setting(document):
        document["model"]["params"]["colour"] = "red"

    with pytest.raises(DataError, match="cannot read"):
        load(rewritten(saved, tmp_path / "crafted", unknown_setting))


def test_a_sparse_table_that_points_outside_itself_is_refused(tmp_path):
    save(MODELS["sparse"](), tmp_path / "model")

    def change(document):
        document["model"]["fitted"]["support_vectors_"]["shape"][1] = 2  # of 4 columns

    with pytest.raises(DataError, match="cannot read"):
        load(rewritten(tmp_path / "model", tmp_path / "crafted", change))


def test_object_arrays_are_never_unpickled(saved, tmp_path):
    pickled = io.BytesIO()
    np.lib.format.write_array(pickled, np.array([object], dtype=object), allow_pickle=True)
    payload = io.BytesIO(saved.read_bytes().partition(b"\n")[2])
    out = io.BytesIO()
    with zipfile.ZipFile(payload) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, pickled.getvalue() if name.endswith(".npy") else old.read(name))
    header = f"certifit-model 1 {hashlib.sha256(out.getbuffer()).hexdigest()}\n".encode()
    (tmp_path / "crafted").write_bytes(header + out.getvalue())
    with pytest.raises(DataError, match="allow_pickle=False"):
        load(tmp_path / "crafted")


def test_a_newer_format_says_so(saved, tmp_path):
    newer = saved.read_bytes().replace(b"certifit-model 1 ", b"certifit-model 2 ", 1)
    (tmp_path / "newer").write_bytes(newer)
    with pytest.raises(DataError, match=r"format 2; wanted format 1"):
        load(tmp_path / "newer")


def test_what_cannot_be_stored_is_refused(tmp_path):
    path = tmp_path / "model.certifit"
    with pytest.raises(NotFittedError, match="not fitted"):
        save(PCA(), path)
    with pytest.raises(DataError, match="certifit's own models"):
        save(ScikitPCA().fit(X), path)
    with pytest.raises(DataError, match="certifit's own models"):
        save({"a": 1}, path)
    random = LogisticRegression(random_state=np.random.RandomState(0)).fit(X, y)
    with pytest.raises(DataError, match=r"LogisticRegression.random_state.*set_params\(random_state=0\)"):
        save(random, path)
    assert list(tmp_path.iterdir()) == []


def test_a_member_of_a_family_is_stored_with_its_parameters(tmp_path):
    model = Mixture({0: "gamma", 1: GaussianFixedVariance(0.0, 0.25)}, 2, random_state=0).fit(X[:, :2])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again.family[1]) is GaussianFixedVariance
    assert again.family[1].parameters == model.family[1].parameters
    assert (again.predict_proba(X[:, :2]) == model.predict_proba(X[:, :2])).all()

    def change(document):
        document["model"]["params"]["family"] = {"family": "families.Family"}

    with pytest.raises(DataError, match="cannot read"):
        load(rewritten(tmp_path / "model", tmp_path / "crafted", change))


class OwnKernel(Kernel):
    """A user's class, which no file may name."""

    valid = True

    def values(self, A, B):
        return A @ B.T


@pytest.mark.parametrize("kernel", [lambda A, B: A @ B.T, OwnKernel(), 1.0 + OwnKernel()])
def test_kernels_that_are_code_are_refused(tmp_path, kernel):
    model = SVC(kernel=kernel).fit(X, y)
    with pytest.raises(DataError, match=r"SVC.kernel.*kernel='precomputed'"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.certifit"
    save(MODELS["pca"](), path)
    before = path.read_bytes()

    def full(file, content):
        file.write(content[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_file, "_write", full)
    with pytest.raises(OSError, match=r"No space left on device.*nothing was written") as raised:
        save(MODELS["pca"](), path)
    assert raised.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_real_limit_on_file_size_leaves_nothing(tmp_path):
    """The kernel refuses the write in mid-file (RLIMIT_FSIZE), as it does on a full disk."""
    script = (
        "import resource, signal, sys\n"
        "from certifit.store import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_atomically(sys.argv[1], b'x' * 100_000)\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "big")], capture_output=True, text=True, check=True
    )
    assert "nothing was written" in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_writing_keeps_permissions_and_follows_links(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    atomic_file.write_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    atomic_file.write_atomically("/dev/null", b"gone")  # a device is written to, not replaced
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_loading_names_the_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.certifit"):
        certifit.load(tmp_path / "nothing.certifit")
