"""Checkers of mixtures: one plain EM step, and what it still gains."""
