"""Rules of declarations: SQL, regular expressions, settings, pods, addresses, secrets."""
