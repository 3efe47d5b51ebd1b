"""The example that shows EM step by step: what it prints holds, and its pictures are there."""

import numpy as np
import pytest

from certifit.mixture.plots import em_frames
from examples import em

X = em.penguins()


def test_the_table_shows_the_identity():
    frames = em_frames(em.poor_start(X), X, 3)
    assert em.identity_holds(frames)
    lines = em.identity_table(frames).splitlines()
    assert len(lines) == 8
    for line, frame in zip(lines[1:], frames, strict=True):
        loglik, bound, kl, rest = map(float, line[10:].split())
        assert loglik == pytest.approx(frame.loglik, abs=1e-9)
        assert loglik == pytest.approx(bound + kl, abs=2e-7)
        assert abs(rest) < 1e-12


def test_a_broken_identity_is_noticed():
    frames = em_frames(em.poor_start(X), X, 1)
    for broken in ({"loglik": frames[1].loglik + 1e-6}, {"kl": 1e-6, "bound": frames[1].bound - 1e-6}):
        assert not em.identity_holds([frames[0], frames[1]._replace(**broken), frames[2]])
    assert not em.identity_holds(frames[::-1])


def test_jensens_inequality_is_checked_against_many_responsibilities():
    frame = em_frames(em.poor_start(X), X, 1)[-1]
    found = em.jensen(frame, X, tried=50)
    assert found.holds
    assert found.largest < 0 < found.tried
    assert not found._replace(largest=1e-6).holds
    assert not found._replace(at_posterior=-1e-6).holds


def test_small_spheres_become_kmeans():
    """The difference of objectives is 2σ² n times the entropy of the weights, to first order: it falls with σ²."""
    found = em.limits(X, variances=(0.3, 1e-3, 1e-5))
    away = [f.objective - f.inertia for f in found]
    assert not found[0].same
    assert found[-1].same
    assert away[0] > away[1] > away[2] > 0
    np.testing.assert_allclose(away[2] / away[1], 1e-2, rtol=0.01)
    np.testing.assert_allclose(found[-1].objective, found[-1].inertia, rtol=1e-4)
    assert found[-1].sure > 0.999999
    assert em.limit_table(found).splitlines()[-1].endswith("yes")


def test_from_the_command_line(tmp_path, capsys):
    em.main(["--out", str(tmp_path / "em.png"), "--gif", str(tmp_path / "em.gif"), "--shown", "1", "--steps", "2"])
    out = capsys.readouterr().out
    assert "M steps raise the bound: holds" in out
    assert "after M step 1: holds" in out
    assert "DOES NOT HOLD" not in out
    assert (tmp_path / "em.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "em.gif").read_bytes().startswith(b"GIF8")


def test_a_place_that_cannot_be_written_ends_in_words(tmp_path, capsys, monkeypatch):
    def refuse(out, *_):
        raise OSError(f"cannot write {out}")

    monkeypatch.setattr(em, "show", refuse)
    with pytest.raises(SystemExit) as stop:
        em.main(["--out", str(tmp_path / "nowhere" / "em.png")])
    assert stop.value.code == 2
    assert "cannot write" in capsys.readouterr().err
