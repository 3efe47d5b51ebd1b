"""Linear models whose penalty is chosen by cross-validation."""
