"""SQL about skipping indexes: text to statements, errors that point at the token."""
