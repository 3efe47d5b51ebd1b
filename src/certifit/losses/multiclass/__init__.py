"""Hinges of several classes at once."""
