"""Admission: the same validation, before an object is stored."""
