"""Decision trees: exact splits, each proved to be the best of its candidates."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("tree"))
