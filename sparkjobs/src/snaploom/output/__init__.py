"""Output folders: the manifest log, publication, retention, collection and repair."""
