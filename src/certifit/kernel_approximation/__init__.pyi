# Written by tools/stubs.py from certifit/registry.py.
from certifit.kernel_approximation.approximate_svc import ApproximateSVC as ApproximateSVC
from certifit.kernel_approximation.kernel_features import Nystroem as Nystroem
from certifit.kernel_approximation.kernel_features import RBFSampler as RBFSampler
