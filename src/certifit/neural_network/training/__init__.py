"""Training of networks: slopes of minibatches and of all rows, optimisers, epochs, and where rows are meanwhile."""
