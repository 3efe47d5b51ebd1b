# Written by tools/stubs.py from certifit/registry.py.
from certifit.discriminant_analysis.linear import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
from certifit.discriminant_analysis.quadratic import QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis
