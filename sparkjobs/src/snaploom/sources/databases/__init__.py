"""Sources that are tables of databases."""
