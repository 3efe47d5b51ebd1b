"""Symmetric matrices as their lower triangles, many at a time."""

from certifit.numerics.packed.triangles import pack, unpack

__all__ = ["pack", "unpack"]
