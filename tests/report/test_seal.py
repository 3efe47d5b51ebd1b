"""Pages that check themselves: the proof that they carry, against the checkers; the seal, in a headless Chromium.

Where there is no Chromium the tests that need one say so in a warning of the report, and the rest are run.
"""

import re

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import certifit
from benchmarks.browser import browser, find_chromium
from benchmarks.page_tampering import tamper
from certifit.datasets import penguins_table
from certifit.report import Report, render
from certifit.report.page import PageSection, compose
from certifit.report.sealing.convex_fits import convex_fit, model_proof
from certifit.report.sealing.proof import FitSource, ProofTuning, page_proof
from certifit.report.sealing.seal import page_digest, written_words
from certifit.table.labelled_table import labelled_table
from certifit.table.table_classifier import TableClassifier
from certifit.table.table_regressor import TableRegressor

FAMILIES = ("gaussian", "poisson", "negative_binomial", "gamma")


def counts(family, n=80):
    """A table with a target that suits the family, and one hole."""
    rng = np.random.default_rng(3)
    x, kind = rng.normal(size=n), np.array(["a", "b", "ü"])[rng.integers(0, 3, n)]
    mean = np.exp(0.5 + 0.4 * x)
    y = {
        "gaussian": mean,
        "poisson": rng.poisson(mean).astype(float),
        "negative_binomial": rng.negative_binomial(1, 1 / (1 + mean)).astype(float),
        "gamma": rng.gamma(2.0, mean),
    }[family]
    return pa.table({"x": np.where(np.arange(n) == 7, np.nan, x), "kind": kind, "y": y})


def written(table, target, model, **changes):
    data = labelled_table(table, target, task=model.task)
    model.fit(data)
    words = {"table": "t.csv", "settings": {}, "recheck": "certifit audit m t.csv"}
    return render(Report(model, data, "not cross-validated, as asked", **{**words, **changes}))


def binary():
    table = penguins_table()
    return table.filter(pa.compute.is_valid(table["sex"]))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_proof_agrees_with_the_checker(family):
    """Objective and bound of the page's plain proof, beside those of the checker."""
    model = TableRegressor(family=family).fit(counts(family), "y")
    rows = model.encode_labelled(counts(family))
    proof = model_proof(model.model_, rows.X, FitSource(rows.data.y, None), model.certificate_)
    assert proof["form"] == "rows"
    assert proof["family"] == model.family_


def test_a_model_that_is_not_the_minimum_is_not_proved():
    """Coefficients that are off, under the certificate of the true ones: the page carries no proof of them."""
    model = TableClassifier().fit(binary(), "sex")
    rows = model.encode_labelled(binary())
    model.model_.coef_ = model.model_.coef_ + 0.01
    proof = model_proof(model.model_, rows.X, FitSource(rows.data.y, None), model.certificate_)
    assert proof["form"] == "none"


def test_other_libraries_models_have_a_proof_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    for model, target in (
        (LogisticRegression(tol=1e-10, class_weight="balanced").fit(X, y), y),
        (Ridge().fit(X, X[:, 0] + 1), X[:, 0] + 1),
    ):
        assert model_proof(model, X, FitSource(target, None), certifit.audit(model, X, target))["form"] == "rows"
    kinds = np.digitize(X[:, 0], [-0.5, 0.5])
    for machine in (
        LinearSVC(tol=1e-10, max_iter=100_000, intercept_scaling=2.0, C=0.3).fit(X, kinds),
        certifit.LinearSVC(penalize_intercept=False).fit(X, kinds),
        certifit.LinearSVC(fit_intercept=False).fit(X, kinds),
    ):
        found = model_proof(machine, X, FitSource(kinds, None), certifit.audit(machine, X, kinds))
        assert (found["form"], found["family"]) == ("rows", "squared_hinge")
    without = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    assert model_proof(without, X, FitSource(y, None), certifit.audit(without, X, y))["form"] == "none"


def sparse_models():
    """Models with coefficients that are 0, by an L1 penalty alone or beside a ridge; with their rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    y, kinds = X[:, 0] + 0.5 * rng.normal(size=60), np.digitize(X[:, 0] + 0.5 * rng.normal(size=60), [-0.5, 0.5])
    other = LogisticRegression(l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=10_000, C=0.2)
    return {
        "lasso": (Lasso(0.2, tol=1e-12), X, y),
        "elastic": (certifit.ElasticNet(0.2, l1_ratio=0.7), X, y),
        "signs": (other, X, kinds > 0),
        "kinds": (certifit.LogisticRegression(l1_ratio=0.5, C=0.1), X, kinds),
    }


@pytest.mark.parametrize("name", ["lasso", "elastic", "signs", "kinds"])
def test_sparse_models_are_proved_and_other_coefficients_are_not(name):
    model, X, y = sparse_models()[name]
    certificate = certifit.audit(model.fit(X, y), X, y)
    assert certificate.holds
    assert (np.asarray(model.coef_) == 0).any()
    proof = model_proof(model, X, FitSource(y, None), certificate)
    assert (proof["form"], proof["lam1"] > 0) == ("rows", True)
    model.coef_ = model.coef_ + 0.05
    assert model_proof(model, X, FitSource(y, None), certificate)["form"] == "none"


def test_many_rows_leave_their_sums():
    model = TableClassifier().fit(binary(), "sex")
    rows = model.encode_labelled(binary())
    fit, source = convex_fit(model.model_, rows.X, FitSource(rows.data.y, None))
    proof = page_proof(fit, source, model.certificate_, ProofTuning(most_bytes=1000))
    assert proof["form"] == "sums"
    assert proof["fingerprint"] == model.fingerprint_


def test_the_digest_covers_words_numbers_and_drawings():
    text = written(counts("gaussian"), "y", TableRegressor(family="gaussian"))
    proof = re.search('id="proof">(.*?)</script>', text)[1]
    digest = page_digest(text, proof)
    assert f'data-digest="{digest}"' in text
    assert page_digest(text.replace("The certificate holds", "The certificate Holds"), proof) != digest
    moved = re.sub(r'cx="(\d)', lambda m: f'cx="{(int(m[1]) + 1) % 10}', text, count=1)
    assert page_digest(moved, proof) != digest
    assert "Notchecked" not in written_words(text)


def machines():
    """Scikit-learn's machines of three classes, with penalised intercepts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    kinds = np.digitize(X[:, 0] + 0.2 * rng.normal(size=60), [-0.5, 0.5])
    return LinearSVC(tol=1e-10, max_iter=100_000, intercept_scaling=2.0, C=0.3).fit(X, kinds), X, kinds


