"""Sources that are tables of Iceberg or Delta."""
