"""Models compared on the same folds within a budget of time, and every decision written down."""
