"""The checker of discriminant analysis, of class means, covariances and the equations of directions."""