def sums_only(model, X, y):
    """A page that carries sums in place of rows."""
    fit, source = convex_fit(model, X, FitSource(y, None))
    proof = page_proof(fit, source, certifit.audit(model, X, y), ProofTuning(most_bytes=700))
    assert proof["form"] == "sums"
    shown = {"settings": {}, "versions": {}, "fingerprint": proof["fingerprint"], "reproduce": "", "recheck": ""}
    return compose("t", "", [PageSection("settings", shown)], proof)


# In a browser. -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name, and what their seals say: all in one browser; None where there is none."""
    place = tmp_path_factory.mktemp("pages")
    texts = {family: written(counts(family), "y", TableRegressor(family=family)) for family in FAMILIES}
    texts["classes"] = written(penguins_table(), "species", TableClassifier(class_weight="balanced"))
    texts["binary"] = written(binary(), "sex", TableClassifier())
    weights = np.where(np.arange(80) % 3, 1.0, 2.5)
    table = counts("poisson").append_column("w", pa.array(weights))
    model = TableRegressor(family="poisson").fit(table, "y", "w")
    data = labelled_table(table, "y", "w", task="regression")
    texts["weights"] = render(Report(model, data, "not cross-validated, as asked", "t", {}, ""))
    texts["machines"] = certifit.report(*machines()).html
    texts["sums"] = sums_only(*machines())
    names = [f"name_of_a_column_without_any_space_{i}" for i in range(9)]
    wide = pa.table(
        {**{name: np.arange(80.0) ** (1 + i / 9) for i, name in enumerate(names)}, "y": np.arange(80.0) % 7}
    )
    texts["long names"] = written(
        wide, "y", TableRegressor(), recheck=f"certifit audit {'/a_folder' * 20}/model t.csv"
    )
    for name, (model, X, y) in sparse_models().items():
        texts[name] = certifit.report(model.fit(X, y), X, y).html
    rng = np.random.default_rng(0)
    for i in range(8):
        name = ("binary", "poisson")[i % 2]
        texts[f"tampered {i}"] = tamper(texts[name], rng)[0]
    forged = re.sub(r'"objective":(\d)', lambda m: f'"objective":{int(m[1]) % 9 + 1}', texts["binary"])
    proof = re.search('id="proof">(.*?)</script>', forged)[1]
    texts["forged"] = re.sub('data-digest="[^"]*"', f'data-digest="{page_digest(forged, proof)}"', forged)
    texts["none"] = re.sub("<script>.*", "</body></html>", texts["binary"], flags=re.S)
    if find_chromium() is None:
        return texts, None, []
    seals = {}
    with browser() as tab:
        for name, text in texts.items():
            path = place / f"{name}.html"
            path.write_text(text, encoding="utf-8")
            tab.open(path)
            seals[name] = tab.value("document.getElementById('seal').className")
        tab.look(360)
        tab.open(place / "binary.html")
        found = [tab.value("document.documentElement.scrollWidth <= innerWidth"), tab.requests]
        button = "document.querySelectorAll('table.sortable')[1].querySelector('th button')"
        tab.value(f"{button}.click()")
        found.append(tab.value(f"{button}.parentElement.getAttribute('aria-sort')"))
        tab.look(680, printed=True)  # A4 paper between its margins
        tab.open(place / "long names.html")
        boxes = "[document.documentElement, ...document.querySelectorAll('pre')]"
        found.append(tab.value(f"{boxes}.every(box => box.scrollWidth <= box.clientWidth)"))
    return texts, seals, found


def needs_browser(pages):
    """Whether there is a browser; where there is none, the test says so and checks the pages' digests alone."""
    seals = pages[1]
    if seals is None:
        print("no Chromium on this machine: seals are not looked at in a browser")
    return seals is not None


def test_honest_pages_are_green(pages):
    for name in (*FAMILIES, "classes", "binary", "weights", "machines", "sums", *sparse_models()):
        assert not needs_browser(pages) or pages[1][name] == "seal green", name


def test_tampered_pages_are_red(pages):
    names = [name for name in pages[0] if name.startswith("tampered")]
    assert len(names) == 8
    for name in (*names, "forged"):
        assert not needs_browser(pages) or pages[1][name] == "seal red", name


def test_a_page_without_its_script_claims_nothing(pages):
    assert not needs_browser(pages) or pages[1]["none"] == "seal grey"


def test_a_phone_shows_the_page_and_nothing_is_requested(pages):
    if needs_browser(pages):
        fits, requests, order, _ = pages[2]
        assert fits
        assert all(address.startswith("file:") for address in requests)
        assert len(requests) == len(pages[0]) + 2
        assert order == "ascending"


def test_paper_cuts_no_table_and_no_command(pages):
    if needs_browser(pages):
        assert pages[2][3]
