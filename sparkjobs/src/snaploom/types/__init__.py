"""Schemas and types of columns, without Spark."""
