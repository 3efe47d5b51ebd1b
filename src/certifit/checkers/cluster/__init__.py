"""Checkers of clusterings: fixed points and lower bounds on the k-means objective."""
