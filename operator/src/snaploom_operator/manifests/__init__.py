"""Builders of child objects: pure, owner references and labels included."""
