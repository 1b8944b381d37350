"""Metadata of Parquet files that anybody may have written, read within bounds."""
