"""Advice on indexes and sort order, estimated from data before anything is built."""
