"""The rules of the house that a program can check: names, folders, constants, parameters; see tools/house.py."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_tool(name, folder=ROOT / "tools"):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    importlib.sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def house():
    return load_tool("house").survey(ROOT)


def test_a_class_name_means_one_thing(house):
    assert house.repeated == {}


def test_no_room_is_crowded(house):
    """The package itself has a folder for every module of scikit-learn's that it knows, `checkers` mirrors it."""
    mirrors = ("src/certifit", "src/certifit/checkers")
    assert {name: count for name, count in house.folders.items() if count > 14 and name not in mirrors} == {}


def test_numbers_that_steer_are_fields_not_constants(house):
    assert house.constants_per_thousand <= 3


def test_tests_pass_a_tuning_and_patch_no_constant(house):
    assert house.patched == []


def test_functions_can_be_called_from_memory(house):
    assert len(house.wide) <= 8, sorted(house.wide, reverse=True)
    assert house.long == []


def test_the_survey_sees_what_it_should(tmp_path):
    """A small house with one fault of each kind."""
    package, tests = tmp_path / "src" / "certifit" / "room", tmp_path / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    wide = "def wide(a, b, c, d, e, f, g, h): ...\n"
    (package / "one.py").write_text("LIMIT = 3\nclass Point: ...\n" + wide)
    (package / "two.py").write_text("class Point: ...\ndef long():\n" + "    pass\n" * 71)
    patch = "monkeypatch" + '.setattr(one, "LIMIT", 4)'
    (tests / "test_one.py").write_text(f"def test(monkeypatch):\n    {patch}\n")
    found = load_tool("house").survey(tmp_path)
    assert list(found.repeated) == ["Point"]
    assert sum(found.constants.values()) == 1
    assert [count for count, _ in found.wide] == [8]
    assert [count for count, _ in found.long] == [72]
    assert found.patched == ["LIMIT"]
    assert found.folders["src/certifit/room"] == 2


def test_stubs_follow_from_the_registry():
    tool = load_tool("stubs")
    for path, text in tool.stubs().items():
        assert path.read_text() == text, f"{path}: run python tools/stubs.py"
