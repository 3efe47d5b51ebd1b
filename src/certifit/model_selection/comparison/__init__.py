"""Which model is better, or cannot it be told? Paired tests that hold for resampled scores."""
