"""Products with dense or CSR rows, and factorisations with clear errors."""
