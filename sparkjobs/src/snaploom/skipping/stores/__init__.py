"""Places where indexes are kept, behind one port."""
