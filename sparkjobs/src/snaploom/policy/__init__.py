"""What declarations may contain: SQL, regular expressions, settings, pods, addresses, secrets."""
