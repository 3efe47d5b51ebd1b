"""Embeddings of rows that lie near a curved surface: locally linear embedding."""

from certifit.registry import lazy_names, room_names

__getattr__, __dir__, __all__ = lazy_names(__name__, room_names("manifold"))
