"""The hyperplane of the largest margin, by the nearest points of two convex hulls."""
