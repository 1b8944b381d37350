"""Index types: the facts each keeps about a file, and their conclusions."""
