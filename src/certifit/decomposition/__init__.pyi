# Written by tools/stubs.py from certifit/registry.py.
from certifit.decomposition.pca.incremental_pca import IncrementalPCA as IncrementalPCA
from certifit.decomposition.pca.pca import PCA as PCA
from certifit.decomposition.probabilistic.probabilistic_pca import ProbabilisticPCA as ProbabilisticPCA
from certifit.decomposition.robust.robust_pca import RobustPCA as RobustPCA
from certifit.decomposition.robust.trimmed_pca import TrimmedPCA as TrimmedPCA
from certifit.decomposition.pca.truncated_svd import TruncatedSVD as TruncatedSVD
from certifit.decomposition.pca.both_views import two_views as two_views
