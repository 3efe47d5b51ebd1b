"""Pictures of models and certificates. Each function draws on given axes, or on a new figure of its own.

Figures are made through matplotlib's object interface: no global state, no window, safe in threads and servers.
"""

from certifit.plots.classification import plot_coefficients, plot_confusion
from certifit.plots.convergence import plot_convergence
from certifit.plots.divergence import plot_directions, plot_projection_path
from certifit.plots.figures import svg
from certifit.plots.generative import learning_curves, plot_learning_curves

__all__ = [
    "learning_curves",
    "plot_coefficients",
    "plot_confusion",
    "plot_convergence",
    "plot_directions",
    "plot_learning_curves",
    "plot_projection_path",
    "svg",
]
