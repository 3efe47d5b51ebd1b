"""Sums of trees of any library, as plain arrays: what can be proved of them without the code that grew them."""
