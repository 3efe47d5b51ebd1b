"""Selection of columns by their scores, by a search over sets of columns, or by an L1 penalty."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("feature_selection"))
