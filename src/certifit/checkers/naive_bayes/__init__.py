"""The checkers of naive Bayes, which verify the moment equations of every parameter."""
