"""The estimators: scikit-learn's interface, one file per family of models."""
