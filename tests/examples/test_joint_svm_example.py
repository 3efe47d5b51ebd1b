"""What the example of separate and joint machines says is so."""

import numpy as np
import pytest

from examples import joint_svm


@pytest.fixture(scope="module")
def shown():
    return {problem: joint_svm.fit(problem) for problem in joint_svm.PROBLEMS}


@pytest.mark.parametrize(("problem", "neglected"), [("between", 1), ("rare", 5)])
def test_separate_machines_neglect_a_class_that_joint_ones_recognise(shown, problem, neglected):
    models, _, unseen = shown[problem]
    share = {name: joint_svm.recalls(model, *unseen) for name, model in models.items()}
    rest = share["one against the rest"]
    assert rest.argmin() == neglected
    for name in ("one against one", "Weston-Watkins", "Crammer-Singer"):
        assert share[name][neglected] > rest[neglected] + 0.15
        assert models[name].score(*unseen) > models["one against the rest"].score(*unseen)
    assert all(model.certificate_.holds for model in models.values())


def test_the_machine_in_the_middle_says_nothing(shown):
    norms = np.linalg.norm(shown["between"][0]["one against the rest"].coef_, axis=1)
    assert norms[1] < 1e-3 * norms[[0, 2]].min()


def test_recalls_by_hand(shown):
    model, unseen = shown["rare"][0]["Weston-Watkins"], shown["rare"][2]
    X, y = unseen
    expected = [np.mean(model.predict(X[y == c]) == c) for c in range(6)]
    np.testing.assert_allclose(joint_svm.recalls(model, X, y), expected)


def test_the_program_prints_and_draws(tmp_path, capsys):
    joint_svm.main(["--out", str(tmp_path / "picture.png")])
    text = capsys.readouterr().out
    assert text.count("Crammer-Singer") == 2
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
