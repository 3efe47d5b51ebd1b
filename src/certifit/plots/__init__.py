"""Pictures of models and certificates. Each function draws on given axes, or on a new figure of its own.

Figures are made through matplotlib's object interface: no global state, no window, safe in threads and servers.
The pictures of a room live there (`cluster/plots.py`); here are the style they share and those of no room.
"""

from certifit.registry import PICTURES, lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, PICTURES)
