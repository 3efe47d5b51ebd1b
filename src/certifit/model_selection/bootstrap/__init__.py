"""Models fitted to rows drawn with replacement: how much their coefficients and predictions change."""
