# Written by tools/stubs.py from certifit/registry.py.
from certifit.mixture.bayesian.bayesian_mixture import BayesianGaussianMixture as BayesianGaussianMixture
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture as GaussianMixture
from certifit.mixture.families.mixture import Mixture as Mixture
from certifit.mixture.choose_components import select_mixture as select_mixture
