"""Losses of additive scores."""
