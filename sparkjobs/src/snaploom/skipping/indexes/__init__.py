"""Index types: what each keeps about a file, and what that proves."""
