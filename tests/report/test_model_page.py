"""`certifit.report` for any fitted model: ours, scikit-learn's, a pipeline, the best of a search."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certifit
from certifit.datasets import penguins_table
from certifit.table.table_classifier import TableClassifier

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(90, 3)), columns=["first", "<b>", "noise"])
Y = np.where(X["first"] + 0.3 * RNG.normal(size=90) > 0, "yes", "no")


def test_a_search_over_pipelines_shows_the_best():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9)), {"logisticregression__C": [0.1, 1.0]}, cv=2
    )
    page = certifit.report(search.fit(X, Y), X, Y, name="a table", path=None)
    assert page.certificate.holds
    assert "LogisticRegression inside" in page.html
    assert '"form":"rows"' in page.html
    assert "Not tested." in page.html
    assert "<b>: " not in page.html
    assert re.search("<td>first</td>", page.html)


def test_scores_are_of_the_rows_given_for_a_test(tmp_path):
    model = LogisticRegression(tol=1e-9).fit(X[:60], Y[:60])
    page = certifit.report(model, X[:60], Y[:60], test=(X[60:], Y[60:]), path=tmp_path / "page.html")
    right = 100 * accuracy_score(Y[60:], model.predict(X[60:]))
    assert f"{right:.1f} %" in page.html
    assert "Better than guessing." in page.html
    assert (tmp_path / "page.html").read_text() == page.html
    assert "iframe" in page._repr_html_()
    assert "holds" in repr(page)


def test_a_model_that_no_checker_knows_says_so():
    page = certifit.report(KNeighborsClassifier().fit(X, Y), X, Y)
    assert page.certificate is None
    assert "Not known." in page.html
    assert '"form":"none"' in page.html


def test_numbers_have_residuals_and_the_columns_that_matter_come_first():
    y = X["first"].to_numpy() * 2 + 5
    page = certifit.report(RandomForestRegressor(5, random_state=0).fit(X, y), X, y)
    assert "true less predicted" in page.html
    first, noise = (page.html.index(f"<td>{name}</td>") for name in ("first", "noise"))
    assert first < noise
    counts = RNG.poisson(np.exp(0.3 * X["first"]))
    found = certifit.report(PoissonRegressor(tol=1e-9).fit(X.to_numpy(), counts), X.to_numpy(), counts)
    assert found.certificate.holds
    assert '"family":"poisson"' in found.html


def test_models_of_tables_have_their_own_page():
    page = certifit.report(TableClassifier().fit(penguins_table(), "species"), penguins_table())
    assert page.certificate.holds
    assert "What was found in the table" in page.html


def test_what_cannot_be_reported_is_refused():
    with pytest.raises(certifit.DataError, match="with predict"):
        certifit.report(StandardScaler().fit(X), X, Y)
    with pytest.raises(certifit.DataError, match="no y"):
        certifit.report(LogisticRegression().fit(X, Y), X)


def test_the_package_is_the_function_too():
    """Whoever imports from the package first still calls `certifit.report`."""
    import importlib

    package = importlib.import_module("certifit.report")
    assert package(LogisticRegression().fit(X, Y), X, Y).html.startswith("<!DOCTYPE html>")


def test_labels_alone_give_importance_and_mistakes():
    """A classifier without probabilities: shares of wrong answers, and no curves."""
    page = certifit.report(certifit.LinearSVC().fit(X, Y), X, Y)
    assert "share of wrong answers" in page.html
    assert "ROC" not in page.html
    assert "(log-odds)" not in page.html


def test_an_additive_model_shows_its_functions():
    page = certifit.report(certifit.AdditiveClassifier(max_bins=8).fit(X, Y), X, Y)
    assert "What first adds to the score" in page.html
