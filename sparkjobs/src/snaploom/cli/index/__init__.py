"""`snaploom index ...`: commands that create, maintain and describe skipping indexes."""
