"""What is no file, is not one's own or stands for more than it seems is refused in words, at once."""

import gzip
import os

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.feather
import pytest
from onnx import TensorProto, helper, numpy_helper

import certifit
from certifit import DataError
from certifit.cli.files import TableFiles, read_table
from certifit.rows.sources.open_source import open_source
from certifit.rows.sources.table import ReadTuning
from certifit.table.streaming.memory import StreamTuning, bytes_in_memory, is_large

X = np.random.default_rng(0).normal(size=(60, 2))
y = (X[:, 0] > 0).astype(int)
READERS = {
    "csv": lambda path: certifit.GaussianNB().fit(path, "y"),
    "parquet": lambda path: certifit.GaussianNB().fit(path, "y"),
    "certifit": certifit.load,
    "onnx": certifit.load_onnx,
    "ckpt": lambda path: certifit.GaussianMixture(2, random_state=0).fit(X, checkpoint=path),
    "jsonl": lambda path: read_table(TableFiles((path,))),
    "feather": lambda path: read_table(TableFiles((path,))),
}


@pytest.mark.parametrize("ending", READERS)
def test_a_pipe_and_an_endless_device_are_refused_before_they_are_opened(ending, tmp_path):
    pipe, zeros = tmp_path / f"pipe.{ending}", tmp_path / f"zeros.{ending}"
    os.mkfifo(pipe)
    os.symlink("/dev/zero", zeros)
    for path, word in ((pipe, "a pipe"), (zeros, "a device")):
        with pytest.raises(DataError, match=f"which is {word}; wanted a file"):
            READERS[ending](str(path))


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,1\n")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pyarrow.csv.open_csv", refuse)
    with pytest.raises(DataError, match="which you may not read; wanted a file with permission to read"):
        certifit.GaussianNB().fit(path, "y")


def test_text_of_a_packed_file_is_counted_and_no_further_than_asked(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    text = b"a,y\n" + b"1,0\n" * 500_000
    path.write_bytes(gzip.compress(text))
    tuning = StreamTuning(share=1e-5)
    assert bytes_in_memory(open_source(path)) == StreamTuning().text_factor * len(text)
    assert bytes_in_memory(open_source(path), most=1.0) <= StreamTuning().text_factor * StreamTuning().piece
    assert is_large(path, tuning)
    assert path.stat().st_size < 10_000


def test_a_table_that_memory_does_not_hold_is_refused_as_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,0\n2,1\n" * 50)
    monkeypatch.setattr("certifit.rows.sources.table.available_bytes", lambda: 1000 / ReadTuning().memory_share)
    with pytest.raises(DataError, match=r"wanted one that the memory holds\. Have it read block by block"):
        open_source(path).whole()


@pytest.mark.parametrize("skipped", ["", "sep=;\n"])
def test_more_columns_than_memory_can_read_are_refused_before_they_are(skipped, tmp_path, monkeypatch):
    """A header of a megabyte names half a million columns, and each takes a reader many kilobytes."""
    mark, path = ";" if skipped else ",", tmp_path / "wide.csv"
    path.write_text(f"{skipped}{mark.join('a' * 500_000)}\n{mark.join('1' * 500_000)}\n")
    monkeypatch.setattr("certifit.rows.sources.csv.available_bytes", lambda: 1e9)
    with pytest.raises(DataError, match=r"with 500,000 columns; wanted at most 23,333, for which there is memory"):
        open_source(path)
    path.write_text(f"{skipped}{mark.join(f'x{j}' for j in range(300))}\n{mark.join('1' * 300)}\n")
    assert len(open_source(path).schema) == 300


def test_offsets_outside_of_a_feather_file_are_refused(tmp_path):
    path = tmp_path / "t.feather"
    words = pa.table({"word": [f"word {i}" for i in range(1000)]})
    pa.feather.write_feather(words, path, compression="uncompressed")
    content = path.read_bytes()
    offsets = np.frombuffer(words["word"].chunk(0).buffers()[1], np.int32)[:1001].tobytes()
    assert content.count(offsets) == 1
    wrong = bytearray(offsets)
    wrong[2000:2004] = (2**30).to_bytes(4, "little")
    path.write_bytes(content.replace(offsets, bytes(wrong)))
    with pytest.raises(DataError, match="wanted a Feather file"):
        read_table(TableFiles((str(path),)))


def network(tensor, columns=2, **attributes):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["z"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, columns])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [None, 3])],
        [tensor],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_network_whose_numbers_lie_in_another_file_is_refused(tmp_path):
    tensor = numpy_helper.from_array(np.ones((2, 3), np.float32), "W")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../../../etc/passwd")
    path = tmp_path / "n.onnx"
    path.write_bytes(network(tensor).SerializeToString())
    with pytest.raises(DataError, match=r"cannot be read|in another file"):
        certifit.load_onnx(path)


def test_networks_of_any_bytes_are_read_or_refused_in_words(tmp_path):
    rng = np.random.default_rng(0)
    content = network(numpy_helper.from_array(np.ones((2, 3), np.float32), "W")).SerializeToString()
    path = tmp_path / "n.onnx"
    ends = set()
    for _ in range(300):
        changed = bytearray(content)
        for place in rng.integers(len(changed), size=rng.integers(1, 4)):
            changed[place] = rng.integers(256)
        path.write_bytes(bytes(changed))
        try:
            certifit.load_onnx(path)
            ends.add("read")
        except DataError as error:
            ends.add("refused" if len(str(error)) < 1000 else "refused at length")
    assert ends == {"read", "refused"}
    onnx.save(network(numpy_helper.from_array(np.ones((2, 3), np.float32), "W"), columns=10**12), path)
    with pytest.raises(DataError):
        certifit.load_onnx(path)
