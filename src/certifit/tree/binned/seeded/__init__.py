"""Whole trees from codes of one byte, each grown by one thread in one call; what is random follows from a seed."""
