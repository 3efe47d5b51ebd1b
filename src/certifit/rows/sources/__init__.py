"""Where rows come from: Parquet, CSV and Arrow tables, one-pass streams, Dask collections."""
