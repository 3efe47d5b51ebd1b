"""Provably best trees of small depth: histograms of columns taken two or three at a time, and bounds that meet."""
