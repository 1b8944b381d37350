"""Commands of `snaploom` that talk to a cluster."""
