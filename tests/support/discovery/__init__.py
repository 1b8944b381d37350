"""Data sets whose relationships are known, for `snaploom init --from`."""
