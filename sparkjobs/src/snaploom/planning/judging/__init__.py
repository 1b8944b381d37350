"""Judging texts of users that are expensive to analyse: SQL, and regular expressions.

`texts` judges them at once; `worker` is a process that does it for others, one line in and one line
out (`wire`), so that its caller can end it.
"""
