"""`snaploom index ...`: the command-line door to skipping indexes."""
