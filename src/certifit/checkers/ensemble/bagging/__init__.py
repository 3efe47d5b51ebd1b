"""Bagging checked: samples, members and out-of-bag answers."""
