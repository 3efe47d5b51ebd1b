"""Pictures of models and certificates. Each function draws on given axes, or on a new figure of its own.

Figures are made through matplotlib's object interface: no global state, no window, safe in threads and servers.
"""

from certifit.plots.classification import plot_coefficients, plot_confusion
from certifit.plots.clusters import plot_cluster_choice
from certifit.plots.compression import plot_images, plot_rate_distortion, rate_distortion
from certifit.plots.convergence import plot_convergence
from certifit.plots.divergence import plot_directions, plot_projection_path
from certifit.plots.figures import svg
from certifit.plots.generative import learning_curves, plot_learning_curves
from certifit.plots.losses import plot_losses
from certifit.plots.mixture import em_frames, plot_em_steps, plot_em_trace, plot_mixture, plot_mixture_choice
from certifit.plots.pca import plot_components, plot_scree
from certifit.plots.robust import plot_first_axes, plot_split
from certifit.plots.selection import plot_l1_path, plot_scores, plot_search
from certifit.plots.svm import plot_machine

__all__ = [
    "em_frames",
    "learning_curves",
    "plot_cluster_choice",
    "plot_coefficients",
    "plot_components",
    "plot_confusion",
    "plot_convergence",
    "plot_directions",
    "plot_em_steps",
    "plot_em_trace",
    "plot_first_axes",
    "plot_images",
    "plot_l1_path",
    "plot_learning_curves",
    "plot_losses",
    "plot_machine",
    "plot_mixture",
    "plot_mixture_choice",
    "plot_projection_path",
    "plot_rate_distortion",
    "plot_scores",
    "plot_scree",
    "plot_search",
    "plot_split",
    "rate_distortion",
    "svg",
]
