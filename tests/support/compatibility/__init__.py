"""What users rely on, release by release: descriptions of it, and which changes break them."""
