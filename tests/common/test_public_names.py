"""Public names: one word is the migration from scikit-learn, and type checkers know what exists."""

import importlib
import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import sklearn
from sklearn.base import BaseEstimator

import certifit
from certifit.registry import ESTIMATORS, PUBLIC
from tests.common.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
SKLEARN_MODULES = sorted(
    module.name
    for module in pkgutil.iter_modules(sklearn.__path__)
    if not module.name.startswith(("_", "conftest", "experimental", "externals", "tests"))
)


def public_estimators(module):
    """The estimators that a module of scikit-learn exports."""
    theirs = importlib.import_module(f"sklearn.{module}")
    names = [name for name in getattr(theirs, "__all__", dir(theirs)) if not name.startswith(("_", "Halving"))]
    values = {name: getattr(theirs, name) for name in names if hasattr(theirs, name)}
    classes = {name: value for name, value in values.items() if isinstance(value, type)}
    home = f"sklearn.{module}"
    return {name for name, c in classes.items() if issubclass(c, BaseEstimator) and c.__module__.startswith(home)}


def test_replacing_sklearn_by_certifit_migrates_every_name_that_both_have():
    """sed s/sklearn/certifit/: a name is found in the module of the same name, and means the same class as flat."""
    found = set()
    for module in SKLEARN_MODULES:
        for name in public_estimators(module) & set(PUBLIC):
            room = importlib.import_module(f"certifit.{module}")
            assert getattr(room, name) is getattr(certifit, name), (module, name)
            assert name in room.__all__
            found.add(name)
    assert found >= {"PCA", "KMeans", "LogisticRegression", "SVC", "GaussianNB", "Nystroem", "Ridge"}
    assert len(found) >= 25


def test_every_name_of_scikit_learn_that_is_registered_was_found():
    """No estimator hides in another room than scikit-learn's."""
    theirs = set().union(*(public_estimators(module) for module in SKLEARN_MODULES))
    for entry in ESTIMATORS:
        if entry.name in theirs:
            assert entry.name in public_estimators(entry.room), entry


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_registered_name_loads(name):
    value = getattr(certifit, name)
    if name == "report":  # a package of this name, which can be called
        assert value.__name__ in ("report", "certifit.report")
        assert callable(value)
        return
    assert value is PUBLIC[name].load()
    assert value.__name__ == name


def test_unknown_names_are_refused():
    for package in (certifit, certifit.svm, certifit.plots):
        with pytest.raises(AttributeError, match="DBSCAN"):
            package.DBSCAN  # noqa: B018


def test_every_registered_estimator_has_the_common_tests():
    """Wrappers around other estimators have them in files of their own."""
    wrappers = {"SequentialSelector", "RecursiveElimination", "L1Selector", "TableClassifier", "TableRegressor"}
    wrappers |= {"SequentialFeatureSelector", "RFE", "RFECV", "SelectFromModel"}
    assert {entry.name for entry in ESTIMATORS} == {entry.cls.__name__ for entry in CATALOGUE} | wrappers


def test_import_loads_nothing_heavy():
    heavy = ("numba", "sklearn", "pyarrow", "matplotlib")
    code = f"import sys, certifit; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_type_checker_sees_estimators_and_refuses_names_that_do_not_exist(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import certifit
        from certifit.cluster import KMeans
        from certifit.svm import SVC

        reveal_type(certifit.KMeans(3).fit([[1.0]]))
        reveal_type(KMeans(3).fit([[1.0]]))
        reveal_type(SVC().fit([[1.0]], [1]))
        reveal_type(certifit.Lasso().fit([[1.0]], [1]))
        certifit.DBSCAN()
        certifit.svm.DBSCAN
    """)
    )
    # With the settings and the memory of `make lint`: what that has seen is not looked at again.
    done = subprocess.run([sys.executable, "-m", "mypy", str(program)], capture_output=True, text=True, cwd=ROOT)
    told = [line for line in done.stdout.splitlines() if "program.py" in line]
    assert told[0].endswith('Revealed type is "certifit.cluster.kmeans.KMeans"')
    assert told[1].endswith('Revealed type is "certifit.cluster.kmeans.KMeans"')
    assert told[2].endswith('Revealed type is "certifit.svm.kernel.svc.SVC"')
    assert told[3].endswith('Revealed type is "certifit.linear_model.regressors.Lasso"')
    assert 'Module has no attribute "DBSCAN"' in told[4]
    assert 'Module has no attribute "DBSCAN"' in told[5]
    assert len([line for line in told if "error" in line]) == 2


def first_cells(page):
    """The backticked names in the first cell of each table row of a page, row by row, and the row's last cell."""
    rows = [
        line.strip("| ").split(" | ") for line in (ROOT / page).read_text().splitlines() if line.startswith("| `")
    ]
    return [(re.findall(r"`(\w+)`", cells[0]), cells[-1]) for cells in rows]


def test_the_readme_lists_every_estimator_once_with_what_it_proves():
    found = first_cells("README.md")
    for entry in ESTIMATORS:
        assert [last for names, last in found if entry.name in names] == [entry.proves], entry.name


def test_no_page_has_two_rows_for_a_model_or_a_room():
    registered = {entry.name for entry in ESTIMATORS}
    for page in ("README.md", "docs/architecture.md"):
        names = [name for names, _ in first_cells(page) for name in names if name in registered or name.islower()]
        assert "DecisionTreeClassifier" in names
        repeated = {name for name in names if names.count(name) > 1} - {"linalg"}  # both a room and what it proves
        assert repeated == set(), page
