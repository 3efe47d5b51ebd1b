"""The interactive page: its numbers beside those of certifit and NumPy on the same points, in a headless Chromium.

Where there is no Chromium the tests that need one say so, and the page's policy is looked at alone.
"""

import json
import re
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.browser import browser, find_chromium
from certifit import PCA, SVC, GaussianMixture, KMeans
from certifit.checkers.cluster.spectral_bound import spectral_bound
from tests.common.test_house import load_tool

PAGE = Path(__file__).parents[2] / "docs" / "_static" / "theorems.html"
RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(11, 2)).round(2)
SIGNS = np.where(POINTS @ [1.0, 0.6] + 0.5 * RNG.normal(size=11) > 0, 1, -1)
LINE = np.sort(np.r_[RNG.normal(-2, 0.7, 6), RNG.normal(2, 0.9, 5)]).round(2)
ASKED = {
    "kmeans": {"points": POINTS.tolist(), "centres": [[-1.0, 0.5], [1.0, 0.0]]},
    "em": {"points": [[x, -1.3] for x in LINE], "shares": [[0.3, 0.7]] * 11},
    "machine": {"points": POINTS.tolist(), "y": SIGNS.tolist(), "logC": 0.5},
    "pca": {"points": POINTS.tolist(), "angle": 40},
}


