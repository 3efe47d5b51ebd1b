"""Sources of rows outside of NumPy: Parquet, CSV and Arrow tables, one-pass streams, Dask collections."""
