"""Declarations for tests: sound ones to be spoilt in one place, and what causes each reason."""
