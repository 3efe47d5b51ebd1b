"""In a notebook every picture appears, once and by itself, and nothing is said on the way."""

import os

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

FIRST = """
import numpy as np
from sklearn import decomposition, ensemble, mixture, svm
from sklearn.datasets import load_iris, make_swiss_roll
import certifit
from certifit.plots import *
X, y = load_iris(return_X_y=True, as_frame=True)
names = load_iris().target_names[y]
two = X.iloc[:, 2:]
from certifit.core.compiling import notice
notice.told = True  # the line on compiling is not what is looked at here
"""

CELLS = [
    "plot_coefficients(certifit.LogisticRegression().fit(X, names))",
    "ax = plot_coefficients(certifit.Ridge().fit(X, y))",
    "plot_confusion(certifit.GaussianNB().fit(X, names), X, names);",
    "plot_confusion(svm.SVC().fit(X, names), X, names)",
    "plot_scree(certifit.PCA(2).fit(X))",
    "plot_scree(decomposition.PCA(2).fit(X))",
    "plot_components(decomposition.PCA(2).fit(X), X, names)",
    """roll, t = make_swiss_roll(300, random_state=0)
plot_components(certifit.LocallyLinearEmbedding(n_neighbors=12).fit(roll), roll, t)""",
    "plot_mixture(mixture.GaussianMixture(3, random_state=0).fit(two), two)",
    "plot_em_steps(certifit.GaussianMixture(2, random_state=0), two, [1])",
    "plot_em_trace(certifit.GaussianMixture(3, random_state=0).fit(two))",
    "plot_machine(certifit.SVC().fit(two, names), two, names)",
    "plot_boundary(ensemble.RandomForestClassifier(10, random_state=0).fit(X, names), X.to_numpy(), names, (2, 3))",
    "plot_boundary(certifit.KMeans(3, random_state=0).fit(two), two)",
    "plot_convergence(certifit.LinearSVC().fit(X, names))",
    "plot_losses()",
    # Axes of a person's own are drawn on, and no second figure appears.
    """import matplotlib.pyplot as plt
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
plot_scree(certifit.PCA(2).fit(X), ax=left)
plot_components(certifit.PCA(2).fit(X), X, names, ax=right)""",
]


def execute(*sources):
    """Run a notebook of these cells in a kernel that chooses its own backend for pictures, as a person's does."""
    pages = new_notebook(cells=[new_code_cell(source) for source in sources])
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    NotebookClient(pages, timeout=300, kernel_name="python3").execute(env=environment)
    nbformat.validate(pages)
    return pages


@pytest.fixture(scope="module")
def notebook():
    return execute(FIRST, *CELLS)


def test_every_cell_shows_one_picture_and_says_nothing(notebook):
    first, *cells = notebook.cells
    assert first.outputs == []
    for cell in cells:
        images = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        assert len(images) == 1, cell.source
        streams = [output for output in cell.outputs if output.output_type == "stream"]
        assert streams == [], cell.source


def test_a_semicolon_leaves_the_picture_alone(notebook):
    (cell,) = [cell for cell in notebook.cells if cell.source.endswith(";")]
    assert [output.output_type for output in cell.outputs] == ["display_data"]


REPORT = """from certifit.plots import plot_losses, svg
from certifit.plots.style import figures_apart
with figures_apart():
    words = svg(plot_losses())"""
PROGRESS = [
    "import certifit, numpy as np\nX = np.random.default_rng(0).normal(size=(3000, 4))\ny = X[:, 0] > 0.3",
    "model = certifit.LogisticRegression().set_callbacks(certifit.ProgressBar()).fit(X, y)",
    "model.set_callbacks().fit(X, y);",
]
SHOWN = [
    "certifit.LogisticRegression().fit(X, y)",
    "make_pipeline(StandardScaler(), certifit.Ridge()).fit(X, y)",
    "GridSearchCV(certifit.SVC(), {'C': [1, 10]}).fit(X, y)",
    "certifit.KMeans(3, random_state=0).fit(X)",
    "certifit.DecisionTreeClassifier().fit(X, y)",
    "certifit.Ridge().fit(X, y).summary()",
    "certifit.LinearRegression().fit(X, y).summary()",
    "certifit.PCA(2).fit(X).certificate_",
    "certifit.compare([certifit.LogisticRegression(C=C).fit(X, y) for C in (1, 10)], X, y)",
    "certifit.choose_clusters(X, range(1, 4), random_state=0)",
    "certifit.select_mixture(X, [1, 2], 'diag', random_state=0)",
    "certifit.two_views(X)",
]  # fmt: skip


@pytest.fixture(scope="module")
def words():
    """A notebook whose cells show texts and tables, of the report first, before pyplot is loaded."""
    first = FIRST + "from sklearn.model_selection import GridSearchCV\nfrom sklearn.pipeline import make_pipeline\n"
    first += "from sklearn.preprocessing import StandardScaler"
    return execute(REPORT, *PROGRESS, first, *SHOWN)


def test_a_report_in_a_notebook_shows_no_picture_of_its_own(words):
    """Figures of the report are made apart from pyplot's."""
    assert words.cells[0].source == REPORT
    assert words.cells[0].outputs == []


def test_progress_in_a_notebook_is_text_that_needs_no_widgets(words):
    first, shown, again = words.cells[1:4]
    assert first.outputs == again.outputs == []
    assert [output.output_type for output in shown.outputs] == ["display_data"]
    text = shown.outputs[0].data["text/plain"]
    assert text.startswith("LogisticRegression ━━━━━━ pass")
    assert len(text) <= 80


def test_models_and_tables_are_shown_once_as_html(words):
    """No traceback, nothing printed beside, and the certificate in scikit-learn's box."""
    cells = words.cells[5:]
    assert len(cells) == len(SHOWN)
    for cell in cells:
        assert [output.output_type for output in cell.outputs] == ["execute_result"], cell.source
        (output,) = cell.outputs
        assert "<table" in output.data["text/html"] or "<div" in output.data["text/html"], cell.source
    pages = [cell.outputs[0].data["text/html"] for cell in cells]
    assert all("Certificate: " in box for box in pages[:5])
    assert "penalty: l2, C=1.0 against l2, C=10.0" in pages[8]
