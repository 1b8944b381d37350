"""Parts that the core does not know, found by entry points."""
