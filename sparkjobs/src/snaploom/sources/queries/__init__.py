"""Virtual sources: queries over other sources."""
