"""Principal components and their relatives: PCA, truncated SVD, probabilistic, robust and trimmed PCA."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("decomposition"))
