"""Submitters: how a run becomes an application object, and how that is read back."""
