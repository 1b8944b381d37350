"""The weaving of outputs, from a request to published snapshots."""
