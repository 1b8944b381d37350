"""Key management services: what wraps the keys of encrypted Parquet files."""