@pytest.fixture(scope="module")
def seen():
    """What the panels say after the page was opened and used, and what was asked of any network; None without."""
    if find_chromium() is None:
        print("no Chromium on this machine: the page is not looked at in a browser")
        return None
    with browser() as tab:
        tab.look(360)
        tab.open(PAGE, "#" + quote(json.dumps(ASKED)))

        def state(panel):
            return json.loads(tab.value(f"document.getElementById('{panel}').dataset.state"))

        def press(panel, does):
            tab.value(f"document.querySelector('#{panel} [data-does={does}]').click()")

        found = {panel: state(panel) for panel in ASKED}
        found["narrow"] = tab.value("document.documentElement.scrollWidth <= innerWidth")
        for panel, buttons in {"kmeans": ["best"], "em": ["expect"], "pca": ["best"]}.items():
            for does in buttons:
                press(panel, does)
            found[f"{panel} after"] = state(panel)
        for _ in range(20):
            press("em", "both")
        found["em at last"] = state("em")
        tab.value("const steps = document.querySelector('[data-sets=steps]'); steps.value = 3;"
                  "steps.dispatchEvent(new Event('input'))")  # fmt: skip
        found["machine, three steps"] = state("machine")
        # The first point of the last panel: an arrow key, then the mouse.
        press("pca", "reset")
        tab.value("document.querySelector('#pca .handle').focus()")
        tab.ask("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
        found["by keys"] = state("pca")["state"]["points"][0]
        tab.value("document.querySelector('#pca .stage').scrollIntoView()")
        box = tab.value(
            "(({x, y, width}) => [x, y, width])(document.querySelector('#pca .handle').getBoundingClientRect())"
        )
        at = [box[0] + box[2] / 2, box[1] + box[2] / 2]
        for kind, move in (("mousePressed", 0), ("mouseMoved", 30), ("mouseReleased", 30)):
            where = {"x": at[0] + move, "y": at[1], "button": "left", "buttons": 1, "clickCount": 1}
            tab.ask("Input.dispatchMouseEvent", type=kind, **where)
        found["by mouse"] = state("pca")["state"]["points"][0]
        found["requests"] = tab.requests
    return found


def close(value, expected, rel=1e-9):
    return value == pytest.approx(expected, rel=rel, abs=1e-9)


def scatter():
    return np.cov(POINTS.T, bias=True) * len(POINTS)


def test_the_policy_lets_nothing_but_the_pages_own_script_run():
    text = PAGE.read_text(encoding="utf-8")
    assert load_tool("page_policy").with_hashes(text) == text, "run python tools/page_policy.py"
    assert "default-src 'none'" in text
    assert not re.search(r"unsafe|https?:(?!//www\.w3\.org/2000/svg)|\son\w+=|\sstyle=", text)


def test_kmeans_agrees(seen):
    if seen is None:
        return
    numbers, best = seen["kmeans"]["numbers"], seen["kmeans after"]["numbers"]
    centres = np.array(ASKED["kmeans"]["centres"])
    distances = ((POINTS[:, None] - centres) ** 2).sum(axis=2)
    assert close(numbers["objective"], distances.min(axis=1).sum())
    own = distances.argmin(axis=1)
    assert close(numbers["within"], sum(((POINTS[own == k] - POINTS[own == k].mean(0)) ** 2).sum() for k in (0, 1)))
    assert close(numbers["total"], np.trace(scatter()))
    assert close(numbers["bound"], spectral_bound(scatter(), 2, len(POINTS)))
    model = KMeans(2, random_state=0).fit(POINTS)
    assert model.certificate_.bound <= numbers["best"] * (1 + 1e-9)
    assert close(numbers["best"], model.inertia_)
    assert close(best["objective"], model.inertia_)
    assert seen["kmeans"]["holds"]


def test_bound_and_divergence_agree(seen):
    if seen is None:
        return
    told, parts = seen["em"]["numbers"], seen["em"]["state"]["parts"]
    joint = np.column_stack([part["share"] * norm.pdf(LINE, part["mean"], part["sd"]) for part in parts])
    q, posterior = np.array(ASKED["em"]["shares"]), joint / joint.sum(axis=1, keepdims=True)
    assert close(told["likelihood"], np.log(joint.sum(axis=1)).sum())
    assert close(told["divergence"], (q * np.log(q / posterior)).sum())
    assert close(told["bound"], (q * np.log(joint / q)).sum())
    assert close(seen["em after"]["numbers"]["divergence"], 0)
    last = seen["em at last"]
    model = GaussianMixture(2, means_init=[[-2.0], [2.0]], tol=1e-9, reg_covar=0).fit(LINE[:, None])
    assert close(last["numbers"]["likelihood"], model.score(LINE[:, None]) * len(LINE), rel=1e-7)
    assert last["numbers"]["likelihood"] > told["likelihood"]


def test_primal_and_dual_agree(seen):
    if seen is None:
        return
    told, early = seen["machine"]["numbers"], seen["machine, three steps"]["numbers"]
    model = SVC(C=10**0.5, kernel="linear", tol=1e-9).fit(POINTS, SIGNS)
    assert close(told["primal"], model.certificate_.objective, rel=1e-6)
    assert close(told["dual"], model.certificate_.objective, rel=1e-6)
    assert told["gap"] > -1e-9
    assert told["gap"] < 1e-8 * told["primal"]
    np.testing.assert_allclose(told["w"], model.coef_[0], atol=1e-4)
    assert close(told["balance"], 0)
    assert {i for i, kind in enumerate(told["kinds"]) if kind != "none"} == set(model.support_)
    assert early["dual"] < told["dual"] < early["primal"]


def test_both_views_agree(seen):
    if seen is None:
        return
    told, best = seen["pca"]["numbers"], seen["pca after"]["numbers"]
    u = np.array([np.cos(np.radians(40)), np.sin(np.radians(40))])
    centred = POINTS - POINTS.mean(axis=0)
    assert close(told["kept"], (centred @ u).var())
    assert close(told["error"], ((centred - np.outer(centred @ u, u)) ** 2).sum(axis=1).mean())
    model = PCA(2).fit(POINTS)
    variances = model.explained_variance_ * (len(POINTS) - 1) / len(POINTS)
    np.testing.assert_allclose([told["most"], told["least"]], variances, rtol=1e-9)
    np.testing.assert_allclose([best["kept"], best["error"]], variances, rtol=1e-9)


def test_points_move_by_keys_and_by_mouse_and_nothing_is_requested(seen):
    if seen is None:
        return
    assert seen["by keys"] == [-3.4, -1.2]
    assert seen["by mouse"][0] > -3.0
    assert seen["by mouse"][1] == pytest.approx(-1.2, abs=0.05)
    assert seen["narrow"]
    assert [address.partition("#")[0] for address in seen["requests"]] == [PAGE.as_uri()]
