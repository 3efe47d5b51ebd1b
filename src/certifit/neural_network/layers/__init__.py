"""Layers of networks: each a forward and a backward of a few lines, and the words that name them."""
