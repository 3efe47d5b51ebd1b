r"""
Three conventions for zeros
===========================

**Statement.** In a divergence :math:`0 \log 0 = 0`, :math:`0 \log \frac{0}{q} = 0` and :math:`p \log \frac{p}{0} =
\infty` for :math:`p, q > 0`. They are no matter of taste: each is the limit of the terms of distributions without
zeros. (An outcome that neither has, :math:`0 \log \frac00 = 0`, is left out: no limit decides it, unless both shares
vanish at the same rate.)

**Why.** :math:`t \log t \to 0` as :math:`t \to 0`, so outcomes that :math:`p` never has cost nothing; but
:math:`p \log \frac{p}{t} \to \infty`: one row of a kind that :math:`q` excludes refutes :math:`q` for certain.

**Held by** ``tests/theory/atlas/test_atlas_divergence.py``: ``test_three_conventions``.

**Control** ``test_control_leaving_out_every_zero``: a sum over the outcomes that both have is no limit of
divergences, and can be negative.
"""

import numpy as np
import pandas as pd

from certifit.datasets import load_penguins
from certifit.divergence import kl
from certifit.plots import plot_kl_terms

penguins = load_penguins()
shares = pd.crosstab(penguins["species"], penguins["island"], normalize="columns")
print(shares.round(3))
print("KL(Torgersen, Biscoe) =", kl(shares["Torgersen"], shares["Biscoe"]))
print("KL(Biscoe, Dream) =", kl(shares["Biscoe"], shares["Dream"]))

# %%
# On Biscoe (p) live Adélie and Gentoo penguins, on Dream (q) Adélie and Chinstraps. Chinstraps cost nothing, for p
# has none; the first Gentoo tells that a bird is not from Dream.

plot_kl_terms(shares["Biscoe"], shares["Dream"], shares.index)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# To leave out every outcome with a zero gives the smallest "divergence" of all, below zero.

both = shares[(shares["Biscoe"] > 0) & (shares["Dream"] > 0)]
print("terms that both have:", np.sum(both["Biscoe"] * np.log(both["Biscoe"] / both["Dream"])))
