"""Sources of files: declared, listed and read."""
