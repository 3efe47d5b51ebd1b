"""A look at a table without a target: what is found, and the page about it."""
