"""What tests of pages share: histories without Spark, and a real Chromium."""
