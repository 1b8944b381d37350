"""Everything of skipping that needs Spark: the optimizer rule, listing, building, explaining."""
