"""Checkers of networks: losses and gradients computed anew, and bounds that hold for any weights."""
