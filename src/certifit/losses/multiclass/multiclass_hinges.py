"""Hinges of several classes at once, of the slacks z_k = margin + f_k - f_y of the wrong classes k.

Weston & Watkins, "Support vector machines for multi-class pattern recognition" (1999), add the positive parts up;
Crammer & Singer, "On the algorithmic implementation of multiclass kernel-based vector machines" (2001), take the
largest.
"""

from __future__ import annotations

from typing import NamedTuple


class MulticlassHinge(NamedTuple):
    """A loss of all scores of a row."""

    margin: float  # by which the score of the right class should lead
    shared: bool  # whether only the largest slack counts, so that the dual variables of a row share one limit


MULTICLASS_HINGES = {"weston-watkins": MulticlassHinge(2.0, False), "crammer-singer": MulticlassHinge(1.0, True)}
