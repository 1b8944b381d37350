"""YAML and JSON files to typed resources, with the position of every key and value kept."""
