"""Principal components in the feature space of a kernel."""
