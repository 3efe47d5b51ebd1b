"""Checkers of logistic and softmax regression."""
