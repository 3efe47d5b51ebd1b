r"""
More features separate more
===========================

**Statement.** If no hyperplane separates two classes, one in a space of more features may: added features never make
separable rows inseparable, and with all products of columns up to some degree any *different* rows can be separated.

**Why.** Old hyperplanes are still there, with coefficient 0 for what was added. For each row a polynomial exists that
is 1 there and 0 at all others (Lagrange), so some polynomial takes any labels as its values.

**Held by** ``tests/theory/atlas/test_atlas_support_vectors.py``: ``test_features_make_rows_separable``.

**Control** ``test_control_equal_rows_are_never_separated``: two birds of different species with the same measurements
break the assumption; no features help.
"""

import numpy as np

from certifit import HardMarginSVC, NoSolutionError, load_penguins
from certifit.plots import plot_machine

birds = load_penguins().dropna()
species = np.where(birds["species"] == "Adelie", "Adelie", "other")


def margin(columns, degree):
    X = (birds[columns] - birds[columns].mean()) / birds[columns].std()
    try:
        return HardMarginSVC(kernel="poly", degree=degree, coef0=1.0, gamma=1.0, ridge=0.0).fit(X, species), X
    except NoSolutionError as error:
        print(f"degree {degree}: {str(error).partition(':')[0]}")


margin(["bill_length_mm", "bill_depth_mm"], 1)
margin(["bill_length_mm", "bill_depth_mm"], 2)
plot_machine(*margin(["bill_length_mm", "bill_depth_mm"], 3), species)

# %%
# Products of up to three of the two columns separate what no line and no conic does. The rows that hold the curve are
# circled.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Birds of two species agree in flipper and mass: the proof of the error names them.

margin(["flipper_length_mm", "body_mass_g"], 3)
