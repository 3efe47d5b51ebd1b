"""From a table with columns of any type to a fitted model."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("table"))
