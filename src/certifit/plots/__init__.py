"""Pictures of models and certificates, for notebooks and scripts.

Each function draws on the axes it is given, or on a new figure of pyplot's, which notebooks show by themselves and
`plt.show()` shows elsewhere; it returns the axes. Models may be ours or other libraries', tables of any kind, and no
setting of matplotlib's is changed. The pictures of a room live there (`cluster/plots.py`); here are the style they
share and those of no room.
"""

from certifit.registry import PICTURES, lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, PICTURES)
