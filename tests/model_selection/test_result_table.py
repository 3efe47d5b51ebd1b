"""Tables of results: 80 columns whatever they hold, and HTML that hides nothing."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from certifit import assess
from certifit.model_selection.result_table import ResultTable


def test_wide_tables_are_cut_into_parts_that_begin_with_the_first_column():
    columns = {f"a column of number {i}": [i, 10 * i] for i in range(9)}
    found = ResultTable("Wide " * 30, {"name": ["x", "y" * 90], **columns}, ("note " * 40,))
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("x ") for line in lines) > 1
    assert all(sum(name in line for line in lines) == 1 for name in columns)
    assert "y" * 90 in found._repr_html_()
    assert found.to_frame().shape == (2, 10)


def test_tables_of_classifiers_stay_within_a_terminal():
    X, y = load_iris(return_X_y=True)
    found = assess(GaussianNB(), X, np.array(["a long name of a class " * 3, "b", "c"])[y], method="holdout")
    for table in (found.per_class(), found.confusion(), found.thresholds("b"), found.roc("b"), found):
        assert max(map(len, str(table).splitlines())) <= 80
