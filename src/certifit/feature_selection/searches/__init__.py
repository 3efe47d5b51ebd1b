"""Greedy searches for columns: each step keeps or drops the one that scores best."""
