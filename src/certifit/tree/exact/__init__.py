"""Exact splits: columns sorted once, whole-number sums, every threshold looked at."""
