"""Products, moments and factorisations that several rooms stand on."""
