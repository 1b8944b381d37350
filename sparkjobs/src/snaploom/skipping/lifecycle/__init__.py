"""The life of a skipping index: create, refresh, alter, drop, vacuum, recover."""
