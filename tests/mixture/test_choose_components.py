"""The number and shape of Gaussian components, chosen by a criterion."""

import numpy as np
import pytest

from certifit.exceptions import DataError
from certifit.mixture.choose_components import select_mixture
from tests.mixture.mixture_tables import old_faithful, two_groups


def test_old_faithful_is_best_with_three_equal_covariances():
    """mclust's choice by BIC too, 11 log 272 + 2 · 1126.316 there; ICL, which wants groups apart, prefers two."""
    geyser = old_faithful()
    choice = select_mixture(geyser, [2, 3], ["full", "tied"], random_state=0)
    assert (choice.best.n_components, choice.best.covariance_type) == (3, "tied")
    assert choice.best.bic == pytest.approx(11 * np.log(272) + 2 * 1126.316, abs=5e-3)
    assert choice.model.bic(geyser) == pytest.approx(choice.best.bic, rel=1e-12)
    assert choice.model.aic(geyser) == pytest.approx(choice.best.aic, rel=1e-12)
    R = choice.model.predict_proba(geyser)
    assert choice.best.icl == pytest.approx(choice.best.bic - 2 * (R * np.log(R)).sum(), rel=1e-10)
    by_icl = select_mixture(geyser, [2, 3], ["full"], "icl", random_state=0)
    assert by_icl.best.n_components == 2
    assert str(choice).count("<- best") == 1
    assert len(str(choice).splitlines()) == 1 + 4


def test_a_choice_takes_any_iterable_and_rows_with_entries_only():
    X = np.concatenate([two_groups(), np.full((50, 2), np.nan)])
    choice = select_mixture(X, (k for k in (1, 2)), (kind for kind in ("full", "diag")), random_state=0)
    plain = select_mixture(two_groups(), [1, 2], ["full", "diag"], random_state=0)
    assert len(choice.candidates) == 4
    for a, b in zip(choice.candidates, plain.candidates, strict=True):
        np.testing.assert_allclose(a[4:7], b[4:7], rtol=1e-9)
    assert select_mixture(two_groups(), [2], "diag", random_state=0).best == plain.candidates[3]


def test_a_choice_avoids_collapsed_components():
    X = np.concatenate([two_groups(), [[50.0, 50.0]]])
    choice = select_mixture(X, range(1, 4), ["full"], random_state=0)
    assert choice.best.sound
    assert not all(c.sound for c in choice.candidates)  # one component each for the far row
    assert "not sound" in str(choice)
    for bad in ({"criterion": "best"}, {"n_components": ()}):
        with pytest.raises(DataError, match="wanted"):
            select_mixture(X, **{"n_components": [1], **bad})
