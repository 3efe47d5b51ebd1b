# Written by tools/stubs.py from certifit/registry.py.
from certifit.kernel_approximation.approximate_svc import ApproximateSVC as ApproximateSVC
from certifit.kernel_approximation.nystroem import Nystroem as Nystroem
from certifit.kernel_approximation.rbf_sampler import RBFSampler as RBFSampler
