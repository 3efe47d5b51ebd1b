"""Binned columns: one byte a value, and growth by histograms of whole numbers."""
