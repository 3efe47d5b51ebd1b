"""Linear support vector machines, solved in the primal and in the dual."""
