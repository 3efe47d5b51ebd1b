"""Numerical methods that several rooms use.

| file | idea |
|---|---|
| `products` | products of dense and CSR rows, and the shift that keeps their squares accurate |
| `moments` | mean and scatter of weighted rows in one pass, or a triangular (QR) factor of them |
| `covariance` | the covariance as an operator, and centred rows that stay sparse |
| `factor` | linear systems with a symmetric positive semidefinite matrix |
| `krylov` | leading eigenpairs from products alone: block Krylov and power iteration |
| `matrix` | matrices that users pass: checked, in float64, scaled |
| `packed` | symmetric matrices as their lower triangles, many at a time |
| `missing`, `missing_loops` | missing entries (NaN) |
| `random_bits` | random numbers that compiled loops draw |
| `compiling` | how loops over rows are compiled |
| `double_double` | sums and products to twice the working precision |
| `sparse_cholesky` | Cholesky factors of sparse matrices |
"""
