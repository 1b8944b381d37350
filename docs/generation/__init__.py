"""What `docs/generate.py` is made of: one module a subject, each a function that returns text."""
