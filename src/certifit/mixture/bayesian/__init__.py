"""Gaussian mixtures with priors on their parameters, by variational inference."""
